"""Checks of gold, drafted or frozen: its items against their sources, each other, silence, and the systems of a run."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from adjudge.engine.commands.gold import read_sources
from adjudge.engine.commands.interruption import interruptible
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.evaluation.assembly import open_evaluator
from adjudge.engine.evaluation.evaluator import Evaluator
from adjudge.engine.formats.dataset import load_tasks
from adjudge.engine.records.choice import chosen_tasks
from adjudge.engine.records.record import RunRecord
from adjudge.engine.store import Place
from adjudge.engine.store.scorecards import run_cards
from adjudge.scoring.contract.case import Case, GoldError, Report, Task
from adjudge.scoring.contract.gold import Drafting, GoldSource
from adjudge.scoring.contract.protocol import installed_protocols
from adjudge.scoring.contract.scorecard import Evidence
from adjudge.scoring.gold.problem import Problem
from adjudge.scoring.gold.review import Review, review
from adjudge.scoring.gold.separation import ItemSeparation, separation, separation_problems

__all__ = ["GoldCheck", "GoldProblem", "check_config", "check_gold"]


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
    """What was checked with `judge`: `items` of `tasks`, and the problems among them.

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
        given["protocols"] = [name for name in dict.fromkeys(known) if name in _drafting_names()]
        if not given["protocols"]:
            raise UsageError(
                f"--check: {file} has no gold with items to check; name a file that `adjudge gold` wrote"
            )
    return RunConfig.of({"tasks": file, **given}, "--check")


def check_gold(config: RunConfig, documents: Sequence[str] = (), run: str | None = None) -> GoldCheck:
    """Check the gold of the tasks of `config` against `documents`, and how it separates the systems of `run`.

    Raises UsageError, JudgeError, StoreError and LimitReached.
    """
    protocols = [one for one in config.scoring_protocols() if isinstance(one, Drafting)]
    if not protocols:
        names = ", ".join(one.name for one in config.scoring_protocols())
        raise UsageError(f"--protocol: {names} has no gold with items to check; choose another, such as race")
    tasks, sources = chosen_tasks(config), read_sources(documents)
    evidence = {} if run is None else _evidence(Path(run))
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
        judge = evaluator.judges[config.bench.of(protocols[0].name).name].name
    problems: list[GoldProblem] = []
    separated: list[Separated] = []
    unreadable: list[str] = []
    unanswered: Counter[str] = Counter()
    for (protocol, task), found in zip(pairs, reviews, strict=True):
        if isinstance(found, GoldError):
            unreadable += [str(found)] if found.reason == "gold_invalid" else []
            continue
        figures = separation(found.items, evidence.get((protocol.name, task.id), {}))
        separated += [_separated(one, protocol, task) for one in figures]
        named = [*found.problems, *separation_problems(found.items, figures)]
        problems += [_named(one, protocol, task) for one in named]
        unanswered.update(found.unanswered)
    known = [one for one in reviews if isinstance(one, Review)]
    return GoldCheck(
        judge=judge,
        tasks=len({task.id for (_, task), one in zip(pairs, reviews, strict=True) if _has_items(one)}),
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


def _has_items(one: Review | GoldError) -> bool:
    return isinstance(one, Review) and bool(one.items)


def _evidence(run: Path) -> dict[_Key, _BySystem]:
    """The evidence of every report of a run, by protocol and task, and by system."""
    record = RunRecord.read(run).found_from_here(run)
    found: dict[_Key, dict[str, list[Sequence[Evidence]]]] = defaultdict(lambda: defaultdict(list))
    for card in run_cards(Place.of(record.config.store), record.run):
        if not card.rival:
            found[card.protocol, card.task_id][card.system].append(card.evidence)
    return dict(found)


def _named(problem: Problem, protocol: Drafting, task: Task) -> GoldProblem:
    return GoldProblem(
        task_id=task.id,
        protocol=protocol.name,
        part=problem.part,
        item=problem.item,
        problem=problem.kind,
        why=problem.why,
        fix=problem.fix,
    )


def _separated(one: ItemSeparation, protocol: Drafting, task: Task) -> Separated:
    return Separated(task_id=task.id, protocol=protocol.name, **msgspec.structs.asdict(one))


def _drafting_names() -> set[str]:
    return {name for name, load in installed_protocols() if hasattr(load(), "gold_items")}
