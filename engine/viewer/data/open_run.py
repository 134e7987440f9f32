"""An open run: small data in memory, the rest read when a page needs it.

What takes long to open (the key indexes, the places of reports) is opened in the background; only pages that need it
wait. The store holds answers, not questions: to show the questions behind a scorecard, its protocol runs again and the
store answers. No judge is asked and nothing is written; an answer that the store does not hold is missing with the
reason deadline, which is never stored.
"""

import asyncio
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.errors import UsageError
from adjudge.engine.evaluation.asker import Asker, ProtocolAsker, Reader
from adjudge.engine.evaluation.assembly import make_book
from adjudge.engine.evaluation.evaluator import CaseTools
from adjudge.engine.formats.dataset import Dataset, FormatError, load_tasks
from adjudge.engine.runs.board import Leaderboard
from adjudge.engine.runs.choice import chosen_dataset
from adjudge.engine.runs.people import People
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.runs.run import Run
from adjudge.engine.store import JudgmentStore, PageStore
from adjudge.engine.viewer.data.following import Following
from adjudge.engine.viewer.data.index import CardIndex, RowsSoFar, ScoreRows
from adjudge.engine.viewer.data.query import NotThere, ReportQuery
from adjudge.fetchers.flight import shared
from adjudge.judges import Answer, Asked, JudgeIdentity, Judgment, Question, Reply
from adjudge.judges.chat import Message, messages, secret_from_environment
from adjudge.judges.schema import schema_of
from adjudge.scoring.contract.case import Case, GoldError
from adjudge.scoring.contract.protocol import ExplainedCriterion, Explaining, ScoringProtocol, score_case
from adjudge.scoring.contract.scorecard import Evidence, Metric, Scorecard

A = TypeVar("A", bound=Answer)


class AskedQuestion(msgspec.Struct, frozen=True):
    """A question, who was asked, and the stored judgment."""

    question: Question[Any]
    judge: JudgeIdentity
    judgment: Judgment[Any]


class Replayer:
    """Replays scorecards of the run `record` from its stores."""

    def __init__(self, record: RunRecord, judgments: JudgmentStore, pages: PageStore) -> None:
        self._config: RunConfig = record.config
        self._book = make_book(record.config)
        self._judging = record.judging
        self._judgments = judgments
        self._reader = Reader(pages, None)
        self.same_prompts = self._book.digests() | self._config.published_prompts() == record.prompts

    async def questions(self, case: Case, protocol: str) -> dict[str, AskedQuestion]:
        """The questions that `protocol` asks about `case`, by the hex of their keys, in order."""
        tools = _Watched(self._asker(protocol), self._reader, case.repeat)
        for candidate in self._named(protocol):
            await score_case(candidate, case, tools)
        return tools.seen

    async def explained(self, case: Case, protocol: str) -> list[ExplainedCriterion]:
        """The criteria by which `protocol` judges `case`, as far as it explains them and the store has them."""
        found: list[ExplainedCriterion] = []
        for candidate in self._named(protocol):
            if isinstance(candidate, Explaining):
                with suppress(GoldError):
                    tools = CaseTools(self._asker(protocol), self._reader, case.repeat)
                    found += await candidate.explained(case, tools)
        return found

    def _named(self, protocol: str) -> list[ScoringProtocol]:
        return [one for one in self._config.resolved.protocols if one.name == protocol]

    def _asker(self, protocol: str) -> ProtocolAsker:
        media = self._judging.protocol_media(protocol)
        return ProtocolAsker(
            self._silent(self._judging.protocol(protocol)),
            {medium: self._silent(judge) for medium, judge in media.items()},
        )

    def _silent(self, judge: JudgeIdentity) -> Asker:
        return Asker(_Silent(judge), self._judgments, self._book)

    def judge_of(self, protocol: str) -> JudgeIdentity:
        """The judge of what `protocol` asks in text."""
        return self._judging.protocol(protocol)

    def rendered(self, asked: AskedQuestion) -> list[Message]:
        """The messages that a chat model was sent."""
        schema = schema_of(asked.question, asked.judge.analysis)
        return messages(asked.question, self._book, schema, secret_from_environment())


class _Watched(CaseTools):
    """Tools that remember the questions themselves."""

    def __init__(self, asker: ProtocolAsker, reader: Reader, repeat: int) -> None:
        super().__init__(asker, reader, repeat)
        self.seen: dict[str, AskedQuestion] = {}

    async def ask_all(self, questions: Iterable[Question[A]]) -> list[Judgment[A]]:
        asked = tuple(questions)
        judgments = await super().ask_all(asked)
        for question, judgment in zip(asked, judgments, strict=True):
            judge = self._asker.of(question).judge.identity
            self.seen[judgment.key.hex()] = AskedQuestion(question, judge, judgment)
        return judgments


class _Silent:
    """A judge with another judge's identity that never answers."""

    def __init__(self, judge: JudgeIdentity) -> None:
        self.identity = judge

    async def answer(self, question: Question[A], asked: Asked) -> Reply[A]:
        return Reply(reason="deadline")

    async def close(self) -> None:
        """Nothing to release."""


class _Part(msgspec.Struct):
    """The answer for one of several items, as far as it is a reason."""

    analysis: str = ""


class _Answer(msgspec.Struct):
    analysis: str = ""
    items: dict[str, _Part] = {}


async def reasons_given(
    judgments: JudgmentStore, evidence: Sequence[Evidence], wanted: Collection[int]
) -> dict[int, str]:
    """The judge's reasons for the lines numbered `wanted` (from 1) of a scorecard's `evidence`, where it gave any.

    An answer to several items gives one for each, in the order of the lines that rest on it. Raises StoreError.
    """
    lines: dict[str, list[int]] = {}
    for n, line in enumerate(evidence, 1):
        if line.judgment:
            lines.setdefault(line.judgment, []).append(n)
    found: dict[int, str] = {}
    for key, numbers in lines.items():
        if any(n in wanted for n in numbers):
            row = await judgments.raw(bytes.fromhex(key))
            if row is not None and row.answer is not None:
                found |= dict(zip(numbers, _reasons(row.answer, len(numbers)), strict=True))
    return {n: reason for n, reason in found.items() if reason and n in wanted}


def _reasons(answer: str, count: int) -> list[str]:
    """One for each of `count` lines; none where the answer is of another shape."""
    try:
        said = msgspec.json.decode(answer, type=_Answer)
    except msgspec.MsgspecError:
        return [""] * count
    each = [part.analysis for part in said.items.values()]
    if len(each) == count:
        return each
    return [said.analysis] if count == 1 else [""] * count


_CACHED_JUDGMENTS, _CACHED_PAGES = 4096, 128
CALM_S = 1.0  # for so long, the first page has the processor for itself, unless it needs what is opened then
FRESH_S = 5.0  # for so long, a page of a running run may miss what was just scored
LASTING_S = 1800.0  # of any other run: the parts that were found are there for a day after they are replaced


class OpenRun:
    """A `run` for reading in pages, with people's `labels` of its verdicts if a file has some.

    Raises UsageError for labels that cannot be read. `close` ends the work in the background.
    """

    def __init__(self, run: Run, labels: Path | None = None) -> None:
        self.run = run
        self.folder = run.folder
        self.record = run.record
        self._labels = labels
        self.people = None if labels is None else People(run, labels)
        self.following = None if self.record.due is None else Following(self.folder, self.record, run.place)
        self.scores = ScoreRows(self.folder) if self.following is None else RowsSoFar(self.following.rows)
        self._fresh_until = dict.fromkeys(("cards", "stores"), time.monotonic() + self._fresh_s)
        self._store: asyncio.Task[tuple[JudgmentStore, PageStore]] | None = None
        self._cards: asyncio.Task[CardIndex] | None = None
        self._dataset: asyncio.Task[Dataset] | None = None
        self._prompts: asyncio.Task[dict[str, str]] | None = None
        self._opening: asyncio.Task[None] | None = None
        self._replayed: tuple[object, dict[str, AskedQuestion]] | None = None

    def begin(self) -> None:
        """Open everything in the background, what is needed first before the rest. Call from the event loop."""

        async def one_after_the_other() -> None:
            await asyncio.sleep(CALM_S)
            for opening in (self.cards, self.stores, self.dataset):
                await asyncio.gather(opening(), return_exceptions=True)

        self._opening = asyncio.ensure_future(one_after_the_other())

    async def close(self) -> None:
        """Cancel what is still being opened."""
        every = (self._opening, self._cards, self._store, self._dataset, self._prompts)
        tasks = [task for task in every if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.following is not None:
            await self.following.close()

    def metrics(self, protocol: str) -> tuple[Metric, ...]:
        """The protocol's metrics, its headline first. Raises NotThere."""
        try:
            return self.record.metrics[protocol]
        except KeyError as error:
            raise NotThere(f"this run has no protocol {protocol!r}") from error

    def leaderboard(self) -> Leaderboard:
        """The run's leaderboard as `evaluate` wrote it, or what it is so far. Raises NotThere, StoreError.

        One that is missing is computed here, and never written.
        """
        if self.following is not None:
            return self.following.board()
        return self.run.board or self._computed

    @cached_property
    def _computed(self) -> Leaderboard:
        # Only a run without its own leaderboard needs what computes one.
        from adjudge.engine.statistics.build import build_leaderboard

        try:
            return build_leaderboard([self.folder])
        except UsageError as error:
            raise NotThere(f"this run has no leaderboard: {error}") from error

    def leaderboard_with_people(self) -> Leaderboard:
        """The same with scores by people's labels beside the judge's, once the run has finished."""
        return self.leaderboard() if self._labels is None or self.following is not None else self._with_people

    @cached_property
    def _with_people(self) -> Leaderboard:
        from adjudge.engine.statistics.build import build_leaderboard

        try:
            return build_leaderboard([self.run], labels=self._labels)
        except UsageError as error:
            own = self.leaderboard()
            return msgspec.structs.replace(own, notes=(*own.notes, str(error)))

    async def cards(self) -> CardIndex:
        """Where the run's scorecards are. Raises StoreError."""
        if self._cards is None or self._is_stale("cards", self._cards):
            self._cards = asyncio.ensure_future(
                asyncio.to_thread(CardIndex.of, self.run.place, self.record.run)
            )
        return await shared(self._cards)

    async def stores(self) -> tuple[JudgmentStore, PageStore]:
        """The run's judgments and pages, indexed. Raises StoreError."""
        if self._store is None:
            again = self.record.config.retry_unscored
            self._store = asyncio.ensure_future(
                self.run.stores(again, cached_judgments=_CACHED_JUDGMENTS, cached_pages=_CACHED_PAGES)
            )
        elif self._is_stale("stores", self._store):
            self._store = asyncio.ensure_future(self._refreshed(self._store))
        return await shared(self._store)

    async def dataset(self) -> Dataset:
        """The run's tasks, and where its reports are. Raises NotThere if the input is missing."""
        if self._dataset is None:
            config = self.record.config
            self._dataset = asyncio.ensure_future(asyncio.to_thread(chosen_dataset, config))
        try:
            return await shared(self._dataset)
        except UsageError as error:
            raise NotThere(f"the run's input has moved or is gone: {error}") from error

    async def prompts(self) -> dict[str, str]:
        """The tasks' prompts by id; empty if the tasks file is not where it was."""
        if self._prompts is None:
            self._prompts = asyncio.ensure_future(asyncio.to_thread(_prompts, self.record))
        return await shared(self._prompts)

    async def find_cards(self, wanted: ReportQuery) -> list[Scorecard]:
        """The scorecards of a report. Raises NotThere if there is none."""
        identity = (wanted.system, wanted.task, wanted.sample, wanted.repeat)
        found = await asyncio.to_thread((await self.cards()).find, *identity)
        if not found and self.record.state == "running":
            self._cards = None  # it may just have been scored
            found = await asyncio.to_thread((await self.cards()).find, *identity)
        if not found:
            raise NotThere(f"no scorecard of {wanted.system!r} for task {wanted.task!r} in this run")
        return [self.run.shown(card) for card in found]

    async def case(self, wanted: ReportQuery) -> Case:
        """A report with its task, from the run's input. Raises NotThere."""
        dataset = await self.dataset()
        identity = (wanted.system, wanted.task, wanted.sample)
        for located in dataset.reports:
            if (located.system, located.task_id, located.sample) == identity:
                try:
                    report = await asyncio.to_thread(located.load)
                except (OSError, msgspec.MsgspecError) as error:
                    raise NotThere(f"the report is not where it was: {located.where}") from error
                if report.identity != identity:
                    raise NotThere(f"the report is not where it was: {located.where}")
                return Case(task=dataset.tasks[wanted.task], report=report, repeat=wanted.repeat)
        raise NotThere(f"the run's input has no report of {wanted.system!r} for task {wanted.task!r}")

    async def questions(self, wanted: ReportQuery, protocol: str) -> dict[str, AskedQuestion]:
        """The questions asked about a report under `protocol`, by key. Raises NotThere, StoreError, UsageError."""
        kept = (wanted.system, wanted.task, wanted.sample, wanted.repeat, protocol)
        if self._replayed is None or self._replayed[0] != kept:
            case = await self.case(wanted)
            self._replayed = kept, await (await self.replayer()).questions(case, protocol)
        return self._replayed[1]

    async def explained(self, wanted: ReportQuery, protocol: str) -> list[ExplainedCriterion]:
        """The criteria of a report's task; empty where the run's input or prompts are missing, or gold is withheld."""
        if protocol in self.run.withheld:
            return []
        try:
            return await (await self.replayer()).explained(await self.case(wanted), protocol)
        except (NotThere, UsageError):
            return []

    async def replayer(self) -> Replayer:
        """The tools that replay a report's questions. Raises NotThere if prompts are missing, StoreError."""
        stores = await self.stores()
        try:
            return Replayer(self.record, *stores)
        except ConfigError as error:
            raise NotThere(str(error)) from error

    def _is_stale(self, what: str, opened: "asyncio.Task[Any]") -> bool:
        """Whether what was `opened` may lack rows, or name parts that are going; said once in a while."""
        now = time.monotonic()
        if not opened.done() or now < self._fresh_until[what]:
            return False
        self._fresh_until[what] = now + self._fresh_s
        return True

    @property
    def _fresh_s(self) -> float:
        return FRESH_S if self.record.state == "running" else LASTING_S

    async def _refreshed(
        self, opened: "asyncio.Task[tuple[JudgmentStore, PageStore]]"
    ) -> tuple[JudgmentStore, PageStore]:
        stores = await opened
        for store in stores:
            await store.refresh()
        self._replayed = None
        return stores


def _prompts(record: RunRecord) -> dict[str, str]:
    try:
        tasks = load_tasks(record.config.format, record.config.tasks, record.config.date)
    except FormatError:
        return {}
    return {name: task.prompt for name, task in tasks.items()}
