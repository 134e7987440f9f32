"""`adjudge gold`: drafts gold with the judge, or checks it.

A draft is written to a file of tasks, for people to review and for runs to score against. A check, of drafted or frozen
gold, tests items against their sources, each other, an empty report, and the systems of a run.
"""

import argparse
import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from adjudge.engine.commands.exits import DONE, INCOMPLETE
from adjudge.engine.commands.interruption import interruptible
from adjudge.engine.commands.output import out, print_result, print_table, select_section
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.evaluation.assembly import open_evaluator
from adjudge.engine.evaluation.evaluator import CaseTools, Evaluator
from adjudge.engine.formats.dataset import load_tasks
from adjudge.engine.formats.documents import DocumentError, read_source
from adjudge.engine.runs.choice import chosen_tasks
from adjudge.engine.runs.run import Run
from adjudge.engine.statistics.selection import explained
from adjudge.engine.tables.table import Column, Table
from adjudge.fetchers.files import write_new
from adjudge.judges.plural import plural
from adjudge.scoring.contract.case import Case, GoldError, Report, Task
from adjudge.scoring.contract.gold import Drafting, GoldSource
from adjudge.scoring.contract.protocol import installed_protocols
from adjudge.scoring.contract.reasons import Reason
from adjudge.scoring.contract.scorecard import Evidence, Missing
from adjudge.scoring.gold.review import Review, review
from adjudge.scoring.gold.rules import find_passages
from adjudge.scoring.gold.separation import ItemSeparation, separation, separation_problems


class DraftedGold(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks written to `out`: how many have gold `drafted` by `judge`, and how many lacked nothing (`complete`).

    `unscored` counts by reason the tasks that stay without a part of their gold. Of the `items` in the drafted gold,
    `founded` have a passage that occurs in the task or in a document; `unfounded` counts by reason the tasks whose
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
    """Have the judge draft missing gold of `config`'s tasks for its only protocol, and write all tasks to `out`.

    `documents` are files that gold is drafted from, and that its items may rest on.

    The file is of the format `adjudge`. Raises UsageError (also where it exists, since it may have been reviewed),
    JudgeError, StoreError and LimitReached; what was answered until then is stored.
    """
    if Path(out).exists():
        raise UsageError(
            f"--out: {out} exists, perhaps with reviewed gold; choose another file, or move it away"
        )
    (protocol,) = config.resolved.protocols
    if not isinstance(protocol, Drafting):
        raise UsageError(
            f"--protocol: {protocol.name} has no gold that a judge drafts; choose another, such as race"
        )
    if protocol.drafts_from == "document" and not documents:
        raise UsageError(
            f"--from: {protocol.name} drafts gold from a document; name a text, Markdown, PDF or Word file"
        )
    tasks, sources = chosen_tasks(config), read_sources(documents)

    async def drafted() -> tuple[str, list[_Draft]]:
        async with open_evaluator(config) as evaluator:
            made = await asyncio.gather(*(_draft(protocol, task, sources, evaluator) for task in tasks))
            return evaluator.judges[config.resolved.bench.of(protocol.name).name].name, made

    judge, made = interruptible(drafted())
    _write(Path(out), [one.task for one in made])
    unscored = Counter(one.missing for one in made if one.missing is not None)
    unfounded = Counter(one.unfounded for one in made if one.unfounded is not None)
    asked = sum(one.asked for one in made)
    return DraftedGold(
        out=out,
        protocol=protocol.name,
        judge=judge,
        tasks=len(tasks),
        drafted=asked,
        complete=len(tasks) - asked - unscored.total(),
        unscored=dict(sorted(unscored.items())),
        items=sum(one.items for one in made),
        founded=sum(len(one.task.rests_on.get(protocol.name, ())) for one in made if one.items),
        unfounded=dict(sorted(unfounded.items())),
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


class _Draft(msgspec.Struct, frozen=True):
    """A task with its gold as far as it is known: why it lacks something, if it was `asked` for, and its `items`.

    `unfounded` is why passages are not known.
    """

    task: Task
    missing: Reason | None = None
    asked: bool = False
    items: int = 0
    unfounded: Reason | None = None


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
        write_new(out, b"".join(msgspec.json.encode(task) + b"\n" for task in tasks))
    except OSError as error:
        raise UsageError(f"--out: {out} cannot be written: {error.strerror}; choose another file") from error


class GoldProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A problem of an item of gold (of a whole part if `item` is empty): why, and what to do about it (`fix`)."""

    task_id: str
    protocol: str
    part: str
    item: str
    problem: str
    why: str
    fix: str


class Separated(ItemSeparation, frozen=True, kw_only=True):
    """How an item separates the systems of the run."""

    task_id: str
    protocol: str


class GoldCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check with `judge`: `items` of `tasks`, and the problems among them.

    `unanswered` counts by reason what the judge was asked in vain, `unreadable` names the tasks whose gold cannot be
    read, `unknown_sources` the documents that passages were taken from and that were not given.
    """

    judge: str
    tasks: int
    items: int
    problems: tuple[GoldProblem, ...]
    separation: tuple[Separated, ...] = ()
    unanswered: dict[str, int] = {}
    unreadable: tuple[str, ...] = ()
    unknown_sources: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found, and nothing was left open."""
        return not (self.problems or self.unanswered or self.unreadable)


def check_config(file: str, **options: object) -> RunConfig:
    """The configuration for checking a file of tasks by itself: under the protocols that its gold is for.

    `options` are those that a configuration has; those that are None are left out. Raises UsageError.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if "protocols" not in given:
        tasks = load_tasks("adjudge", file)
        known = [name for task in tasks.values() for name in task.gold]
        drafting = {name for name, load in installed_protocols() if hasattr(load(), "gold_items")}
        given["protocols"] = [name for name in dict.fromkeys(known) if name in drafting]
        if not given["protocols"]:
            raise UsageError(
                f"--check: {file} has no gold with items to check; name a file that `adjudge gold` wrote"
            )
    return RunConfig.of({"tasks": file, **given}, "--check")


def check_gold(config: RunConfig, documents: Sequence[str] = (), run: str | None = None) -> GoldCheck:
    """Check the gold of the tasks of `config` against `documents`, and how it separates the systems of `run`.

    Raises UsageError, JudgeError, StoreError and LimitReached.
    """
    protocols = [one for one in config.resolved.protocols if isinstance(one, Drafting)]
    if not protocols:
        names = ", ".join(one.name for one in config.resolved.protocols)
        raise UsageError(f"--protocol: {names} has no gold with items to check; choose another, such as race")
    tasks, sources = chosen_tasks(config), read_sources(documents)
    evidence = {} if run is None else _evidence(Run.open(run))
    return interruptible(_checked(config, protocols, tasks, sources, evidence))


_Key = tuple[str, str]
_BySystem = Mapping[str, Sequence[Sequence[Evidence]]]


async def _checked(
    config: RunConfig,
    protocols: Sequence[Drafting],
    tasks: Sequence[Task],
    sources: Sequence[GoldSource],
    evidence: Mapping[_Key, _BySystem],
) -> GoldCheck:
    pairs = [(protocol, task) for protocol in protocols for task in tasks if task.gold]
    async with open_evaluator(config) as evaluator:
        reviews = await asyncio.gather(*(_review(*pair, sources, evaluator) for pair in pairs))
        judge = evaluator.judges[config.resolved.bench.of(protocols[0].name).name].name
    problems: list[GoldProblem] = []
    separated: list[Separated] = []
    unreadable: list[str] = []
    unanswered: Counter[str] = Counter()
    judged: set[str] = set()  # tasks
    for (protocol, task), found in zip(pairs, reviews, strict=True):
        if isinstance(found, GoldError):
            unreadable += [str(found)] if found.reason == "gold_invalid" else []
            continue
        figures = separation(found.items, evidence.get((protocol.name, task.id), {}))
        whose: dict[str, Any] = {"task_id": task.id, "protocol": protocol.name}
        separated += [Separated(**whose, **msgspec.structs.asdict(one)) for one in figures]
        named = [*found.problems, *separation_problems(found.items, figures)]
        problems += [
            GoldProblem(**whose, part=one.part, item=one.item, problem=one.kind, why=one.why, fix=one.fix)
            for one in named
        ]
        unanswered.update(found.unanswered)
        judged |= {task.id} if found.items else set()
    known = [one for one in reviews if isinstance(one, Review)]
    return GoldCheck(
        judge=judge,
        tasks=len(judged),
        items=sum(len(one.items) for one in known),
        problems=tuple(problems),
        separation=tuple(separated),
        unanswered=dict(sorted(unanswered.items())),
        unreadable=tuple(unreadable),
        unknown_sources=tuple(dict.fromkeys(name for one in known for name in one.unknown_sources)),
    )


async def _review(
    protocol: Drafting, task: Task, sources: Sequence[GoldSource], evaluator: Evaluator
) -> Review | GoldError:
    case = Case(task=task, report=Report(task_id=task.id, system="gold", text=""))
    try:
        return await review(protocol, case, sources, evaluator.tools(case, protocol.name))
    except GoldError as error:
        return error


def _evidence(run: Run) -> dict[_Key, _BySystem]:
    """The evidence of every report of a run, by protocol and task, and by system."""
    found: dict[_Key, dict[str, list[Sequence[Evidence]]]] = defaultdict(lambda: defaultdict(list))
    for card in run.cards:
        if not card.rival:
            found[card.protocol, card.task_id][card.system].append(card.evidence)
    return dict(found)


def run(options: argparse.Namespace) -> int:
    """Have the judge draft gold and write it for review, or check gold."""
    config = _config(options)
    if options.check is not None:
        checked = check_gold(config, options.documents, options.of_run)
        print_result(options, checked, _print_check)
        return DONE if checked.is_clean else INCOMPLETE
    if options.of_run is not None:
        raise UsageError("--run: needs --check; add it, or remove --run")
    if options.out is None:
        raise UsageError("--out: missing; pass a new file for the drafts, or --check to check gold")
    found = draft_gold(config, options.out, options.documents)
    print_result(options, found, _print_drafts)
    return INCOMPLETE if found.unscored else DONE


def _config(options: argparse.Namespace) -> RunConfig:
    """The configuration for `gold`: the file's under one protocol, or a file of tasks alone. Raises UsageError."""
    changed: dict[str, Any] = {
        "store": options.store,
        "judge": options.judge,
        "prompts": options.prompts,
        "format": options.format,
        "select": select_section(options),
        "protocols": None if options.protocol is None else [options.protocol],
    }
    if options.config is None:
        if not options.check:
            raise UsageError("gold: no configuration; name a CONFIG, or a file of tasks with --check FILE")
        return check_config(options.check, **changed)
    if options.protocol is None:
        raise UsageError("--protocol: missing; name the protocol whose gold it is, such as race")
    if options.check:
        changed["tasks"], changed["format"] = options.check, "adjudge"
    return RunConfig.load(options.config, **changed)


def _print_drafts(found: DraftedGold) -> None:
    """Print what the judge drafted, and how to use it."""
    console = out()
    said = [
        f"{plural(found.tasks, 'task')} in {found.out}: gold for {found.protocol} drafted by {found.judge} for "
        f"{found.drafted:,}, complete before for {found.complete:,}"
    ]
    if found.items:
        said.append(f"  passages found for {found.founded:,} of {plural(found.items, 'drafted item')}")
    said += [
        f"  {plural(count, 'task')} without passages: {explained(reason)}"
        for reason, count in found.unfounded.items()
    ]
    said += [f"  {count:,} without: {explained(reason)}" for reason, count in found.unscored.items()]
    said.append(f"Review and edit it, and check it: adjudge gold --check {found.out}")
    said.append(f"Then measure by it: tasks: {found.out}, format: adjudge")
    for line in said:
        console.print(line, markup=False, soft_wrap=True)


def _print_check(found: GoldCheck) -> None:
    """Print the problems of gold, how items separate systems, and what was left open."""
    console = out()
    if found.problems:
        print_table(_problems_table(found))
    if found.separation:
        print_table(_separation_table(found))
    said = [
        f"{plural(found.items, 'item')} of {plural(found.tasks, 'task')} checked with {found.judge}: "
        f"{plural(len(found.problems), 'problem')}"
    ]
    said += [
        f"  {plural(count, 'question')} without an answer: {explained(reason)}"
        for reason, count in found.unanswered.items()
    ]
    said += [f"  not checked: {why}" for why in found.unreadable]
    if found.unknown_sources:
        said.append(
            f"  passages not checked, because these are missing; pass --from: {', '.join(found.unknown_sources)}"
        )
    for line in said:
        console.print(line, markup=False, soft_wrap=True)


def _problems_table(found: GoldCheck) -> Table:
    """The problems of gold, one line per item: what is wrong with it, and what to do."""
    rows = [
        (one.task_id, one.part, one.item or "(all)", f"{one.problem}: {one.why}", one.fix)
        for one in found.problems
    ]
    return Table.of(
        title="Problems",
        columns=(
            Column("task", words=True),
            Column("part", words=True, spare=1),
            Column("item", words=True),
            Column("problem", words=True),
            Column("what to do", words=True),
        ),
        blocks=[rows],
    )


def _separation_table(found: GoldCheck) -> Table:
    """How items separate the systems of a run: the share that meets each, and its correlation with the others."""
    rows = [
        (
            one.task_id,
            one.part,
            one.item,
            f"{one.systems:,}",
            f"{one.share_met:.0%}",
            "-" if one.correlation is None else f"{one.correlation:.2f}",
        )
        for one in found.separation
    ]
    return Table.of(
        title="How items separate the systems",
        columns=(
            Column("task", words=True),
            Column("part", words=True, spare=1),
            Column("item", words=True),
            Column("systems", spare=2),
            Column("met by"),
            Column("correlation"),
        ),
        blocks=[rows],
    )
