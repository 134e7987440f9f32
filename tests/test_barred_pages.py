"""Cited pages that nobody gets, each on a real local server: what a run says, stores, scores and pays."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from adjudge.engine.config.run import RunConfig
from adjudge.engine.rewards.scorer import open_rewards
from tests.commands import run
from tests.outages import scores
from tests.servers.base import Exchange, Server
from tests.servers.hostile import hostile_server, plain
from tests.worlds import lines, world

CASES = {
    "/forbidden": "page_barred",
    "/login-wall": "page_barred",
    "/bot-check": "page_barred",
    "/private/page": "page_barred",
    "/too-many-requests": "page_rate_limited",
    "/gone": "page_gone",
}


def text(pages: Server, path: str = "") -> str:
    """A report that cites a page of one site, and with `path` also one of another."""
    other = f" Another page [says so too]({pages.url(path)})." if path else ""
    return f"A plain article [says so](http://localhost:{pages.port}/plain).{other}"


async def _rules(to: Exchange) -> None:
    await to.reply(b"User-agent: *\nDisallow: /private", content_type="text/plain")


@pytest.fixture
def pages() -> Iterator[Server]:
    with hostile_server() as server:
        server.routes |= {"/robots.txt": _rules, "/private/page": plain}
        yield server


def made(folder: Path, pages: Server, path: str) -> Path:
    """A run of two systems under FACT: one cites a page that can be read, the other also `path`."""
    fetch = {
        "mode": "live",
        "allow": [pages.address, f"localhost:{pages.port}"],
        "robots": True,
        "timeouts": {"connect": 2.0, "read": 1.0, "total": 4.0},
        "patience_s": 2.0,
    }
    config = world(folder, systems=0, tasks=1, protocols=["fact"], fetch=fetch, reward={"metric": "c_acc"})
    texts = {"careful": text(pages), "careless": text(pages, path)}
    rows = [{"task_id": "0", "system": name, "text": said} for name, said in texts.items()]
    lines(folder / "reports" / "reports.jsonl", rows)
    return config


@pytest.mark.parametrize("path", CASES)
async def test_page_that_nobody_gets_counts_by_its_rule(tmp_path, capsys, pages, path):
    """It counts as unsupported; a site that wants fewer requests leaves the pair missing, but not in a reward."""
    config = made(tmp_path, pages, path)
    ours = CASES[path] == "page_rate_limited"
    code, out, _ = await asyncio.to_thread(run, capsys, "evaluate", config)
    assert (code, f"2 scorecards, {int(ours)} unscored" in out) == (3 if ours else 0, True)
    assert "pages: 2 read" in out
    stored = pq.read_table(tmp_path / "store" / "pages").to_pylist()
    assert {row["url"]: row["reason"] for row in stored} == {
        f"http://localhost:{pages.port}/plain": None,
        pages.url(path): CASES[path],
    }
    found = {(row["system"], row["metric"]): row["value"] for row in scores(tmp_path)}
    names = ("c_acc", "judged", "unreachable", "unscored")
    assert [found["careful", name] for name in names] == [1.0, 1.0, 0.0, 0.0]
    counted = [1.0, 1.0, 0.0, 1.0] if ours else [0.5, 1.0, 1.0, 0.0]
    assert [found["careless", name] for name in names] == counted
    lowest = [
        row["low"] for row in scores(tmp_path) if (row["system"], row["metric"]) == ("careless", "c_acc")
    ]
    assert lowest == [0.5]
    async with open_rewards(RunConfig.load(config)) as scorer:
        (reward,) = await scorer.score([{"task_id": "0", "text": text(pages, path)}], deadline=20.0)
    assert (reward.value, reward.reason) == (0.5, CASES[path] if ours else None)
    _, shown, _ = await asyncio.to_thread(
        run, capsys, "show", tmp_path / "run", "--task", "0", "--system", "careless"
    )
    assert CASES[path] in shown
