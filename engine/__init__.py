"""Runs evaluations and rewards: command line, configuration, formats, store, leaderboard, reward server."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adjudge.engine.commands.evaluate import RunResult, evaluate, evaluate_async
    from adjudge.engine.config.errors import ConfigError
    from adjudge.engine.config.run import RunConfig
    from adjudge.engine.errors import UsageError
    from adjudge.engine.rewards.model import Reward, RewardError, RewardItem, RewardModel

__all__ = [
    "ConfigError",
    "Reward",
    "RewardError",
    "RewardItem",
    "RewardModel",
    "RunConfig",
    "RunResult",
    "UsageError",
    "evaluate",
    "evaluate_async",
]

if not TYPE_CHECKING:
    # Imported when first asked for: it takes a second, in which the command must already mind an interrupt.
    _HOMES = {
        "config.errors": ("ConfigError",),
        "config.run": ("RunConfig",),
        "errors": ("UsageError",),
        "rewards.model": ("Reward", "RewardError", "RewardItem", "RewardModel"),
        "commands.evaluate": ("RunResult", "evaluate", "evaluate_async"),
    }

    def __getattr__(name: str) -> object:
        for home, names in _HOMES.items():
            if name in names:
                return getattr(import_module(f"adjudge.engine.{home}"), name)
        raise AttributeError(f"module 'adjudge.engine' has no attribute {name!r}")
