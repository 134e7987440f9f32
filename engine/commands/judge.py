"""`adjudge judge`: whether a judge is one, by questions whose right answers are known without people."""

import argparse
import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from adjudge.engine.commands.exits import DONE, FAILED, REGRESSED
from adjudge.engine.commands.interruption import interruptible
from adjudge.engine.commands.output import print_as_table
from adjudge.engine.config.judge import JudgeConfig
from adjudge.engine.config.run import Price, RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.errors import UsageError
from adjudge.engine.evaluation.assembly import make_book, make_judge
from adjudge.engine.evaluation.budget import cost_of
from adjudge.engine.evaluation.dry_run import dry_run
from adjudge.engine.evaluation.gate import refusal
from adjudge.engine.runs.choice import chosen_dataset
from adjudge.engine.runs.course import Course
from adjudge.engine.store import Place
from adjudge.engine.tables.table import Column, Table
from adjudge.engine.trial.controls import USUAL
from adjudge.engine.trial.material import Material
from adjudge.engine.trial.trial import SIZE, Outcome, Trial, TypeResult, materials_of, trial, types_of
from adjudge.fetchers.flight import shared
from adjudge.judges import Judge, Question
from adjudge.judges.errors import JudgeError
from adjudge.judges.judgment import PROBE_SECONDS, probe
from adjudge.judges.plural import plural
from adjudge.prompts import PromptBook
from adjudge.scoring.contract.case import Case

_CASES = 200  # of a configuration, of which controls are made
_FORESEEN = 20  # of them, whose questions are foreseen
_SHORT = 4  # statements or reports of each language, of a check before a run
_SHORT_CASES = 40  # of which these are made
_SHORT_FORESEEN = 8
_MOST_SAID = 3  # faults, in one line
WORTH = 1_000
"""Questions to a judge from which a run asks it some with known answers first, unless the configuration requires it."""
CHECK_S = 60.0
"""Seconds that these take at most where they are not required."""


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """One judge's trial, under its key in the configuration ("judge" for a SPEC). `cost` is None without a price."""

    key: str
    found: Trial
    cost: float | None


class Trials(msgspec.Struct, frozen=True, kw_only=True):
    """The trials of all judges of a configuration; the outcome is the worst."""

    outcome: Outcome
    judges: tuple[Tried, ...]


_Materials = asyncio.Future[dict[str, list[Material]]]


def run(options: argparse.Namespace) -> int:
    """Try the judges of a configuration, or one judge."""
    size = options.limit or SIZE
    found = interruptible(_all(_configured(options.of), options.of, size))
    print_as_table(options, found, _table, _said)
    return {"passed": DONE, "failed": REGRESSED, "unusable": FAILED}[found.outcome]


def _configured(name: str) -> RunConfig | None:
    """The configuration in the file `name`, or None for a judge's SPEC. Raises UsageError."""
    if Path(name).is_file():
        return RunConfig.load(name)
    try:
        JudgeConfig.from_spec(name)
    except ConfigError as error:
        said = str(error).removeprefix("judge: ")
        raise UsageError(f"judge: no configuration file has this name, and {said}") from error
    return None


async def _all(config: RunConfig | None, spec: str, size: int) -> Trials:
    if config is None:
        own = make_judge(JudgeConfig.from_spec(spec), PromptBook())
        tried = [await _one("judge", own, _made((), size), list(USUAL), [], None, size)]
    else:
        tried = [one async for one in _seated(config, size)]
    outcomes = {one.found.outcome for one in tried}
    worst: tuple[Outcome, ...] = ("unusable", "failed", "passed")
    return Trials(outcome=next(one for one in worst if one in outcomes), judges=tuple(tried))


async def _seated(config: RunConfig, size: int) -> AsyncIterator[Tried]:
    """The trials of a configuration's judges, one after the other."""
    dataset = await asyncio.to_thread(chosen_dataset, config)
    cases = list(islice(Course(config, dataset).sample(), _CASES))
    asked, words = await _foreseen(config, _spread(cases, _FORESEEN))
    materials = _made(cases, size)
    for name, seat in config.resolved.bench.seats.items():
        judge = make_judge(seat.config, make_book(config), seat.free_text)
        kinds, others = types_of(asked[name])
        price = config.prices.get(judge.identity.name)
        yield await _one(name, judge, materials, kinds, [words[one] for one in others], price, size)


async def check_judges(config: RunConfig, course: Course, say: Callable[[str], None]) -> None:
    """Try the servers that the `course` of a run will ask, by a few controls made from it; `say` what they fail by.

    A judge that is asked nothing, since all is stored, is not tried, nor one that is asked so little that the controls
    would be much beside it. Raises JudgeError where the configuration requires a judge to pass, and it does not, or
    cannot be used; otherwise the run's own probe tells of that.
    """
    servers = {
        name: seat
        for name, seat in config.resolved.bench.seats.items()
        if all(one.backend == "openai" for one in seat.config.each())
    }
    if config.judge_check == "off" or not servers:
        return
    is_required = config.judge_check == "require"
    cases = list(islice(course.sample(), _CASES))
    foreseen = _spread(cases, _SHORT_FORESEEN)
    notes = (await dry_run(config, foreseen)).notes
    share = max(1.0, course.scorecards / max(1, len(foreseen) * len(config.protocols)))
    materials: _Materials | None = None
    for name, seat in servers.items():
        asked = notes[name].questions
        if not asked or (not is_required and asked.total() * share < WORTH):
            continue
        materials = materials or _made(_spread(cases, _SHORT_CASES), _SHORT)
        kinds, _ = types_of(asked)
        judge = make_judge(seat.config, make_book(config), seat.free_text)
        try:
            async with asyncio.timeout(None if is_required else CHECK_S):
                found = (await _one(name, judge, materials, kinds, [], None, _SHORT)).found
        except (TimeoutError, JudgeError):
            if is_required:
                raise
            continue
        if found.outcome == "passed" or (found.outcome == "unusable" and not is_required):
            continue
        why = "; ".join(found.why[:_MOST_SAID]) or "no answers"
        line = f"judge {found.judge}: fails questions with known answers ({why}); see `adjudge judge`"
        if is_required:
            raise JudgeError(line)
        say(line)


async def _foreseen(
    config: RunConfig, cases: Sequence[Case]
) -> tuple[dict[str, Counter[str]], dict[str, str]]:
    """How many questions of which type each judge will be asked about `cases`, and the words of each type."""
    with TemporaryDirectory() as nothing_stored:
        found = await dry_run(config, cases, place=Place.of(nothing_stored))
    return {name: taker.questions for name, taker in found.notes.items()}, found.words


def _spread(cases: Sequence[Case], count: int) -> Sequence[Case]:
    """`count` of `cases`, from the first to the last: tasks of one language often stand together."""
    return cases[:: max(1, -(-len(cases) // count))]


def _made(cases: Sequence[Case], size: int) -> _Materials:
    """What controls are made of, soon."""
    return asyncio.ensure_future(asyncio.to_thread(materials_of, cases, size))


async def _one(
    key: str,
    judge: Judge,
    materials: _Materials,
    kinds: list[type[Question[Any]]],
    untested: list[str],
    price: Price | None,
    size: int,
) -> Tried:
    """The trial of one judge, which is closed. Raises JudgeError if it cannot be used."""
    try:
        if (refused := refusal(await probe(judge, PROBE_SECONDS))) is not None:
            raise refused
        found = await trial(judge, await shared(materials), kinds, size=size, untested=untested)
    finally:
        await judge.close()
    return Tried(key=key, found=found, cost=None if price is None else cost_of(found.usage, price))


def _table(tried: Trials) -> Table:
    """A judge's rates by type of question and kind of control."""
    blocks, said = [], []
    for one in tried.judges:
        name = f"{one.key}: " if len(tried.judges) > 1 else ""
        blocks += [_rows(row, name) for row in one.found.types]
        said += [f"{name}{row.question}: {_figures(row)}" for row in one.found.types]
        said += [f"{name}{note}" for note in _notes(one)]
    return Table.of(
        title=f"Planted controls, judged by {', '.join(one.found.judge for one in tried.judges)}",
        columns=(
            Column("question", words=True),
            Column("control", words=True),
            Column("right"),
            Column("rate"),
            Column("95 %", spare=1),
            Column("unscored", spare=2),
        ),
        blocks=blocks,
        said=said,
    )


def _rows(found: TypeResult, name: str) -> list[tuple[str, ...]]:
    return [
        (
            "" if place else f"{name}{found.question}",
            row.kind,
            f"{row.right:,} of {row.n:,}",
            "-" if row.rate is None else f"{row.rate:.1%}",
            "-" if row.low is None or row.high is None else f"{row.low:.1%} to {row.high:.1%}",
            f"{row.unscored:,}",
        )
        for place, row in enumerate(found.kinds)
    ]


def _figures(found: TypeResult) -> str:
    """What a type comes to as a whole, beside its limits."""
    said = {
        "separation": (found.separation, "{:.2f}"),
        "commonest answer": (found.commonest, "{:.0%}"),
        "text shown first ahead by": (found.position, "{:+.2f}"),
        "length alone": (found.length, "{:+.2f}"),
        f"other answers when {found.again:,} are asked again": (found.noise, "{:.0%}"),
    }
    return "; ".join(
        f"{what} {form.format(value)}" for what, (value, form) in said.items() if value is not None
    )


def _notes(one: Tried) -> list[str]:
    found, usage, most = one.found, one.found.usage, one.found.limits
    tokens = f"{usage.prompt_tokens:,} prompt tokens and {usage.completion_tokens:,} generated"
    cost = "" if one.cost is None else f", {one.cost:,.2f}"
    notes = [
        f"{plural(found.asked, 'question')} in {', '.join(found.languages)}; {tokens}{cost}; {found.seconds:.1f} s",
        f"limits: answered {most.answered:.0%}; separation {most.separation:g}; a rate whose interval reaches "
        f"{most.rate:.0%}; text shown first {most.position:g}; length {most.length:g}; other answers {most.noise:.0%}",
    ]
    if found.untested:
        notes.append(f"without controls: {', '.join(found.untested)}")
    if found.reasons:
        notes.append(
            f"unscored: {', '.join(f'{count:,} {reason}' for reason, count in found.reasons.items())}"
        )
    return notes


def _said(tried: Trials) -> str:
    """The verdict on each judge, and why."""
    lines = []
    for one in tried.judges:
        found = one.found
        if found.outcome == "passed":
            lines.append(f"{found.judge} passes.")
        elif found.outcome == "unusable":
            lines.append(
                f"{found.judge} cannot be used: it answered none of {plural(found.asked, 'question')}."
            )
        else:
            lines += [f"{found.judge} fails:", *(f"- {why}" for why in found.why)]
    return "\n".join(lines)
