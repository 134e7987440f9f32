"""Rubric trees with gates, and key points: their rules as properties, and what is missing."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.judges import ScriptedJudge, numbered
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.protocol import score_case
from adjudge.scoring.contract.scorecard import Scorecard
from adjudge.scoring.rubrics.asking import PointsGiven, RubricPoints
from adjudge.scoring.rubrics.keypoints import KeyPoints, PointsMade, PointVerdicts
from adjudge.scoring.rubrics.tree import MAX_DEPTH, Node, Tree, leaves, value_of
from tests.tools import DirectTools

LEAF = st.builds(
    Node, criterion=st.just("met"), critical=st.booleans(), weight=st.sampled_from([0.5, 1.0, 3.0])
)
TREES = st.recursive(
    LEAF,
    lambda below: st.builds(
        Node,
        children=st.lists(below, min_size=1, max_size=3).map(tuple),
        combine=st.sampled_from(["all", "any", "weighted"]),
        critical=st.booleans(),
    ),
    max_leaves=12,
)


def scored(protocol: Any, gold: object, opinions: Any) -> Scorecard:
    raw = {protocol.name: msgspec.Raw(msgspec.json.encode(gold))}
    case = Case(
        task=Task(id="1", prompt="?", gold=raw), report=Report(task_id="1", system="A", text="A report.")
    )
    return asyncio.run(score_case(protocol, case, DirectTools(ScriptedJudge(opinions))))


@given(TREES, st.data())
def test_a_leaf_more_never_lowers_a_tree(tree: Node, data: st.DataObject) -> None:
    size = len(list(leaves(tree)))
    met = data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=size, max_size=size))
    value = value_of(tree, met)
    assert 0.0 <= value <= 1.0
    assert value_of(tree, [1.0] * size) == 1.0 and value_of(tree, [0.0] * size) == 0.0
    for place in range(size):
        assert value_of(tree, [*met[:place], 1.0, *met[place + 1 :]]) >= value


@given(TREES, st.data())
def test_an_unmet_gate_zeroes_its_parent(tree: Node, data: st.DataObject) -> None:
    gated = Node(children=(Node(criterion="gate", critical=True), tree))
    size = len(list(leaves(tree)))
    met = data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=size, max_size=size))
    assert value_of(gated, [0.0, *met]) == 0.0
    if not tree.critical:
        assert value_of(gated, [1.0, *met]) == value_of(tree, met)


def met_unless(*lost: str) -> Any:
    def opinion(question: RubricPoints) -> object:
        return "judge_timeout" if question.criterion in lost else PointsGiven(points=1.0)

    return opinion


def test_a_missing_leaf_leaves_bounds_and_no_value() -> None:
    tree = {"children": [{"criterion": "gate", "critical": True}, {"criterion": "b"}, {"criterion": "c"}]}
    card = scored(Tree(), tree, met_unless("gate"))
    assert card.scores["partial_completion"] is None and card.reason == "judge_timeout"
    assert (card.bounds["partial_completion"].low, card.bounds["partial_completion"].high) == (0.0, 1.0)
    card = scored(Tree(), tree, met_unless("b"))
    assert (card.bounds["partial_completion"].low, card.bounds["partial_completion"].high) == (0.5, 1.0)
    assert card.bounds["success"].low == 0.0


def nested(depth: int) -> dict[str, object]:
    tree: dict[str, object] = {"criterion": "a"}
    for _ in range(depth):
        tree = {"children": [tree]}
    return tree


@pytest.mark.parametrize(
    "tree",
    [
        {"criterion": "a", "children": [{"criterion": "b"}]},
        {"name": "neither"},
        {"criterion": "a", "weight": 0},
        {"criterion": "a", "combine": "most"},
        nested(MAX_DEPTH + 1),
        {"children": [{"criterion": "a"}] * 2_001},
    ],
)
def test_a_tree_that_is_none_is_invalid_gold(tree: object) -> None:
    card = scored(Tree(), tree, met_unless())
    assert card.reason == "gold_invalid" and card.scores["partial_completion"] is None


def test_the_deepest_tree_is_scored() -> None:
    assert scored(Tree(), nested(MAX_DEPTH), met_unless()).scores["success"] == 1.0


def test_key_points_without_verdicts_are_missing_alone() -> None:
    points = [{"point": f"p{n}"} for n in range(100)]

    def opinion(question: PointsMade) -> object:
        if "p0" in question.points:
            return "judge_timeout"
        keys = numbered(len(question.points))
        return PointVerdicts(items=dict.fromkeys(keys, "contradicted"))

    card = scored(KeyPoints(), points, opinion)
    assert (card.scores["support"], card.scores["contradiction"]) == (0.0, 1.0)
    assert (card.bounds["support"].low, card.bounds["support"].high) == (0.0, 0.2)
    assert (card.bounds["contradiction"].low, card.bounds["contradiction"].high) == (0.8, 1.0)
    assert sum(line.reason == "judge_timeout" for line in card.evidence) == 20
    strict = scored(KeyPoints(min_answered=0.9), points, opinion)
    assert strict.scores["support"] is None


@pytest.mark.parametrize("points", [[], [{"point": " "}], [{"point": "a", "weight": 0}], {"point": "a"}])
def test_key_points_that_are_none_are_invalid_gold(points: object) -> None:
    assert scored(KeyPoints(), points, met_unless()).reason == "gold_invalid"
