"""Every way by which a rollout reaches its reward: each trainer's adapter with its own types, and each dialect.

A way takes the URL of a server and a `Rollout`, puts its row where that trainer keeps it, and gives the value that the
trainer gets: None where there is none.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from enum import Enum
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import httpx
import msgspec
import verifiers.v1 as vf
from areal.api import ModelResponse
from areal.api.cli_args import GenerationHyperparameters
from transformers import AutoTokenizer
from verifiers.v1.graph import MessageNode
from verifiers.v1.types import AssistantMessage, ToolMessage, UserMessage

from adjudge.engine.adapters import openrlhf, slime, trl, verifiers, verl
from adjudge.engine.adapters.areal import ReportWorkflow
from adjudge.engine.adapters.source import REWARDS, TrainingStop
from adjudge.engine.rewards.reward import RewardError, brought
from tests.gaming import Turn, as_text
from tests.tiny_model import tiny_model
from tests.trainers.rollouts import PROMPT


class Rollout(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy said in its turns, and the row of its data set."""

    turns: list[Turn]
    row: dict[str, Any]
    prompt: str = PROMPT

    @property
    def text(self) -> str:
        """What was said, in the trainers that keep one text."""
        return as_text(self.turns) if len(self.turns) > 1 else str(self.turns[0]["content"])


Way = Callable[[str, Rollout], Awaitable[float | None]]


async def _trl(source: str, given: Rollout, completion: object) -> float | None:
    columns = {name: [value] for name, value in given.row.items()}
    found = await trl.async_reward([given.prompt], [completion], source=source, **columns)
    return found[0]


async def trl_text(source: str, given: Rollout) -> float | None:
    return await _trl(source, given, given.text)


async def trl_messages(source: str, given: Rollout) -> float | None:
    return await _trl(source, given, list(given.turns))


async def verl_extra_info(source: str, given: Rollout) -> float | None:
    extra = {"prompt": given.prompt, **given.row}
    return float((await verl.compute_score("reports", given.text, "", extra, source=source))["score"])


async def verl_ground_truth(source: str, given: Rollout) -> float | None:
    extra = {"prompt": given.prompt}
    found = await asyncio.to_thread(
        verl.compute_score_sync, "reports", given.text, _label(given), extra, source=source
    )
    return float(found["score"])


async def openrlhf_python(source: str, given: Rollout) -> float | None:
    query = f"{given.prompt}{given.text}"
    found = await asyncio.to_thread(
        openrlhf.reward_func, [query], [given.prompt], [_label(given)], source=source
    )
    return found["rewards"].item()


async def openrlhf_remote(source: str, given: Rollout) -> float | None:
    query = f"{given.prompt}{given.text}"
    body = {"query": [query], "prompts": [given.prompt], "labels": [_label(given)]}
    return (await _posted(f"{source}/get_reward", body))["rewards"][0]


class Status(Enum):
    """slime's, of a sample that has come to its end."""

    COMPLETED = "completed"


async def _slime(source: str, given: Rollout, **kept: object) -> float | None:
    sample = SimpleNamespace(
        prompt=given.prompt, response=given.text, status=Status.COMPLETED, remove_sample=False, weight_versions=[],
        **{"label": None, "metadata": {}, **kept},
    )  # fmt: skip
    with patch.dict(os.environ, {REWARDS: source}):
        return await slime.reward(None, sample)


async def slime_metadata(source: str, given: Rollout) -> float | None:
    return await _slime(source, given, metadata=given.row)


async def slime_label(source: str, given: Rollout) -> float | None:
    return await _slime(source, given, label=_label(given))


async def slime_remote(source: str, given: Rollout) -> float | None:
    return await _posted(
        f"{source}/reward", {"prompt": given.prompt, "response": given.text, "label": _label(given)}
    )


async def nemo_gym_row(source: str, given: Rollout) -> float | None:
    return (await _posted(f"{source}/verify", {**_nemo_gym(given), **given.row}))["reward"]


async def nemo_gym_metadata(source: str, given: Rollout) -> float | None:
    return (await _posted(f"{source}/verify", {**_nemo_gym(given), "verifier_metadata": given.row}))["reward"]


async def nemo_gym_server(source: str, given: Rollout) -> float | None:
    """Of the resources server; the fixture `nemo_gym` imports it."""
    adapter = sys.modules["adjudge.engine.adapters.nemo_gym"]
    server = adapter.ReportServer(config=adapter.ReportServerConfig(source=source))
    body = adapter.ReportRequest.model_validate({**_nemo_gym(given), "verifier_metadata": given.row})
    return (await server.verify(body)).reward


class Data(vf.TaskData):
    """A row of verifiers."""

    rubrics: Any = None
    rubric: Any = None
    ground_truth: Any = None
    gold: Any = None
    info: dict | None = None


async def verifiers_fields(source: str, given: Rollout) -> float | None:
    row = {name: value for name, value in given.row.items() if name in Data.model_fields}
    return await _verifiers(
        source, given, Data(idx=0, id=given.row.get("task_id"), prompt=given.prompt, **row)
    )


async def verifiers_info(source: str, given: Rollout) -> float | None:
    return await _verifiers(source, given, Data(idx=0, prompt=given.prompt, info=given.row))


async def areal(source: str, given: Rollout) -> float | None:
    workflow = ReportWorkflow(GenerationHyperparameters(), str(tiny_model()), source=source)
    tokens = AutoTokenizer.from_pretrained(tiny_model())(given.text)["input_ids"]
    response = ModelResponse(input_tokens=[], output_tokens=tokens, stop_reason="stop")
    row = {"messages": [{"role": "user", "content": given.prompt}], **given.row}
    return await workflow._compute_rewards(response, given.prompt, row)


async def _verifiers(source: str, given: Rollout, data: Data) -> float | None:
    made = {"assistant": AssistantMessage, "tool": ToolMessage, "user": UserMessage}
    nodes = [
        MessageNode(
            parent=place - 1 if place else None,
            message=made[turn["role"]](**turn),
            sampled=turn["role"] == "assistant",
        )
        for place, turn in enumerate(given.turns)
    ]
    return await verifiers.reward(data, vf.Trace.model_construct(nodes=nodes), source=source)


async def own_text(source: str, given: Rollout) -> float | None:
    return await _own(source, given, text=given.text)


async def own_messages(source: str, given: Rollout) -> float | None:
    return await _own(source, given, messages=given.turns)


async def _own(source: str, given: Rollout, **said: object) -> float | None:
    item = {"prompt": given.prompt, **said, **brought(given.row)}
    return (await _posted(f"{source}/v1/rewards", {"items": [item]}))["rewards"][0]["value"]


def _label(given: Rollout) -> str:
    """The row as the text beside a prompt: what it is judged by alone, as data sets have it there, or all of it."""
    (value, *others) = given.row.values()
    alone = not others and not given.row.keys() & {"task_id", "gold"}
    chosen = value if alone else given.row
    return chosen if isinstance(chosen, str) else json.dumps(chosen)


def _nemo_gym(given: Rollout) -> dict[str, Any]:
    """The body of `/verify`, with the turns as items of the Responses API."""
    output = [
        _spoken(str(turn["content"])) if turn["role"] == "assistant" else
        {"type": "function_call_output", "call_id": "1", "output": turn["content"]}
        for turn in given.turns
    ]  # fmt: skip
    response = {
        "id": "r", "created_at": 0.0, "model": "m", "object": "response", "output": output,
        "parallel_tool_calls": False, "tool_choice": "auto", "tools": [],
    }  # fmt: skip
    return {"responses_create_params": {"input": given.prompt}, "response": response}


def _spoken(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": content}


async def _posted(url: str, body: object) -> Any:
    """The reply of a server. Raises HTTPStatusError."""
    async with httpx.AsyncClient(timeout=60) as client:
        reply = await client.post(url, json=body)
        reply.raise_for_status()
        return reply.json()


WAYS: dict[str, Way] = {
    way.__name__: way
    for way in (
        trl_text, trl_messages, verl_extra_info, verl_ground_truth, openrlhf_python, openrlhf_remote, slime_metadata,
        slime_label, slime_remote, nemo_gym_row, nemo_gym_metadata, nemo_gym_server, verifiers_fields, verifiers_info,
        areal, own_text, own_messages,
    )
}  # fmt: skip


async def valued(way: str, source: str, given: Rollout) -> float | None:
    """The value that `given` gets by the way of that name; None where the trainer has an error instead."""
    try:
        return await WAYS[way](source, given)
    except (RewardError, TrainingStop, httpx.HTTPStatusError):
        return None
