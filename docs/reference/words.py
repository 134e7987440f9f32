"""The words that stand in the code, for the pages made from it."""

import ast
import inspect
import textwrap
from collections.abc import Iterable, Sequence

import msgspec


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; what its cells say may hold a `|`."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def words_of(kind: type) -> dict[str, str]:
    """The text under each field of a struct, those it inherits among them."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base is not msgspec.Struct and issubclass(base, msgspec.Struct):
            [node] = ast.parse(textwrap.dedent(inspect.getsource(base))).body
            assert isinstance(node, ast.ClassDef)
            for pair in zip(node.body, node.body[1:], strict=False):
                match pair:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                        value=ast.Constant(value=str(text))
                    ):
                        found[name] = text
    return found
