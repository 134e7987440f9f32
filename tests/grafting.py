"""The benchmarks' own code with made prompts in place of its own.

A made checkout (`golden/published/checkouts`) has the prompts of a benchmark in our words, where the benchmark has its
own: in the same files, under the same names. `graft` puts them into a copy of the code, so that it can be run on texts
that may be kept.
"""

import ast
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.shared_data import GOLDEN, reference

CHECKOUTS = GOLDEN / "published" / "checkouts"
_LEFT_OUT = shutil.ignore_patterns(".git", "data", "results", "docs", "assets", "pics")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

LaidOut = Callable[[str, Path], Path]
"""Lays out the Python files of a repository, by its name, in a folder that it returns."""

Slot = tuple[str, ...]
Spans = dict[Slot, list[list[ast.expr]]]


def made_checkout(name: str, folder: Path) -> Path:
    """The made prompts of the repository `name`, copied to `folder`."""
    return shutil.copytree(CHECKOUTS / name, folder, ignore=shutil.ignore_patterns("__pycache__"))


def own_code(name: str, folder: Path) -> Path:
    """The code of the repository `name` as it is, copied to `folder`; skips the test without `ADJUDGE_REFERENCE`."""
    return shutil.copytree(reference(name), folder, ignore=_LEFT_OUT)


def grafted_code(name: str, folder: Path) -> Path:
    """The code of the repository `name` with the made prompts, copied to `folder`."""
    own_code(name, folder)
    for made in sorted((CHECKOUTS / name).rglob("*.py")):
        graft(folder / made.relative_to(CHECKOUTS / name), made)
    return folder


def graft(file: Path, made: Path) -> None:
    """Put the strings of `made` in place of those that they stand for in `file`."""
    source, words = file.read_bytes(), made.read_text(encoding="utf-8")
    own, ours = _slots(ast.parse(source)), _slots(ast.parse(words))
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    changes = []
    for slot, nodes in ours.items():
        assert len(own[slot]) == len(nodes), f"{file}: {len(own[slot])} strings at {slot}, not {len(nodes)}"
        for same, (node, *_) in zip(own[slot], nodes, strict=True):
            text = f"({ast.get_source_segment(words, node)})".encode()
            for one in same:
                assert one.end_lineno is not None and one.end_col_offset is not None
                start = starts[one.lineno - 1] + one.col_offset
                changes.append((start, starts[one.end_lineno - 1] + one.end_col_offset, text))
    for start, end, text in sorted(changes, reverse=True):
        source = source[:start] + text + source[end:]
    file.write_bytes(source)


def _slots(module: ast.Module) -> Spans:
    """The strings by where they stand: equal ones together, all others in the order of the source."""
    found: dict[Slot, dict[str, list[ast.expr]]] = defaultdict(lambda: defaultdict(list))
    for scope, name in _scopes(module, ""):
        assigned = set()
        for slot, node in _named(scope):
            assigned.add(id(node))
            found[name, *slot][f"{node.lineno}:{node.col_offset}"].append(node)
        for slot, node in _other(scope):
            if id(node) not in assigned:
                found[name, *slot][ast.unparse(node)].append(node)
    ordered: Spans = defaultdict(list)
    for slot, nodes in found.items():
        ordered[slot] = sorted(nodes.values(), key=lambda same: (same[0].lineno, same[0].col_offset))
    return ordered


def _scopes(scope: ast.AST, name: str) -> Iterator[tuple[ast.AST, str]]:
    """The module, its classes and all functions."""
    yield scope, name
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, _SCOPES):
            yield from _scopes(child, f"{name}.{child.name}")


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of `scope` without those of the scopes in it, and without what stands within an f-string."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, _SCOPES):
            yield child
            if not isinstance(child, ast.JoinedStr):
                yield from _own(child)


def _named(scope: ast.AST) -> Iterator[tuple[Slot, ast.expr]]:
    """What is assigned to a name, or under a key of a dictionary that is."""
    for node in _own(scope):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if _is_text(node.value) and not (isinstance(node.value, ast.Constant) and not node.value.value):
                yield ("=", name), node.value
            elif isinstance(node.value, ast.Dict):
                for key, value in zip(node.value.keys, node.value.values, strict=True):
                    if isinstance(key, ast.Constant) and _is_text(value):
                        yield ("=", name, str(key.value)), value


def _other(scope: ast.AST) -> Iterator[tuple[Slot, ast.expr]]:
    """F-strings by their placeholders; constants by the argument or key they are passed under, or added to texts."""
    for node in _own(scope):
        if isinstance(node, ast.JoinedStr):
            shown = {ast.unparse(one.value) for one in node.values if isinstance(one, ast.FormattedValue)}
            yield ("f", *sorted(shown)), node
        elif isinstance(node, ast.keyword) and node.arg == "system" and isinstance(node.value, ast.Constant):
            yield ("passed", node.arg), node.value
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if (
                    isinstance(key, ast.Constant)
                    and key.value == "content"
                    and isinstance(value, ast.Constant)
                ):
                    yield ("passed", "content"), value
        elif (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Add)
            and isinstance(node.right, ast.Constant)
            and isinstance(node.right.value, str)
        ):
            yield ("+",), node.right


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
