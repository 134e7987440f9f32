"""The values: a rollout to score, and its reward, which is a number, or None with the reason."""

import operator
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from adjudge.engine.config.reward import OnFailure, Step
from adjudge.engine.rewards.conversation import Conversation, Message, Pages, asked_in, task_name
from adjudge.judges import Status, Usage
from adjudge.scoring.contract.case import Citation
from adjudge.scoring.contract.reasons import Reason

__all__ = ["Item", "Part", "Reward", "RewardError", "RewardItem", "as_items", "as_step", "settled"]


class RewardError(RuntimeError):
    """A failed reward, where the caller wants an exception; an item that is not a rollout; or a refused request."""


class RewardItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A rollout: what it says, and what it is judged by. `sample` numbers the rollouts of one task.

    - `text`, or the `messages` of a conversation; what counts of either is decided in `engine/rewards/report.py`.
      `truncated` says that the trainer cut it off.
    - Its task, by `task_id` or by exact `prompt`. What it carries itself goes before the task's: `gold` by protocol,
      `rubrics`, `language`; each as an object or as JSON text (`engine/rewards/gold.py`).
    - `citations`, `answer` and `trace` as in a file of reports; `pages` are what it has read: nobody else sees them,
      and they are not fetched.
    """

    text: str | None = None
    messages: tuple[Message, ...] | None = None
    truncated: bool = False
    task_id: str | int | float | None = None
    prompt: Conversation | None = None
    sample: int = 0
    language: str | None = None
    gold: Any = None
    rubrics: Any = None
    citations: tuple[Citation, ...] = ()
    pages: Pages = ()
    answer: Any = None
    trace: Any = None

    @property
    def said(self) -> Conversation:
        """What the rollout says, as it was given."""
        return self.text if self.messages is None else self.messages  # type: ignore[return-value]

    @property
    def asked(self) -> str | None:
        """The prompt's text: of messages, the last of the user's."""
        return None if self.prompt is None else asked_in(self.prompt)

    @property
    def named(self) -> str | None:
        """The id of the task, as a text."""
        return task_name(self.task_id)

    @property
    def has_gold(self) -> bool:
        """Whether the rollout carries what it is judged by."""
        return self.gold is not None or self.rubrics is not None


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a protocol judged: a criterion by its `id`, what it got, or why it has no value."""

    protocol: str
    id: str
    value: float | None = None
    reason: str = ""


class Reward(msgspec.Struct, frozen=True, kw_only=True):
    """A rollout's reward: `value`, or None if anything it needs is missing for a cause other than the rollout.

    `reason` says why there is no value, or which fault of the rollout the value counts. `scores` holds the metrics (as
    `protocol.metric` where two protocols share a name), the flags, how it stands in its group, and the step with its
    weights, the same keys for every rollout of a task;
    `parts` the points of each criterion. `n_asked` questions were asked, `n_answered` of them answered; `usage` is what
    they took of the judge, counted in full for every rollout that shares an answer.
    """

    value: float | None
    status: Status
    reason: Reason | None = None
    scores: dict[str, float | None] = {}
    parts: tuple[Part, ...] = ()
    n_asked: int = 0
    n_answered: int = 0
    usage: Usage = Usage()


Item = RewardItem | Mapping[str, Any]


def as_items(items: Iterable[Item]) -> list[RewardItem]:
    """`items` as structs. Raises RewardError for an item that is not a rollout, or that does not name its task."""
    return [_item(place, item) for place, item in enumerate(items)]


def as_step(step: int | None) -> int | None:
    """Check the trainer's step, a whole number from 0. Raises RewardError for anything else."""
    if step is None:
        return None
    try:
        return msgspec.convert(operator.index(step), Step)
    except (TypeError, msgspec.ValidationError) as error:
        raise RewardError(f"step: {step!r} is invalid; pass a whole number from 0") from error


def _item(place: int, item: Item) -> RewardItem:
    try:
        found = item if isinstance(item, RewardItem) else msgspec.convert(item, RewardItem)
    except msgspec.ValidationError as error:
        raise RewardError(f"item {place}: {error}") from error
    if (found.text is None) == (found.messages is None):
        raise RewardError(f"item {place}: needs text or messages, one of them")
    try:
        msgspec.json.encode(
            (found.text, found.messages, found.prompt, found.task_id, found.pages, found.citations)
        )
    except UnicodeEncodeError:  # a lone surrogate: it cannot be sent or stored, and others travel with it
        found = _storable(found)
    if found.named is None and found.prompt is None and not found.has_gold:
        raise RewardError(f"item {place}: has neither task_id nor prompt; add one to name its task")
    return found


T = TypeVar("T")


def _storable(item: T) -> T:
    """`item` with a question mark in place of every character that UTF-8 cannot encode."""
    if isinstance(item, str):
        return item.encode("utf-8", "replace").decode()  # type: ignore[return-value]
    if isinstance(item, (tuple, list)):
        return type(item)(map(_storable, item))
    if isinstance(item, dict):
        return {_storable(name): _storable(value) for name, value in item.items()}  # type: ignore[return-value]
    if isinstance(item, msgspec.Struct):
        fields = {name: _storable(getattr(item, name)) for name in item.__struct_fields__}
        return msgspec.structs.replace(item, **fields)
    return item


def settled(reward: Reward, on_failure: OnFailure) -> float | None:
    """The value of `reward`; for a failed one None, the constant, or RewardError, as `on_failure` says."""
    if reward.value is not None or on_failure == "none":
        return reward.value
    if on_failure == "raise":
        raise RewardError(f"no reward: {reward.reason}")
    return on_failure.constant
