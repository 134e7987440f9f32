"""The adapters, against the real packages where they are installed, else against their published calling conventions.

Their calls are repeated here as their code makes them; `tests/trainers` drives the trainers' own code.
"""

import asyncio
import functools
import importlib.util
import inspect
import pickle
import re
import urllib.request
from enum import Enum
from pathlib import Path
from types import SimpleNamespace

import pytest

from adjudge.engine.adapters import openrlhf, slime, source, trl, verifiers, verl
from adjudge.engine.errors import UsageError
from adjudge.engine.rewards.model import RewardError, RewardModel
from adjudge.engine.serving.client import RewardClient
from tests.mock_openai import MockOpenAI
from tests.reward_server import reward_server
from tests.worlds import world

TEXT = "It states fact number 0. The measured value was 42 units."
PROMPT = "What is fact 1?"
FAILING = {"backend": "openai", "url": "http://127.0.0.1:9/v1", "model": "m", "retries": 0}


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> Path:
    return world(tmp_path_factory.mktemp("good"), reward={"metric": "score_clipped"})


@pytest.fixture(scope="module")
def failing(tmp_path_factory) -> Path:
    return world(
        tmp_path_factory.mktemp("bad"), judge=FAILING, reward={"metric": "score_clipped", "deadline_s": 0.5}
    )


@pytest.fixture(scope="module")
def url(config):
    with reward_server(config) as (address, _):
        yield address


@pytest.fixture(params=["in this process", "from a server"])
def good(request, config, url) -> str:
    """A source that scores TEXT 0.8."""
    return str(config) if request.param == "in this process" else url


class TestTRL:
    @pytest.mark.parametrize("conversational", [False, True])
    async def test_completions_are_texts_or_messages(self, good, conversational):
        prompts, completions = [PROMPT] * 2, [TEXT, ""]
        if conversational:
            prompts = [[{"role": "system", "content": "s"}, {"role": "user", "content": PROMPT}]] * 2
            completions = [[{"role": "assistant", "content": text}] for text in completions]
        called = {
            "prompts": prompts,
            "completions": completions,
            "completion_ids": [[1], [2]],
            "trainer_state": None,
        }
        f = functools.partial(trl.async_reward, source=good)
        assert await f(**called, domain=["a", "b"]) == [0.8, 0.0]
        assert await f(**{**called, "prompts": ["?", "?"]}, task_id=["1", 1]) == [0.8, 0.0]
        assert trl.reward(**called, source=good) == [0.8, 0.0]

    async def test_failure_is_none_and_one_in_a_batch_leaves_the_others(self, good, failing):
        called = {"prompts": [PROMPT, "?"], "completions": [TEXT, TEXT]}
        assert await trl.async_reward(**called, source=good) == [0.8, None]
        assert trl.reward(**called, source=str(failing)) == [None, None]
        with pytest.raises(RewardError, match="task_unknown"):
            trl.reward(**called, source=good, on_failure="raise")

    def test_reward_function_is_async_and_picklable(self, good):
        bound = functools.partial(trl.async_reward, source=good)
        assert inspect.iscoroutinefunction(bound)
        copy = pickle.loads(pickle.dumps(bound))
        assert asyncio.run(copy(prompts=[PROMPT], completions=[TEXT])) == [0.8]
        held = functools.partial(
            trl.reward, source=RewardClient(good) if good.startswith("http") else RewardModel(good)
        )
        assert pickle.loads(pickle.dumps(held))(prompts=[PROMPT], completions=[TEXT]) == [0.8]


class TestVerl:
    def called(self, text: str = TEXT, task: object = "1", **extra: object) -> dict[str, object]:
        # reward_loop/reward_manager/naive.py: keywords, extra_info with what the loop adds
        return {
            "data_source": "reports",
            "solution_str": text,
            "ground_truth": task,
            "extra_info": {"index": 3, "num_turns": 2, "rollout_reward_scores": {}, **extra},
        }

    async def test_each_call_returns_the_same_keys(self, good):
        score = functools.partial(verl.compute_score, source=good, on_failure=-1.0)
        assert inspect.iscoroutinefunction(verl.compute_score)
        texts = [TEXT, "", f"{TEXT} more"]
        found = await asyncio.gather(
            *(score(**self.called(text)) for text in texts), score(**self.called(task="?"))
        )
        assert [one["score"] for one in found] == [0.8, 0.0, 0.8, -1.0]
        assert [one["failed"] for one in found] == [0, 0, 0, 1]
        assert len({tuple(one) for one in found}) == 1

    async def test_task_comes_from_extra_info_or_the_prompt(self, good):
        for extra in ({"task_id": 1}, {"prompt": PROMPT}, {"question": PROMPT}):
            found = await verl.compute_score(**self.called(task={"style": "rule"}, **extra), source=good)
            assert found["score"] == 0.8

    async def test_failure_raises_or_gives_the_constant_never_zero(self, failing):
        with pytest.raises(source.TrainingStop, match="judge_unavailable"):
            await verl.compute_score(**self.called(), source=str(failing))
        found = await verl.compute_score(**self.called(), source=str(failing), on_failure=-2)
        assert (found["score"], found["reason"]) == (-2.0, "judge_unavailable")
        for wrong in ("none", "zero"):
            with pytest.raises(source.TrainingStop):
                await verl.compute_score(**self.called(), source=str(failing), on_failure=wrong)

    def test_plain_function_gives_the_same(self, good):
        found = verl.compute_score_sync(**self.called(), source=good, metrics=["score_clipped"], extra=1)
        assert (found["score"], found["score_clipped"]) == (0.8, 0.8)
        with pytest.raises(source.TrainingStop, match="metrics: 'other' is unknown; choose from"):
            verl.compute_score_sync(**self.called(), source=good, metrics=["other"])


@pytest.mark.vllm  # its environment has torch
class TestOpenRLHF:
    @pytest.fixture
    def reward_func(self):
        # utils/agent.py loads the file by its path
        spec = importlib.util.spec_from_file_location("reward_func", openrlhf.__file__)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.reward_func

    def test_python_form_is_accepted(self, good, monkeypatch, reward_func):
        monkeypatch.setenv(source.REWARDS, good)
        found = reward_func([f"{PROMPT}{TEXT}</s>", PROMPT], [PROMPT, PROMPT], [None, "1"])
        assert found["rewards"].tolist() == pytest.approx([0.8, 0.0])
        assert reward_func([], [], [])["rewards"].tolist() == []

    def test_failure_raises_or_gives_the_constant(self, failing, monkeypatch, reward_func):
        monkeypatch.setenv(source.REWARDS, str(failing))
        with pytest.raises(source.TrainingStop, match="judge_unavailable"):
            reward_func([f"{PROMPT}{TEXT}"], [PROMPT], [None])
        monkeypatch.setenv(source.ON_FAILURE, "-1")
        found = reward_func([f"{PROMPT}{TEXT}"], [PROMPT], [None])
        assert (found["rewards"].tolist(), found["extra_logs"]["failed"].tolist()) == ([-1.0], [1.0])


class Status(Enum):
    """slime's, of which these two are told apart."""

    COMPLETED = "completed"
    TRUNCATED = "truncated"


class TestSlime:
    def sample(self, text: str = TEXT, **more: object) -> SimpleNamespace:
        given = {"prompt": PROMPT, "response": text, "label": None, "metadata": {}, "remove_sample": False}
        given["weight_versions"] = []
        return SimpleNamespace(**{**given, "status": Status.COMPLETED, **more})

    async def test_one_sample_or_a_batch_is_scored(self, good, monkeypatch):
        monkeypatch.setenv(source.REWARDS, good)
        assert await slime.reward(None, self.sample()) == 0.8
        samples = [self.sample(""), self.sample(prompt="?", label="1"), self.sample(metadata={"task_id": 2})]
        assert await slime.reward(None, samples, evaluation=False) == [0.0, 0.8, 0.8]

    async def test_failure_raises(self, failing, monkeypatch):
        monkeypatch.setenv(source.REWARDS, str(failing))
        with pytest.raises(RewardError, match="judge_unavailable"):
            await slime.reward(None, self.sample())


class TestVerifiers:
    async def test_last_reply_is_scored_and_metrics_recorded(self, good, failing):
        task = SimpleNamespace(id="1", prompt_text=PROMPT)
        recorded: dict[str, float] = {}
        trace = SimpleNamespace(
            last_reply=TEXT, is_truncated=False, info={}, branches=[], record_metrics=recorded.update
        )
        assert await verifiers.reward(task, trace, source=good) == 0.8
        assert recorded["score_clipped"] == 0.8
        with pytest.raises(RewardError, match="judge_unavailable"):
            await verifiers.reward(task, trace, source=str(failing))


class TestClient:
    async def test_single_calls_share_one_request(self, config):
        with reward_server(config) as (address, _), RewardClient(address) as client:
            found = await asyncio.gather(
                *(client.score([{"task_id": str(n % 5), "text": f"{TEXT} {n}"}]) for n in range(64))
            )
            assert {rewards[0].value for rewards in found} == {0.8}
            text = await asyncio.to_thread(_metrics, address)
        (requests,) = re.findall(r'requests_total\{path="/v1/rewards",status="200"\} ([0-9.]+)', text)
        assert float(requests) <= 4

    async def test_each_caller_keeps_its_own_deadline(self, tmp_path):
        async with MockOpenAI(latency=3.0) as mock:
            judge = {"backend": "openai", "url": mock.url, "model": "mock", "retries": 0}
            settings = world(tmp_path, judge=judge, reward={"metric": "score_clipped"})
            context = reward_server(settings)
            address, _ = await asyncio.to_thread(context.__enter__)
            with RewardClient(address) as client:
                item = {"task_id": "0", "text": TEXT}
                hasty, patient = await asyncio.gather(
                    client.score([item], deadline=0.3), client.score([item], deadline=60)
                )
            await asyncio.to_thread(context.__exit__, None, None, None)
        assert (hasty[0].value, hasty[0].reason) == (None, "deadline")
        assert patient[0].value is not None

    def test_missing_hanging_or_refusing_server_is_reported(self, config, monkeypatch):
        with RewardClient("http://127.0.0.1:9") as client:
            (found,) = client.score_sync([{"task_id": "0", "text": TEXT}], deadline=0.3)
            assert (found.value, found.reason) == (None, "server_unreachable")
        with reward_server(config, token="right") as (address, _):
            monkeypatch.setenv("ADJUDGE_TOKEN", "wrong")
            with RewardClient(address) as client, pytest.raises(RewardError, match="401"):
                client.score_sync([{"task_id": "0", "text": TEXT}])
            monkeypatch.setenv("ADJUDGE_TOKEN", "right")
            with RewardClient(address) as client:
                assert client.score_sync([{"task_id": "0", "text": TEXT}])[0].value == 0.8

    async def test_temporary_refusal_is_retried(self, tmp_path):
        async with MockOpenAI(latency=0.3) as mock:
            judge = {"backend": "openai", "url": mock.url, "model": "mock", "retries": 0}
            settings = world(
                tmp_path, judge=judge, reward={"metric": "score_clipped", "limits": {"items": 1}}
            )
            context = reward_server(settings)
            address, _ = await asyncio.to_thread(context.__enter__)
            clients = [RewardClient(address) for _ in range(3)]  # each sends its own request
            found = await asyncio.gather(
                *(one.score([{"task_id": "0", "text": f"{n} {TEXT}"}]) for n, one in enumerate(clients))
            )
            await asyncio.gather(*(asyncio.to_thread(one.close) for one in clients))
            await asyncio.to_thread(context.__exit__, None, None, None)
        assert all(rewards[0].value is not None for rewards in found)


def test_source_is_required(monkeypatch):
    monkeypatch.delenv(source.REWARDS, raising=False)
    with pytest.raises(UsageError, match=source.REWARDS):
        trl.reward([PROMPT], [TEXT])


def _metrics(address: str) -> str:
    with urllib.request.urlopen(f"{address}/metrics") as reply:
        return reply.read().decode()
