"""Project files speak of themselves alone, and names of tests are short."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples import tracked

ROOT = Path(__file__).parent.parent
# What to write instead: the phrases, as they stand in running text.
BANNED = {
    "the goal's name": r"\bgoals? (?-i:[A-Z])\b",
    "what that file says: a clone does not have it": r"\b(?:semantics|contract|design)\.md\b|\.\./shared\b",
}
PATTERN = re.compile("|".join(f"(?:{phrase})" for phrase in BANNED.values()), re.IGNORECASE)
TEXTS = ("*.md", "*.yaml", "*.yml", "*.sh", "*.Dockerfile")
FOLDERS = ("engine", "scoring", "judges", "fetchers", "benchmarks", "deploy", "docs", "tests")
NAME_LENGTH = 60


def found(text: str) -> list[str]:
    """The banned phrases of `text`, each with some of its surroundings. Line breaks count as spaces."""
    running = re.sub(r"\s+(?:# )?", " ", text)
    return [running[max(0, hit.start() - 20) : hit.end() + 20] for hit in PATTERN.finditer(running)]


def words(source: str) -> Iterator[str]:
    """The string literals (an f-string without its values) and the blocks of comments of Python code."""
    parsed = ast.parse(source)
    inside = {
        id(part) for node in ast.walk(parsed) if isinstance(node, ast.JoinedStr) for part in node.values
    }
    for node in ast.walk(parsed):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "_" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value
    block, last = "", 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1:
                yield block
                block = ""
            block, last = f"{block} {token.string}", token.start[0]
    yield block


def clean(pattern: str) -> list[Path]:
    """Files of the checkout that match `pattern`, except this one and those that commands make."""
    files = [*ROOT.glob(pattern), *(file for folder in FOLDERS for file in (ROOT / folder).rglob(pattern))]
    files += [file for file in tracked() if file.match(pattern)]
    return sorted(file for file in files if "runs" not in file.parts and file != Path(__file__))


@pytest.mark.parametrize("pattern", TEXTS)
def test_documents_are_in_plain_english(pattern: str) -> None:
    wrong = {str(file.relative_to(ROOT)): found(file.read_text(encoding="utf-8")) for file in clean(pattern)}
    assert {name: phrases for name, phrases in wrong.items() if phrases} == {}


def test_python_is_in_plain_english() -> None:
    files = [*clean("*.py"), ROOT / "prompts/__init__.py"]
    wrong = {
        str(file.relative_to(ROOT)): [
            phrase for text in words(file.read_text(encoding="utf-8")) for phrase in found(text)
        ]
        for file in files
    }
    assert {name: phrases for name, phrases in wrong.items() if phrases} == {}


def test_names_of_tests_are_short() -> None:
    named = [
        f"{file.name}:{node.name}"
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and len(node.name) > NAME_LENGTH
    ]
    assert named == []


def test_banned_phrases_are_found() -> None:
    assert len(found(f"(semantics{'.'}md, FACT 1)")) == 1


def test_words_of_python_are_all_read() -> None:
    source = 'x = f"a {y} b" "c"  # one\n\n# two\n# three\ndef f():\n    """Doc."""\n    return "d"\n'
    assert [text.strip() for text in words(source) if text] == [
        "a _ bc",
        "Doc.",
        "d",
        "# one",
        "# two # three",
    ]
