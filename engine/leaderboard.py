"""Runs folded into a leaderboard: every metric with its interval, ranks with theirs, and what is missing and why.

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
from adjudge.engine.config import ConfigError
from adjudge.engine.correction import Corrected, CorrectedDifference, Correction, corrections
from adjudge.engine.detail import Detail, Noise, detail_of, noise_of
from adjudge.engine.provenance import Provenance
from adjudge.engine.published import Published, PublishedAgreement, agreement_with
from adjudge.engine.record import RunRecord, TaskRecord
from adjudge.engine.resolution import Resolution
from adjudge.engine.scores import ScoreMatrix, figure, read_matrices, read_scores, values_of
from adjudge.engine.spending import Spent
from adjudge.judges.panel import same_family
from adjudge.scoring.kernels.bootstrap import Bootstrap, RankAgreement, bootstrap
from adjudge.scoring.scorecard import Metric

__all__ = [
    "Leaderboard",
    "MetricBoard",
    "Standing",
    "Statistics",
    "build_leaderboard",
    "figure",
]

RESAMPLES = 10_000
CONFIDENCE = 0.95
FLAGGED_BELOW = 0.95
_NO_ROOM = ("answer_truncated", "context_overflow")

Floats = npt.NDArray[np.float64]
Known = dict[tuple[str, str], Metric]


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One system under one metric.

    `value` is its mean over its own scored tasks with the interval `low`..`high`; `on_common` its mean over the tasks
    scored for all, by which it has `rank` (1 is best; equals share the mean of their ranks) with the interval
    `rank_low`..`rank_high`. `tier` 1 holds those that cannot be told from the best, and so on. `coverage` is
    n_scored / n_total, `flagged` whether that is under 95 %. None where nothing is scored. `corrected` is what people's
    scores of some tasks make of it.
    """

    system: str
    value: float | None
    low: float | None
    high: float | None
    on_common: float | None
    rank: float | None
    rank_low: float | None
    rank_high: float | None
    tier: int | None
    n_total: int
    n_scored: int
    n_unscored: int
    unscored: dict[str, int]
    coverage: float
    flagged: bool
    corrected: Corrected | None = None


class RankStability(msgspec.Struct, frozen=True):
    """A rank correlation of the resampled rankings with the full one: mean and interval, None where undefined."""

    mean: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, agreement: RankAgreement) -> "RankStability":
        """The kernel's figures."""
        return cls(figure(agreement.mean), figure(agreement.low), figure(agreement.high))


class MetricBoard(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one protocol. Standings are in order of rank, unranked systems last, by name.

    `tau` and `rho` (Kendall's tau-b, Spearman's rho) say how well the ranking holds when tasks are drawn anew.
    Headline metrics have a `detail`. `published` holds others' figures by system, in the units people are shown.
    """

    protocol: str
    metric: str
    judge: str
    headline: bool
    shown: bool
    scale: float
    lower_is_better: bool
    n_tasks: int
    n_common: int
    tau: RankStability
    rho: RankStability
    standings: tuple[Standing, ...]
    detail: Detail | None = None
    published: dict[str, float] = {}
    published_agreement: PublishedAgreement | None = None
    corrected_differences: tuple[CorrectedDifference, ...] = ()


class Leaderboard(msgspec.Struct, frozen=True, kw_only=True):
    """A leaderboard over `runs`. `notes` say what a reader must know before comparing, `sources` how it was made.

    `stopped` says how runs ended that were to stop when their comparisons were resolved.
    """

    runs: tuple[str, ...]
    notes: tuple[str, ...]
    confidence: float
    resamples: int
    seed: int
    metrics: tuple[MetricBoard, ...]
    sources: tuple[Provenance, ...] = ()
    spent: dict[str, Spent] = {}
    stopped: tuple[Resolution, ...] = ()


class Statistics:
    """What a leaderboard leaves to others: reading score rows and drawing resamples. Here, in this process."""

    def read(self, runs: list[Path]) -> pa.Table:
        """The score rows of `runs`. Raises ConfigError."""
        return read_scores(runs)

    def resample(self, values: Floats, denominators: Floats | None, seed: int) -> Bootstrap:
        """The bootstrap of `values[S, T]`, RESAMPLES at CONFIDENCE."""
        return bootstrap(values, denominators=denominators, resamples=RESAMPLES, level=CONFIDENCE, seed=seed)


class _Known(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs say of metrics, tasks and systems, and who did the judging."""

    metrics: Known
    tasks: dict[str, TaskRecord]
    spent: dict[str, Spent]
    judges: str
    seed: int
    noise: dict[tuple[str, str], Noise | None]

    @classmethod
    def of(cls, records: list[RunRecord], scores: pa.Table) -> "_Known":
        metrics = {
            (protocol, metric.name): metric
            for record in records
            for protocol, found in record.metrics.items()
            for metric in found
        }
        repeated = any(record.config.repeats > 1 for record in records)
        return cls(
            metrics=metrics,
            tasks={name: task for record in records for name, task in record.tasks.items()},
            spent={name: spent for record in records for name, spent in record.spent.items()},
            judges=" + ".join(dict.fromkeys(record.judge.name for record in records)),
            seed=records[0].config.seed,
            noise={
                (protocol, name): noise_of(scores, protocol, name)
                for (protocol, name), metric in metrics.items()
                if metric.headline and repeated
            },
        )


def build_leaderboard(
    runs: Sequence[str | Path],
    statistics: Statistics | None = None,
    published: Sequence[Published] = (),
    human: str | Path | None = None,
) -> Leaderboard:
    """The leaderboard of the run folders `runs`, by `statistics` of this process or another's.

    `published` figures are set beside the metrics of their names, what people's ratings in the file `human` make of
    means and differences beside the judge's. Raises ConfigError for a folder that is no finished
    run, and for published figures of other metrics alone.
    """
    folders = [Path(run) for run in runs]
    if len(set(folders)) < len(folders):
        raise ConfigError("leaderboard: a run is named twice")
    records = [RunRecord.read(folder) for folder in folders]
    statistics = statistics or Statistics()
    scores = statistics.read(folders)
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
        raise ConfigError(f"published: no figure is of a metric of these runs; they have {there}")
    return Leaderboard(
        runs=tuple(record.run for record in records),
        notes=(*_notes(records, boards), *_blamed(scores)),
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
    noise = known.noise.get((matrix.protocol, matrix.metric))
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
        detail=detail_of(matrix, common, paired, sign, known.tasks, known.spent, noise)
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
    """`board` with what people's scores make of its means and differences."""
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
    """The metrics that have no value for one report: ratios of two others' sums over tasks."""
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


def _blamed(scores: pa.Table) -> list[str]:
    """What to know where reports took the worst because the judge could not take them in, or end its answer."""
    wanted = pc.and_(pc.is_valid(scores["value"]), pc.is_in(scores["reason"], pa.array(_NO_ROOM)))
    cards = scores.filter(wanted).group_by(["protocol", "reason", "system", "task_id", "sample", "repeat"])
    counted = cards.aggregate([]).group_by(["protocol", "reason"]).aggregate([([], "count_all")])
    return [
        f"{row['protocol']}: {row['count_all']} reports took the worst for {row['reason']}: where that is most of them,"
        " the judge's window or its answers are too short; mend it and ask again with --retry-unscored"
        for row in sorted(counted.to_pylist(), key=lambda row: (row["protocol"], row["reason"]))
    ]


def _changed_tasks(records: list[RunRecord]) -> int:
    """How many tasks of the same name are not the same in all of the runs that have them."""
    digests: dict[str, set[str]] = {}
    for record in records:
        for name, task in record.tasks.items():
            digests.setdefault(name, set()).add(task.digest)
    return sum(len(found - {""}) > 1 for found in digests.values())


def _notes(records: list[RunRecord], boards: list[MetricBoard]) -> list[str]:
    notes = []
    for what, values in (
        ("judges", [record.judge.fingerprint for record in records]),
        ("prompts", [str(sorted(record.prompts.items())) for record in records]),
        ("protocol options", [str(record.config.protocols) for record in records]),
        ("criteria", [str(record.criteria) for record in records]),
    ):
        if len(set(values)) > 1:
            notes.append(f"these runs differ in their {what}: compare their scores with care")
    changed = _changed_tasks(records)
    if changed:
        notes.append(
            f"these runs differ in the prompt or gold of {changed} tasks: compare their scores with care"
        )
    if any(record.judge.name == "lexical" for record in records):
        notes.append("the lexical judge sees words, not meaning: a baseline, not a measure of quality")
    notes += [record.stopped.note for record in records if record.stopped is not None]
    if any(board.corrected_differences for board in boards):
        notes.append(
            "corrected figures are people's scores foretold; they hold if the rated tasks were drawn at random"
        )
    for record in records:
        related = same_family(record.judge.name, record.systems)
        if related:
            notes.append(
                f"the judge {record.judge.name} is of the family of {', '.join(related)}: it may favour its own"
            )
    for board in boards:
        if not board.headline:
            continue
        flagged = [row.system for row in board.standings if row.flagged]
        if flagged:
            notes.append(
                f"{board.protocol} {board.metric}: under {FLAGGED_BELOW:.0%} scored for {', '.join(flagged)} (*)"
            )
        most = max(row.n_total for row in board.standings)
        fewer = [f"{row.system} ({row.n_total} of {most})" for row in board.standings if row.n_total < most]
        if fewer:
            notes.append(f"{board.protocol} {board.metric}: fewer reports than others for {', '.join(fewer)}")
        if not board.n_common:
            notes.append(
                f"{board.protocol} {board.metric}: no task is scored for all systems, so they are not ranked"
            )
    return notes
