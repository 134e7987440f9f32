"""The benchmark book: floors, tables, and the commands that make them. Nothing is timed here."""

import subprocess
import sys

import msgspec
import pytest

from benchmarks import book
from benchmarks.timing import Row

ROWS = [
    Row("fast", 1.0, 3.0, "the other", 3.0, "s", 10, 5),
    Row("memory", 40.0, None, "", None, "MB", 1_000, 1),
]
RESULT = book.Result(
    benchmark="things",
    quick=True,
    date="2026-01-01",
    commit="abc",
    hardware="a machine",
    versions={},
    seconds=2.0,
    rows=ROWS,
)


@pytest.mark.parametrize(("floor", "wrong"), [(2.9, 0), (3.0, 0), (3.1, 1)])
def test_a_ratio_under_its_floor_is_named(floor: float, wrong: int) -> None:
    assert len(book.below([RESULT], {"things": {"fast": floor}})) == wrong


def test_a_row_that_is_gone_does_not_pass() -> None:
    assert book.below([RESULT], {"things": {"slow": 0.1}, "more": {"fast": 0.1}}) == [
        "things: slow: missing, floor 0.1",
        "more: fast: missing, floor 0.1",
    ]


def test_floors_rise_by_themselves_and_fall_only_when_told() -> None:
    assert book.pinned([RESULT], {}, lower=False) == {"things": {"fast": 2.7}}
    assert book.pinned([RESULT], {"things": {"fast": 9.0}}, lower=False) == {"things": {"fast": 9.0}}
    assert book.pinned([RESULT], {"things": {"fast": 9.0}}, lower=True) == {"things": {"fast": 2.7}}


def test_a_result_is_one_json_document_and_a_table() -> None:
    assert msgspec.json.decode(msgspec.json.encode(RESULT), type=book.Result) == RESULT
    text = book.book([RESULT])
    assert "| fast | 1 s | 3 | the other | 3 | 10 |" in text
    assert "| memory | 40 MB |  |  |  | 1,000 |" in text
    assert "`python -m benchmarks.things --quick`: 2 s on a machine; 2026-01-01, commit abc." in text


def test_every_benchmark_says_how_it_is_run() -> None:
    for name in book.NAMES:
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{name}", "--help"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 and "--quick" in done.stdout and "--json" in done.stdout, done.stderr


def test_the_kept_results_reach_their_floors_and_are_what_the_readme_shows() -> None:
    results = book.load()
    assert results and not book.below(results, book.floors())
    assert book.README.read_text(encoding="utf-8") == book.book(results)
