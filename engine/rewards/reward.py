"""The values: a rollout to score, and its reward, which is a number, or None with the reason.

A rollout is what trainers hold: a text, or the messages of a conversation. It may bring its own gold and rubrics, under
the names and in the shapes that public data sets use (`engine/formats/rubric_rows.py`); JSON text is decoded.
"""

import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from adjudge.engine.config.reward import Constant, OnFailure, Step
from adjudge.engine.config.settings import mistake
from adjudge.engine.errors import nearest
from adjudge.engine.formats.messages import Conversation, GivenPage, Message, Pages, asked_in, pages_in
from adjudge.engine.formats.rubric_rows import as_criteria, read_value
from adjudge.engine.formats.usual_names import TEXT
from adjudge.judges import Status, Usage
from adjudge.scoring.contract.case import Citation
from adjudge.scoring.contract.reasons import Reason

__all__ = [
    "NAMES",
    "Item",
    "Part",
    "Reward",
    "RewardError",
    "RewardItem",
    "Spans",
    "Tokens",
    "all_settled",
    "as_items",
    "as_step",
    "brought",
    "labelled",
    "own_gold",
    "pages_of",
    "plain",
    "response_in",
    "settled",
    "task_name",
]

MAX_TOKENS = 4_000_000


Spans = Annotated[tuple[tuple[int, int], ...], msgspec.Meta(max_length=100_000)]
"""Where pieces of a text begin and end, in characters: [start, end), in order."""


class Tokens(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rollout as its policy's tokens; `mask` is 1 for those that the policy wrote, without it all are.

    `tokenizer` is a model on the Hugging Face Hub, or for callers in Python a folder.
    """

    ids: Annotated[
        tuple[Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)], ...], msgspec.Meta(max_length=MAX_TOKENS)
    ]
    mask: Annotated[tuple[Literal[0, 1], ...], msgspec.Meta(max_length=MAX_TOKENS)] = ()
    tokenizer: Annotated[str, msgspec.Meta(min_length=1, max_length=400)]


def pages_of(item: "RewardItem") -> tuple[GivenPage, ...] | None:
    """The pages that `item` brings, itself or by its tools, which then are all there are; None if it brings none."""
    given = (*pages_in(item.messages or ()), *(item.pages or ()))
    return given or item.pages


def task_name(value: object) -> str | None:
    """A data set's value as the id of a task: a nonempty text or a whole number; None for anything else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    named = isinstance(value, (str, int)) and not isinstance(value, bool) and value != ""
    return str(value) if named else None


def response_in(query: str, prompt: str) -> str:
    """The part of `query` after `prompt`."""
    start = query.find(prompt)
    return query[start + len(prompt) :] if start >= 0 else query


# Not the fields `answer` and `trace` of an item: in a data set, an answer is mostly the right one, not the rollout's.
CARRIED = ("task_id", "language", "gold", "rubrics", "citations", "pages")
NAMES = (*CARRIED, "rubric", "ground_truth")
"""The columns that are read."""
_HEAVY = ("citations", "pages")  # which a single value beside a prompt does not hold


def brought(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an item that `row` has, as objects or as JSON text.

    RaR calls the rubrics `rubric`. DR Tulu keeps them as JSON in `ground_truth`, which elsewhere is the right answer:
    it counts only if it holds rubrics.
    """
    found = {name: row[name] for name in CARRIED if row.get(name) is not None}
    if "rubrics" not in found and row.get("rubric") is not None:
        found["rubrics"] = row["rubric"]
    if not found.keys() & {"gold", "rubrics"}:
        truth = read_value(row.get("ground_truth"))
        if isinstance(truth, Mapping) and ("rubrics" in truth or "rubric" in truth):
            found["gold"] = truth
    return found


def labelled(label: object) -> dict[str, Any]:
    """The meaning of the one value beside a prompt: fields of a row, gold or rubrics, or the id of its task.

    An object with `task_id` or `gold` is a row; another object, a list, and the JSON text of either are gold.
    """
    found = read_value(label)
    if isinstance(found, Mapping) and ("task_id" in found or "gold" in found):
        return {name: value for name, value in brought(found).items() if name not in _HEAVY}
    return {"gold": found} if isinstance(found, (Mapping, list)) else {"task_id": task_name(found)}


RUBRICS = "rubrics"
INVALID = msgspec.Raw(b'"not JSON"')  # what no protocol can decode: gold_invalid


def own_gold(gold: object, rubrics: object, protocols: Sequence[str]) -> dict[str, msgspec.Raw]:
    """The gold of an item by protocol, encoded: that of `gold`, and `rubrics` as that of the protocol `rubrics`.

    `gold` that is a list is one of rubrics. What cannot be read is gold that no protocol can decode.
    """
    found = read_value(gold)
    if isinstance(found, Sequence) and not isinstance(found, str):
        found = {RUBRICS: found}
    if found is None:
        found = {}
    if not isinstance(found, Mapping):
        return dict.fromkeys((*protocols, RUBRICS), INVALID)
    given = {str(name): read_value(value) for name, value in found.items() if value is not None}
    if RUBRICS not in given and "rubric" in given:
        given[RUBRICS] = given.pop("rubric")
    if (own := read_value(rubrics)) is not None:
        given[RUBRICS] = own
    if RUBRICS in given:
        given[RUBRICS] = as_criteria(given[RUBRICS], given.get("rubrics_types"))
    return {name: _encoded(value) for name, value in given.items()}


def _encoded(value: object) -> msgspec.Raw:
    try:
        return msgspec.Raw(msgspec.json.encode(value, enc_hook=plain, order="deterministic"))
    except (TypeError, ValueError, RecursionError, OverflowError):  # what no JSON can say
        return INVALID


def plain(value: Any) -> Any:
    """An array of a data set as a list, for JSON. Raises TypeError."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


class RewardError(RuntimeError):
    """A failed reward, where the caller wants an exception; an item that is not a rollout; or a refused request."""


class RewardItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A rollout: what it says, and what it is judged by. `sample` numbers the rollouts of one task.

    - `text`, the `messages` of a conversation, or `tokens`; what counts is decided in `engine/rewards/report.py`.
      `mask` says which characters of the text the policy wrote; without it, its turns are told apart by their marks.
      `truncated` says that the trainer cut it off.
    - Its task, by `task_id` or by exact `prompt`. What it carries itself goes before the task's: `gold` by protocol,
      `rubrics`, `language`; each as an object or as JSON text (`engine/rewards/reward.py`).
    - `citations`, `answer` and `trace` as in a file of reports; `pages` are what it has read, and then
      all pages there are, even if there are none: no other rollout sees them, and nothing is fetched.
    """

    text: str | None = None
    messages: tuple[Message, ...] | None = None
    mask: Spans | None = None
    tokens: Tokens | None = None
    truncated: bool = False
    task_id: str | int | float | None = None
    prompt: Conversation | None = None
    sample: int = 0
    language: str | None = None
    gold: Any = None
    rubrics: Any = None
    citations: tuple[Citation, ...] = ()
    pages: Pages | None = None
    answer: Any = None
    trace: Any = None

    @property
    def said(self) -> Conversation:
        """The rollout's text, as given."""
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
    if isinstance(items, Mapping | str | RewardItem):
        raise RewardError('items: must be a list of rollouts; write [{"task_id": ..., "text": ...}]')
    return [_item(place, item) for place, item in enumerate(items)]


def as_step(step: int | None) -> int | None:
    """Check the trainer's step, a whole number from 0. Raises RewardError for anything else."""
    if step is None:
        return None
    try:
        return msgspec.convert(operator.index(step), Step)
    except (TypeError, msgspec.ValidationError) as error:
        raise RewardError(f"step: {step!r} is invalid; pass a whole number from 0") from error


_UNKNOWN = re.compile(r"Object contains unknown field `(.+?)`(?: - at `\$(.*)`)?", re.DOTALL)
_PLACE = re.compile(r"\[[0-9.]*\]\Z")  # in a list


def fault(error: msgspec.ValidationError, kinds: Mapping[str, type[msgspec.Struct]]) -> str:
    """What is wrong with data; of an unknown field, which of the struct's it is most like. `kinds` has structs by key.

    "" is the key of the data itself.
    """
    if (found := _UNKNOWN.fullmatch(str(error))) is None:
        return mistake(error, kinds[""], None)
    field, path = found[1], (found[2] or "").removeprefix(".")
    kind = kinds.get(_PLACE.sub("", path))
    fields = () if kind is None else kind.__struct_encode_fields__
    near = (
        "; use 'text'"
        if field in TEXT and "text" in fields
        else f"; {nearest(field, fields)}"
        if fields
        else ""
    )
    return f"unknown field {field!r}{f' in {path}' if path else ''}{near}"


def _item(place: int, item: Item) -> RewardItem:
    try:
        found = item if isinstance(item, RewardItem) else msgspec.convert(item, RewardItem)
    except msgspec.ValidationError as error:
        raise RewardError(f"item {place}: {fault(error, {'': RewardItem})}") from error
    if sum(said is not None for said in (found.text, found.messages, found.tokens)) != 1:
        raise RewardError(f"item {place}: needs text, messages or tokens, one of them")
    for number, message in enumerate(found.messages or ()):
        if message.lack:
            raise RewardError(f"item {place}: messages[{number}]: {message.lack}")
    if found.tokens is not None and len(found.tokens.mask) not in (0, len(found.tokens.ids)):
        raise RewardError(
            f"item {place}: tokens: {len(found.tokens.ids):,} ids with a mask of {len(found.tokens.mask):,}"
        )
    if found.mask is not None:
        _check_mask(place, found.text, found.mask)
    try:
        msgspec.json.encode(
            (found.text, found.messages, found.prompt, found.task_id, found.pages, found.citations)
        )
    except UnicodeEncodeError:  # a lone surrogate: it cannot be sent or stored, and others travel with it
        found = _storable(found)
    if found.named is None and found.prompt is None and not found.has_gold:
        raise RewardError(f"item {place}: has neither task_id nor prompt; add one to name its task")
    return found


def _check_mask(place: int, text: str | None, mask: Spans) -> None:
    if text is None:
        raise RewardError(f"item {place}: mask: goes with text; messages say themselves who wrote them")
    at = 0
    for start, end in mask:
        if not at <= start <= end <= len(text):
            raise RewardError(
                f"item {place}: mask: [{start}, {end}] is not a span of the text's {len(text):,} characters "
                "after the spans before it"
            )
        at = end


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
    if reward.value is not None or on_failure in ("none", "group_mean"):
        return reward.value
    if isinstance(on_failure, Constant):
        return on_failure.constant
    raise RewardError(f"no reward: {reward.reason}")


def all_settled(
    items: Sequence[Item], rewards: Sequence[Reward], on_failure: OnFailure
) -> list[float | None]:
    """The values of the `rewards` of `items`, as `settled`; by `group_mean`, a failed one has its prompt's mean.

    Where no rollout of the prompt has a value, that is the mean of the whole call; None where none of it has one.
    """
    values = [settled(reward, on_failure) for reward in rewards]
    if on_failure != "group_mean":
        return values
    prompts = [_prompt_of(item) for item in items]
    known: dict[Any, list[float]] = {}
    for prompt, value in zip(prompts, values, strict=True):
        if value is not None:
            known.setdefault(prompt, []).append(value)
    every = [value for found in known.values() for value in found]

    def mean(prompt: object) -> float | None:
        found = known.get(prompt) or every
        return sum(found) / len(found) if found else None

    return [mean(prompt) if value is None else value for prompt, value in zip(prompts, values, strict=True)]


def _prompt_of(item: Item) -> object:
    """What the rollouts of one prompt share: the prompt, else the task's id."""
    (found,) = as_items([item])
    return found.named if found.asked is None else found.asked
