"""slime's own dispatch of rewards, by its custom function and by its remote model, from a checkout of its repository.

Stubbed: slime.utils.misc (two helpers), since the rest of slime needs a GPU.
"""

import importlib
import json
import pkgutil
import time
from types import SimpleNamespace

import pytest
from aiohttp import ClientResponseError

from adjudge.engine.adapters.source import DEADLINE, ON_FAILURE, REWARDS
from adjudge.engine.rewards.model import RewardError
from tests.reward_pages import URL, block
from tests.trainers.rollouts import DEADLINE_S, END, PROMPT, RUBRICS, TEXT
from tests.trainers.stubs import from_reference, stub

CUSTOM = block("slime", "sh").split("--custom-rm-path ")[1].split()[0]
REMOTE = block("slime", "sh", 1).split("--rm-url ")[1].split()[0]


@pytest.fixture
def hub(monkeypatch, recorder):
    def loaded(path: str) -> object:
        return recorder.slime_function(path, pkgutil.resolve_name(path))

    from_reference(monkeypatch, "slime", "slime")
    stub(monkeypatch, "slime.utils.misc", load_function=loaded, decode_int32_meta_array=None)
    found = importlib.import_module("slime.rollout.rm_hub")
    recorder.slime_requests(monkeypatch, found)
    assert found.batched_async_rm.__module__ == "slime.rollout.rm_hub"
    monkeypatch.setenv(DEADLINE, str(DEADLINE_S))
    return found


def sample(text: str = TEXT, status: str = "COMPLETED", **more: object):
    from slime.utils.types import Sample

    return Sample(prompt=PROMPT, response=text, status=Sample.Status[status], **more)


def arguments(**more: object) -> SimpleNamespace:
    return SimpleNamespace(**{"custom_rm_path": None, "rm_type": None, "rm_url": None, **more})


async def test_trainer_sees_rewards_and_metrics(hub, good, monkeypatch):
    monkeypatch.setenv(REWARDS, good)
    samples = [sample(), sample("", metadata={"task_id": 1}), sample(label="1")]
    found = await hub.batched_async_rm(arguments(custom_rm_path=CUSTOM), samples)
    assert found == [0.8, 0.0, 0.8]
    assert [each.metadata["adjudge"]["score_clipped"] for each in samples] == [0.8, 0.0, 0.8]
    assert samples[1].metadata["task_id"] == 1
    assert await hub.async_rm(arguments(custom_rm_path=CUSTOM), sample()) == 0.8
    assert (
        await hub.async_rm(arguments(rm_type="remote_rm", rm_url=REMOTE.replace(URL, good)), sample()) == 0.8
    )


async def test_row_brings_its_own_rubrics(hub, good, monkeypatch):
    monkeypatch.setenv(REWARDS, good)
    samples = [sample(metadata={"rubrics": RUBRICS}), sample(label=json.dumps(RUBRICS))]
    for each in samples:
        each.prompt = "another prompt"
    assert await hub.batched_async_rm(arguments(custom_rm_path=CUSTOM), samples) == [1.0, 1.0]
    assert samples[0].metadata["adjudge"]["parts"][0]["value"] == 1.0
    assert (
        await hub.async_rm(arguments(rm_type="remote_rm", rm_url=REMOTE.replace(URL, good)), samples[1])
        == 1.0
    )


async def test_truncated_rollout_gets_the_minimum(hub, good, monkeypatch):
    monkeypatch.setenv(REWARDS, good)
    cut = sample(status="TRUNCATED")
    assert await hub.async_rm(arguments(custom_rm_path=CUSTOM), cut) == 0.0
    assert cut.metadata["adjudge"]["reason"] == "truncated" and not cut.remove_sample


@pytest.mark.parametrize("failing", ["down", "slow"])
async def test_failed_judge_raises_or_is_masked(hub, failing, request, monkeypatch):
    monkeypatch.setenv(REWARDS, request.getfixturevalue(failing))
    reason = "judge_unavailable" if failing == "down" else "deadline"
    began = time.monotonic()
    with pytest.raises(RewardError, match=reason):
        await hub.batched_async_rm(arguments(custom_rm_path=CUSTOM), [sample(), sample()])
    monkeypatch.setenv(ON_FAILURE, "-1")
    masked = sample()
    assert await hub.async_rm(arguments(custom_rm_path=CUSTOM), masked) == -1.0
    assert masked.remove_sample and masked.metadata["adjudge"]["reason"] == reason
    assert time.monotonic() - began < 30


async def test_permanent_failure_is_not_tried_again(hub, good, monkeypatch):
    monkeypatch.setenv(REWARDS, good)
    with pytest.raises(RewardError, match="task_unknown"):
        unknown = sample(metadata={"task_id": "nobody"})
        unknown.prompt = "?"
        await hub.async_rm(arguments(custom_rm_path=CUSTOM), unknown)


class TestRemote:
    @pytest.fixture
    def pauses(self, hub, monkeypatch) -> list[float]:
        """The seconds that slime would wait between its tries."""
        kept: list[float] = []

        async def sleep(seconds: float) -> None:
            kept.append(seconds)

        monkeypatch.setattr(hub, "asyncio", SimpleNamespace(sleep=sleep))
        return kept

    @staticmethod
    def remote(url: str) -> SimpleNamespace:
        return arguments(rm_type="remote_rm", rm_url=REMOTE.replace(URL, url))

    @pytest.mark.parametrize(("failing", "reason"), [("down", "judge_unavailable"), ("slow", "deadline")])
    async def test_passing_failure_is_tried_ten_times(self, hub, failing, reason, pauses, request):
        with pytest.raises(ClientResponseError, match=f"503, message='{reason}'"):
            await hub.async_rm(self.remote(request.getfixturevalue(failing)), sample())
        assert len(pauses) == 9

    async def test_permanent_failure_is_null_at_once(self, hub, good, pauses):
        assert await hub.async_rm(self.remote(good), sample(label="nobody")) is None
        assert pauses == []

    async def test_failure_is_the_constant_where_one_is_set(self, hub, constant, pauses):
        assert await hub.async_rm(self.remote(constant), sample()) == -1.0
        assert await hub.async_rm(self.remote(constant), sample(label="nobody")) == -1.0
        assert pauses == []

    async def test_rollout_without_its_end_gets_the_minimum(self, hub, ended):
        remote = self.remote(ended)
        assert [await hub.async_rm(remote, sample(text)) for text in (f"{TEXT}{END}", TEXT)] == [0.8, 0.0]
