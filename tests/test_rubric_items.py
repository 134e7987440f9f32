"""Several criteria a question: batches, levels, quotations, and what is missing when one question has no answer."""

import json
from typing import Any

import msgspec
import pytest

from adjudge.judges import Context, LexicalJudge, ScriptedJudge, numbered
from adjudge.judges.schema import UnparseableReply, decode, max_tokens, schema_of
from adjudge.scoring.contract.case import Case, GoldError, Report, Task
from adjudge.scoring.contract.protocol import score_case
from adjudge.scoring.contract.scorecard import Bounds, Scorecard
from adjudge.scoring.rubrics.asking import (
    Explained,
    ExplainedItems,
    ExplainedLevels,
    ItemLevels,
    Items,
    Level,
    PointsGiven,
    RubricItems,
    RubricPoints,
)
from adjudge.scoring.rubrics.rubrics import Rubrics
from tests.tools import DirectTools

TEXT = "The dose is 5 mg/kg. Three drugs were compared: A, B and C."


def case(criteria: list[dict[str, Any]]) -> Case:
    gold = {"rubrics": msgspec.Raw(json.dumps(criteria).encode())}
    task = Task(id="1", prompt="Compare the drugs.", gold=gold)
    return Case(task=task, report=Report(task_id="1", system="A", text=TEXT))


def mixed() -> list[dict[str, Any]]:
    """Sixty binary criteria of both signs, three in steps, and one whose points lie on both sides of 0."""
    binary = [{"criterion": f"b{i}", "points": -2 if i % 10 == 9 else 1 + i % 3} for i in range(60)]
    steps = [{"criterion": f"s{i}", "values": [0, 1, 3]} for i in range(3)]
    return [*binary[:30], *steps, *binary[30:], {"criterion": "both", "values": [-1, 0, 2]}]


def opinion(question: Any) -> Any:
    """What ends in an even digit applies in full, what ends in 1 in part, where there is a part; "both" by half."""
    if isinstance(question, RubricPoints):
        return PointsGiven(points=question.values[1])
    top = question.levels[-1]
    found = [
        top if item[-1] in "02468" else 1.0 if item[-1] == "1" and top == 2 else 0.0
        for item in question.items
    ]
    if isinstance(question, ExplainedItems):
        items = [
            Explained(analysis=f"why {i}", evidence="The dose is 5 mg/kg.", level=x)
            for i, x in enumerate(found)
        ]
        return ExplainedLevels(items=dict(zip(numbered(len(items)), items, strict=True)))
    return ItemLevels(items=dict(zip(numbered(len(found)), (Level(level=x) for x in found), strict=True)))


async def scored(protocol: Rubrics, judge: Any = opinion) -> tuple[Scorecard, list[Any]]:
    tools = DirectTools(ScriptedJudge(judge))
    return await score_case(protocol, case(mixed()), tools), tools.questions


async def test_items_share_questions_by_their_levels() -> None:
    card, questions = await scored(Rubrics(items_a_question=50))
    assert [(type(one).__name__, getattr(one, "count", 0)) for one in questions] == [
        ("RubricPoints", 0), ("RubricItems", 50), ("RubricItems", 10), ("RubricItems", 3),
    ]  # fmt: skip
    assert len({one.context.digest for one in questions}) == 1
    assert [line.what for line in card.evidence] == [one["criterion"] for one in mixed()]
    outcomes = {line.what: line.outcome.words for line in card.evidence}
    assert (outcomes["b2"], outcomes["b19"], outcomes["s0"], outcomes["s1"], outcomes["both"]) == (
        "3 of 3", "0 of 0", "3 of 3", "1 of 3", "0 of 2",
    )  # fmt: skip


async def test_score_does_not_depend_on_the_batch_size() -> None:
    cards = [(await scored(Rubrics(items_a_question=size)))[0] for size in (2, 7, 50)]
    assert cards[0].scores == cards[1].scores == cards[2].scores
    met = sum(one["points"] for one in mixed()[:30] + mixed()[33:63] if one["criterion"][-1] in "02468")
    full = sum(max(one["points"], 0) for one in mixed()[:30] + mixed()[33:63]) + 3 * 3 + 2
    assert cards[0].scores["score"] == pytest.approx((met + 3 + 1 + 3) / full)


async def test_unanswered_question_takes_only_its_own_items() -> None:
    def judge(question: Any) -> Any:
        return "judge_timeout" if getattr(question, "count", 0) == 10 else opinion(question)

    card, _ = await scored(Rubrics(items_a_question=50), judge)
    assert card.scores["score"] is not None
    assert (card.bounds["score"].answered, card.bounds["score"].parts) == (54, 64)
    assert [line.what for line in card.evidence if line.reason] == [f"b{i}" for i in range(50, 60)]


async def test_evidence_holds_reason_and_quotation_of_each_item() -> None:
    card, questions = await scored(Rubrics(items_a_question=50, evidence=True))
    assert {type(one) for one in questions} == {RubricPoints, ExplainedItems}
    lines = [line for line in card.evidence if line.what != "both"]
    assert {line.quote for line in lines} == {"The dose is 5 mg/kg."}
    assert [line.note for line in lines[:3]] == ["why 0", "why 1", "why 2"]


async def test_one_item_a_question_asks_what_it_always_asked() -> None:
    tools = DirectTools(LexicalJudge())
    await score_case(Rubrics(), case(mixed()[:2]), tools)
    first = tools.questions[0]
    assert (
        first.identity()
        == RubricPoints(
            context=first.context, task="Compare the drugs.", criterion="b0", values=(0.0, 1.0)
        ).identity()
    )
    assert (type(first).__name__, first.version, first.prompt) == ("RubricPoints", 1, "rubric_points")


async def test_lexical_judge_quotes_the_sentence_that_it_means() -> None:
    criteria = [
        {"criterion": "Three drugs were compared", "points": 1},
        {"criterion": "Volcanoes", "points": 1},
    ]
    tools = DirectTools(LexicalJudge())
    card = await score_case(Rubrics(items_a_question=2, evidence=True), case(criteria), tools)
    assert [(line.value, line.quote) for line in card.evidence] == [
        (1.0, "Three drugs were compared: A, B and C."), (0.0, ""),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [RubricItems, ExplainedItems])
def test_fifty_items_share_one_budget_of_text(kind: type[Items[Any]]) -> None:
    def budget(count: int) -> int:
        items = tuple(f"item {i}" for i in range(count))
        question = kind(context=Context.of(report=TEXT), task="t", items=items, levels=(0.0, 1.0))
        return max_tokens(schema_of(question, True))

    assert budget(50) < budget(1) + 50 * 60


def test_reply_outside_the_levels_is_unparseable() -> None:
    question = RubricItems(context=Context.of(report=TEXT), task="t", items=("a", "b"), levels=(0.0, 1.0))
    for level in ("2", "0.5", '"1"', "true", "null", "1e400"):
        with pytest.raises(UnparseableReply):
            decode(
                question,
                f'{{"analysis": "", "items": {{"c01": {{"level": 1}}, "c02": {{"level": {level}}}}}}}',
            )


@pytest.mark.parametrize(
    ("criteria", "why"),
    [
        ([{"criterion": f"c{i}", "points": 1} for i in range(10_000)], "at most 2,000"),
        ([{"criterion": "c", "points": 1, "tags": [f"t{i}"]} for i in range(201)], "201 different tags"),
        (
            [{"criterion": "c", "points": -1}, {"criterion": "d", "points": -2}],
            "no criterion has positive points",
        ),
    ],
)
async def test_gold_that_makes_no_score_is_invalid(criteria: list[dict[str, Any]], why: str) -> None:
    with pytest.raises(GoldError, match=why) as raised:
        Rubrics().criteria(case(criteria))
    assert raised.value.reason == "gold_invalid"


async def test_equal_criteria_count_as_often_as_they_stand() -> None:
    criteria = [{"criterion": "b0", "points": 1}] * 3 + [{"criterion": "b1", "points": 1}]
    card = await score_case(Rubrics(items_a_question=50), case(criteria), DirectTools(ScriptedJudge(opinion)))
    assert (card.scores["score"], card.bounds["score"]) == (0.75, Bounds(0.75, 0.75, 4, 4))
