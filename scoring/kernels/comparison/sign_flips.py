"""The kernel of the sign-flip test: sums of columns under many random sign patterns.

Eight tasks at a time have only 256 sign patterns: their partial sums are tabulated once and looked up by
every resample, which leaves one addition for eight tasks.
"""

import numpy as np
from numpy.typing import NDArray

from adjudge.scoring.kernels.base.arrays import Floats, Integers
from adjudge.scoring.kernels.base.compiled import compiled, in_threads

# 256 partial sums and 1,024 running sums of 64 columns stay in a second-level cache.
COLUMNS = 64
RESAMPLES = 1024

SignBytes = NDArray[np.uint8]


def count_extreme(
    values: Floats,
    first: Integers,
    second: Integers,
    signs: SignBytes,
    observed: Floats,
    tolerance: Floats,
) -> Integers:
    """How many sign patterns give each pair a sum of differences at least as far from 0 as the observed one.

    Args:
        values: `[S, T]`, NaN for missing.
        first: rows of the minuends, `[P]`.
        second: rows of the subtrahends, `[P]`.
        signs: `[ceil(T / 8), R]`, a set bit keeps a task's sign.
        observed: `[P]`, the sums without flips.
        tolerance: `[P]`, how much nearer to 0 still counts.
    """
    least = np.abs(observed) - tolerance
    if not first.size:
        return np.zeros(0, np.int64)
    if np.isnan(values).any():
        return _count_by_pair(values, first, second, signs, least)
    return _count_by_system(values, first, second, signs, least)


def _count_by_system(
    values: Floats, first: Integers, second: Integers, signs: SignBytes, least: Floats
) -> Integers:
    # Flipped sums of differences are differences of flipped sums, so S columns serve all pairs.
    columns = np.ascontiguousarray((values - values.mean(axis=0)).T)
    starts = range(0, signs.shape[1], RESAMPLES)
    counts = np.zeros((len(starts), first.size), np.int64)

    def count(tile: int) -> None:
        patterns = np.ascontiguousarray(signs[:, starts[tile] : starts[tile] + RESAMPLES])
        sums = np.empty((patterns.shape[1], columns.shape[1]))
        for left in range(0, columns.shape[1], COLUMNS):
            sums[:, left : left + COLUMNS] = _flipped_sums(columns[:, left : left + COLUMNS].copy(), patterns)
        _count_pairs(sums, first, second, least, counts[tile])

    in_threads(count, range(len(starts)))
    total: Integers = counts.sum(axis=0)
    return total


def _count_by_pair(
    values: Floats, first: Integers, second: Integers, signs: SignBytes, least: Floats
) -> Integers:
    counts = np.zeros(first.size, np.int64)

    def count(left: int) -> None:
        pairs = slice(left, left + COLUMNS)
        differences = np.nan_to_num(values[first[pairs]] - values[second[pairs]])
        columns = np.ascontiguousarray(differences.T)
        for start in range(0, signs.shape[1], RESAMPLES):
            sums = _flipped_sums(columns, np.ascontiguousarray(signs[:, start : start + RESAMPLES]))
            counts[pairs] += (np.abs(sums) >= least[pairs]).sum(axis=0)

    in_threads(count, range(0, first.size, COLUMNS))
    return counts


@compiled
def _count_pairs(sums: Floats, first: Integers, second: Integers, least: Floats, counts: Integers) -> None:
    for resample in range(sums.shape[0]):
        for pair in range(first.size):
            flipped = sums[resample, first[pair]] - sums[resample, second[pair]]
            counts[pair] += abs(flipped) >= least[pair]


@compiled
def _flipped_sums(columns: Floats, signs: SignBytes) -> Floats:
    """Column sums of `columns[T, C]` under each of the patterns `signs[ceil(T / 8), R]`: `[R, C]`."""
    tasks, width = columns.shape
    sums = np.zeros((signs.shape[1], width))
    table = np.empty((256, width))
    for block in range(signs.shape[0]):
        start = 8 * block
        size = min(8, tasks - start)
        table[0] = 0.0
        # Plain loops: whole-array expressions would allocate their results.
        for task in range(start, start + size):
            for column in range(width):
                table[0, column] -= columns[task, column]
        for bit in range(size):
            for pattern in range(1 << bit):
                for column in range(width):
                    added = 2 * columns[start + bit, column]
                    table[(1 << bit) + pattern, column] = table[pattern, column] + added
        mask = (1 << size) - 1
        for resample in range(signs.shape[1]):
            partial, total = table[signs[block, resample] & mask], sums[resample]
            for column in range(width):
                total[column] += partial[column]
    return sums
