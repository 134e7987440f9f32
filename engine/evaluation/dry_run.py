"""Evaluating with a judge that only takes notes: what would be asked, and what would not fit into a judge's window."""

import asyncio
import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, cast

import msgspec

from adjudge.engine.config.judge import JudgeConfig
from adjudge.engine.config.run import RunConfig
from adjudge.engine.evaluation.asker import Asker, Reader
from adjudge.engine.evaluation.assembly import make_book, make_fetcher, make_judge
from adjudge.engine.evaluation.evaluator import Evaluator
from adjudge.engine.store import JudgmentStore, PageStore, Place
from adjudge.fetchers.page import Fetcher, Page
from adjudge.fetchers.urls import NormalURL
from adjudge.judges import Answer, Asked, Judge, Judgment, Question, Reply
from adjudge.judges.chat import messages
from adjudge.judges.panel import PanelJudge
from adjudge.judges.plural import plural
from adjudge.judges.profile import asked_schema
from adjudge.judges.published import PublishedQuestion, Said
from adjudge.judges.question import words_of
from adjudge.judges.schema import Schema, likely_tokens, max_tokens, schema_of, shortened
from adjudge.prompts import PromptBook
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import ScoringProtocol
from adjudge.scoring.contract.reasons import CAUSES
from adjudge.scoring.text.looks import estimate_tokens

A = TypeVar("A", bound=Answer)

ASSUMED_PAGE_CHARS = 8_000
_ANSWER_SHARE = 0.3


class DryRun(msgspec.Struct, frozen=True):
    """What came of it: `notes` on what each judge is to be asked, by its name, what is `stored`, and pages.

    `words` say by type what questions ask for. `scorecards` are counted, and by reason the `unscored` ones whose gold
    is missing or invalid.
    """

    notes: dict[str, "NoteTaker"]
    stored: Counter[str]
    pages: int
    pages_unread: int
    scorecards: int
    unscored: Counter[str]
    words: dict[str, str]


async def dry_run(
    config: RunConfig,
    cases: Iterable[Case],
    protocols: tuple[ScoringProtocol, ...] | None = None,
    place: Place | None = None,
) -> DryRun:
    """Evaluate `cases` under `protocols`, or the configured ones, with what is stored at `place`.

    Asks no judge, uses no network, writes nothing. Raises UsageError, StoreError.
    """
    config.published_prompts()
    book, place = make_book(config), place or Place.of(config.store)
    configured = {name: seat.config for name, seat in config.resolved.bench.seats.items()}
    judges = {name: make_judge(one, book) for name, one in configured.items()}
    notes = {}
    for name, one in configured.items():
        shrinks = all(member.backend == "openai" for member in one.each())
        notes[name] = NoteTaker(judges[name], book, _thinking_tokens(one), shrinks)
    fetcher, source = make_fetcher(config.fetch, network=False)
    judgments = ReadOnlyJudgments(place, retry_unscored=config.retry_unscored)
    pages = ReadOnlyPages(place, source, allow=config.fetch.reachable, retry_unscored=config.retry_unscored)
    await judgments.open()
    await pages.open()
    reader = AssumingReader(pages, fetcher, assume=config.fetch.mode == "live")
    evaluator = Evaluator(
        config.resolved.bench,
        {name: Asker(taker, judgments, book) for name, taker in notes.items()},
        reader,
        protocols or config.resolved.protocols,
        16,
        config.report_limit,
    )
    scorecards, unscored = 0, Counter[str]()
    try:
        async for card in evaluator.run(cases):
            scorecards += 1
            if card.reason is not None and CAUSES[card.reason] == "gold":
                unscored[card.reason] += 1
    finally:
        await asyncio.gather(*(judge.close() for judge in judges.values()))
        if fetcher is not None:
            await fetcher.close()
    return DryRun(
        notes, judgments.stored, len(reader.urls), len(reader.assumed), scorecards, unscored, judgments.words
    )


def longest(cases: Iterable[Case], count: int) -> list[Case]:
    """At most `count` of `cases`: those whose report, task and gold have the most characters, the longest first."""
    return heapq.nlargest(count, cases, key=_characters)


def _characters(case: Case) -> int:
    return (
        len(case.report.text)
        + len(case.task.prompt)
        + sum(len(bytes(gold)) for gold in case.task.gold.values())
    )


def complaint(notes: "NoteTaker", window: int) -> str | None:
    """How many prompts do not fit into `window` tokens, in one line; None if all fit."""
    oversized = notes.oversized(window)
    if not oversized:
        return None
    kinds = ", ".join(
        f"{count:,} of {plural(len(notes.sizes[kind]), 'question')} ({notes.words[kind]})"
        for kind, count in oversized.items()
    )
    return (
        f"judge {notes.identity.name}: a window of {window:,} tokens is too small for about {kinds}, which will be "
        "context_overflow; serve the model with a longer context, or leave long reports out"
    )


def _thinking_tokens(judge: JudgeConfig) -> int:
    """The most tokens that thinking takes of the judge's window; of a panel, of any member's."""
    if judge.backend == "panel":
        return max(map(_thinking_tokens, judge.panel()))
    return judge.thinking_tokens if judge.thinking else 0


class NoteTaker:
    """Stands in for a judge with the same identity: gives answers of a valid form, and counts questions and tokens.

    `sizes` has, by type, the tokens that each prompt and its answer need of the judge's window: the longest answer, or
    the likely one where answers may shrink (`shrinks`). `words` say what the type asks for. `names` are those that
    prices may be given for: the members' for a panel, each of which is asked everything.
    """

    def __init__(
        self, judge: Judge, book: PromptBook, thinking_tokens: int = 0, shrinks: bool = False
    ) -> None:
        self.identity = judge.identity
        members = judge.members if isinstance(judge, PanelJudge) else (judge,)
        self.names = tuple(member.identity.name for member in members)
        self.questions: Counter[str] = Counter()
        self.sizes: defaultdict[str, list[int]] = defaultdict(list)
        self.words: dict[str, str] = {}
        self._thinking_tokens = thinking_tokens
        self._shrinks = shrinks
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self._context_tokens: dict[bytes, int] = {}
        self._asked_of: defaultdict[bytes, int] = defaultdict(int)
        self._book = book

    @property
    def shared_tokens(self) -> int:
        """Prompt tokens that repeat a context sent before."""
        return sum(tokens * (self._asked_of[group] - 1) for group, tokens in self._context_tokens.items())

    def oversized(self, window: int) -> dict[str, int]:
        """How many questions of which type do not fit into `window` tokens."""
        found = {kind: sum(size > window for size in sizes) for kind, sizes in self.sizes.items()}
        return {kind: count for kind, count in sorted(found.items()) if count}

    async def answer(self, question: Question[A], asked: Asked) -> Reply[A]:
        """The question's example or lexical answer, or the smallest that fits its type."""
        schema = asked_schema(question, self.identity.analysis, self.identity.profile)
        self.questions[type(question).__name__] += 1
        self.words[type(question).__name__] = words_of(question)
        sent = messages(question, self._book, schema, b"plan")
        prompt = sum(estimate_tokens(message["content"]) for message in sent)
        answer, most, likely = _assumed(question, schema)
        self.prompt_tokens += prompt
        self.completion_tokens += likely
        if self._shrinks and not isinstance(question, PublishedQuestion):
            most = max(likely, likely_tokens(shortened(schema, 0)))
        self.sizes[type(question).__name__].append(prompt + most + self._thinking_tokens)
        group = question.context.digest
        self._asked_of[group] += 1
        if group not in self._context_tokens:
            texts = [section.text for section in question.context.sections]
            self._context_tokens[group] = sum(map(estimate_tokens, [sent[0]["content"], *texts]))
        return Reply(answer=answer)

    async def close(self) -> None:
        """Nothing to release."""


class ReadOnlyJudgments(JudgmentStore):
    """A store of judgments that counts its answers by question type and keeps nothing new.

    `words` say what every type that was looked for asks for.
    """

    stored: Counter[str]
    words: dict[str, str]

    def __init__(self, place: Place, *, retry_unscored: bool) -> None:
        super().__init__(place, retry_unscored=retry_unscored)
        self.stored = Counter()
        self.words = {}

    def at_hand(self, keys: Sequence[bytes], questions: Sequence[Question[A]]) -> list[Judgment[A] | None]:
        """The stored judgments, counted."""
        self.words |= {type(question).__name__: words_of(question) for question in questions}
        return list(map(self._counted, super().at_hand(keys, questions)))

    async def get(self, key: bytes, question: Question[A]) -> Judgment[A] | None:
        """The stored judgment, counted."""
        return self._counted(await super().get(key, question))

    def _counted(self, found: Judgment[A] | None) -> Judgment[A] | None:
        if found is not None:
            self.stored[found.question] += 1
        return found

    def put(self, judgment: Judgment[A]) -> None:
        """Keep nothing."""


class ReadOnlyPages(PageStore):
    """A store of pages that keeps nothing new."""

    def put(self, url: str, page: Page) -> None:
        """Keep nothing."""


class AssumingReader(Reader):
    """Reads what is available, and assumes a page of ordinary length for the rest."""

    def __init__(self, store: PageStore, fetcher: Fetcher | None, assume: bool) -> None:
        super().__init__(store, fetcher)
        self.urls: set[str] = set()
        self.assumed: set[str] = set()
        self._assume = assume

    async def page(self, address: NormalURL) -> Page:
        """The stored or frozen page, or an assumed one."""
        page = await super().page(address)
        self.urls.add(page.url)
        if page.reason != "page_not_in_snapshot" or not self._assume:
            return page
        self.assumed.add(page.url)
        text = f"{page.url} ".ljust(ASSUMED_PAGE_CHARS, ".")
        return msgspec.structs.replace(page, status="read", reason=None, text=text)


def _assumed(question: Question[A], schema: Schema) -> tuple[A, int, int]:
    """An answer to `question`, the most tokens that one may take, and how many one is likely to."""
    if isinstance(question, PublishedQuestion):
        said = question.example()
        tokens = estimate_tokens(said)
        return cast(A, Said(text=said)), tokens, tokens
    answer = question.lexical()
    if answer is None:
        smallest = msgspec.json.encode(_smallest(schema_of(question, True)))
        answer = question.typed(msgspec.json.decode(smallest, type=question.answer))
    most = max_tokens(schema)
    return answer, most, round(most * _ANSWER_SHARE)


def _smallest(schema: Schema) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _smallest(schema["anyOf"][0])
    match schema.get("type"):
        case "object":
            return {name: _smallest(value) for name, value in schema["properties"].items()}
        case "array":
            return [_smallest(schema["items"])] * int(schema.get("minItems", 0))
        case "string":
            return "x" * int(schema.get("minLength", 0))
        case "boolean":
            return False
    return None
