"""Our resources server for NeMo-Gym on NeMo-Gym's own classes, and on made ones of the same shape.

Stubbed beside its own classes: nemo_gym.config_types, reward_profile, rollout_correlation and server_utils, of which
`verify` uses the base classes alone. NeMo-Gym itself needs a newer Python than these tests.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from tests.trainers.stubs import from_reference, replace, stub


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


def imported(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The adapter, on NeMo-Gym's own server; skips without ADJUDGE_REFERENCE."""
    from_reference(monkeypatch, "Gym", "nemo_gym")
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
    found = _adapter(monkeypatch)
    assert found.SimpleResourcesServer.__module__ == "nemo_gym.base_resources_server"
    return found


class VerifyRequest(BaseModel):
    responses_create_params: dict[str, Any]
    response: dict[str, Any]


class VerifyResponse(VerifyRequest):
    reward: float


class JudgeError(Exception):
    """A judge failed."""


def made(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The adapter, on made classes that keep rows as they are."""
    replace(monkeypatch, "nemo_gym")
    stub(
        monkeypatch,
        "nemo_gym.base_resources_server",
        BaseResourcesServerConfig=Config,
        BaseVerifyRequest=VerifyRequest,
        BaseVerifyResponse=VerifyResponse,
        SimpleResourcesServer=Server,
    )
    stub(monkeypatch, "nemo_gym.judge", JudgeError=JudgeError)
    return _adapter(monkeypatch)


def _adapter(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.delitem(sys.modules, "adjudge.engine.adapters.nemo_gym", raising=False)
    return importlib.import_module("adjudge.engine.adapters.nemo_gym")
