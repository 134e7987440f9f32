"""What LiveResearchBench asks besides checklists: problems to be listed, and two reports' depth side by side."""

import re
from typing import Annotated

import msgspec

from adjudge.judges import Answer, Question
from adjudge.judges.lexical import sentences, terms

__all__ = [
    "MOST_PROBLEMS",
    "CitationProblems",
    "ConsistencyProblems",
    "DeeperReport",
    "ListedProblems",
    "Problems",
]

MOST_PROBLEMS = 20  # the map ends at 18

_FIGURE = re.compile(r"\d{2}|\d%|百分之")
_CITED = re.compile(r"\[[0-9]{1,3}[\]†,]|\]\(|https?://")
_FULL = 60.0  # different words of a report that earn half of the marks

Mark = Annotated[int, msgspec.Meta(ge=0, le=5, multiple_of=1)]


class Problem(msgspec.Struct, frozen=True):
    """One problem: where it is, in the report's own words, and what is wrong."""

    place: Annotated[str, msgspec.Meta(max_length=200)]
    problem: Annotated[str, msgspec.Meta(max_length=200)]


class Problems(Answer, frozen=True, kw_only=True):
    """Every problem that was found, up to MOST_PROBLEMS."""

    analysis: Annotated[str, msgspec.Meta(max_length=800)] = ""
    problems: Annotated[list[Problem], msgspec.Meta(max_length=MOST_PROBLEMS)]


class ListedProblems(Question[Problems], frozen=True, kw_only=True):
    """Base of the questions for problems. `date` is the day the report was written for, "" if that is unknown."""

    answer = Problems

    task: str
    date: str

    def fields(self) -> dict[str, str]:
        """The task, and the date, which may be unknown."""
        return {"task": self.task, "date": self.date or "-"}


class ConsistencyProblems(ListedProblems, frozen=True, kw_only=True):
    """Where does the report contradict itself?"""

    words = "contradictions in a report"
    prompt = "live_consistency"

    def lexical(self) -> Problems:
        """None: contradictions are not seen in words."""
        return Problems(problems=[])


class CitationProblems(ListedProblems, frozen=True, kw_only=True):
    """Which statements of the report need a citation and have none?"""

    words = "problems with citations in a report"
    prompt = "live_citations"

    def lexical(self) -> Problems:
        """The sentences with figures that cite nothing."""
        found = [
            Problem(place=one[:200], problem="no citation")
            for one in sentences(self.context["report"])
            if _FIGURE.search(one) and not _CITED.search(one)
        ]
        return Problems(problems=found[:MOST_PROBLEMS])


class Depth(Answer, frozen=True, kw_only=True):
    """Marks of both reports in five dimensions, 0 to 5 each."""

    analysis: Annotated[str, msgspec.Meta(max_length=1_200)] = ""
    first_granularity: Mark
    first_insight: Mark
    first_critique: Mark
    first_evidence: Mark
    first_density: Mark
    second_granularity: Mark
    second_insight: Mark
    second_critique: Mark
    second_evidence: Mark
    second_density: Mark

    @property
    def lead(self) -> int:
        """The first report's marks minus the second's."""
        first = self.first_granularity + self.first_insight + self.first_critique
        second = self.second_granularity + self.second_insight + self.second_critique
        return (
            first
            + self.first_evidence
            + self.first_density
            - second
            - self.second_evidence
            - self.second_density
        )


class DeeperReport(Question[Depth], frozen=True, kw_only=True):
    """How deep is the analysis of two reports, `first` and `second` of the context?"""

    words = "the deeper of two analyses"
    prompt = "live_depth"
    answer = Depth

    task: str

    def lexical(self) -> Depth:
        """Higher marks the more different words a report uses."""
        first, second = (_mark(self.context[name]) for name in ("first", "second"))
        return Depth(
            first_granularity=first,
            first_insight=first,
            first_critique=first,
            first_evidence=first,
            first_density=first,
            second_granularity=second,
            second_insight=second,
            second_critique=second,
            second_evidence=second,
            second_density=second,
        )


def _mark(report: str) -> int:
    words = len(set(terms(report)))
    return round(5 * words / (words + _FULL))
