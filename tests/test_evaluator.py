"""How many cases an evaluator has at once, when each begins, and how a run ends that nobody reads any more."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from adjudge.engine.config.run import RunConfig
from adjudge.engine.evaluation.assembly import LEAST_WINDOW, open_evaluator, window_of
from adjudge.engine.evaluation.evaluator import CaseTools, Evaluator
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.protocol import ScoringProtocol
from adjudge.scoring.contract.scorecard import Scorecard

TASK = Task(id="t", prompt="What?")
CASES = [Case(task=TASK, report=Report(task_id="t", system=f"s{n}", text="Text.")) for n in range(40)]


def config(mode: str, store: object = "store", **more: object) -> RunConfig:
    return RunConfig.of(
        {"tasks": "-", "protocols": ["rubrics"], "fetch": {"mode": mode}, "store": str(store), **more}
    )


@asynccontextmanager
async def evaluator_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch, begun: list[str], **more: object
) -> AsyncIterator[Evaluator]:
    """An evaluator that notes each case that it begins, and gives it no score."""

    async def score(case: Case, protocol: ScoringProtocol, _: CaseTools | None = None) -> Scorecard:
        begun.append(case.report.system)
        await asyncio.sleep(0.1)
        return Scorecard.of(protocol.name, case, {})

    async with open_evaluator(config("off", folder, **more)) as evaluator:
        monkeypatch.setattr(evaluator, "score", score)
        yield evaluator


def test_more_cases_are_at_work_where_they_wait_for_the_web() -> None:
    protocols = ["rubrics", "fact"]
    windows = [window_of(config(mode, protocols=protocols), 100) for mode in ("live", "snapshot", "off")]
    assert windows == [400, 100, 100]
    assert window_of(config("live"), 100) == 100, "rubrics read no pages"
    assert window_of(config("live", protocols=protocols, serial=True), 100) == 1


async def test_cases_begin_one_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    most = 0

    async def others() -> None:
        nonlocal most
        while True:
            before = len(begun)
            await asyncio.sleep(0)
            most = max(most, len(begun) - before)

    async with evaluator_of(tmp_path, monkeypatch, begun) as evaluator:
        watching = asyncio.ensure_future(others())
        done = [card.system async for card in evaluator.run(CASES[:LEAST_WINDOW])]
        watching.cancel()
    assert len(done) == len(begun) == LEAST_WINDOW
    assert most == 1, "others have a turn between any two"


async def test_few_cases_are_under_way_where_answers_come_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way: set[str] = set()
    most, turns = 0, 3

    async def score(case: Case, protocol: ScoringProtocol, _: CaseTools | None = None) -> Scorecard:
        nonlocal most
        under_way.add(case.report.system)
        most = max(most, len(under_way))
        for _turn in range(turns):
            await asyncio.sleep(0)
        under_way.remove(case.report.system)
        return Scorecard.of(protocol.name, case, {})

    cases = [Case(task=TASK, report=Report(task_id="t", system=f"s{n}", text="Text.")) for n in range(1000)]
    async with evaluator_of(tmp_path, monkeypatch, []) as evaluator:
        monkeypatch.setattr(evaluator, "score", score)
        assert len([card async for card in evaluator.run(cases)]) == len(cases)
    assert most <= 2 * turns, "as many as begin, one a turn, until the first is done; not the whole window"


async def test_run_ends_when_nobody_reads_its_scorecards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    async with evaluator_of(tmp_path, monkeypatch, begun, serial=True) as evaluator:
        cards = evaluator.run(CASES)
        await anext(cards)
        while len(begun) < 3:  # the first is taken, the second waits to be, the third waits for room
            await asyncio.sleep(0)
        await asyncio.sleep(0.3)
        async with asyncio.timeout(10):
            await cards.aclose()
    assert len(begun) == 3
