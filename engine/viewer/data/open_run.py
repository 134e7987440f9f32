"""An open run: small things in memory, the rest read when a page needs it.

What takes long to open (the key indexes, the places of reports) is opened in the background; only pages that need it
wait.
"""

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec

from adjudge.engine.config.errors import ConfigError
from adjudge.engine.errors import UsageError
from adjudge.engine.formats.dataset import Dataset, FormatError, load_tasks
from adjudge.engine.leaderboard.board import Leaderboard
from adjudge.engine.records.choice import chosen_dataset
from adjudge.engine.records.record import RunRecord
from adjudge.engine.store import JudgmentStore, PageStore, Place
from adjudge.engine.viewer.data.card_index import CardIndex
from adjudge.engine.viewer.data.following import Following
from adjudge.engine.viewer.data.people import People
from adjudge.engine.viewer.data.query import NotThere, ReportQuery
from adjudge.engine.viewer.data.replay import AskedQuestion, Replayer
from adjudge.engine.viewer.data.score_rows import RowsSoFar, ScoreRows
from adjudge.fetchers.flight import shared
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import ExplainedCriterion
from adjudge.scoring.contract.scorecard import Metric, Scorecard

__all__ = ["OpenRun"]

_CACHED_JUDGMENTS, _CACHED_PAGES = 4096, 128
CALM_S = 1.0  # for so long, the first page has the processor for itself, unless it needs what is opened then
FRESH_S = 5.0  # for so long, a page of a running run may miss what was just scored


class OpenRun:
    """The run in `folder`, with people's `labels` of its verdicts if a file has some.

    Raises UsageError if there is none. `close` ends the work in the background.
    """

    def __init__(self, folder: str, labels: Path | None = None) -> None:
        self.folder = Path(folder)
        self.record = RunRecord.read(self.folder).found_from_here(self.folder)
        self.place = Place.of(self.record.config.store)
        self.people = None if labels is None else People(self.record, labels)
        self.following = None if self.record.due is None else Following(self.folder, self.record, self.place)
        self.scores = ScoreRows(self.folder) if self.following is None else RowsSoFar(self.following.rows)
        self._fresh_until = dict.fromkeys(("cards", "stores"), time.monotonic() + FRESH_S)
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
        """The run's leaderboard, or what it is so far. Raises NotThere if it cannot be read."""
        if self.following is not None:
            return self.following.board()
        try:
            return msgspec.json.decode((self.folder / "leaderboard.json").read_bytes(), type=Leaderboard)
        except (OSError, msgspec.MsgspecError) as error:
            raise NotThere(
                "this run's leaderboard.json cannot be read; write it with adjudge leaderboard"
            ) from error

    async def cards(self) -> CardIndex:
        """Where the run's scorecards are. Raises StoreError."""
        if self._cards is None or self._is_stale("cards", self._cards):
            self._cards = asyncio.ensure_future(asyncio.to_thread(CardIndex.of, self.place, self.record.run))
        return await shared(self._cards)

    async def stores(self) -> tuple[JudgmentStore, PageStore]:
        """The run's judgments and pages, indexed. Raises StoreError."""
        if self._store is None:
            self._store = asyncio.ensure_future(self._open_stores())
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
            raise NotThere(f"the run's input is not where it was: {error}") from error

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
        return found

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
        """What stands behind the criteria of a report's task; empty where the run's input or prompts are missing."""
        try:
            return await (await self.replayer()).explained(await self.case(wanted), protocol)
        except (NotThere, UsageError):
            return []

    async def replayer(self) -> Replayer:
        """What replays a report's questions. Raises NotThere where prompts are missing, StoreError."""
        stores = await self.stores()
        try:
            return Replayer(self.record, *stores)
        except ConfigError as error:
            raise NotThere(str(error)) from error

    def _is_stale(self, what: str, opened: "asyncio.Task[Any]") -> bool:
        """Whether a running run may have added to what was `opened`; said once in a while."""
        now = time.monotonic()
        if self.record.state != "running" or not opened.done() or now < self._fresh_until[what]:
            return False
        self._fresh_until[what] = now + FRESH_S
        return True

    async def _refreshed(
        self, opened: "asyncio.Task[tuple[JudgmentStore, PageStore]]"
    ) -> tuple[JudgmentStore, PageStore]:
        stores = await opened
        for store in stores:
            await store.refresh()
        self._replayed = None
        return stores

    async def _open_stores(self) -> tuple[JudgmentStore, PageStore]:
        again = self.record.config.retry_unscored
        judgments = JudgmentStore(self.place, retry_unscored=again, cached=_CACHED_JUDGMENTS)
        pages = PageStore(self.place, self.record.pages, retry_unscored=again, cached=_CACHED_PAGES)
        await judgments.open(every=True)
        await pages.open(every=True)
        return judgments, pages


def _prompts(record: RunRecord) -> dict[str, str]:
    try:
        tasks = load_tasks(record.config.format, record.config.tasks, record.config.date)
    except FormatError:
        return {}
    return {name: task.prompt for name, task in tasks.items()}
