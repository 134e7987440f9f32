"""DR Tulu's rubric reward: what its training code made of drawn scores and what `rler` does, and a rollout's reward."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.engine.rewards.model import RewardModel
from adjudge.engine.rewards.reward import own_gold
from adjudge.judges import ScriptedJudge
from adjudge.scoring.contract.case import Case, GoldError, Report, Task
from adjudge.scoring.contract.protocol import score_case
from adjudge.scoring.contract.scorecard import Scorecard
from adjudge.scoring.rubrics.asking import PointsGiven, RubricPoints
from adjudge.scoring.rubrics.rubrics import Rler
from tests.nightly import quick_or_whole
from tests.recorded import digest, recorded
from tests.reference_graders import REWARDS, WEIGHTS, drawn_failures, drawn_rewards
from tests.tools import DirectTools


def case(truth: dict[str, Any], encoded: bool = False) -> Case:
    """The case of a rollout that carries `truth`, as an object or as JSON text."""
    gold = own_gold(json.dumps(truth) if encoded else truth, None, ["rler"])
    task = Task(id="1", prompt=truth["query"], gold=gold)
    return Case(task=task, report=Report(task_id="1", system="policy", text="Some facts."))


def ours(truth: dict[str, Any], scores: dict[str, Any], encoded: bool = False) -> Scorecard:
    """The scorecard before a judge that gives each rubric 0, 1 or 2, or fails."""

    def opinion(question: RubricPoints) -> Any:
        score = scores[question.criterion]
        return (
            score if isinstance(score, str) else PointsGiven(points=sorted(question.values, key=abs)[score])
        )

    return asyncio.run(score_case(Rler(), case(truth, encoded), DirectTools(ScriptedJudge(opinion))))


def test_reward_equals_the_training_code() -> None:
    rows = drawn_rewards()
    expected = recorded("rler").figures
    assert expected["inputs"] == digest(rows)
    for number, ((truth, scores), rewards) in enumerate(zip(rows, expected["rewards"], strict=True)):
        mine = ours(truth, scores, encoded=bool(number % 2))
        assert [mine.scores[name] for name in REWARDS] == pytest.approx(rewards, abs=1e-9), (truth, scores)


def test_failed_judge_gives_no_reward_where_the_code_gives_zero() -> None:
    rows = drawn_failures()
    expected = recorded("rler_failed").figures
    assert expected["inputs"] == digest(rows)
    for (truth, scores), rewards in zip(rows, expected["rewards"], strict=True):
        mine = ours(truth, scores)
        assert mine.scores["rubric_reward"] is None and mine.reasons["rubric_reward"] == "judge_timeout"
        bounds = mine.bounds["rubric_reward"]
        assert bounds.low is not None and bounds.high is not None
        assert bounds.low - 1e-9 <= rewards[0] <= bounds.high + 1e-9


def test_parts_hold_each_rubrics_own_score() -> None:
    truth = {
        "query": "?",
        "rubrics": [
            {"description": "a", "title": "A", "weight": 3},
            {"description": "b", "title": "B", "weight": -2},
            {"description": "c", "title": "C", "weight": 0.5},
        ],
        "rubrics_types": ["persistent", "adaptive", "adaptive"],
    }
    card = ours(truth, {"a": 1, "b": 2, "c": "judge_timeout"})
    assert [(line.id, line.value, line.reason) for line in card.evidence] == [
        ("A", 0.5, ""), ("B", 1.0, ""), ("C", None, "judge_timeout"),
    ]  # fmt: skip


def test_rubrics_without_a_kind_are_persistent() -> None:
    truth = {"query": "?", "rubrics": [{"description": "a", "title": "A", "weight": 4}]}
    card = ours(truth, {"a": 1})
    assert card.scores == dict(zip(REWARDS, (0.5, 0.5, 0.0), strict=True))


@pytest.mark.parametrize(
    "rubrics", [[], "[" * 9_999, [{"description": "a", "weight": "x"}], 3, [{"weight": 1}]]
)
def test_rubrics_that_cannot_be_read_are_invalid_gold(rubrics: Any) -> None:
    card = ours({"query": "?", "rubrics": rubrics}, {})
    assert set(card.reasons.values()) == {"gold_invalid"}


def test_number_of_rubrics_is_said_where_it_is_wrong() -> None:
    with pytest.raises(GoldError, match=r"^task 1: 0 rubrics, 1 to \d"):
        Rler().criteria(case({"query": "?", "rubrics": []}))


@settings(max_examples=quick_or_whole(20, 60), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(WEIGHTS), st.integers(0, 2)), min_size=1, max_size=8))
def test_rubrics_of_faults_alone_give_at_most_zero(rows: list[tuple[float, int]]) -> None:
    truth = {
        "query": "?",
        "rubrics": [{"description": f"r{n}", "weight": -abs(w)} for n, (w, _) in enumerate(rows)],
    }
    card = ours(truth, {f"r{n}": score for n, (_, score) in enumerate(rows)})
    assert card.scores["rubric_reward"] == pytest.approx(-sum(abs(w) * score / 2 for w, score in rows))


@pytest.mark.parametrize(
    ("protocol", "gold", "reward"),
    [
        ("rler", {"ground_truth": True}, 0.75),
        (
            "healthbench",
            {"rubrics": [{"criterion": "The Lind is a river.", "points": 3, "tags": ["axis:a"]}]},
            1.0,
        ),
        ("draco", {"rubrics": [{"requirement": "The Lind is a river.", "weight": 3, "id": "a"}]}, 1.0),
        (
            "researchrubrics",
            {"rubrics": [{"criterion": "The Lind is a river.", "weight": 3, "axis": "A"}]},
            1.0,
        ),
        ("drb2", {"gold": {"drb2": {"rubric": {"info_recall": ["The Lind is a river.", "Volcanoes"]}}}}, 0.5),
    ],
)
def test_rollout_is_rewarded_by_rubrics_of_its_own(
    protocol: str, gold: dict[str, Any], reward: float, tmp_path: Path
) -> None:
    settings = {
        "judge": "lexical",
        "fetch": {"mode": "off"},
        "store": str(tmp_path / "s"),
        "protocols": [protocol],
    }
    rubrics = [
        {"description": "The Lind is a river.", "title": "Lind", "weight": 3},
        {"description": "Volcanoes erupted.", "title": "Fire", "weight": 1},
    ]
    if "ground_truth" in gold:
        gold = {
            "gold": json.dumps(
                {"query": "?", "rubrics": rubrics, "rubrics_types": ["persistent", "adaptive"]}
            )
        }
    with RewardModel(settings) as model:
        found, none = model.score_sync(
            [
                {"prompt": "?", "text": "The Lind is a river.", **gold},
                {"prompt": "?", "text": "The Lind is a river."},
            ]
        )
    assert found.value == reward and none.reason == "gold_missing"
    assert {part.protocol for part in found.parts} == {protocol}
