"""ms-swift: an asynchronous reward function, registered as `adjudge`.

    echo 'import adjudge.engine.adapters.ms_swift' > plugins/adjudge_reward.py
    swift rlhf --rlhf_type grpo --external_plugins plugins/adjudge_reward.py --reward_funcs adjudge

with ADJUDGE_REWARDS set. The plugin is a file of yours, not this one: ms-swift puts its folder before all others that
modules are imported from, and beside this one it would find our `trl`. ms-swift sums rewards with `nansum`, which makes
0 of a missing one; so a failed reward is the mean of its prompt's others, unless ADJUDGE_ON_FAILURE says otherwise.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from swift.rewards import AsyncORM, orms  # type: ignore[import-not-found]

from adjudge.engine.adapters.source import ON_FAILURE, numbers, open_source, rollout, seconds, step_among
from adjudge.engine.rewards.reward import NAMES

__all__ = ["ReportReward"]


class ReportReward(AsyncORM):  # type: ignore[misc]
    """The rewards of completions; the rows' columns say what they are judged by, `messages` what was asked."""

    async def __call__(
        self,
        completions: Sequence[str],
        messages: Sequence[Sequence[Mapping[str, Any]]] | None = None,
        trainer_state: Any = None,
        **columns: Any,
    ) -> list[float]:
        """One number per completion. Raises RewardError where nothing can stand in for a failed reward."""
        rows = [
            {name: columns[name][place] for name in NAMES if columns.get(name) is not None}
            for place in range(len(completions))
        ]
        talks = [None] * len(completions) if messages is None else messages
        items = [
            rollout(text, prompt=None, row=row)
            if talk is None
            else rollout(list(talk), prompt=list(talk[:-1]), row=row)
            for text, talk, row in zip(completions, talks, rows, strict=True)
        ]
        step = step_among(getattr(trainer_state, "global_step", None))
        rewards = await open_source(None).score(items, deadline=seconds(None), step=step)
        return numbers(items, rewards, os.environ.get(ON_FAILURE) or "group_mean")


orms["adjudge"] = ReportReward
