"""What answers to one type of question look like together: whether a judge tells things apart, and how its replies end.

Only what an answer chooses among a few is counted (words, yes or no, marks, points), not what it writes freely.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Annotated, Any, Literal, TypeGuard, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from adjudge.judges import Answer, Choice, Judgment, Question
from adjudge.judges.loops import LOOP
from adjudge.judges.question import words_of

__all__ = ["AnswerTally", "Answers", "told", "values"]

A = TypeVar("A", bound=Answer)

_PLACES = ("fewest", "between", "most")  # of what a question's own options allow
_FIRST, _SECOND = "first", "second"
_TRUTH = ("no", "yes")


class Answers(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """How questions of one type were answered; `words` is what they ask for.

    `said` counts each choice: an answer about twenty criteria makes twenty. A number is as it was given; one of the
    options that the question itself allows is "fewest", "between" or "most" of them. Where two texts are marked side by
    side, the one shown `first` was ahead, or the `second`, or both were `equal`. Of the `questions`, `cut` reached a
    limit of tokens at least once, `looped` ended in repetition, and `unscored` have no answer. `models` and `systems`
    count them by what answered, as servers call it.
    """

    words: str = ""
    questions: int = 0
    said: dict[str, int] = {}
    first: int = 0
    second: int = 0
    equal: int = 0
    cut: int = 0
    looped: int = 0
    unscored: int = 0
    models: dict[str, int] = {}
    systems: dict[str, int] = {}

    @property
    def choices(self) -> int:
        """All choices together."""
        return sum(self.said.values())

    @property
    def pairs(self) -> int:
        """How often two texts were marked side by side."""
        return self.first + self.second + self.equal

    @property
    def commonest(self) -> list[tuple[str, int]]:
        """Every choice, the most frequent first."""
        return sorted(self.said.items(), key=lambda item: (-item[1], item[0]))

    @property
    def entropy(self) -> float:
        """How much one choice tells, in bits: 0 where all are the same."""
        total = self.choices
        return -sum(n / total * math.log2(n / total) for n in self.said.values()) + 0.0


_COUNTS = ("questions", "first", "second", "equal", "cut", "looped", "unscored")
_SHARES = ("said", "models", "systems")
_MOST_KEPT = 1_000  # different values of one share: a server may call itself otherwise in every reply


class _Sums:
    """The counts of one question type, as they grow."""

    def __init__(self) -> None:
        self.words = ""
        self.counts = dict.fromkeys(_COUNTS, 0)
        self.shares: dict[str, dict[str, int]] = {name: {} for name in _SHARES}

    def share(self, name: str, value: str, count: int = 1) -> None:
        kept = self.shares[name]
        if value in kept:
            kept[value] += count
        elif len(kept) < _MOST_KEPT:
            kept[value] = count
        else:
            kept[""] = kept.get("", 0) + count

    def result(self) -> Answers:
        shares = {name: dict(sorted(kept.items())) for name, kept in self.shares.items()}
        found: dict[str, Any] = self.counts | shares
        return Answers(words=self.words, **found)


class AnswerTally:
    """Adds up counts by question type; the same whatever their order."""

    def __init__(self) -> None:
        self._sums: dict[str, _Sums] = {}

    def add(self, question: str, more: Answers) -> None:
        """Count `more` answers to a question type."""
        sums = self._of(question, more.words)
        for name in _COUNTS:
            sums.counts[name] += getattr(more, name)
        for name in _SHARES:
            for value, count in getattr(more, name).items():
                sums.share(name, value, count)

    def count(self, question: Question[A], judgment: Judgment[A]) -> None:
        """Count a single answer."""
        sums = self._sums.get(judgment.question) or self._of(judgment.question, words_of(question))
        counts, answer, ending = sums.counts, judgment.answer, judgment.finish_reason
        counts["questions"] += 1
        if answer is None:
            counts["unscored"] += 1
        else:
            kind = _Kind.of(type(answer))
            for name, reader in kind.readers:
                for value in reader(getattr(answer, name), question.options):
                    sums.share("said", value)
            if kind.may_lead:
                for ahead in kind.leads(answer):
                    counts["first" if ahead > 0 else "second" if ahead < 0 else "equal"] += 1
        if ending.startswith(LOOP):
            counts["looped"] += 1
        elif judgment.reason == "answer_truncated" or ending.startswith("length"):
            counts["cut"] += 1
        if judgment.served:
            sums.share("models", judgment.served)
        if judgment.system_fingerprint:
            sums.share("systems", judgment.system_fingerprint)

    def _of(self, question: str, words: str) -> _Sums:
        found = self._sums.get(question)
        if found is None:
            found = self._sums[question] = _Sums()
            found.words = words
        return found

    def result(self) -> dict[str, Answers]:
        """What was counted until now."""
        return {question: sums.result() for question, sums in sorted(self._sums.items())}


def told(question: Question[A], judgment: Judgment[A]) -> Answers:
    """The counts of a single answer."""
    tally = AnswerTally()
    tally.count(question, judgment)
    return tally.result()[judgment.question]


def values(answer: type[Answer]) -> tuple[str, ...]:
    """All that an answer of this type may choose."""
    return tuple(dict.fromkeys(_Kind.of(answer).values))


_Reader = Callable[[Any, tuple[float, ...]], Iterable[str]]


class _Kind(msgspec.Struct, frozen=True):
    """How answers of one type are read: by field, with all `values` that they may choose."""

    readers: tuple[tuple[str, _Reader], ...]
    values: tuple[str, ...]
    marks: tuple[str, ...]  # fields with a number: two of them are the marks of two texts
    inner: tuple[str, ...]  # fields with answers about single items
    better: str = ""  # the field that names the better of two texts

    @staticmethod
    @cache
    def of(answer: type[Answer]) -> "_Kind":
        """The way to read `answer`."""
        readers: list[tuple[str, _Reader]] = []
        every: list[str] = []
        marks: list[str] = []
        inner: list[str] = []
        better = ""
        for name, kind in get_type_hints(answer, include_extras=True).items():
            if name not in answer.__struct_fields__ or name == "analysis":
                continue
            if get_origin(kind) is dict:
                item = get_args(kind)[1]
                if _is_answer(item):
                    inner.append(name)
                found = _chosen(item)
                if found is not None:
                    readers.append((name, _each(found[0])))
            else:
                found = _chosen(kind)
                if found is not None:
                    readers.append((name, found[0]))
                    if _is_number(kind):
                        marks.append(name)
                    if {_FIRST, _SECOND} <= set(found[1]):
                        better = name
            every += [] if found is None else found[1]
        return _Kind(tuple(readers), tuple(every), tuple(marks), tuple(inner), better)

    @property
    def may_lead(self) -> bool:
        """Whether texts may be marked side by side in an answer."""
        return bool(self.better or self.inner or len(self.marks) == 2)

    def read(self, answer: Any, options: tuple[float, ...]) -> Iterator[str]:
        """What `answer` chooses."""
        for name, reader in self.readers:
            yield from reader(getattr(answer, name), options)

    def leads(self, answer: Any) -> Iterator[int]:
        """For every two texts marked side by side: 1 if the one shown first is ahead, -1 the second, else 0."""
        if self.better:
            yield {_FIRST: 1, _SECOND: -1}.get(getattr(answer, self.better), 0)
        elif len(self.marks) == 2:
            first, second = (getattr(answer, name) for name in self.marks)
            yield (first > second) - (first < second)
        for name in self.inner:
            items: Mapping[str, Answer] = getattr(answer, name)
            for item in items.values():
                yield from _Kind.of(type(item)).leads(item)


def _is_answer(kind: Any) -> TypeGuard[type[Answer]]:
    return isinstance(kind, type) and issubclass(kind, Answer)


def _is_number(kind: Any) -> bool:
    return kind != Choice and get_origin(kind) is Annotated and get_args(kind)[0] in (int, float)


def _chosen(kind: Any) -> tuple[_Reader, tuple[str, ...]] | None:
    """How a value of this type is read, and what it may be; None for free text and for lists."""
    if kind == Choice:
        return _place, _PLACES
    if _is_answer(kind):
        inner = _Kind.of(kind)
        return (inner.read, inner.values) if inner.readers else None
    if kind is bool:
        return (lambda value, _: (_TRUTH[value],)), _TRUTH
    if get_origin(kind) is Literal:
        return (lambda value, _: (str(value),)), tuple(map(str, get_args(kind)))
    if _is_number(kind):
        return (lambda value, _: (f"{value:g}",)), _steps(kind)
    return None


def _steps(kind: Any) -> tuple[str, ...]:
    """The numbers of a type, as they are said; none of one without bounds."""
    least, most, step = None, None, 1.0
    for one in get_args(kind)[1:]:
        if isinstance(one, msgspec.Meta):
            least, most, step = one.ge, one.le, one.multiple_of or step
    if least is None or most is None:
        return ()
    return tuple(f"{least + place * step:g}" for place in range(round((most - least) / step) + 1))


def _each(reader: _Reader) -> _Reader:
    def read(items: Mapping[str, Any], options: tuple[float, ...]) -> Iterator[str]:
        for item in items.values():
            yield from reader(item, options)

    return read


@lru_cache(maxsize=4_096)
def _place(value: float, options: tuple[float, ...]) -> tuple[str]:
    """Where `value`, or the option nearest to it, stands among `options`: a penalty counts by its size."""
    ordered = sorted(options, key=abs)
    place = min(range(len(ordered)), key=lambda at: abs(ordered[at] - value), default=0)
    return (_PLACES[0] if place == 0 else _PLACES[2] if place == len(ordered) - 1 else _PLACES[1],)
