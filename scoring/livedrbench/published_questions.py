"""The questions of LiveDRBench in its own words, and how its code reads their replies.

A request is sent up to six times, until its reply can be read. The code stops with an error at replies that are JSON of
a wrong kind; here those cannot be read either. All readings are linear in the reply.
"""

import json
from functools import lru_cache
from typing import Any, ClassVar

import msgspec

from adjudge.judges.checkout import Checkout
from adjudge.judges.published import PublishedQuestion, UnreadableReply, Wording

__all__ = [
    "ATTEMPTS",
    "NAMED",
    "LiveWordings",
    "Object",
    "PublishedAnswer",
    "PublishedConversion",
    "PublishedEqual",
    "PublishedGrades",
    "PublishedMatch",
    "PublishedSearch",
    "json_in",
    "live_wordings",
    "match_in",
]

Object = dict[str, Any]
ATTEMPTS = 6
NAMED = {"prior-art": "priorart", "entities": "entities"}
"""The categories of titles and names by the file of their prompt."""

_SLOTS = "src/evals/datasets_flights.py"
_SCIFACTS = "src/evals/scifacts.py"
_CONVERT = "src/convert_to_format.py"


class LiveWordings(msgspec.Struct, frozen=True):
    """The requests of one checkout."""

    grades: Wording
    match: Wording
    search: dict[str, Wording]
    equal: Wording
    answer: Wording
    conversion: Wording

    @classmethod
    def of(cls, folder: str) -> "LiveWordings":
        """The wordings in the checkout at `folder`. Raises CheckoutError."""
        checkout = Checkout(folder)
        slot: Any = {"max_tokens": 1024, "temperature": 0.0}
        return cls(
            Wording.of(checkout.formatted(_SLOTS, "prompts.dict"), **slot),
            Wording.of(checkout.formatted(_SLOTS, "prompts.list_of_dicts_match"), **slot),
            {
                category: Wording.of(
                    checkout.formatted(f"src/evals/{file}.py", "prompts.str_search"),
                    max_tokens=500,
                    temperature=0.0,
                )
                for category, file in NAMED.items()
            },
            Wording.of(
                checkout.inline(_SCIFACTS, "is_match_func", {"actual_item": "actual_item", "pred": "pred"}),
                checkout.plain(_SCIFACTS, "prompts.EM"),
            ),
            Wording.of(
                checkout.inline(_CONVERT, "parse_output", {"pred": "pred"}),
                checkout.plain(_CONVERT, "parse_output.PROMPT"),
            ),
            Wording.of(
                checkout.inline(
                    _CONVERT, "convert_to_format", {"format": "format", "json.dumps(pred)": "pred"}
                ),
                checkout.plain(_CONVERT, "convert_to_format.PROMPT"),
            ),
        )


live_wordings = lru_cache(maxsize=8)(LiveWordings.of)


def json_in(text: str) -> Any:
    """The JSON value that a reply's `text` is, with or without a fence around it. Raises UnreadableReply."""
    return _json(text.replace("```json", "").replace("```", "").strip())


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableReply(f"not JSON: {type(error).__name__}") from error


class PublishedGrades(PublishedQuestion[Object], frozen=True, kw_only=True):
    """How well does `dict_pred` say what the gold object says, key by key?"""

    words = "grades of an answer's fields, published call"
    attempts: ClassVar[int] = ATTEMPTS

    dict_pred: str

    def read(self, text: str) -> Object:
        """A number for each key."""
        found = json_in(text)
        if not isinstance(found, dict) or not all(isinstance(one, int | float) for one in found.values()):
            raise UnreadableReply("not an object of numbers")
        return found

    def example(self) -> str:
        """The best grade for every key."""
        return json.dumps(dict.fromkeys(json.loads(self.context["dict_gt"]), 3))


class PublishedMatch(PublishedQuestion[Object], frozen=True, kw_only=True):
    """Which object of the gold list is `dict_pred` by its primary keys?"""

    words = "the gold entry an answer matches, published call"
    attempts: ClassVar[int] = ATTEMPTS

    dict_pred: str
    primary_keys: str
    note: str

    def read(self, text: str) -> Object:
        """The gold object; empty if there is none."""
        found = json_in(text)
        if found != [] and found != "" and not isinstance(found, dict):
            raise UnreadableReply("not an object")
        return found or {}

    def example(self) -> str:
        """The first gold object."""
        return json.dumps(next(iter(json.loads(self.context["list_gt"])), {}))


class Match(msgspec.Struct, frozen=True):
    """The gold text that a prediction is said to be; None for none."""

    text: str | None


def match_in(text: str) -> Match:
    """The match in the JSON that `text` is, fences not taken off. Raises UnreadableReply."""
    found = _json(text.strip())
    if isinstance(found, dict):
        match = found.get("match")
        if match is None or isinstance(match, str):
            return Match(match)
    elif isinstance(found, list | str) and "match" not in found:
        return Match(None)
    raise UnreadableReply("not an object with a text as its match")


class PublishedSearch(PublishedQuestion[Match], frozen=True, kw_only=True):
    """Which text of the gold list is `pred_str`?"""

    words = "the gold text an answer matches, published call"
    attempts: ClassVar[int] = ATTEMPTS

    pred_str: str

    def read(self, text: str) -> Match:
        """The match."""
        return match_in(text)

    def example(self) -> str:
        """The first gold text."""
        return json.dumps({"match": next(iter(json.loads(self.context["gt_list"])), None)})


class PublishedEqual(PublishedQuestion[bool], frozen=True, kw_only=True):
    """Is `pred` the gold text?"""

    words = "whether an answer is the gold text, published call"

    pred: str

    def read(self, text: str) -> bool:
        """Whether the reply is the word true, and nothing else."""
        return text.lower() == "true"

    def example(self) -> str:
        """Yes."""
        return "True"


class PublishedAnswer(PublishedQuestion[str], frozen=True, kw_only=True):
    """Where in the prose `pred` is the JSON?"""

    words = "the answer in a report, published call"

    def read(self, text: str) -> str:
        """The reply."""
        return text

    def example(self) -> str:
        """An answer of ordinary length."""
        return "[[" + "{}" * 200 + "]]"


class PublishedConversion(PublishedQuestion[Any], frozen=True, kw_only=True):
    """What is the JSON `pred` in the form that the question wants?"""

    words = "an answer in the wanted form, published call"

    pred: str

    def read(self, text: str) -> Any:
        """The one slot of the answer."""
        return [_json(text)]

    def example(self) -> str:
        """An answer of ordinary length."""
        return "[" + ",".join(["{}"] * 50) + "]"
