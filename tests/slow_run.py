"""A real `adjudge evaluate` whose judge answers as many questions as a test allows."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from tests.mock_openai import Call, MockOpenAI, refused
from tests.worlds import ADJUDGE, lines, text, world


class SlowRun:
    """A world in `folder` with its judge. Questions beyond those allowed wait, or are refused while it `refuses`.

    `said` is the first line of the command, on stderr.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.out = folder / "run"
        self.config = folder / "adjudge.yaml"
        self.refuses = False
        self.said = ""
        self._allowed = 0
        self._more = asyncio.Event()
        self._processes: list[asyncio.subprocess.Process] = []

    def allow(self, questions: int) -> None:
        """Answer so many questions in all."""
        self._allowed = questions
        self._more.set()

    async def answer(self, mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
        """Wait until a question is allowed."""
        while not call.is_probe and mock.calls > self._allowed:
            if self.refuses:
                return refused(503, "out of order")
            self._more.clear()
            await self._more.wait()
        return refused(503, "out of order") if self.refuses else None

    async def start(self, *options: str) -> asyncio.subprocess.Process:
        """`adjudge evaluate`, once its run is recorded."""
        process = await asyncio.create_subprocess_exec(
            *ADJUDGE,
            "evaluate",
            str(self.config),
            *options,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._processes.append(process)
        assert process.stderr is not None
        self.said = (await process.stderr.readline()).decode()
        assert self.said.startswith("follow it: "), self.said
        return process

    async def end(self) -> None:
        """Kill what still runs."""
        for process in self._processes:
            if process.returncode is None:
                process.kill()
            await process.communicate()
        self.allow(1_000_000)


@asynccontextmanager
async def slow_run(
    folder: Path, *, systems: int = 3, tasks: int = 6, named: str = ""
) -> AsyncIterator[SlowRun]:
    """A run of rubrics with two questions at once, ten a report; a further system may be `named`."""
    run = SlowRun(folder)
    async with MockOpenAI(fault=run.answer) as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock", "max_in_flight": 2, "retries": 0}
        prices = {
            "mock": {"cost_per_million_prompt_tokens": 100.0, "cost_per_million_completion_tokens": 300.0}
        }
        world(folder, systems=systems, tasks=tasks, judge=judge, prices=prices)
        if named:
            rows = [
                {"task_id": str(task), "system": named, "text": text(named, task)} for task in range(tasks)
            ]
            lines(folder / "reports" / "named.jsonl", rows)
        try:
            yield run
        finally:
            await run.end()
