"""What a reward is made of, as the section `reward:` of a configuration says it."""

import sys
from typing import Annotated, Any, Literal

import msgspec

from adjudge.engine.config.numbers import Count, Positive

__all__ = [
    "AuditConfig",
    "CanaryConfig",
    "Constant",
    "Length",
    "OnFailure",
    "Penalties",
    "RewardConfig",
    "Term",
]

LARGEST = sys.float_info.max  # a bound that keeps out infinity and NaN
Finite = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Penalty = Annotated[float, msgspec.Meta(ge=0, le=LARGEST)]
Bounds = tuple[float, float]


class Term(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A metric's part of the reward: `weight` x value, once it is rescaled ([low, high] to [0, 1]), then clipped."""

    weight: float = 1.0
    rescale: Bounds | None = None
    clip: Bounds | None = None


class Penalties(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is taken off for each flag at its most, 1 (see `engine/rewards/flags.py`)."""

    injection: Penalty = 0.0
    duplicate_citations: Penalty = 0.0
    citation_stuffing: Penalty = 0.0
    length: Penalty = 0.0


class Length(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Characters: `free` cost nothing, `max` the whole length penalty; a report beyond `max` takes the minimum."""

    free: Annotated[int, msgspec.Meta(ge=0)] = 0
    max: Count = 1_000_000


class CanaryConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fixed reports (`file`, JSON Lines of items with their known `value`) that are judged anew every `every_s`."""

    file: str
    every_s: Positive = 600.0


class AuditConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `share` of rollouts that a second judge (a SPEC) scores again, never more than `waiting` of them behind."""

    judge: str
    share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.05
    waiting: Count = 64


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `adjudge serve` takes on; whoever comes while it is at its limit gets 429.

    - `items` rollouts are being scored when nothing more is admitted. The time that one waits behind others is what
      they take: twice the rollouts that the judge has room for at once is a good choice where many single ones come.
    - `batch` rollouts are in one request, `body_bytes` bytes, which come within `body_s` seconds.
    - `bytes` are held by all requests together.
    """

    items: Count = 2048
    batch: Count = 4096
    body_bytes: Count = 64 << 20
    bytes: Count = 512 << 20
    body_s: Positive = 20.0


class Constant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The value that stands for a failure where nothing else can."""

    constant: Finite


OnFailure = Literal["none", "raise"] | Constant


class RewardConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reward: the weighted sum of metrics, less penalties, clipped.

    - `protocols` judge a rollout; without any, the run's own.
    - `weights` name a metric, or `protocol.metric` where two protocols share a name; `metric` is short for a single one
      of weight 1. Without either, the protocols' headline metrics have weight 1 each.
    - `strict`: a metric that has a form `NAME_strict` is taken in that form, in which what the report is to blame for
      counts against it. Only with `strict: false` a name means the published metric.
    - `deadline_s` bounds a call that brings no deadline of its own; `on_failure` is what a caller's protocol is given
      for a reward that failed.
    - `limits` are the server's.
    - what rollouts asked and read is kept for `retention_days`, apart from what runs keep.
    """

    protocols: list[str | dict[str, Any]] = []
    metric: str | None = None
    weights: dict[str, float | Term] = {}
    strict: bool = True
    clip: Bounds | None = None
    penalties: Penalties = Penalties()
    length: Length = Length()
    deadline_s: Positive = 30.0
    on_failure: OnFailure = "none"
    retention_days: Positive = 7.0
    limits: ServerLimits = ServerLimits()
    canary: CanaryConfig | None = None
    audit: AuditConfig | None = None
