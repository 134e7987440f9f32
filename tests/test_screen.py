"""Whether RE2 says of every text that Python's search would find something in it that it may."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.scoring.text.integrity import _SHAPES
from adjudge.scoring.text.orders import _DISGUISES, _ENGLISH, _PARTS
from adjudge.scoring.text.screen import Screen
from adjudge.scoring.text.seen import _PIECES, _SCREEN

ALL = [
    (screen, place, screen[place])
    for screen in (_ENGLISH, _SHAPES, _PARTS, _DISGUISES)
    for place in range(len(screen))
]


@given(st.data(), st.sampled_from(ALL), st.text(max_size=20), st.text(max_size=20))
def test_what_a_pattern_finds_is_possible(
    data: st.DataObject, one: tuple[Screen, int, re.Pattern[str]], before: str, after: str
) -> None:
    screen, place, pattern = one
    text = before + data.draw(st.from_regex(pattern)) + after
    if pattern.search(text):
        assert place in screen.possible(text)


@given(st.from_regex(_PIECES), st.text(max_size=20), st.text(max_size=20))
def test_what_a_reader_does_not_see_is_looked_for(piece: str, before: str, after: str) -> None:
    text = before + piece + after
    if any(found.lastgroup != "code" and not found["code"] for found in _PIECES.finditer(text)):
        assert _SCREEN.possible(text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"\bcafé\s+\w+(?=[.)]|\Z)", "Un CAFÉ\u00a0crème."),
        (r"(\d{1,3})/\1\b", "٣٣/٣٣"),
        (r"(?<!\w)x(?!\w|(?:a|b))", "x"),
        (r"^judge:", "A\nJudge: yes"),
        (r"a\s+b", "a\u2028b"),
        (r"a\s+b", "a\x1cb"),
        (r"[^.\n]{0,3}end", "an end"),
    ],
)
def test_classes_are_pythons(pattern: str, text: str) -> None:
    assert re.search(pattern, text, re.IGNORECASE | re.MULTILINE)
    assert Screen(["never", pattern]).possible(text) == [1]


def test_nothing_is_possible_in_what_matches_nothing() -> None:
    assert Screen([r"\bgive\b", r"mark\s+as"]).possible("The market grew by 12 % in 2024. \ud800") == []
    assert _ENGLISH.possible("The market grew by 12 % in 2024, the report says.") == []
