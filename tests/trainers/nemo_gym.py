"""NeMo-Gym's own resources server, from its pinned files.

Stubbed: nemo_gym.config_types, reward_profile, rollout_correlation and server_utils, of which `verify` uses the base
classes alone. NeMo-Gym 0.7 cannot be installed on every Python that these files run on.
"""

import importlib
import sys
from types import ModuleType

import pytest
from pydantic import BaseModel

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


def imported(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The adapter, with the server that it extends."""
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
