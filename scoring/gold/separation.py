"""How well items separate a run's systems: an item that does not, or misorders them, says nothing about quality."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from adjudge.judges.plural import plural
from adjudge.scoring.contract.gold import MET, GoldItem
from adjudge.scoring.contract.scorecard import Evidence
from adjudge.scoring.gold.rules import Problem
from adjudge.scoring.kernels.agreement.variance import item_figures

FEWEST_SYSTEMS = 3
ALPHA = 0.05


class ItemSeparation(msgspec.Struct, frozen=True, kw_only=True):
    """One item among `systems`: which share of them meets it, and its correlation with the task's other items.

    `p_negative` is how likely a correlation as negative is by chance; None where it is not defined.
    """

    part: str
    item: str
    systems: int
    share_met: float
    correlation: float | None
    p_negative: float | None


def separation(
    items: Sequence[GoldItem], evidence: Mapping[str, Sequence[Sequence[Evidence]]]
) -> list[ItemSeparation]:
    """The items of one task that reports were judged by, from the evidence of each system's reports on it."""

    def mean(item: GoldItem, several: Sequence[Sequence[Evidence]]) -> float:
        known = [value for lines in several if (value := item.given(lines)) is not None]
        return sum(known) / len(known) if known else np.nan

    given = [[mean(item, several) for several in evidence.values()] for item in items]
    values = np.array(given, dtype=float).reshape(len(items), len(evidence))
    known = [place for place in range(len(items)) if not np.isnan(values[place]).all()]
    if not known:
        return []
    figures = item_figures(values[known])
    return [
        ItemSeparation(
            part=items[place].part,
            item=items[place].item,
            systems=int(figures.n[row]),
            share_met=float(np.mean(np.abs(values[place][~np.isnan(values[place])]) >= MET)),
            correlation=_number(figures.correlation[row]),
            p_negative=_number(figures.p_negative[row]),
        )
        for row, place in enumerate(known)
    ]


def separation_problems(items: Sequence[GoldItem], found: Sequence[ItemSeparation]) -> list[Problem]:
    """Items that every system or none meets, and items that rather the worse systems meet."""
    by_name = {(one.part, one.item): one for one in items}
    problems = []
    for one in found:
        item = by_name[one.part, one.item]
        if one.systems >= FEWEST_SYSTEMS and one.share_met in (0.0, 1.0) and one.correlation is None:
            whom = "every system" if one.share_met else "none"
            if not item.penalty or one.share_met:
                problems.append(Problem.of(item, "no_separation", f"met by {whom} of {one.systems}"))
        elif one.p_negative is not None and one.p_negative <= ALPHA:
            why = f"correlates at {one.correlation:.2f} with the other items over {plural(one.systems, 'system')}"
            problems.append(Problem.of(item, "inverted", why))
    return problems


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
