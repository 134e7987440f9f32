"""A judge asked planted controls: its rates of right answers, biases, noise and separation, against stated limits.

It fails only for what it surely gets wrong: a kind of control whose rate lies below its limit with its whole interval,
and what no judge of its use may show: no separation, a lean to one position or to length, another answer each time.
"""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from adjudge.engine.trial.controls import CONTROLLED, DOUBLED, USUAL, Control, controls
from adjudge.engine.trial.material import Material, at_hand, shipped
from adjudge.judges import Asked, Judge, Question, Reply, Usage
from adjudge.judges.plural import plural
from adjudge.scoring.contract.case import Case
from adjudge.scoring.kernels.agreement.human_consistency import wilson

SIZE = 12
"""Statements or reports of each language for each question type."""
_AGAIN = 4  # of how many controls one is asked again

Outcome = Literal["passed", "failed", "unusable"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge must reach (`answered`, `separation`, `rate`), and what it must not exceed; shares of 1.

    A kind of control fails if the whole interval of its rate is below `rate`, repeat noise if all of its own is above
    `noise`. `TypeResult` says what the others are.
    """

    answered: float = 0.9
    separation: float = 0.8
    rate: float = 0.7
    position: float = 0.2
    length: float = 0.2
    noise: float = 0.1


LIMITS = Limits()


class KindResult(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of control: `right` of `n` were answered rightly; with Wilson's interval at 95 %. None without any."""

    kind: str
    n: int
    right: int
    unscored: int
    rate: float | None
    low: float | None
    high: float | None


class TypeResult(msgspec.Struct, frozen=True, kw_only=True):
    """One question type, in the words of its protocol.

    `separation` is the chance that what deserves more gets more, ties counting half: 0.5 for a judge that answers
    blindly. `commonest` is the share of the most frequent answer. `position` is how far the text shown first is ahead,
    `length` how far a report is for being shown twice over, both from -1 to 1; `noise` the share of `again` questions
    that are answered otherwise when asked again. None where nothing says.
    """

    question: str
    kinds: tuple[KindResult, ...]
    separation: float | None
    commonest: float | None
    position: float | None
    length: float | None
    noise: float | None
    again: int


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge made of its controls. `why` it failed, in words; `untested` are types that have no controls.

    `asked` counts questions, `reasons` those without an answer.
    """

    judge: str
    outcome: Outcome
    why: tuple[str, ...]
    limits: Limits
    languages: tuple[str, ...]
    types: tuple[TypeResult, ...]
    untested: tuple[str, ...]
    asked: int
    reasons: dict[str, int]
    usage: Usage
    seconds: float


def materials_of(cases: Sequence[Case], size: int = SIZE) -> dict[str, list[Material]]:
    """What controls are made of, by the languages of `cases`; shipped reports follow where theirs state too little.

    Without cases, shipped reports in English and Chinese.
    """
    languages = sorted({case.task.language for case in cases}) or ["en", "zh"]
    found = {}
    for language in languages:
        own = at_hand(cases, language)
        is_enough = len(own) > 1 and sum(len(one.statements) for one in own) >= size
        found[language] = own if is_enough else [*own, *shipped(language)]
    return found


def types_of(asked: Iterable[str]) -> tuple[list[type[Question[Any]]], list[str]]:
    """The types among the names `asked` that have controls, and the names of the others; the usual ones if none has."""
    names = list(asked)
    found = [kind for kind in CONTROLLED if kind.__name__ in names]
    known = {kind.__name__ for kind in found}
    return found or list(USUAL), [name for name in names if name not in known]


async def trial(
    judge: Judge,
    materials: dict[str, list[Material]],
    kinds: Sequence[type[Question[Any]]] = USUAL,
    *,
    size: int = SIZE,
    untested: Sequence[str] = (),
    again: int = _AGAIN,
    limits: Limits = LIMITS,
) -> Trial:
    """Ask `judge` the controls of question types `kinds`, `size` statements or reports by language and type.

    Every `again`-th control is asked twice; 0 asks none. Raises what the judge raises for itself.
    """
    started = time.monotonic()
    asking = _Asking(judge)
    planted = {
        kind: [one for own in materials.values() for one in controls(kind, own, size)] for kind in kinds
    }
    found = await asyncio.gather(*(_tried(asking, kind, own, again) for kind, own in planted.items()))
    replies = asking.replies
    reasons = Counter(str(reply.reason) for reply in replies if reply.answer is None)
    why = _why(found, len(replies), reasons.total(), limits)
    outcome: Outcome = "unusable" if reasons.total() == len(replies) else "failed" if why else "passed"
    return Trial(
        judge=judge.identity.name,
        outcome=outcome,
        why=why,
        limits=limits,
        languages=tuple(materials),
        types=tuple(found),
        untested=tuple(untested),
        asked=len(replies),
        reasons=dict(reasons),
        usage=Usage.total(reply.usage for reply in replies),
        seconds=time.monotonic() - started,
    )


class _Asking:
    """Asks each different question once; the same one again under another repeat."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._asked: dict[bytes, asyncio.Future[Reply[Any]]] = {}

    @property
    def replies(self) -> list[Reply[Any]]:
        return [one.result() for one in self._asked.values()]

    async def replied(self, question: Question[Any], repeat: int = 0) -> Reply[Any]:
        parts = (question.context.digest, question.identity(), repeat.to_bytes(4, "big"))
        key = hashlib.blake2b(b"".join(parts), digest_size=16).digest()
        if key not in self._asked:
            asked = Asked(key=key, repeat=repeat)
            self._asked[key] = asyncio.ensure_future(self._judge.answer(question, asked))
        return await self._asked[key]


class _Tried(msgspec.Struct, frozen=True):
    """A control with what the judge made of it: its number and lean, None without an answer."""

    control: Control
    value: float | None
    lean: float | None
    again: float | None

    @property
    def is_right(self) -> bool:
        return self.value is not None and self.control.least <= self.value <= self.control.most


async def _tried(
    asking: _Asking, kind: type[Question[Any]], planted: Sequence[Control], again: int
) -> TypeResult:
    found = await asyncio.gather(
        *(_asked(asking, one, bool(again) and not place % again) for place, one in enumerate(planted))
    )
    scored = [one for one in found if one.value is not None]
    values = Counter(round(one.value, 6) for one in scored if one.value is not None)
    twice = [one for one in scored if one.again is not None]
    return TypeResult(
        question=kind.words,
        kinds=tuple(
            _kind(name, [one for one in found if one.control.kind == name])
            for name in dict.fromkeys(one.control.kind for one in found)
        ),
        separation=_separation(scored),
        commonest=max(values.values()) / len(scored) if scored else None,
        position=_mean([one.lean for one in scored if one.lean is not None]),
        length=_mean(
            [1 - 2 * one.value for one in scored if one.control.kind == DOUBLED and one.value is not None]
        ),
        noise=_mean([float(one.again != one.value) for one in twice]),
        again=len(twice),
    )


async def _asked(asking: _Asking, control: Control, again: bool) -> _Tried:
    replies = [asking.replied(question) for question in control.questions]
    more = [asking.replied(question, 1) for question in control.questions] if again else []
    every = await asyncio.gather(*replies, *more)
    answers = [reply.answer for reply in every[: len(replies)]]
    if any(answer is None for answer in answers):
        return _Tried(control, None, None, None)
    repeated = [reply.answer for reply in every[len(replies) :]]
    return _Tried(
        control,
        control.read(answers),
        None if control.lean is None else control.lean(answers),
        control.read(repeated) if repeated and all(one is not None for one in repeated) else None,
    )


def _kind(name: str, found: Sequence[_Tried]) -> KindResult:
    scored = [one for one in found if one.value is not None]
    right = sum(one.is_right for one in scored)
    low, high = wilson(right, len(scored)) if scored else (None, None)
    return KindResult(
        kind=name,
        n=len(scored),
        right=right,
        unscored=len(found) - len(scored),
        rate=right / len(scored) if scored else None,
        low=low,
        high=high,
    )


def _separation(scored: Sequence[_Tried]) -> float | None:
    """Of a good and a bad control, the good one is ahead; of two texts compared, the better one."""
    good = [one.value for one in scored if one.control.side == "good" and one.value is not None]
    bad = [one.value for one in scored if one.control.side == "bad" and one.value is not None]
    compared = [(one, other) for one in good for other in (bad or (0.5,))]
    return _mean([0.5 if abs(one - other) < 1e-9 else float(one > other) for one, other in compared])


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _why(found: Sequence[TypeResult], asked: int, unanswered: int, limits: Limits) -> tuple[str, ...]:
    """What the judge failed by, in words."""
    said = []
    if asked and 1 - unanswered / asked < limits.answered:
        said.append(f"{plural(unanswered, 'question')} of {asked:,} without an answer")
    for one in found:
        if one.commonest == 1.0:
            said.append(f"{one.question}: every answer is the same")
        elif one.separation is not None and one.separation < limits.separation:
            said.append(f"{one.question}: what deserves more gets more in only {one.separation:.0%} of pairs")
        said += [
            f"{one.question}: {kind.kind}: {kind.right:,} of {kind.n:,} right"
            for kind in one.kinds
            if kind.high is not None and kind.high < limits.rate
        ]
        for name, value, most in (
            ("the text shown first is favoured by", one.position, limits.position),
            ("length alone is worth", one.length, limits.length),
        ):
            if value is not None and abs(value) > most:
                said.append(f"{one.question}: {name} {value:+.2f}")
        if one.noise is not None and wilson(round(one.noise * one.again), one.again)[0] > limits.noise:
            said.append(f"{one.question}: {one.noise:.0%} of {one.again:,} answers differ when asked again")
    return tuple(said)
