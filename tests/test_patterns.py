"""The patterns that modules keep take linear time, and mean the same under every Python that is supported.

Before 3.11.5, a possessive repetition of a group ends too late where its body begins to match and then fails: the
position is not set back (CPython issues 100061 and 106052). Debian 12 has such a Python. `(?>(?:...){0,20})` says the
same as `(?:...){0,20}+`, and is right everywhere.
"""

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import dropwhile
from pathlib import Path
from re import _constants as codes
from re import _parser as parser
from typing import Any

import pytest

from tests.growth import MODULES

ROOT = Path(__file__).parent.parent
PACKAGES = ("engine", "judges", "fetchers", "scoring", "prompts")
SINGLE = (codes.LITERAL, codes.NOT_LITERAL, codes.IN, codes.ANY)
REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)


def fails_at_once(body: Any) -> bool:
    """Whether a `body` that does not match has left no position behind: all but its first items match anything."""
    later = list(dropwhile(lambda item: item[0] in SINGLE, body))
    if len(later) == len(body) and later:
        (code, value), *later = later
        if code is codes.BRANCH:
            if not all(map(fails_at_once, value[1])):
                return False
        elif code not in REPEATS or not is_single(value[2]):
            return False
    return all(code in REPEATS and value[0] == 0 and is_single(value[2]) for code, value in later)


def is_single(body: Any) -> bool:
    """Whether `body` is one character."""
    return len(body) == 1 and body[0][0] in SINGLE


def late_repetitions(pattern: Any) -> Iterator[str]:
    """The possessive repetitions in `pattern` whose bodies may fail late."""
    for code, value in pattern:
        if code is codes.POSSESSIVE_REPEAT and not fails_at_once(value[2]):
            yield str(value[2])
        if code in REPEATS:
            yield from late_repetitions(value[2])
        elif code is codes.SUBPATTERN:
            yield from late_repetitions(value[-1])
        elif code is codes.ATOMIC_GROUP:
            yield from late_repetitions(value)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from late_repetitions(value[1])
        elif code is codes.BRANCH:
            for branch in value[1]:
                yield from late_repetitions(branch)
        elif code is codes.GROUPREF_EXISTS:
            for branch in filter(None, value[1:]):
                yield from late_repetitions(branch)


def patterns() -> Iterator[tuple[str, re.Pattern[Any]]]:
    """The patterns of every module that can be imported here, with the module's name and theirs."""
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        name = ".".join(("adjudge", *path.relative_to(ROOT).with_suffix("").parts))
        if name.endswith("__main__"):
            continue
        try:
            module = import_module(name.removesuffix(".__init__"))
        except ImportError:  # an extra that is not installed
            continue
        for key, value in vars(module).items():
            yield from ((f"{name}.{key}.{number}", one) for number, one in enumerate(patterns_in(value)))


def patterns_in(value: object) -> Iterator[re.Pattern[Any]]:
    """The patterns that a module's value is or holds."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, Mapping):
        yield from patterns_in(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for one in value:
            yield from patterns_in(one)


def late(pattern: re.Pattern[Any]) -> list[str]:
    """The bodies of its possessive repetitions that may fail late."""
    return [*late_repetitions(parser.parse(pattern.pattern, pattern.flags & ~codes.SRE_FLAG_UNICODE))]


@pytest.mark.filterwarnings("ignore")  # of libraries that some modules import
def test_no_pattern_repeats_possessively_what_fails_late() -> None:
    found = dict(patterns())
    assert len(found) > 300
    assert {name: bodies for name, pattern in found.items() if (bodies := late(pattern))} == {}


@pytest.mark.parametrize(
    ("pattern", "is_late"),
    [
        (r"(?:ab?c)++", True), (r"(?:.(?!D))++", True), (r"(?:, ?\w{1,9}+){0,20}+", True), (r"((?:x[yz]{2})*+)", True),
        (r"(?:[^\"]++|\"\")*+", False), (r"(?:(?: {4}|\t)[^\n]*+\n?+)++", False), (r"[abc]{0,20}+", False),
        (r"(?>(?:ab?c)+)", False), (r"(?:ab?c)+", False), (r"(?:ab)*+", False),
    ],
)  # fmt: skip
def test_late_repetitions_are_told(pattern: str, is_late: bool) -> None:
    assert bool(late(re.compile(pattern))) is is_late


def repeats(pattern: Any, inside: bool = False) -> list[str]:
    """What `pattern` repeats often inside of a repetition, unless atomic: the ways to match it may multiply."""
    found = []
    for code, value in pattern:
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            _, most, body = value
            if inside and most >= 20:
                found.append(str(body))
            found += repeats(body, inside or most > 5)
        elif code is codes.SUBPATTERN:
            found += repeats(value[-1], inside)
        elif code is codes.BRANCH:
            for branch in value[1]:
                found += repeats(branch, inside)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            found += repeats(value[1], inside)
    return found


def test_no_pattern_repeats_a_long_repetition() -> None:
    """Where the repetition inside cannot end in two places, the pattern is named here."""
    one_way = {
        "_EXAMPLE",  # a line begins behind the end of a line, which it does not hold
        "_END",  # a mark and full stops: each repetition begins with the mark
        "_CLOSING",  # each repetition begins with the last character of a token
        "_HOST",  # a label begins behind a dot, which it does not hold
        "_TARGET",  # likewise
        "_NAME",  # a word begins with a capital behind a space
        "_SENTENCE",  # a sentence's full stop is in neither repetition
    }
    found = {
        name
        for module in MODULES
        for name, value in vars(module).items()
        if isinstance(value, re.Pattern)
        and repeats(parser.parse(value.pattern, value.flags & ~codes.SRE_FLAG_UNICODE))
    }
    assert found <= one_way
