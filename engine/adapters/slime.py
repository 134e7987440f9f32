"""slime: a custom reward function; the remote form is `/reward` of `adjudge serve`.

    --custom-rm-path adjudge.engine.adapters.slime.reward            with ADJUDGE_REWARDS set
    --rm-type remote_rm --rm-url http://127.0.0.1:8300/reward

slime does not support missing rewards: a failed one raises at once. If ADJUDGE_ON_FAILURE is a number, or `group_mean`
with --group-rm, that is the reward, and the sample is left out of the loss (`remove_sample`). Metrics and reasons are
in `metadata["adjudge"]` of the sample, where slime's rollout dumps and log functions see them.
"""

from collections.abc import Sequence
from enum import Enum
from functools import cache
from typing import Any, Protocol

import msgspec

from adjudge.engine.adapters.source import Turns, numbers, open_source, rollout, seconds, step_among
from adjudge.engine.rewards.reward import Item, Reward, labelled
from adjudge.engine.rewards.tokens import masked

__all__ = ["Sample", "reward"]

_UNFINISHED = frozenset({"truncated", "aborted", "failed"})
"""The states of samples that are no finished reports."""


class Sample(Protocol):
    """The fields of slime's samples that are read, and those that are written: `metadata` and `remove_sample`."""

    prompt: Turns
    response: str
    label: str | None
    metadata: dict[str, Any] | None
    status: Enum
    tokens: list[int]
    loss_mask: list[int] | None
    weight_versions: list[str]
    remove_sample: bool


async def reward(args: object, sample: Sample | Sequence[Sample], **kwargs: object) -> float | list[float]:
    """The reward of a sample, or those of a list of samples.

    What it is judged by is in a sample's metadata (`task_id`, `rubrics` and the like), else in its label; else the
    prompt finds the task. Raises RewardError.
    """
    samples = list(sample) if isinstance(sample, Sequence) else [sample]
    step = step_among(*(version for each in samples for version in each.weight_versions))
    items = [_item(args, each) for each in samples]
    rewards = await open_source(None).score(items, deadline=seconds(None), step=step)
    values = numbers(items, rewards)
    for each, found in zip(samples, rewards, strict=True):
        _note(each, found)
    return values if isinstance(sample, Sequence) else values[0]


def _item(args: object, sample: Sample) -> Item:
    row = {**labelled(sample.label), **(sample.metadata or {})}
    truncated = sample.status.value in _UNFINISHED
    mask = getattr(sample, "loss_mask", None) or ()
    checkpoint = getattr(args, "hf_checkpoint", None)
    if not checkpoint or not 0 < sum(mask) < len(mask):  # all is the policy's, or nothing says what is
        return rollout(sample.response, prompt=sample.prompt, row=row, truncated=truncated)
    text, spans = masked(sample.tokens[-len(mask) :], mask, _tokenizer(checkpoint).decode)
    return {**rollout(text, prompt=sample.prompt, row=row, truncated=truncated), "mask": spans}


@cache
def _tokenizer(checkpoint: str) -> Any:
    """The policy's tokenizer, as slime loads it."""
    from transformers import AutoTokenizer  # type: ignore[import-not-found]

    return AutoTokenizer.from_pretrained(checkpoint, trust_remote_code=True)


def _note(sample: Sample, found: Reward) -> None:
    """Give `sample` its metrics; one without a reward is left out of the loss."""
    told = {"reason": found.reason, **found.scores, "parts": msgspec.to_builtins(found.parts)}
    sample.metadata = {**(sample.metadata or {}), "adjudge": told}
    sample.remove_sample = sample.remove_sample or found.value is None
