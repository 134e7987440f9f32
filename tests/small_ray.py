"""A local Ray on loopback that successive modules share, and the warnings that Ray itself causes."""

import contextlib
import os
import sys

import pytest

CPUS = 8
# Pipes that Ray opens to its processes, and deprecated calls it makes.
RAY_WARNINGS = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
]


@pytest.fixture(scope="module")
def small_ray() -> None:
    """A started Ray with CPUS logical CPUs. It ends before the next test without it."""
    ray = pytest.importorskip("ray")
    if ray.is_initialized():
        return
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        address="local",
        num_cpus=CPUS,
        object_store_memory=100_000_000,
        include_dashboard=False,
        log_to_driver=False,
        _node_ip_address="127.0.0.1",
    )


def uses_small_ray(item: pytest.Item) -> bool:
    return "small_ray" in getattr(item, "fixturenames", ())


def end_small_ray(item: pytest.Item, following: pytest.Item | None) -> None:
    """Called after each test, with the one that follows on this worker."""
    if uses_small_ray(item) and (following is None or not uses_small_ray(following)):
        with contextlib.suppress(KeyError):  # skipped: not installed
            sys.modules["ray"].shutdown()
