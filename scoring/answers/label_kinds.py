"""The kinds of labels that several protocols share."""

import re

from adjudge.scoring.contract.labels import LabelKind, Labelled
from adjudge.scoring.contract.scorecard import Evidence

__all__ = ["BACKED", "CRITERION", "MATCH", "MET_OR_NOT", "PENALTY", "first_words", "labelled_points"]

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

_POINTS = re.compile(r"(-?[\d.]{1,24}(?:e[+-]?\d{1,3})?) of (-?[\d.]{1,24}(?:e[+-]?\d{1,3})?)")
_ASIDE = re.compile(r" \(|: |, but ")


def first_words(line: Evidence) -> str:
    """The outcome without what is said after it: "supported (900 of 4000 characters shown)" as "supported"."""
    return _ASIDE.split(line.outcome, maxsplit=1)[0].strip()


def labelled_points(line: Evidence, metric: str) -> Labelled | None:
    """The label of a line such as "2 of 3", which `metric` weighs by the most points; None for other lines.

    Where points can only be taken away, it is about that, and weighs by the most that can be.
    """
    found = _POINTS.fullmatch(line.outcome)
    if found is None:
        return Labelled(kind=CRITERION, label="", metric=metric) if line.reason and not line.outcome else None
    try:
        points, best = float(found[1]), float(found[2])
    except ValueError:
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
