"""What a report does with the pages of a sandbox by their roles: counts of one report, rates pooled over tasks."""

from collections.abc import Sequence

from adjudge.scoring.answered import Answered
from adjudge.scoring.grounding import Pair
from adjudge.scoring.sandbox import Cited, Sandbox
from adjudge.scoring.scorecard import Metric, Missing, Value

__all__ = ["COUNTS", "POOLED", "role_counts"]

ROLES = ("supportive", "distractor", "noise")

COUNTS = (
    Metric(name="cited", best=None),
    *(
        Metric(name=f"{count}:{role}", best=None)
        for role in ROLES
        for count in ("cited", "pairs", "supported")
    ),
)
POOLED = (
    *(Metric(name=f"fa:{role}", scale=100.0, ratio=(f"supported:{role}", f"pairs:{role}")) for role in ROLES),
    *(Metric(name=f"share:{role}", scale=100.0, ratio=(f"cited:{role}", "cited")) for role in ROLES),
)


def role_counts(pairs: Sequence[Answered[Pair]], sandbox: Sandbox, cited: Cited) -> dict[str, Value]:
    """For pages of each role: how many are cited, (claim, source) pairs, and how many of those are supported."""
    roles = {place: source.role for place, source in enumerate(sandbox.sources)}
    counts: dict[str, Value] = {"cited": float(sum(roles[place] in ROLES for place in cited.sources))}
    for role in ROLES:
        values = [
            answer.value
            for answer in pairs
            if answer.item.source is not None and roles[answer.item.source] == role
        ]
        missing = next((value for value in values if isinstance(value, Missing)), None)
        counts[f"cited:{role}"] = float(sum(roles[place] == role for place in cited.sources))
        counts[f"pairs:{role}"] = float(len(values))
        counts[f"supported:{role}"] = missing or float(sum(value == 1 for value in values))
    return counts
