"""Fixtures that tests of several modules share, and how modules are shared out among workers."""

import os
from pathlib import PurePath

import pytest
from xdist.scheduler import LoadFileScheduling

from tests.browser import browser
from tests.small_ray import small_ray

__all__ = ["browser", "small_ray"]

# Modules that start a Ray, which is many processes: one worker runs them, one after another.
STARTS_RAY = {
    "test_checkup",
    "test_cluster",
    "test_cluster_chaos",
    "test_cluster_commands",
    "test_cluster_leaderboard",
    "test_cluster_metrics",
    "test_cluster_until_resolved",
    "test_dashboard",
    "test_ray_start",
    "test_reward_cluster",
    "test_reward_service",
}

# Its workers are as important as what else runs at the same time, and none is started before there is work for it.
os.environ |= {"RAY_worker_niceness": "0", "RAY_prestart_worker_first_driver": "0"}


def _starts_ray(nodeid: str) -> bool:
    return PurePath(nodeid.partition("::")[0]).stem in STARTS_RAY


class OneRay(LoadFileScheduling):
    """A worker runs whole modules, and one of them all that start a Ray."""

    def _split_scope(self, nodeid: str) -> str:
        return "ray" if _starts_ray(nodeid) else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> OneRay:
    return OneRay(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first."""
    items.sort(key=lambda item: not _starts_ray(item.nodeid))
