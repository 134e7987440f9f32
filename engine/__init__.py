"""Runs evaluations and rewards: command line, configuration, formats, store, leaderboard, reward server."""

from adjudge.engine.config import ConfigError, RunConfig
from adjudge.engine.rewards import Reward, RewardError, RewardItem, RewardModel
from adjudge.engine.run import RunResult, evaluate, evaluate_async

__all__ = [
    "ConfigError",
    "Reward",
    "RewardError",
    "RewardItem",
    "RewardModel",
    "RunConfig",
    "RunResult",
    "evaluate",
    "evaluate_async",
]
