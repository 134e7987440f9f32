"""What ends a run early, and what its cost is reckoned by: `until_resolved:` and `prices:` of a configuration."""

from typing import Annotated

import msgspec

from adjudge.engine.config.errors import ConfigError
from adjudge.engine.config.numbers import NotNegative, Positive

__all__ = ["Price", "StopConfig"]


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A judge's speed and price, for `plan`: tokens per second, and cost per million tokens."""

    prompt_tokens_per_second: Positive | None = None
    """Speed of the judge at reading prompts."""
    completion_tokens_per_second: Positive | None = None
    """Speed of the judge at writing answers."""
    cost_per_million_prompt_tokens: NotNegative = 0.0
    """In any currency; all prices in the same one."""
    cost_per_million_completion_tokens: NotNegative = 0.0
    """In the same currency."""


class StopConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a run may stop early: once `pairs` of systems (none named: all) are resolved by `metric`.

    A string in the file is short for this mapping: METRIC or METRIC:A,B.
    """

    metric: str
    """What systems are compared by, such as `race.overall`."""
    pairs: list[tuple[str, str]] = []
    """The pairs of systems that must be resolved; none named: all."""
    error_rate: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.05
    """The chance of any wrong order among all pairs together."""

    @classmethod
    def from_spec(cls, spec: str) -> "StopConfig":
        """`METRIC`, for all pairs of systems, or `METRIC:A,B`. Raises ConfigError."""
        metric, colon, pair = spec.partition(":")
        names = tuple(pair.split(",")) if colon else ()
        if not metric or not all(names) or len(names) not in (0, 2):
            raise ConfigError(
                f"until_resolved: invalid comparison {spec!r}; write METRIC or METRIC:A,B, or for more pairs a mapping "
                "of metric:, pairs: and error_rate:"
            )
        return cls(metric=metric, pairs=[(names[0], names[1])] if names else [])
