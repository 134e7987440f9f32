"""The leaderboard's own page, whose figures lead to their evidence."""

import asyncio

from adjudge.engine.rendering.leaderboard_page import leaderboard_page
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.query import ReportQuery, SystemQuery, address

__all__ = ["board_page"]


class _Links:
    """The addresses of the viewer's pages."""

    def system(self, system: str, protocol: str, metric: str) -> str:
        return address("system", SystemQuery(system=system, protocol=protocol, metric=metric))

    def report(self, system: str, task: str, protocol: str) -> str:
        return address("report", ReportQuery(system=system, task=task, protocol=protocol))


async def board_page(run: OpenRun) -> str:
    """The page of the run's leaderboard. Raises NotThere if it cannot be read."""
    return await asyncio.to_thread(lambda: leaderboard_page(run.leaderboard(), _Links()))
