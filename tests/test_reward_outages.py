"""Judges and reward servers that are away for a while: calls are held, training stops, a group's mean stands in."""

import asyncio
import time

import aiohttp
import pytest

from adjudge.engine.adapters import source, trl
from adjudge.engine.config.reward import Constant
from adjudge.engine.errors import UsageError
from adjudge.engine.rewards.model import RewardModel
from adjudge.engine.rewards.outage import OutageStop
from adjudge.engine.rewards.reward import Reward, RewardError, all_settled
from adjudge.engine.serving.client import RewardClient
from tests.mock_openai import Call, MockOpenAI
from tests.outages import judged
from tests.processes import free_port
from tests.reward_server import reward_server
from tests.rewarding import rewarded

TEXT = "It states fact number 0."
ITEM = {"task_id": "0", "text": TEXT}


async def late_judge(port: int, after: float) -> MockOpenAI:
    await asyncio.sleep(after)
    mock = MockOpenAI()
    await mock.start(port=port)
    return mock


@pytest.mark.parametrize(("deadline", "hold"), [(20.0, 0.0), (1.0, 20.0)])
async def test_call_waits_for_its_judge(tmp_path, deadline, hold):
    """Until its deadline, or as long as `hold_s` holds it: a judge that restarts costs no reward."""
    port = free_port()
    config = rewarded(tmp_path, judged(f"http://127.0.0.1:{port}/v1"), outage={"hold_s": hold})
    starting = asyncio.ensure_future(late_judge(port, after=2.0))
    began = time.monotonic()
    with RewardModel(config) as model:
        (found,) = await model.score([ITEM], deadline=deadline)
        took = time.monotonic() - began
    await (await starting).stop()
    assert found.value is not None and 2.0 < took < 15.0


async def test_call_gives_up_a_judge_that_would_be_late(tmp_path):
    async with MockOpenAI(latency=2.0) as mock:
        config = rewarded(tmp_path, judged(mock.url))
        with RewardModel(config) as model:
            (first,) = await model.score([ITEM], deadline=30)
            assert first.value is not None
            await mock.stop()
            began = time.monotonic()
            (found,) = await model.score([{**ITEM, "text": "Another."}], deadline=4.0)
            took = time.monotonic() - began
    assert (found.value, found.reason) == (None, "judge_unavailable") and took < 3.95


def test_training_stops_with_one_line(tmp_path):
    judge = judged(f"http://127.0.0.1:{free_port()}/v1")
    config = rewarded(tmp_path, judge, outage={"stop_share": 0.5})
    with RewardModel(config) as model:
        assert model.score_sync([ITEM], deadline=0.2)[0].value is None, "one says little"
        with pytest.raises(OutageStop) as stopped:
            model.score_sync([{**ITEM, "sample": n} for n in range(20)], deadline=0.2)
    assert "21 of the last 21 failed (judge_unavailable 21), more than outage.stop_share 0.5" in str(
        stopped.value
    )


def test_faults_of_rollouts_do_not_stop_a_training(tmp_path):
    with RewardModel(rewarded(tmp_path, outage={"stop_share": 0.1})) as model:
        found = model.score_sync({"task_id": "no", "text": TEXT} for _ in range(40))
    assert {one.reason for one in found} == {"task_unknown"}


class TestServer:
    async def test_missing_server_is_named_once_and_found_again(self, tmp_path, caplog):
        port = free_port()
        with RewardClient(f"http://127.0.0.1:{port}") as client:
            for text in ("a", "b"):
                (found,) = await client.score([{"task_id": "0", "text": text}], deadline=0.4)
                assert (found.value, found.reason) == (None, "server_unreachable")
            with reward_server(rewarded_path(tmp_path), "--port", str(port)):
                (found,) = await asyncio.to_thread(client.score_sync, [ITEM], deadline=20)
        assert found.value is not None
        said = [one for one in caplog.messages if f"127.0.0.1:{port}" in one]
        assert len(said) == 2 and "cannot be reached (" in said[0] and "reached again" in said[1]

    def test_environment_holds_calls_of_a_server(self, monkeypatch):
        monkeypatch.setenv("ADJUDGE_HOLD_S", "1.5")
        monkeypatch.setenv("ADJUDGE_STOP_SHARE", "0.25")
        client = source.open_source(f"http://127.0.0.1:{free_port()}")
        assert (client.outage.hold_s, client.outage.stop_share) == (1.5, 0.25)
        client.close()
        monkeypatch.setenv("ADJUDGE_STOP_SHARE", "most")
        with pytest.raises(UsageError, match="ADJUDGE_STOP_SHARE"):
            source.open_source(f"http://127.0.0.1:{free_port()}")

    async def test_remote_model_gets_the_mean_of_its_group(self, tmp_path):
        path = rewarded_path(tmp_path, on_failure="group_mean")
        query = {
            "query": [f"p{TEXT}", "pNothing.", f"q{TEXT}"],
            "prompts": ["p", "p", "q"],
            "labels": ["0", "no", "none"],
        }
        context = reward_server(path)
        url, _ = await asyncio.to_thread(context.__enter__)
        async with aiohttp.ClientSession() as http, http.post(f"{url}/get_reward", json=query) as reply:
            found = await reply.json()
        await asyncio.to_thread(context.__exit__, None, None, None)
        assert found["rewards"][0] == found["rewards"][1] == found["rewards"][2] is not None
        assert found["extra_logs"] == {"failed": [0, 1, 1]}


ITEMS = [{"prompt": prompt, "text": "x"} for prompt in "aaabbc"]


class TestMean:
    @staticmethod
    def of(*values: float | None) -> list[Reward]:
        return [
            Reward(value=value, status="unscored" if value is None else "scored", reason="deadline")
            for value in values
        ]

    def test_failed_rollout_gets_the_mean_of_its_prompt(self):
        found = all_settled(ITEMS, self.of(1.0, 0.0, None, 0.8, None, None), "group_mean")
        assert found == pytest.approx([1.0, 0.0, 0.5, 0.8, 0.8, 0.6])

    def test_call_without_a_value_has_none(self):
        assert all_settled(ITEMS, self.of(*[None] * 6), "group_mean") == [None] * 6
        with pytest.raises(RewardError, match="deadline"):
            source.numbers(ITEMS, self.of(*[None] * 6), "group_mean")

    def test_other_choices_are_as_for_one(self):
        rewards = self.of(1.0, None, None, None, None, None)
        assert all_settled(ITEMS, rewards, "none") == [1.0] + [None] * 5
        assert all_settled(ITEMS, rewards, Constant(-1.0)) == [1.0] + [-1.0] * 5
        with pytest.raises(RewardError):
            all_settled(ITEMS, rewards, "raise")

    async def test_reward_function_offers_it(self, tmp_path):
        columns = {"task_id": ["0", "no"], "source": str(rewarded_path(tmp_path))}
        first, second = await trl.async_reward(["p", "p"], [TEXT, TEXT], on_failure="group_mean", **columns)
        assert first == second is not None


def rewarded_path(folder, **reward):
    rewarded(folder, **reward)
    return folder / "adjudge.yaml"


async def test_a_killed_server_asks_only_what_was_in_flight(tmp_path):
    """What was answered before `kill -9`, an answered request above all, is asked never again."""
    in_flight, items = 4, [{**ITEM, "text": f"It states fact number 0, attempt {n}."} for n in range(4)]
    asked: list[bytes] = []

    async def note(mock: MockOpenAI, call: Call) -> None:
        if not call.is_probe:
            asked.append(call.messages)

    async with MockOpenAI(latency=0.2, fault=note) as mock, aiohttp.ClientSession() as session:
        rewarded(tmp_path, judged(mock.url, max_in_flight=in_flight), deadline_s=60)
        file = tmp_path / "adjudge.yaml"
        with reward_server(file) as (url, process):
            first = await rewards(session, url, items[:1])
            settled = len(asked)
            cut = asyncio.ensure_future(rewards(session, url, items))
            while len(asked) < settled + 3 * in_flight:
                await asyncio.sleep(0.01)
            process.kill()
            with pytest.raises(aiohttp.ClientError):
                await cut
            process.wait()
        with reward_server(file) as (url, _):
            again = await rewards(session, url, items)
    assert again[:1] == first and all(one is not None for one in again)
    assert not set(asked[:settled]) & set(asked[settled:])
    assert len(asked) - len(set(asked)) <= in_flight


async def rewards(session: aiohttp.ClientSession, url: str, items: list[dict[str, str]]) -> list[object]:
    async with session.post(f"{url}/v1/rewards", json={"items": items}) as answer:
        return [one["value"] for one in (await answer.json())["rewards"]]
