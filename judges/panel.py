"""Several judges as one: every member is asked, and their answers are combined field by field.

Numbers are combined to the nearest allowed value: of the mean, the median (the lower one of two), or the most frequent.
Everything else (words, true or false) goes by majority; in a tie, the value given by the member named first wins. Free
text and lists come from the member that agrees best with the combination. If any member has no answer, the panel has
none, for that member's reason: a panel of two is another judge than a panel of three.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from statistics import fmean, median_low
from typing import Any, TypeVar

import msgspec

from adjudge.judges.judgment import (
    PROBE_SECONDS,
    Asked,
    Combination,
    Judge,
    JudgeIdentity,
    Reply,
    Usage,
    Verdict,
    probe,
)
from adjudge.judges.published import PublishedQuestion
from adjudge.judges.question import Answer, Question
from adjudge.judges.schema import Schema, schema_of

A = TypeVar("A", bound=Answer)


class PanelJudge:
    """Asks all `members` and combines their answers by `combination`.

    The reply's text is JSON: each member's answer by its name, and `agreement`, the share of pairs of members that
    give the same value, over all fields except free text. Usage is the sum, seconds the slowest member's.
    """

    def __init__(self, members: Sequence[Judge], combination: Combination = "median") -> None:
        self.members = tuple(members)
        self.combination = combination
        identities = [member.identity for member in members]
        self.identity = JudgeIdentity(
            name=f"panel of {', '.join(one.name for one in identities)}",
            fingerprint=f"panel {combination}: {' + '.join(one.fingerprint for one in identities)}",
            sampling=" + ".join(one.sampling for one in identities),
        )

    async def answer(self, question: Question[A], asked: Asked) -> Reply[A]:
        """The combined answer, or the reason of the first member that has none. Free text cannot be combined."""
        if isinstance(question, PublishedQuestion):
            return Reply(reason="judge_unsupported", text="a panel cannot combine replies to published calls")
        replies = await asyncio.gather(*(member.answer(question, asked) for member in self.members))
        usage = sum((reply.usage for reply in replies), Usage())
        seconds = max(reply.seconds for reply in replies)
        given = [msgspec.to_builtins(reply.answer) for reply in replies if reply.answer is not None]
        said = {
            member.identity.name: msgspec.to_builtins(reply.answer)
            for member, reply in zip(self.members, replies, strict=True)
        }
        failed = next((reply for reply in replies if reply.answer is None), None)
        if failed is not None:
            text = msgspec.json.encode({"members": said}).decode()
            return Reply(reason=failed.reason, text=text, usage=usage, seconds=seconds)
        schema = schema_of(question, analysis=True)
        raw, agreement = combined(given, schema, self.combination)
        text = msgspec.json.encode({"members": said, "agreement": agreement}).decode()
        answer = question.typed(msgspec.convert(raw, question.answer))
        return Reply(answer=answer, text=text, finish_reason="stop", usage=usage, seconds=seconds)

    async def probe(self, timeout_s: float = PROBE_SECONDS) -> tuple[Verdict, ...]:
        """The verdicts on all members, in their order."""
        found = await asyncio.gather(*(probe(member, timeout_s) for member in self.members))
        return tuple(chain.from_iterable(found))

    async def close(self) -> None:
        """Close every member."""
        await asyncio.gather(*(member.close() for member in self.members))


def combined(
    answers: Sequence[dict[str, Any]], schema: Schema, combination: Combination
) -> tuple[Any, float]:
    """The combination of `answers` (plain data of one `schema`) and their agreement in 0..1."""
    votes: list[tuple[list[Any], Any]] = []

    def fold(values: list[Any], node: Schema) -> Any:
        if node.get("type") == "object":
            return {
                name: fold([value.get(name) for value in values], kind)
                for name, kind in node["properties"].items()
            }
        if "enum" in node and all(isinstance(value, int | float) for value in node["enum"]):
            chosen = _number(values, node["enum"], combination)
        elif "enum" in node or node.get("type") in ("boolean", "null"):
            chosen = _most_frequent(values)
        else:
            return _Free(values)
        votes.append((values, chosen))
        return chosen

    folded = fold(list(answers), schema)
    closest = _closest(votes, len(answers))
    return _settled(folded, closest), _agreement(votes)


class _Free:
    """A field that is not combined: each member's own value."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values


def _settled(node: Any, member: int) -> Any:
    if isinstance(node, dict):
        return {name: _settled(value, member) for name, value in node.items()}
    return node.values[member] if isinstance(node, _Free) else node


def _number(values: list[float], allowed: list[float], combination: Combination) -> float:
    if combination == "majority":
        return float(_most_frequent(values))
    middle: Callable[[list[float]], float] = fmean if combination == "mean" else median_low
    target = middle(values)
    return min(allowed, key=lambda value: (abs(value - target), value))


def _most_frequent(values: list[Any]) -> Any:
    counts = Counter(map(str, values))
    return max(values, key=lambda value: (counts[str(value)], -values.index(value)))


def _closest(votes: list[tuple[list[Any], Any]], members: int) -> int:
    agreeing = [sum(values[member] == chosen for values, chosen in votes) for member in range(members)]
    return agreeing.index(max(agreeing))


def _agreement(votes: list[tuple[list[Any], Any]]) -> float:
    pairs = [
        values[i] == values[j]
        for values, _ in votes
        for i in range(len(values))
        for j in range(i + 1, len(values))
    ]
    return sum(pairs) / len(pairs) if pairs else 1.0
