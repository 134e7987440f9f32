"""Gold that the judge drafts: written to a file of tasks, for people to review and for runs to be measured by."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from adjudge.engine.commands.interruption import interruptible
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.evaluation.assembly import open_evaluator
from adjudge.engine.evaluation.evaluator import CaseTools, Evaluator
from adjudge.engine.formats.documents import DocumentError, read_source
from adjudge.engine.records.choice import chosen_tasks
from adjudge.scoring.contract.case import Case, GoldError, Report, Task
from adjudge.scoring.contract.gold import Drafting, GoldSource
from adjudge.scoring.contract.reasons import Reason
from adjudge.scoring.contract.scorecard import Missing
from adjudge.scoring.gold.passages import find_passages

__all__ = ["DraftedGold", "draft_gold", "read_sources"]


class DraftedGold(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks written to `out`: how many have gold `drafted` by `judge`, and how many lacked nothing (`complete`).

    `unscored` counts by reason the tasks that stay without a part of their gold. Of the `items` in the drafted gold,
    `founded` have a passage that stands in the task or in a document; `unfounded` counts by reason the tasks whose
    passages the judge could not be asked for.
    """

    out: str
    protocol: str
    judge: str
    tasks: int
    drafted: int
    complete: int
    unscored: dict[str, int]
    items: int = 0
    founded: int = 0
    unfounded: dict[str, int] = {}


def draft_gold(config: RunConfig, out: str, documents: Sequence[str] = ()) -> DraftedGold:
    """Have the judge draft what the tasks of `config` lack for its only protocol, and write all of them to `out`.

    `documents` are files that gold is drafted from, and that its items may rest on.

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
    if protocol.drafts_from == "document" and not documents:
        raise UsageError(
            f"--from: {protocol.name} drafts gold from a document; name a text, Markdown, PDF or Word file"
        )
    tasks, sources = chosen_tasks(config), read_sources(documents)
    found = interruptible(_drafted(config, protocol, tasks, sources))
    _write(Path(out), found.tasks)
    return DraftedGold(
        out=out,
        protocol=protocol.name,
        judge=found.judge,
        tasks=len(tasks),
        drafted=found.drafted,
        complete=len(tasks) - found.drafted - found.unscored.total(),
        unscored=dict(sorted(found.unscored.items())),
        items=found.items,
        founded=found.founded,
        unfounded=dict(sorted(found.unfounded.items())),
    )


def read_sources(documents: Sequence[str]) -> list[GoldSource]:
    """The texts of the files `documents`, under their names. Raises UsageError."""
    found: dict[str, GoldSource] = {}
    for name in documents:
        try:
            read = read_source(Path(name))
        except DocumentError as error:
            raise UsageError(f"--from: {error}; name a text, Markdown, PDF or Word file") from error
        if not read.text.strip():
            raise UsageError(f"--from: {name} has no text; name a document")
        if read.name in found:
            raise UsageError(f"--from: two files are called {read.name}; rename one")
        found[read.name] = GoldSource(read.name, read.text)
    return list(found.values())


class _Drafts:
    """The tasks with their gold as far as it is known, in order."""

    def __init__(self, judge: str) -> None:
        self.judge = judge
        self.tasks: list[Task] = []
        self.drafted = 0
        self.items = 0
        self.founded = 0
        self.unscored: Counter[str] = Counter()
        self.unfounded: Counter[str] = Counter()


class _Draft(msgspec.Struct, frozen=True):
    """A task with its gold as far as it is known: why it lacks something, if it was `asked` for, and its `items`.

    `unfounded` is why passages are not known.
    """

    task: Task
    missing: Reason | None = None
    asked: bool = False
    items: int = 0
    unfounded: Reason | None = None


async def _drafted(
    config: RunConfig, protocol: Drafting, tasks: list[Task], sources: Sequence[GoldSource]
) -> _Drafts:
    async with open_evaluator(config) as evaluator:
        made = await asyncio.gather(*(_draft(protocol, task, sources, evaluator) for task in tasks))
        found = _Drafts(evaluator.judges[config.bench.of(protocol.name).name].name)
    for one in made:
        found.tasks.append(one.task)
        if one.missing is not None:
            found.unscored[one.missing] += 1
        if one.unfounded is not None:
            found.unfounded[one.unfounded] += 1
        found.drafted += one.asked
        found.items += one.items
        found.founded += len(one.task.rests_on.get(protocol.name, ())) if one.items else 0
    return found


async def _draft(
    protocol: Drafting, task: Task, sources: Sequence[GoldSource], evaluator: Evaluator
) -> _Draft:
    """The task with its gold, and where any of it was asked for, the passages that its items rest on."""
    case = Case(task=task, report=Report(task_id=task.id, system="gold", text=""))
    tools = evaluator.tools(case, protocol.name)
    try:
        gold = await protocol.draft(case, tools, sources)
        if isinstance(gold, Missing):
            return _Draft(task, gold.reason)
        whole = msgspec.structs.replace(task, gold={**task.gold, protocol.name: gold})
        if not tools.asked:
            return _Draft(whole)
        return await _founded(protocol, msgspec.structs.replace(case, task=whole), sources, tools)
    except GoldError as error:
        return _Draft(task, error.reason)


async def _founded(protocol: Drafting, case: Case, sources: Sequence[GoldSource], tools: CaseTools) -> _Draft:
    """The case's task with the passages that the items of its gold rest on. Raises GoldError."""
    gold = protocol.gold_items(case)
    passages, missing = await find_passages(gold.items, case, [*gold.sources, *sources], tools)
    rests_on = {**case.task.rests_on, protocol.name: tuple(passages)}
    task = msgspec.structs.replace(case.task, rests_on=rests_on)
    wanted = sum(one.kind != "deviation" for one in gold.items)
    return _Draft(task, None, True, wanted, missing[0] if missing else None)


def _write(out: Path, tasks: list[Task]) -> None:
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("xb") as file:
            file.writelines(msgspec.json.encode(task) + b"\n" for task in tasks)
    except OSError as error:
        raise UsageError(f"--out: {out} cannot be written: {error.strerror}; choose another file") from error
