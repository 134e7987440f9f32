"""RACE's weights and criteria in the benchmark's own calls, for tasks whose gold lacks them.

The rules are the reference code's: dimension weights are drawn 5 times and averaged, criteria are asked once for each
dimension; up to 5 attempts each. A reply must be JSON whose weights sum to 1. If a draw's last attempt is JSON with
another sum, the average leaves it out; if it is not JSON, the task has no weights. A dimension without criteria leaves
the task without a yardstick, where the code would go on without that dimension.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import msgspec

from adjudge.judges import Context
from adjudge.judges.published import Checkout, PublishedQuestion, UnreadableReply, Wording, Wordings
from adjudge.scoring.answers.parts import ask_until_read
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Missing
from adjudge.scoring.deepresearch_bench.yardstick import DIMENSIONS, DRAWS, Criterion, RaceGold, Yardstick

_TOLERANCE = 1e-6
_OPEN = re.compile("<json_output>", re.IGNORECASE)
_CLOSE = re.compile("</json_output>", re.IGNORECASE)
_NAMES = {
    "comprehensiveness": "comp",
    "insight": "insight",
    "instruction_following": "Inst",
    "readability": "readability",
}


Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")


def language_of(case: Case) -> Language:
    """The language in which the benchmark asks about the case's task."""
    return "zh" if case.task.language == "zh" else "en"


def criteria_wordings(checkout: Checkout) -> dict[str, Wording]:
    """The requests for a task's weights, and for the criteria of each dimension, by language. Raises CheckoutError."""
    prompts = {name: f"generate_eval_criteria_prompt_{short}" for name, short in _NAMES.items()}
    return {
        f"criteria.{kind}.{language}": Wording.of(
            checkout.formatted(f"prompt/criteria_prompt_{language}.py", prompt)
        )
        for language in LANGUAGES
        for kind, prompt in {"weights": "generate_eval_dimension_weight_prompt", **prompts}.items()
    }


class PublishedWeights(PublishedQuestion[dict[str, Any] | None], frozen=True, kw_only=True):
    """How much does each dimension matter for the task? `draw` numbers the draws, which are averaged."""

    words = "weights of the dimensions, published call"
    attempts: ClassVar[int] = 5

    draw: int

    def read(self, text: str) -> dict[str, Any] | None:
        """The weights by dimension; None if they do not sum to 1."""
        found = listed_in(text)
        return found if isinstance(found, dict) and _sums_to_one(found.values()) else None

    def example(self) -> str:
        """Equal weights."""
        return json.dumps(dict.fromkeys(DIMENSIONS, 0.25))


class PublishedCriteria(PublishedQuestion[list[Any] | None], frozen=True, kw_only=True):
    """By which criteria should reports on the task be judged in one dimension?"""

    words = "criteria of a dimension, published call"
    attempts: ClassVar[int] = 5

    dimension: str

    def read(self, text: str) -> list[Any] | None:
        """The criteria; None if they do not have weights that sum to 1."""
        found = listed_in(text)
        if not isinstance(found, list) or any(
            not isinstance(one, dict) or "weight" not in one for one in found
        ):
            return None
        return found if _sums_to_one(one["weight"] for one in found) else None

    def example(self) -> str:
        """Five criteria of ordinary length."""
        made = [{"criterion": f"{n} {'x' * 60}", "explanation": "x" * 300, "weight": 0.2} for n in range(5)]
        return json.dumps(made)


def listed_in(text: str) -> object:
    """The JSON in a reply: between its first tags, or the text without its fences. Raises UnreadableReply. Linear."""
    opened = _OPEN.search(text)
    closed = opened and _CLOSE.search(text, opened.end())
    if opened and closed:
        inner = text[opened.end() : closed.start()].strip()
    else:
        inner = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    try:
        return json.loads(inner)
    except (ValueError, RecursionError) as error:
        raise UnreadableReply("not JSON") from error


def _sums_to_one(weights: Any) -> bool:
    """Whether `weights` sum to 1. Raises UnreadableReply for what is not a number."""
    try:
        values = [float(weight) for weight in weights]
    except (TypeError, ValueError, OverflowError) as error:
        raise UnreadableReply("a weight is not a number") from error
    return bool(values) and abs(sum(values) - 1.0) < _TOLERANCE


async def published_yardstick(
    case: Case, gold: RaceGold, wordings: Wordings, tools: Tools
) -> Yardstick | Missing:
    """The yardstick of the case's task: its gold, or the judge's."""
    task = Context.of(task_prompt=case.task.prompt)
    weights: Mapping[str, float] | Missing | None = gold.dimension_weight
    criteria: Mapping[str, tuple[Criterion, ...]] | Missing | None = gold.criterions
    if weights is None:
        weights = await _weights(task, case, wordings, tools)
    if isinstance(weights, Missing):
        return weights
    if criteria is None:
        criteria = await _criteria(task, case, wordings, tools)
    return criteria if isinstance(criteria, Missing) else Yardstick(weights, criteria)


async def _weights(task: Context, case: Case, wordings: Wordings, tools: Tools) -> dict[str, float] | Missing:
    wording = wordings[f"criteria.weights.{language_of(case)}"]
    drawn = await asyncio.gather(
        *(
            ask_until_read(
                tools, PublishedWeights(context=task, language=case.task.language, wording=wording, draw=draw)
            )
            for draw in range(1, DRAWS + 1)
        )
    )
    replies = []
    for one in drawn:
        if isinstance(one, Missing):
            return one
        if one.value is not None:
            replies.append(one.value)
    try:
        return averaged(replies)
    except UnreadableReply:
        return Missing("judge_unparseable")


def averaged(draws: list[dict[str, Any]]) -> dict[str, float]:
    """The weights of the dimensions that all draws have: averaged, normalised and rounded as the code does.

    What rounding leaves over goes to readability. Raises UnreadableReply where that gives no weights.
    """
    names = [name for name in (draws[0] if draws else ()) if all(name in draw for draw in draws)]
    try:
        means = {name: sum(draw[name] for draw in draws) / len(draws) for name in names}
        total = sum(means.values())
        rounded = {name: round(float(mean / total), 2) for name, mean in means.items()}
        rest = 1.0 - sum(rounded.values())
        if abs(rest) > 1e-10:
            rounded["readability"] = round(rounded["readability"] + rest, 2)
    except (TypeError, ZeroDivisionError, KeyError, OverflowError, ValueError) as error:
        raise UnreadableReply("weights that cannot be averaged") from error
    if any(name not in rounded for name in DIMENSIONS):
        raise UnreadableReply("a dimension has no weight")
    return rounded


async def _criteria(
    task: Context, case: Case, wordings: Wordings, tools: Tools
) -> dict[str, tuple[Criterion, ...]] | Missing:
    asked = [
        PublishedCriteria(
            context=task,
            language=case.task.language,
            wording=wordings[f"criteria.{name}.{language_of(case)}"],
            dimension=name,
        )
        for name in _NAMES
    ]
    replies = await asyncio.gather(*(ask_until_read(tools, question) for question in asked))
    made = {}
    for question, reply in zip(asked, replies, strict=True):
        if isinstance(reply, Missing):
            return reply
        try:
            made[question.dimension] = msgspec.convert(reply.value, tuple[Criterion, ...], strict=False)
        except msgspec.ValidationError:
            return Missing("judge_unparseable")
    return made
