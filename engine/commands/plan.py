"""A dry run: what a run would ask, read and cost, found by evaluating with a judge that only counts questions."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from adjudge.engine.config.run import Price, RunConfig
from adjudge.engine.evaluation.asker import Asker
from adjudge.engine.evaluation.assembly import make_book, make_fetcher, make_judge, rejected_pages
from adjudge.engine.evaluation.evaluator import Evaluator
from adjudge.engine.evaluation.reader import Reader
from adjudge.engine.formats import Rejected, load_dataset
from adjudge.engine.store import JudgmentStore, PageStore, Place
from adjudge.fetchers.page import Fetcher, Page
from adjudge.fetchers.urls import NormalURL
from adjudge.judges import Answer, Asked, Judge, Judgment, Question, Reply
from adjudge.judges.render import messages
from adjudge.judges.schema import Schema, max_tokens, schema_of
from adjudge.prompts import PromptBook
from adjudge.scoring.contract.reasons import CAUSES

__all__ = ["ASSUMED_PAGE_CHARS", "Plan", "estimate_tokens", "plan"]

A = TypeVar("A", bound=Answer)

ASSUMED_PAGE_CHARS = 8_000
_ANSWER_SHARE = 0.3


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a run would take.

    `questions` counts different questions by type, `stored` how many of them the store answers. `prompt_tokens` and
    `completion_tokens` are estimates over the questions still to be asked, `shared_tokens` the prompt tokens that
    repeat a context already sent. `pages_unread` pages were assumed to hold ASSUMED_PAGE_CHARS characters.
    `seconds` and `cost` are None without a price for the judge. `unscored` counts by reason the scorecards that
    no judge can score because their gold is missing or invalid, `rejected` are the lines that are not a valid task or
    report.
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


def plan(config: RunConfig) -> Plan:
    """The plan of `config`; asks no judge, uses no network, writes nothing. Raises UsageError, StoreError."""
    return asyncio.run(_plan(config))


async def _plan(config: RunConfig) -> Plan:
    dataset = load_dataset(config.format, config.tasks, config.reports)
    dataset.rejected += rejected_pages(config.fetch)
    book, place = make_book(config), Place.of(config.store)
    judge = make_judge(config.judge_config(), book)
    notes = NoteTaker(judge, book)
    fetcher, source = make_fetcher(config.fetch, network=False)
    judgments = ReadOnlyJudgments(place, retry_unscored=config.retry_unscored)
    pages = ReadOnlyPages(place, source, allow=config.fetch.reachable, retry_unscored=config.retry_unscored)
    await judgments.open()
    await pages.open()
    reader = AssumingReader(pages, fetcher, assume=config.fetch.mode == "live")
    protocols = config.scoring_protocols()
    asker = Asker(notes, judgments, book)
    scorecards, unscored = 0, Counter[str]()
    try:
        async for card in Evaluator(asker, reader, protocols, window=16).run(dataset.cases(config.repeats)):
            scorecards += 1
            if card.reason is not None and CAUSES[card.reason] == "gold":
                unscored[card.reason] += 1
    finally:
        await judge.close()
        if fetcher is not None:
            await fetcher.close()
    price = config.prices.get(judge.identity.name)
    return Plan(
        cases=len(dataset.reports) * config.repeats,
        scorecards=scorecards,
        questions=dict(sorted((judgments.stored + notes.questions).items())),
        stored=judgments.stored.total(),
        prompt_tokens=notes.prompt_tokens,
        shared_tokens=notes.shared_tokens,
        completion_tokens=notes.completion_tokens,
        pages=len(reader.urls),
        pages_unread=len(reader.assumed),
        judge=judge.identity.name,
        seconds=_seconds(notes, price),
        cost=_cost(notes, price),
        unscored=dict(sorted(unscored.items())),
        rejected=tuple(dataset.rejected),
    )


class NoteTaker:
    """Stands in for a judge with the same identity: gives answers of a valid form, and counts questions and tokens."""

    def __init__(self, judge: Judge, book: PromptBook) -> None:
        self.identity = judge.identity
        self.questions: Counter[str] = Counter()
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self._context_tokens: dict[bytes, int] = {}
        self._asked_of: defaultdict[bytes, int] = defaultdict(int)
        self._book = book

    @property
    def shared_tokens(self) -> int:
        """Prompt tokens that repeat a context sent before."""
        return sum(tokens * (self._asked_of[group] - 1) for group, tokens in self._context_tokens.items())

    async def answer(self, question: Question[A], asked: Asked) -> Reply[A]:
        """The question's lexical answer, or the smallest that fits its type."""
        schema = schema_of(question, self.identity.analysis)
        self.questions[type(question).__name__] += 1
        sent = messages(question, self._book, schema, b"plan")
        self.prompt_tokens += sum(estimate_tokens(message["content"]) for message in sent)
        self.completion_tokens += round(max_tokens(schema) * _ANSWER_SHARE)
        group = question.context.digest
        self._asked_of[group] += 1
        if group not in self._context_tokens:
            texts = [section.text for section in question.context.sections]
            self._context_tokens[group] = sum(map(estimate_tokens, [sent[0]["content"], *texts]))
        answer = question.lexical()
        if answer is None:
            smallest = msgspec.json.encode(_smallest(schema_of(question, True)))
            answer = question.typed(msgspec.json.decode(smallest, type=question.answer))
        return Reply(answer=answer)

    async def close(self) -> None:
        """Nothing to release."""


class ReadOnlyJudgments(JudgmentStore):
    """A store of judgments that counts its answers by question type and keeps nothing new."""

    stored: Counter[str]

    def __init__(self, place: Place, *, retry_unscored: bool) -> None:
        super().__init__(place, retry_unscored=retry_unscored)
        self.stored = Counter()

    def at_hand(self, keys: Sequence[bytes], questions: Sequence[Question[A]]) -> list[Judgment[A] | None]:
        """The stored judgments, counted."""
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


def estimate_tokens(text: str) -> int:
    """Roughly how many tokens `text` has: one per four ASCII characters, two per three others."""
    ascii_chars = len(text.encode("ascii", "ignore"))
    return round(ascii_chars / 4 + (len(text) - ascii_chars) / 1.5)


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


def _seconds(notes: NoteTaker, price: Price | None) -> float | None:
    if price is None or not price.prompt_tokens_per_second or not price.completion_tokens_per_second:
        return None
    computed = notes.prompt_tokens - notes.shared_tokens
    return (
        computed / price.prompt_tokens_per_second
        + notes.completion_tokens / price.completion_tokens_per_second
    )


def _cost(notes: NoteTaker, price: Price | None) -> float | None:
    if price is None:
        return None
    return (
        notes.prompt_tokens * price.cost_per_million_prompt_tokens
        + notes.completion_tokens * price.cost_per_million_completion_tokens
    ) / 1e6
