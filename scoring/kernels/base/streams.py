"""Random resamples that depend only on the seed and the resample's number.

The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a
keyed function of a counter. The key is the seed; the counter is (block, stratum, resample, purpose). So any resample
can be drawn anywhere, by any thread, in any order.

How often each of n tasks is drawn in n draws is a multinomial vector. Drawing it one task at a time jumps about in
memory, so it is drawn in two steps that vectorise over resamples and give the same distribution: independent Poisson
counts with a mean a little under 1 (given their sum they are multinomial), then as many uniform draws as are missing
from n. A resample whose Poisson counts exceed n is drawn again.
"""

import math

import numpy as np
import numpy.typing as npt

from adjudge.scoring.kernels.base.arrays import compiled

Counts = npt.NDArray[np.uint8]

_MULTIPLIER_0 = np.uint64(0xD2511F53)
_MULTIPLIER_1 = np.uint64(0xCD9E8D57)
_WEYL_0 = np.uint32(0x9E3779B9)
_WEYL_1 = np.uint32(0xBB67AE85)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_TAILS = 12  # a Poisson count of mean 1 exceeds 12 with probability 6e-11, less than a 32-bit word resolves
_UNIFORM = np.uint32(0x80000000)  # the purpose of a counter: below it, attempts at Poisson counts
_BATCH = 16  # counters per call when single numbers are wanted


@compiled
def philox(words: npt.NDArray[np.uint32], key_0: np.uint32, key_1: np.uint32) -> None:
    """Replaces the counters `words[4, n]` by their random words, in place."""
    word_0, word_1, word_2, word_3 = words[0], words[1], words[2], words[3]
    for _ in range(10):
        for lane in range(words.shape[1]):
            product_0 = np.uint64(word_0[lane]) * _MULTIPLIER_0
            product_1 = np.uint64(word_2[lane]) * _MULTIPLIER_1
            word_0[lane] = np.uint32(product_1 >> _HALF) ^ word_1[lane] ^ key_0
            word_2[lane] = np.uint32(product_0 >> _HALF) ^ word_3[lane] ^ key_1
            word_1[lane] = np.uint32(product_1 & _LOW)
            word_3[lane] = np.uint32(product_0 & _LOW)
        key_0 = np.uint32(key_0 + _WEYL_0)
        key_1 = np.uint32(key_1 + _WEYL_1)


def poisson_tails(sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """P(count > k) * 2**32 for k < 12, of the Poisson counts a stratum of each size starts from: `[strata, 12]`.

    The mean is 1 - 3 / sqrt(size): three standard deviations of the sum below the size.
    """
    tails = np.zeros((sizes.size, _TAILS), dtype=np.uint32)
    for row, size in zip(tails, sizes.tolist(), strict=True):
        mean = max(0.0, 1.0 - 3.0 / math.sqrt(size))
        chances = [math.exp(-mean) * mean**k / math.factorial(k) for k in range(40)]
        row[:] = [round(math.fsum(chances[k + 1 :]) * 2.0**32) for k in range(_TAILS)]
    return tails


@compiled
def _poisson_counts(
    counts: Counts,
    tails: npt.NDArray[np.uint32],
    first: int,
    stratum: int,
    attempt: int | np.int64,
    key_0: np.uint32,
    key_1: np.uint32,
) -> npt.NDArray[np.uint32]:
    """Fills `counts[tasks, lanes]` of resamples `first`, `first` + 1, ...; returns the sum of each lane."""
    tasks, lanes = counts.shape
    words = np.empty((4, lanes), dtype=np.uint32)
    sums = np.empty(lanes, dtype=np.uint32)
    for lane in range(lanes):
        sums[lane] = 0
    for block in range((tasks + 3) // 4):
        for lane in range(lanes):
            words[0, lane] = np.uint32(block)
            words[1, lane] = np.uint32(stratum)
            words[2, lane] = np.uint32(first + lane)
            words[3, lane] = np.uint32(attempt)
        philox(words, key_0, key_1)
        for row in range(min(4, tasks - 4 * block)):
            word, out = words[row], counts[4 * block + row]
            for lane in range(lanes):
                count = np.uint32(0)
                for k in range(_TAILS):
                    count += np.uint32(word[lane] < tails[k])
                out[lane] = count
            for lane in range(lanes):
                sums[lane] += out[lane]
    return sums


@compiled
def _draw_uniformly(
    counts: Counts, lane: int, draws: int, resample: int, stratum: int, key_0: np.uint32, key_1: np.uint32
) -> None:
    """Adds `draws` uniformly drawn tasks to `counts[:, lane]`. Exact: Lemire's method, with rejection."""
    tasks = np.uint64(counts.shape[0])
    floor = (_LOW - tasks + np.uint64(1)) % tasks
    words = np.empty((4, _BATCH), dtype=np.uint32)
    block = 0
    while draws > 0:
        for k in range(_BATCH):
            words[0, k] = np.uint32(block + k)
            words[1, k] = np.uint32(stratum)
            words[2, k] = np.uint32(resample)
            words[3, k] = _UNIFORM
        block += _BATCH
        philox(words, key_0, key_1)
        for k in range(4 * _BATCH):
            product = np.uint64(words[k // _BATCH, k % _BATCH]) * tasks
            if draws > 0 and (product & _LOW) >= floor:
                counts[np.int64(product >> _HALF), lane] += np.uint8(1)
                draws -= 1


@compiled
def draw_counts(
    counts: Counts,
    bounds: npt.NDArray[np.int64],
    tails: npt.NDArray[np.uint32],
    first: int,
    key_0: np.uint32,
    key_1: np.uint32,
) -> None:
    """How often each task is drawn in resamples `first`, `first` + 1, ...: fills `counts[tasks, lanes]`.

    Stratum h holds the tasks from `bounds[h]` up to `bounds[h + 1]`, and is drawn from as often as it has tasks.
    """
    for stratum in range(bounds.size - 1):
        rows = counts[bounds[stratum] : bounds[stratum + 1]]
        # A literal 0 would be a type of its own, for which everything is compiled again.
        sums = _poisson_counts(rows, tails[stratum], first, stratum, np.int64(0), key_0, key_1)
        for lane in range(counts.shape[1]):
            drawn = sums[lane]
            attempt = 0
            while drawn > rows.shape[0]:
                attempt += 1
                again = np.empty((rows.shape[0], 1), dtype=np.uint8)
                drawn = _poisson_counts(again, tails[stratum], first + lane, stratum, attempt, key_0, key_1)[
                    0
                ]
                for task in range(rows.shape[0]):
                    rows[task, lane] = again[task, 0]
            _draw_uniformly(rows, lane, rows.shape[0] - drawn, first + lane, stratum, key_0, key_1)


def seed_key(seed: int) -> tuple[np.uint32, np.uint32]:
    """The generator's key: the low 64 bits of `seed`."""
    return np.uint32(seed & 0xFFFFFFFF), np.uint32((seed >> 32) & 0xFFFFFFFF)
