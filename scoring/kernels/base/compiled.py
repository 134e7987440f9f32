"""`compiled`: numba's compiler as the kernels use it; `in_threads`: compiled work on several cores.

Kernels release the interpreter's lock and run in plain Python threads. Neither numba's own thread pool nor
a multithreaded BLAS is used: the two spin against each other, and numba's is not safe under several callers.

Machine code is kept on disk beside the module (or in the user's cache folder where that is read-only). Its
freshness is judged by the module's own file alone, so a compiled function calls compiled functions of its
own module only.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

import numba

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


# Nothing calls a kernel by its address: without an entry for that, compiling takes a twentieth less. Numba's types do
# not know this option.
_UNCALLED: dict[str, Any] = {"no_cfunc_wrapper": True}


def _compiled(function: Function, liberties: set[str]) -> Function:
    compiler = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=liberties, **_UNCALLED)
    return cast(Function, compiler(function))


def available_threads() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_threads(work: Callable[[Item], object], items: Iterable[Item], threads: int | None = None) -> None:
    """Calls `work` on every item, `threads` at a time (None: one per core). The first exception is raised.

    `work` must put its result where no other item writes; then the outcome does not depend on `threads`.
    """
    todo = list(items)
    workers = min(threads or available_threads(), len(todo))
    if workers <= 1:
        for item in todo:
            work(item)
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="kernel") as pool:
        for done in [pool.submit(work, item) for item in todo]:
            done.result()
