"""Progress on stderr: how far, how fast, what failed, and the time left; a bar on a terminal, elsewhere a line.

How to follow a run that begins: the command that does, or the viewer itself, which ends with the run.
"""

import json
import logging
import shlex
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from adjudge.engine.runs.pulse import Reading
from adjudge.engine.telemetry.logs import event, is_json
from adjudge.judges.plural import plural
from adjudge.scoring.contract.scorecard import Scorecard

_log = logging.getLogger(__name__)

Step = Callable[[Scorecard], None]
OnStart = Callable[[int, Callable[[], Reading]], Step]

LINE_S = 30.0
WARM_S, WARM = 10.0, 5  # what comes out of the store first says nothing about the rest


@contextmanager
def progress_on(console: Console, every_s: float = LINE_S) -> Iterator[OnStart]:
    """A function for `evaluate`'s `on_start` that shows progress on `console` while the context is open.

    On a terminal that is a bar; elsewhere a line every `every_s` seconds.
    """
    with _bar_on(console) if console.is_terminal else _lines_on(console, every_s) as on_start:
        yield on_start


@contextmanager
def counted_on(console: Console, what: str, every_s: float = LINE_S) -> Iterator[Callable[[int, int], None]]:
    """A function that shows how many of how many are done: one line on a terminal, elsewhere one every `every_s`."""
    said = time.monotonic()
    status = console.status("") if console.is_terminal else None

    def step(done: int, total: int) -> None:
        nonlocal said
        line = f"{done:,} of {plural(total, what)}"
        if status is not None:
            status.update(line)
        elif time.monotonic() - said >= every_s:
            said = time.monotonic()
            console.print(line, markup=False)

    with status or nullcontext():
        yield step


@contextmanager
def _bar_on(console: Console) -> Iterator[OnStart]:
    columns = (TextColumn("judging"), BarColumn(), TextColumn("{task.fields[pace]}", markup=False))
    with Progress(*columns, console=console, transient=True) as bar:

        def start(total: int, reading: Callable[[], Reading]) -> Step:
            pace = Pace(total, reading)
            line = bar.add_task("judging", total=total, pace=pace)  # in words whenever the bar is drawn

            def step(card: Scorecard) -> None:
                pace.count(card)
                bar.update(line, completed=pace.done)

            return step

        yield start


@contextmanager
def _lines_on(console: Console, every_s: float) -> Iterator[OnStart]:
    """The lines come by themselves: a run that makes no progress says so."""
    paces: list[Pace] = []
    ended = threading.Event()

    def start(total: int, reading: Callable[[], Reading]) -> Step:
        paces.append(Pace(total, reading))
        return paces[-1].count

    def say() -> None:
        while not ended.wait(every_s):
            for pace in paces:
                console.print(f"judging: {pace}", soft_wrap=True, highlight=False, markup=False)

    thread = threading.Thread(target=say, name="adjudge progress", daemon=True)
    thread.start()
    try:
        yield start
    finally:
        ended.set()
        thread.join()


class Pace:
    """How many of `total` scorecards are done, how fast they come, what they cost, and how long the rest takes."""

    def __init__(
        self,
        total: int,
        reading: Callable[[], Reading] = Reading,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.done = 0
        self._total = total
        self._reading = reading
        self._clock = clock
        self._began = clock()
        self._reasons: Counter[str] = Counter()

    def count(self, card: Scorecard) -> None:
        """One more scorecard is done."""
        self.done += 1
        if card.status == "unscored" and card.reason is not None:
            self._reasons[card.reason] += 1

    def __str__(self) -> str:
        seconds = self._clock() - self._began
        rate = self.done / max(seconds, 1e-9)
        parts = [f"{self.done:,} of {plural(self._total, 'scorecard')}", f"{rate:,.1f} a second"]
        reading = self._reading()
        if reading.cost is not None:
            parts.append(f"cost {reading.cost:,.2f}")
        if reading.waiting:
            parts.append("waiting for the judge")
        elif seconds >= WARM_S and self.done >= WARM:
            parts.append(f"{_time((self._total - self.done) / rate)} left")
        if self._reasons:
            reasons = (f"{count:,} {reason}" for reason, count in self._reasons.most_common(3))
            parts.append(f"unscored: {', '.join(reasons)}")
        return ", ".join(parts)


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


_ENDS_S = 5.0


@contextmanager
def following(run: str, console: Console, *, view: bool) -> Iterator[Callable[[], None]]:
    """A function that says on `console` how to follow the run in the folder `run`, once its record is there.

    With `view` it also starts the viewer and says its address; the viewer ends with the block, or with this process.
    """
    started: list[subprocess.Popen[bytes]] = []

    def follow() -> None:
        _say(console, "follow it", f"adjudge view {shlex.quote(run)}")
        if not view:
            return
        command = [
            sys.executable,
            "-m",
            "adjudge.engine",
            "view",
            run,
            "--port",
            "0",
            "--json",
            "--with-stdin",
        ]
        viewer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(viewer)
        threading.Thread(target=_say_address, args=(console, viewer), daemon=True).start()

    try:
        yield follow
    finally:
        for viewer in started:
            viewer.terminate()
            try:
                viewer.wait(_ENDS_S)
            except subprocess.TimeoutExpired:
                viewer.kill()


def _say_address(console: Console, viewer: subprocess.Popen[bytes]) -> None:
    assert viewer.stdout is not None
    line = viewer.stdout.readline()
    if line:
        _say(console, "viewer", json.loads(line)["url"])


def _say(console: Console, what: str, how: str) -> None:
    if is_json():
        event(_log, what, how=how)
    else:
        console.print(f"{what}: {how}", soft_wrap=True, highlight=False, markup=False)
