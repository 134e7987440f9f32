"""What a leaderboard says of a metric beside the standings: the types alone, which need no statistics."""

import msgspec

__all__ = ["AXES", "BestOf", "Detail", "Frontier", "LeftOut", "Noise", "Pair", "RankShare"]

AXES = ("seconds", "cost", "tokens", "tokens_written")


class BestOf(msgspec.Struct, frozen=True, kw_only=True):
    """A system's mean over tasks if the best of `k` of its samples were kept; pass@k for a metric of 0 and 1.

    Unbiased: for each task, the mean over all ways to choose k of its scored samples. `n_scored` of `n_tasks` tasks
    have k scored samples; `value` is None if no task has.
    """

    system: str
    k: int
    value: float | None
    n_scored: int
    n_tasks: int


class RankShare(msgspec.Struct, frozen=True):
    """The `share` of the resamples in which a system had a `rank`."""

    system: str
    rank: float
    share: float


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """System `a` minus system `b` on the `n_used` tasks that are scored for both; `a` is ranked before `b`.

    `low` and `high` bound the difference (Student's t); `p` is the paired t test's, two-sided; `holm` is `p` corrected
    for the number of pairs. A pooled metric has no differences per task to test: the difference is that of the ranked
    values with its bootstrap interval, `p` and `holm` are None.
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
    tau-b with the full ranking, None if all systems tie. `ranks` holds each system's best and worst rank.
    """

    n_tasks: int
    n_kept: int
    least_tau: float | None
    ranks: dict[str, tuple[int, int]]


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """All the detail of one metric. Pairs are in order of rank; `noise` is None unless the run had repeats.

    `best_of` is empty unless the run had several samples per task. `by_task` has each system's values on `tasks`, None
    where nothing was scored; both are empty if there are too many.
    """

    ranks: tuple[RankShare, ...]
    pairs: tuple[Pair, ...]
    frontiers: tuple[Frontier, ...]
    noise: Noise | None
    left_out: LeftOut | None = None
    best_of: tuple[BestOf, ...] = ()
    tasks: tuple[str, ...] = ()
    by_task: dict[str, tuple[float | None, ...]] = {}
