"""How many cases an evaluator has at once, and when each begins."""

import asyncio

from adjudge.engine.config.run import RunConfig
from adjudge.engine.evaluation.assembly import open_evaluator, window_of
from adjudge.engine.evaluation.evaluator import CaseTools
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.protocol import ScoringProtocol
from adjudge.scoring.contract.scorecard import Scorecard

CASES = 40


def config(mode: str, store: object = "store", **more: object) -> RunConfig:
    return RunConfig.of(
        {"tasks": "-", "protocols": ["rubrics"], "fetch": {"mode": mode}, "store": str(store), **more}
    )


def test_more_cases_are_at_work_where_they_wait_for_the_web() -> None:
    protocols = ["rubrics", "fact"]
    windows = [window_of(config(mode, protocols=protocols), 100) for mode in ("live", "snapshot", "off")]
    assert windows == [400, 100, 100]
    assert window_of(config("live"), 100) == 100, "rubrics read no pages"
    assert window_of(config("live", protocols=protocols, serial=True), 100) == 1


async def test_cases_begin_one_after_another_with_others_in_between(tmp_path, monkeypatch) -> None:
    passes, begun = 0, []

    async def score(case: Case, protocol: ScoringProtocol, _: CaseTools | None = None) -> Scorecard:
        begun.append(passes)
        await asyncio.sleep(0)
        return Scorecard.of(protocol.name, case, {})

    async def others() -> None:
        nonlocal passes
        while True:
            passes += 1
            await asyncio.sleep(0)

    async with open_evaluator(config("off", tmp_path)) as evaluator:
        monkeypatch.setattr(evaluator, "score", score)
        running = asyncio.ensure_future(others())
        task = Task(id="t", prompt="What?")
        cases = [
            Case(task=task, report=Report(task_id="t", system=f"s{n}", text="Text.")) for n in range(CASES)
        ]
        done = [one.system async for one in evaluator.run(cases)]
        running.cancel()
    assert len(done) == CASES and len(begun) == CASES
    assert len(set(begun)) == CASES, "none begins in the same pass of the loop as another"
