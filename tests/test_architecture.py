"""The house keeps its floors: imports run downwards, modules and functions stay readable."""

import ast
import graphlib
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

from adjudge import scoring
from adjudge.judges import Answer, Question
from tests.house import FLOORS

ROOT = Path(__file__).parent.parent
# A folder may import itself and the folders named here.
BELOW = {
    "prompts": (),
    "fetchers": (),
    "judges": ("prompts",),
    "scoring": ("judges", "fetchers"),
    "engine": ("prompts", "fetchers", "judges", "scoring"),
}
MODULES = [path.relative_to(ROOT) for folder in BELOW for path in sorted((ROOT / folder).rglob("*.py"))]
# Imported only where they are used: each takes seconds to import, and none of them is a dependency.
OPTIONAL = (
    "ray",
    "vllm",
    "torch",
    "transformers",
    "trl",
    "docx",
    "huggingface_hub",
    "mlflow",
    "openpyxl",
    "opentelemetry",
    "pptx",
    "sqlalchemy",
    "wandb",
    "warcio",
)

EXAMPLES = re.compile(r"""["'/]examples["'/]""")


def tree(module: Path) -> ast.Module:
    return ast.parse((ROOT / module).read_text())


def imported(nodes: Iterator[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def imports(file: Path) -> tuple[str, ...]:
    """All names that a file imports, anywhere in it."""
    return tuple(imported(ast.walk(ast.parse(file.read_text("utf-8")))))


# judges/ may not import fetchers/. There, closing the judge reads the error of a failed loading, and the queue's future
# never holds an error.
SHIELDS = {Path("fetchers/flight.py"), Path("judges/vllm.py"), Path("judges/queue.py")}


def test_tasks_that_several_wait_for_are_awaited_as_shared() -> None:
    shields = {module for module in MODULES if "asyncio.shield" in (ROOT / module).read_text()}
    assert shields == SHIELDS, "await it by adjudge.fetchers.flight.shared: its error may be nobody's"


def test_every_module_is_checked() -> None:
    assert len(MODULES) > 150


def test_only_a_run_reads_its_record() -> None:
    """Relative paths are resolved where the record is read, so no caller can forget to."""
    for module in MODULES:
        if module != Path("engine/runs/run.py"):
            attributes = (node for node in ast.walk(tree(module)) if isinstance(node, ast.Attribute))
            names = {ast.unparse(node) for node in attributes if node.attr in ("read", "found_from_here")}
            wrong = [name for name in names if name.endswith(("RunRecord.read", ".found_from_here"))]
            assert not wrong, f"{module}: {wrong}; open the run with Run.open"


@pytest.mark.parametrize("folder", BELOW)
def test_imports_run_downwards(folder: str) -> None:
    may = {"adjudge." + name for name in (folder, *BELOW[folder])}
    for module in MODULES:
        if module.parts[0] == folder:
            names = [name for name in imports(ROOT / module) if name.startswith("adjudge.")]
            wrong = [name for name in names if ".".join(name.split(".")[:2]) not in may]
            assert not wrong, f"{module} imports {wrong}"
            bare = [name for name in imports(ROOT / module) if name.split(".")[0] in BELOW]
            assert not bare, f"{module} imports {bare} by a bare name"


def dotted(module: Path) -> str:
    """The name that `module` is imported by."""
    parts = module.with_suffix("").parts
    return ".".join(("adjudge", *(parts[:-1] if parts[-1] == "__init__" else parts)))


IMPORTED_AS = {dotted(module): module for module in MODULES}


def edges(module: Path) -> set[str]:
    """The modules that `module` imports anywhere: at its top, in functions and for type checkers alone."""
    found = set()
    for name in imports(ROOT / module):
        while name and name not in IMPORTED_AS:
            name = name.rpartition(".")[0]
        found.add(name)
    return found - {"", dotted(module)}


def floor_of(name: str, folder: str) -> int | None:
    """The floor of the package that a module is in, 0 at the ground; None for a folder's own front modules."""
    inner = name.removeprefix(f"adjudge.{folder}").removeprefix(".")
    while inner:
        for floor, packages in enumerate(FLOORS[folder]):
            if inner in packages:
                return floor
        inner = inner.rpartition(".")[0]
    return None


def package_of(name: str, folder: str) -> str:
    inner = name.removeprefix(f"adjudge.{folder}.")
    known = {package for packages in FLOORS[folder] for package in packages}
    while inner and inner not in known:
        inner = inner.rpartition(".")[0]
    return inner


@pytest.mark.parametrize("folder", FLOORS)
def test_packages_import_only_packages_below(folder: str) -> None:
    wrong = []
    for name, module in IMPORTED_AS.items():
        here = floor_of(name, folder)
        if module.parts[0] != folder or here is None:
            continue
        for other in edges(module):
            there = floor_of(other, folder) if other.startswith(f"adjudge.{folder}.") else -1
            same = package_of(name, folder) == package_of(other, folder)
            if there is None or (there >= here and not same):
                wrong.append(f"{name} imports {other}")
    assert wrong == []


@pytest.mark.parametrize("folder", FLOORS)
def test_every_package_has_a_floor(folder: str) -> None:
    packages = {
        ".".join(path.parent.relative_to(ROOT / folder).parts)
        for path in (ROOT / folder).rglob("__init__.py")
    }
    known = {package for packages in FLOORS[folder] for package in packages}
    assert packages - {""} <= known
    flat = {path.stem for path in (ROOT / folder).glob("*.py")} - {"__init__", "__main__"}
    assert flat <= known, "a module outside of all packages"


def test_files_import_without_circles() -> None:
    graph = {name: edges(module) for name, module in IMPORTED_AS.items()}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize("folder", ["prompts", "fetchers", "judges", "scoring"])
def test_heavy_optional_packages_are_imported_where_used(folder: str) -> None:
    for module in MODULES:
        if module.parts[0] == folder and module.name not in ("vllm_engine.py", "warc_records.py"):
            top = [name.split(".")[0] for name in imported(iter(tree(module).body))]
            assert not set(top) & set(OPTIONAL), module


def test_scoring_structs_are_frozen_values() -> None:
    """Structs of scoring are frozen, and questions and answers take keyword arguments only."""
    found = {
        kind
        for module in pkgutil.walk_packages(scoring.__path__, "adjudge.scoring.")
        for kind in vars(importlib.import_module(module.name)).values()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ == module.name
    }
    assert len(found) > 100
    assert [kind for kind in found if not kind.__struct_config__.frozen] == []
    for kind in found:
        if issubclass(kind, Question | Answer):
            fields = inspect.signature(kind).parameters.values()
            assert {field.kind for field in fields} <= {inspect.Parameter.KEYWORD_ONLY}, kind


def test_public_names_have_docstrings() -> None:
    """The public names of a module are those in `__all__` or, without one, those without an underscore."""
    for module in MODULES:
        parsed = tree(module)
        defined = {
            node.name: node
            for node in parsed.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        }
        public = {name for name in defined if not name.startswith("_")}
        for node in parsed.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                public = set(ast.literal_eval(node.value))
        for name in public & set(defined):
            assert ast.get_docstring(defined[name]), f"{module}: {name}"


def test_public_names_have_one_home() -> None:
    """`adjudge` offers them; `adjudge.engine` is the package they come from, and offers none."""
    assert ast.unparse(tree(Path("engine/__init__.py"))).count("\n") == 0
    for file in (*(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")):
        names = imports(file)
        wrong = [
            name for name in names if name.startswith("adjudge.engine.") and name.split(".")[2][:1].isupper()
        ]
        assert not wrong and "adjudge.engine.evaluate" not in names, file


def test_only_one_helper_of_tests_reads_the_examples() -> None:
    """Elsewhere a test would meet the stores and runs that an evaluation leaves there."""
    files = {path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")}
    named = {path.relative_to(ROOT) for path in files if EXAMPLES.search(path.read_text("utf-8"))}
    assert named == {Path("tests/examples.py")}, "take them from tests.examples.shipped"


def test_test_modules_do_not_import_each_other() -> None:
    """What several share lies in a helper: a test module that is imported runs nothing, and hides what needs it."""
    files = {path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")}
    shared = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in imports(path)
        if re.match(r"tests\.(\w+\.)*test_", name)
    }
    assert shared == set()


def test_one_place_chooses_headlines() -> None:
    """Elsewhere the field of a metric is handed on as it is, and never looked at to choose."""
    wrong = []
    for module in MODULES:
        if module == Path("engine/config/metrics.py"):
            continue
        nodes = list(ast.walk(tree(module)))
        copied = {node.value for node in nodes if isinstance(node, ast.keyword) and node.arg == "headline"}
        wrong += [
            f"{module}:{node.lineno}"
            for node in nodes
            if isinstance(node, ast.Attribute)
            and node.attr == "headline"
            and isinstance(node.ctx, ast.Load)
            and node not in copied
        ]
    assert wrong == []
