"""A local Ray on loopback for the tests of a module, and the warnings that Ray itself causes."""

import os
from collections.abc import Iterator

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
def small_ray() -> Iterator[None]:
    """A started Ray with CPUS logical CPUs."""
    ray = pytest.importorskip("ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        address="local",
        num_cpus=CPUS,
        object_store_memory=100_000_000,
        include_dashboard=False,
        log_to_driver=False,
        _node_ip_address="127.0.0.1",
    )
    yield
    ray.shutdown()
