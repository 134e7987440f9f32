"""The section `reward:` of a configuration: what a reward is made of, and how it is served and watched."""

import sys
from bisect import bisect_right
from typing import Annotated, Any, Literal

import msgspec

from adjudge.engine.config.numbers import Count, Positive

__all__ = [
    "LAST_STEP",
    "AuditConfig",
    "CanaryConfig",
    "Constant",
    "GroupConfig",
    "Length",
    "LogConfig",
    "OnFailure",
    "Penalties",
    "ReportRules",
    "RewardConfig",
    "Schedule",
    "Step",
    "Term",
    "Weight",
    "steps_of",
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
    rescale: Bounds | None = None
    clip: Bounds | None = None


class Penalties(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is subtracted for each flag at its highest, 1 (`engine/rewards/flags.py` says what each means)."""

    injection: Penalty = 0.0
    duplicate_citations: Penalty = 0.0
    citation_stuffing: Penalty = 0.0
    length: Penalty = 0.0


class Length(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Characters: `free` cost nothing, `max` the whole length penalty; a longer report gets the lowest reward."""

    free: Annotated[int, msgspec.Meta(ge=0)] = 0
    max: Count = 1_000_000


Tag = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,39}$")]
Marker = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class ReportRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What counts as the report of a rollout: its last assistant turn, without the blocks named here by their tags.

    - `thinking` is what the policy thinks; `calls` are its calls of tools, `results` what tools return: what stands
      before a result belongs to an earlier turn.
    - `between`: only what stands between these two markers, the last time they occur.
    - `end`: what a finished rollout ends with, where a trainer keeps it in the text; without it, it is truncated.
    """

    thinking: tuple[Tag, ...] = ("think", "thinking", "thought", "reasoning")
    calls: tuple[Tag, ...] = ("tool_call", "tool_calls", "call_tool", "function_call", "tool_use")
    results: tuple[Tag, ...] = (
        "tool_response",
        "tool_result",
        "tool_results",
        "tool_output",
        "function_response",
        "function_result",
        "function_results",
        "observation",
        "information",
    )
    between: tuple[Marker, Marker] | None = None
    end: Marker | None = None


class CanaryConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fixed reports (`file`, JSON Lines of items with their known `value`), judged again every `every_s` seconds."""

    file: str
    every_s: Positive = 600.0


class AuditConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `share` of rollouts that a second judge (a SPEC) scores too; at most `waiting` of them are queued."""

    judge: str
    share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.05
    waiting: Count = 64


class LogConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where scored rollouts are appended (`file`, JSON Lines), for `adjudge rewards replay`.

    `keep` says what of a rollout: all of it, as it came, or its report alone, without thinking, tool calls and trace;
    either with what it was judged by and with its reward. A log of `bytes` grows no more.
    """

    file: str
    keep: Literal["rollout", "report"] = "rollout"
    bytes: Count = 16 << 30


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much `adjudge serve` takes on at once.

    - `items`: while this many rollouts are being scored, further requests get 429. A rollout waits as long as those
      before it take; where many single ones come, twice what the judge has room for is a good choice.
    - `batch`, `body_bytes`, `body_s`: limits of one request: rollouts, bytes, and the seconds it may take to arrive.
    - `bytes`: the most bytes that all requests hold together; beyond that, 429.
    """

    items: Count = 2048
    batch: Count = 4096
    body_bytes: Count = 64 << 20
    bytes: Count = 512 << 20
    body_s: Positive = 20.0


class GroupConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rollouts of one prompt in one call, judged against each other: `weight` x the share of the others they beat.

    - `rank`: by the rest of the reward, without a question.
    - `pairwise`: two at a time, each with at most `comparisons` others, in both orders.
    - `listwise`: up to eight at a time, each in at most `comparisons` lists, in both orders.
    """

    kind: Literal["none", "rank", "pairwise", "listwise"] = "none"
    weight: Weight = 1.0
    comparisons: Annotated[int, msgspec.Meta(ge=2, le=64)] = 4

    @property
    def asks(self) -> bool:
        """Whether the judge compares reports."""
        return self.kind in ("pairwise", "listwise")


class Constant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The value of a failed reward, for trainers that need a number."""

    constant: Finite


OnFailure = Literal["none", "raise"] | Constant


class RewardConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reward: the weighted sum of metrics minus penalties, clipped.

    - `protocols` score a rollout; without them, the run's protocols do.
    - `weights` are by metric, or by `protocol.metric` where two protocols share a name; `metric` is short for one
      metric of weight 1. Without either, each protocol's headline metric has weight 1. A weight may be a mapping by
      the trainer's step, which every call then carries.
    - Protocols without a weight are not asked, except those in `always`, whose metrics come with the reward and never
      withhold it.
    - `on_unanswered`: what a rollout gets about which the judge gave no readable answer twice while it answered about
      other rollouts of the task: no reward, or the minimum.
    - `strict`: a metric with a form `NAME_strict` is used in that form, in which the report's own faults count
      against it. Only with `strict: false` does a name mean the published metric.
    - `group` adds how a rollout stands beside the others of its prompt in the same call.
    - `deadline_s` holds for calls without a deadline.
    - `on_failure` is what a server's caller gets for a failed reward, where its HTTP dialect has a choice.
    - `report` says what of a rollout counts as its report; one without an end gets the minimum, or with `on_truncated:
      none` no reward.
    - `limits` are those of `adjudge serve`.
    - `retention_days`: how long the judgments and pages of rollouts are kept, apart from those of runs.
    """

    protocols: list[str | dict[str, Any]] = []
    metric: str | None = None
    weights: dict[str, float | Term] = {}
    always: list[str] = []
    strict: bool = True
    clip: Bounds | None = None
    penalties: Penalties = Penalties()
    length: Length = Length()
    group: GroupConfig = GroupConfig()
    report: ReportRules = ReportRules()
    on_truncated: Literal["minimum", "none"] = "minimum"
    on_unanswered: Literal["none", "minimum"] = "none"
    deadline_s: Positive = 30.0
    on_failure: OnFailure = "none"
    retention_days: Positive = 7.0
    limits: ServerLimits = ServerLimits()
    canary: CanaryConfig | None = None
    audit: AuditConfig | None = None
    log: LogConfig | None = None
