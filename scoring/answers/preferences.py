"""Reports on one task, judged against each other: two at a time, or a list of them.

A comparison is asked in one order and in the reverse so that it does not depend on the order of the reports. Both
questions give marks by position; only which of two marks is higher matters.
"""

from typing import Annotated, Any, Literal

import msgspec

from adjudge.judges import Answer, Context, Question, numbered
from adjudge.judges.lexical import coverage, terms

COMPARING = "comparing"
"""The name that stands for a protocol where reports are compared."""
LISTED = 8
"""The most reports that one question compares."""
_EQUAL = 0.01  # lexical scores that differ by no more are a tie
_WORDS = 400.0  # different words at which a report's own are worth half of what they can be
_MARKS = {"first": (1.0, 0.0), "tie": (0.5, 0.5), "second": (0.0, 1.0)}

Mark = Annotated[float, msgspec.Meta(ge=0, le=10, multiple_of=0.5)]
Analysis = Annotated[str, msgspec.Meta(max_length=2_400, extra_json_schema={"shared": True})]


class Preferred(Answer, frozen=True, kw_only=True):
    """Which of two reports serves the task better."""

    analysis: Annotated[str, msgspec.Meta(max_length=1_200)] = ""
    better: Literal["first", "second", "tie"]


class BetterOfTwo(Question[Preferred], frozen=True, kw_only=True):
    """Which serves the task better, the report in the context (the first) or the other (the second)?"""

    words = "the better of two reports"
    prompt = "group_pair"
    answer = Preferred

    task: str
    second: str

    def lexical(self) -> Preferred:
        """The report that uses more of the task's words, and more words of its own."""
        first, second = (_lexical(self.task, text) for text in (self.context["report"], self.second))
        if abs(first - second) <= _EQUAL:
            return Preferred(better="tie")
        return Preferred(better="first" if first > second else "second")


class Listed(Answer, frozen=True, kw_only=True):
    """The mark of one report of a list."""

    analysis: Analysis = ""
    mark: Mark


class ListedMarks(Answer, frozen=True, kw_only=True):
    """The mark of each report of a list."""

    items: dict[str, Listed]


class MarksOfList(Question[ListedMarks], frozen=True, kw_only=True):
    """How well does each report of the context (c01, c02, ...) serve the task, beside the others?"""

    words = "marks of several reports side by side"
    prompt = "group_list"
    answer = ListedMarks

    task: str

    @property
    def count(self) -> int:
        """One item per report."""
        return len(self.context.sections)

    def lexical(self) -> ListedMarks:
        """The lexical score of each report, taken alone."""
        scores = [_lexical(self.task, section.text) for section in self.context.sections]
        marks = [Listed(mark=round(20 * score) / 2) for score in scores]
        return ListedMarks(items=dict(zip(numbered(len(marks)), marks, strict=True)))


def preference(task: str, language: str, shown: tuple[str, ...]) -> Question[Any]:
    """The question that compares the reports `shown`, in this order; at least two, at most `LISTED`."""
    if len(shown) == 2:
        first, second = shown
        return BetterOfTwo(context=Context.of(report=first), language=language, task=task, second=second)
    context = Context.of(**dict(zip(numbered(len(shown)), shown, strict=True)))
    return MarksOfList(context=context, language=language, task=task)


def marks_in(answer: Preferred | ListedMarks) -> tuple[float, ...]:
    """The mark of each report in an answer to `preference`, in the order shown; only their order means something."""
    if isinstance(answer, Preferred):
        return _MARKS[answer.better]
    return tuple(answer.items[name].mark for name in numbered(len(answer.items)))


def _lexical(task: str, report: str) -> float:
    words = set(terms(report))
    return (coverage(terms(task), words) + len(words) / (len(words) + _WORDS)) / 2
