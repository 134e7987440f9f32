"""The table of forms in docs/citations.md, made from `tests/citation_forms.py`."""

from tests.citation_forms import FORMS

__all__ = ["table"]

STATEMENT, ADDRESS = "The mill grinds oats", "mill.example"


def table() -> str:
    """A line for each form: its name, the sentence with its mark, and the line of its source."""
    return "".join(
        f"| {name} | {_code(_of(text, STATEMENT))} | {_source(text)} |\n" for name, text in FORMS.items()
    )


def _of(text: str, words: str) -> str:
    return next((line for line in text.splitlines() if words in line), "")


def _source(text: str) -> str:
    statement = _of(text, STATEMENT)
    lines = [line for line in text.splitlines() if line != statement and not line.startswith("<!--")]
    apart = [line for line in lines if "\\_" in line] or [line for line in lines if ADDRESS in line]
    return _code(apart[0]) if apart else ""


def _code(line: str) -> str:
    """The first sentence of a line as code in a table's cell."""
    first = (
        line.partition(" Barges")[0]
        .partition(" No bridge")[0]
        .replace("\u200b", "\\u200b")
        .replace("|", "\\|")
    )
    return f"`` {first} ``" if "`" in first else f"`{first}`"
