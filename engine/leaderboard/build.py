"""From runs to a leaderboard: every metric and rank with its interval, and what is missing and why.

Systems are ranked on the tasks that are scored for all of them; a system without any scored task is not ranked. A
system's own value is its mean over all its scored tasks. Coverage under 95 % is flagged.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.errors import UsageError
from adjudge.engine.leaderboard.best_of import BestOf, best_of_samples
from adjudge.engine.leaderboard.board import FLAGGED_BELOW, Leaderboard, MetricBoard, RankStability, Standing
from adjudge.engine.leaderboard.correction import Correction, corrections
from adjudge.engine.leaderboard.detail import Noise, detail_of, noise_of
from adjudge.engine.leaderboard.notes import notes_on
from adjudge.engine.leaderboard.published import Published, agreement_with
from adjudge.engine.records.matrices import ScoreMatrix, figure, read_matrices, read_scores, values_of
from adjudge.engine.records.provenance import Provenance
from adjudge.engine.records.record import RunRecord, TaskRecord
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

    def resample(self, values: Floats, denominators: Floats | None, seed: int) -> Bootstrap:
        """The bootstrap of `values[S, T]`, RESAMPLES at CONFIDENCE."""
        return bootstrap(values, denominators=denominators, resamples=RESAMPLES, level=CONFIDENCE, seed=seed)


class _Known(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs say about metrics, tasks and systems, and which judges they used."""

    metrics: Known
    tasks: dict[str, TaskRecord]
    spent: dict[str, Spent]
    judges: str
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
            judges=" + ".join(dict.fromkeys(record.judge.name for record in records)),
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


def build_leaderboard(
    runs: Sequence[str | Path],
    statistics: Statistics | None = None,
    published: Sequence[Published] = (),
    human: str | Path | None = None,
) -> Leaderboard:
    """The leaderboard of the run folders `runs`; `statistics` computes it, by default in this process.

    Raises UsageError for a folder that does not hold a finished run, and what `leaderboard_of` raises.
    """
    folders = [Path(run) for run in runs]
    if len(set(folders)) < len(folders):
        raise UsageError("leaderboard: a run is named twice; name each run once")
    records = [RunRecord.read(folder) for folder in folders]
    statistics = statistics or Statistics()
    return leaderboard_of(records, statistics.read(folders), statistics, published, human)


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
    matrices = [*read_matrices(scores)]
    corrected = [] if human is None else corrections(matrices, human)
    matrices += _pooled(matrices, known.metrics)
    boards = [
        _with_people(_with_published(_board(matrix, known, statistics), published), corrected)
        for matrix in matrices
    ]
    if published and not any(board.published for board in boards):
        there = ", ".join(f"{board.protocol}.{board.metric}" for board in boards)
        raise UsageError(f"published: no figure is for a metric of these runs; name one of {there}")
    return Leaderboard(
        runs=tuple(record.run for record in records),
        notes=notes_on(records, boards, corrected, scores),
        confidence=CONFIDENCE,
        resamples=RESAMPLES,
        seed=known.seed,
        metrics=tuple(sorted(boards, key=lambda board: (board.protocol, not board.headline))),
        sources=tuple(Provenance.of(record) for record in records),
        spent=known.spent,
        stopped=tuple(record.stopped for record in records if record.stopped is not None),
    )


def _board(matrix: ScoreMatrix, known: _Known, statistics: Statistics) -> MetricBoard:
    metric = known.metrics.get((matrix.protocol, matrix.metric), Metric(name=matrix.metric))
    ranked = np.flatnonzero(~np.isnan(matrix.values).all(axis=1))
    common = np.logical_and(~np.isnan(matrix.values[ranked]).any(axis=0), ranked.size > 0)
    sign = -1.0 if metric.lower_is_better else 1.0
    own = statistics.resample(sign * matrix.values, matrix.denominators, known.seed)
    paired = (
        own
        if common.all()
        else statistics.resample(sign * matrix.values[:, common], _columns(matrix, common), known.seed)
    )
    name = (matrix.protocol, matrix.metric)
    return MetricBoard(
        protocol=matrix.protocol,
        metric=metric.name,
        judge=known.judges,
        headline=metric.headline,
        shown=metric.shown,
        scale=metric.scale,
        lower_is_better=metric.lower_is_better,
        n_tasks=len(matrix.tasks),
        n_common=int(common.sum()),
        tau=RankStability.of(paired.tau),
        rho=RankStability.of(paired.rho),
        standings=tuple(_standings(matrix, own, paired, sign)),
        detail=detail_of(
            matrix,
            common,
            paired,
            sign,
            known.tasks,
            known.spent,
            known.noise.get(name),
            known.best_of.get(name, ()),
        )
        if metric.headline
        else None,
    )


def _standings(matrix: ScoreMatrix, own: Bootstrap, paired: Bootstrap, sign: float) -> list[Standing]:
    standings = [
        Standing(
            system=name,
            value=figure(sign * own.estimate[row]),
            low=figure((own.percentile[row] * sign).min()),
            high=figure((own.percentile[row] * sign).max()),
            on_common=figure(sign * paired.estimate[row]),
            rank=figure(paired.rank[row]),
            rank_low=figure(paired.rank_interval[row, 0]),
            rank_high=figure(paired.rank_interval[row, 1]),
            tier=int(paired.tier[row]) or None,
            n_total=int(matrix.rows[row]),
            n_scored=int(matrix.scored[row]),
            n_unscored=int(matrix.rows[row] - matrix.scored[row]),
            unscored=matrix.unscored[row],
            coverage=float(matrix.scored[row] / matrix.rows[row]),
            flagged=bool(matrix.scored[row] < FLAGGED_BELOW * matrix.rows[row]),
        )
        for row, name in enumerate(matrix.systems)
    ]
    return sorted(standings, key=lambda row: (row.rank is None, row.rank, row.system))


def _with_published(board: MetricBoard, published: Sequence[Published]) -> MetricBoard:
    """`board` with the figures of its metric, named `metric` or `protocol.metric`."""
    names = (board.metric, f"{board.protocol}.{board.metric}")
    figures = {one.system: one.value for one in published if one.metric in names}
    if not figures:
        return board
    own = {row.system: row.value * board.scale for row in board.standings if row.value is not None}
    return msgspec.structs.replace(board, published=figures, published_agreement=agreement_with(own, figures))


def _with_people(board: MetricBoard, corrected: Sequence[Correction]) -> MetricBoard:
    """`board` with its means and differences corrected by people's scores."""
    for one in corrected:
        if (one.protocol, one.metric) == (board.protocol, board.metric):
            standings = tuple(
                msgspec.structs.replace(row, corrected=one.means.get(row.system)) for row in board.standings
            )
            return msgspec.structs.replace(board, standings=standings, corrected_differences=one.differences)
    return board


def _columns(matrix: ScoreMatrix, kept: npt.NDArray[np.bool_]) -> Floats | None:
    return None if matrix.denominators is None else matrix.denominators[:, kept]


def _pooled(matrices: Sequence[ScoreMatrix], known: Known) -> list[ScoreMatrix]:
    """The metrics without a value per report: ratios of two other metrics' sums over tasks."""
    found = {(matrix.protocol, matrix.metric): matrix for matrix in matrices}
    pooled = []
    for (protocol, name), metric in known.items():
        if metric.ratio is None or (protocol, metric.ratio[0]) not in found:
            continue
        over, below = (found[protocol, part] for part in metric.ratio)
        under = values_of(below, over.systems, over.tasks)
        missing = np.isnan(over.values) | np.isnan(under)
        scarcer = np.argmin([over.scored, below.scored], axis=0)
        pooled.append(
            msgspec.structs.replace(
                over,
                metric=name,
                values=np.where(missing, np.nan, over.values),
                denominators=np.where(missing, np.nan, under),
                scored=np.minimum(over.scored, below.scored),
                unscored=tuple((over, below)[part].unscored[row] for row, part in enumerate(scarcer)),
            )
        )
    return pooled
