"""Key points that a report should make: which it supports, omits or contradicts (the shape of DeepResearchGym).

`support` is the share of a task's key points that the report makes (KPR), `contradiction` the share that it speaks
against (KPC), both by the points' weights; what is neither is omitted. A point without a verdict is missing by itself:
a figure has a value over the others if enough are there, and bounds with the missing ones at worst and best.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import msgspec

from adjudge.judges import Answer, Context
from adjudge.scoring.answers.numbered import Numbered, batches
from adjudge.scoring.answers.parts import Answered, MinAnswered, measured
from adjudge.scoring.contract.case import Case, GoldError
from adjudge.scoring.contract.labels import LabelKind, Labelled
from adjudge.scoring.contract.protocol import ExplainedCriterion, Tools
from adjudge.scoring.contract.scorecard import (
    MISSING,
    Evidence,
    Metric,
    MetricWords,
    Missing,
    Outcome,
    OutcomeKind,
    Scorecard,
    Value,
)
from adjudge.scoring.rubrics.asking import lexical_level
from adjudge.scoring.rubrics.figures import MAX_CRITERIA

__all__ = ["OUTCOMES", "KeyPoint", "KeyPoints", "Made", "PointVerdicts", "PointsMade"]

KEYPOINTS = MetricWords(
    source="adjudge, in the shape of DeepResearchGym",
    of={
        "support": "The key points that the report makes, by their weights (KPR).",
        "contradiction": "The key points that the report contradicts, by their weights (KPC).",
        "omission": "The key points that the report neither makes nor contradicts, by their weights.",
    },
)

Made = Literal["supported", "omitted", "contradicted"]
OUTCOMES: dict[Made, Outcome] = {
    "supported": Outcome("met", words="supported"),
    "omitted": Outcome("unmet", words="omitted"),
    "contradicted": Outcome("problem", words="contradicted"),
}
_LABELS: dict[OutcomeKind, str] = {"met": "supported", "unmet": "omitted", "problem": "contradicted"}
POINT = LabelKind(
    name="key point",
    question="Does the report make the point, leave it out, or contradict it?",
    labels={"supported": 1.0, "omitted": 0.0, "contradicted": 0.0},
)


class KeyPoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A point, how much it weighs, and a name for it."""

    point: Annotated[str, msgspec.Meta(pattern=r"\S")]
    weight: Annotated[float, msgspec.Meta(gt=0, le=1e9)] = 1.0
    id: str = ""


class PointVerdicts(Answer, frozen=True, kw_only=True):
    """What the report does with each numbered key point."""

    analysis: Annotated[str, msgspec.Meta(max_length=1_000)] = ""
    items: dict[str, Made]


class PointsMade(Numbered[PointVerdicts], frozen=True, kw_only=True):
    """Which of these key points does the report (context) make, leave out or contradict?"""

    words = "key points that a report makes"
    prompt = "key_points"
    answer = PointVerdicts
    listed = "points"

    task: str
    points: tuple[str, ...]

    def lexical(self) -> PointVerdicts:
        """By words and figures alone, which show no contradiction."""
        report = self.context["report"]
        found: list[Made] = [
            "supported" if lexical_level(point, report, 2) else "omitted" for point in self.points
        ]
        return PointVerdicts(items=self.keyed(found))


class KeyPoints(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score a report by the task's key points (gold `keypoints`: a list of `point`, `weight`, `id`).

    `support`, `contradiction` and `omission` are shares by weight that sum to 1 where every point has a verdict.
    """

    name: ClassVar[str] = "keypoints"
    words: ClassVar = KEYPOINTS

    min_answered: MinAnswered = 0.8
    """The share of its parts that a metric needs to have a value."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Support first, which ranks."""
        return (
            Metric(name="support", scale=100, headline=True),
            Metric(name="contradiction", scale=100, worst=1.0, best=0.0, lower_is_better=True),
            Metric(name="omission", scale=100, worst=1.0, best=0.0, lower_is_better=True),
        )

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        """`metrics`. Raises GoldError."""
        self._points(case)
        return self.metrics

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """Ask for the points, 20 at a time, over the one report. Raises GoldError."""
        points = self._points(case)
        context = Context.of(report=case.report.text)
        asked = [
            PointsMade(
                context=context,
                language=case.task.language,
                task=case.task.prompt,
                points=tuple(one.point for one in batch),
            )
            for batch in batches(points)
        ]
        judgments = await tools.ask_all(asked)
        evidence: list[Evidence] = []
        found: list[tuple[KeyPoint, Made | Missing, str]] = []
        for batch, question, judgment in zip(batches(points), asked, judgments, strict=True):
            missing = Missing(judgment.reason or "judge_unparseable")
            for point, key in zip(batch, question.keyed(batch), strict=True):
                made = missing if judgment.answer is None else judgment.answer.items[key]
                found.append((point, made, judgment.key.hex()))
                lost = isinstance(made, Missing)
                evidence.append(
                    Evidence(
                        what=point.point,
                        id=point.id,
                        outcome=MISSING if isinstance(made, Missing) else OUTCOMES[made],
                        judgment=judgment.key.hex(),
                        reason=missing.reason if lost else "",
                    )
                )
        values: dict[str, Value] = {
            name: measured(
                [
                    Answered(
                        point,
                        made if isinstance(made, Missing) else float(made == kind),
                        0.0,
                        1.0,
                        judgment,
                    )
                    for point, made, judgment in found
                ],
                _share,
                self.min_answered,
            )
            for name, kind in (
                ("support", "supported"),
                ("contradiction", "contradicted"),
                ("omission", "omitted"),
            )
        }
        return Scorecard.of(self.name, case, values, evidence)

    async def explained(self, case: Case, tools: Tools) -> list[ExplainedCriterion]:
        """The points with their share of the weights. Raises GoldError."""
        points = self._points(case)
        whole = sum(one.weight for one in points)
        return [ExplainedCriterion(what=one.point, weight=one.weight / whole) for one in points]

    @staticmethod
    def labelled(line: Evidence) -> Labelled | None:
        """What the report does with a point; only support counts."""
        return Labelled.of(POINT, _LABELS.get(line.outcome.kind, ""))

    def _points(self, case: Case) -> tuple[KeyPoint, ...]:
        points = case.gold(self.name, tuple[KeyPoint, ...])
        if not 0 < len(points) <= MAX_CRITERIA:
            raise GoldError(
                "gold_invalid", f"task {case.task.id}: {len(points):,} key points, 1 to {MAX_CRITERIA:,}"
            )
        return points


def _share(found: Sequence[tuple[KeyPoint, float]]) -> float:
    return sum(point.weight * value for point, value in found) / sum(point.weight for point, _ in found)
