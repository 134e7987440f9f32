"""Expected scores: an answer with one enumerated value, read from the probabilities of its labels instead of sampled.

A label's probability is that of its tokens under constrained decoding: wherever the allowed labels branch, the
probabilities of the possible next tokens, normalised. Labels that differ in their first token cost one request of one
token; labels with a common beginning (2, 2.5) cost one more request per branch.

A server shows its reply with the likeliest tokens at each place, and not its tokenizer. There, a branch is what these
tokens, as text, leave of the labels, and one with several labels is asked again with these alone.
"""

import asyncio
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np

from adjudge.judges.question import Answer, Question
from adjudge.judges.schema import Schema, decode

A = TypeVar("A", bound=Answer)

NextToken = Callable[[tuple[int, ...], tuple[int, ...]], Awaitable[Mapping[int, float]]]
"""Takes the tokens so far (after the prompt) and those that may follow; gives the log probability of each."""


class Step(msgspec.Struct, frozen=True):
    """A token of a server's reply, and the log probabilities of the `likely` tokens in its place, itself among them."""

    token: str
    likely: Mapping[str, float]


Spoken = Callable[[tuple[int, ...]], Awaitable[Sequence[Step]]]
"""Takes the places of labels; gives the steps of a reply that must be one of these."""
_NEGLIGIBLE = 1e-3  # the probability of a branch that no further request is worth


class NoProbabilities(ValueError):
    """A server's reply does not say how probable each label is."""


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


def limited(schema: Schema, places: Sequence[int]) -> Schema:
    """`schema`, which has labels, with those at `places` alone."""
    if "enum" in schema:
        return {**schema, "enum": [schema["enum"][place] for place in places]}
    properties = {name: limited(inner, places) for name, inner in schema["properties"].items()}
    return {**schema, "properties": properties}


async def spoken_distribution(labels: Labels, spoken: Spoken) -> list[float]:
    """The probability of each of `labels` by the replies of a server; sums to 1. Raises NoProbabilities."""
    wholes = [_bare(labels.before + value + labels.after) for value in labels.values]
    found = [0.0] * len(wholes)

    async def descend(places: tuple[int, ...], branch: _Branch) -> None:
        if len(places) == 1 or branch.probability < _NEGLIGIBLE:
            for place in places:
                found[place] += branch.probability / len(places)
            return
        branches = _branches(wholes, places, branch, await spoken(places))
        await asyncio.gather(*(descend(*one) for one in branches.items()))

    await descend(tuple(range(len(wholes))), _Branch("", 1.0))
    return found


class _Branch(NamedTuple):
    """How some labels were reached: by what was said, and with which probability."""

    said: str
    probability: float


def _branches(
    wholes: Sequence[str], places: tuple[int, ...], reached: _Branch, steps: Sequence[Step]
) -> dict[tuple[int, ...], _Branch]:
    """The branches of labels at `places`, each of fewer labels, that a reply shows. Raises NoProbabilities."""
    found: dict[tuple[int, ...], _Branch] = {}
    said, left, probability = "", places, reached.probability
    for step in steps:
        begun, after = _bare(said), _bare(said + step.token)
        if reached.said.startswith(after):  # no alternative to it counts: it has been said
            said += step.token
            continue
        masses: defaultdict[tuple[int, ...], float] = defaultdict(float)
        tokens: dict[tuple[int, ...], tuple[float, str]] = {}
        for token, log in step.likely.items():
            fitting, mass = _fitting(wholes, left, said + token), math.exp(min(log, 0.0))
            masses[fitting] += mass
            tokens[fitting] = max(tokens.get(fitting, (0.0, "")), (mass, _bare(said + token)))
        masses.pop((), None)
        chosen = _fitting(wholes, left, said + step.token)
        if not masses.get(chosen):
            raise NoProbabilities(f"no probability of {step.token!r}")
        decided = {place for fitting in masses if fitting != left for place in fitting}
        rest = tuple(place for place in left if place not in decided)
        if len(begun) < len(reached.said) and rest:  # another token than the one that has been said
            return {rest: _Branch(reached.said, probability)}
        if chosen != left and (undecided := masses.pop(left, None)) is not None and rest:
            # A model that means one of the decided labels says its token.
            masses[rest], tokens[rest] = undecided, tokens[left]
        total = sum(masses.values())
        for fitting, mass in masses.items():
            if fitting != chosen:
                before = found.get(fitting, _Branch("", 0.0)).probability
                found[fitting] = _Branch(tokens[fitting][1], before + probability * mass / total)
        probability *= masses[chosen] / total
        said, left = said + step.token, chosen
        if len(left) == 1:
            break
    if left == places:
        raise NoProbabilities("a reply without probabilities of tokens")
    before = found.get(left, _Branch("", 0.0)).probability
    found[left] = _Branch(_bare(said), before + probability)
    return found


def _fitting(wholes: Sequence[str], places: tuple[int, ...], said: str) -> tuple[int, ...]:
    """Those of `places` whose answer begins as `said`, or has been said."""
    begun = _bare(said)
    return tuple(
        place for place in places if wholes[place].startswith(begun) or begun.startswith(wholes[place])
    )


def _bare(text: str) -> str:
    """`text` without the blanks that JSON may have anywhere."""
    return "".join(text.split())


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
