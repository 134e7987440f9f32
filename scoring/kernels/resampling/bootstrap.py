"""How sure a leaderboard is: tasks resampled with replacement, the same tasks for every system.

`bootstrap` does it at once; `bootstrap_part` draws a range of the resamples anywhere and `merge` joins the parts into
the same result, bit for bit. A resample depends only on the seed and its number, and every resampled sum is exact:
scores are written as whole numbers of a common unit, small enough for every sum to be exact in float64. So nothing
depends on threads, shards, tiles, the processor or the order of addition, and equal means are equal.

Ties: two resampled means are tied when they are equal, as scores on a common grid can be; sums being exact, rounding
neither makes nor breaks a tie (whole numbers up to four decimals, binary fractions; other scores are first rounded to
about n_tasks * 2**-53 of the largest). Tied systems share the mean of their ranks.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.scoring.kernels.base import streams
from adjudge.scoring.kernels.base.arrays import (
    Flags,
    Floats,
    Integers,
    KernelError,
    as_scores,
    as_share,
    compiled,
    fused,
    in_threads,
)
from adjudge.scoring.kernels.resampling.intervals import (
    bca_shares,
    difference_intervals,
    quantiles,
    sorted_rows,
)
from adjudge.scoring.kernels.resampling.rankings import descending_midranks, rankings

_TILE = 128  # resamples drawn at a time
_BLOCK = 512  # tasks whose counts stay in the cache while every system is summed
_DECIMALS = 4


class WholeNumbers(NamedTuple):
    """`values[S, T] / per_unit` are the scores: exactly on a decimal or binary grid, else to T * 2**-53."""

    values: Floats
    per_unit: float


class Absences(NamedTuple):
    """For each system the shorter list of tasks, scored or unscored: `tasks[starts[s]:starts[s + 1]]`."""

    starts: Integers
    tasks: Integers
    lists_scored: Flags


def whole_numbers(scores: Floats, draws: int) -> WholeNumbers:
    """`scores[S, T]` (finite) as whole numbers, of which any sum with `draws` terms is exact in float64.

    Scores on a decimal grid (whole, tenths, ... up to four places) keep it, if they fit: 0.1 + 0.2 ties 0.3.
    """
    top = float(np.abs(scores).max(initial=0.0))
    if top == 0.0:
        return WholeNumbers(scores, 1.0)
    limit = 2.0**53 / draws
    for per_unit in (10.0**places for places in range(_DECIMALS + 1)):
        if top * per_unit > limit:
            break
        if _on_grid(scores.ravel()[:256] * per_unit) and _on_grid(scores * per_unit):
            return WholeNumbers(np.rint(scores * per_unit), per_unit)
    exponent = min(int(np.floor(np.log2(limit) - np.log2(top))), 1000)
    return WholeNumbers(np.rint(np.ldexp(scores, exponent)), float(np.ldexp(1.0, exponent)))


def _on_grid(values: Floats) -> bool:
    return bool(np.all(np.abs(values - np.rint(values)) <= 2.0**-50 * np.abs(values)))


def absences(scored: Flags) -> Absences:
    """The lists of `scored[S, T]`."""
    lists_scored = 2 * scored.sum(axis=1) < scored.shape[1]
    listed = scored == lists_scored[:, None]
    starts = np.concatenate([[0], np.cumsum(listed.sum(axis=1))]).astype(np.int64)
    return Absences(starts, np.nonzero(listed)[1].astype(np.int64), lists_scored)


@fused
def _weighted_sums(values: Floats, counts: streams.Counts) -> Floats:
    """values[S, T] @ counts[T, lanes]; S and T are multiples of 4."""
    systems, tasks = values.shape
    lanes = counts.shape[1]
    sums = np.zeros((systems, lanes))
    for block in range(0, tasks, _BLOCK):
        for s in range(0, systems, 4):
            sum_0, sum_1, sum_2, sum_3 = sums[s], sums[s + 1], sums[s + 2], sums[s + 3]
            for t in range(block, min(block + _BLOCK, tasks), 4):
                count_0, count_1, count_2, count_3 = counts[t], counts[t + 1], counts[t + 2], counts[t + 3]
                a0, a1, a2, a3 = values[s, t], values[s, t + 1], values[s, t + 2], values[s, t + 3]
                b0, b1, b2, b3 = (
                    values[s + 1, t],
                    values[s + 1, t + 1],
                    values[s + 1, t + 2],
                    values[s + 1, t + 3],
                )
                c0, c1, c2, c3 = (
                    values[s + 2, t],
                    values[s + 2, t + 1],
                    values[s + 2, t + 2],
                    values[s + 2, t + 3],
                )
                d0, d1, d2, d3 = (
                    values[s + 3, t],
                    values[s + 3, t + 1],
                    values[s + 3, t + 2],
                    values[s + 3, t + 3],
                )
                for k in range(lanes):
                    w0, w1, w2, w3 = count_0[k], count_1[k], count_2[k], count_3[k]
                    sum_0[k] = sum_0[k] + a0 * w0 + a1 * w1 + a2 * w2 + a3 * w3
                    sum_1[k] = sum_1[k] + b0 * w0 + b1 * w1 + b2 * w2 + b3 * w3
                    sum_2[k] = sum_2[k] + c0 * w0 + c1 * w1 + c2 * w2 + c3 * w3
                    sum_3[k] = sum_3[k] + d0 * w0 + d1 * w1 + d2 * w2 + d3 * w3
    return sums


@compiled
def _scored_counts(
    starts: Integers, listed: Integers, lists_scored: Flags, n_tasks: int, counts: streams.Counts
) -> Floats:
    """How many of a resample's draws are scored, for each system: `[S, lanes]`."""
    systems, lanes = lists_scored.size, counts.shape[1]
    scored = np.empty((systems, lanes))
    total = np.empty(lanes, dtype=np.uint32)
    for s in range(systems):
        total[:] = 0
        entry = starts[s]
        while entry + 4 <= starts[s + 1]:
            row_0, row_1 = counts[listed[entry]], counts[listed[entry + 1]]
            row_2, row_3 = counts[listed[entry + 2]], counts[listed[entry + 3]]
            for k in range(lanes):
                total[k] += np.uint32(row_0[k]) + row_1[k] + row_2[k] + row_3[k]
            entry += 4
        while entry < starts[s + 1]:
            row_0 = counts[listed[entry]]
            for k in range(lanes):
                total[k] += row_0[k]
            entry += 1
        for k in range(lanes):
            scored[s, k] = total[k] if lists_scored[s] else n_tasks - total[k]
    return scored


class Sampler:
    """Resampled means or ratios of sums: `scores[S, T]`, absent where not `scored`, tasks sorted by stratum.

    `denominators[S, T]` makes a ratio of sums; without it a mean. Stratum h is `bounds[h]` to `bounds[h + 1]`.
    """

    def __init__(self, scores: Floats, scored: Flags, denominators: Floats | None, bounds: Integers) -> None:
        self._systems, self._tasks = scores.shape
        self._bounds = bounds
        self._tails = streams.poisson_tails(np.diff(bounds))
        numerators, self._per_unit = whole_numbers(scores, self._tasks)
        self._numerators = _padded(numerators)
        self._absences = absences(scored)
        self._scored = scored.sum(axis=1, dtype=np.float64)
        self._denominators: Floats | None = None
        if denominators is not None:
            divisors, per_divisor = whole_numbers(denominators, self._tasks)
            self._denominators = _padded(divisors)
            self._per_unit /= per_divisor

    def full(self) -> Floats:
        """The statistic of the tasks themselves: `[S]`, NaN where no task has a score."""
        sums = self._numerators.sum(axis=1, initial=0.0)[: self._systems]
        divisors = self._scored
        if self._denominators is not None:
            divisors = self._denominators.sum(axis=1, initial=0.0)[: self._systems]
        return self._quotients(sums, divisors)

    def resampled(self, first: int, count: int, seed: int, threads: int | None = None) -> Floats:
        """The statistic of resamples `first` to `first + count`: `[S, count]`, NaN where none is scored."""
        if (np.diff(self._bounds) < 2).all():  # each resample draws the one task of every stratum
            return np.repeat(self.full()[:, None], count, axis=1)
        result = np.empty((self._systems, count))
        key = streams.seed_key(seed)

        def tile(start: int) -> None:
            lanes = min(_TILE, count - start)
            counts = np.zeros((self._numerators.shape[1], lanes), dtype=np.uint8)
            streams.draw_counts(counts, self._bounds, self._tails, first + start, *key)
            result[:, start : start + lanes] = self._statistic(counts)

        in_threads(tile, range(0, count, _TILE), threads, steps=_TILE * self._numerators.size)
        return result

    def _statistic(self, counts: streams.Counts) -> Floats:
        sums = _weighted_sums(self._numerators, counts)[: self._systems]
        if self._denominators is None:
            divisors = _scored_counts(*self._absences, self._tasks, counts)
        else:
            divisors = _weighted_sums(self._denominators, counts)[: self._systems]
        return self._quotients(sums, divisors)

    def _quotients(self, sums: Floats, divisors: Floats) -> Floats:
        defined = divisors > 0.0
        quotients = np.divide(sums, divisors, out=np.full_like(sums, np.nan), where=defined)
        quotients /= self._per_unit
        return quotients


def _padded(values: Floats) -> Floats:
    """`values[S, T]` with zeros added up to multiples of 4, row by row, for which alone kernels are compiled."""
    return np.ascontiguousarray(np.pad(values, [(0, -size % 4) for size in values.shape]))


class RankAgreement(msgspec.Struct, frozen=True):
    """A rank correlation of the resampled with the full ranking: mean and percentile interval.

    `resamples` counts those where it is defined; the figures are NaN if there is none.
    """

    mean: float
    low: float
    high: float
    resamples: int


class _Ranking(NamedTuple):
    """What a `Bootstrap` says of ranks."""

    rank: Floats
    counts: Integers
    resamples: int
    tau: RankAgreement
    rho: RankAgreement


class BootstrapPart(msgspec.Struct, frozen=True):
    """Resamples `first` to `first + means.shape[1]`: what `merge` needs, and small enough to send.

    `means[S, count]` are the resampled means or ratios, NaN where a resample drew no task of the system.
    """

    seed: int
    first: int
    n_tasks: int
    n_used: Integers
    estimate: Floats
    acceleration: Floats
    means: Floats


class Bootstrap(msgspec.Struct, frozen=True, dict=True):
    """The statistic of every system with its uncertainty; arrays follow the order of the systems.

    NaN means undefined: no estimate without a task, no interval from fewer than two tasks.
    Higher is better: rank 1 is the highest estimate.

    n_tasks: tasks resampled, those with a score of any system. n_used[S]: those with the system's own.
    resamples: how many. defined[S]: in how many of them the system has a mean.
    estimate[S], standard_error[S]; percentile[S, 2], bca[S, 2]: intervals at `level`.
    means[S, B]: the statistic of every resample. Only `difference_interval` reads all pairs of them.
    All that is said of ranks is computed when first asked for:
    rank[S]: midranks. rank_counts[S, S]: in how many resamples the rank was 1 to S, equals sharing the best (1, 1, 3).
    ranked: resamples in which every system with an estimate has a mean; only they are ranked.
    tau, rho: Kendall's tau-b and Spearman's rho of the resampled with the full ranking.
    """

    seed: int
    level: float
    n_tasks: int
    n_used: Integers
    defined: Integers
    estimate: Floats
    standard_error: Floats
    percentile: Floats
    bca: Floats
    means: Floats

    @cached_property
    def _ranking(self) -> _Ranking:
        return _ranked(self.estimate, self.means, self.level)

    @property
    def rank(self) -> Floats:
        """Midranks [S]."""
        return self._ranking.rank

    @property
    def rank_counts(self) -> Integers:
        """In how many resamples the rank was 1 to S, `[S, S]`, equals sharing the best."""
        return self._ranking.counts

    @property
    def ranked(self) -> int:
        """How many resamples are ranked."""
        return self._ranking.resamples

    @property
    def tau(self) -> RankAgreement:
        """Kendall's tau-b of the resampled with the full ranking."""
        return self._ranking.tau

    @property
    def rho(self) -> RankAgreement:
        """Spearman's rho of the same."""
        return self._ranking.rho

    @property
    def resamples(self) -> int:
        """How many there are."""
        return int(self.means.shape[1])

    @property
    def difference(self) -> Floats:
        """Estimate of the row minus that of the column, `[S, S]`."""
        return self.estimate[:, None] - self.estimate[None, :]

    @property
    def difference_interval(self) -> Floats:
        """Percentile intervals of the differences, `[S, S, 2]`, computed when asked for: of all pairs, in S^2 B steps.

        Each mean is over its own tasks (restrict the scores to common tasks for a strictly paired difference).
        """
        found = difference_intervals(self.means, self.level)
        single = self.n_used < 2  # one task says nothing of the spread
        found[single] = found[:, single] = np.nan
        return found

    def among(self, ranked: Flags) -> "Bootstrap":
        """As if only the systems that are `ranked` [S] had scores."""
        rows = ranked[:, None]
        estimate, means = np.where(ranked, self.estimate, np.nan), np.where(rows, self.means, np.nan)
        return msgspec.structs.replace(
            self,
            n_used=np.where(ranked, self.n_used, 0),
            defined=np.where(ranked, self.defined, 0),
            estimate=estimate,
            standard_error=np.where(ranked, self.standard_error, np.nan),
            percentile=np.where(rows, self.percentile, np.nan),
            bca=np.where(rows, self.bca, np.nan),
            means=means,
        )

    def moved(self, by: Floats, least: float = -np.inf) -> "Bootstrap":
        """With the statistic of every system, and of each of its resamples, moved `by` [S], but not below `least`."""
        rows = by[:, None]
        estimate, means = np.maximum(self.estimate + by, least), np.maximum(self.means + rows, least)
        return msgspec.structs.replace(
            self,
            estimate=estimate,
            percentile=np.maximum(self.percentile + rows, least),
            bca=np.maximum(self.bca + rows, least),
            means=means,
        )


class _Input(NamedTuple):
    """Tasks with a score of any system, sorted by stratum; 0 where a score is missing."""

    scores: Floats
    scored: Flags
    denominators: Floats | None
    bounds: Integers


def bootstrap(
    scores: npt.ArrayLike,
    *,
    denominators: npt.ArrayLike | None = None,
    strata: npt.ArrayLike | None = None,
    resamples: int = 10_000,
    level: float = 0.95,
    clip: tuple[float, float] | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Bootstrap:
    """Resamples the tasks of `scores[S systems, T tasks]`; NaN is a missing score.

    denominators[S, T], not negative: the statistic is sum(scores) / sum(denominators) over the drawn tasks
    instead of the mean, for pooled metrics. strata[T], integers: each stratum keeps its number of tasks.
    clip: the ends between which the statistic is held, of the scores and of every resample.
    Raises KernelError for other shapes, infinite values, no resamples, or a level outside (0, 1).
    """
    as_share(level, "level")
    part = bootstrap_part(
        scores, denominators=denominators, strata=strata, first=0, count=resamples, seed=seed, threads=threads
    )
    return merge([part], level=level, clip=clip, threads=threads)


def bootstrap_part(
    scores: npt.ArrayLike,
    *,
    denominators: npt.ArrayLike | None = None,
    strata: npt.ArrayLike | None = None,
    first: int,
    count: int,
    seed: int = 0,
    threads: int | None = None,
) -> BootstrapPart:
    """Resamples `first` to `first + count` of those that `bootstrap` draws; arguments as there."""
    if first < 0 or count < 1 or first + count > 2**32:
        raise KernelError(f"resamples {first} to {first + count}: at least one, within 0 to 2**32")
    given = _validated(scores, denominators, strata)
    sampler = Sampler(given.scores, given.scored, given.denominators, given.bounds)
    estimate = sampler.full()
    return BootstrapPart(
        seed=seed,
        first=first,
        n_tasks=given.scores.shape[1],
        n_used=given.scored.sum(axis=1, dtype=np.int64),
        estimate=estimate,
        acceleration=_acceleration(given, estimate),
        means=sampler.resampled(first, count, seed, threads),
    )


def merge(
    parts: Sequence[BootstrapPart],
    *,
    level: float = 0.95,
    clip: tuple[float, float] | None = None,
    threads: int | None = None,
) -> Bootstrap:
    """The result of the parts together. They may come in any order and must cover 0 to their end once.

    Raises KernelError if they overlap, leave a gap, or come from other scores, strata or another seed.
    """
    as_share(level, "level")
    ordered = sorted(parts, key=lambda part: part.first)
    if not ordered:
        raise KernelError("no parts to merge")
    end = 0
    for part in ordered:
        if part.first != end:
            raise KernelError(f"a part begins at resample {part.first}, expected {end}")
        same = (part.seed, part.n_tasks) == (ordered[0].seed, ordered[0].n_tasks) and all(
            np.array_equal(getattr(part, name), getattr(ordered[0], name), equal_nan=True)
            for name in ("n_used", "estimate", "acceleration")
        )
        if not same:
            raise KernelError(f"the part at resample {part.first} comes from other scores, strata or seed")
        end += part.means.shape[1]
    means = np.concatenate([part.means for part in ordered], axis=1) if len(ordered) > 1 else ordered[0].means
    held = clipped(msgspec.structs.replace(ordered[0], means=means), clip)
    return _summary(held, held.means, level, threads)


def clipped(part: BootstrapPart, clip: tuple[float, float] | None) -> BootstrapPart:
    """`part` with its estimates and means held between the ends of `clip`."""
    if clip is None:
        return part
    return msgspec.structs.replace(
        part, estimate=np.clip(part.estimate, *clip), means=np.clip(part.means, *clip)
    )


def mean_of(groups: Sequence[BootstrapPart], means: Floats) -> BootstrapPart:
    """The mean over `groups` of tasks, each drawn by itself with a seed of its own; all count the same.

    `means` is the sum of theirs, which are not read, so that those of many groups need not be held together.

    A system without an estimate in a group has none, and one with a single task in a group has no interval: nothing is
    known of the spread there. Its `acceleration` is 0.
    """
    return BootstrapPart(
        seed=groups[0].seed,
        first=groups[0].first,
        n_tasks=sum(group.n_tasks for group in groups),
        n_used=np.min([group.n_used for group in groups], axis=0),
        estimate=np.mean([group.estimate for group in groups], axis=0),
        acceleration=np.zeros_like(groups[0].acceleration),
        means=np.asarray(means / len(groups)),
    )


def _summary(source: BootstrapPart, means: Floats, level: float, threads: int | None) -> Bootstrap:
    estimate, n_used = source.estimate, source.n_used
    single = n_used < 2  # one task says nothing of the spread
    ordered, defined = sorted_rows(means, threads)
    shares = np.array([(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    percentile, bca = np.empty((2, estimate.size, 2))
    errors = np.full(estimate.size, np.nan)
    for system, n in enumerate(defined.tolist()):
        values, centre, skew = (
            ordered[system, :n],
            float(estimate[system]),
            float(source.acceleration[system]),
        )
        percentile[system] = quantiles(values, shares)
        bca[system] = quantiles(values, bca_shares(values, centre, skew, level))
        if n > 1:
            errors[system] = np.std(values, ddof=1)
    percentile[single] = bca[single] = errors[single] = np.nan
    return Bootstrap(
        seed=source.seed,
        level=level,
        n_tasks=source.n_tasks,
        n_used=n_used,
        defined=defined,
        estimate=estimate,
        standard_error=errors,
        percentile=percentile,
        bca=bca,
        means=means,
    )


def _ranked(estimate: Floats, means: Floats, level: float) -> _Ranking:
    present = np.flatnonzero(~np.isnan(estimate))
    ranking = rankings(estimate[present], means[present])
    counts = np.zeros((estimate.size, estimate.size), dtype=np.int64)
    counts[present, : ranking.counts.shape[1]] = ranking.counts
    return _Ranking(
        rank=descending_midranks(estimate),
        counts=counts,
        resamples=int(counts[present[0]].sum()) if present.size else 0,
        tau=_rank_agreement(ranking.tau, level),
        rho=_rank_agreement(ranking.rho, level),
    )


def _validated(
    scores: npt.ArrayLike, denominators: npt.ArrayLike | None, strata: npt.ArrayLike | None
) -> _Input:
    values = as_scores(scores, 2)
    if len(values) == 0:
        raise KernelError("scores: no systems")
    scored = ~np.isnan(values)
    divisors = None
    if denominators is not None:
        divisors = as_scores(denominators, 2, "denominators")
        if divisors.shape != values.shape:
            raise KernelError(f"denominators: shape {divisors.shape}, but scores {values.shape}")
        if (divisors < 0.0).any():
            raise KernelError("denominators: negative values")
        scored &= ~np.isnan(divisors)
        divisors = np.where(scored, divisors, 0.0)
    labels = np.zeros(values.shape[1], dtype=np.int64) if strata is None else np.asarray(strata)
    if labels.shape != (values.shape[1],) or not np.issubdtype(labels.dtype, np.integer):
        raise KernelError(f"strata: {labels.dtype}{labels.shape}, expected one integer for each task")
    used = np.flatnonzero(scored.any(axis=0))
    order = used[np.argsort(labels[used], kind="stable")]
    sizes = np.unique(labels[used], return_counts=True)[1]
    return _Input(
        scores=np.where(scored, values, 0.0)[:, order],
        scored=scored[:, order],
        denominators=None if divisors is None else divisors[:, order],
        bounds=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
    )


def _acceleration(given: _Input, estimate: Floats) -> Floats:
    """BCa's acceleration of each system, from empirical influence values centred within strata.

    Davison and Hinkley, "Bootstrap Methods and their Application", 5.3; with one stratum and
    a mean it is the jackknife's. 0 where the influence values are all equal.
    """
    weight = given.scored if given.denominators is None else given.denominators
    influence = np.where(given.scored, given.scores - np.nan_to_num(estimate)[:, None] * weight, 0.0)
    for begin, end in zip(given.bounds[:-1], given.bounds[1:], strict=True):
        influence[:, begin:end] -= influence[:, begin:end].mean(axis=1, keepdims=True)
    scale = np.abs(influence).max(axis=1, keepdims=True, initial=0.0)
    influence /= np.where(scale > 0.0, scale, 1.0)
    squares = influence * influence
    spread = squares.sum(axis=1)
    skewness = (squares * influence).sum(axis=1) / np.where(spread > 0.0, spread, 1.0) ** 1.5
    return np.asarray(skewness / 6.0, dtype=np.float64)


def _rank_agreement(values: Floats, level: float) -> RankAgreement:
    defined = np.sort(values[~np.isnan(values)])
    low, high = quantiles(defined, np.array([(1.0 - level) / 2.0, (1.0 + level) / 2.0])).tolist()
    mean = float(defined.mean()) if defined.size else float("nan")
    return RankAgreement(mean=mean, low=low, high=high, resamples=defined.size)
