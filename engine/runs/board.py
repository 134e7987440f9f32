"""A leaderboard as data: where every system stands under each metric, and where the figures come from."""

import shlex
import time
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from adjudge.engine.config.board import BoardConfig, SystemConfig
from adjudge.engine.config.redaction import without_logins
from adjudge.engine.runs.record import Resolution, RunRecord, Spent
from adjudge.engine.runs.tallies import AnswersOf, MeanLength, Unread
from adjudge.judges.plural import plural

__all__ = [
    "AXES",
    "FLAGGED_BELOW",
    "MOST_PAIRS",
    "BestOf",
    "Corrected",
    "CorrectedDifference",
    "Correction",
    "Detail",
    "Frontier",
    "Group",
    "Grouping",
    "Leaderboard",
    "LeftOut",
    "MetricBoard",
    "Noise",
    "Override",
    "Pair",
    "Provenance",
    "RankShare",
    "RankStability",
    "Scatter",
    "Sign",
    "Standing",
    "only_in_parquet",
]


class JudgeUsed(msgspec.Struct, frozen=True):
    """A judge of a run, and which protocols and media it judged: none named where it judged all."""

    name: str
    fingerprint: str
    sampling: str
    answers: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """In one line."""
        judged = f" ({', '.join(self.answers)})" if self.answers else ""
        return f"{self.name}{judged}, fingerprint {self.fingerprint}, sampling {self.sampling}"


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """A run as a leaderboard shows it: judge, prompts (file name to digest), protocols with options, seed and command.

    `judge` names all `judges`; `fingerprint` and `sampling` are those of the first.
    `began` is in UTC, `seconds` is the duration, and `rejected` counts input lines left out. Paths occur only in
    `command`, as it was typed.
    """

    run: str
    command: str
    judge: str
    fingerprint: str
    sampling: str
    prompts: dict[str, str]
    protocols: tuple[dict[str, Any], ...]
    repeats: int
    seed: int
    versions: dict[str, str]
    began: str
    seconds: float
    tasks: int
    systems: int
    rejected: int
    from_store: int
    from_judge: int
    judges: tuple[JudgeUsed, ...] = ()
    format: str = ""

    @property
    def judges_used(self) -> tuple[JudgeUsed, ...]:
        """All judges; leaderboards of earlier versions name one."""
        return self.judges or (JudgeUsed(self.judge, self.fingerprint, self.sampling),)

    @classmethod
    def of(cls, record: RunRecord) -> "Provenance":
        """The provenance of the run in `record`."""
        return cls(
            run=record.run,
            command=without_logins(_typed(record.command)),  # an earlier version may have left some
            judge=record.judging.said,
            judges=tuple(
                JudgeUsed(judge.name, judge.fingerprint, judge.sampling, answers)
                for judge, answers in record.judging.each.items()
            ),
            fingerprint=record.judge.fingerprint,
            sampling=record.judge.sampling,
            prompts=record.prompts,
            protocols=tuple(
                {"name": one} if isinstance(one, str) else dict(one) for one in record.config.protocols
            ),
            repeats=record.config.repeats,
            seed=record.config.seed,
            versions={"python": record.python, **record.versions},
            began=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(record.started)),
            seconds=record.ended - record.started,
            tasks=len(record.tasks),
            systems=len(record.systems),
            rejected=len(record.rejected),
            from_store=record.from_store,
            from_judge=record.from_judge,
            format=record.config.format,
        )


def _typed(command: list[str]) -> str:
    """The command as it was typed, without the program's folder."""
    if not command:
        return ""
    program = Path(command[0]).name
    return shlex.join(["adjudge" if program in ("-c", "cli.py") else program, *command[1:]])


class Corrected(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate of people's mean score over all tasks, on their scale, at 95 %; None where too few are labelled.

    `power` is the weight given to the judge (PPI++; 0: people alone, about 1: a judge as good as people).
    `people`, `people_low` and `people_high` come from the labels alone; None for labels of single verdicts, which say
    nothing without the judge. `n_labelled` tasks, or verdicts, have a label and the judge's score, `n_unlabelled` only
    the judge's.
    """

    value: float | None
    low: float | None
    high: float | None
    power: float
    people: float | None
    people_low: float | None
    people_high: float | None
    n_labelled: int
    n_unlabelled: int


class CorrectedDifference(msgspec.Struct, frozen=True, kw_only=True):
    """System `a` minus system `b`: the judge's own mean difference with Student's interval, and the corrected one."""

    a: str
    b: str
    raw: float | None
    raw_low: float | None
    raw_high: float | None
    corrected: Corrected


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """All systems and pairs of one metric; systems without a label have no figures, pairs without one are left out.

    `left_out` are the reports that people rated and the runs do not have. `basis` says what the figures rest on,
    `notes` what could not be corrected.
    """

    protocol: str
    metric: str
    means: dict[str, Corrected]
    differences: tuple[CorrectedDifference, ...]
    left_out: str = ""
    basis: str = (
        "corrected figures estimate people's mean scores; they hold if the rated tasks were drawn at random"
    )
    notes: tuple[str, ...] = ()


class Override(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict of the judge that a person overrode: `people` is what it should be, and `reason` why."""

    protocol: str
    system: str
    task_id: str
    what: str
    url: str
    judge: str
    people: str
    rater: str
    reason: str


AXES = ("seconds", "cost", "tokens", "tokens_written", "words")


class BestOf(msgspec.Struct, frozen=True, kw_only=True):
    """A system's mean over tasks if the best of `k` of its samples were kept; pass@k for a metric of 0 and 1.

    All `k` of a system are over the same `n_scored` of its `n_tasks` tasks, those with the most samples that are due.
    `value` is unbiased: for each task, the mean over all ways to choose k of its scored samples. `first` is the best of
    the k samples that came first. Both are None if no task has so many.
    """

    system: str
    k: int
    value: float | None
    n_scored: int
    n_tasks: int
    first: float | None = None


class Scatter(msgspec.Struct, frozen=True):
    """A system's standard deviations: of a task's `samples`, and of the judge's `repeats` of a sample.

    Both are pooled over tasks; a sample is the mean of its repeats. None where no task has two.
    """

    system: str
    samples: float | None
    repeats: float | None


class RankShare(msgspec.Struct, frozen=True):
    """The `share` of the resamples in which a system had a `rank`, equals sharing the best of theirs."""

    system: str
    rank: float
    share: float


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """System `a` minus system `b` in the numbers they are ranked by, over `n_used` tasks; `a` is ranked before `b`.

    `p` is two-sided, by the one rule for all claims (`kernels/comparison/claims.py`), `holm` the same corrected for the
    number of pairs; `low` and `high` bound the difference, None where the tasks are too few or show no variance.
    `n_used` counts comparisons where systems were compared with one another.
    """

    a: str
    b: str
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    holm: float | None
    n_used: int


class Frontier(msgspec.Struct, frozen=True, kw_only=True):
    """Score against resources per report. `axis` is one of AXES (`Spent`), a mean over the reports that state it."""

    axis: str
    systems: tuple[str, ...]
    spent: tuple[float, ...]
    scores: tuple[float, ...]
    on_frontier: tuple[bool, ...]


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """Where the variance of single scores comes from: each component's share (`kernels/agreement/variance.py`).

    `repeat_sd` is the standard deviation between the judge's repeats of one judgment, in units of the metric; None if
    the design cannot estimate it. A share is None if its component cannot be estimated separately.
    """

    repeat_sd: float | None
    shares: dict[str, float | None]
    n_used: int


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """The ranking without each of its `n_tasks` in turn (DeepResearch Bench, appendix K).

    Without any one of `n_kept` tasks the ranking stays the same, ties included; `least_tau` is the lowest Kendall's
    tau-b with the full ranking, None if all systems tie. `ranks` holds each system's best and worst rank, `stays` how
    many tasks could be left out one at a time without giving it another rank.
    """

    n_tasks: int
    n_kept: int
    least_tau: float | None
    ranks: dict[str, tuple[int, int]]
    stays: dict[str, int] = {}


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """All the detail of one metric. Pairs are in order of rank; `noise` is None unless the run had repeats.

    Of more than MOST_PAIRS pairs, `pairs` are those of neighbours in rank and of each system with the best of its tier,
    and `ranks` are left out: `every_pair` and `every_rank` have their columns and hold all, `more_pairs` says how many
    are there alone. The two are written as Parquet and in no other form.

    `best_of` is empty unless some system has several samples of a task, `scatter` unless some has several samples or
    repeats. `by_task` has each system's values on `tasks`, None
    where nothing was scored; both are empty if there are too many.
    """

    ranks: tuple[RankShare, ...]
    pairs: tuple[Pair, ...]
    frontiers: tuple[Frontier, ...]
    noise: Noise | None
    left_out: LeftOut | None = None
    best_of: tuple[BestOf, ...] = ()
    scatter: tuple[Scatter, ...] = ()
    tasks: tuple[str, ...] = ()
    by_task: dict[str, tuple[float | None, ...]] = {}
    more_pairs: int = 0
    every_pair: pa.Table | None = None
    every_rank: pa.Table | None = None

    @classmethod
    def of_samples(cls, best_of: tuple[BestOf, ...], scatter: tuple[Scatter, ...]) -> "Detail":
        """The detail of a group of tasks: what its samples show, and no more."""
        return cls(ranks=(), pairs=(), frontiers=(), noise=None, best_of=best_of, scatter=scatter)


MOST_PAIRS = 5_000
"""The most pairs of systems that a leaderboard lists for one metric."""


def only_in_parquet(value: object) -> None:
    """The `enc_hook` of encoders: nothing in the place of a table. Raises NotImplementedError for anything else."""
    if not isinstance(value, pa.Table):
        raise NotImplementedError(f"{type(value)} cannot be encoded")


FROM_COMPARISONS = ("strength", "win_rate")
"""The metrics of boards that are made of comparisons; single comparisons have others."""

FLAGGED_BELOW = 0.95
"""The coverage that a system needs to be ranked."""


class Sign(msgspec.Struct, frozen=True):
    """What a system's figures rest on that their readers should know: in a few `words`, and `said` in a sentence."""

    words: str
    said: str


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One system under one metric.

    `value` is the number it is ranked by: the mean over all tasks that are due of the mean over its samples, with every
    missing part, unscored sample and unsubmitted task counted as the worst it could be. `low`..`high` is its interval
    over resampled tasks (None where the tasks show no variance), `bound_low`..`bound_high` what the mean could become
    once everything is scored (None: without bound). `as_published` is the mean over what is scored, by the rule that
    the metric's name stands for, which may drop what is missing; None where nothing is scored.

    `rank` is 1 for the best; equals share the best of their ranks (1, 1, 3), or the mean of them in `midrank` (1.5,
    1.5, 3). `rank_low`..`rank_high` spans the ranks that the tests between systems do not rule out, and the bounds of
    all. `tier` 1 holds the systems that cannot be told from the best, and so on. `coverage` is the scored share of
    tasks, or of the parts of what was judged if that is lower; a system under 95 % is `flagged` and has no rank or
    tier. `n_total` counts what was to be scored, `unscored` what was not by reason (`not_submitted` among them).
    `value` is None where nothing bounds what is missing. Counts and resources are means over what is known, `n_scored`
    of `n_total`, and have no bounds. `standard_error` is that of the resampled means, `deviation` the standard
    deviation of the system's totals over its samples, else over the judge's repeats, None for a single run. `spread` is
    that of a count or resource over the tasks that state it. `corrected` is the mean corrected by people's scores of
    some tasks, `edited` the value with the verdicts that people overrode. `signs` are those of the system's reports,
    beside the metric that ranks.
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
    as_published: float | None = None
    midrank: float | None = None
    deviation: float | None = None
    spread: float | None = None
    signs: tuple[Sign, ...] = ()
    edited: float | None = None

    @property
    def open(self) -> bool:
        """Whether the value can still change."""
        return self.bound_low != self.value or self.bound_high != self.value

    @property
    def place(self) -> str:
        """The rank as it is shown: "2", "2=" for one of several equals, or "-"."""
        if self.rank is None:
            return "-"
        shared = self.midrank is not None and self.midrank != self.rank
        return f"{self.rank:g}{'=' if shared else ''}"


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
        return f"{plural(self.n, 'system')} in both; {', '.join(shown)}"


class MetricBoard(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one protocol. Standings are in order of rank; unranked systems come last, in order of their value.

    Metrics of one `table` of a protocol are ranked by its headline metric; those that are `shown` stand in it.
    `n_tasks` counts the selected tasks, `n_without_gold` those that are not selected for want of gold.
    `not_submitted` are some of the reports that are missing, "SYSTEM on TASK".

    `tau` and `rho` (Kendall's tau-b, Spearman's rho) say how stable the ranking is when tasks are resampled.
    Headline metrics have a `detail`. `definition`, `unit` and `source` are the metric's words. `published` holds
    published figures by system, in the units that are displayed. Values are written with so many `decimals`.
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
    decimals: int = 2

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
        return f"{ranked}; {plural(self.n_tasks, 'task')}{left_out}"


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks with one value of an attribute, `name` ("" for none), and metrics over them alone.

    The detail of a metric holds the best of several samples, where it has them over all tasks, and nothing else.
    """

    name: str
    metrics: tuple[MetricBoard, ...]


class Grouping(msgspec.Struct, frozen=True, kw_only=True):
    """All tasks by an `attribute`. `mean` holds the metrics that are in at least two groups, as the mean over these."""

    attribute: str
    groups: tuple[Group, ...]
    mean: tuple[MetricBoard, ...]


class Leaderboard(msgspec.Struct, frozen=True, kw_only=True):
    """A leaderboard over `runs`. `notes` say what a reader must know before comparing, `sources` how it was made.

    `unread` says what could not be read of cited pages, by host and reason, `lengths` by system how long reports are,
    `answers` what the judges said, by protocol and question type.

    `stopped` says how the runs with `until_resolved` ended: which comparisons were resolved, and when. Protocols are in
    the order of the configuration, metrics in that in which these declare them. `groupings` holds all metrics `by` the
    attribute that was asked for, and the headline metrics by every attribute that tells tasks apart. `provisional` says
    of each run that has not finished how far it is. `about` is what the configuration says of the leaderboard, and
    `systems` what it says of those on it. `tasks` has the attributes of tasks by which there are groups, `overrides`
    the verdicts that people overrode.
    """

    runs: tuple[str, ...]
    notes: tuple[str, ...]
    confidence: float
    resamples: int
    seed: int
    metrics: tuple[MetricBoard, ...]
    sources: tuple[Provenance, ...] = ()
    spent: dict[str, Spent] = {}
    lengths: dict[str, MeanLength] = {}
    stopped: tuple[Resolution, ...] = ()
    unread: tuple[Unread, ...] = ()
    answers: AnswersOf = {}
    by: str = ""
    groupings: tuple[Grouping, ...] = ()
    provisional: tuple[str, ...] = ()
    about: BoardConfig = BoardConfig()
    systems: dict[str, SystemConfig] = {}
    tasks: dict[str, dict[str, str]] = {}
    overrides: tuple[Override, ...] = ()
