"""The endpoint of a run's metrics: ADJUDGE_METRICS=HOST:PORT serves them while the run lasts.

Cluster workers send theirs to the driver, so one endpoint covers them all.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from adjudge.engine.telemetry.metrics import Measured

__all__ = ["metrics_served"]

_ADDRESS = "ADJUDGE_METRICS"


@asynccontextmanager
async def metrics_served(measured: Measured) -> AsyncIterator[None]:
    """Serve /metrics inside the block if ADJUDGE_METRICS is set. Raises UsageError for an unusable address."""
    address = os.environ.get(_ADDRESS, "").strip()
    if not address:
        yield
        return
    from adjudge.engine.telemetry.http import metrics_at  # not above: it imports aiohttp

    async with metrics_at(address, _ADDRESS, measured):
        yield
