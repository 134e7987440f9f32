"""A leaderboard as data: runs, their metrics, and where every system stands under each."""

import msgspec

from adjudge.engine.config.board import BoardConfig
from adjudge.engine.leaderboard.corrected import Corrected, CorrectedDifference
from adjudge.engine.leaderboard.detail import Detail
from adjudge.engine.records.provenance import Provenance
from adjudge.engine.records.resolution import Resolution
from adjudge.engine.records.spending import Spent

__all__ = ["FLAGGED_BELOW", "Group", "Grouping", "Leaderboard", "MetricBoard", "RankStability", "Standing"]

FROM_COMPARISONS = ("strength", "win_rate")
"""The metrics of boards that are made of comparisons; single comparisons have others."""

FLAGGED_BELOW = 0.95
"""The coverage that a system needs to be ranked."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One system under one metric.

    `value` is its mean over all selected tasks, what is unscored or was not submitted counted as the worst it could
    be; it is what ranks are by. `low`..`high` is its interval over resampled tasks, `bound_low`..`bound_high` what the
    mean could become once everything is scored (None: without bound). `rank` is 1 for the best; equals share the mean
    of their ranks; `rank_low`..`rank_high` spans the resamples and the bounds of all systems. `tier` 1 holds
    the systems that cannot be told from the best, and so on. `coverage` is the scored share of all selected tasks, of
    as many samples and repeats as the system has; a system under 95 % is `flagged` and has no rank or tier. `n_total`
    counts what was to be scored, `unscored` what was not by reason (`not_submitted` among them). `value` is None where
    nothing bounds what is missing. `standard_error` is that of the resampled means. `corrected` is the mean corrected
    by people's scores of some tasks.
    """

    system: str
    value: float | None
    low: float | None
    high: float | None
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
    bound_low: float | None = None
    bound_high: float | None = None
    corrected: Corrected | None = None
    standard_error: float | None = None

    @property
    def open(self) -> bool:
        """Whether the value can still change."""
        return self.bound_low != self.value or self.bound_high != self.value


class RankStability(msgspec.Struct, frozen=True):
    """A rank correlation of the resampled rankings with the full one: mean and interval, None where undefined."""

    mean: float | None
    low: float | None
    high: float | None


class PublishedAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """Agreement of one's own values with published ones, over the `n` systems in both; None if undefined."""

    n: int
    tau: float | None
    rho: float | None
    pearson: float | None
    mean_difference: float | None

    @property
    def line(self) -> str:
        """The figures in one line."""
        named = {"Kendall's tau": self.tau, "Spearman's rho": self.rho, "Pearson's r": self.pearson}
        figures = {**named, "mean difference": self.mean_difference}
        shown = (f"{name} {'-' if value is None else f'{value:.2f}'}" for name, value in figures.items())
        return f"{self.n} systems in both; {', '.join(shown)}"


class MetricBoard(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one protocol. Standings are in order of rank; unranked systems come last, in order of their value.

    Metrics of one `table` of a protocol are ranked by its headline metric; those that are `shown` stand in it.
    `n_tasks` counts the selected tasks, `n_without_gold` those that are not selected for want of gold.
    `not_submitted` are some of the reports that are missing, "SYSTEM on TASK".

    `tau` and `rho` (Kendall's tau-b, Spearman's rho) say how stable the ranking is when tasks are resampled.
    Headline metrics have a `detail`. `definition`, `unit` and `source` are the metric's words. `published` holds
    published figures by system, in the units that are displayed.
    """

    protocol: str
    metric: str
    judge: str
    headline: bool
    shown: bool
    scale: float
    lower_is_better: bool
    n_tasks: int
    tau: RankStability
    rho: RankStability
    standings: tuple[Standing, ...]
    n_without_gold: int = 0
    not_submitted: tuple[str, ...] = ()
    detail: Detail | None = None
    published: dict[str, float] = {}
    published_agreement: PublishedAgreement | None = None
    corrected_differences: tuple[CorrectedDifference, ...] = ()
    table: str = ""
    definition: str = ""
    unit: str = ""
    source: str = ""

    @property
    def no_ranking(self) -> str:
        """The reason for a missing ranking, in words; "" if systems are ranked."""
        if any(row.rank is not None for row in self.standings):
            return ""
        if any(row.n_scored for row in self.standings):
            return f"every system has less than {FLAGGED_BELOW:.0%} scored"
        return "nothing was scored"

    @property
    def basis(self) -> str:
        """What the ranking is by, or why there is none, in words."""
        ranked = f"not ranked: {self.no_ranking}" if self.no_ranking else f"ranked by {self.metric}"
        left_out = f", {self.n_without_gold} without gold left out" if self.n_without_gold else ""
        return f"{ranked}; {self.n_tasks} tasks{left_out}"


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks with one value of an attribute, `name` ("" for none), and metrics over them alone."""

    name: str
    metrics: tuple[MetricBoard, ...]


class Grouping(msgspec.Struct, frozen=True, kw_only=True):
    """All tasks by an `attribute`. `mean` holds the metrics that are in at least two groups, as the mean over these."""

    attribute: str
    groups: tuple[Group, ...]
    mean: tuple[MetricBoard, ...]


class Leaderboard(msgspec.Struct, frozen=True, kw_only=True):
    """A leaderboard over `runs`. `notes` say what a reader must know before comparing, `sources` how it was made.

    `stopped` says how the runs with `until_resolved` ended: which comparisons were resolved, and when. Protocols are in
    the order of the configuration, metrics in that in which these declare them. `groupings` holds all metrics `by` the
    attribute that was asked for, and the headline metrics by every attribute that tells tasks apart. `provisional` says
    of each run that has not finished how far it is. `about` is what the configuration says of the leaderboard, `tasks`
    has the attributes of tasks by which there are groups.
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
    by: str = ""
    groupings: tuple[Grouping, ...] = ()
    provisional: tuple[str, ...] = ()
    about: BoardConfig = BoardConfig()
    tasks: dict[str, dict[str, str]] = {}
