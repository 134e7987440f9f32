"""A finished scorecard in the metrics and in the log, alike for a run and for rewards."""

import logging

from adjudge.engine.telemetry.logs import about, case_name, event
from adjudge.engine.telemetry.metrics import Metrics
from adjudge.scoring.contract.scorecard import Scorecard

__all__ = ["note"]

_log = logging.getLogger(__name__)


def note(card: Scorecard, metrics: Metrics) -> None:
    """Count `card` in `metrics` and log it under the name of its case."""
    metrics.scored(card)
    if not _log.isEnabledFor(logging.INFO):
        return
    with about(shard=card.task_id, case=case_name(card.system, card.task_id, card.sample, card.repeat)):
        event(_log, "scorecard", protocol=card.protocol, status=card.status, reason=card.reason)
