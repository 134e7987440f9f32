"""The calls of slime's and NeMo-Gym's own code, made anew without it: adjudge gives them what that code accepted."""

import pkgutil
import re
from enum import Enum
from pathlib import Path
from types import SimpleNamespace

import pytest
from aiohttp import ClientSession

from adjudge.engine.adapters.source import DEADLINE, ON_FAILURE, REWARDS
from adjudge.engine.rewards.reward import RewardError
from tests.trainers.nemo_gym import made
from tests.trainers.recording import Call, left, recorded
from tests.trainers.rollouts import DEADLINE_S


def calls(trainer: str) -> list:
    return [
        pytest.param(call, id=f"{test}-{place}")
        for test, made in recorded(trainer).items()
        for place, call in enumerate(made)
    ]


class Status(Enum):
    """How slime's samples end."""

    COMPLETED = "completed"
    TRUNCATED = "truncated"


@pytest.mark.parametrize("call", [one for one in calls("slime") if "function" in one.values[0]])
async def test_slime_function_gives_what_slime_accepted(call: Call, request, monkeypatch):
    monkeypatch.setenv(REWARDS, request.getfixturevalue(call["server"]))
    monkeypatch.setenv(DEADLINE, str(DEADLINE_S))
    if call["on_failure"] is not None:
        monkeypatch.setenv(ON_FAILURE, call["on_failure"])
    samples = [SimpleNamespace(**{**each, "status": Status(each["status"])}) for each in call["samples"]]
    reward = pkgutil.resolve_name(call["function"])
    asked = reward(None, samples[0] if call["alone"] else samples, **call["more"])
    if "raises" in call:
        with pytest.raises(RewardError) as raised:
            await asked
        assert str(raised.value) == call["raises"]
        return
    assert await asked == call["returns"]
    assert [left(sample) for sample in samples] == call["left"]


@pytest.mark.parametrize("call", [one for one in calls("slime") if "path" in one.values[0]])
async def test_remote_model_replies_what_slime_accepted(call: Call, request):
    url = request.getfixturevalue(call["server"]) + call["path"]
    async with ClientSession() as session, session.request(call["method"], url, json=call["body"]) as reply:
        assert (reply.status, reply.reason) == (call["status"], call["reason"])
        assert (await reply.json() if reply.ok else None) == call["reply"]


@pytest.mark.parametrize("call", calls("nemo_gym"))
async def test_resources_server_gives_what_nemo_gym_accepted(call: Call, request, monkeypatch):
    adapter = made(monkeypatch)
    config = adapter.ReportServerConfig(source=request.getfixturevalue(call["server"]), deadline=DEADLINE_S)
    body = adapter.ReportRequest.model_validate(call["row"])
    asked = adapter.ReportServer(config=config).verify(body)
    if "raises" in call:
        with pytest.raises(adapter.JudgeError) as raised:
            await asked
        assert str(raised.value) == call["raises"]
        return
    assert (await asked).model_dump(mode="json") == call["reply"]


@pytest.mark.parametrize("call", [one for one in calls("nemo_gym") if "raises" not in one.values[0]])
async def test_verify_replies_the_row_as_nemo_gym_keeps_it(call: Call, request):
    """The remote form, asked with the same rows, gives the same reward."""
    url = request.getfixturevalue(call["server"]) + call["path"]
    async with ClientSession() as session, session.post(url, json=call["row"]) as reply:
        found = await reply.json()
    assert found == {**call["row"], "reward": call["reply"]["reward"]}


def test_record_has_every_test_of_their_code():
    for trainer in ("slime", "nemo_gym"):
        text = Path(__file__).with_name(f"test_{trainer}.py").read_text(encoding="utf-8")
        tests = {test.rpartition("::")[2].partition("[")[0] for test in recorded(trainer)}
        assert tests == set(re.findall(r"def (test_\w+)", text))
