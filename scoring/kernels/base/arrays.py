"""Score arrays as the kernels take them (float64, C order, NaN for missing, nothing infinite), errors, and compilation.

`KernelError` is raised for input that statistics cannot be computed from. `compiled` makes a function a kernel;
`in_threads` spreads compiled work over several cores.

Kernels release the interpreter's lock and run in plain Python threads. Neither numba's own thread pool nor a
multithreaded BLAS is used: the two spin against each other, and numba's is not safe under several callers.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import update_wrapper
from itertools import pairwise
from threading import Lock
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray


class KernelError(ValueError):
    """Input of a wrong shape or type, or an infinite score. A missing score is not an error: it is absent."""


Function = TypeVar("Function", bound=Callable[..., object])
Item = TypeVar("Item")


def compiled(function: Function) -> Function:
    """`function`, compiled at its first call: releases the interpreter's lock, cached on disk, IEEE division."""
    return _compiled(function, set())


def fused(function: Function) -> Function:
    """As `compiled`, and a product and the sum it enters may round once: for sums exact either way."""
    return _compiled(function, {"contract"})


def laned(function: Function) -> Function:
    """As `compiled`, and sums may be added up in several lanes: in an order that the processor's type decides."""
    return _compiled(function, {"reassoc"})


def summing(function: Function) -> Function:
    """As `fused` and `laned`."""
    return _compiled(function, {"contract", "reassoc"})


def _compiled(function: Function, liberties: set[str]) -> Function:
    return cast(Function, _Kernel(function, liberties))


class _Kernel:
    """A function that is compiled when it is first called: importing numba takes longer than many small tasks.

    Little work runs as plain Python (see `in_threads`). Without liberties its result is the same to the last bit.
    """

    _importing = Lock()

    def __init__(self, function: Callable[..., object], liberties: set[str]) -> None:
        update_wrapper(self, function)
        self._function = function
        self._liberties = liberties
        self._made: Any = None

    def __call__(self, *arguments: Any) -> Any:
        if self._made is None and _is_plain.get() and not self._liberties:
            return self._function(*arguments)
        return (self._made or self._dispatcher())(*arguments)

    def _dispatcher(self) -> Any:
        with self._importing:  # threads that call it at once share what is compiled
            if self._made is None:
                from adjudge.scoring.kernels.base.compiler import compile_kernel

                self._made = compile_kernel(self._function, self._liberties)
        return self._made

    @property
    def _numba_type_(self) -> Any:
        """How numba sees a kernel that another one calls."""
        return self._dispatcher()._numba_type_


def available_threads() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# Below so many steps of compiled work, starting threads takes longer than they save.
_LITTLE = 500_000
# So many steps of a process are done in plain Python: in 50 ms at most, less than loading what was compiled takes.
_PLAIN_STEPS = 100_000
_plain_steps = 0
_is_plain: ContextVar[bool] = ContextVar("is_plain", default=False)


def in_threads(
    work: Callable[[Item], object],
    items: Iterable[Item],
    threads: int | None = None,
    steps: int = _LITTLE,
    *,
    sparing: bool = False,
) -> None:
    """Calls `work` on every item, `threads` at a time (None: one per core). The first exception is raised.

    `work` must put its result where no other item writes; then the outcome does not depend on `threads`. `steps` are
    those that an item takes, roughly: little work in all is done in the caller's own thread, and if `sparing`, the
    first of a process without kernels.
    """
    todo = list(items)
    if sparing and _does_without_kernels(len(todo) * steps):
        _in_plain_python(work, todo)
        return
    workers = min(threads or available_threads(), len(todo))
    if workers <= 1 or len(todo) * steps < _LITTLE:
        for item in todo:
            work(item)
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="kernel") as pool:
        for done in [pool.submit(work, item) for item in todo]:
            done.result()


def _does_without_kernels(steps: int) -> bool:
    """Whether so many are left; then they are taken."""
    global _plain_steps
    if steps > _PLAIN_STEPS - _plain_steps:
        return False
    _plain_steps += steps
    return True


def _in_plain_python(work: Callable[[Item], object], todo: list[Item]) -> None:
    before = _is_plain.set(True)
    try:
        with np.errstate(all="ignore"):  # as kernels do
            for item in todo:
                work(item)
    finally:
        _is_plain.reset(before)


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

LARGEST = 1e150
"""Larger scores would overflow when squared."""
ONE = np.uint64(1)


def as_scores(values: ArrayLike, dimensions: int, name: str = "scores") -> Floats:
    """`values` as a float64 array of `dimensions` dimensions; NaN marks a missing score.

    Raises KernelError for another number of dimensions, values that are not numbers, or one that is infinite.
    """
    try:
        array = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise KernelError(f"{name}: not an array of numbers ({error})") from error
    if np.ndim(values) != dimensions:
        raise KernelError(f"{name}: {np.ndim(values)} dimensions, expected {dimensions}")
    scores = array.reshape(-1)
    # `fmax` and `fmin` pass over NaN.
    if np.fmax.reduce(scores, initial=0.0) > LARGEST or np.fmin.reduce(scores, initial=0.0) < -LARGEST:
        raise KernelError(f"{name}: an infinite score, or one beyond {LARGEST:g}; a missing score is NaN")
    return array


def as_share(value: float, name: str) -> float:
    """A number strictly between 0 and 1.

    Raises KernelError for any other number.
    """
    if not 0.0 < value < 1.0:
        raise KernelError(f"{name} must lie strictly between 0 and 1, not {value}")
    return float(value)


def spans(count: int, work: int) -> list[tuple[int, int]]:
    """`range(count)` cut for threads: at most four spans per thread, each of about half a million steps or more.

    count: how many items, each with a result of its own, so that the cuts do not matter. Without any, no spans.
    work: steps an item takes, roughly.
    """
    if not count:
        return []
    parts = max(1, min(4 * available_threads(), count, count * work // _LITTLE))
    edges = [count * part // parts for part in range(parts + 1)]
    return list(pairwise(edges))
