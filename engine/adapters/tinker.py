"""Tinker cookbook: environments of one turn whose rewards are computed for the whole group.

    ReportGroupBuilder(renderer=..., prompt="...", row={"task_id": "1"}, num_envs=8)

with ADJUDGE_REWARDS set; one call scores the group, so reports can be compared with each other. Tinker has no missing
rewards: a failed one raises, which fails the group, unless ADJUDGE_ON_FAILURE is `group_mean` or a number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tinker  # type: ignore[import-not-found]
from tinker_cookbook.renderers import get_text_content  # type: ignore[import-not-found]
from tinker_cookbook.rl.types import Env, EnvGroupBuilder, StepResult  # type: ignore[import-not-found]

from adjudge.engine.adapters.source import numbers, open_source, rollout, seconds

__all__ = ["ReportEnv", "ReportGroupBuilder"]


class ReportEnv(Env):  # type: ignore[misc]
    """A prompt and a report, which has no reward before the group's others are there."""

    def __init__(self, renderer: Any, prompt: str) -> None:
        self.said = ""
        self.is_cut = True
        self._renderer = renderer
        self._prompt = prompt

    async def initial_observation(self) -> Any:
        """The rendered prompt, and what ends a report."""
        messages = [{"role": "user", "content": self._prompt}]
        return self._renderer.build_generation_prompt(messages), self._renderer.get_stop_sequences()

    async def step(self, action: list[int], *, extra: Any = None) -> Any:
        """Keep the report; one without an end is truncated."""
        message, termination = self._renderer.parse_response(action)
        self.said, self.is_cut = get_text_content(message), not termination.is_clean
        return StepResult(
            reward=0.0,
            episode_done=True,
            next_observation=tinker.ModelInput.empty(),
            next_stop_condition=self._renderer.get_stop_sequences(),
        )


@dataclass(frozen=True)
class ReportGroupBuilder(EnvGroupBuilder):  # type: ignore[misc]
    """`num_envs` rollouts of one prompt; `row` says what they are judged by (`task_id`, `rubrics` and the like)."""

    renderer: Any
    prompt: str
    num_envs: int
    row: Mapping[str, Any] = field(default_factory=dict)

    async def make_envs(self) -> Sequence[ReportEnv]:
        """The environments of the group."""
        return [ReportEnv(self.renderer, self.prompt) for _ in range(self.num_envs)]

    async def compute_group_rewards(
        self, trajectory_group: Sequence[Any], env_group: Sequence[ReportEnv]
    ) -> list[tuple[float, dict[str, float]]]:
        """The reward and metrics of each rollout. Raises RewardError."""
        items = [
            rollout(env.said, prompt=self.prompt, row=self.row, truncated=env.is_cut) for env in env_group
        ]
        rewards = await open_source(None).score(items, deadline=seconds(None))
        return [
            (value, {name: score for name, score in found.scores.items() if score is not None})
            for value, found in zip(numbers(items, rewards), rewards, strict=True)
        ]
