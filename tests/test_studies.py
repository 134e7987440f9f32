"""Studies over many reports: injection, best of k, efficiency and domains, against theory and by hand."""

import asyncio
from itertools import combinations
from pathlib import Path

import pytest
from adjudge.engine.formats.drmi import read
from adjudge.judges import LexicalJudge
from adjudge.scoring.case import Report, ReportUsage
from adjudge.scoring.drmi import DrMi
from adjudge.scoring.protocol import score_case
from adjudge.scoring.studies import (
    Score,
    best_of_samples,
    by_domain,
    efficiency,
    plan_injection,
    scores_of,
    written_tokens,
)
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.tools import DirectTools

EXAMPLE = Path(__file__).parent.parent / "examples" / "drmi"


def one_each(system: str, values: list[float | None]) -> list[Score]:
    return [Score(system, f"t{place}", 0, value) for place, value in enumerate(values)]


def test_injection_against_scipy() -> None:
    plain, informed = [0.1, 0.4, 0.3, 0.6, 0.2], [0.5, 0.4, 0.6, 0.9, 0.1]
    (found,) = plan_injection(one_each("a", plain) + one_each("a+", informed), {"a": "a+"})  # type: ignore[arg-type]
    wanted = stats.ttest_rel(informed, plain)
    interval = wanted.confidence_interval()
    assert (found.gain, found.p) == pytest.approx((0.18, wanted.pvalue))
    assert (found.low, found.high) == pytest.approx(tuple(interval))
    assert (found.n_scored, found.n_total) == (5, 5)
    assert (found.system, found.informed) == ("a", "a+")


def test_injection_pairs_only_what_both_have() -> None:
    scores = one_each("a", [0.1, None, 0.3]) + one_each("a+", [0.2, 0.9, 0.4])
    (found, other) = plan_injection(scores, {"a": "a+", "b": "b+"})
    assert (found.gain, found.n_scored, found.n_total) == (pytest.approx(0.1), 2, 3)
    assert (other.gain, other.n_scored) == (None, 0)


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=6), st.integers(1, 6))
def test_best_of_k_against_all_choices(values: list[float], k: int) -> None:
    scores = [Score("a", "t", sample, value) for sample, value in enumerate(values)]
    (found,) = best_of_samples(scores, k)
    if k > len(values):
        assert (found.best, found.unbiased, found.n_scored) == (None, None, 0)
        return
    chosen = [max(choice) for choice in combinations(values, k)]
    assert found.unbiased == pytest.approx(sum(chosen) / len(chosen))
    assert found.best == max(values[:k])


def test_pass_at_k_is_best_of_k_of_what_reaches_the_threshold() -> None:
    scores = [Score("a", "t", sample, value) for sample, value in enumerate([0.2, 0.7, 0.9, 0.1])]
    (found,) = best_of_samples(scores, 2, threshold=0.7)
    assert found.unbiased == pytest.approx(1 - 1 / 6)
    assert found.best == 1


def test_repeats_are_averaged_and_missing_samples_are_counted() -> None:
    scores = [
        Score("a", "t", 0, 0.0),
        Score("a", "t", 0, 1.0),
        Score("a", "t", 1, None),
        Score("a", "u", 0, 1.0),
    ]
    (first,) = best_of_samples(scores, 1)
    assert (first.best, first.n_scored, first.n_total) == (0.75, 2, 2)
    (second,) = best_of_samples(scores, 2)
    assert (second.best, second.n_scored, second.n_total) == (None, 0, 2)


def test_efficiency_marks_the_frontier() -> None:
    scores = one_each("fast", [0.5, 0.5]) + one_each("slow", [0.9, None]) + one_each("worse", [0.4, 0.4])
    seconds = {"fast": 10.0, "slow": 60.0, "worse": 20.0}
    costs = {score[:3]: seconds[score.system] for score in scores}
    found = {point.system: point for point in efficiency([*scores, Score("bare", "t0", 0, 1.0)], costs)}
    assert [name for name, point in found.items() if point.on_frontier] == ["fast", "slow"]
    assert (found["fast"].cost, found["slow"].cost) == (10.0, 60.0)
    assert (found["slow"].score, found["slow"].n_scored, found["slow"].n_total) == (0.9, 1, 2)
    assert (found["bare"].score, found["bare"].cost, found["bare"].n_total) == (None, None, 1)


def test_tokens_written_need_both_counts() -> None:
    def report(usage: ReportUsage | None) -> Report:
        return Report(task_id="1", system="s", text="t", usage=usage)

    assert written_tokens(report(ReportUsage(total_tokens=10, input_tokens=4))) == 6
    assert written_tokens(report(ReportUsage(total_tokens=10))) is None
    assert written_tokens(report(None)) is None


def test_domains_have_their_own_intervals() -> None:
    values = [float(place % 2) for place in range(40)]
    domains = {f"t{place}": "even" if place < 38 else "single" if place == 38 else "" for place in range(40)}
    del domains["t39"]
    found = {point.domain: point for point in by_domain(one_each("a", values), domains)}  # type: ignore[arg-type]
    assert set(found) == {"even", "single"}
    even = found["even"]
    assert even.low is not None
    assert even.high is not None
    assert (even.mean, even.n_scored) == (0.5, 38)
    assert 0.3 < even.low < 0.5 < even.high < 0.7
    assert (found["single"].mean, found["single"].low, found["single"].n_scored) == (0.0, None, 1)


def test_the_example_shows_what_the_gold_plan_is_worth() -> None:
    dataset = read(EXAMPLE, sorted(EXAMPLE.glob("reports/*.jsonl")))
    cases = list(dataset.cases())
    cards = [asyncio.run(score_case(DrMi(), case, DirectTools(LexicalJudge()))) for case in cases]
    scores = scores_of(cards, "reasoning_accuracy")
    assert len(scores) == len(cases)
    (found,) = plan_injection(scores, {"osprey": "osprey (isolated)"})
    assert found.gain is not None
    assert (found.n_scored, found.n_total) == (2, 2)
    seconds = {case.report.identity: case.report.seconds for case in cases}
    assert {point.system for point in efficiency(scores, seconds) if point.on_frontier} >= {"plover"}
    assert {
        point.domain for point in by_domain(scores, {task.id: task.domain for task in dataset.tasks.values()})
    } == {
        "Environment",
        "Materials",
    }
