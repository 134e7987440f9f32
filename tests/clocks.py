"""Calls with a deadline, timed beside a plain sleep that began with them."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Timed:
    """A call with a deadline, and a sleep of 1.1 times as long in the same process; all in seconds.

    A machine that stands still is late for both, so the call is measured by what the sleep took.
    """

    deadline: float
    took: float = 0.0
    slept: float = 0.0

    @property
    def is_in_time(self) -> bool:
        return self.deadline <= self.took < self.slept + 0.5


@contextmanager
def timed(deadline: float) -> Iterator[Timed]:
    """Time what is done inside; its figures hold afterwards."""
    found = Timed(deadline)

    def sleep() -> None:
        began = time.monotonic()
        time.sleep(1.1 * deadline)
        found.slept = time.monotonic() - began

    sleeper = threading.Thread(target=sleep)
    began = time.monotonic()
    sleeper.start()
    yield found
    found.took = time.monotonic() - began
    sleeper.join()
