"""A run for `import adjudge`: its tables, with names in clear, its leaderboard, and how it looks in a notebook.

`judgments`, `evidence` and `pages` join: `evidence.key` is `judgments.key`, `evidence.url` is `pages.url`.
"""

import asyncio
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from adjudge.engine.commands.compare import Comparison
from adjudge.engine.commands.compare import compare as compare_run
from adjudge.engine.runs import run as runs
from adjudge.engine.runs.board import Leaderboard
from adjudge.engine.runs.run import in_clear
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.tables.page import render
from adjudge.engine.tables.standings import rankings, standings
from adjudge.judges.plural import plural


class Run:
    """The run in `folder`. Tables are read when first asked for. Raises UsageError if there is none.

    `record` is its run.json, with relative paths as seen from the working directory. In a notebook a run shows its
    standings.
    """

    def __init__(self, folder: str | Path) -> None:
        self._run = runs.Run.open(folder)
        self.folder = self._run.folder
        self.record = self._run.record

    @cached_property
    def scores(self) -> pa.Table:
        """A row for each report, protocol and metric: scores.parquet. `value` is null where `reason` says why."""
        return in_clear(self._run.scores)

    @property
    def judgments(self) -> pa.Table:
        """A row for each question of each report: system, task, question, answer as JSON, tokens. Raises StoreError."""
        return self._run.judgments

    @property
    def evidence(self) -> pa.Table:
        """A row for each thing that was judged, with its outcome, its page's `url` and its judgment's `key`."""
        return self._run.evidence

    @property
    def pages(self) -> pa.Table:
        """A row for each page that was read for the run, with its text. Raises StoreError."""
        return self._run.pages

    @cached_property
    def leaderboard(self) -> Leaderboard:
        """The standings, with intervals and tiers, as `evaluate` wrote them; computed if the run has none.

        Raises UsageError, StoreError.
        """
        return self._run.board or build_leaderboard([self.folder])

    def __repr__(self) -> str:
        scored = len(self.record.tasks), len(self.record.systems)
        return f"Run({str(self.folder)!r}: {plural(scored[0], 'task')}, {plural(scored[1], 'system')})"

    def _repr_html_(self) -> str:
        tables = [(ranking, standings(ranking).shown) for ranking in rankings(self.leaderboard.metrics)]
        return render("run.html.jinja", __package__, tables=tables)


def open(folder: str | Path) -> Run:
    """The run in `folder`. Raises UsageError if there is none."""
    return Run(folder)


async def open_async(folder: str | Path) -> Run:
    """`open`, without keeping the event loop waiting."""
    return await asyncio.to_thread(Run, folder)


def compare(run: Run | str | Path, a: str, b: str, metrics: Sequence[str] = ()) -> Comparison:
    """Paired tests of systems `a` and `b` by `metrics`, or all, on the tasks scored for both. Raises UsageError."""
    return compare_run(run.folder if isinstance(run, Run) else run, a, b, metrics)


async def compare_async(run: Run | str | Path, a: str, b: str, metrics: Sequence[str] = ()) -> Comparison:
    """`compare`, without keeping the event loop waiting."""
    return await asyncio.to_thread(compare, run, a, b, metrics)
