"""Runs cases through protocols in a sliding window; the same class works in this process and on a cluster.

Scorecards that need not be made again: everything that decided them is as it was.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from functools import cache
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

import adjudge.judges
import adjudge.scoring
from adjudge.engine.config.judge import Bench
from adjudge.engine.evaluation.asker import Asker, ProtocolAsker, Reader
from adjudge.engine.evaluation.deferred import PAUSE, Deferred
from adjudge.engine.store import JudgmentStore
from adjudge.engine.store.cards import whole
from adjudge.engine.store.scorecards import KeptCards
from adjudge.engine.telemetry.logs import about, case_name
from adjudge.engine.telemetry.metrics import Family, Metrics
from adjudge.fetchers.page import Page, PageSource, failed
from adjudge.fetchers.urls import ByPage, NormalURL, site_of
from adjudge.judges import Answer, JudgeIdentity, Judgment, Question, Usage
from adjudge.scoring.contract.answers import AnswerTally
from adjudge.scoring.contract.case import Case, Report, Task, Unread
from adjudge.scoring.contract.protocol import (
    MAX_REPORT_CHARS,
    PublishedCalls,
    ScoringProtocol,
    by_case,
    own_doing,
    score_case,
)
from adjudge.scoring.contract.scorecard import Scorecard
from adjudge.scoring.text.aside import storable, when_idle
from adjudge.scoring.text.asked import asked_of
from adjudge.scoring.text.looks import Looks, looks_of

_OWN = f"{adjudge.scoring.__name__}."
_NUMERIC = ("msgspec", "numba", "numpy")  # numbers may differ between their versions
_REMEMBERED = 64  # the reports of one task come one after the other
T = TypeVar("T")
M = TypeVar("M")


class _Remembered(Generic[T, M]):
    """What was made, by `make`, of the last few objects that were asked for."""

    def __init__(self, make: Callable[[T], M]) -> None:
        self._make = make
        self._made: dict[int, tuple[T, M]] = {}  # an object that is kept keeps its id

    def of(self, thing: T) -> M:
        """What was made of `thing`, or is made now."""
        known = self._made.get(id(thing))
        if known is None:
            made = self._make(thing)
            if len(self._made) >= _REMEMBERED:
                del self._made[next(iter(self._made))]
            known = self._made[id(thing)] = thing, made
        return known[1]


class Recall:
    """Finds scorecards in `cards` by a key of all that decides them, as long as `judgments` has what they rest on.

    That is our code, the protocol with its options, the `judges` of a protocol, and `ambient`: all else that a run's
    configuration adds (prompts, files of criteria). Protocols from outside are not known to depend on nothing else, and
    those that ask in a benchmark's own words depend on its checkout: theirs are always made anew.
    """

    def __init__(
        self,
        cards: KeptCards,
        judgments: JudgmentStore,
        protocols: Iterable[ScoringProtocol],
        judges: Callable[[str], Sequence[JudgeIdentity]],
        ambient: object,
    ) -> None:
        self._cards = cards
        self._judgments = judgments
        self._static = {
            one.name: _digest([_code(), ambient, type(one).__qualname__, one, judges(one.name)])
            for one in protocols
            if _is_known(one)
        }
        self._digests = _Remembered(_digest)

    def key(self, case: Case, protocol: ScoringProtocol) -> bytes | None:
        """The 16-byte key of the scorecard of `case`, or None where something else may decide it."""
        static = self._static.get(protocol.name)
        if static is None:
            return None
        told = [case.task, case.report] if case.rival is None else [case.task, case.report, case.rival]
        try:
            shown = [self._digests.of(one) for one in told]
        except UnicodeError:  # a lone surrogate, which has no bytes to hash
            return None
        return hashlib.blake2b(
            b"".join([static, case.repeat.to_bytes(4, "big"), *shown]), digest_size=16
        ).digest()

    async def cards(self, keys: Sequence[bytes | None]) -> list[Scorecard | None]:
        """Of each of `keys`, its scorecard, if it and all its judgments are in the store. Raises StoreError."""
        found = dict.fromkeys(key for key in keys if key is not None)
        stored = [card for card in await self._cards.get(list(found)) if card is not None]
        held = self._judgments.holds(card.judgments for card in stored)
        kept = {bytes.fromhex(card.key): card for card, whole in zip(stored, held, strict=True) if whole}
        return [None if key is None else kept.get(key) for key in keys]


def _is_known(protocol: ScoringProtocol) -> bool:
    kind = type(protocol)
    return (
        kind.__module__.startswith(_OWN)
        and issubclass(kind, msgspec.Struct)
        and not isinstance(protocol, PublishedCalls)
    )


def _digest(what: Any) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(what, order="deterministic"), digest_size=16).digest()


@cache
def _code() -> str:
    """A digest of everything of ours that makes a scorecard of answers."""
    found = hashlib.blake2b(digest_size=16)
    found.update(repr([(name, version(name)) for name in _NUMERIC]).encode())
    for package in (adjudge.scoring, adjudge.judges):
        folder = Path(package.__path__[0])
        for file in sorted(folder.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                found.update(f"{file.relative_to(folder)} {file.stat().st_size}\n".encode())
                found.update(file.read_bytes())
    return found.hexdigest()


A = TypeVar("A", bound=Answer)

MOST_TIMEOUTS = 64
"""Pages of one case that are waited for in vain: what it cites beyond them takes no more of the run's time."""
_WAITING = 4  # times the window: cases that wait for sites; those beyond that are for the next run
_AT_ONCE = 64  # pairs looked up together: their reports are read without a pause


class Scored(NamedTuple):
    """A scorecard, and whether it was read from the store."""

    card: Scorecard
    is_stored: bool


_Done = asyncio.Queue[list[Scored] | None]


class _Pair(NamedTuple):
    """A case under a protocol, and the key of their scorecard; None where something beyond the key may decide it."""

    case: Case
    protocol: ScoringProtocol
    key: bytes | None


class Counts(msgspec.Struct, frozen=True):
    """Where judgments and pages came from."""

    from_store: int = 0
    from_judge: int = 0
    pages_from_store: int = 0
    pages_read: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.from_store + other.from_store,
            self.from_judge + other.from_judge,
            self.pages_from_store + other.pages_from_store,
            self.pages_read + other.pages_read,
        )


class CaseTools(PageSource):
    """What one protocol may do for one case. Remembers the judgments and pages that it used.

    `own` pages are all that there are for this case, and known for it alone: they are neither read nor stored.
    `answers` are what was said, by question type; `reasons` counts questions without an answer. `deferred` has the
    pages to come back for.
    """

    def __init__(
        self,
        asker: ProtocolAsker,
        reader: Reader,
        repeat: int,
        priority: int = 0,
        own: Mapping[NormalURL, Page] | None = None,
    ) -> None:
        self._own = None if own is None else ByPage(own)
        self.reasons: Counter[str] = Counter()
        self.deferred = Deferred()
        self._until: float | None = None  # when patience is over
        self._asker = asker
        self._reader = reader
        self._repeat = repeat
        self._priority = priority
        self.answers = AnswerTally()
        self.judgments: dict[str, Usage] = {}
        self.pages: dict[str, None] = {}
        self._lines: dict[str, asyncio.Semaphore] = {}
        self._all = None if reader.share is None else asyncio.Semaphore(reader.share.in_all)
        self._timeouts = 0
        self.asked = 0
        self.answered = 0

    async def ask(self, question: Question[A]) -> Judgment[A]:
        """The judgment of `question` under this case's repeat and priority."""
        (judgment,) = await self.ask_all((question,))
        return judgment

    async def ask_all(self, questions: Iterable[Question[A]]) -> list[Judgment[A]]:
        """The judgments of `questions`, asked concurrently, in the order of `questions`."""
        asked = tuple(questions)
        self.asked += len(asked)
        return await self._asker.ask_all(asked, self._repeat, self._priority, each=self._remember)

    @property
    def rests_on_answers(self) -> bool:
        """Whether answers were all that was used, and every question has one."""
        return 0 < self.asked == self.answered and not self.pages

    def _remember(self, question: Question[A], judgment: Judgment[A]) -> None:
        self.answered += judgment.answer is not None
        if judgment.reason is not None:
            self.reasons[judgment.reason] += 1
        key = judgment.key.hex()
        if key not in self.judgments:
            self.answers.count(question, judgment)
        self.judgments[key] = judgment.usage

    async def page(self, address: NormalURL) -> Page:
        """The page at `address`."""
        if self._own is None:
            page = self.deferred.known(address) or await self._read(address)
        else:
            found = self._own.find(address)
            page = (
                failed(address, "page_not_in_snapshot", "not among the pages that came with the report")
                if found is None
                else msgspec.structs.replace(found[1], url=address)
            )
        self.pages[page.url] = None
        return page

    async def _read(self, address: NormalURL) -> Page:
        async with self._turn(address), self._all or nullcontext():
            if self._timeouts >= MOST_TIMEOUTS:
                why = f"not asked for: {MOST_TIMEOUTS} other pages of its report have timed out"
                return failed(address, "page_deferred", why)
            page = await self._reader.page(address)
        self._timeouts += page.reason == "page_timeout"
        self.deferred.note(address, page)
        return page

    async def come_back(self) -> bool:
        """Wait for the pages whose sites rested; whether there is one now, for another pass, whose counts begin anew.

        False without such pages, and where the reader's patience is over.
        """
        clock = asyncio.get_running_loop().time
        self._until = clock() + self._reader.patience_s if self._until is None else self._until
        while self.deferred.is_waiting and clock() < self._until:
            await asyncio.sleep(PAUSE)
            found = await asyncio.gather(*map(self._read, self.deferred.due()))
            if any(page.reason != "page_deferred" for page in found):
                self.asked = self.answered = 0
                self.reasons.clear()
                return True
        return False

    def _turn(self, address: NormalURL) -> AbstractAsyncContextManager[None]:
        """A place in line at the site of `address`: a report that cites many of its pages leaves room for others."""
        share = self._reader.share
        if share is None:
            return nullcontext()
        return self._lines.setdefault(site_of(address), asyncio.Semaphore(share.of_a_site))


def usage_of(several: Iterable[CaseTools]) -> Usage:
    """What the judgments given so far took of the judge, each counted once for each of `several`."""
    return Usage.total(usage for tools in several for usage in tools.judgments.values())


class _Read:
    """A report, and its looks once they are known."""

    def __init__(self, report: Report) -> None:
        self.lock = asyncio.Lock()
        self.looks: Looks | None = None


class _Readings:
    """What reports do to please a judge, and how long they are.

    Each is read once for the protocols and repeats that come together.
    """

    def __init__(self) -> None:
        self._read = _Remembered(_Read)
        self._asked = _Remembered(asked_of)

    async def of(self, task: Task, report: Report | None, report_limit: int) -> Looks:
        """The signs in a `report` and its length; none where nothing is to be judged or can be read."""
        if report is None or own_doing(report, report_limit) is not None:
            return Looks()
        known = self._read.of(report)
        async with known.lock:
            if known.looks is None:
                try:
                    known.looks = await when_idle(
                        looks_of, storable(report.text), self._asked.of(task), report.citations
                    )
                except Unread:
                    known.looks = Looks()
        return known.looks


class Evaluator:
    """Scores cases by `protocols`, at most `window` (case, protocol) pairs at once.

    `askers` has one for each judge of the `bench`, by its name; all have one store and one set of metrics. Reports of
    more than `report_limit` characters are report_too_large. What `recall` finds need not be scored again.
    """

    def __init__(
        self,
        bench: Bench,
        askers: Mapping[str, Asker],
        reader: Reader,
        protocols: tuple[ScoringProtocol, ...],
        window: int,
        report_limit: int | None = None,
        recall: Recall | None = None,
    ) -> None:
        self._recall = recall
        self.report_limit = report_limit or MAX_REPORT_CHARS
        self.askers = askers
        self.reader = reader
        self._bench = bench
        self._first = next(iter(askers.values()))
        self.protocols = protocols
        self.protocols_of = by_case(protocols)
        self._askers_of: dict[str, ProtocolAsker] = {}
        for protocol in protocols:
            self._asker_of(protocol.name)
        self._window = window
        self._readings = _Readings()
        self._turns = asyncio.Semaphore(window)
        self._beginning = asyncio.Lock()

    @property
    def judges(self) -> dict[str, JudgeIdentity]:
        """The judges that answer, by their names."""
        return {name: asker.judge.identity for name, asker in self.askers.items()}

    @property
    def pages(self) -> str:
        """The source that pages are stored under."""
        return self.reader.source

    @property
    def metrics(self) -> Metrics:
        """The metrics of this process."""
        return self._first.metrics

    def measured(self) -> list[Family]:
        """All metrics as they are now."""
        return self.metrics.families()

    @property
    def counts(self) -> Counts:
        """Where judgments and pages have come from so far."""
        return Counts(
            sum(asker.from_store for asker in self.askers.values()),
            sum(asker.from_judge for asker in self.askers.values()),
            self.reader.from_store,
            self.reader.from_fetcher,
        )

    @property
    def is_writing(self) -> bool:
        """Whether what is answered and read can be written; if not, it is tried again and again."""
        return self._first.store.healthy and self.reader.store.healthy

    async def flush(self) -> None:
        """Write everything answered and read so far. Raises StoreError."""
        await asyncio.gather(self._first.store.flush(), self.reader.store.flush())

    async def refresh(self) -> None:
        """Index what other processes have written since. Raises StoreError."""
        await asyncio.gather(self._first.store.refresh(), self.reader.store.refresh())

    def tools(
        self, case: Case, protocol: str, priority: int = 0, pages: Mapping[NormalURL, Page] | None = None
    ) -> CaseTools:
        """What `protocol` may do for `case`; questions of a lower `priority` go first.

        `pages`, if given, are all that there are.
        """
        return CaseTools(self._asker_of(protocol), self.reader, case.repeat, priority, pages)

    def _asker_of(self, protocol: str) -> ProtocolAsker:
        if protocol not in self._askers_of:
            media = self._bench.for_media(protocol)
            self._askers_of[protocol] = ProtocolAsker(
                self.askers[self._bench.of(protocol).name],
                {medium: self.askers[seat.name] for medium, seat in media.items()},
            )
        return self._askers_of[protocol]

    async def card(self, case: Case, protocol: ScoringProtocol, turn: asyncio.Semaphore) -> Scorecard:
        """The scorecard of `case`: from the store, if all that decided it is as it was, or else a new one.

        It holds its `turn` as long as it is at work, and not while it waits for a site that rests.
        """
        pair = self._pair(case, protocol)
        async with turn:
            (kept,) = await self._kept([pair])
        if kept is not None:
            return whole(kept)
        tools, wanted = self.tools(case, protocol.name), True
        while wanted:
            async with turn:
                card = await self._made(pair, tools)
            wanted = await tools.come_back()
        return card

    def _pair(self, case: Case, protocol: ScoringProtocol) -> _Pair:
        """`case` and `protocol`, with the key by which the store may have their scorecard."""
        return _Pair(case, protocol, None if self._recall is None else self._recall.key(case, protocol))

    async def _kept(self, pairs: Sequence[_Pair]) -> list[Scorecard | None]:
        """Of each of `pairs`, its scorecard in the store, if all that decided it is as it was. Raises StoreError."""
        if self._recall is None:
            return [None] * len(pairs)
        found = await self._recall.cards([pair.key for pair in pairs])
        for pair, card in zip(pairs, found, strict=True):
            if card is not None:
                self._asker_of(pair.protocol.name).own.count_stored(len(card.judgments))
        return found

    async def _made(self, pair: _Pair, tools: CaseTools) -> Scorecard:
        """The scorecard of `pair`, made anew; its key is for later runs, if it rests on nothing but answers."""
        case, limit = pair.case, self.report_limit
        reading = asyncio.ensure_future(self._readings.of(case.task, case.report, limit))
        try:
            made = await self.score(case, pair.protocol, tools)
            looks = await reading
        finally:
            reading.cancel()
        rival = await self._readings.of(case.task, case.rival, limit)
        length = looks.length if case.rival is None else None  # a report that meets many would count as often
        made = msgspec.structs.replace(made, signs=looks.signs, rival_signs=rival.signs, length=length)
        if pair.key is None or made.status != "scored" or not tools.rests_on_answers:
            return made
        return msgspec.structs.replace(made, key=pair.key.hex())

    async def score(self, case: Case, protocol: ScoringProtocol, tools: CaseTools | None = None) -> Scorecard:
        """One case under one protocol. `tools` of its own let a caller see what was done, even if it gives up."""
        tools = tools or self.tools(case, protocol.name)
        report = case.report
        name = case_name(report.system, case.task.id, report.sample, case.repeat)
        self.metrics.at_work(1)
        try:
            with about(shard=case.task.id, case=name):
                card = await score_case(protocol, case, tools, self.report_limit)
        finally:
            self.metrics.at_work(-1)
        return msgspec.structs.replace(
            card,
            judgments=tuple(sorted(tools.judgments)),
            pages=tuple(sorted(tools.pages)),
            usage=usage_of((tools,)),
            answers=tools.answers.result(),
        )

    async def run(self, cases: Iterable[Case]) -> AsyncIterator[Scorecard]:
        """The scorecards of `cases`, as each is done. An engine-fatal error ends the run and propagates."""
        async with aclosing(self.scored(cases)) as found:
            async for some in found:
                for one in some:
                    yield whole(one.card)

    async def scored(self, cases: Iterable[Case]) -> AsyncGenerator[list[Scored], None]:
        """What `run` gives, as many at a time as come together, and whether the store had it.

        Evidence from there is read when it is looked at.
        """
        pairs = (self._pair(case, protocol) for case in cases for protocol in self.protocols_of(case))
        done: _Done = asyncio.Queue(self._window)
        scoring = asyncio.ensure_future(self._score_all(pairs, done))
        try:
            while (some := await done.get()) is not None:
                yield some
            await scoring
        finally:
            scoring.cancel()
            await asyncio.gather(scoring, return_exceptions=True)

    async def _score_all(self, pairs: Iterator[_Pair], done: _Done) -> None:
        """Put the scorecards of `pairs`, and None behind them or as soon as one has failed; then raise that failure."""
        new = self._new(pairs, done)
        waiting: set[asyncio.Task[None]] = set()
        workers = [asyncio.ensure_future(self._work(new, done, waiting)) for _ in range(self._window)]
        try:
            await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            await asyncio.wait([*workers, *waiting], return_when=asyncio.FIRST_EXCEPTION)
            await done.put(None)
            await asyncio.gather(*workers, *waiting)
        finally:
            for task in (*workers, *waiting):
                task.cancel()
            await asyncio.gather(*workers, *waiting, return_exceptions=True)

    async def _new(self, pairs: Iterator[_Pair], done: _Done) -> AsyncIterator[_Pair]:
        """Those of `pairs` whose scorecards are still to be made. What the store has is put."""
        while some := list(islice(pairs, _AT_ONCE)):
            kept = await self._kept(some)
            if stored := [Scored(card, True) for card in kept if card is not None]:
                await done.put(stored)
            for pair, card in zip(some, kept, strict=True):
                if card is None:
                    yield pair
            await asyncio.sleep(0)  # others come in between, however much the store has

    async def _work(
        self,
        new: AsyncIterator[_Pair],
        done: _Done,
        waiting: set[asyncio.Task[None]],
    ) -> None:
        """Put the scorecards of `new`. Cases that wait for sites go on by themselves, as tasks in `waiting`."""

        async def wait(pair: _Pair, tools: CaseTools, card: Scorecard) -> None:
            while await tools.come_back():
                async with self._turns:
                    card = await self._made(pair, tools)
            await done.put([Scored(card, False)])

        def landed(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and task.exception() is None:
                waiting.discard(task)

        while (pair := await self._next(new)) is not None:
            tools = self.tools(pair.case, pair.protocol.name)
            async with self._turns:
                card = await self._made(pair, tools)
            if tools.deferred.is_waiting and len(waiting) < _WAITING * self._window:
                task = asyncio.create_task(wait(pair, tools, card))
                waiting.add(task)
                task.add_done_callback(landed)
            else:
                await done.put([Scored(card, False)])

    async def _next(self, new: AsyncIterator[_Pair]) -> _Pair | None:
        async with self._beginning:  # one a turn of the loop: a report is read without a pause
            await asyncio.sleep(0)
            return await anext(new, None)
