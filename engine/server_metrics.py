"""What the reward server tells Prometheus."""

from collections import Counter as Tally
from collections.abc import Callable, Sequence

from adjudge.engine.admission import Admission
from adjudge.engine.reward import Reward
from adjudge.engine.scorer import RewardScorer
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["ServerMetrics"]

SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)


class ServerMetrics:
    """Counters of one server. `recent` is the mean time of requests scored, in seconds, newer ones counting more."""

    def __init__(self, scorer: RewardScorer, admission: Admission) -> None:
        self.registry = CollectorRegistry()
        self.recent = 0.0
        own = self.registry
        self._requests = Counter("adjudge_requests", "Requests", ["path", "status"], registry=own)
        self._rewards = Counter("adjudge_rewards", "Rewards, by why there is none", ["reason"], registry=own)
        self._values = Counter("adjudge_reward_value", "Sum of the values of rewards", registry=own)
        self._flags = Counter("adjudge_reward_flags", "Sum of the flags of rewards", ["flag"], registry=own)
        self._seconds = Histogram(
            "adjudge_request_seconds", "Time to score a request", buckets=SECONDS, registry=own
        )
        self._gauge("adjudge_items_in_flight", "Rollouts being scored", lambda: admission.items)
        self._gauge("adjudge_body_bytes", "Bytes of bodies held", lambda: admission.body_bytes)
        counts = scorer.evaluator
        self._gauge("adjudge_judgments_asked", "Judgments asked for", lambda: counts.counts.from_judge)
        self._gauge("adjudge_judgments_stored", "Judgments from the store", lambda: counts.counts.from_store)
        if (audit := scorer.audit) is not None:
            self._gauge("adjudge_audit_gap", "First judge less second, lately", lambda: audit.gap)
            self._gauge(
                "adjudge_audit_gap_growth", "The same, less what it was at first", lambda: audit.growth
            )
            self._gauge("adjudge_audit_done", "Rollouts scored by both judges", lambda: audit.done)
            self._gauge("adjudge_audit_failed", "Audits without a second reward", lambda: audit.failed)
            self._gauge("adjudge_audit_skipped", "Audits given up, too many waiting", lambda: audit.skipped)
        if (canary := scorer.canary) is not None:
            self._gauge("adjudge_canary_drift", "Canaries' rewards less known ones", lambda: canary.drift)
            self._gauge("adjudge_canary_distance", "The same, without sign", lambda: canary.distance)
            self._gauge("adjudge_canary_failed", "Canaries without a reward", lambda: canary.failed)
            self._gauge("adjudge_canary_rounds", "Rounds of canaries", lambda: canary.rounds)

    def _gauge(self, name: str, what: str, value: Callable[[], float]) -> None:
        Gauge(name, what, registry=self.registry).set_function(value)

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
        for flag in flags:
            self._flags.labels(flag).inc(sum(reward.scores.get(flag) or 0.0 for reward in rewards))

    def text(self) -> bytes:
        """All of it in the text format."""
        return generate_latest(self.registry)
