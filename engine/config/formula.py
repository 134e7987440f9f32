"""`Formula`: from the scorecards of a rollout to one number, or to the reason why there is none."""

import copy
from collections.abc import Collection, Mapping, Sequence
from math import isfinite
from typing import get_args

import msgspec

from adjudge.engine.config.errors import ConfigError
from adjudge.engine.config.reward import Bounds, GroupConfig, RewardConfig, Term, Weight, steps_of, weight_at
from adjudge.scoring.contract.protocol import CaseMetrics, ScoringProtocol
from adjudge.scoring.contract.reasons import CAUSES, Reason, ReportReason
from adjudge.scoring.contract.scorecard import Metric, Scorecard

__all__ = ["Formula", "FormulaError", "Part", "Value"]

LEAST: frozenset[str] = frozenset(get_args(ReportReason))
"""What gives a rollout the lowest reward of all: it has no report that could be judged."""


class FormulaError(ConfigError):
    """A reward cannot be computed as configured: `reward: key: the problem; what to do`, in one line."""


class Part(msgspec.Struct, frozen=True):
    """One term of the sum: `metric` of `protocol`. `worst` is None for a metric that only a task's gold defines."""

    protocol: str
    metric: str
    term: Term
    worst: float | None

    @property
    def name(self) -> str:
        """The metric's name, with its protocol's."""
        return f"{self.protocol}.{self.metric}"

    def of(self, value: float, step: int) -> float:
        """The term's part of the reward for a metric's `value`."""
        if self.term.rescale is not None:
            low, high = self.term.rescale
            value = (value - low) / (high - low)
        return weight_at(self.term.weight, step) * _clipped(value, self.term.clip)


class Value(msgspec.Struct, frozen=True):
    """A reward's value, or None. `reason` says why it is None, or which fault of the report it counts."""

    value: float | None
    reason: Reason | None = None


class Formula:
    """Computes rewards from the scorecards of `protocols`. Raises FormulaError for metrics that cannot be one.

    Where weights depend on the trainer's step, `at` gives the formula of a step.
    """

    def __init__(self, config: RewardConfig, protocols: Sequence[ScoringProtocol]) -> None:
        if config.metric is not None and config.weights:
            raise FormulaError("reward: metric: and weights: exclude each other; write one of them")
        self.parts = [_part(*weighted, config.strict, protocols) for weighted in _weights(config, protocols)]
        self.needed = frozenset(part.protocol for part in self.parts)
        self.protocols = self._listed = _asked(protocols, self.needed, config.always)
        self.step = 0
        self._terms = tuple(self.parts)
        self._always = config.always
        self._group: Weight = 0.0 if config.group.kind == "none" else config.group.weight
        _check_group(config.group)
        self._check_steps()
        self._penalties: dict[str, float] = msgspec.structs.asdict(config.penalties)
        self._clip = config.clip
        self._blamed = ("report", "source") if config.strict else ("report",)
        names = [metric.name for protocol in protocols for metric in protocol.metrics]
        self._shared = {name for name in names if names.count(name) > 1}
        _check_bounds("clip", config.clip)

    @property
    def scheduled(self) -> tuple[str, ...]:
        """The metrics whose weights depend on the trainer's step; `group` for that beside the metrics."""
        return tuple(name for name, weight in self._named_weights() if isinstance(weight, dict))

    @property
    def group_weight(self) -> float:
        """The weight of a rollout's standing beside the others of its prompt."""
        return weight_at(self._group, self.step)

    def at(self, step: int) -> "Formula":
        """This formula with the weights of `step`, without the metrics whose weight is 0 there."""
        found = copy.copy(self)
        found.step = step
        found.parts = [part for part in self._terms if weight_at(part.term.weight, step)]
        found.needed = frozenset(part.protocol for part in found.parts)
        found.protocols = _asked(self._listed, found.needed, self._always)
        return found

    def alone(self) -> "Formula":
        """This formula for rollouts that come without others of their prompt."""
        found = copy.copy(self)
        found._group = 0.0
        return found

    def _check_steps(self) -> None:
        """Between two steps of a schedule weights keep their signs, so those steps tell of all."""
        for step in sorted({step for _, weight in self._named_weights() for step in steps_of(weight)}):
            if not self.at(step).parts and not self.at(step).group_weight:
                raise FormulaError(
                    f"reward: weights: at step {step} all are 0; give one metric a weight there"
                )

    @property
    def flags(self) -> frozenset[str]:
        """The flags that have a penalty."""
        return frozenset(name for name, weight in self._penalties.items() if weight)

    def scores(self, cards: Mapping[str, Scorecard]) -> dict[str, float | None]:
        """All metrics by name, as `protocol.metric` where two protocols share a name; None without a card.

        Where weights depend on the step, it is there too, and each such weight as `weight:protocol.metric`.
        """
        every = {
            (protocol.name, metric.name): None
            for protocol in self._listed
            for metric in protocol.metrics
            if metric.ratio is None
        }
        known = {
            (name, metric): value for name, card in cards.items() for metric, value in card.scores.items()
        }
        return {
            f"{protocol}.{metric}" if metric in self._shared else metric: value
            for (protocol, metric), value in (every | known).items()
        } | self._schedule()

    def _named_weights(self) -> list[tuple[str, Weight]]:
        return [*((part.name, part.term.weight) for part in self._terms), ("group", self._group)]

    def _schedule(self) -> dict[str, float | None]:
        weights: dict[str, float | None] = {
            f"weight:{name}": weight_at(weight, self.step)
            for name, weight in self._named_weights()
            if isinstance(weight, dict)
        }
        return {"step": float(self.step), **weights} if weights else {}

    def value(
        self, cards: Mapping[str, Scorecard], flags: Mapping[str, float], group: Value | None = None
    ) -> Value:
        """The reward for `cards` by protocol, `flags` from 0 to 1, and `group`, if that is to count.

        It is None if any metric is missing for another reason than the report's own doing or, unless published forms
        are wanted, its sources': those take the metric's worst. A report that is empty, oversized or without an end
        gets the lowest reward that the formula can give: all metrics at their worst, and all penalties in full.
        """
        total, reason = 0.0, None
        for part in self.parts:
            card = cards[part.protocol]
            value = card.scores.get(part.metric)
            if value is not None:
                why = card.reason if card.status == "scored" else None
            else:
                why = card.reasons.get(part.metric, "gold_missing")
                if CAUSES[why] not in self._blamed or part.worst is None:
                    return Value(None, why)
                value = part.worst
            total += part.of(value, self.step)
            reason = reason or why
        least = any(cards[name].reason in LEAST for name in self.needed)
        if group is not None and self.group_weight and not least:
            if group.value is None:
                return Value(None, group.reason)
            total += self.group_weight * group.value
        total -= sum(
            weight * (1.0 if least else flags.get(name, 0.0)) for name, weight in self._penalties.items()
        )
        return Value(_clipped(total, self._clip), reason)


def _asked(
    protocols: Sequence[ScoringProtocol], needed: Collection[str], always: Sequence[str]
) -> tuple[ScoringProtocol, ...]:
    """The protocols that the reward needs, and those that are asked all the same."""
    unknown = set(always) - {protocol.name for protocol in protocols}
    if unknown:
        known = ", ".join(protocol.name for protocol in protocols)
        raise FormulaError(f"reward: always: unknown protocol {min(unknown)!r}; use one of {known}")
    return tuple(protocol for protocol in protocols if protocol.name in (*needed, *always))


def _check_group(group: GroupConfig) -> None:
    weights = tuple(group.weight.values()) if isinstance(group.weight, dict) else (group.weight,)
    if not all(isfinite(weight) and weight >= 0 for weight in weights) or not any(weights):
        raise FormulaError(f"reward: group: weight: {group.weight} must be a finite number above 0")


def _weights(config: RewardConfig, protocols: Sequence[ScoringProtocol]) -> list[tuple[str, Term]]:
    if config.metric is not None:
        return [(config.metric, Term())]
    if not config.weights:
        return [(f"{protocol.name}.{_headline(protocol)}", Term()) for protocol in protocols]
    return [
        (name, weight if isinstance(weight, Term) else Term(weight=weight))
        for name, weight in config.weights.items()
    ]


def _headline(protocol: ScoringProtocol) -> str:
    return next((metric.name for metric in protocol.metrics if metric.headline), protocol.metrics[0].name)


def _part(name: str, term: Term, strict: bool, protocols: Sequence[ScoringProtocol]) -> Part:
    protocol, wanted = _found(name, protocols)
    metrics = {metric.name: metric for metric in protocol.metrics}
    if strict and f"{wanted}_strict" in metrics:
        wanted = f"{wanted}_strict"
    metric = metrics.get(wanted)
    weights = tuple(term.weight.values()) if isinstance(term.weight, dict) else (term.weight,)
    if not all(map(isfinite, (*weights, *(term.rescale or ())))):
        raise FormulaError(f"reward: weights: {name}: must be a finite number, as must the bounds of rescale")
    if not any(weights):
        raise FormulaError(f"reward: weights: {name}: a weight of 0 has no effect; leave it out")
    _check_bounds(f"weights: {name}: rescale", term.rescale)
    _check_bounds(f"weights: {name}: clip", term.clip)
    if metric is not None:
        _check(name, metric, [weight for weight in weights if weight])
    return Part(protocol.name, wanted, term, None if metric is None else metric.worst)


def _found(name: str, protocols: Sequence[ScoringProtocol]) -> tuple[ScoringProtocol, str]:
    """The protocol and metric that `name` means; a metric that only tasks define has a colon (`tag:NAME`)."""
    for protocol in protocols:
        if name.startswith(f"{protocol.name}."):
            metric = name.removeprefix(f"{protocol.name}.")
            of_tasks = isinstance(protocol, CaseMetrics) and ":" in metric
            if of_tasks or metric in {known.name for known in protocol.metrics}:
                return protocol, metric
    having = [protocol for protocol in protocols if name in {metric.name for metric in protocol.metrics}]
    if not having:
        having = [protocol for protocol in protocols if isinstance(protocol, CaseMetrics) and ":" in name]
    if len(having) == 1:
        return having[0], name
    if having:
        names = " or ".join(f"{protocol.name}.{name}" for protocol in having)
        raise FormulaError(f"reward: weights: {name!r} is a metric of several protocols; write {names}")
    known = ", ".join(
        f"{protocol.name}.{metric.name}" for protocol in protocols for metric in protocol.metrics
    )
    raise FormulaError(f"reward: weights: unknown metric {name!r}; use one of {known}")


def _check(name: str, metric: Metric, weights: Sequence[float]) -> None:
    if metric.ratio is not None:
        parts = " and ".join(metric.ratio)
        raise FormulaError(
            f"reward: weights: {name}: is pooled over tasks and has no value for one report; use {parts}"
        )
    if metric.lower_is_better and (metric.best is None or metric.worst <= metric.best):
        raise FormulaError(
            f"reward: weights: {name}: has no worst value for an empty report; use another metric"
        )
    if any((weight < 0) != metric.lower_is_better for weight in weights):
        sign = "negative" if metric.lower_is_better else "positive"
        raise FormulaError(
            f"reward: weights: {name}: must be {sign}, or the worst report would get the highest reward"
        )


def _check_bounds(name: str, bounds: Bounds | None) -> None:
    if bounds is not None and not bounds[0] < bounds[1]:
        raise FormulaError(f"reward: {name}: [{bounds[0]:g}, {bounds[1]:g}] must be [low, high]")


def _clipped(value: float, bounds: Bounds | None) -> float:
    return value if bounds is None else min(max(value, bounds[0]), bounds[1])
