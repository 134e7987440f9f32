"""Names of systems in small places: short, and never two that look equal."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.tables.table import labels, visible

VERSIONS = [
    f"openai/gpt-5-deep-research-2026-{month:02d}-{size}" for month in (1, 2) for size in ("high", "low")
]


def test_names_lose_what_all_begin_with_and_keep_their_ends() -> None:
    found = labels(VERSIONS, 16)
    assert found[VERSIONS[0]] == "…01-high" and len({*found.values()}) == len(VERSIONS)
    mixed = labels([*VERSIONS, "atlas"], 20)
    assert all("…" in mixed[name] and mixed[name].endswith(name[-4:]) for name in VERSIONS)
    assert mixed["atlas"] == "atlas" and labels(VERSIONS, 100) == {name: name for name in VERSIONS}


@pytest.mark.parametrize(
    "names",
    [("a", "a\u200b"), ("a", "a "), ("a b", "a  b"), ("A", "Ａ"), ("a", "а"), ("x" * 5_000, "x" * 5_001)],
)
def test_names_that_look_equal_are_told_apart(names: tuple[str, str]) -> None:
    first, second = (unicodedata.normalize("NFKC", label) for label in labels(names, 16).values())
    assert first != second and len(first) < 700


@given(st.lists(st.text(max_size=60), unique=True, max_size=12), st.integers(1, 40))
def test_labels_differ_for_any_names(names: list[str], letters: int) -> None:
    found = labels(names, letters)
    assert [*found] == names and len({*found.values()}) == len(names)
    assert not any(unicodedata.category(character) == "Cc" for label in found.values() for character in label)


def test_visible_name_is_one_short_line() -> None:
    assert visible("a\nb\u202ec") == "a‹A›b‹202E›c"
    assert visible("y" * 100_000).endswith("… (100,000 characters)") and len(visible("y" * 100_000)) < 350


@pytest.mark.parametrize("link", ["javascript:alert(1)", "example.org", "http://", "https://[x"])
def test_board_refuses_a_link_that_leads_nowhere(link: str) -> None:
    with pytest.raises(ConfigError, match=r"board: .*begins with http"):
        RunConfig.of({"board": {"link": link}})
    board = RunConfig.of(
        {"board": {"title": "T", "date": "2026-11-23", "link": "https://example.org/x"}}
    ).board
    assert (board.title, str(board.date)) == ("T", "2026-11-23")
