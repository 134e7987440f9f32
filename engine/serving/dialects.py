"""The ways trainers ask for rewards over HTTP: our own, OpenRLHF's, slime's and NeMo-Gym's, as typed messages.

A dialect turns a request's body into rollouts, and their rewards into a reply. Bodies are untrusted: each is decoded by
type, and one that does not fit is a `BadRequest`. The server's OpenAPI document is made from the same messages.
"""

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta

from adjudge.engine.config.reward import Step
from adjudge.engine.formats.messages import Conversation, Message, Pages
from adjudge.engine.rewards.reward import (
    Reward,
    RewardError,
    RewardItem,
    as_items,
    brought,
    fault,
    labelled,
    response_in,
    task_name,
)
from adjudge.judges.plural import listed, plural
from adjudge.scoring.contract.reasons import TRANSIENT

B = TypeVar("B", bound=msgspec.Struct)

MAX_DEADLINE_S = 3600


class BadRequest(ValueError):
    """A body that is not a valid request of its dialect."""


class NoReward(RuntimeError):
    """A failed reward in a dialect that cannot express one; the message is the reason."""


class Rollouts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`deadline_s` bounds the call in seconds; lower `priority` goes first; `step` is the trainer's."""

    items: list[RewardItem]
    deadline_s: Annotated[float, Meta(gt=0, le=MAX_DEADLINE_S)] | None = None
    priority: Annotated[int, Meta(ge=-1000, le=1000)] = 0
    step: Step | None = None


class Rewards(msgspec.Struct, frozen=True):
    """One reward per item, in the order of the request."""

    rewards: list[Reward]


class RemoteQuery(msgspec.Struct, frozen=True):
    """OpenRLHF: prompts followed by responses, the prompts alone, and the labels of the data set (`labelled`)."""

    query: list[str]
    prompts: list[str] = []
    labels: list[Any] = []


class RemoteRewards(msgspec.Struct, frozen=True):
    """OpenRLHF: rewards, the same values as scores, and logs of which failed and, for null ones, why."""

    rewards: list[float | None]
    scores: list[float | None]
    extra_logs: dict[str, list[Any]]


class Sample(msgspec.Struct, frozen=True):
    """Slime: a prompt, the policy's response, and the label of the data set (`labelled`)."""

    prompt: Conversation
    response: str
    label: Any = None


class CreateParams(msgspec.Struct, frozen=True):
    """NeMo-Gym: the policy's prompt."""

    input: Conversation = ""


class Response(msgspec.Struct, frozen=True):
    """NeMo-Gym: the policy's answer, in the shape of the Responses API."""

    output: tuple[Message, ...]
    status: str | None = None


class Brought(msgspec.Struct, frozen=True, kw_only=True):
    """NeMo-Gym: what a row, or its metadata, says of its task and of what it is judged by."""

    task_id: str | int | float | None = None
    gold: Any = None
    rubrics: Any = None
    rubric: Any = None
    ground_truth: Any = None
    pages: Pages | None = None
    language: str | None = None


class Verification(Brought, frozen=True, kw_only=True):
    """NeMo-Gym: a row's request and the policy's response. Everything else in the row is returned unchanged."""

    response: Response
    responses_create_params: CreateParams = CreateParams()
    verifier_metadata: Brought | None = None


class Verified(msgspec.Struct, frozen=True):
    """NeMo-Gym: the request, and its reward."""

    reward: float


class Call(msgspec.Struct, frozen=True):
    """A request in any dialect: rollouts, a deadline in seconds and the trainer's step if it has them, a priority."""

    items: list[RewardItem]
    deadline_s: float | None = None
    priority: int = 0
    step: int | None = None


class Dialect(msgspec.Struct, Generic[B], frozen=True, kw_only=True):
    """One endpoint. `call` raises BadRequest, `reply` NoReward.

    `reply` gets the raw body, the rewards, and their values with whatever stands in for those that failed.
    """

    path: str
    summary: str
    body: type[B]
    answer: Any
    call: Callable[[B], Call]
    reply: Callable[[bytes, Sequence[Reward], Sequence[float | None]], Any]

    def read(self, raw: bytes) -> Call:
        """The call in a body. Raises BadRequest."""
        try:
            text = raw.decode()  # all of it, as replies repeat what the type leaves out
            call = self.call(msgspec.json.decode(text, type=self.body))
            as_items(call.items)
        except UnicodeDecodeError as error:
            raise BadRequest(f"the body is not in UTF-8, at byte {error.start + 1}") from error
        except msgspec.ValidationError as error:
            raise BadRequest(fault(error, {"": self.body, "items": RewardItem})) from error
        except msgspec.DecodeError as error:
            needed = listed(
                [field.encode_name for field in msgspec.structs.fields(self.body) if field.required]
            )
            raise BadRequest(f"the body is not JSON ({error}); send an object with {needed}") from error
        except RewardError as error:
            raise BadRequest(str(error)) from error
        except RecursionError as error:
            raise BadRequest("nested too deep") from error
        return call


def _remote(body: RemoteQuery) -> Call:
    count = len(body.query)
    if len(body.prompts) not in (0, count) or len(body.labels) not in (0, count):
        raise BadRequest(
            f"{plural(count, 'query', 'queries')} with {plural(len(body.prompts), 'prompt')} and "
            f"{plural(len(body.labels), 'label')}"
        )
    prompts: list[str | None] = [*body.prompts] or [None] * count
    labels = body.labels or [None] * count
    return Call(
        [
            RewardItem(text=response_in(query, prompt or ""), prompt=prompt, **labelled(label))
            for query, prompt, label in zip(body.query, prompts, labels, strict=True)
        ]
    )


def _remote_rewards(raw: bytes, rewards: Sequence[Reward], values: Sequence[float | None]) -> RemoteRewards:
    """Null and the reason for a failed reward; the trainer turns logs into tensors, so no text unless one is null."""
    failed = [reward.value is None for reward in rewards]
    logs: dict[str, list[Any]] = {"failed": [int(each) for each in failed]}
    if None in values:
        logs["reason"] = [reward.reason if reward.value is None else None for reward in rewards]
    return RemoteRewards(list(values), list(values), logs)


def _remote_reward(raw: bytes, rewards: Sequence[Reward], values: Sequence[float | None]) -> float | None:
    """slime: a number; null for what fails again however often it is asked for, since slime tries ten times."""
    if values[0] is None and rewards[0].reason in TRANSIENT:
        raise NoReward(rewards[0].reason)
    return values[0]


def verification_item(body: Verification) -> RewardItem:
    """The rollout in a NeMo-Gym request: its output items; the task by `task_id` or by the last user message."""
    metadata = (
        {} if body.verifier_metadata is None else brought(msgspec.structs.asdict(body.verifier_metadata))
    )
    row = {**metadata, **brought(msgspec.structs.asdict(body))}
    return RewardItem(
        messages=body.response.output,
        truncated=body.response.status == "incomplete",
        prompt=body.responses_create_params.input,
        **{**row, "task_id": task_name(row.get("task_id"))},
    )


def verified(reward: Reward, value: float | None) -> dict[str, Any]:
    """NeMo-Gym's fields for `reward`; a `value` in place of a failed one is masked. Raises NoReward."""
    if value is None:
        raise NoReward(reward.reason or "no reward")
    found: dict[str, Any] = {"reward": value}
    if reward.value is None:
        found |= {"mask_sample": True, "failure_kind": "adjudge:no_reward", "failure_reason": reward.reason}
    return found


def _verified(raw: bytes, rewards: Sequence[Reward], values: Sequence[float | None]) -> dict[str, Any]:
    return {**msgspec.json.decode(raw, type=dict[str, msgspec.Raw]), **verified(rewards[0], values[0])}


DIALECTS: tuple[Dialect[Any], ...] = (
    Dialect(
        path="/v1/rewards",
        summary="Rewards of rollouts; null with a reason for one that failed.",
        body=Rollouts,
        answer=Rewards,
        call=lambda body: Call(body.items, body.deadline_s, body.priority, body.step),
        reply=lambda raw, rewards, values: Rewards(list(rewards)),
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
        summary="slime's remote reward model: the reply is the reward, null for one that cannot be had.",
        body=Sample,
        answer=float | None,
        call=lambda body: Call([RewardItem(text=body.response, prompt=body.prompt, **labelled(body.label))]),
        reply=_remote_reward,
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


REFUSALS = {
    "400": "The body is not a valid request.",
    "401": "The bearer token is missing or wrong.",
    "403": "The Origin header is that of another site.",
    "408": "The body did not arrive in time.",
    "413": "The body, or the number of its items, is over the limit.",
    "415": "The body is compressed, which is not supported.",
    "421": "The Host header is not a name of this machine, and no token is set.",
    "429": "The server is at its limits; Retry-After says when to try again.",
    "503": "The reward failed and this dialect cannot express that, or the server is stopping.",
}


class Failure(msgspec.Struct, frozen=True):
    """The body of a refusal."""

    error: str


def openapi(authorised: bool) -> dict[str, Any]:
    """The OpenAPI 3.1 document; `authorised` says whether requests need the token."""
    messages = [kind for dialect in DIALECTS for kind in (dialect.body, dialect.answer)]
    schemas, parts = msgspec.json.schema_components(
        [*messages, Failure], ref_template="#/components/schemas/{name}"
    )
    bodies, answers, failure = schemas[:-1:2], schemas[1:-1:2], schemas[-1]
    paths: dict[str, Any] = {
        dialect.path: {"post": _post(dialect, body, answer, failure, authorised)}
        for dialect, body, answer in zip(DIALECTS, bodies, answers, strict=True)
    }
    paths["/healthz"] = {"get": _get("Whether the process is alive.", "text/plain")}
    paths["/readyz"] = {"get": _get("Whether it accepts rollouts.", "text/plain", {"503": "Not ready."})}
    refusal = {"401": REFUSALS["401"]} if authorised else {}
    paths["/metrics"] = {"get": _get("Counters for Prometheus.", "text/plain", refusal, authorised)}
    paths["/openapi.json"] = {"get": _get("This document.", "application/json")}
    components: dict[str, Any] = {"schemas": parts}
    if authorised:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "adjudge rewards", "version": version("adjudge")},
        "paths": paths,
        "components": components,
    }


def _post(dialect: Dialect[Any], body: Any, answer: Any, failure: Any, authorised: bool) -> dict[str, Any]:
    responses = {
        status: {"description": why, "content": {"application/json": {"schema": failure}}}
        for status, why in REFUSALS.items()
        if authorised or status != "401"
    }
    responses["429"]["headers"] = {"Retry-After": {"schema": {"type": "integer", "minimum": 1}}}
    responses["200"] = {"description": "Done.", "content": {"application/json": {"schema": answer}}}
    made: dict[str, Any] = {
        "summary": dialect.summary,
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": dict(sorted(responses.items())),
    }
    return {**made, "security": [{"token": []}]} if authorised else made


def _get(
    summary: str, content: str, refusals: dict[str, str] | None = None, authorised: bool = False
) -> dict[str, Any]:
    kind = {"type": "object"} if content.endswith("json") else {"type": "string"}
    responses = {status: {"description": why} for status, why in (refusals or {}).items()}
    done = {"200": {"description": "Done.", "content": {content: {"schema": kind}}}}
    made: dict[str, Any] = {"summary": summary, "responses": {**done, **responses}}
    return {**made, "security": [{"token": []}]} if authorised else made
