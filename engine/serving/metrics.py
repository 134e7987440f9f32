"""The metrics of a reward server, added to those of its evaluator."""

from collections import Counter as Tally
from collections.abc import Callable, Sequence

from prometheus_client import Counter, Gauge, Histogram

from adjudge.engine.rewards.reward import Reward
from adjudge.engine.rewards.scorer import RewardScorer
from adjudge.engine.serving.admission import Admission
from adjudge.engine.telemetry.metrics import SECONDS, Metrics

__all__ = ["RewardMetrics", "metrics_of"]


class RewardMetrics:
    """Adds a reward server's numbers to `metrics`. `recent` is a moving average of the seconds per request."""

    def __init__(self, metrics: Metrics) -> None:
        self.recent = 0.0
        self._registry = own = metrics.registry
        self._requests = Counter("adjudge_requests", "Requests", ["path", "status"], registry=own)
        self._rewards = Counter(
            "adjudge_rewards", "Rewards, by why they have no value", ["reason"], registry=own
        )
        self._values = Counter("adjudge_reward_value", "Sum of the values of rewards", registry=own)
        self._flags = Counter("adjudge_reward_flags", "Sum of the flags of rewards", ["flag"], registry=own)
        self._unanswered = Counter(
            "adjudge_reward_unanswered",
            "Rollouts without a readable answer twice while others of the task had one",
            ["reason"],
            registry=own,
        )
        self._seconds = Histogram(
            "adjudge_request_seconds", "Time to score a request", buckets=SECONDS, registry=own
        )

    def watch(self, name: str, what: str, value: Callable[[], float]) -> None:
        """Expose the current result of `value` as the gauge `name`."""
        Gauge(name, what, registry=self._registry).set_function(value)

    def request(self, path: str, status: int) -> None:
        """Count a request by its path (one of the server's own) and status."""
        self._requests.labels(path, str(status)).inc()

    def scored(self, rewards: Sequence[Reward], flags: Sequence[str], seconds: float) -> None:
        """Count a scored request's rewards."""
        self.recent += 0.2 * (seconds - self.recent)
        self._seconds.observe(seconds)
        self._values.inc(sum(max(reward.value or 0.0, 0.0) for reward in rewards))
        reasons = Tally(reward.reason if reward.value is None else "" for reward in rewards)
        for reason, count in reasons.items():
            self._rewards.labels(reason or "scored").inc(count)
        for reward in rewards:
            if reward.scores.get("unanswered"):
                self._unanswered.labels(reward.reason or "").inc()
        for flag in flags:
            self._flags.labels(flag).inc(sum(reward.scores.get(flag) or 0.0 for reward in rewards))


def metrics_of(scorer: RewardScorer, admission: Admission) -> RewardMetrics:
    """The metrics of a server with `scorer`: those of its group, audit, log and canaries only if it has them."""
    metrics = RewardMetrics(scorer.evaluator.metrics)
    metrics.watch("adjudge_items_in_flight", "Rollouts being scored", lambda: admission.items)
    metrics.watch("adjudge_body_bytes", "Bytes of bodies held", lambda: admission.body_bytes)
    if scorer.reward_config.group.asks:
        metrics.watch("adjudge_group_first", "Wins of the report shown first", lambda: scorer.positions.first)
        metrics.watch(
            "adjudge_group_comparisons", "Comparisons answered", lambda: scorer.positions.comparisons
        )
    if (audit := scorer.audit) is not None:
        metrics.watch("adjudge_audit_gap", "First judge minus second, lately", lambda: audit.gap)
        metrics.watch(
            "adjudge_audit_gap_growth", "The judges' gap minus its first mean", lambda: audit.growth
        )
        metrics.watch("adjudge_audit_done", "Rollouts scored by both judges", lambda: audit.done)
        metrics.watch("adjudge_audit_failed", "Audits without a second reward", lambda: audit.failed)
        metrics.watch("adjudge_audit_skipped", "Audits skipped, too many waiting", lambda: audit.skipped)
    if (log := scorer.log) is not None:
        metrics.watch("adjudge_log_written", "Rollouts written to the log", lambda: log.written)
        metrics.watch("adjudge_log_skipped", "Rollouts left out of the log", lambda: log.skipped)
    if (canary := scorer.canary) is not None:
        metrics.watch("adjudge_canary_drift", "Canaries' rewards minus known ones", lambda: canary.drift)
        metrics.watch(
            "adjudge_canary_distance", "Canaries' rewards minus known ones, absolute", lambda: canary.distance
        )
        metrics.watch("adjudge_canary_failed", "Canaries without a reward", lambda: canary.failed)
        metrics.watch("adjudge_canary_rounds", "Rounds of canaries", lambda: canary.rounds)
    return metrics
