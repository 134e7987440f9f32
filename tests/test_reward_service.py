"""The reward server as a Ray Serve application, called over HTTP."""

import asyncio
import os

import aiohttp
import pytest

from adjudge.engine.config.settings import ConfigError
from tests.processes import free_port
from tests.worlds import world

ray = pytest.importorskip("ray")
serve = pytest.importorskip("ray.serve")

from adjudge.engine.serving.ray_serve import RewardService, app  # noqa: E402 - needs ray[serve]

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray's pipes to its processes
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


async def test_service_without_a_token_does_not_start(tmp_path, monkeypatch):
    monkeypatch.delenv("ADJUDGE_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="ADJUDGE_TOKEN"):
        await RewardService().reconfigure(str(world(tmp_path)))


@pytest.mark.timeout(300)
async def test_rewards_are_served_and_kept_on_shutdown(tmp_path, monkeypatch):
    monkeypatch.setenv("ADJUDGE_TOKEN", "right")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    numbers = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("ADJUDGE_METRICS", numbers)
    config = world(tmp_path, reward={"metric": "score_clipped"})
    url = f"http://127.0.0.1:{free_port()}"
    body = {"items": [{"task_id": "0", "text": "It states fact number 0."}]}

    def start() -> None:
        ray.init(
            address="local",
            num_cpus=4,
            object_store_memory=100_000_000,
            include_dashboard=False,
            log_to_driver=False,
            _node_ip_address="127.0.0.1",
        )
        serve.start(http_options={"host": "127.0.0.1", "port": int(url.rpartition(":")[2])})
        serve.run(app({"config": str(config)}), route_prefix="/")

    await asyncio.to_thread(start)
    try:
        async with aiohttp.ClientSession() as session:
            for token, status in (("right", 200), ("wrong", 401)):
                headers = {"Authorization": f"Bearer {token}"}
                async with session.post(f"{url}/v1/rewards", json=body, headers=headers) as answer:
                    assert answer.status == status
                    if status == 200:
                        assert (await answer.json())["rewards"][0]["value"] is not None
            async with session.get(f"{url}/readyz") as answer:
                assert answer.status == 200
            headers = {"Authorization": "Bearer right"}
            async with session.get(f"http://{numbers}/metrics", headers=headers) as answer:
                assert 'adjudge_rewards_total{reason="scored"} 1.0' in await answer.text()
    finally:
        await asyncio.to_thread(serve.shutdown)
        await asyncio.to_thread(ray.shutdown)
    assert list((tmp_path / "store" / "rewards" / "judgments").glob("*.parquet"))
