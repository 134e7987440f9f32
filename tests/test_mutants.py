"""Mutants and the choice of tests to run on them; `benchmarks.mutants` runs them."""

import itertools

import pytest

pytest.importorskip("mutmut", reason="needs the dependency group dev")

from benchmarks.mutant import SCORING, Mutant, drawn
from benchmarks.mutants import Trace
from tests.nightly import quick_or_whole

LINES = (SCORING / "text/relevance.py").read_text(encoding="utf-8").splitlines()
BODY = next(number for number, line in enumerate(LINES, 1) if line.startswith("    return"))


def changed(line: int) -> Mutant:
    text = [*LINES[: line - 1], "    raise AssertionError", *LINES[line:]]
    return Mutant("text.relevance", (line, line), "\n".join(text))


@pytest.mark.nightly
def test_seed_draws_the_same_importable_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one package in the quick form: each module is parsed to know what can be changed."""
    monkeypatch.setattr("benchmarks.mutant.SCORING", quick_or_whole(SCORING / "rubrics", SCORING))
    found = list(itertools.islice(drawn(7), 3))
    assert found == list(itertools.islice(drawn(7), 3)) != list(itertools.islice(drawn(8), 3))
    for mutant in found:
        first, last = mutant.lines
        old, new = mutant.path.read_text(encoding="utf-8").splitlines(), mutant.source.splitlines()
        assert old != new
        assert (old[: first - 1], old[last:]) == (new[: first - 1], new[len(new) - len(old) + last :])
        assert mutant.is_importable()


def test_change_that_cannot_be_imported_is_not_a_mutant() -> None:
    assert not Mutant("text.relevance", (1, 1), "import nothing_of_that_name").is_importable()
    assert not Mutant("text.relevance", (1, 1), "def").is_importable()


def test_mutant_meets_the_tests_that_run_it_shortest_first() -> None:
    running = {str(SCORING / "text/relevance.py"): {BODY: {"slow", "fast"}, 1: {"imports"}}}
    seconds = {"slow": 2.0, "fast": 0.1, "imports": 1.0, "names": 0.5}
    tests = Trace(seconds, running, {"text.relevance": {"names"}})
    assert list(tests.reaching(changed(BODY))) == ["fast", "slow"]
    assert list(tests.reaching(changed(1))) == [
        "fast",
        "names",
        "imports",
        "slow",
    ]  # outside of all functions
    assert tests.reaching(Mutant("deepresearch_bench.race", (1, 1), "")) == {}


def test_diff_is_shown_without_context() -> None:
    assert changed(BODY).diff == f"-{LINES[BODY - 1]}\n+    raise AssertionError"
