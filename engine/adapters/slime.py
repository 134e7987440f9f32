"""slime: a custom reward function; the remote form is `/reward` of `adjudge serve`.

    --custom-rm-path adjudge.engine.adapters.slime.reward            with ADJUDGE_REWARDS set
    --rm-type remote_rm --rm-url http://127.0.0.1:8300/reward

slime does not support missing rewards: a failed one raises.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from adjudge.engine.adapters.source import number, open_source
from adjudge.engine.adapters.turns import Turns, text_in
from adjudge.engine.rewards.reward import RewardItem
from adjudge.engine.serving.conversation import task_name

__all__ = ["Sample", "reward"]


class Sample(Protocol):
    """The fields of slime's samples that are read."""

    prompt: Turns
    response: str
    label: str | None
    metadata: Mapping[str, Any] | None


async def reward(args: object, sample: Sample | Sequence[Sample], **kwargs: object) -> float | list[float]:
    """The reward of a sample, or those of a list of samples.

    The task's id is `task_id` in a sample's metadata, else its label; else the prompt finds it. Raises RewardError.
    """
    samples = list(sample) if isinstance(sample, Sequence) else [sample]
    values = [number(found) for found in await open_source(None).score([_item(each) for each in samples])]
    return values if isinstance(sample, Sequence) else values[0]


def _item(sample: Sample) -> RewardItem:
    named = (sample.metadata or {}).get("task_id", sample.label)
    return RewardItem(text=sample.response, prompt=text_in(sample.prompt, "user"), task_id=task_name(named))
