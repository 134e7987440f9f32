"""Every panel of the dashboard has data: its queries run on a real Prometheus that scrapes a run and a server."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import yaml

from tests.chaos import Pages, cited_world, evaluate
from tests.deployment import DEPLOY, tool
from tests.mock_openai import MockOpenAI
from tests.processes import free_port
from tests.reward_server import reward_server
from tests.worlds import lines, world

pytest.importorskip("ray")

TOKEN = "a-token-for-this-test"
WAIT_SECONDS = 120


@contextlib.asynccontextmanager
async def prometheus(folder: Path, run: str, rewards: str) -> AsyncIterator[str]:
    """The URL of a Prometheus with the shipped configuration, these targets and a short scrape interval."""
    config = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "500ms", "evaluation_interval": "1s"}
    config["scrape_configs"] = [job for job in config["scrape_configs"] if job["job_name"] == "adjudge"]
    for static, target in zip(config["scrape_configs"][0]["static_configs"], (run, rewards), strict=True):
        static["targets"] = [target]
    (folder / "token").write_text(TOKEN)
    (folder / "alerts.yml").write_text((DEPLOY / "alerts.yml").read_text())
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            tool("prometheus"),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={address}",
            stdout=log,
            stderr=log,
        )
        try:
            yield f"http://{address}"
        finally:
            process.terminate()
            await process.wait()


def panels() -> dict[str, str]:
    """Every query of the dashboard under its panel's title."""
    dashboard = json.loads((DEPLOY / "dashboard.json").read_text())
    return {
        f"{panel['title']} {target['refId']}": target["expr"]
        .replace("$__rate_interval", "10s")
        .replace("$instance", ".*")
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
    }


async def has_data(session: aiohttp.ClientSession, url: str, query: str, since: float) -> bool:
    asked = {"query": query, "start": f"{since}", "end": f"{time.time()}", "step": "1"}
    async with session.get(f"{url}/api/v1/query_range", params=asked) as response:
        answer = await response.json()
    assert answer["status"] == "success", (query, answer)
    return any(value != "NaN" for found in answer["data"]["result"] for _, value in found["values"])


async def roll_out(session: aiohttp.ClientSession, url: str) -> None:
    """Ask for more rewards at once than the server admits, some of them late."""

    async def one(number: int) -> None:
        body = {"items": [{"task_id": "0", "text": f"Rollout {number}."}], "deadline_s": 0.05 + number % 2}
        async with session.post(f"{url}/v1/rewards", json=body) as response:
            await response.read()

    await asyncio.gather(*(one(number) for number in range(8)))


@pytest.mark.timeout(300)
async def test_every_panel_has_data(tmp_path, monkeypatch):
    tool("prometheus")
    run_at = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("ADJUDGE_TOKEN", TOKEN)
    monkeypatch.setenv("ADJUDGE_METRICS", run_at)
    async with MockOpenAI(latency=0.1) as mock, Pages(0.01) as pages:
        judge = {"backend": "openai", "url": mock.url, "model": "mock", "max_in_flight": 8}
        reward = {
            "metric": "score_clipped",
            "limits": {"items": 4},
            "canary": {"file": "canaries.jsonl"},
            "audit": {"judge": "lexical", "share": 1.0},
        }
        served = world(tmp_path / "served", judge=judge, reward=reward)
        lines(tmp_path / "served" / "canaries.jsonl", [{"task_id": "0", "text": "Known.", "value": 0.5}])
        path = cited_world(
            tmp_path / "run",
            pages,
            systems=3,
            tasks=16,
            judge={**judge, "urls": [mock.url, mock.url.replace("127.0.0.1", "localhost")]},
            cluster={"address": "local", "evaluators": 1, "cpus": 0.1, "flush_seconds": 1},
        )
        since, server = time.time(), contextlib.ExitStack()
        url, _ = await asyncio.to_thread(server.enter_context, reward_server(served, token=TOKEN))
        headers = {"Authorization": f"Bearer {TOKEN}"}
        rewards_at = url.removeprefix("http://")
        try:
            async with prometheus(tmp_path, run_at, rewards_at) as asked, aiohttp.ClientSession() as session:
                run = await evaluate(path)
                empty = panels()
                async with aiohttp.ClientSession(headers=headers) as trainer:
                    while empty and time.time() - since < WAIT_SECONDS:
                        await roll_out(trainer, url)
                        await asyncio.sleep(0.5)  # the scrape interval
                        with contextlib.suppress(aiohttp.ClientConnectorError):
                            for name, query in list(empty.items()):
                                if await has_data(session, asked, query, since):
                                    del empty[name]
                mock.latency = 0.0
                _, errors = await run.communicate()
        finally:
            await asyncio.to_thread(server.close)
    assert run.returncode in (0, 3), errors.decode()
    assert not empty
