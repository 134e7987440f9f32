"""docs/failures.md says of each state of a page what FACT and a reward do with it: held against the code."""

from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest

from adjudge.engine.config.reward import Formula, RewardConfig
from adjudge.fetchers.page import PageReason
from adjudge.fetchers.process import Extraction
from adjudge.fetchers.signs import REASONS
from adjudge.judges import Question, ScriptedJudge, numbered
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.protocol import score_case
from adjudge.scoring.contract.reasons import CAUSES
from adjudge.scoring.deepresearch_bench.fact import Fact
from adjudge.scoring.deepresearch_bench.fact_questions import Backed, Repeated, Repeats, Verdicts
from tests.tools import DirectTools, page

HEAD = "| state | signs | reason | cause | `c_acc` | lowest `c_acc` | `c_acc_code` | reward |"
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
    value = Formula(RewardConfig(), [protocol]).value({protocol.name: card}, {}).value
    assert (value is None) == (state.reward == "none")
