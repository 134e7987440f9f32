"""Python's cyclic garbage collection, tuned not to traverse thousands of waiting questions over and over."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["rare_collections"]

# New objects until a collection: questions in flight hold tens of thousands, and arrive in bursts.
YOUNG = 200_000


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect rarely inside the block; else half of a run's CPU time goes into collections that free nothing."""
    before = gc.get_threshold()
    gc.set_threshold(YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
