"""`RewardModel`: rewards from an engine in this process."""

import os
from collections.abc import Mapping
from typing import Any

from adjudge.engine.config.run import RunConfig
from adjudge.engine.rewards.reward import Reward, RewardError, RewardItem
from adjudge.engine.rewards.scorer import open_rewards
from adjudge.engine.rewards.source import RewardSource

__all__ = ["Reward", "RewardError", "RewardItem", "RewardModel"]


class RewardModel(RewardSource):
    """Scores rollouts by the section `reward:` of a configuration, a mapping or the file at a path. Raises UsageError.

    The first call opens judge, fetcher and store; `close` writes what is not yet stored. Picklable: a copy opens an
    engine of its own.
    """

    def __init__(self, config: RunConfig | Mapping[str, Any] | str | os.PathLike[str]) -> None:
        self.config = _config(config)
        self.config.check_reward()
        reward = self.config.reward_config()
        super().__init__(
            "adjudge rewards", lambda: open_rewards(self.config), reward.deadline_s, reward.outage
        )

    def __reduce__(self) -> tuple[type["RewardModel"], tuple[RunConfig]]:
        """Only the configuration travels."""
        return RewardModel, (self.config,)


def _config(given: RunConfig | Mapping[str, Any] | str | os.PathLike[str]) -> RunConfig:
    if isinstance(given, RunConfig):
        return given
    return RunConfig.of(given) if isinstance(given, Mapping) else RunConfig.load(given)
