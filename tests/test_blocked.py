"""DeepResearch Bench II's blocked source: what of a report rests on it, by rule and by the judge."""

from typing import Any

import msgspec
import pytest

from adjudge.judges import ScriptedJudge, numbered
from adjudge.scoring.contract.case import Case, Citation, Report, Task
from adjudge.scoring.contract.protocol import score_case
from adjudge.scoring.contract.scorecard import Bounds, Scorecard
from adjudge.scoring.rubrics.asking import Explained, ExplainedItems, ExplainedLevels
from adjudge.scoring.rubrics.drb2 import BlockedItems, DeepResearchBench2
from adjudge.scoring.rubrics.links import Blocked, Traces, traces
from tests.tools import DirectTools

BLOCKED = Blocked(
    title="Lagoons and their long accounts",
    authors=("Ida Marsh", "Jon Weir"),
    urls=("https://papers.example/lagoons",),
)
PLAIN = "The wall costs 900 million. The range is nine metres."


@pytest.mark.parametrize(
    ("text", "cites"),
    [
        (
            "The wall costs 900 million [study](https://papers.example/lagoons). The range is nine metres.",
            True,
        ),
        ("The wall costs 900 million [study](http://www.papers.example/lagoons/?x=1). More.", True),
        (
            "The wall costs 900 million [1]. More.\n\n## References\n\n[1] A study https://papers.example/lagoons",
            True,
        ),
        (
            "The wall costs 900 million [1]. More.\n\n## References\n\n"
            "[1] Lagoons and their long accounts https://mirror.example/9",
            True,
        ),
        ("As “Lagoons and Their Long Accounts” has it, the wall costs 900 million.", True),
        ("The wall costs 900 million [x](https://papers.example/lagoons-2). More.", False),
        ("The wall costs 900 million [x](http://papers.example:8080/lagoons). More.", True),
        ("The wall costs 900 million [x](http://papers.example). More.", False),
        ("The wall costs 900 million, says Marsh. More.", False),
        (PLAIN, False),
    ],
)
def test_sentence_that_cites_the_source_is_found(text: str, cites: bool) -> None:
    found = traces(text, (), BLOCKED)
    assert found.hold("the wall costs 900 million") is cites
    assert not found.hold("The range is nine metres.")


@pytest.mark.parametrize(
    ("text", "blocked", "shown"),
    [
        (PLAIN, BLOCKED, False),
        ("Marsh said so.", BLOCKED, True),
        ("The marshes are wet.", BLOCKED, False),
        ("张伟的研究很好。", Blocked(authors="张伟"), True),
        ("Accounts by Lagoons Ltd.", Blocked(title="Lagoons"), True),
        (PLAIN, Blocked(), False),
        (PLAIN, Blocked(title="", authors=("",), urls=("", " ")), False),
        ("See https://papers.example/lagoons for all.", BLOCKED, True),
    ],
)
def test_report_without_a_trace_is_told_apart(text: str, blocked: Blocked, shown: bool) -> None:
    assert traces(text, (), blocked).any is shown


def test_citation_apart_from_the_text_is_a_trace() -> None:
    handed = (Citation(url="https://papers.example/lagoons", marker="[1]"),)
    found = traces("The wall costs 900 million [1].", handed, BLOCKED)
    assert found.any and found.hold("The wall costs 900 million")


def test_short_quotation_proves_nothing() -> None:
    found = traces("The wall costs 900 million [s](https://papers.example/lagoons).", (), BLOCKED)
    assert (
        not found.hold("The wall") and not found.hold("") and not Traces().hold("The wall costs 900 million")
    )


def case(text: str) -> Case:
    rubric = {"info_recall": ["cost", "range", "share"], "presentation": ["table"]}
    gold = msgspec.json.encode({"rubric": rubric, "blocked": BLOCKED})
    task = Task(id="1", prompt="Do lagoons pay?", gold={"drb2": msgspec.Raw(gold)})
    return Case(task=task, report=Report(task_id="1", system="heron", text=text))


async def scored(text: str, levels: list[float], quotes: list[str]) -> tuple[Scorecard, list[Any]]:
    def opinion(question: Any) -> Any:
        items = [
            Explained(analysis="because", evidence=quote, level=level)
            for quote, level in zip(quotes, levels, strict=True)
        ]
        return ExplainedLevels(items=dict(zip(numbered(4), items, strict=True)))

    tools = DirectTools(ScriptedJudge(opinion))
    return await score_case(DeepResearchBench2(), case(text), tools), tools.questions


async def test_untouched_report_is_not_asked_about_the_source() -> None:
    card, (question,) = await scored(PLAIN, [1, 1, 0, 1], ["", "", "", ""])
    assert type(question) is ExplainedItems and question.levels == (0, 1)
    assert card.scores["total"] == 0.75 and card.scores["blocked_rate"] == 0


async def test_quoted_sentence_that_cites_the_source_is_blocked() -> None:
    text = "The wall costs 900 million [s](https://papers.example/lagoons). The range is nine metres."
    card, (question,) = await scored(
        text, [1, 1, -1, 0], ["The wall costs 900 million", "The range is nine metres.", "", ""]
    )
    assert type(question) is BlockedItems and "papers.example" in question.blocked
    assert [line.value for line in card.evidence] == [-1, 1, -1, 0]
    assert card.evidence[0].outcome.words == "met, but rests on a blocked source"
    assert (card.evidence[0].quote, card.evidence[0].note) == ("The wall costs 900 million", "because")
    assert card.scores == {
        "info_recall": pytest.approx(1 / 3), "presentation": 0, "total": 0.25, "blocked_rate": 0.5,
    }  # fmt: skip


async def test_unanswered_items_leave_bounds_and_no_value() -> None:
    for text, high in ((PLAIN, 0.0), (f"{PLAIN} Marsh said so.", 1.0)):
        tools = DirectTools(ScriptedJudge(lambda question: "judge_timeout"))
        card = await score_case(DeepResearchBench2(), case(text), tools)
        assert card.scores["total"] is None and card.bounds["total"] == Bounds(0, 1, 0, 4)
        assert card.bounds["blocked_rate"].high == high


async def test_empty_report_gets_the_minimum_everywhere() -> None:
    card = await score_case(DeepResearchBench2(), case(" "), DirectTools(ScriptedJudge([])))
    assert card.scores == {"info_recall": 0, "presentation": 0, "total": 0, "blocked_rate": 1}
