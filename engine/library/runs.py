"""A run as an object: its tables, its leaderboard, and how it looks in a notebook."""

import asyncio
from functools import cached_property
from pathlib import Path

import msgspec
import pyarrow as pa

from adjudge.engine.errors import UsageError
from adjudge.engine.leaderboard.board import Leaderboard
from adjudge.engine.library.tables import evidence_table, in_clear, judgment_table, page_table
from adjudge.engine.records.matrices import read_scores
from adjudge.engine.records.record import RunRecord
from adjudge.engine.rendering.standings import rankings, standings
from adjudge.engine.rendering.templates import render
from adjudge.engine.store import Place
from adjudge.engine.store.scorecards import run_cards
from adjudge.scoring.contract.scorecard import Scorecard

__all__ = ["Run", "open", "open_async"]


class Run:
    """The run in `folder`. Tables are read when first asked for. Raises UsageError if there is none.

    In a notebook a run shows its standings.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.record = RunRecord.read(self.folder).found_from_here(self.folder)
        self._place = Place.of(self.record.config.store)

    @cached_property
    def scores(self) -> pa.Table:
        """A row for each report, protocol and metric: scores.parquet. `value` is null where `reason` says why."""
        return in_clear(read_scores([self.folder]))

    @cached_property
    def judgments(self) -> pa.Table:
        """A row for each question of each report: system, task, question, answer as JSON, tokens. Raises StoreError."""
        return judgment_table(self._place, self._cards)

    @cached_property
    def evidence(self) -> pa.Table:
        """A row for each thing that was judged, with its outcome, its page's `url` and its judgment's `key`."""
        return evidence_table(self._cards)

    @cached_property
    def pages(self) -> pa.Table:
        """A row for each page that was read for the run, with its text. Raises StoreError."""
        return page_table(self._place, self.record.pages, self._cards)

    @cached_property
    def leaderboard(self) -> Leaderboard:
        """The standings, with intervals and tiers. Raises UsageError if leaderboard.json cannot be read."""
        file = self.folder / "leaderboard.json"
        try:
            return msgspec.json.decode(file.read_bytes(), type=Leaderboard)
        except (OSError, msgspec.MsgspecError) as error:
            raise UsageError(f"{file}: cannot be read; write it with adjudge leaderboard") from error

    @cached_property
    def _cards(self) -> list[Scorecard]:
        return run_cards(self._place, self.record.run)

    def __repr__(self) -> str:
        scored = len(self.record.tasks), len(self.record.systems)
        return f"Run({str(self.folder)!r}: {scored[0]:,} tasks, {scored[1]:,} systems)"

    def _repr_html_(self) -> str:
        tables = [(ranking, standings(ranking)) for ranking in rankings(self.leaderboard.metrics)]
        return render("run.html.jinja", __package__, tables=tables)


def open(folder: str | Path) -> Run:
    """The run in `folder`. Raises UsageError if there is none."""
    return Run(folder)


async def open_async(folder: str | Path) -> Run:
    """`open`, without keeping the event loop waiting."""
    return await asyncio.to_thread(Run, folder)
