"""Patterns that are tried at signs alone, and quick looks: they find what the patterns themselves find."""

import re
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.scoring.text import accounted, notations
from adjudge.scoring.text.citation_marks import may_hold_mark
from adjudge.scoring.text.signs import found_at, replaced_at

# Pieces of every notation that the patterns know, what stands between them, and whole ones.
PIECES = (
    "https://a.example/x", "HTTP://A.example", "http", "://", "www.", "WWW.b.cc", "arXiv:", "doi", "a", "Ab", "1",
    "12", "[1]", "#", "[", "]", "[[", "]]", "][", "(", ")", "{", "}", "{{cite web | url = ", "}}", "){:.x}", "<", ">",
    "&lt;", "&gt;", "|", "`", "`_", "[url=", "[/url]", "\\href{", "\\url{", "\\", "^", "※3", "<3>", "{4}", "[#5]", "#6",
    ".", "\"", " ", "\n", "ı", "ſ", "é", "中",
)  # fmt: skip
WHOLE = (
    "`T <https://a.example/x>`_", "[[https://a.example/x][T]]", "[[https://a.example/x|T]]", "<https://a.example/x|T>",
    "[url=https://a.example/x]T[/url]", "\\href{https://a.example/x}{T}", "\\url{https://a.example/x}",
    "&lt;https://a.example/x&gt;", "https://a.example/x[T words]", "HTTPS://a.example/x[T words]", "){.external}",
    "[https://a.example/x Words]", "{{cite web | url = https://a.example/x }}", "{4}", "[#5]", "abc^7",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from((*PIECES, *WHOLE)), max_size=14).map("".join)


SIGNED = [(notations, "_LINKED"), (notations, "_WIKI"), (notations, "_SIGNED"), (accounted, "_ADDRESS")]


@pytest.mark.parametrize(("module", "name"), SIGNED)
@given(text=TEXTS)
def test_a_pattern_finds_the_same_where_its_signs_stand(module: ModuleType, name: str, text: str) -> None:
    pattern, sign = (getattr(module, one) for one in (name, f"{name}_SIGN"))
    found = [one.span() for one in found_at(sign, pattern, text)]
    assert found == [one.span() for one in pattern.finditer(text)]
    assert replaced_at(sign, pattern, lambda one: "_", text) == pattern.sub("_", text)


@pytest.mark.parametrize("text", WHOLE)
def test_each_notation_is_found_at_its_sign(text: str) -> None:
    pairs = [(getattr(module, f"{name}_SIGN"), getattr(module, name)) for module, name in SIGNED[:3]]
    assert any([*found_at(sign, pattern, text)] for sign, pattern in pairs)


@given(text=TEXTS)
def test_an_address_with_words_behind_it_is_found(text: str) -> None:
    every = re.search(r"://[^\s\[\]()]{1,2000}\[[^\]\n]{0,300}[a-z]", text, re.IGNORECASE)
    assert notations._has_titled_address(text) is (every is not None)


@given(text=TEXTS)
def test_a_mark_is_expected_in_a_line_whatever_its_length(text: str) -> None:
    assert may_hold_mark(text[:49]) is may_hold_mark(text[:49] + " " * 50)
