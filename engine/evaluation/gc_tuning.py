"""Python's cyclic garbage collection, kept from walking through thousands of waiting questions again and again."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["rare_collections"]

# New objects until a collection: questions in flight hold tens of thousands, and come in waves.
YOUNG = 200_000


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect seldom inside the block: half of a run's CPU time otherwise goes into collections that find nothing."""
    before = gc.get_threshold()
    gc.set_threshold(YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
