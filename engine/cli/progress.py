"""Progress on stderr: how far, how fast, what failed, and the time left."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from adjudge.scoring.contract.scorecard import Scorecard

__all__ = ["OnStart", "Step", "progress_on"]

Step = Callable[[Scorecard], None]
OnStart = Callable[[int], Step]


@contextmanager
def progress_on(console: Console) -> Iterator[OnStart]:
    """A function for `evaluate`'s `on_start` that draws a bar on `console` while the context is open."""
    columns = (
        TextColumn("judging"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[failed]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        reasons: Counter[str] = Counter()

        def start(total: int) -> Step:
            line = bar.add_task("judging", total=total, rate="", failed="")
            began, done = time.monotonic(), 0

            def step(card: Scorecard) -> None:
                nonlocal done
                done += 1
                if card.status == "unscored" and card.reason is not None:
                    reasons[card.reason] += 1
                rate = done / max(time.monotonic() - began, 1e-9)
                failed = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common(3))
                bar.update(
                    line, completed=done, rate=f"{rate:.1f}/s", failed=f"unscored: {failed}" if failed else ""
                )

            return step

        yield start
