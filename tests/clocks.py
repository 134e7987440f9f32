"""Calls with a deadline, timed beside a plain sleep in another process."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_SLEEP = "import sys, time; b = time.monotonic(); time.sleep(float(sys.argv[1])); print(time.monotonic() - b)"


@dataclass
class Timed:
    """A call with a deadline, and a sleep of 1.1 times as long that began with it; all in seconds.

    A machine that stands still is late for both, so the call is measured by what the sleep took. The sleep is in
    another process: what holds up the caller's own counts against the call.
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
    sleep = [sys.executable, "-I", "-S", "-c", _SLEEP, str(1.1 * deadline)]
    with subprocess.Popen(sleep, stdout=subprocess.PIPE, text=True) as sleeper:
        began = time.monotonic()
        yield found
        found.took = time.monotonic() - began
        found.slept = float(sleeper.communicate()[0])
