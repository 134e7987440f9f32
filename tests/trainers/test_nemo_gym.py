"""NeMo-Gym's own resources server, over HTTP, from a checkout of its repository.

tests/trainers/nemo_gym.py says what is stubbed.
"""

from pathlib import Path

import pytest
import yaml
from fastapi.testclient import TestClient

from tests.reward_pages import URL, block
from tests.trainers.nemo_gym import imported
from tests.trainers.rollouts import DEADLINE_S, PROMPT, RUBRICS, TEXT


@pytest.fixture
def nemo_gym(monkeypatch, recorder):
    """The adapter, with its calls recorded."""
    adapter = imported(monkeypatch)
    recorder.nemo_gym_rows(monkeypatch, adapter)
    return adapter


def row(text: str = TEXT, **more: object) -> dict:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": content}
    response = {
        "id": "r", "created_at": 0.0, "model": "m", "object": "response", "output": [message],
        "parallel_tool_calls": False, "tool_choice": "auto", "tools": [],
    }  # fmt: skip
    return {"responses_create_params": {"input": PROMPT}, "response": response, **more}


def verified(nemo_gym, source: str, body: dict) -> dict:
    """The reply of `/verify`, as NeMo-Gym's rollout collection reads it."""
    page = yaml.safe_load(block("nemo-gym", "yaml").replace(URL, source))
    given = page["reports"]["resources_servers"]["reports"]
    assert given.pop("entrypoint") == Path(nemo_gym.__file__).name
    config = nemo_gym.ReportServerConfig(**{**given, "deadline": DEADLINE_S})
    client = TestClient(nemo_gym.ReportServer(config=config).setup_webserver())
    reply = client.post("/verify", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_row_gets_its_reward_and_metrics(nemo_gym, good):
    found = verified(nemo_gym, good, row(verifier_metadata={"task_id": 1}, other="kept"))
    assert (found["reward"], found["score_clipped"], found["other"]) == (0.8, 0.8, "kept")


def test_task_id_finds_the_task_without_its_prompt(nemo_gym, good):
    body = row(task_id="1")
    body["responses_create_params"]["input"] = "another prompt"
    assert verified(nemo_gym, good, body)["reward"] == 0.8


def test_row_brings_its_own_rubrics(nemo_gym, good):
    for more in ({"rubrics": RUBRICS}, {"verifier_metadata": {"rubrics": RUBRICS}}):
        body = row(**more)
        body["responses_create_params"]["input"] = "another prompt"
        found = verified(nemo_gym, good, body)
        assert found["reward"] == 1.0 and found["adjudge_parts"][0]["value"] == 1.0


def test_truncated_rollout_gets_the_minimum(nemo_gym, good):
    body = row()
    body["response"] |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    found = verified(nemo_gym, good, body)
    assert (found["reward"], found["adjudge_reason"]) == (0.0, "truncated")


@pytest.mark.parametrize("failing", ["down", "slow"])
def test_failed_judge_is_set_aside(nemo_gym, failing, request):
    found = verified(nemo_gym, request.getfixturevalue(failing), row())
    assert found["_ng_failure_class"] == "judge_failed"
    reason = "judge_unavailable" if failing == "down" else "deadline"
    assert reason in found["_ng_failure_judge_error"]
