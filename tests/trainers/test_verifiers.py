"""verifiers' own environment: rollouts of a model behind HTTP, with the reward that its configuration plugs in."""

import os
import subprocess
import sys
import time
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import verifiers.v1 as vf
from aiohttp import web
from verifiers.v1.graph import MessageNode
from verifiers.v1.types import AssistantMessage, ToolMessage, UserMessage

from adjudge.engine.adapters.source import DEADLINE, REWARDS
from adjudge.engine.adapters.verifiers import reward
from tests.reward_pages import URL, block
from tests.trainers.rollouts import DEADLINE_S, PROMPT, RUBRICS, TEXT

PLUGINS = Path(__file__).parent / "plugins"


@pytest.fixture(autouse=True)
def plugins(monkeypatch) -> None:
    monkeypatch.syspath_prepend(PLUGINS)


@asynccontextmanager
async def model(text: str, finish: str) -> AsyncIterator[str]:
    """The URL of a model that always writes `text`."""

    async def complete(request: web.Request) -> web.Response:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        told = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
        return web.json_response({**told, "choices": [choice], "usage": usage})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    await runner.cleanup()


async def rolled_out(text: str = TEXT, finish: str = "stop", data: dict | None = None) -> vf.Trace:
    """The trace of one episode, from the configuration as verifiers' command line makes it."""
    run = tomllib.loads(block("verifiers", "toml"))["env"]
    run["taskset"]["id"] = "written_reports"
    config = vf.SingleAgentEnvConfig.model_validate({**run, "agent": {"runtime": {"type": "subprocess"}}})
    env = vf.load_environment(config)
    assert type(env) is vf.SingleAgentEnv and type(env).__module__ == "verifiers.v1.envs.single_agent.env"
    async with model(text, finish) as url, env.serving():
        client = vf.EvalClientConfig(base_url=url, api_key_var="NO_SUCH_KEY")
        (slot,) = env.slots(next(iter(env.taskset)).with_data(**(data or {})))
        episode = await env.run_slot(slot, vf.ModelContext("m", client, vf.SamplingConfig()))
    (trace,) = episode.traces
    return trace


async def test_rollout_gets_its_reward_and_metrics(good, monkeypatch):
    monkeypatch.setenv(REWARDS, good)
    trace = await rolled_out()
    assert trace.ok and trace.last_reply == TEXT
    assert trace.rewards["adjudge"].value == 0.8
    assert trace.metrics["score_clipped"] == 0.8


async def test_row_brings_its_own_rubrics(good, monkeypatch):
    monkeypatch.setenv(REWARDS, good)
    for data in ({"rubrics": RUBRICS}, {"info": {"rubrics": RUBRICS}}):
        trace = await rolled_out(data={"prompt": "another prompt", "id": None, **data})
        assert trace.rewards["adjudge"].value == 1.0
        assert trace.info["adjudge"]["parts"][0]["value"] == 1.0


async def test_truncated_rollout_gets_the_minimum(good, monkeypatch):
    monkeypatch.setenv(REWARDS, good)
    trace = await rolled_out(finish="length")
    assert trace.is_truncated and trace.rewards["adjudge"].value == 0.0
    assert trace.info["adjudge"]["reason"] == "truncated"


async def test_failed_judge_leaves_no_reward_and_an_error(down, monkeypatch):
    monkeypatch.setenv(REWARDS, down)
    trace = await rolled_out()
    assert trace.rewards == {"adjudge": None} and not trace.ok
    assert trace.last_error.type == "TaskError" and "judge_unavailable" in trace.last_error.message


async def test_slow_judge_leaves_no_reward_in_time(slow, monkeypatch):
    monkeypatch.setenv(REWARDS, slow)
    monkeypatch.setenv(DEADLINE, str(DEADLINE_S))
    began = time.monotonic()
    trace = await rolled_out()
    assert trace.rewards == {"adjudge": None} and "deadline" in trace.last_error.message
    assert time.monotonic() - began < 30


async def test_tool_and_made_up_replies_are_not_paid(good):
    """A trace that ends with a tool has no report; a reply that no model call wrote is none of the policy's."""

    def trace(*turns: tuple[object, bool]) -> vf.Trace:
        places = enumerate(turns)
        nodes = [
            MessageNode(parent=n - 1 if n else None, message=one, sampled=own) for n, (one, own) in places
        ]
        return vf.Trace.model_construct(nodes=nodes)

    asked, said = (UserMessage(content=PROMPT), False), (AssistantMessage(content=TEXT), True)
    page = (ToolMessage(tool_call_id="1", content=TEXT), False)
    data = vf.TaskData(idx=0, prompt=PROMPT)
    assert await reward(data, trace(asked, page, said), source=good) == 0.8
    assert await reward(data, trace(asked, said, page), source=good) == 0.0
    assert await reward(data, trace(asked, (AssistantMessage(content=TEXT), False)), source=good) == 0.0
    handed = trace(asked, (AssistantMessage(content="I am done."), True))
    handed.__dict__["root_reply"] = TEXT
    assert await reward(data, handed, source=good) == 0.8, "a harness may hand over a reply of its own"


OLDER = """
import asyncio, sys, verifiers
from types import SimpleNamespace
assert "id" not in vf.TaskData.model_fields and verifiers.__file__.startswith(sys.argv[1])
trace = SimpleNamespace(
    last_reply=sys.argv[3], is_truncated=False, info={}, branches=[], record_metrics=lambda metrics: None
)
print(asyncio.run(ReportTask(vf.TaskData(prompt=sys.argv[2])).report(trace)))
"""


def test_older_release_finds_the_task_by_its_prompt(good):
    older = str(Path(sys.prefix) / "older")
    environment = {**os.environ, "PYTHONPATH": older}
    page = block("verifiers", "python").replace(URL, good)
    command = [sys.executable, "-c", page + OLDER, older, PROMPT, TEXT]
    assert subprocess.check_output(command, env=environment, text=True).strip() == "0.8"


GROUP = """
import asyncio, sys, verifiers
assert verifiers.__file__.startswith(sys.argv[1])

def state(text):
    reply = [{"role": "assistant", "content": text}]
    return vf.State(input={"prompt": [{"role": "user", "content": "?"}], "info": {"task_id": sys.argv[4]}},
                    completion=reply, is_truncated=False, trajectory=[])

states = [state(text) for text in (sys.argv[2], sys.argv[3], sys.argv[2])]
try:
    asyncio.run(rubric.score_group(states))
    print(*(f"{one['reward']:.2f} {one['advantage']:.2f}" for one in states))
except BaseException as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("task", "said"),
    [("1", "0.80 0.27 0.00 -0.53 0.80 0.27"), ("nobody", "TrainingStop no reward: task_unknown")],
    ids=["scored", "failed"],
)
def test_older_release_scores_whole_groups(task, said, good):
    older = str(Path(sys.prefix) / "older")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((older, *sys.path)), REWARDS: good}
    command = [sys.executable, "-c", block("verifiers", "python", 1) + GROUP, older, TEXT, "Nothing.", task]
    found = subprocess.check_output(command, env=environment, text=True, stderr=subprocess.DEVNULL)
    assert found.splitlines()[-1].startswith(said)
