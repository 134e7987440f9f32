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
    """A number, or a mapping from the trainer's step to numbers."""
    rescale: Bounds | None = None
    """[low, high] becomes [0, 1] before the weight."""
    clip: Bounds | None = None
    """The ends between which the value is held, after rescaling."""


class Penalties(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is subtracted for each flag at its highest, 1 (`engine/rewards/flags.py` says what each means)."""

    injection: Penalty = 0.0
    """For a text that addresses the judge."""
    duplicate_citations: Penalty = 0.0
    """For the share of citations that repeat an earlier one."""
    citation_stuffing: Penalty = 0.0
    """For the share of citations beyond the third in one sentence."""
    length: Penalty = 0.0
    """For how far the text is from `length.free` to `length.max` characters."""


class Length(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Characters: `free` cost nothing, `max` the whole length penalty; a longer report gets the lowest reward."""

    free: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Characters that cost nothing."""
    max: Count = 1_000_000
    """Characters that cost the whole penalty; a longer report gets the lowest reward."""


Tag = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,39}$")]
Marker = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class ReportRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What counts as the report of a rollout: its last assistant turn, without the blocks named here by their tags."""

    thinking: tuple[Tag, ...] = ("think", "thinking", "thought", "reasoning")
    """Tags of what the policy thinks."""
    calls: tuple[Tag, ...] = ("tool_call", "tool_calls", "call_tool", "function_call", "tool_use")
    """Tags of its calls of tools."""
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
    """Tags of what tools return; what stands before a result belongs to an earlier turn."""
    between: tuple[Marker, Marker] | None = None
    """Only what stands between these two markers, the last time they occur."""
    end: Marker | None = None
    """What a finished rollout ends with, where a trainer keeps it in the text; without it, the rollout is
    truncated."""


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


OnFailure = Literal["none", "raise"] | Constant


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
    step. Without any, each protocol's headline metric has weight 1."""
    always: list[str] = []
    """Protocols without a weight that are asked all the same; their metrics come with the reward and never withhold
    it."""
    strict: bool = True
    """Whether a metric with a form `NAME_strict` is used in that form, in which the report's own faults count against
    it."""
    clip: Bounds | None = None
    """The ends between which the reward is held."""
    penalties: Penalties = Penalties()
    """What is subtracted for each flag."""
    length: Length = Length()
    """From how many characters a report costs, and how many it may have."""
    group: GroupConfig = GroupConfig()
    """How a rollout stands beside the others of its prompt in the same call."""
    report: ReportRules = ReportRules()
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
