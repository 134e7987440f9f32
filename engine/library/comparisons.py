"""Two systems of a run side by side."""

import asyncio
from pathlib import Path

from adjudge.engine.commands.compare import Comparison
from adjudge.engine.commands.compare import compare as compare_run
from adjudge.engine.library.runs import Run

__all__ = ["compare", "compare_async"]


def compare(run: Run | str | Path, a: str, b: str) -> Comparison:
    """Paired tests of systems `a` and `b`, every metric, on the tasks scored for both. Raises UsageError."""
    return compare_run(run.folder if isinstance(run, Run) else run, a, b)


async def compare_async(run: Run | str | Path, a: str, b: str) -> Comparison:
    """`compare`, without keeping the event loop waiting."""
    return await asyncio.to_thread(compare, run, a, b)
