"""`adjudge plan`: a dry run that counts what a run would ask, read and cost.

It evaluates with a judge that only counts questions.
"""

import argparse
import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import get_args

import msgspec
from rich.markup import escape

from adjudge.engine.commands.exits import DONE, INCOMPLETE
from adjudge.engine.commands.notices import rejected
from adjudge.engine.commands.output import out, print_result, print_table, run_config
from adjudge.engine.config.judge import JudgeConfig, Seat
from adjudge.engine.config.run import Price, RunConfig
from adjudge.engine.evaluation.assembly import make_book, make_judge, rejected_pages
from adjudge.engine.evaluation.budget import cost_of
from adjudge.engine.evaluation.dry_run import ASSUMED_PAGE_CHARS, NoteTaker, dry_run
from adjudge.engine.formats.dataset import Located, drawn
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.runs.choice import chosen_dataset
from adjudge.engine.runs.course import Course
from adjudge.engine.runs.lacking import AbsentPages, absent_pages
from adjudge.engine.runs.record import Judging
from adjudge.engine.statistics.selection import explained
from adjudge.engine.tables.table import Column, Table
from adjudge.judges import Usage
from adjudge.judges.judgment import Profile
from adjudge.judges.openai import OpenAIJudge
from adjudge.judges.plural import plural
from adjudge.prompts import PromptBook
from adjudge.scoring.text.accounted import Account, account, lost_by

_LIST_S = 5.0  # for a server's list of models
_MOST_TRIED = 2_000  # scorecards; the figures of a larger run are those of as many, in proportion


class PlannedWork(msgspec.Struct, frozen=True, kw_only=True):
    """The questions still to be asked, and what they take; figures are those of `Plan`."""

    to_ask: int
    prompt_tokens: int
    shared_tokens: int
    completion_tokens: int
    seconds: float | None
    cost: float | None

    @classmethod
    def together(cls, works: Sequence["PlannedWork"]) -> "PlannedWork":
        """The figures of all `works`, which are done at the same time."""
        return PlannedWork(
            to_ask=sum(one.to_ask for one in works),
            prompt_tokens=sum(one.prompt_tokens for one in works),
            shared_tokens=sum(one.shared_tokens for one in works),
            completion_tokens=sum(one.completion_tokens for one in works),
            seconds=_together(max, [one.seconds for one in works]),
            cost=_together(sum, [one.cost for one in works]),
        )


class PlannedJudge(PlannedWork, frozen=True, kw_only=True):
    """The questions for one judge: its name and its key in the configuration, and the protocols and media it answers.

    Each member of a panel is asked everything. `unpriced` are the names that prices are missing for.
    """

    name: str
    key: str
    answers: tuple[str, ...]
    unpriced: tuple[str, ...] = ()
    window: int | None = None
    oversized: dict[str, int] = {}


class PlannedProfile(PlannedWork, frozen=True, kw_only=True):
    """A `Plan`, if every judge that has the profile `name` had it; `is_chosen` if that changes none."""

    name: Profile
    is_chosen: bool


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The estimated cost of a run.

    `questions` counts different questions by type, `words` say what each type asks for, `stored` counts how many of
    them the store answers. `prompt_tokens` and `completion_tokens` are estimates over the questions still to be
    asked, `shared_tokens` the prompt tokens that repeat a context already sent. `pages_unread` pages were assumed to
    hold ASSUMED_PAGE_CHARS characters. `seconds` and `cost` are None without a price for each of the `judges`, which
    work at the same time. `unscored` counts by reason the scorecards that no judge can score because their gold is
    missing or invalid; `lacking` says by protocol which file would have held it. `rejected` are the lines that are
    not a valid task or report. `oversized` questions by type do not fit into the `window` of their judge (tokens; of
    several the smallest, by max_context and by the servers' lists of models; None if nothing says, which
    `window_unsaid` distinguishes it from a judge without one). `citations` says of which systems the marks and
    addresses lead to no pair of a statement and a page, where FACT is scored. `absent` are pages that the snapshot
    lacks, by the first reports. Where not each of the `scorecards` was tried, all figures but these two are estimated
    from those `tried`, drawn at random. `profiles` has figures for each profile; empty if no judge has a choice.
    """

    cases: int
    scorecards: int
    tried: int
    questions: dict[str, int]
    stored: int
    prompt_tokens: int
    shared_tokens: int
    completion_tokens: int
    pages: int
    pages_unread: int
    judge: str
    judges: tuple[PlannedJudge, ...]
    seconds: float | None
    cost: float | None
    unscored: dict[str, int] = {}
    rejected: tuple[Rejected, ...] = ()
    window: int | None = None
    window_unsaid: bool = False
    oversized: dict[str, int] = {}
    lacking: dict[str, str] = {}
    words: dict[str, str] = {}
    citations: tuple[str, ...] = ()
    absent: AbsentPages | None = None
    profiles: tuple[PlannedProfile, ...] = ()


def plan(config: RunConfig) -> Plan:
    """The plan of `config`; asks no judge but a server's list of models, reads no page, writes nothing.

    Raises UsageError, StoreError.
    """
    return asyncio.run(_plan(config))


async def _plan(config: RunConfig) -> Plan:
    dataset = chosen_dataset(config)
    dataset.rejected += rejected_pages(config.fetch)
    course = Course(config, dataset)
    share = min(1.0, _MOST_TRIED / max(1, course.scorecards))
    found = await dry_run(config, course.sample(config.repeats, share))
    times = course.scorecards / found.scorecards if share < 1.0 else 1.0
    book, every = make_book(config), config.resolved.bench.seats.values()
    windows = await asyncio.gather(*(_window(seat.config, book) for seat in every))
    judges = tuple(
        _planned(seat, found.notes[seat.name], window, config.prices, times)
        for seat, window in zip(every, windows, strict=True)
    )
    takers = found.notes.values()
    work = PlannedWork.together(judges)
    profiles = [await _profile(name, config, course, share, times, work) for name in get_args(Profile)]
    questions = sum((taker.questions for taker in takers), found.stored)
    oversized = sum((Counter(one.oversized) for one in judges), Counter[str]())
    judging = Judging.of(config.resolved.bench, {name: taker.identity for name, taker in found.notes.items()})
    return Plan(
        cases=len(dataset.reports) * config.repeats,
        scorecards=course.scorecards if share < 1.0 else found.scorecards,
        tried=found.scorecards,
        questions=_scaled(questions, times),
        stored=round(times * found.stored.total()),
        prompt_tokens=work.prompt_tokens,
        shared_tokens=work.shared_tokens,
        completion_tokens=work.completion_tokens,
        pages=round(times * found.pages),
        pages_unread=round(times * found.pages_unread),
        judge=judging.said,
        judges=judges,
        seconds=work.seconds,
        cost=work.cost,
        unscored=_scaled(found.unscored, times),
        lacking=dataset.lacking if found.unscored else {},
        rejected=tuple(dataset.rejected),
        window=min((window for window in windows if window is not None), default=None),
        window_unsaid=any(
            window is None and any(one.backend != "lexical" for one in seat.config.each())
            for seat, window in zip(every, windows, strict=True)
        ),
        oversized=dict(sorted(oversized.items())),
        words=dict(sorted(found.words.items())),
        citations=_citations(config, drawn(dataset.reports, share)),
        absent=absent_pages(config.fetch, dataset.reports),
        profiles=() if all(one.is_chosen for one in profiles) else tuple(profiles),
    )


async def _profile(
    name: Profile, config: RunConfig, course: Course, share: float, times: float, chosen: PlannedWork
) -> PlannedProfile:
    """The work under the profile `name`: that which is `chosen`, where it changes no judge."""
    changed = config.profiled(name)
    bench, is_chosen = changed.resolved.bench, changed.resolved.bench.judged == config.resolved.bench.judged
    work = chosen
    if not is_chosen:
        found = await dry_run(changed, course.sample(config.repeats, share))
        work = PlannedWork.together(
            [
                _planned(seat, found.notes[seat.name], None, config.prices, times)
                for seat in bench.seats.values()
            ]
        )
    return PlannedProfile(name=name, is_chosen=is_chosen, **msgspec.structs.asdict(work))


def _scaled(counts: Mapping[str, int], times: float) -> dict[str, int]:
    return {name: round(times * count) for name, count in sorted(counts.items())}


def _citations(config: RunConfig, reports: Iterable[Located]) -> tuple[str, ...]:
    if not any(protocol.name == "fact" for protocol in config.resolved.protocols):
        return ()
    systems = defaultdict[str, list[Account]](list)
    for one in reports:
        report = one.load()
        systems[one.system].append(account(report.text, report.citations))
    return tuple(lost_by(systems))


def _planned(
    seat: Seat, notes: NoteTaker, window: int | None, prices: Mapping[str, Price], times: float
) -> PlannedJudge:
    """What a judge would be asked: `times` what was noted."""
    own = prices.get(notes.identity.name)
    paid = [own] if own is not None else [prices.get(name) for name in notes.names]
    prompt, shared, completion = (
        round(times * tokens)
        for tokens in (notes.prompt_tokens, notes.shared_tokens, notes.completion_tokens)
    )
    spent = Usage(prompt, 0, completion)
    return PlannedJudge(
        name=notes.identity.name,
        key=seat.name,
        answers=seat.answers,
        to_ask=round(times * notes.questions.total()),
        prompt_tokens=prompt,
        shared_tokens=shared,
        completion_tokens=completion,
        seconds=_together(max, [_seconds(prompt - shared, completion, price) for price in paid]),
        cost=_together(sum, [None if price is None else cost_of(spent, price) for price in paid]),
        unpriced=() if own is not None else tuple(name for name in notes.names if name not in prices),
        window=window,
        oversized={} if window is None else _scaled(notes.oversized(window), times),
    )


def _together(how: Callable[[list[float]], float], amounts: Iterable[float | None]) -> float | None:
    """The amounts put together; None if one is unknown."""
    every = list(amounts)
    known = [amount for amount in every if amount is not None]
    return how(known) if len(known) == len(every) else None


async def _window(config: JudgeConfig, book: PromptBook) -> int | None:
    """The fewest tokens that one of the judge's servers takes, where it is known."""
    windows = await asyncio.gather(*(_one_window(one, book) for one in config.each()))
    return min((window for window in windows if window is not None), default=None)


async def _one_window(config: JudgeConfig, book: PromptBook) -> int | None:
    judge = make_judge(config, book)
    try:
        return await judge.window(_LIST_S) if isinstance(judge, OpenAIJudge) else config.max_context
    finally:
        await judge.close()


def _seconds(computed: int, generated: int, price: Price | None) -> float | None:
    if price is None or not price.prompt_tokens_per_second or not price.completion_tokens_per_second:
        return None
    return computed / price.prompt_tokens_per_second + generated / price.completion_tokens_per_second


def run(options: argparse.Namespace) -> int:
    """Print what a run would ask, read and cost."""
    found = plan(run_config(options))
    rejected(found.rejected)
    print_result(options, found, _print_plan)
    return INCOMPLETE if found.rejected or found.unscored else DONE


def _print_plan(found: Plan) -> None:
    """Print what a run would ask, read and cost."""
    console = out()
    asked = sum(found.questions.values()) - found.stored
    print_table(_questions_table(found))
    if found.tried < found.scorecards:
        console.print(f"estimated from {found.tried:,} of these scorecards, drawn at random")
    console.print(f"to ask: {asked:,}; in the store already: {found.stored:,}")
    if found.oversized:
        kinds = "; ".join(
            f"{count:,} of {found.words.get(kind, kind)}" for kind, count in found.oversized.items()
        )
        console.print(
            f"too long for the judge's window of {found.window:,} tokens: about {kinds}", markup=False
        )
    if found.window_unsaid and asked:
        console.print(
            "the judge's window is not known, so prompts are not checked against it: set judge: max_context, or start "
            "a judge that is down"
        )
    if found.unscored:
        console.print("scorecards that no judge can score:")
        for reason, count in found.unscored.items():
            console.print(f"  {count:,} {explained(reason)}", markup=False)
        for why in found.lacking.values():
            console.print(f"  {why}", markup=False, soft_wrap=True)
    shared = found.shared_tokens / found.prompt_tokens if found.prompt_tokens else 0.0
    console.print(
        f"prompt tokens: about {found.prompt_tokens:,}, of them {found.shared_tokens:,} ({shared:.0%}) repeat a "
        "context; "
        f"generated: about {found.completion_tokens:,}"
    )
    console.print(
        f"pages: {found.pages:,}, of them {found.pages_unread:,} not read yet "
        f"(taken as {ASSUMED_PAGE_CHARS:,} characters)"
    )
    for line in found.citations:
        console.print(line, markup=False, soft_wrap=True)
    if found.absent is not None:
        console.print(str(found.absent), markup=False, soft_wrap=True)
    if len(found.judges) > 1:
        print_table(_judges_table(found))
    if found.profiles:
        print_table(_profiles_table(found))
    if found.seconds is None or found.cost is None:
        unknown = (one for one in found.judges if one.seconds is None or one.cost is None)
        unpriced = dict.fromkeys(name for one in unknown for name in one.unpriced or (one.name,))
        console.print(
            f"time and cost: unknown; add prices: {{{escape(', '.join(f'{name}: ...' for name in unpriced))}}} to the "
            "configuration"
        )
    else:
        console.print(f"time: about {found.seconds:,.0f} s; cost: about {found.cost:,.2f}")


def _questions_table(found: Plan) -> Table:
    """What a run would ask, one line per kind of question."""
    rows = tuple((found.words.get(kind, kind), f"{count:,}") for kind, count in found.questions.items())
    return Table.of(
        title=f"{plural(found.scorecards, 'scorecard')} of {plural(found.cases, 'case')}, judged by {found.judge}",
        columns=(Column("questions: what is asked for", words=True), Column("number")),
        blocks=[rows],
    )


def _profiles_table(found: Plan) -> Table:
    """What judges would be asked, and for how long, by their profile."""
    rows = []
    for one in found.profiles:
        counts = (one.to_ask, one.prompt_tokens, one.completion_tokens)
        hours = "unknown" if one.seconds is None else f"{one.seconds / 3600:,.2f}"
        cost = "unknown" if one.cost is None else f"{one.cost:,.2f}"
        name = f"{one.name} (this run)" if one.is_chosen else one.name
        rows.append((name, *(f"{count:,}" for count in counts), hours, cost))
    return Table.of(
        title="by profile of the judge",
        columns=(
            Column("profile", words=True),
            Column("to ask"),
            Column("prompt tokens", spare=1),
            Column("generated"),
            Column("hours"),
            Column("cost"),
        ),
        blocks=[rows],
    )


def _judges_table(found: Plan) -> Table:
    """What each judge would be asked."""
    rows = []
    for one in found.judges:
        counts = (one.to_ask, one.prompt_tokens, one.completion_tokens)
        cost = "unknown" if one.cost is None else f"{one.cost:,.2f}"
        rows.append((one.name, ", ".join(one.answers), *(f"{count:,}" for count in counts), cost))
    return Table.of(
        title="by judge",
        columns=(
            Column("judge", words=True),
            Column("answers", words=True),
            Column("to ask"),
            Column("prompt tokens", spare=1),
            Column("generated", spare=2),
            Column("cost"),
        ),
        blocks=[rows],
    )
