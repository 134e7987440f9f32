"""Gold that the judge drafts: written to a file of tasks, for people to review and for runs to be measured by."""

import asyncio
from collections import Counter
from pathlib import Path

import msgspec

from adjudge.engine.commands.interruption import interruptible
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.evaluation.assembly import open_evaluator
from adjudge.engine.evaluation.evaluator import Evaluator
from adjudge.engine.records.choice import chosen_tasks
from adjudge.scoring.contract.case import Case, GoldError, Report, Task
from adjudge.scoring.contract.protocol import Drafting
from adjudge.scoring.contract.scorecard import Missing

__all__ = ["DraftedGold", "draft_gold"]


class DraftedGold(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks written to `out`: how many have gold `drafted` by `judge`, and how many lacked nothing (`complete`).

    `unscored` counts by reason the tasks that stay without a part of their gold.
    """

    out: str
    protocol: str
    judge: str
    tasks: int
    drafted: int
    complete: int
    unscored: dict[str, int]


def draft_gold(config: RunConfig, out: str) -> DraftedGold:
    """Have the judge draft what the tasks of `config` lack for its only protocol, and write all of them to `out`.

    The file is of the format `adjudge`. Raises UsageError (also where it exists, since it may have been reviewed),
    JudgeError, StoreError and LimitReached; what was answered until then is stored.
    """
    if Path(out).exists():
        raise UsageError(
            f"--out: {out} exists, perhaps with reviewed gold; choose another file, or move it away"
        )
    (protocol,) = config.scoring_protocols()
    if not isinstance(protocol, Drafting):
        raise UsageError(
            f"--protocol: {protocol.name} has no gold that a judge drafts; choose another, such as race"
        )
    tasks = chosen_tasks(config)
    found = interruptible(_drafted(config, protocol, tasks))
    _write(Path(out), found.tasks)
    return DraftedGold(
        out=out,
        protocol=protocol.name,
        judge=found.judge,
        tasks=len(tasks),
        drafted=found.drafted,
        complete=len(tasks) - found.drafted - found.unscored.total(),
        unscored=dict(sorted(found.unscored.items())),
    )


class _Drafts:
    """The tasks with their gold as far as it is known, in order."""

    def __init__(self, judge: str) -> None:
        self.judge = judge
        self.tasks: list[Task] = []
        self.drafted = 0
        self.unscored: Counter[str] = Counter()


async def _drafted(config: RunConfig, protocol: Drafting, tasks: list[Task]) -> _Drafts:
    async with open_evaluator(config) as evaluator:
        made = await asyncio.gather(*(_draft(protocol, task, evaluator) for task in tasks))
        found = _Drafts(evaluator.judges[config.bench.of(protocol.name).name].name)
    for task, (gold, asked) in zip(tasks, made, strict=True):
        if isinstance(gold, Missing):
            found.unscored[gold.reason] += 1
            found.tasks.append(task)
        else:
            found.drafted += asked
            found.tasks.append(msgspec.structs.replace(task, gold={**task.gold, protocol.name: gold}))
    return found


async def _draft(protocol: Drafting, task: Task, evaluator: Evaluator) -> tuple[msgspec.Raw | Missing, bool]:
    """The gold of `task`, and whether the judge was asked for any of it."""
    case = Case(task=task, report=Report(task_id=task.id, system="gold", text=""))
    tools = evaluator.tools(case, protocol.name)
    try:
        return await protocol.draft(case, tools), tools.asked > 0
    except GoldError as error:
        return Missing(error.reason), False


def _write(out: Path, tasks: list[Task]) -> None:
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("xb") as file:
            file.writelines(msgspec.json.encode(task) + b"\n" for task in tasks)
    except OSError as error:
        raise UsageError(f"--out: {out} cannot be written: {error.strerror}; choose another file") from error
