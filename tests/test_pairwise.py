"""Preference accuracy: credits, ties, missing scores, and a protocol's scorecards as a reward model."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.judges import ScriptedJudge
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.protocol import score_case
from adjudge.scoring.kernels.comparison.preference_accuracy import (
    Candidate,
    Preference,
    ScoreRow,
    best_of,
    candidate_scores,
    pair_credit,
    preference_accuracy,
    ties_score,
)
from adjudge.scoring.rubrics.asking import PointsGiven
from adjudge.scoring.rubrics.rubrics import Rubrics
from tests.tools import DirectTools

scores_1_to_10 = st.lists(st.integers(1, 10), min_size=1, max_size=4)


def preference(task, chosen, rejected, **fields):
    return Preference(
        task_id=task, chosen=tuple(map(Candidate, chosen)), rejected=tuple(map(Candidate, rejected)), **fields
    )


def scored(task, **scores):
    return {(task, Candidate(name)): value for name, value in scores.items()}


class TestCredit:
    @pytest.mark.parametrize(
        ("chosen", "rejected", "credit"),
        [
            ([3], [1, 2, 0], 1),
            ([3], [3, 2, 0], 1 / 2),
            ([3], [3, 3, 3], 1 / 4),
            ([1], [3, 0, 0], 0),
            ([3, 3], [3], 2 / 3),
            ([3, 1], [2], 1),
        ],
    )
    def test_best_of_counts_like_rewardbench_2(self, chosen, rejected, credit):
        assert best_of(chosen, rejected) == credit

    @given(scores_1_to_10, scores_1_to_10)
    def test_swapping_sides_swaps_the_credit(self, chosen, rejected):
        assert pair_credit(chosen, rejected) == pytest.approx(1 - pair_credit(rejected, chosen))
        assert best_of(chosen, rejected) == pytest.approx(1 - best_of(rejected, chosen))


class TestAccuracy:
    sets = (
        preference("1", ["a"], ["b", "c"], subset="x"),
        preference("2", ["a"], ["b"], subset="y"),
        preference("3", ["a"], ["b"], subset="y"),
    )

    def test_accuracy_is_given_by_subset_and_overall(self):
        scores = scored("1", a=2, b=1, c=2) | scored("2", a=1, b=0) | scored("3", a=0, b=1)
        found = preference_accuracy(self.sets, scores)
        assert list(found) == ["", "x", "y"]
        assert found[""].best_of == pytest.approx((0.5 + 1 + 0) / 3)
        assert found[""].pairwise == pytest.approx((1 + 0.5 + 1 + 0) / 4)
        assert (found["x"].tied, found["y"].tied) == (1, 0)

    def test_missing_score_leaves_its_set_unscored_and_counted(self):
        found = preference_accuracy(self.sets, scored("1", a=2, b=1) | scored("2", a=1, b=0))[""]
        assert (found.best_of, found.n_total, found.n_scored, found.n_unscored) == (1, 3, 1, 2)
        nothing = preference_accuracy(self.sets, {})[""]
        assert (nothing.best_of, nothing.pairwise, nothing.n_unscored) == (None, None, 3)


class TestRows:
    def row(self, value, repeat=0, **fields):
        return ScoreRow(
            protocol="p", metric="m", system="a", task_id="1", value=value, repeat=repeat, **fields
        )

    def test_repeats_are_averaged_and_a_missing_one_is_missing(self):
        key = ("1", Candidate("a"))
        assert candidate_scores([self.row(1), self.row(2, 1)], "p", "m") == {key: 1.5}
        assert candidate_scores([self.row(1), self.row(None, 1)], "p", "m") == {}
        assert candidate_scores([self.row(1)], "p", "other") == {}

    def test_lower_is_better_reverses_the_order(self):
        rows = [self.row(1), msgspec.structs.replace(self.row(2), system="b")]
        scores = candidate_scores(rows, "p", "m", lower_is_better=True)
        assert preference_accuracy([preference("1", ["a"], ["b"])], scores)[""].best_of == 1

    def test_samples_are_separate_candidates(self):
        rows = [self.row(1), self.row(3, sample=1)]
        one = Preference(task_id="1", chosen=(Candidate("a", 1),), rejected=(Candidate("a"),))
        assert preference_accuracy([one], candidate_scores(rows, "p", "m"))[""].best_of == 1


class TestTies:
    def test_ties_score_by_hand(self):
        sets = [
            preference("r", ["a"], ["b"], pair="ref:1"),
            preference("t", ["a", "b"], ["c"], pair="tied:1"),
            preference("u", ["a", "b"], ["c"], pair="tied:2"),
        ]
        scores = scored("r", a=5, b=1) | scored("t", a=9, b=7, c=4) | scored("u", a=3, b=1, c=2)
        found = ties_score(sets, scores)
        assert (found.ref, found.tied, found.preferred, found.preferred_hard) == (1, 0.5, 1, 1)
        assert found.margin == pytest.approx(0.46211715726)  # tanh(3 / 2 - 1)
        assert found.overall == pytest.approx(0.3 + 0.15 + 0.2 + 0.2 + 0.01 * found.margin)
        assert (found.n_pairs, found.n_unscored) == (1, 0)

    def test_ties_score_without_spread_or_gap(self):
        sets = [
            preference("r", ["a"], ["b"], pair="ref:1"),
            preference("t", ["a", "b"], ["c"], pair="tied:1"),
        ]
        flat = scored("r", a=1, b=1) | scored("t", a=1, b=1, c=1)
        assert ties_score(sets, flat).overall == 0
        apart = scored("r", a=1, b=0) | scored("t", a=1, b=1, c=0)
        assert ties_score(sets, apart).overall == pytest.approx(1.01)

    def test_ties_score_without_a_pair_is_missing(self):
        sets = [preference("r", ["a"], ["b"], pair="ref:1"), preference("x", ["a"], ["b"])]
        assert ties_score(sets, scored("r", a=1, b=0)).overall is None
        assert ties_score(sets, {}).n_unscored == 1


async def test_protocol_serves_as_reward_model():
    gold = {"rubrics": msgspec.Raw(json.dumps([{"criterion": "Names a figure.", "points": 1}]).encode())}
    judge = ScriptedJudge(lambda question: PointsGiven(points=float("7" in question.context["report"])))
    rows = []
    for system, text in (("good", "It is 7."), ("bad", "It is warm."), ("worse", "It is 7, or not.")):
        case = Case(
            task=Task(id="1", prompt="?", gold=gold), report=Report(task_id="1", system=system, text=text)
        )
        card = await score_case(Rubrics(), case, DirectTools(judge))
        rows += [
            ScoreRow(protocol=card.protocol, system=system, task_id="1", metric=name, value=value)
            for name, value in card.scores.items()
        ]
    found = preference_accuracy(
        [preference("1", ["good"], ["bad", "worse"])], candidate_scores(rows, "rubrics", "score")
    )
    assert (found[""].best_of, found[""].pairwise) == (0.5, 0.75)
