"""A leaderboard as data: runs, their metrics, and where every system stands under each."""

import msgspec

from adjudge.engine.leaderboard.correction import Corrected, CorrectedDifference
from adjudge.engine.leaderboard.detail import Detail
from adjudge.engine.leaderboard.published import PublishedAgreement
from adjudge.engine.records.matrices import figure
from adjudge.engine.records.provenance import Provenance
from adjudge.engine.records.resolution import Resolution
from adjudge.engine.records.spending import Spent
from adjudge.scoring.kernels.resampling.bootstrap import RankAgreement

__all__ = ["FLAGGED_BELOW", "Leaderboard", "MetricBoard", "RankStability", "Standing"]

FLAGGED_BELOW = 0.95


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One system under one metric.

    `value` is its mean over its own scored tasks with the interval `low`..`high`; `on_common` its mean over the tasks
    scored for all, which gives its `rank` (1 is best; equals share the mean of their ranks) with the interval
    `rank_low`..`rank_high`. `tier` 1 holds the systems that cannot be told from the best, and so on. `coverage` is
    n_scored / n_total, `flagged` whether that is under 95 %. Figures are None where nothing is scored. `corrected` is
    the mean corrected by people's scores of some tasks.
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

    `tau` and `rho` (Kendall's tau-b, Spearman's rho) say how stable the ranking is when tasks are resampled.
    Headline metrics have a `detail`. `published` holds published figures by system, in the units that are displayed.
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

    @property
    def ranked_on(self) -> str:
        """Which tasks the ranking uses, in words."""
        whom = "all" if all(row.n_scored for row in self.standings) else "all that have any"
        return f"the {self.n_common} of {self.n_tasks} tasks that are scored for {whom}"


class Leaderboard(msgspec.Struct, frozen=True, kw_only=True):
    """A leaderboard over `runs`. `notes` say what a reader must know before comparing, `sources` how it was made.

    `stopped` says how the runs with `until_resolved` ended: which comparisons were resolved, and when.
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
