"""NeMo-Gym's own resources server, over HTTP, from its pinned files.

Stubbed: nemo_gym.config_types, reward_profile, rollout_correlation and server_utils, of which `verify` uses the base
classes alone. NeMo-Gym 0.7 cannot be installed on every Python that these files run on.
"""

import importlib
import sys
from pathlib import Path

import pytest
import yaml
from fastapi.testclient import TestClient
from pydantic import BaseModel

from tests.reward_pages import URL, block
from tests.trainers.rollouts import DEADLINE_S, PROMPT, RUBRICS, TEXT
from tests.trainers.stubs import from_reference, stub


class Config(BaseModel):
    name: str = ""


class Mixin:
    """A base class without behaviour."""

    compute_metrics = get_key_metrics = None


class Server(BaseModel):
    config: Config

    def setup_session_middleware(self, app: object) -> None: ...


class Middleware:
    def __init__(self, app: object) -> None:
        self.app = app

    async def __call__(self, *call: object) -> None:
        await self.app(*call)


@pytest.fixture
def adapter(monkeypatch):
    from_reference(monkeypatch, "nemo_gym", "nemo_gym")
    stub(monkeypatch, "nemo_gym.config_types", AggregateMetrics=BaseModel, AggregateMetricsRequest=BaseModel)
    stub(monkeypatch, "nemo_gym.reward_profile", AggregateMetricsMixin=Mixin, compute_aggregate_metrics=None)
    stub(monkeypatch, "nemo_gym.rollout_correlation", RolloutContextMiddleware=Middleware)
    stub(
        monkeypatch,
        "nemo_gym.server_utils",
        BaseRunServerInstanceConfig=Config,
        BaseServer=Server,
        SimpleServer=type("SimpleServer", (), {}),
        ServerClient=object,
        get_response_json=None,
        raise_for_status=None,
        request=None,
        ClientResponse=object,
        MAX_NUM_TRIES=1,
        _GLOBAL_AIOHTTP_CLIENT_REQUEST_DEBUG=False,
    )
    monkeypatch.delitem(sys.modules, "adjudge.engine.adapters.nemo_gym", raising=False)
    found = importlib.import_module("adjudge.engine.adapters.nemo_gym")
    assert found.SimpleResourcesServer.__module__ == "nemo_gym.base_resources_server"
    return found


def row(text: str = TEXT, **more: object) -> dict:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": content}
    response = {
        "id": "r", "created_at": 0.0, "model": "m", "object": "response", "output": [message],
        "parallel_tool_calls": False, "tool_choice": "auto", "tools": [],
    }  # fmt: skip
    return {"responses_create_params": {"input": PROMPT}, "response": response, **more}


def verified(adapter, source: str, body: dict) -> dict:
    """The reply of `/verify`, as NeMo-Gym's rollout collection reads it."""
    page = yaml.safe_load(block("nemo-gym", "yaml").replace(URL, source))
    given = page["reports"]["resources_servers"]["reports"]
    assert given.pop("entrypoint") == Path(adapter.__file__).name
    config = adapter.ReportServerConfig(**{**given, "deadline": DEADLINE_S})
    client = TestClient(adapter.ReportServer(config=config).setup_webserver())
    reply = client.post("/verify", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_row_gets_its_reward_and_metrics(adapter, good):
    found = verified(adapter, good, row(verifier_metadata={"task_id": 1}, other="kept"))
    assert (found["reward"], found["score_clipped"], found["other"]) == (0.8, 0.8, "kept")


def test_task_id_finds_the_task_without_its_prompt(adapter, good):
    body = row(task_id="1")
    body["responses_create_params"]["input"] = "another prompt"
    assert verified(adapter, good, body)["reward"] == 0.8


def test_row_brings_its_own_rubrics(adapter, good):
    for more in ({"rubrics": RUBRICS}, {"verifier_metadata": {"rubrics": RUBRICS}}):
        body = row(**more)
        body["responses_create_params"]["input"] = "another prompt"
        found = verified(adapter, good, body)
        assert found["reward"] == 1.0 and found["adjudge_parts"][0]["value"] == 1.0


def test_truncated_rollout_gets_the_minimum(adapter, good):
    body = row()
    body["response"] |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    found = verified(adapter, good, body)
    assert (found["reward"], found["adjudge_reason"]) == (0.0, "truncated")


@pytest.mark.parametrize("failing", ["down", "slow"])
def test_failed_judge_is_set_aside(adapter, failing, request):
    found = verified(adapter, request.getfixturevalue(failing), row())
    assert found["_ng_failure_class"] == "judge_failed"
    reason = "judge_unavailable" if failing == "down" else "deadline"
    assert reason in found["_ng_failure_judge_error"]
