"""Score arrays as the kernels take them: float64, C order, NaN for missing, nothing infinite."""

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adjudge.scoring.kernels.base.compiled import available_threads, compiled
from adjudge.scoring.kernels.base.errors import KernelError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

# Larger scores would overflow when squared.
LARGEST = 1e150
ONE = np.uint64(1)
# Bits without the sign.
LARGEST_BITS = np.array(LARGEST).view(np.uint64)[()] << ONE
INFINITE_BITS = np.array(np.inf).view(np.uint64)[()] << ONE


def as_scores(values: ArrayLike, dimensions: int, name: str = "scores") -> Floats:
    """`values` as a float64 array of so many dimensions; NaN marks a missing score.

    Raises:
        KernelError: another number of dimensions, values that are not numbers, or one that is infinite.
    """
    try:
        array = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise KernelError(f"{name}: not an array of numbers ({error})") from error
    if np.ndim(values) != dimensions:
        raise KernelError(f"{name}: {np.ndim(values)} dimensions, expected {dimensions}")
    if not _within(array.reshape(-1).view(np.uint64)):
        raise KernelError(f"{name}: an infinite score, or one beyond {LARGEST:g}; a missing score is NaN")
    return array


@compiled
def _within(bits: NDArray[np.uint64]) -> bool:
    """Whether no float64 of these bits is larger than LARGEST; NaN is not.

    Without their sign, the bits of floats are ordered as the floats are: larger than LARGEST and at most infinite
    is a range of whole numbers, which needs no temporary arrays and runs in vector registers.
    """
    large = 0
    for bit in bits:
        large += (bit << ONE) - LARGEST_BITS - ONE < INFINITE_BITS - LARGEST_BITS
    return large == 0


def as_share(value: float, name: str) -> float:
    """A number strictly between 0 and 1.

    Raises:
        KernelError: any other number.
    """
    if not 0.0 < value < 1.0:
        raise KernelError(f"{name} must lie strictly between 0 and 1, not {value}")
    return float(value)


def spans(count: int, work: int) -> list[tuple[int, int]]:
    """`range(count)` cut for threads: at most four spans per thread, each of about 500,000 steps or more.

    Args:
        count: how many items, each with a result of its own, so that the cuts do not matter.
        work: steps an item takes, roughly.
    """
    parts = max(1, min(4 * available_threads(), count, count * work // 500_000))
    edges = [count * part // parts for part in range(parts + 1)]
    return list(pairwise(edges))
