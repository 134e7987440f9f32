"""From runs to a leaderboard: every metric and rank with its interval, and what is missing and why.

The number that is shown is the number that ranks: a system's mean over all selected tasks, with what is missing at its
worst. A system under 95 % coverage is shown underneath, without a rank.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.config.select import EVERYTHING, Select
from adjudge.engine.errors import UsageError
from adjudge.engine.leaderboard.best_of import BestOf, best_of_samples
from adjudge.engine.leaderboard.board import FLAGGED_BELOW, Leaderboard, MetricBoard, RankStability, Standing
from adjudge.engine.leaderboard.correction import Correction, corrections
from adjudge.engine.leaderboard.detail import Noise, detail_of, noise_of
from adjudge.engine.leaderboard.notes import notes_on
from adjudge.engine.leaderboard.published import Published, agreement_with, figures_for, is_for
from adjudge.engine.leaderboard.ranks import ranks_of
from adjudge.engine.leaderboard.selection import Filled, Selection, fill, fill_ratio, selections
from adjudge.engine.records.choice import chosen_runs
from adjudge.engine.records.matrices import MetricRows, figure, metric_rows, read_scores
from adjudge.engine.records.provenance import Provenance
from adjudge.engine.records.record import RunRecord, TaskRecord
from adjudge.engine.records.recorded import told_apart
from adjudge.engine.records.spending import Spent
from adjudge.scoring.contract.scorecard import Metric
from adjudge.scoring.kernels.resampling.bootstrap import Bootstrap, bootstrap

__all__ = ["Statistics", "build_leaderboard", "leaderboard_of"]

RESAMPLES = 10_000
CONFIDENCE = 0.95

Floats = npt.NDArray[np.float64]
Known = dict[tuple[str, str], Metric]


class Statistics:
    """Reads score rows and draws resamples, in this process; a subclass may do so elsewhere."""

    def read(self, runs: list[Path]) -> pa.Table:
        """The score rows of `runs`. Raises UsageError."""
        return read_scores(runs)

    def resample(
        self, values: Floats, denominators: Floats | None, seed: int, clip: tuple[float, float] | None = None
    ) -> Bootstrap:
        """The bootstrap of `values[S, T]`, RESAMPLES at CONFIDENCE; means are held between the ends of `clip`."""
        return bootstrap(
            values, denominators=denominators, resamples=RESAMPLES, level=CONFIDENCE, clip=clip, seed=seed
        )


class _Known(msgspec.Struct, frozen=True, kw_only=True):
    """What the `records` of the runs say about metrics, tasks and systems."""

    metrics: Known
    tasks: dict[str, TaskRecord]
    spent: dict[str, Spent]
    records: list[RunRecord]
    seed: int
    noise: dict[tuple[str, str], Noise | None]
    best_of: dict[tuple[str, str], tuple[BestOf, ...]]

    @classmethod
    def of(cls, records: list[RunRecord], scores: pa.Table) -> "_Known":
        metrics = {
            (protocol, metric.name): metric
            for record in records
            for protocol, found in record.metrics.items()
            for metric in found
        }
        headlines = {name: metric for name, metric in metrics.items() if metric.headline}
        repeated = any(record.config.repeats > 1 for record in records)
        sampled = len(pc.unique(scores["sample"])) > 1
        return cls(
            metrics=metrics,
            tasks={name: task for record in records for name, task in record.tasks.items()},
            spent={name: spent for record in records for name, spent in record.spent.items()},
            records=records,
            seed=records[0].config.seed,
            noise={
                (protocol, name): noise_of(scores, protocol, name) for protocol, name in headlines if repeated
            },
            best_of={
                (protocol, name): best_of_samples(scores, protocol, name, metric.lower_is_better)
                for (protocol, name), metric in headlines.items()
                if sampled
            },
        )

    def judges_of(self, protocol: str) -> str:
        """Who judged a protocol in these runs, in words."""
        own = [record for record in self.records if protocol in record.metrics]
        return " + ".join(dict.fromkeys(record.judging.said_of(protocol) for record in own or self.records))


def build_leaderboard(
    runs: Sequence[str | Path],
    statistics: Statistics | None = None,
    published: Sequence[Published] = (),
    human: str | Path | None = None,
    select: Select = EVERYTHING,
) -> Leaderboard:
    """The leaderboard of what `select` chooses of the run folders `runs`; `statistics` computes it, by default in this
    process.

    Raises UsageError for a folder that does not hold a finished run, and what `leaderboard_of` raises.
    """
    folders = [Path(run) for run in runs]
    if len(set(folders)) < len(folders):
        raise UsageError("leaderboard: a run is named twice; name each run once")
    records = [RunRecord.read(folder) for folder in folders]
    statistics = statistics or Statistics()
    if len({bool(record.recorded) for record in records}) > 1:
        tables = [statistics.read([folder]) for folder in folders]
        records, scores = told_apart(records, tables)
    else:
        scores = statistics.read(folders)
    records, scores = chosen_runs(select, records, scores)
    board = leaderboard_of(records, scores, statistics, published, human)
    chosen = (f"chosen for this leaderboard: {select.words}",) if select.words else ()
    return msgspec.structs.replace(board, notes=(*chosen, *board.notes))


def leaderboard_of(
    records: list[RunRecord],
    scores: pa.Table,
    statistics: Statistics,
    published: Sequence[Published] = (),
    human: str | Path | None = None,
) -> Leaderboard:
    """The leaderboard of the runs in `records`, whose score rows, one after the other, are `scores`.

    `published` figures are set beside the metrics they name. The ratings in the file `human` give corrected means and
    differences beside the judge's. Raises UsageError if no published figure is for a metric of these runs.
    """
    known = _Known.of(records, scores)
    rows = metric_rows(scores)
    among = selections(records, rows)
    corrected = [] if human is None else corrections([one.matrix() for one in rows], human)
    boards = [
        _with_people(_with_published(_board(one, known, among, statistics), published), corrected)
        for one in _filled(rows, known.metrics, among)
    ]
    if published and not any(board.published for board in boards):
        there = ", ".join(f"{board.protocol}.{board.metric}" for board in boards)
        raise UsageError(f"published: no figure is for a metric of these runs; name one of {there}")
    unknown = _unknown(published, boards)
    return Leaderboard(
        runs=tuple(record.run for record in records),
        notes=(*notes_on(records, boards, corrected), *unknown),
        confidence=CONFIDENCE,
        resamples=RESAMPLES,
        seed=known.seed,
        metrics=tuple(sorted(boards, key=lambda board: (board.protocol, not board.headline))),
        sources=tuple(Provenance.of(record) for record in records),
        spent=known.spent,
        stopped=tuple(record.stopped for record in records if record.stopped is not None),
    )


class _Metric(msgspec.Struct, frozen=True):
    """A metric of a protocol, over all selected tasks; its rows where it is not pooled from two others."""

    protocol: str
    metric: Metric
    filled: Filled
    rows: MetricRows | None = None


def _filled(rows: Sequence[MetricRows], known: Known, among: dict[str, Selection]) -> Iterator[_Metric]:
    """Every metric with rows, then the pooled ones, which have none of their own."""
    found = {(one.protocol, one.metric): one for one in rows}
    for name, one in found.items():
        metric, selection = known.get(name, Metric(name=one.metric)), among[one.protocol]
        own = selection.of(one, everywhere=name in known and metric.everywhere)
        yield _Metric(one.protocol, metric, fill(one, metric, own, bad_is_high=metric.lower_is_better), one)
    for (protocol, _), metric in known.items():
        if metric.ratio is None or (protocol, metric.ratio[0]) not in found:
            continue
        names = [(protocol, part) for part in metric.ratio]
        over, below = (found[name] for name in names)
        shared = among[protocol].of(over, everywhere=True).both(among[protocol].of(below, everywhere=True))
        parts = known[names[0]], known[names[1]]
        yield _Metric(protocol, metric, fill_ratio((over, below), (metric, *parts), shared))


def _board(one: _Metric, known: _Known, among: dict[str, Selection], statistics: Statistics) -> MetricBoard:
    metric, filled, name = one.metric, one.filled, (one.protocol, one.metric.name)
    sign = -1.0 if metric.lower_is_better else 1.0
    clip = filled.signed_clip(sign)
    own = statistics.resample(sign * filled.values, filled.denominators, known.seed, clip)
    ranked = ~np.isnan(own.estimate) & (filled.coverage > FLAGGED_BELOW - 1e-9)
    among_ranked = np.where(ranked[:, None], sign * filled.values, np.nan)
    drawn = own if ranked.all() else statistics.resample(among_ranked, filled.denominators, known.seed, clip)
    return MetricBoard(
        protocol=one.protocol,
        metric=metric.name,
        judge=known.judges_of(one.protocol),
        headline=metric.headline,
        shown=metric.shown,
        scale=metric.scale,
        lower_is_better=metric.lower_is_better,
        n_tasks=len(filled.tasks),
        n_without_gold=among[one.protocol].without_gold,
        not_submitted=filled.not_submitted,
        tau=RankStability.of(drawn.tau),
        rho=RankStability.of(drawn.rho),
        standings=tuple(_standings(filled, own, drawn, sign, ranked)),
        detail=detail_of(
            filled,
            None if one.rows is None else one.rows.matrix(),
            ranked,
            drawn,
            sign,
            known.tasks,
            known.spent,
            known.noise.get(name),
            known.best_of.get(name, ()),
        )
        if metric.headline
        else None,
    )


def _standings(
    filled: Filled, own: Bootstrap, drawn: Bootstrap, sign: float, ranked: npt.NDArray[np.bool_]
) -> list[Standing]:
    """Every system by its `own` resamples, and the `ranked` ones by those that are `drawn` of them."""
    ends = (filled.low, filled.high) if sign > 0 else (-filled.high, -filled.low)
    found = ranks_of(drawn, own.estimate, ends, sign * filled.worst, ranked)
    values = sign * own.estimate
    standings = [
        Standing(
            system=name,
            value=figure(values[row]),
            low=figure((own.percentile[row] * sign).min()),
            high=figure((own.percentile[row] * sign).max()),
            bound_low=_bound(filled.low[row], values[row]),
            bound_high=_bound(filled.high[row], values[row]),
            standard_error=figure(own.standard_error[row]),
            rank=figure(found.rank[row]),
            rank_low=figure(found.span[row, 0]),
            rank_high=figure(found.span[row, 1]),
            tier=int(drawn.tier[row]) or None,
            n_total=int(filled.n_total[row]),
            n_scored=int(filled.n_scored[row]),
            n_unscored=int(filled.n_total[row] - filled.n_scored[row]),
            unscored=filled.unscored[row],
            coverage=float(filled.coverage[row]),
            flagged=bool(filled.coverage[row] <= FLAGGED_BELOW - 1e-9),
        )
        for row, name in enumerate(filled.systems)
    ]
    return sorted(standings, key=lambda row: _place(row, sign))


def _bound(bound: float, value: float) -> float | None:
    """None for a bound that is infinite or undefined; the value itself where they differ by rounding alone."""
    if not np.isfinite(bound):
        return None
    return figure(value) if np.isclose(bound, value, rtol=1e-9, atol=1e-12) else float(bound)


def _place(row: Standing, sign: float) -> tuple[float, float, str]:
    """By rank; unranked systems after them, by value."""
    if row.rank is not None:
        return 0.0, row.rank, row.system
    return 1.0, np.inf if row.value is None else -sign * row.value, row.system


def _with_published(board: MetricBoard, published: Sequence[Published]) -> MetricBoard:
    """`board` with the figures of its metric."""
    systems = [row.system for row in board.standings]
    figures = figures_for(published, board.protocol, board.metric, systems)
    if not figures:
        return board
    own = {row.system: row.value * board.scale for row in board.standings if row.value is not None}
    return msgspec.structs.replace(board, published=figures, published_agreement=agreement_with(own, figures))


def _unknown(published: Sequence[Published], boards: Sequence[MetricBoard]) -> list[str]:
    """A note on the published metrics that these runs do not have."""
    names = dict.fromkeys(one.metric for one in published)
    unknown = [
        name for name in names if not any(is_for(name, board.protocol, board.metric) for board in boards)
    ]
    return [f"published: left out, no metric of these runs: {', '.join(unknown)}"] if unknown else []


def _with_people(board: MetricBoard, corrected: Sequence[Correction]) -> MetricBoard:
    """`board` with its means and differences corrected by people's scores."""
    for one in corrected:
        if (one.protocol, one.metric) == (board.protocol, board.metric):
            standings = tuple(
                msgspec.structs.replace(row, corrected=one.means.get(row.system)) for row in board.standings
            )
            return msgspec.structs.replace(board, standings=standings, corrected_differences=one.differences)
    return board
