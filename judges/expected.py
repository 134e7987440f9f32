"""Expected scores: an answer with one enumerated value, read from the probabilities of its labels instead of sampled.

A label's probability is that of its tokens under constrained decoding: wherever the allowed labels branch, the
probabilities of the possible next tokens, normalised. Labels that differ in their first token cost one request of one
token; labels with a common beginning (2, 2.5) cost one more request per branch.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import msgspec
import numpy as np

from adjudge.judges.question import Answer, Question
from adjudge.judges.schema import Schema, decode

A = TypeVar("A", bound=Answer)

NextToken = Callable[[tuple[int, ...], tuple[int, ...]], Awaitable[Mapping[int, float]]]
"""Takes the tokens so far (after the prompt) and those that may follow; gives the log probability of each."""


class Labels(msgspec.Struct, frozen=True):
    """The answers that a schema allows: `before` + a value + `after` is one answer as JSON.

    `values` are as they stand between the two, without quotes; `numbers` are the same as numbers, None for words.
    """

    before: str
    values: tuple[str, ...]
    after: str
    numbers: tuple[float, ...] | None


def labels_of(schema: Schema) -> Labels | None:
    """The labels of a schema whose only value is an enumeration of words or of numbers; None for any other."""
    before, after = "", ""
    while schema.get("type") == "object" and len(schema["properties"]) == 1:
        ((name, schema),) = schema["properties"].items()
        before, after = before + '{"' + name + '":', "}" + after
    values = schema.get("enum", ())
    if not values or not before:
        return None
    if all(isinstance(value, str) for value in values):
        words = tuple(msgspec.json.encode(value).decode()[1:-1] for value in values)
        return Labels(before + '"', words, '"' + after, None)
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        texts = tuple(msgspec.json.encode(value).decode() for value in values)
        return Labels(before, texts, after, tuple(map(float, values)))
    return None


async def distribution(labels: Sequence[tuple[int, ...]], next_token: NextToken) -> list[float]:
    """The probability of each of `labels`, all different token sequences none of which begins another; sums to 1."""
    found = [0.0] * len(labels)

    async def descend(given: tuple[int, ...], places: list[int], probability: float) -> None:
        while len(places) > 1 and len({labels[place][len(given)] for place in places}) == 1:
            given = (*given, labels[places[0]][len(given)])
        if len(places) == 1:
            found[places[0]] = probability
            return
        branches: dict[int, list[int]] = {}
        for place in places:
            branches.setdefault(labels[place][len(given)], []).append(place)
        logs = await next_token(given, tuple(branches))
        shares = _normalised([logs[token] for token in branches])
        await asyncio.gather(
            *(
                descend((*given, token), branch, probability * share)
                for (token, branch), share in zip(branches.items(), shares, strict=True)
            )
        )

    await descend((), list(range(len(labels))), 1.0)
    return found


def _normalised(logs: list[float]) -> list[float]:
    weights = np.exp(np.array(logs) - max(logs))
    return [float(share) for share in weights / weights.sum()]


def expected_answer(question: Question[A], labels: Labels, probabilities: Sequence[float]) -> tuple[A, str]:
    """The answer under the distribution, and the distribution itself as JSON.

    The answer is the most probable one (of equal ones the first), but a number of type `Choice` is the mean.
    """
    best = max(range(len(probabilities)), key=lambda place: (probabilities[place], -place))
    answer = decode(question, labels.before + labels.values[best] + labels.after).answer
    shown = msgspec.json.encode(
        {value: round(p, 6) for value, p in zip(labels.values, probabilities, strict=True)}
    ).decode()
    if labels.numbers is None or not question.options:
        return answer, shown
    mean = sum(number * p for number, p in zip(labels.numbers, probabilities, strict=True))
    (field,) = msgspec.json.decode(labels.before + labels.values[best] + labels.after)
    return msgspec.structs.replace(answer, **{field: mean}), shown
