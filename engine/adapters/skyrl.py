"""SkyRL: an environment of one turn, whose reward is the report's.

    from skyrl_gym.envs import register
    register(id="adjudge", entry_point="adjudge.engine.adapters.skyrl:ReportEnv")

with ADJUDGE_REWARDS set, and `env_class: adjudge` in the rows. SkyRL has no missing rewards: a failed one raises, but
for ADJUDGE_ON_FAILURE with a number. An environment of several turns calls `reward` at its end.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from skyrl_gym.envs.base_text_env import (  # type: ignore[import-not-found]
    BaseTextEnv,
    BaseTextEnvStepOutput,
)

from adjudge.engine.adapters.source import Turns, number, open_source, rollout, seconds
from adjudge.engine.rewards.reward import Reward, labelled

__all__ = ["ReportEnv", "reward"]


def reward(said: Turns, prompt: Turns | None, extras: Mapping[str, Any]) -> Reward:
    """The reward of what a policy said, a text or a conversation.

    What it is judged by is in the row (`extras`): by name, in `extra_info`, or as the ground truth of `reward_spec`.
    """
    truth = (extras.get("reward_spec") or {}).get("ground_truth")
    row = {**labelled(truth), **(extras.get("extra_info") or {}), **extras}
    (found,) = open_source(None).score_sync([rollout(said, prompt=prompt, row=row)], deadline=seconds(None))
    return found


class ReportEnv(BaseTextEnv):  # type: ignore[misc]
    """A prompt, a report, its reward; metrics and the reason of a failure are in the step's metadata."""

    def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self._extras = extras or {}
        self._prompt: Turns | None = None
        self._scores: dict[str, float] = {}

    def init(self, prompt: Turns) -> tuple[Turns, dict[str, Any]]:
        """Keep the prompt, by which the task may be found."""
        self._prompt = prompt
        return prompt, {}

    def step(self, action: str) -> Any:
        """The reward of the report `action`. Raises RewardError for a failed one."""
        found = reward(action, self._prompt, self._extras)
        self._scores = {name: value for name, value in found.scores.items() if value is not None}
        told = {"reason": found.reason, "parts": msgspec.to_builtins(found.parts)}
        return BaseTextEnvStepOutput(
            observations=[], reward=number(found), done=True, metadata={"adjudge": told}
        )

    def get_metrics(self) -> dict[str, Any]:
        """The metrics and flags of the report."""
        return self._scores
