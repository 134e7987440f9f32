"""Judges that fall sick in mid run, and what was stored of them."""

import asyncio
from pathlib import Path

import pyarrow.parquet as pq

from adjudge.engine.config.run import RunConfig
from tests.mock_openai import FAULTS, MockOpenAI
from tests.worlds import world


def judged(url: str, **judge: object) -> dict[str, object]:
    return {"backend": "openai", "url": url, "model": "mock", "retries": 0, **judge}


def stored(folder: Path, store: str = "store") -> list[dict[str, object]]:
    """The judgments in the store."""
    files = sorted((folder / store / "judgments").glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def scores(folder: Path) -> list[dict[str, object]]:
    return pq.read_table(folder / "run" / "scores.parquet").to_pylist()


async def outage(tmp_path: Path, after: int, until: float) -> tuple[MockOpenAI, RunConfig]:
    """A mock judge that refuses everything from its `after`th question on, for `until` seconds."""
    loop = asyncio.get_running_loop()
    ends: list[float] = []

    async def fault(mock: MockOpenAI, call):
        if mock.calls <= after:
            return None
        if not ends:
            ends.append(loop.time() + until)
        return await FAULTS["down"](mock, call) if loop.time() < ends[0] else None

    mock = MockOpenAI(fault=fault)
    await mock.start()
    return mock, RunConfig.load(world(tmp_path, judge=judged(mock.url, max_in_flight=8)))
