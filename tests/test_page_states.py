"""docs/failures.md says what every number does with each state of a page and each failure: held against the code."""

from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec
import pytest

from adjudge.engine.config.reward import Formula, RewardConfig
from adjudge.engine.runs.record import TaskRecord
from adjudge.fetchers.page import PageReason
from adjudge.fetchers.process import Extraction
from adjudge.fetchers.signs import REASONS
from adjudge.judges import Question, ScriptedJudge, numbered
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.protocol import score_case
from adjudge.scoring.contract.reasons import CAUSES
from adjudge.scoring.contract.scorecard import Scorecard
from adjudge.scoring.deepresearch_bench.fact import Fact
from adjudge.scoring.deepresearch_bench.fact_questions import Backed, Repeated, Repeats, Verdicts
from adjudge.scoring.rubrics.asking import PointsGiven
from adjudge.scoring.rubrics.rubrics import Rubrics
from tests.ranked import board_of
from tests.tools import DirectTools, page
from tests.worlds import CRITERIA

HEAD = "| state | signs | reason | cause | `c_acc` | lowest `c_acc` | `c_acc_code` | `e_cit` | coverage | reward |"
(E_CIT,) = (metric for metric in Fact().metrics if metric.name == "e_cit")
A, B = "https://a.example/", "https://b.example/"
TEXT = f"Trams are cheap to ride [1]. Buses are loud at night [2].\n\n## References\n[1] One. {A}\n[2] Two. {B}\n"


class State(NamedTuple):
    name: str
    signs: str
    reason: str
    cause: str
    c_acc: str
    lowest: str
    code: str
    e_cit: str
    coverage: str
    reward: str


def states() -> list[State]:
    docs = (Path(__file__).parent.parent / "docs/failures.md").read_text(encoding="utf-8")
    lines = docs.partition(HEAD)[2].partition("\n\n")[0].splitlines()[2:]
    return [
        State(*(cell.strip(" `") for cell in line.strip("| ").split(" | "))) for line in lines if "`" in line
    ]


UNREAD = [state for state in states() if state.reason]


def test_every_reason_of_a_page_is_in_the_table() -> None:
    assert {state.reason: state.cause for state in UNREAD} == {
        reason: CAUSES[reason] for reason in get_args(PageReason)
    }


def test_states_are_those_that_are_told_by_signs() -> None:
    told = {state for state in get_args(Extraction.__annotations__["state"]) if state != "content"}
    assert set(REASONS) == told
    assert {(state.name, state.reason) for state in UNREAD} >= set(REASONS.items())


def supports(question: Question[Any]) -> Any:
    if isinstance(question, Backed):
        return Verdicts(items=dict.fromkeys(numbered(len(question.statements)), "supported"))
    return (
        question.lexical()
        if not isinstance(question, Repeats)
        else Repeated(items=dict.fromkeys(numbered(question.count), "new"))
    )


@pytest.mark.parametrize("state", UNREAD, ids=[state.reason for state in UNREAD])
async def test_figures_do_what_the_table_says(state: State) -> None:
    protocol = Fact(extraction="markers")
    case = Case(task=Task(id="1", prompt="Trams?"), report=Report(task_id="1", system="s", text=TEXT))
    failing = page(B, reason=state.reason)
    card = await score_case(
        protocol, case, DirectTools(ScriptedJudge(supports), {A: page(A, "Words."), B: failing})
    )
    means = {0.5: "unsupported", 1.0: "missing"}
    assert means[card.scores["c_acc"] or 0] == state.c_acc
    assert card.bounds["c_acc"].low is not None and means[card.bounds["c_acc"].low] == state.lowest
    assert (card.scores["judged"], state.code) == (1, "left out")
    assert {1.0: "nothing", None: "missing"}[card.scores["e_cit"]] == state.e_cit
    assert card.bounds_of(E_CIT).low == 1
    answered = {2: "counts", 1: "lacks it"}
    assert card.bounds["c_acc"].parts == 2 and answered[card.bounds["c_acc"].answered] == state.coverage
    value = Formula(RewardConfig(), [protocol]).value({protocol.name: card}, {}).value
    assert (value is None) == (state.reward == "none")


FAILED = "| what failed | cause | as published | the number that ranks | coverage | reward |"
LOST = {"at most a fifth of the parts": 2, "more of the parts": 3, "all parts": 10}
"""How many of ten criteria the judge does not answer for."""
ASKED = [one["criterion"] for one in CRITERIA]
RUBRIC_TASK = Task(id="1", prompt="?", gold={"rubrics": msgspec.Raw(msgspec.json.encode(CRITERIA))})


class Fails(NamedTuple):
    what: str
    cause: str
    published: str
    ranks: str
    coverage: str
    reward: str


def failures() -> list[Fails]:
    docs = (Path(__file__).parent.parent / "docs/failures.md").read_text(encoding="utf-8")
    lines = docs.partition(FAILED)[2].partition("\n\n")[0].splitlines()[2:]
    return [Fails(*(cell.strip() for cell in line.strip().strip("|").split("|"))) for line in lines]


async def judged(text: str = "Words.", lost: int = 0, task: Task = RUBRIC_TASK) -> Scorecard:
    """A report under rubrics every other one of which it meets, before a judge that says nothing on the last."""

    def opinion(question: Any) -> Any:
        place = ASKED.index(question.criterion)
        if place >= len(ASKED) - lost:
            return "judge_timeout"
        return PointsGiven(points=max(question.values) if place % 2 else 0.0)

    case = Case(task=task, report=Report(task_id="1", system="s", text=text))
    return await score_case(Rubrics(), case, DirectTools(ScriptedJudge(opinion)))


@pytest.mark.parametrize("fails", failures(), ids=[one.what for one in failures()])
async def test_numbers_do_what_the_table_says(fails: Fails) -> None:
    what, _, inside = fails.what.partition(", for ")
    task = msgspec.structs.replace(RUBRIC_TASK, gold={}) if "gold" in what else RUBRIC_TASK
    card = await judged("" if "empty" in what else "Words.", LOST[inside] if inside else 0, task)
    case = Case(task=RUBRIC_TASK, report=Report(task_id="1", system="s", text=""))
    metrics = Rubrics().metrics_of(case)
    head = metrics[0]
    least = (await judged("")).scores[head.name]
    whole = (await judged()).scores[head.name]
    card_or_none = None if "not submitted" in what else card
    board = board_of(
        metrics, {"whole": await judged(task=task), "s": card_or_none}, TaskRecord.of(task, [Rubrics()])
    )
    (found,) = (one for one in board.metrics if one.headline)
    rows = {row.system: row for row in found.standings}

    def word(value: float | None, lowest: str, between: str) -> str:
        if value is None:
            return "left out"
        return {whole: "its value", least: lowest}.get(value, between)

    causes = {CAUSES[reason] for reason in (card.reason, *(one.reason for one in card.evidence)) if reason}  # type: ignore[index]
    assert causes == ({fails.cause} - {""} if "not submitted" not in what else set())
    if "gold" in what:
        assert found.n_tasks == 0 and (fails.published, fails.coverage) == ("left out", "left out")
        assert fails.ranks == "left out for all systems"
    else:
        row = rows["s"]
        assert word(row.as_published, "the minimum", "over the others") == fails.published
        lowest = "the minimum" if fails.cause == "report" else "the worst"
        assert word(row.value, lowest, "these parts at their worst") == fails.ranks
        assert (row.coverage == 1.0) == (fails.coverage == "counts")
    paid = Formula(RewardConfig(), [Rubrics()]).value({"rubrics": card}, {}).value
    if "not submitted" not in what:
        said = "none" if paid is None else word(paid, "the minimum", "over the others")
        assert said == fails.reward
