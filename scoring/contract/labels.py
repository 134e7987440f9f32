"""Lines of evidence as labels from a closed list, so that people can answer what the judge answered.

Several protocols share the kinds of labels here.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec

from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.scorecard import Evidence

__all__ = [
    "BACKED",
    "MATCH",
    "MATCHED",
    "MET_LABELS",
    "MET_OR_NOT",
    "GivesLabels",
    "LabelKind",
    "Labelled",
    "ScoresLabels",
    "labelled_points",
]


class LabelKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of verdict: its `name`, the `question` to people in plain words, and every label that answers it.

    `labels` gives each label what it counts in the metric, from -1 to 1. `shows` names the fields of the judge's
    question, besides its context, that an answer needs.
    """

    name: str
    question: str
    labels: dict[str, float]
    shows: tuple[str, ...] = ()


class Labelled(msgspec.Struct, frozen=True, kw_only=True):
    """A line of evidence as one of the labels of its `kind`, "" where the judge gave none.

    `metric` is the sum of `weight` * `value` over the report's lines, divided by the sum of `full`; "" where no metric
    is such a share. A line without a `value` is left out of both sums.
    """

    kind: LabelKind
    label: str
    metric: str = ""
    value: float | None = None
    weight: float = 1.0
    full: float = 1.0

    @classmethod
    def of(cls, kind: LabelKind, label: str, metric: str = "") -> "Labelled":
        """A line that counts what its label counts, as much as any other line."""
        return cls(kind=kind, label=label, metric=metric, value=kind.labels.get(label))


@runtime_checkable
class GivesLabels(Protocol):
    """A protocol whose evidence people can label.

    `labelled` needs no options of the protocol.
    """

    @staticmethod
    def labelled(line: Evidence) -> Labelled | None:
        """The label of a line of evidence; None for a line that has none of this kind."""
        ...


@runtime_checkable
class ScoresLabels(GivesLabels, Protocol):
    """A protocol with metrics that follow from labels, though they are no shares of them.

    `by_labels` needs no options of the protocol.
    """

    @staticmethod
    def by_labels(case: Case, labels: Sequence[str]) -> dict[str, float]:
        """The metrics of a report by labels of all its lines that can be labelled; none where more decides.

        Raises GoldError.
        """
        ...


BACKED = LabelKind(
    name="backed",
    question="Does the source support the statement?",
    labels={"supported": 1.0, "unsupported": 0.0},
)
CRITERION = LabelKind(
    name="criterion",
    question="Does the report meet the criterion?",
    labels={"met": 1.0, "partly met": 0.5, "not met": 0.0},
)
MET_OR_NOT = LabelKind(
    name="criterion",
    question="Does the report meet the criterion?",
    labels={"met": 1.0, "not met": 0.0},
)
MET_LABELS: dict[str, str] = {"met": "met", "unmet": "not met"}
"""The label of MET_OR_NOT for each kind of outcome that has one."""
PENALTY = LabelKind(
    name="penalty",
    question="Does the report do what is described, for which points are taken away?",
    labels={"yes": -1.0, "no": 0.0},
)
MATCH = LabelKind(
    name="match",
    question="Does the claim say the same as one of the reference answers?",
    labels={"yes": 1.0, "no": 0.0},
    shows=("references",),
)
MATCHED: dict[str, str] = {"matched": "yes", "unmatched": "no"}
"""The label of MATCH for each kind of outcome that has one."""


def labelled_points(line: Evidence, metric: str) -> Labelled | None:
    """The label of a criterion with points, which `metric` weighs by the most points; None for other lines.

    Where points can only be taken away, it is about that, and weighs by the most that can be.
    """
    points, best = line.outcome.points, line.outcome.most
    if line.outcome.kind == "missing":
        return Labelled(kind=CRITERION, label="", metric=metric) if line.judgment else None
    if points is None or best is None:
        return None
    if best <= 0.0:
        lost = -(line.worst or min(points, 0.0))
        return Labelled(
            kind=PENALTY,
            label="yes" if points < 0.0 else "no",
            metric=metric,
            value=points / lost if lost else 0.0,
            weight=lost,
            full=0.0,
        )
    label = "met" if points >= best else "partly met" if points > 0.0 else "not met"
    return Labelled(kind=CRITERION, label=label, metric=metric, value=points / best, weight=best, full=best)
