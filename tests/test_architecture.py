"""The house keeps its floors: imports run downwards, modules and functions stay readable."""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from adjudge import scoring
from adjudge.judges import Answer, Question

ROOT = Path(__file__).parent.parent
BELOW = {
    "prompts": (),
    "fetchers": (),
    "judges": ("prompts",),
    "scoring": ("judges", "fetchers"),
    "engine": ("prompts", "fetchers", "judges", "scoring"),
}
MODULES = [path.relative_to(ROOT) for folder in BELOW for path in sorted((ROOT / folder).rglob("*.py"))]
MODULE_LINES = 400
FUNCTION_LINES = 60
LONG_FUNCTIONS = {"engine/cli.py:_parser": "the list of commands and their options, read from top to bottom"}
# Started only where they are used: each takes seconds to import, and none of them is a dependency.
OPTIONAL = ("ray", "vllm", "torch", "transformers", "trl", "docx", "openpyxl", "pptx")


def tree(module: Path) -> ast.Module:
    return ast.parse((ROOT / module).read_text())


def imported(nodes: Iterator[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_module_is_looked_at() -> None:
    assert len(MODULES) > 150


@pytest.mark.parametrize("folder", BELOW)
def test_imports_run_downwards(folder: str) -> None:
    may = {"adjudge." + name for name in (folder, *BELOW[folder])}
    for module in MODULES:
        if module.parts[0] == folder:
            names = [name for name in imported(ast.walk(tree(module))) if name.startswith("adjudge.")]
            wrong = [name for name in names if ".".join(name.split(".")[:2]) not in may]
            assert not wrong, f"{module} imports {wrong}"
            bare = [name for name in imported(ast.walk(tree(module))) if name.split(".")[0] in BELOW]
            assert not bare, f"{module} imports {bare} by a bare name"


@pytest.mark.parametrize("folder", ["prompts", "fetchers", "judges", "scoring"])
def test_what_is_heavy_and_optional_is_imported_where_it_is_used(folder: str) -> None:
    for module in MODULES:
        if module.parts[0] == folder and module.name != "vllm_engine.py":
            top = [name.split(".")[0] for name in imported(iter(tree(module).body))]
            assert not set(top) & set(OPTIONAL), module


def test_modules_and_functions_stay_readable() -> None:
    long = set()
    for module in MODULES:
        assert len((ROOT / module).read_text().splitlines()) < MODULE_LINES, module
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        long |= {
            f"{module}:{node.name}"
            for node in ast.walk(tree(module))
            if isinstance(node, functions) and (node.end_lineno or 0) - node.lineno + 1 >= FUNCTION_LINES
        }
    assert long == set(LONG_FUNCTIONS)


def test_what_scoring_passes_around_are_values() -> None:
    """Its structs are frozen, and questions and answers are made by the names of their fields alone."""
    found = {
        kind
        for module in pkgutil.iter_modules(scoring.__path__, "adjudge.scoring.")
        for kind in vars(importlib.import_module(module.name)).values()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ == module.name
    }
    assert len(found) > 100
    assert [kind for kind in found if not kind.__struct_config__.frozen] == []
    for kind in found:
        if issubclass(kind, Question | Answer):
            fields = inspect.signature(kind).parameters.values()
            assert {field.kind for field in fields} <= {inspect.Parameter.KEYWORD_ONLY}, kind


def test_everything_public_says_what_it_is() -> None:
    """What `__all__` names is defined or imported there, and what is defined there has a docstring."""
    for module in MODULES:
        parsed = tree(module)
        public: set[str] = set()
        for node in parsed.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                public = set(ast.literal_eval(node.value))
        defined = {
            node.name: node for node in parsed.body if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        for name in public & set(defined):
            assert ast.get_docstring(defined[name]), f"{module}: {name}"
