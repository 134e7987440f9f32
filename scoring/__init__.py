"""How a report becomes a score: one package per paper over shared parts, and `kernels` for the numbers.

A protocol of your own builds on these: `Protocol` declares what it needs, `score(case, tools)` asks a `Question`
through `Tools` and returns a `Scorecard`.
"""

from adjudge.judges import Answer, Context, Judgment, Question
from adjudge.scoring.contract.case import Case, Citation, GoldError, Report, ReportUsage, Task
from adjudge.scoring.contract.labels import GivesLabels, LabelKind, Labelled
from adjudge.scoring.contract.protocol import CaseMetrics, Tools, score_case
from adjudge.scoring.contract.protocol import ScoringProtocol as Protocol
from adjudge.scoring.contract.scorecard import (
    Bounds,
    Evidence,
    Metric,
    MetricWords,
    Missing,
    Outcome,
    Partial,
    Scorecard,
    first_missing,
)

__all__ = [
    "Answer",
    "Bounds",
    "Case",
    "CaseMetrics",
    "Citation",
    "Context",
    "Evidence",
    "GivesLabels",
    "GoldError",
    "Judgment",
    "LabelKind",
    "Labelled",
    "Metric",
    "MetricWords",
    "Missing",
    "Outcome",
    "Partial",
    "Protocol",
    "Question",
    "Report",
    "ReportUsage",
    "Scorecard",
    "Task",
    "Tools",
    "first_missing",
    "score_case",
]
