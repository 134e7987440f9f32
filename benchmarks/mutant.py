"""Mutants: modules of scoring with one change, made by mutmut's operators and drawn at random.

Strings are not mutated, since most are text for people; nor are annotations, decorators and imports.
"""

import ast
import difflib
import functools
import random
from collections.abc import Iterator
from pathlib import Path

import libcst
import msgspec
from libcst.metadata import MetadataWrapper
from mutmut.mutation.mutators import mutation_operators, operator_string

__all__ = ["Mutant", "drawn"]

SCORING = Path(__file__).resolve().parent.parent / "scoring"
Change = tuple[libcst.CSTNode, libcst.CSTNode]


class Mutant(msgspec.Struct, frozen=True):
    """A module of scoring with other `source` than its file's; `lines` are the first and last that differ, from 1."""

    module: str
    lines: tuple[int, int]
    source: str

    @property
    def path(self) -> Path:
        return SCORING / f"{self.module.replace('.', '/')}.py"

    @property
    def diff(self) -> str:
        """The change, without its surroundings."""
        old, new = self.path.read_text(encoding="utf-8").splitlines(), self.source.splitlines()
        changed = difflib.unified_diff(old, new, n=0, lineterm="")
        return "\n".join(line for line in changed if not line.startswith(("---", "+++", "@@")))

    def body(self) -> range | None:
        """The lines of the body of the function that contains the change; None outside of all functions."""
        first, last = self.lines
        around = [
            range(node.body[0].lineno, (node.end_lineno or 0) + 1)
            for node in ast.walk(ast.parse(self.path.read_text(encoding="utf-8")))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.lineno <= first
            and last <= (node.end_lineno or 0)
        ]
        return min(around, key=len, default=None)

    def is_importable(self) -> bool:
        """Whether the module can be run at all."""
        try:
            exec(compile(self.source, self.path, "exec"), {"__name__": f"adjudge.scoring.{self.module}"})
        except Exception:  # noqa: BLE001 - whatever a mutant raises
            return False
        return True


def drawn(seed: int) -> Iterator[Mutant]:
    """All mutants that can be imported, in an order that the seed decides."""
    modules = sorted(
        ".".join(path.relative_to(SCORING).with_suffix("").parts)
        for path in SCORING.rglob("[a-z]*.py")
        if "kernels" not in path.parts  # compiled code, which no line of a trace shows
    )
    sites = [(module, number) for module in modules for number in range(len(_parsed(module)[1]))]
    random.Random(seed).shuffle(sites)
    for module, number in sites:
        tree, changes = _parsed(module)
        changed = tree.deep_replace(*changes[number])
        assert isinstance(changed, libcst.Module)
        mutant = Mutant(module, _touched(tree.code, changed.code), changed.code)
        if mutant.is_importable():
            yield mutant


class _Sites(libcst.CSTVisitor):
    """Every node that an operator changes, with its replacement, in the order of the file."""

    def __init__(self) -> None:
        self.changes: list[Change] = []

    def on_visit(self, node: libcst.CSTNode) -> bool:
        if isinstance(node, libcst.Annotation | libcst.Decorator | libcst.Import | libcst.ImportFrom):
            return False
        for kind, operator in mutation_operators:
            if isinstance(node, kind) and operator is not operator_string:
                self.changes += [(node, changed) for changed in operator(node)]
        return True


@functools.cache
def _parsed(module: str) -> tuple[libcst.Module, list[Change]]:
    text = (SCORING / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    tree = MetadataWrapper(libcst.parse_module(text)).module  # which makes every node another
    sites = _Sites()
    tree.visit(sites)
    return tree, sites.changes


def _touched(old: str, new: str) -> tuple[int, int]:
    steps = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False).get_opcodes()
    spans = [(start, end) for step, start, end, _, _ in steps if step != "equal"]
    return spans[0][0] + 1, max(end for _, end in spans)
