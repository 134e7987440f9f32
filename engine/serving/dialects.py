"""The ways trainers ask for rewards over HTTP: our own, OpenRLHF's, slime's and NeMo-Gym's, as typed messages.

A dialect turns a request's body into rollouts, and their rewards into a reply. Bodies are untrusted: each is decoded by
type, and what does not fit is a `BadRequest`.
"""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

from adjudge.engine.config.reward import Constant, OnFailure
from adjudge.engine.rewards.reward import Reward, RewardItem

__all__ = [
    "DIALECTS",
    "BadRequest",
    "Call",
    "Dialect",
    "Message",
    "NoReward",
    "Verification",
    "response_in",
    "text_of",
    "verification_item",
    "verified",
]

B = TypeVar("B")

MAX_DEADLINE_S = 3600
# The tokens that close a turn, read backwards: to look for them forwards takes the square of the white space.
_CLOSING = re.compile(r"\s*(?:(?:>\|[a-z_]{1,40}\|<|>s/<|>soe<|>nrut_fo_dne<)\s*)+")


class BadRequest(ValueError):
    """A body that is no request of its dialect."""


class NoReward(RuntimeError):
    """A reward that failed, in a dialect that cannot carry that; the message is the reason."""


class Message(msgspec.Struct, frozen=True):
    """A message of a conversation, or an output item of a response; other kinds of content are left out."""

    role: str = ""
    content: "str | list[Piece] | None" = None
    type: str = "message"


class Piece(msgspec.Struct, frozen=True):
    """A piece of a message's content."""

    type: str = ""
    text: str = ""


Conversation = str | list[Message]


class Rollouts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`deadline_s` bounds the call in seconds; lower `priority` goes first."""

    items: list[RewardItem]
    deadline_s: Annotated[float, Meta(gt=0, le=MAX_DEADLINE_S)] | None = None
    priority: Annotated[int, Meta(ge=-1000, le=1000)] = 0


class Rewards(msgspec.Struct, frozen=True):
    """One reward an item, in the order of the request."""

    rewards: list[Reward]


class RemoteQuery(msgspec.Struct, frozen=True):
    """OpenRLHF: prompts followed by responses, the prompts alone, and the data set's labels (here: ids of tasks)."""

    query: list[str]
    prompts: list[str] = []
    labels: list[Any] = []


class RemoteRewards(msgspec.Struct, frozen=True):
    """OpenRLHF: rewards, the same as scores, and in the logs which have failed, and why if they are null."""

    rewards: list[float | None]
    scores: list[float | None]
    extra_logs: dict[str, list[Any]]


class Sample(msgspec.Struct, frozen=True):
    """Slime: a prompt, the policy's response, and the data set's label (here: the id of a task)."""

    prompt: Conversation
    response: str
    label: Any = None


class CreateParams(msgspec.Struct, frozen=True):
    """NeMo-Gym: what the policy was asked."""

    input: Conversation = ""


class Response(msgspec.Struct, frozen=True):
    """NeMo-Gym: what the policy answered, in the shape of the Responses API."""

    output: list[Message]


class TaskNamed(msgspec.Struct, frozen=True):
    """NeMo-Gym: metadata of a row."""

    task_id: str | int | None = None


class Verification(msgspec.Struct, frozen=True):
    """NeMo-Gym: a row's request and the policy's response. Everything else of the row is given back as it came."""

    response: Response
    responses_create_params: CreateParams = CreateParams()
    task_id: str | int | None = None
    verifier_metadata: TaskNamed | None = None


class Verified(msgspec.Struct, frozen=True):
    """NeMo-Gym: the request, and its reward."""

    reward: float


class Call(msgspec.Struct, frozen=True):
    """What a request comes to: rollouts, a deadline in seconds if it has one, and a priority."""

    items: list[RewardItem]
    deadline_s: float | None = None
    priority: int = 0


class Dialect(msgspec.Struct, Generic[B], frozen=True, kw_only=True):
    """One endpoint. `call` and `reply` raise BadRequest and NoReward; `reply` is given the raw body too."""

    path: str
    summary: str
    body: type[B]
    answer: Any
    call: Callable[[B], Call]
    reply: Callable[[bytes, Sequence[Reward], OnFailure], Any]

    def read(self, raw: bytes) -> Call:
        """The call in a body. Raises BadRequest."""
        try:
            found = self.call(msgspec.json.decode(raw, type=self.body))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise BadRequest(str(error)) from error
        except RecursionError as error:
            raise BadRequest("nested too deep") from error
        for place, item in enumerate(found.items):
            if item.task_id is None and item.prompt is None:
                raise BadRequest(f"item {place}: names its task neither by task_id nor by prompt")
        return found


def text_of(conversation: Conversation, role: Literal["user", "assistant"]) -> str:
    """A text as it is; of messages, those of `role`: the last of a user's, all of an assistant's."""
    if isinstance(conversation, str):
        return conversation
    texts = [_content(message) for message in conversation if message.role == role]
    return (texts[-1] if texts else "") if role == "user" else "\n\n".join(texts)


def _content(message: Message) -> str:
    if isinstance(message.content, list):
        return "".join(
            piece.text for piece in message.content if piece.type in ("text", "output_text", "input_text")
        )
    return message.content or ""


def _label(label: object) -> str | None:
    return (
        str(label) if isinstance(label, (str, int)) and not isinstance(label, bool) and label != "" else None
    )


def response_in(query: str, prompt: str) -> str:
    """What follows `prompt` in `query`, without the tokens that close a turn."""
    start = query.find(prompt)
    return _unclosed(query[start + len(prompt) :] if start >= 0 else query)


def _unclosed(text: str) -> str:
    """`text` without the tokens that close a turn."""
    closing = _CLOSING.match(text[::-1])
    return text if closing is None else text[: len(text) - closing.end()]


def _remote(body: RemoteQuery) -> Call:
    count = len(body.query)
    if len(body.prompts) not in (0, count) or len(body.labels) not in (0, count):
        raise BadRequest(f"{count} queries with {len(body.prompts)} prompts and {len(body.labels)} labels")
    prompts: list[str | None] = [*body.prompts] or [None] * count
    labels = body.labels or [None] * count
    return Call(
        [
            RewardItem(text=response_in(query, prompt or ""), prompt=prompt, task_id=_label(label))
            for query, prompt, label in zip(body.query, prompts, labels, strict=True)
        ]
    )


def _remote_rewards(raw: bytes, rewards: Sequence[Reward], on_failure: OnFailure) -> RemoteRewards:
    """Null and the reason for a reward that failed; the trainer makes tensors of all logs, so no words without need."""
    failed = [reward.value is None for reward in rewards]
    logs: dict[str, list[Any]] = {"failed": [int(each) for each in failed]}
    constant = on_failure.constant if isinstance(on_failure, Constant) else None
    if constant is None and any(failed):
        logs["reason"] = [reward.reason if reward.value is None else None for reward in rewards]
    values = [constant if reward.value is None else reward.value for reward in rewards]
    return RemoteRewards(values, values, logs)


def _number(raw: bytes, rewards: Sequence[Reward], on_failure: OnFailure) -> float:
    (reward,) = rewards
    if reward.value is not None:
        return reward.value
    if isinstance(on_failure, Constant):
        return on_failure.constant
    raise NoReward(reward.reason or "no reward")


def verification_item(body: Verification) -> RewardItem:
    """The rollout in a NeMo-Gym request: its messages' text; the task by `task_id` or by the last user message."""
    named = body.task_id
    if named is None and body.verifier_metadata is not None:
        named = body.verifier_metadata.task_id
    answer = "\n\n".join(_content(item) for item in body.response.output if item.type == "message")
    prompt = text_of(body.responses_create_params.input, "user")
    return RewardItem(text=answer, prompt=prompt, task_id=_label(named))


def verified(rewards: Sequence[Reward], on_failure: OnFailure) -> dict[str, Any]:
    """What NeMo-Gym is told: the reward; a constant that stands for one is masked, with the reason. Raises NoReward."""
    (reward,) = rewards
    told: dict[str, Any] = {"reward": _number(b"", rewards, on_failure)}
    if reward.value is None:
        told |= {"mask_sample": True, "failure_kind": "adjudge:no_reward", "failure_reason": reward.reason}
    return told


def _verified(raw: bytes, rewards: Sequence[Reward], on_failure: OnFailure) -> dict[str, Any]:
    return {**msgspec.json.decode(raw, type=dict[str, msgspec.Raw]), **verified(rewards, on_failure)}


DIALECTS: tuple[Dialect[Any], ...] = (
    Dialect(
        path="/v1/rewards",
        summary="Rewards of rollouts; null with a reason for one that failed.",
        body=Rollouts,
        answer=Rewards,
        call=lambda body: Call(body.items, body.deadline_s, body.priority),
        reply=lambda raw, rewards, on_failure: Rewards(list(rewards)),
    ),
    Dialect(
        path="/get_reward",
        summary="OpenRLHF's remote reward model.",
        body=RemoteQuery,
        answer=RemoteRewards,
        call=_remote,
        reply=_remote_rewards,
    ),
    Dialect(
        path="/reward",
        summary="slime's remote reward model: the reply is the reward.",
        body=Sample,
        answer=float,
        call=lambda body: Call(
            [
                RewardItem(
                    text=_unclosed(body.response),
                    prompt=text_of(body.prompt, "user"),
                    task_id=_label(body.label),
                )
            ]
        ),
        reply=_number,
    ),
    Dialect(
        path="/verify",
        summary="NeMo-Gym's verifier: the request, with its reward.",
        body=Verification,
        answer=Verified,
        call=lambda body: Call([verification_item(body)]),
        reply=_verified,
    ),
)
