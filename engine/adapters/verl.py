"""verl: `compute_score`, one call per sample, batched by the client.

    reward.custom_reward_function.path=pkg://adjudge.engine.adapters.verl
    reward.custom_reward_function.name=compute_score
    +reward.custom_reward_function.reward_kwargs.source=http://127.0.0.1:8300

verl expects the keys of the first sample in all of them, so every result has the same keys. It does not support missing
rewards, so a failed one raises, or is the number `on_failure`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.engine.adapters.source import Source, number, open_source
from adjudge.engine.rewards.reward import Reward, RewardItem
from adjudge.engine.serving.conversation import task_name

__all__ = ["compute_score", "compute_scores"]

Score = dict[str, float | int | str]


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: object,
    extra_info: Mapping[str, Any] | None = None,
    *,
    source: Source = None,
    deadline: float | None = None,
    on_failure: str | float = "raise",
    **kwargs: object,
) -> Score:
    """The reward of one sample; its task is `task_id` or `prompt` in `extra_info`, else the ground truth as its id."""
    item = _item(solution_str, ground_truth, extra_info)
    (reward,) = await open_source(source).score([item], deadline=deadline)
    return _score(reward, on_failure)


def compute_scores(
    data_sources: Sequence[str],
    solution_strs: Sequence[str],
    ground_truths: Sequence[object],
    extra_infos: Sequence[Mapping[str, Any] | None],
    *,
    source: Source = None,
    deadline: float | None = None,
    on_failure: str | float = "raise",
    **kwargs: object,
) -> list[Score]:
    """The older form, for a whole batch."""
    rows = zip(solution_strs, ground_truths, extra_infos, strict=True)
    rewards = open_source(source).score_sync([_item(*row) for row in rows], deadline=deadline)
    return [_score(reward, on_failure) for reward in rewards]


def _item(text: str, ground_truth: object, extra: Mapping[str, Any] | None) -> RewardItem:
    known = extra or {}
    prompt = known.get("prompt", known.get("question"))
    return RewardItem(
        text=text,
        task_id=task_name(known.get("task_id", ground_truth)),
        prompt=prompt if isinstance(prompt, str) else None,
    )


def _score(reward: Reward, on_failure: str | float) -> Score:
    return {
        "score": number(reward, on_failure),
        "failed": int(reward.value is None),
        "n_asked": reward.n_asked,
        "n_answered": reward.n_answered,
        "reason": reward.reason or "",
    }
