"""Reward servers as trainers meet them: one that scores, one whose judge is down, one whose judge is slow."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.reward_server import judge_server, reward_server
from tests.trainers.nemo_gym import imported, made
from tests.trainers.recording import Record, Recorder, filled, recorded
from tests.trainers.rollouts import DEADLINE_S, END, SLOW_S
from tests.worlds import world

NOBODY = {"backend": "openai", "url": "http://127.0.0.1:9/v1", "model": "m", "retries": 0}
REWARD = {"metric": "score_clipped"}


@pytest.fixture(scope="session")
def servers() -> dict[str, str]:
    """The name of each server that was started, by its URL."""
    return {}


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory, servers: dict[str, str]) -> Iterator[str]:
    """The URL of a server that scores TEXT 0.8."""
    with reward_server(_world(tmp_path_factory, "good")) as (url, _):
        servers[url] = "good"
        yield url


@pytest.fixture(scope="session")
def down(tmp_path_factory: pytest.TempPathFactory, servers: dict[str, str]) -> Iterator[str]:
    """The URL of a server whose judge cannot be reached."""
    reward = {**REWARD, "deadline_s": DEADLINE_S}
    with reward_server(_world(tmp_path_factory, "down", judge=NOBODY, reward=reward)) as (url, _):
        servers[url] = "down"
        yield url


@pytest.fixture(scope="session")
def slow(tmp_path_factory: pytest.TempPathFactory, servers: dict[str, str]) -> Iterator[str]:
    """The URL of a server whose judge takes longer than any deadline of these tests."""
    with judge_server(latency=SLOW_S) as judge:
        judged = {"backend": "openai", "url": judge, "model": "mock", "retries": 0}
        given = {"judge": judged, "reward": {**REWARD, "deadline_s": DEADLINE_S}}
        with reward_server(_world(tmp_path_factory, "slow", **given)) as (url, _):
            servers[url] = "slow"
            yield url


@pytest.fixture(scope="session")
def constant(tmp_path_factory: pytest.TempPathFactory, servers: dict[str, str]) -> Iterator[str]:
    """The URL of a server whose judge cannot be reached, and that gives -1 instead."""
    reward = {**REWARD, "on_failure": {"constant": -1.0}, "deadline_s": DEADLINE_S}
    with reward_server(_world(tmp_path_factory, "constant", judge=NOBODY, reward=reward)) as (url, _):
        servers[url] = "constant"
        yield url


@pytest.fixture(scope="session")
def ended(tmp_path_factory: pytest.TempPathFactory, servers: dict[str, str]) -> Iterator[str]:
    """The URL of a server for which a finished rollout ends with END."""
    with reward_server(_world(tmp_path_factory, "ended", reward={**REWARD, "report": {"end": END}})) as (
        url,
        _,
    ):
        servers[url] = "ended"
        yield url


@pytest.fixture
def nemo_gym(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The adapter of NeMo-Gym, on made classes without ADJUDGE_REFERENCE."""
    return (imported if os.environ.get("ADJUDGE_REFERENCE") else made)(monkeypatch)


@pytest.fixture
def recorder(request: pytest.FixtureRequest, servers: dict[str, str]) -> Iterator[Recorder]:
    """Records what a trainer's own code calls, and compares it with the record, or keeps it for a new one."""
    trainer = request.path.stem.removeprefix("test_")
    test = request.node.nodeid.partition("::")[2]
    kept = Recorder(servers)
    yield kept
    plugins = request.config.pluginmanager.get_plugins()
    new = next((plugin for plugin in plugins if isinstance(plugin, Record)), None)
    if new is not None:
        new.keep(trainer, test, kept.calls)
    elif kept.calls:
        assert filled(kept.calls) == filled(recorded(trainer)[test]), (
            "run python -m tests.trainers.record, and read what changed"
        )


def _world(factory: pytest.TempPathFactory, name: str, **settings: object) -> Path:
    return world(factory.mktemp(name), **{"reward": REWARD, **settings})
