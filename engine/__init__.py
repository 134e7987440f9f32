"""Runs evaluations and rewards: command line, configuration, formats, store, leaderboard, reward server."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

if not TYPE_CHECKING:
    # Imported when first asked for: it takes a second, in which the command must already mind an interrupt.
    _HOMES = {
        "config": ("ConfigError", "RunConfig"),
        "rewards": ("Reward", "RewardError", "RewardItem", "RewardModel"),
        "run": ("RunResult", "evaluate", "evaluate_async"),
    }

    def __getattr__(name: str) -> object:
        for home, names in _HOMES.items():
            if name in names:
                return getattr(import_module(f"adjudge.engine.{home}"), name)
        raise AttributeError(f"module 'adjudge.engine' has no attribute {name!r}")
