"""Weighted rubrics: a user's own criteria, each asked alone over the one shared context of the report.

The score is the sum of the points given over the sum of all positive points. Other protocols whose judge
gives points for criteria build on `give_points`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Annotated, ClassVar

import msgspec

from adjudge.judges import Answer, Choice, Context, Question
from adjudge.judges.lexical import coverage, rank, terms
from adjudge.scoring.answers.answered import Answered
from adjudge.scoring.answers.parts import Measure, MinAnswered, measured
from adjudge.scoring.contract.case import Case, GoldError
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Evidence, Metric, Scorecard, Value
from adjudge.scoring.rubrics.criteria import Criterion, load_criteria

__all__ = [
    "Criterion",
    "RubricPoints",
    "Rubrics",
    "clipped",
    "give_points",
    "rubric_score",
    "tag_score",
]

_SEEN = 0.4  # share of a criterion's words that a report must use for the embedded judge to call it met
# Words of criteria, not of reports: "Does the report name ...? Yes=2, No=0".
_OF_RUBRICS = re.compile(
    r"\w+\s{0,3}[=＝]\s{0,3}[+-]?\d+|\b(?:reports?|gives?|names?|says?|states?)\b|报告|是否|给出|说明|提到|指出",
    re.IGNORECASE,
)


def rubric_score(given: Iterable[tuple[Criterion, float]]) -> float | None:
    """Points given over all positive points: at most 1, below 0 where penalties prevail; None without any."""
    pairs = list(given)
    full = sum(criterion.full for criterion, _ in pairs)
    return sum(points for _, points in pairs) / full if full else None


def clipped(score: float | None) -> float | None:
    """`score` between 0 and 1."""
    return None if score is None else min(max(score, 0.0), 1.0)


def tag_score(given: Iterable[tuple[Criterion, float]]) -> float | None:
    """`rubric_score` of one tag's criteria; of penalties alone, the points over what there is to lose: -1 to 0."""
    pairs = list(given)
    score = rubric_score(pairs)
    if score is not None or not pairs:
        return score
    return sum(points for _, points in pairs) / -sum(criterion.worst for criterion, _ in pairs)


class PointsGiven(Answer, frozen=True, kw_only=True):
    """How many points a criterion gets: one of its allowed values."""

    analysis: Annotated[str, msgspec.Meta(max_length=600)] = ""
    points: Choice


class RubricPoints(Question[PointsGiven], frozen=True, kw_only=True):
    """How many points does the report get for one criterion?"""

    prompt = "rubric_points"
    answer = PointsGiven

    task: str
    criterion: str
    values: tuple[float, ...]

    @property
    def options(self) -> tuple[float, ...]:
        """The criterion's allowed values."""
        return self.values

    def fields(self) -> dict[str, str]:
        """The task, the criterion, and its values from fewest to most."""
        return {
            "task": self.task,
            "criterion": self.criterion,
            "values": ", ".join(f"{v:g}" for v in self.values),
        }

    def lexical(self) -> PointsGiven:
        """More points (or more penalty) the more of the criterion's words the report uses."""
        words = terms(_OF_RUBRICS.sub(" ", self.criterion))
        seen = coverage(words, _vocabulary(self.context["report"]))
        ordered = sorted(self.values, key=abs)
        steps = tuple(_SEEN + (1 - _SEEN) * step / (len(ordered) - 1) for step in range(len(ordered) - 1))
        return PointsGiven(points=ordered[rank(seen, steps)])


@lru_cache(maxsize=64)
def _vocabulary(text: str) -> frozenset[str]:
    return frozenset(terms(text))


async def give_points(
    criteria: Sequence[Criterion], case: Case, tools: Tools
) -> tuple[list[Answered[Criterion]], list[Evidence]]:
    """Ask for each criterion alone, all over the one context of the report: answers and evidence, in their order."""
    report = Context.of(report=case.report.text)
    questions = (
        RubricPoints(
            context=report,
            language=case.task.language,
            task=case.task.prompt,
            criterion=criterion.criterion,
            values=criterion.options,
        )
        for criterion in criteria
    )
    judgments = await tools.ask_all(questions)
    answers = [
        Answered.of(criterion, judgment, _points, criterion.worst, criterion.best)
        for criterion, judgment in zip(criteria, judgments, strict=True)
    ]
    evidence = [
        answer.evidence(answer.item.criterion, _of_full(answer.item), answer.item.id) for answer in answers
    ]
    return answers, evidence


def _points(given: PointsGiven) -> float:
    return given.points


def _of_full(criterion: Criterion) -> Callable[[float], str]:
    return lambda points: f"{points:g} of {criterion.best:g}"


class Rubrics(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score a report by the task's own criteria (gold `rubrics`) and those of `file`, which every node must reach.

    Metrics: `score` (negative where penalties prevail), `score_clipped`, and `tag:NAME` for every tag (`tag_score`).
    Each is over the criteria that were answered, and has a value if those are the share `min_answered` of its own.
    """

    name: ClassVar[str] = "rubrics"

    file: str | None = None
    min_answered: MinAnswered = 0.8

    def __post_init__(self) -> None:
        if self.file is not None:
            load_criteria(self.file)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics over the criteria of `file` that are for every task; a task's gold may add tags and penalties."""
        return self._metrics(
            [] if self.file is None else [c for c in load_criteria(self.file) if c.task is None]
        )

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        """The metrics of this task, its tags and its lowest score included. Raises GoldError."""
        return self._metrics(self.criteria(case))

    def criteria(self, case: Case) -> list[Criterion]:
        """The task's criteria, then those of the file. Raises GoldError if none has positive points."""
        general = () if self.file is None else load_criteria(self.file)
        criteria = [criterion for criterion in general if criterion.task in (None, case.task.id)]
        if self.name in case.task.gold or not criteria:
            criteria = [*case.gold(self.name, tuple[Criterion, ...]), *criteria]
        if not sum(criterion.full for criterion in criteria):
            raise GoldError("gold_invalid", f"task {case.task.id}: no criterion has positive points")
        return criteria

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """One question per criterion; one score in all, and one per tag."""
        criteria = self.criteria(case)
        answers, evidence = await give_points(criteria, case, tools)

        scores: dict[str, Value] = {
            "score": measured(answers, rubric_score, self.min_answered),
            "score_clipped": measured(answers, _clipped_score, self.min_answered),
        }
        for tag in _tags(criteria):
            tagged = [answer for answer in answers if tag in answer.item.tags]
            scores[f"tag:{tag}"] = measured(tagged, tag_score, self.min_answered)
        return Scorecard.of(self.name, case, scores, evidence)

    def _metrics(self, criteria: Sequence[Criterion]) -> tuple[Metric, ...]:
        metrics = [
            Metric(name="score", worst=_lowest(rubric_score, criteria), headline=True),
            Metric(name="score_clipped"),
        ]
        for tag in _tags(criteria):
            tagged = [criterion for criterion in criteria if tag in criterion.tags]
            metrics.append(Metric(name=f"tag:{tag}", worst=_lowest(tag_score, tagged)))
        return tuple(metrics)


def _clipped_score(given: Iterable[tuple[Criterion, float]]) -> float | None:
    return clipped(rubric_score(given))


def _lowest(measure: Measure[Criterion], criteria: Sequence[Criterion]) -> float:
    """The least that `measure` can be over `criteria`; 0 where it is not defined."""
    return measure([(criterion, criterion.worst) for criterion in criteria]) or 0.0


def _tags(criteria: Iterable[Criterion]) -> list[str]:
    """All tags, in order of first use."""
    return list(dict.fromkeys(tag for criterion in criteria for tag in criterion.tags))
