"""FACT's statements that cite nothing, against all pages that the report cites."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.judges import ScriptedJudge, numbered
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.protocol import score_case
from adjudge.scoring.contract.scorecard import Scorecard
from adjudge.scoring.deepresearch_bench.fact import Fact
from adjudge.scoring.deepresearch_bench.fact_questions import Backed, Verdicts
from adjudge.scoring.deepresearch_bench.uncited import uncited_of
from tests.tools import DirectTools, page

A, B = "https://a.example/", "https://b.example/"
TEXT = (
    f"The weir was built in 1911 [a]({A}). The mill closed in the year 1950. Its owner moved to the next town. "
    f"The turbine came from abroad [b]({B}). Nobody knows what became of it. Was it sold for scrap later?"
)
CLAIMS = (
    "The mill closed in the year 1950.",
    "Its owner moved to the next town.",
    "Nobody knows what became of it.",
)
SAID = dict(zip(CLAIMS, ("supported", "unsupported", "unknown"), strict=True))


def opinion(question: Backed) -> Verdicts:
    said = [SAID.get(one, "supported") for one in question.statements]
    return Verdicts(items=dict(zip(numbered(len(said)), said, strict=True)))


async def scored(
    known: dict[str, Any], text: str = TEXT, opinions: Any = opinion, **options: bool
) -> Scorecard:
    case = Case(task=Task(id="1", prompt="?"), report=Report(task_id="1", system="A", text=text))
    tools = DirectTools(ScriptedJudge(opinions), known)
    return await score_case(Fact(extraction="markers", uncited=True, **options), case, tools)


def counts(card: Scorecard) -> tuple[float | None, ...]:
    kinds = ("uncited", "uncited_supported", "uncited_unsupported", "uncited_uncheckable")
    return tuple(card.scores[kind] for kind in kinds)


def test_sentences_without_a_source_are_found() -> None:
    assert tuple(one.rstrip(".") for one in uncited_of(TEXT, ())) == tuple(one.rstrip(".") for one in CLAIMS)


async def test_each_is_supported_unsupported_or_uncheckable() -> None:
    card = await scored({A: page(A, "The mill closed in 1950."), B: page(B, "A turbine came.")})
    assert counts(card) == (3.0, 1.0, 1.0, 1.0) and card.status == "scored"
    noted = [line.outcome.words for line in card.evidence if line.outcome.words.startswith("cites nothing")]
    assert noted == [f"cites nothing: {one}" for one in ("supported", "unsupported", "uncheckable")]


async def test_without_the_option_nothing_more_is_asked() -> None:
    case = Case(task=Task(id="1", prompt="?"), report=Report(task_id="1", system="A", text=TEXT))
    judge = ScriptedJudge(opinion)
    tools = DirectTools(judge, {A: page(A, "The mill."), B: page(B, "A turbine.")})
    card = await score_case(Fact(extraction="markers"), case, tools)
    assert "uncited" not in card.scores and judge.asked == 2


async def test_no_page_to_check_against_is_uncheckable() -> None:
    card = await scored({}, "The mill closed in the year 1950. Its owner moved to the next town.")
    assert counts(card) == (2.0, 0.0, 0.0, 2.0)


async def test_a_judge_that_fails_leaves_bounds() -> None:
    def failing(question: Backed) -> object:
        return "judge_timeout" if set(question.statements) & {*SAID} else opinion(question)

    card = await scored({A: page(A, "The mill."), B: page(B, "A turbine.")}, opinions=failing)
    assert card.scores["uncited_supported"] is None and card.reasons["uncited_supported"] == "judge_timeout"
    assert (card.bounds["uncited_supported"].low, card.bounds["uncited_supported"].high) == (0.0, 3.0)
    assert card.scores["c_acc"] == 1.0 and card.scores["uncited"] == 3.0


async def test_pages_off_leaves_them_missing() -> None:
    card = await scored({}, pages=False)
    assert card.scores["uncited"] == 3.0 and card.reasons["uncited_supported"] == "pages_off"


@given(st.text(max_size=400))
@pytest.mark.parametrize("ending", ["", " [1]", f" [a]({A})"])
def test_any_text_is_read(ending: str, text: str) -> None:
    found = uncited_of(text.encode("utf-8", "replace").decode() + ending, ())
    assert len(set(found)) == len(found)
