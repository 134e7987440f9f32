"""What slime's and NeMo-Gym's own code asks of adjudge and what it makes of the answers, recorded as data.

Their packages cannot be installed here, so the tests of their code need `ADJUDGE_REFERENCE`. The calls of each such
test are in tests/golden/trainers/, and the test fails if it makes others. test_recorded.py makes the recorded calls
without that code.
"""

import functools
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientError, ClientResponse, ClientSession
from fastapi.testclient import TestClient

from adjudge.engine.adapters.source import ON_FAILURE, REWARDS
from adjudge.engine.rewards.reward import RewardError
from tests.shared_data import GOLDEN

Call = dict[str, Any]
FOLDER = GOLDEN / "trainers"


def file_of(trainer: str) -> Path:
    return FOLDER / f"{trainer}.json"


def recorded(trainer: str) -> dict[str, list[Call]]:
    """The calls of each test of that trainer's code."""
    found: dict[str, list[Call]] = json.loads(file_of(trainer).read_text(encoding="utf-8"))
    return found


def plain(value: object) -> Any:
    """`value` as JSON gives it back; a member of an enumeration as its value."""
    return json.loads(json.dumps(value, default=_value))


def left(sample: Any) -> Any:
    """What a reward function left on a sample of slime.

    Of a failed reward only the reason: whether metrics come with it depends on whose deadline passed first, the
    server's or the adapter's.
    """
    metadata = dict(sample.metadata)
    if sample.remove_sample:
        metadata["adjudge"] = {"reason": metadata["adjudge"]["reason"]}
    return plain({"metadata": metadata, "remove_sample": sample.remove_sample})


def filled(value: Any) -> Any:
    """`value` without its null fields, which differ between versions of the types that trainers use."""
    if isinstance(value, dict):
        return {name: filled(part) for name, part in value.items() if part is not None}
    return [filled(part) for part in value] if isinstance(value, list) else value


def _value(member: object) -> Any:
    if isinstance(member, Enum):
        return member.value
    raise TypeError(f"{type(member)}: no JSON for it; record a part of it")


class Recorder:
    """The calls of one test. `servers` has the name of each server by its URL."""

    def __init__(self, servers: dict[str, str]) -> None:
        self.servers = servers
        self.calls: list[Call] = []

    def slime_function(self, path: str, function: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
        """The reward function that slime loads from `path`, with its calls recorded."""

        async def called(args: object, given: Any, **more: object) -> Any:
            samples = given if isinstance(given, list) else [given]
            call: Call = {
                "server": self.servers[os.environ[REWARDS]],
                "on_failure": os.environ.get(ON_FAILURE),
                "function": path,
                "alone": given is not samples,
                "samples": [asdict(sample) for sample in samples],
                "more": more,
            }
            try:
                call["returns"] = await function(args, given, **more)
                call["left"] = [left(sample) for sample in samples]
            except RewardError as error:
                call["raises"] = str(error)
                raise
            finally:
                self.calls.append(plain(call))
            return call["returns"]

        return called

    def slime_requests(self, monkeypatch: pytest.MonkeyPatch, hub: ModuleType) -> None:
        """Record what slime sends to its remote reward model, and what its caller gets in the end."""
        send, ask = ClientSession._request, hub.remote_rm

        async def sent(session: ClientSession, method: str, url: str, **more: Any) -> ClientResponse:
            reply = await send(session, method, url, **more)
            address = urlsplit(str(url))
            if address.path == "/reward":
                body = await reply.read()
                call = self.calls[-1]
                call["requests"] += 1
                call |= {"method": method, "path": address.path, "body": plain(more["json"])}
                call |= {"status": reply.status, "reason": reply.reason}
                call["reply"] = json.loads(body) if reply.ok else None
            return reply

        async def asked(args: Any, sample: object, **more: Any) -> Any:
            call: Call = {"server": self.servers[args.rm_url.rpartition("/")[0]], "requests": 0}
            self.calls.append(call)
            try:
                call["returns"] = await ask(args, sample, **more)
            except ClientError as error:
                call["raises"] = type(error).__name__
                raise
            return call["returns"]

        monkeypatch.setattr(ClientSession, "_request", sent)
        monkeypatch.setattr(hub, "remote_rm", asked)

    def nemo_gym_rows(self, monkeypatch: pytest.MonkeyPatch, adapter: ModuleType) -> None:
        """Record the rows that NeMo-Gym hands to the resources server, and what its own caller gets."""
        verify, post = adapter.ReportServer.verify, TestClient.post

        @functools.wraps(verify)
        async def verified(server: Any, body: Any) -> Any:
            call: Call = {"server": self.servers[server.config.source], "row": body.model_dump(mode="json")}
            self.calls.append(call)
            try:
                return await verify(server, body)
            except adapter.JudgeError as error:
                call["raises"] = str(error)
                raise

        def posted(client: TestClient, path: str, **more: Any) -> Any:
            reply = post(client, path, **more)
            self.calls[-1] |= {"path": path, "body": plain(more["json"]), "reply": reply.json()}
            return reply

        monkeypatch.setattr(adapter.ReportServer, "verify", verified)
        monkeypatch.setattr(TestClient, "post", posted)


class Record:
    """A plugin of pytest that keeps the calls of all tests, and writes them if none failed."""

    def __init__(self) -> None:
        self.trainers: dict[str, dict[str, list[Call]]] = {}

    def keep(self, trainer: str, test: str, calls: list[Call]) -> None:
        self.trainers.setdefault(trainer, {})[test] = calls

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus == 0:
            FOLDER.mkdir(exist_ok=True)
            for trainer, tests in self.trainers.items():
                text = json.dumps(tests, indent=1, sort_keys=True, ensure_ascii=False)
                file_of(trainer).write_text(f"{text}\n", encoding="utf-8")
