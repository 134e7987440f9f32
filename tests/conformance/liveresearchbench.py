"""Case files of `golden/liveresearchbench`: the maps, and whole reports with given verdicts."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from adjudge.judges import Question, ScriptedJudge, numbered
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.protocol import score_case
from adjudge.scoring.rubrics.asking import Explained, ExplainedLevels
from adjudge.scoring.rubrics.liveresearchbench import (
    PRESENTATION,
    ConsistencyProblems,
    DeeperReport,
    Depth,
    ListedProblems,
    LiveGold,
    LiveResearchBench,
    Problem,
    Problems,
    depth_won,
    problem_score,
)
from tests.conformance.case import Check, Checker, compare, read_lines
from tests.tools import DirectTools

DIMENSIONS = ("granularity", "insight", "critique", "evidence", "density")
OWN, REFERENCE = "the report", "the reference"


def check_map(path: Path) -> Iterator[Check]:
    for case in read_lines(path):
        yield compare(case["case"], {"score": 100 * problem_score(case["problems"])}, case["expected"])


def check_depth(path: Path) -> Iterator[Check]:
    for case in read_lines(path):
        lead = marks(case["own"], case["other"]).lead
        yield compare(case["case"], {"won": depth_won(lead)}, case["expected"])


def check_reports(path: Path) -> Iterator[Check]:
    for case in read_lines(path):
        yield compare(case["case"], asyncio.run(scored(case)), case["expected"])


async def scored(case: dict[str, Any]) -> dict[str, float | None]:
    """The scores of a report about which a judge says what the case says."""

    def answer(question: Question[Any]) -> object:
        if isinstance(question, ListedProblems):
            kind = "consistency" if isinstance(question, ConsistencyProblems) else "citation"
            return Problems(problems=[Problem(place="here", problem="this")] * case[kind])
        if isinstance(question, DeeperReport):
            own, other = case["depth"][question.context["first"] != OWN]
            return marks(own, other) if question.context["first"] == OWN else marks(other, own)
        items = getattr(question, "items", ())
        verdicts = case["presentation"] if items == PRESENTATION["en"] else case["coverage"]
        levels = [Explained(evidence="", level=float(verdict)) for verdict in verdicts]
        return ExplainedLevels(items=dict(zip(numbered(len(levels)), levels, strict=True)))

    gold = LiveGold(
        checklist=tuple(f"Item {number}." for number, _ in enumerate(case["coverage"])),
        reference=REFERENCE if case["depth"] else "",
    )
    task = Task(id="1", prompt="?", gold={"liveresearchbench": msgspec.Raw(msgspec.json.encode(gold))})
    report = Report(task_id="1", system="wren", text=OWN)
    tools = DirectTools(ScriptedJudge(answer))
    card = await score_case(LiveResearchBench(), Case(task=task, report=report), tools)
    return dict(card.scores)


def marks(first: list[int], second: list[int]) -> Depth:
    """Marks as the judge gives them."""
    pairs = zip(DIMENSIONS, first, second, strict=True)
    return Depth(
        **{
            f"{side}_{name}": mark
            for name, *of in pairs
            for side, mark in zip(("first", "second"), of, strict=True)
        }
    )


CHECKS: dict[str, Checker] = {
    "problem_map.jsonl": check_map,
    "depth_winner.jsonl": check_depth,
    "reports.jsonl": check_reports,
}
DATA: tuple[str, ...] = ()
