"""A dry run: what a run would ask, read and cost, found by evaluating with a judge that only counts questions."""

import asyncio

import msgspec

from adjudge.engine.config.judge import JudgeConfig
from adjudge.engine.config.run import Price, RunConfig
from adjudge.engine.evaluation.assembly import make_book, make_judge, rejected_pages
from adjudge.engine.evaluation.budget import cost_of
from adjudge.engine.evaluation.dry_run import ASSUMED_PAGE_CHARS, NoteTaker, dry_run
from adjudge.engine.formats import Rejected
from adjudge.engine.records.choice import chosen_dataset
from adjudge.judges import Usage
from adjudge.judges.openai import OpenAIJudge
from adjudge.prompts import PromptBook

__all__ = ["ASSUMED_PAGE_CHARS", "Plan", "plan"]

_LIST_S = 5.0  # for a server's list of models


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a run would take.

    `questions` counts different questions by type, `stored` how many of them the store answers. `prompt_tokens` and
    `completion_tokens` are estimates over the questions still to be asked, `shared_tokens` the prompt tokens that
    repeat a context already sent. `pages_unread` pages were assumed to hold ASSUMED_PAGE_CHARS characters.
    `seconds` and `cost` are None without a price for the judge. `unscored` counts by reason the scorecards that
    no judge can score because their gold is missing or invalid; `lacking` says by protocol which file would have held
    it. `rejected` are the lines that are not a valid task or report. `oversized` questions by type do not fit into the
    judge's `window` (tokens; of several judges the smallest, by max_context and by the servers' lists of models; None
    if nothing says, which `window_unsaid` tells from a judge without one).
    """

    cases: int
    scorecards: int
    questions: dict[str, int]
    stored: int
    prompt_tokens: int
    shared_tokens: int
    completion_tokens: int
    pages: int
    pages_unread: int
    judge: str
    seconds: float | None
    cost: float | None
    unscored: dict[str, int] = {}
    rejected: tuple[Rejected, ...] = ()
    window: int | None = None
    window_unsaid: bool = False
    oversized: dict[str, int] = {}
    lacking: dict[str, str] = {}


def plan(config: RunConfig) -> Plan:
    """The plan of `config`; asks no judge but a server's list of models, reads no page, writes nothing.

    Raises UsageError, StoreError.
    """
    return asyncio.run(_plan(config))


async def _plan(config: RunConfig) -> Plan:
    dataset = chosen_dataset(config)
    dataset.rejected += rejected_pages(config.fetch)
    found = await dry_run(config, dataset.cases(config.repeats))
    notes = found.notes
    window = await _window(config.judge_config(), make_book(config))
    price = config.prices.get(notes.identity.name)
    spent = Usage(notes.prompt_tokens, 0, notes.completion_tokens)
    return Plan(
        cases=len(dataset.reports) * config.repeats,
        scorecards=found.scorecards,
        questions=dict(sorted((found.stored + notes.questions).items())),
        stored=found.stored.total(),
        prompt_tokens=notes.prompt_tokens,
        shared_tokens=notes.shared_tokens,
        completion_tokens=notes.completion_tokens,
        pages=found.pages,
        pages_unread=found.pages_unread,
        judge=notes.identity.name,
        seconds=_seconds(notes, price),
        cost=None if price is None else cost_of(spent, price),
        unscored=dict(sorted(found.unscored.items())),
        lacking=dataset.lacking if found.unscored else {},
        rejected=tuple(dataset.rejected),
        window=window,
        window_unsaid=window is None
        and any(one.backend != "lexical" for one in config.judge_config().each()),
        oversized={} if window is None else notes.oversized(window),
    )


async def _window(config: JudgeConfig, book: PromptBook) -> int | None:
    """The fewest tokens that one of the judges takes, where it is known."""
    windows = await asyncio.gather(*(_one_window(one, book) for one in config.each()))
    return min((window for window in windows if window is not None), default=None)


async def _one_window(config: JudgeConfig, book: PromptBook) -> int | None:
    judge = make_judge(config, book)
    try:
        return await judge.window(_LIST_S) if isinstance(judge, OpenAIJudge) else config.max_context
    finally:
        await judge.close()


def _seconds(notes: NoteTaker, price: Price | None) -> float | None:
    if price is None or not price.prompt_tokens_per_second or not price.completion_tokens_per_second:
        return None
    computed = notes.prompt_tokens - notes.shared_tokens
    return (
        computed / price.prompt_tokens_per_second
        + notes.completion_tokens / price.completion_tokens_per_second
    )
