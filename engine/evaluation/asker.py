"""Asking: the store first, then the judge; two equal questions in flight are one call.

Reading: the store of pages first, then the fetcher; two equal URLs in flight are one read.
"""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from itertools import chain
from operator import itemgetter
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from adjudge.engine.config.fetch import Share
from adjudge.engine.evaluation.gate import NOT_ASKED
from adjudge.engine.store import JudgmentStore, PageStore
from adjudge.engine.telemetry.metrics import Metrics
from adjudge.engine.telemetry.tracing import Spans
from adjudge.fetchers.flight import SingleFlight, together
from adjudge.fetchers.page import Fetcher, Page, PageSource, failed
from adjudge.fetchers.urls import NormalURL
from adjudge.judges import Answer, Asked, Judge, Judgment, Question, Reply
from adjudge.judges.chat import prompt_digests
from adjudge.judges.profile import asked_schema
from adjudge.prompts import PromptBook
from adjudge.scoring.contract.answers import told, values

NO_PAGES = "off"
"""The source of pages where none are read."""


class Reader(PageSource):
    """Reads pages from `store`, else from `fetcher`, and stores them.

    Without a fetcher, a page that is not stored is page_not_in_snapshot; pages_off where no page is read at all.

    `share` is how many pages a case may wait for at once. For `patience_s` seconds, it comes back to those whose sites
    rest.

    `source` is the store's. `from_store` and `from_fetcher` count the pages, `metrics` in detail. One event loop.
    """

    def __init__(
        self,
        store: PageStore,
        fetcher: Fetcher | None,
        metrics: Metrics | None = None,
        share: Share | None = None,
        patience_s: float = 0.0,
    ) -> None:
        self.share = share
        self.patience_s = patience_s
        self.source = store.source
        self.metrics = metrics or Metrics()
        self.from_store = 0
        self.from_fetcher = 0
        self.store = store
        self._fetcher = fetcher
        self._flights: SingleFlight[NormalURL, Page] = SingleFlight()

    async def page(self, address: NormalURL) -> Page:
        """The page at `address`. Raises only StoreError."""
        if address not in self._flights and (stored := await self.store.get(address)) is not None:
            self.from_store += 1
            self.metrics.stored(self.store.name)
            return stored
        return await self._flights.do(address, lambda: self._fetched(address))

    async def _fetched(self, address: NormalURL) -> Page:
        if self._fetcher is None:
            if self.source == NO_PAGES:
                return failed(address, "pages_off", "fetch is off")
            return failed(address, "page_not_in_snapshot", "this URL was never read into the store")
        page = await self._fetcher.page(address)
        if page.reason == "page_deferred":  # never requested: nothing is known of it
            return page
        self.metrics.fetched(page)
        # A page that the snapshot lacks was not read, and each report that cites it looks for it again.
        if page.reason != "page_not_in_snapshot":
            self.from_fetcher += 1
            self.store.put(address, page)
        return page


A = TypeVar("A", bound=Answer)

ENGINE = f"adjudge {version('adjudge')}"


class Asker:
    """Answers questions from `store`, else from `judge`, and keeps what came back.

    `from_store` and `from_judge` count the answers, `metrics` in detail; `spans` traces calls. One event loop.
    """

    def __init__(
        self,
        judge: Judge,
        store: JudgmentStore,
        book: PromptBook,
        metrics: Metrics | None = None,
        spans: Spans | None = None,
    ) -> None:
        self.judge = judge
        self._spans = spans
        self.metrics = metrics or Metrics()
        self.from_store = 0
        self.from_judge = 0
        self.store = store
        self._book = book
        self._flights: SingleFlight[bytes, Judgment[Any]] = SingleFlight()
        self._at_judge: Counter[int] = Counter()
        self._replied = asyncio.Event()
        self._static: dict[tuple[type, str, int, tuple[float, ...]], bytes] = {}

    def key(self, question: Question[A], repeat: int) -> bytes:
        """The 16-byte key of `question`: equal keys are the same question to the same judge."""
        static = self._static_part(question)
        parts = (static, question.context.digest, repeat.to_bytes(4, "big"), question.identity())
        return hashlib.blake2b(b"".join(parts), digest_size=16).digest()

    async def room(self, questions: int, priority: int) -> None:
        """Wait until the judge has fewer than `questions` of this priority or a lower number, which goes first."""
        while sum(n for other, n in self._at_judge.items() if other <= priority) >= questions:
            self._replied.clear()
            await self._replied.wait()

    def _static_part(self, question: Question[A]) -> bytes:
        """The hash of what all questions of one type, language and length share."""
        kind = (type(question), question.language, question.count, question.options)
        found = self._static.get(kind)
        if found is None:
            prompts = prompt_digests(question, self._book)
            who = self.judge.identity
            parts = (
                who.fingerprint,
                who.sampling,
                prompts,
                asked_schema(question, who.analysis, who.profile),
            )
            found = self._static[kind] = hashlib.blake2b(
                msgspec.msgpack.encode(parts), digest_size=16
            ).digest()
        return found

    async def ask(self, question: Question[A], repeat: int = 0, priority: int = 0) -> Judgment[A]:
        """The judgment of `question`. Raises only what the judge raises for itself (engine-fatal) and StoreError."""
        key = self.key(question, repeat)
        (judgment,) = self.store.at_hand((key,), (question,))
        if judgment is None:
            return await self._find(question, Asked(key=key, repeat=repeat, priority=priority))
        self.count_stored(1)
        return judgment

    async def ask_all(
        self,
        questions: Sequence[Question[A]],
        repeat: int = 0,
        priority: int = 0,
        each: Callable[[Question[A], Judgment[A]], None] = lambda question, judgment: None,
    ) -> list[Judgment[A]]:
        """What `ask` gives for `questions`, asked all at once, in order; `each` is called with each as it comes."""
        keys = [self.key(question, repeat) for question in questions]
        known = self.store.at_hand(keys, questions)
        stored = [judgment for judgment in known if judgment is not None]
        self.count_stored(len(stored))
        for question, judgment in zip(questions, known, strict=True):
            if judgment is not None:
                each(question, judgment)
        if len(stored) == len(known):
            await asyncio.sleep(0)  # others come in between, however much the store has
            return stored

        async def find(question: Question[A], key: bytes) -> Judgment[A]:
            judgment = await self._find(question, Asked(key=key, repeat=repeat, priority=priority))
            each(question, judgment)
            return judgment

        late = (
            find(question, key)
            for question, key, judgment in zip(questions, keys, known, strict=True)
            if judgment is None
        )
        found = iter(await together(*late))
        return [next(found) if judgment is None else judgment for judgment in known]

    async def _find(self, question: Question[A], asked: Asked) -> Judgment[A]:
        """The judgment that the store has elsewhere, or else the judge's."""
        key = asked.key
        if key not in self._flights and (stored := await self.store.get(key, question)) is not None:
            self.count_stored(1)
            return stored
        return await self._flights.do(key, lambda: self._answer(question, asked))

    def count_stored(self, judgments: int) -> None:
        """Count so many `judgments` as answered from the store."""
        self.from_store += judgments
        self.metrics.stored(self.store.name, judgments)

    async def _answer(self, question: Question[A], asked: Asked) -> Judgment[A]:
        started = time.perf_counter()
        self._at_judge[asked.priority] += 1
        try:
            reply = await self.judge.answer(question, asked)
        finally:
            self._at_judge[asked.priority] -= 1
            if not self._at_judge[asked.priority]:
                del self._at_judge[asked.priority]
            self._replied.set()
        self.from_judge += 1
        judgment = Judgment(
            key=asked.key,
            group=question.context.digest,
            question=type(question).__name__,
            answer=reply.answer,
            status="unscored" if reply.answer is None else "scored",
            reason=reply.reason,
            text=reply.text,
            finish_reason=reply.finish_reason,
            usage=reply.usage,
            seconds=reply.seconds,
            judge=self.judge.identity.fingerprint,
            engine=ENGINE,
            written_at=time.time_ns() // 1000,
            served=reply.served,
            system_fingerprint=reply.system_fingerprint,
            constrained=reply.constrained,
        )
        waited = time.perf_counter() - started
        self.metrics.answered(judgment, told(question, judgment), values(question.answer), waited)
        if self._spans is not None and reply is not NOT_ASKED:
            self._spans.record(question, judgment)
        if reply is not NOT_ASKED and reply.reason != "deadline":
            self.store.put(judgment)
        return judgment


class ProtocolAsker:
    """Asks the questions of one protocol: of its `own` judge, or of the judge of the medium that a question carries."""

    def __init__(self, own: Asker, media: Mapping[str, Asker] = MappingProxyType({})) -> None:
        self.own = own
        self._media = media

    def of(self, question: Question[A]) -> Asker:
        """The asker that `question` goes to."""
        kinds = (item.kind for item in question.context.media)
        return next((self._media[kind] for kind in kinds if kind in self._media), self.own)

    async def ask_all(
        self,
        questions: Sequence[Question[A]],
        repeat: int = 0,
        priority: int = 0,
        each: Callable[[Question[A], Judgment[A]], None] = lambda question, judgment: None,
    ) -> list[Judgment[A]]:
        """What `Asker.ask_all` gives, from several judges at once."""
        if not self._media:
            return await self.own.ask_all(questions, repeat, priority, each)
        places: dict[Asker, list[int]] = {}
        for place, question in enumerate(questions):
            places.setdefault(self.of(question), []).append(place)
        if len(places) < 2:
            (asker,) = places or (self.own,)
            return await asker.ask_all(questions, repeat, priority, each)
        asked = (
            asker.ask_all([questions[place] for place in own], repeat, priority, each)
            for asker, own in places.items()
        )
        found = chain.from_iterable(
            zip(own, answers, strict=True)
            for own, answers in zip(places.values(), await asyncio.gather(*asked), strict=True)
        )
        return [judgment for _, judgment in sorted(found, key=itemgetter(0))]


class Remembered:
    """A judge whose answers are kept: a member of a panel, each of whose opinions is a judgment of its own."""

    def __init__(self, asker: Asker) -> None:
        self.identity = asker.judge.identity
        self._asker = asker

    async def answer(self, question: Question[A], asked: Asked) -> Reply[A]:
        """The stored or fresh judgment, as a reply."""
        judgment = await self._asker.ask(question, asked.repeat, asked.priority)
        return Reply(
            answer=judgment.answer,
            reason=judgment.reason,
            text=judgment.text,
            finish_reason=judgment.finish_reason,
            usage=judgment.usage,
            seconds=judgment.seconds,
            served=judgment.served,
            system_fingerprint=judgment.system_fingerprint,
            constrained=judgment.constrained,
        )

    async def close(self) -> None:
        """Close the judge."""
        await self._asker.judge.close()
