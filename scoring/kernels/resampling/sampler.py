"""Resampled sums of scores, exact whatever the order of addition.

Scores are written as whole numbers of a common unit, small enough for every resampled sum to be exact in
float64. So the sums do not depend on threads, shards, tiles or the processor, and equal means are equal.
"""

from typing import NamedTuple

import numpy as np

from adjudge.scoring.kernels.base import streams
from adjudge.scoring.kernels.base.arrays import Flags, Floats, Integers
from adjudge.scoring.kernels.base.compiled import compiled, fused, in_threads

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
    starts: Integers,
    listed: Integers,
    lists_scored: Flags,
    n_tasks: int,
    counts: streams.Counts,
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
        self._denominators: Floats | None = None
        if denominators is not None:
            divisors, per_divisor = whole_numbers(denominators, self._tasks)
            self._denominators = _padded(divisors)
            self._per_unit /= per_divisor

    def full(self) -> Floats:
        """The statistic of the tasks themselves: `[S]`, NaN where no task has a score."""
        return self._statistic(np.ones((self._numerators.shape[1], 1), dtype=np.uint8))[:, 0]

    def resampled(self, first: int, count: int, seed: int, threads: int | None = None) -> Floats:
        """The statistic of resamples `first` to `first + count`: `[S, count]`, NaN where none is scored."""
        result = np.empty((self._systems, count))
        key = streams.seed_key(seed)

        def tile(start: int) -> None:
            lanes = min(_TILE, count - start)
            counts = np.zeros((self._numerators.shape[1], lanes), dtype=np.uint8)
            streams.draw_counts(counts, self._bounds, self._tails, first + start, *key)
            result[:, start : start + lanes] = self._statistic(counts)

        in_threads(tile, range(0, count, _TILE), threads)
        return result

    def _statistic(self, counts: streams.Counts) -> Floats:
        sums = _weighted_sums(self._numerators, counts)[: self._systems]
        if self._denominators is None:
            divisors = _scored_counts(*self._absences, self._tasks, counts)
        else:
            divisors = _weighted_sums(self._denominators, counts)[: self._systems]
        defined = divisors > 0.0
        quotients = np.divide(sums, divisors, out=np.full_like(sums, np.nan), where=defined)
        quotients /= self._per_unit
        return quotients


def _padded(values: Floats) -> Floats:
    """`values[S, T]` with zeros added up to multiples of 4, row by row, for which alone kernels are compiled."""
    return np.ascontiguousarray(np.pad(values, [(0, -size % 4) for size in values.shape]))
