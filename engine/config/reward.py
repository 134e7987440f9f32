"""The section `reward:` of a configuration: what a reward is made of, and how it is served and watched.

`Formula`: from the scorecards of a rollout to one number, or to the reason why there is none.
"""

import copy
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import isfinite
from typing import Annotated, Any, Literal, get_args

import msgspec

from adjudge.engine.config.metrics import Name, headlines, named, names_in, short_names
from adjudge.engine.config.settings import ConfigError, Count, NotNegative, Positive
from adjudge.engine.errors import nearest
from adjudge.fetchers.page import PageReason
from adjudge.scoring.contract.protocol import CaseMetrics, ScoringProtocol
from adjudge.scoring.contract.reasons import ASKED_FOR, CAUSES, Reason, ReportReason
from adjudge.scoring.contract.scorecard import Metric, Scorecard
from adjudge.scoring.text.thoughts import CALLS, RESULTS, THOUGHTS

__all__ = [
    "LAST_STEP",
    "AuditConfig",
    "CanaryConfig",
    "Constant",
    "Formula",
    "FormulaError",
    "GroupConfig",
    "Length",
    "LogConfig",
    "OnFailure",
    "OutageConfig",
    "ReportRules",
    "RewardConfig",
    "Schedule",
    "Step",
    "Value",
    "weight_at",
]

LARGEST = sys.float_info.max  # a bound that keeps out infinity and NaN
Finite = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Penalty = Annotated[float, msgspec.Meta(ge=0, le=LARGEST)]
Bounds = tuple[float, float]
LAST_STEP = 1 << 53
Step = Annotated[int, msgspec.Meta(ge=0, le=LAST_STEP)]
"""The trainer's step that a rollout belongs to."""
Schedule = Annotated[dict[Step, float], msgspec.Meta(min_length=1, max_length=1000)]
"""Weights at some steps: in proportion between two of them, and constant before the first and after the last."""
Weight = float | Schedule


def weight_at(weight: Weight, step: int) -> float:
    """The value of `weight` at `step`."""
    if not isinstance(weight, dict):
        return weight
    steps = sorted(weight)
    place = bisect_right(steps, step)
    if place in (0, len(steps)):
        return weight[steps[max(place - 1, 0)]]
    before, after = steps[place - 1], steps[place]
    share = (step - before) / (after - before)
    return (1 - share) * weight[before] + share * weight[after]


def steps_of(weight: Weight) -> tuple[int, ...]:
    """The steps that a schedule names."""
    return tuple(weight) if isinstance(weight, dict) else ()


class Term(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A metric's part of the reward: `weight` x value, once it is rescaled ([low, high] to [0, 1]), then clipped."""

    weight: Weight = 1.0
    """A number, or a mapping from the trainer's step to numbers."""
    rescale: Bounds | None = None
    """[low, high] becomes [0, 1] before the weight."""
    clip: Bounds | None = None
    """The ends between which the value is held, after rescaling."""


class Penalties(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is subtracted for each flag at its highest, 1 (`engine/rewards/flags.py` says what each means)."""

    injection: Penalty = 0.0
    """For a text that addresses the judge."""
    hidden: Penalty = 0.0
    """For the share of the text that a reader does not see, which no judge is shown."""
    echo: Penalty = 0.0
    """For the share of the text that is its task and criteria."""
    repetition: Penalty = 0.0
    """For the share of the text that it has said before."""
    page_echo: Penalty = 0.0
    """For the share of the pages it brings that say little but what the text says."""
    duplicate_citations: Penalty = 0.0
    """For the share of citations that repeat an earlier one."""
    citation_stuffing: Penalty = 0.0
    """For the share of citations beyond the third in one sentence."""
    length: Penalty = 0.0
    """For how far the text is from `length.free` to `length.max` characters."""


class Length(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Characters: `free` cost nothing, `max` the whole length penalty; a longer report gets the lowest reward."""

    free: Annotated[int, msgspec.Meta(ge=0, le=10**15)] = 0
    """Characters that cost nothing."""
    max: Count = 1_000_000
    """Characters that cost the whole penalty; a longer report gets the lowest reward."""


Tag = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_:-]{0,39}$")]
Marker = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class ReportRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What counts as the report of a rollout: its last assistant turn, without the blocks named here by their tags."""

    thinking: tuple[Tag, ...] = THOUGHTS
    """Tags of what the policy thinks."""
    calls: tuple[Tag, ...] = CALLS
    """Tags of its calls of tools."""
    results: tuple[Tag, ...] = RESULTS
    """Tags of what tools return; what stands before a result belongs to an earlier turn."""
    between: tuple[Marker, Marker] | None = None
    """Only what stands between these two markers, the last time they occur."""
    end: Marker | None = None
    """What a finished rollout ends with, where a trainer keeps it in the text; without it, the rollout is
    truncated."""
    strict: bool = False
    """Whether a text gets no reward (`report_unclear`) where its turns cannot be told apart, not only the flag
    `unclear_turns`. `report: strict` is short for it."""


class CanaryConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fixed reports (`file`, JSON Lines of items with their known `value`), judged again every `every_s` seconds."""

    file: str
    """JSON Lines of items with their known `value`."""
    every_s: Positive = 600.0
    """Seconds between two judgments of them."""


class AuditConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `share` of rollouts that a second judge (a SPEC) scores too; at most `waiting` of them are queued."""

    judge: str
    """The second judge, a SPEC."""
    share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.05
    """The share of rollouts that it scores too."""
    waiting: Count = 64
    """The most rollouts that wait for it."""


class LogConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where scored rollouts are appended (`file`, JSON Lines), for `adjudge rewards replay`."""

    file: str
    """JSON Lines, appended."""
    keep: Literal["rollout", "report"] = "rollout"
    """The whole rollout as it came, or its report alone, without thinking, tool calls and trace; either with what it
    was judged by and its reward."""
    bytes: Count = 16 << 30
    """The size at which the log grows no more."""


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much `adjudge serve` takes on at once."""

    items: Count = 2048
    """Rollouts being scored at once; further requests get 429. A rollout waits as long as those before it take; where
    many single ones come, twice what the judge has room for is a good choice."""
    batch: Count = 4096
    """Rollouts in one request."""
    body_bytes: Count = 64 << 20
    """Bytes of one request."""
    bytes: Count = 512 << 20
    """Bytes that all requests hold together; beyond that, 429."""
    body_s: Positive = 20.0
    """Seconds that a request may take to arrive."""


class GroupConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rollouts of one prompt in one call, judged against each other: `weight` x the share of the others they beat."""

    kind: Literal["none", "rank", "pairwise", "listwise"] = "none"
    """`rank`: by the rest of the reward, without a question. `pairwise`: two at a time, in both orders. `listwise`:
    up to eight at a time, in both orders."""
    weight: Weight = 1.0
    """Of the share of the others that a rollout beats."""
    comparisons: Annotated[int, msgspec.Meta(ge=2, le=64)] = 4
    """With how many others each is compared at most, or in how many lists it stands."""

    @property
    def asks(self) -> bool:
        """Whether the judge compares reports."""
        return self.kind in ("pairwise", "listwise")


class Constant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The value of a failed reward, for trainers that need a number."""

    constant: Finite
    """The value."""


OnFailure = Literal["none", "raise", "group_mean"] | Constant
"""`group_mean` is the mean of the prompt's other rollouts in the call, which leaves their advantages as they are."""


class OutageConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a call does while the judge, or the reward server, is away."""

    hold_s: NotNegative = 0.0
    """Seconds for which a call is held beyond its deadline: its rollouts are tried again and again."""
    stop_share: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    """The training is stopped, with one line, once more than this share of the last 256 rewards failed through no fault
    of rollout, task or gold. For callers in Python."""


class RewardConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reward: the weighted sum of metrics minus penalties, clipped.

    Protocols without a weight are not asked, except those in `always`.
    """

    protocols: list[str | dict[str, Any]] = []
    """What scores a rollout; without them, the run's protocols."""
    metric: str | None = None
    """Short for one metric of weight 1."""
    weights: dict[str, float | Term] = {}
    """By metric, or by `protocol.metric` where two protocols share a name; a weight may be a mapping by the trainer's
    step. Without any, each protocol has weight 1, in equal parts for the metrics that its tables are ranked by; a
    metric whose part of the gold a task lacks is left out there."""
    always: list[str] = []
    """Protocols without a weight that are asked all the same; their metrics come with the reward and never withhold
    it."""
    clip: Bounds | None = None
    """The ends between which the reward is held."""
    dropout: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0
    """The share of a task's criteria (gold `rubrics`) that is left out, drawn anew at each step of the trainer."""
    penalties: Penalties = Penalties()
    """What is subtracted for each flag."""
    length: Length = Length()
    """From how many characters a report costs, and how many it may have."""
    group: GroupConfig = GroupConfig()
    """How a rollout stands beside the others of its prompt in the same call."""
    report: ReportRules | Literal["strict"] = ReportRules()
    """What of a rollout counts as its report."""
    on_truncated: Literal["minimum", "none"] = "minimum"
    """What a rollout without an end gets: the minimum, or no reward."""
    on_unanswered: Literal["none", "minimum"] = "none"
    """What a rollout gets about which the judge gave no readable answer twice while it answered about other rollouts
    of the task: no reward, or the minimum."""
    deadline_s: Positive = 30.0
    """Seconds for calls that come without a deadline."""
    on_failure: OnFailure = "none"
    """What a server's caller gets for a failed reward, where its HTTP dialect has a choice."""
    outage: OutageConfig = OutageConfig()
    """How long an outage holds a call, and when it stops the training."""
    retention_days: Positive = 7.0
    """How long the judgments and pages of rollouts are kept, apart from those of runs."""
    limits: ServerLimits = ServerLimits()
    """How much `adjudge serve` takes on at once."""
    canary: CanaryConfig | None = None
    """Fixed reports that are judged again and again, to see whether the judge drifts."""
    audit: AuditConfig | None = None
    """A second judge for a share of the rollouts."""
    log: LogConfig | None = None
    """Where scored rollouts are appended, for `adjudge rewards replay`."""

    @property
    def report_rules(self) -> ReportRules:
        """The rules of `report`, by name or in full."""
        return ReportRules(strict=True) if self.report == "strict" else self.report


ANY_PAGE: frozenset[str] = frozenset(get_args(PageReason))
"""Why a page has no text: in a closed world, always because the rollout asked for it."""

LEAST: frozenset[str] = frozenset(get_args(ReportReason))
"""What gives a rollout the lowest reward of all: it has no report that could be judged."""


class FormulaError(ConfigError):
    """A reward cannot be computed as configured: `reward: key: the problem; what to do`, in one line."""


class Part(msgspec.Struct, frozen=True):
    """One term of the sum: `metric` of `protocol`. `worst` is None for a metric that only a task's gold defines.

    One that `shares` its protocol's weight with others leaves it to them on a task that it is not due on. `least` is
    the share of its parts that must be answered: what the protocol asks for, or all of them. `best` is None where the
    metric has no such bound.
    """

    protocol: str
    metric: str
    term: Term
    worst: float | None
    shares: bool = False
    least: float = 1.0
    lower_is_better: bool = False
    best: float | None = None
    chosen: frozenset[str] = ASKED_FOR
    """infrastructure reasons that count against the rollout, because it asked for the page"""

    @property
    def name(self) -> str:
        """The metric's name, with its protocol's."""
        return f"{self.protocol}.{self.metric}"

    def value(self, card: Scorecard) -> "Value":
        """The metric's value in `card`, or why it has none.

        What the rollout chose counts against it: a fault of its report, and every page that it asked for and nobody
        could read, one that its site did not give for the number of requests among them.
        """
        value, bounds = card.scores.get(self.metric), card.bounds.get(self.metric)
        if value is not None and (bounds is None or bounds.answered >= self.least * bounds.parts - 1e-9):
            return Value(value, card.reason if card.status == "scored" else None)
        why = card.reasons.get(self.metric)
        if why is None or why in self.chosen:
            missing = {line.reason for line in card.evidence if line.outcome.kind == "missing"}
            lost = [reason for reason in CAUSES if reason in missing]
            others = [reason for reason in lost if reason not in self.chosen]
            if bounds is not None and lost and not others:
                return Value(bounds.high if self.lower_is_better else bounds.low, lost[0])
            why = others[0] if others else why or "gold_missing"
        return Value(self.worst if CAUSES[why] in ("report", "source") else None, why)

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

    Where weights depend on the trainer's step, `at` gives the formula of a step. In a `closed` world no page is missing
    for a cause other than the rollout.
    """

    def __init__(
        self, config: RewardConfig, protocols: Sequence[ScoringProtocol], closed: bool = False
    ) -> None:
        if config.metric is not None and config.weights:
            raise FormulaError("reward: metric: and weights: cannot be used together; keep one of them")
        chosen = ANY_PAGE if closed else ASKED_FOR
        self.parts = [
            msgspec.structs.replace(_part(*weighted, config, protocols), chosen=chosen)
            for weighted in _weights(config, protocols)
        ]
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
        known = names_in({protocol.name: protocol.metrics for protocol in protocols})
        self._shared = {name.metric for name, short in short_names(known).items() if short == name.full}
        _check_bounds("clip", config.clip)

    @property
    def scheduled(self) -> tuple[str, ...]:
        """The metrics whose weights depend on the trainer's step; `group` for that beside the metrics."""
        return tuple(name for name, weight in self._named_weights() if isinstance(weight, dict))

    @property
    def group_weight(self) -> float:
        """The weight of a rollout's standing beside the others of its prompt."""
        return weight_at(self._group, self.step)

    @property
    def highest(self) -> float | None:
        """The highest reward there can be; None where a metric has no bound that is known."""
        bests = [part.best for part in self.parts]
        high = None if self._clip is None else self._clip[1]
        if None in bests:
            return high
        terms = zip(self.parts, bests, strict=True)
        total = sum(part.of(best, self.step) for part, best in terms if best is not None)
        return _clipped(total + self.group_weight, self._clip)

    @property
    def reads_pages(self) -> bool:
        """Whether a protocol with a weight reads pages."""
        return any(getattr(one, "pages", False) for one in self.protocols if one.name in self.needed)

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

        It is None if any metric is missing for a reason that the rollout did not choose (`Part.value`). A report that
        is empty, oversized or without an end gets the lowest reward that the formula can give: all metrics at their
        worst, and all penalties in full.
        """
        total, reason = 0.0, None
        for part, share in self._due(cards):
            found = part.value(cards[part.protocol])
            if found.value is None:
                return found
            total += share * part.of(found.value, self.step)
            reason = reason or found.reason
        least = any(cards[name].reason in LEAST for name in self.needed)
        if group is not None and self.group_weight and not least:
            if group.value is None:
                return Value(None, group.reason)
            total += self.group_weight * group.value
        total -= sum(
            weight * (1.0 if least else flags.get(name, 0.0)) for name, weight in self._penalties.items()
        )
        return Value(_clipped(total, self._clip), reason)

    def _due(self, cards: Mapping[str, Scorecard]) -> list[tuple[Part, float]]:
        """The parts that are due on the task of `cards`, and the factor by which their weight grows for the others."""
        due = [
            part
            for part in self.parts
            if not (part.shares and _lacks_gold(cards[part.protocol], part.metric))
        ]
        every, left = (Counter(part.protocol for part in parts) for parts in (self.parts, due))
        return [
            (part, every[part.protocol] / (left[part.protocol] or every[part.protocol]))
            for part in self.parts
            if part in due or not left[part.protocol]
        ]


def _lacks_gold(card: Scorecard, metric: str) -> bool:
    """Whether the task has no gold for `metric`; the card of a report that was not judged does not even name it."""
    return card.scores.get(metric) is None and card.reasons.get(metric, "gold_missing") == "gold_missing"


def _asked(
    protocols: Sequence[ScoringProtocol], needed: Collection[str], always: Sequence[str]
) -> tuple[ScoringProtocol, ...]:
    """The protocols that the reward needs, and those that are asked all the same."""
    unknown = set(always) - {protocol.name for protocol in protocols}
    if unknown:
        near = nearest(min(unknown), (protocol.name for protocol in protocols))
        raise FormulaError(f"reward: always: unknown protocol {min(unknown)!r}; {near}")
    return tuple(protocol for protocol in protocols if protocol.name in (*needed, *always))


def _check_group(group: GroupConfig) -> None:
    weights = tuple(group.weight.values()) if isinstance(group.weight, dict) else (group.weight,)
    if not all(isfinite(weight) and weight >= 0 for weight in weights) or not any(weights):
        raise FormulaError(f"reward: group: weight: {group.weight} must be a finite number above 0")


def _weights(config: RewardConfig, protocols: Sequence[ScoringProtocol]) -> list[tuple[str, Term]]:
    if config.metric is not None:
        return [(config.metric, Term())]
    if not config.weights:
        return [
            (Name(protocol.name, metric.name).full, Term(weight=1.0 / len(ranked)))
            for protocol in protocols
            for ranked in [headlines(protocol.metrics)]
            for metric in ranked
        ]
    return [
        (name, weight if isinstance(weight, Term) else Term(weight=weight))
        for name, weight in config.weights.items()
    ]


def _part(name: str, term: Term, config: RewardConfig, protocols: Sequence[ScoringProtocol]) -> Part:
    key = "weights" if config.metric is None else "metric"
    protocol, wanted = _found(name, protocols, f"reward: {key}")
    metrics = {metric.name: metric for one in protocols if one.name == protocol for metric in one.metrics}
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
    least = next((getattr(one, "min_answered", 1.0) for one in protocols if one.name == protocol), 1.0)
    if metric is None:
        return Part(protocol, wanted, term, None, least=least)
    by_default = config.metric is None and not config.weights
    return Part(
        protocol,
        wanted,
        term,
        metric.worst,
        shares=by_default and bool(metric.gold),
        least=least,
        lower_is_better=metric.lower_is_better,
        best=metric.best,
    )


def _found(said: str, protocols: Sequence[ScoringProtocol], where: str) -> Name:
    """The metric that `said` at `where` means; one that only tasks define has a colon (`tag:NAME`)."""
    known = names_in({protocol.name: protocol.metrics for protocol in protocols})
    of_tasks = [
        Name(protocol.name, said.removeprefix(f"{protocol.name}."))
        for protocol in protocols
        if isinstance(protocol, CaseMetrics) and ":" in said
    ]
    declared = any(said in (name.full, name.metric) for name in known)
    return named(said, known if declared else [*of_tasks, *known], where, FormulaError)


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
