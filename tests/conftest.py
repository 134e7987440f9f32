"""Fixtures shared by several modules, and how modules are distributed among workers."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path, PurePath

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from tests.browser import browser, chinese_font
from tests.nightly import quick_or_whole
from tests.small_ray import end_small_ray, small_ray, uses_small_ray

__all__ = ["browser", "chinese_font", "small_ray"]

# Modules that start Ray, which takes many processes: one worker runs them, one after another.
STARTS_RAY = {
    "test_checkup",
    "test_cluster",
    "test_cluster_chaos",
    "test_cluster_commands",
    "test_cluster_leaderboard",
    "test_cluster_metrics",
    "test_cluster_tournament",
    "test_cluster_until_resolved",
    "test_dashboard",
    "test_judges_cluster",
    "test_ray_start",
    "test_reward_cluster",
    "test_reward_service",
    "test_sick_replica",
}

# The longest of the others. They start early, so that no worker is at one of them when the rest have ended.
TAKES_LONG = {
    "test_disks",
    "test_exports",
    "test_fetch_renderer",
    "test_interrupts",
    "test_leaderboard_browser",
    "test_live_browser",
    "test_own_files",
    "test_papers",
    "test_server",
    "test_site",
    "test_tables",
    "test_viewer",
    "test_viewer_browser",
    "test_viewer_export",
    "test_wheel",
}

# No test fails for being slow on a busy machine. Each run draws other examples, and `make nightly` draws all of them.
settings.register_profile("untimed", deadline=None, max_examples=quick_or_whole(30, 100))
settings.load_profile("untimed")

# Ray's workers run at normal priority, and none is started before there is work for it.
os.environ |= {"RAY_worker_niceness": "0", "RAY_prestart_worker_first_driver": "0"}


ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def checkout_left_alone() -> Iterator[None]:
    """The test that leaves a store or a run at the root of the checkout fails, since one there changes other tests."""
    there = {name for name in (".adjudge", "runs") if (ROOT / name).exists()}
    yield
    assert {name for name in (".adjudge", "runs") if (ROOT / name).exists()} == there


def _module(nodeid: str) -> str:
    return PurePath(nodeid.partition("::")[0]).stem


class OneRay(LoadFileScheduling):
    """Each worker runs whole modules, and a single worker runs all modules that start Ray."""

    def _split_scope(self, nodeid: str) -> str:
        return "ray" if _module(nodeid) in STARTS_RAY else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> OneRay:
    return OneRay(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the longest modules first, with those that share one Ray in a row; properties are nightly."""
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("nightly")

    def place(item: pytest.Item) -> tuple[bool, bool, bool]:
        name = _module(item.nodeid)
        return name not in STARTS_RAY, not uses_small_ray(item), name not in TAKES_LONG

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """What importing every test module left stays; the garbage collector need not walk it again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    end_small_ray(item, nextitem)
