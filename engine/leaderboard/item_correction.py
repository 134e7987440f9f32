"""Metrics corrected by people's labels of single verdicts, which `adjudge label` drew.

A metric can be corrected if every report's value is the share that its lines of evidence make up, as the protocol says
(`GivesLabels`); one that is clipped, say, is not.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import msgspec
import numpy as np

from adjudge.engine.leaderboard.corrected import Corrected, CorrectedDifference, Correction
from adjudge.engine.records.items import Item, Stratum, labelled_cards
from adjudge.engine.records.labels import read_labels
from adjudge.engine.records.matrices import figure
from adjudge.engine.records.record import RunRecord
from adjudge.scoring.contract.scorecard import Scorecard
from adjudge.scoring.kernels.comparison.labelled_items import LabelledItems, LabelledMean, labelled_mean
from adjudge.scoring.kernels.comparison.paired_tests import paired_t

__all__ = ["item_corrections"]

BASIS = (
    "corrected figures put people's labels in the place of the judge's verdicts; they hold for labels of items that "
    "adjudge label drew"
)
_SAME = 1e-9

Name = tuple[str, str]


class _Part(msgspec.Struct, frozen=True):
    """An item in one report: what its value adds to the report's."""

    stratum: Stratum
    weight: float
    judge: float
    human: float
    ends: tuple[float, float]


class _Report(msgspec.Struct, frozen=True):
    """A report's value by the judge, and its items."""

    value: float
    parts: list[_Part]


_Reports = dict[str, dict[str, list[_Report]]]
"""The reports of a metric, by system and task."""


def item_corrections(records: Sequence[RunRecord], file: str | Path) -> list[Correction]:
    """The corrections of every metric that the items labelled in `file` make up.

    Only the systems and tasks that the records name are looked at. Raises UsageError for a file that cannot be read,
    StoreError.
    """
    labels: dict[str, list[str]] = defaultdict(list)
    for label in read_labels(Path(file)):
        labels[label.item].append(label.label.strip().casefold())
    metrics: dict[Name, _Reports] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    other: set[Name] = set()
    labelled: set[Name] = set()
    for record in records:
        for card, items in labelled_cards(record):
            if card.system not in record.systems or card.task_id not in record.tasks:
                continue
            for metric in {item.labelled.metric for item in items} & card.scores.keys():
                name, own = (card.protocol, metric), [one for one in items if one.labelled.metric == metric]
                value = card.scores[metric]
                found = None if value is None else _report(card, value, own, labels)
                if found is not None:
                    metrics[name][card.system][card.task_id].append(found)
                elif value is not None:
                    other.add(name)
                if any(item.id in labels for item in own):
                    labelled.add(name)
    found_all = [_correction(name, metrics[name]) for name in sorted(labelled - other)]
    return [*found_all, *(_uncorrected(name) for name in sorted(labelled & other))]


def _report(
    card: Scorecard, value: float, items: Sequence[Item], labels: dict[str, list[str]]
) -> _Report | None:
    """The report's items; None if they do not make up its value."""
    counted = [item for item in items if item.labelled.value is not None]
    full = sum(item.labelled.full for item in counted)
    total = sum(item.labelled.weight * (item.labelled.value or 0.0) for item in counted)
    if full <= 0.0 or abs(total / full - value) > _SAME:
        return None
    parts = []
    for item in counted:
        kind, verdict = item.labelled.kind, item.labelled
        if verdict.label and verdict.weight:
            given = [kind.labels[one] for one in labels.get(item.id, ()) if one in kind.labels]
            ends = (min(kind.labels.values()), max(kind.labels.values()))
            human = fmean(given) if given else float("nan")
            parts.append(_Part(item.stratum, verdict.weight / full, verdict.value or 0.0, human, ends))
    return _Report(value, parts)


def _correction(name: Name, reports: _Reports) -> Correction:
    systems = sorted(reports)
    tasks = sorted({task for own in reports.values() for task in own})
    judge = np.array(
        [
            [
                fmean(one.value for one in reports[system][task]) if task in reports[system] else np.nan
                for task in tasks
            ]
            for system in systems
        ]
    )
    raw = paired_t(judge)
    differences = []
    for pair, (first, second) in enumerate(zip(raw.first, raw.second, strict=True)):
        both = ~np.isnan(judge[first] - judge[second])
        sides = [(reports[systems[first]], 1.0), (reports[systems[second]], -1.0)]
        if all(_labelled(own) for own, _ in sides):
            chosen = [task for task, kept in zip(tasks, both, strict=True) if kept]
            differences.append(
                CorrectedDifference(
                    a=systems[first],
                    b=systems[second],
                    raw=figure(raw.mean_difference[pair]),
                    raw_low=figure(raw.low[pair]),
                    raw_high=figure(raw.high[pair]),
                    corrected=_corrected(_mean(sides, chosen)),
                )
            )
    means = {
        system: _corrected(_mean([(reports[system], 1.0)], sorted(reports[system]))) for system in systems
    }
    lacking = [system for system in systems if _labelled(reports[system]) and means[system].value is None]
    why = "verdicts of the judge without any label; label more of the sample"
    return Correction(
        protocol=name[0],
        metric=name[1],
        means=means,
        differences=tuple(differences),
        basis=BASIS,
        notes=tuple(f"{name[0]} {name[1]} of {system} is not corrected: {why}" for system in lacking),
    )


def _uncorrected(name: Name) -> Correction:
    why = "it is not the share that the labelled verdicts make up"
    return Correction(
        protocol=name[0],
        metric=name[1],
        means={},
        differences=(),
        notes=(f"{name[0]} {name[1]} is not corrected by labels: {why}",),
    )


def _labelled(reports: dict[str, list[_Report]]) -> bool:
    every = (one for own in reports.values() for one in own)
    return any(not np.isnan(part.human) for one in every for part in one.parts)


def _mean(sides: Sequence[tuple[dict[str, list[_Report]], float]], tasks: Sequence[str]) -> LabelledMean:
    """The corrected mean over `tasks` of the sum of the sides, each with its sign."""
    scores = [sum(sign * fmean(one.value for one in own[task]) for own, sign in sides) for task in tasks]
    strata: dict[Stratum, int] = {}
    rows = [
        (place, sign * part.weight / len(own[task]), part, strata.setdefault(part.stratum, len(strata)))
        for own, sign in sides
        for place, task in enumerate(tasks)
        for one in own[task]
        for part in one.parts
    ]
    items = LabelledItems(
        task=np.array([place for place, _, _, _ in rows], np.int64),
        weight=np.array([weight for _, weight, _, _ in rows]),
        judge=np.array([part.judge for _, _, part, _ in rows]),
        human=np.array([part.human for _, _, part, _ in rows]),
        stratum=np.array([stratum for _, _, _, stratum in rows], np.int64),
    )
    ends = [part.ends for _, _, part, _ in rows]
    bounds = (min((low for low, _ in ends), default=0.0), max((high for _, high in ends), default=1.0))
    return labelled_mean(np.array(scores, np.float64), items, bounds=bounds)


def _corrected(found: LabelledMean) -> Corrected:
    return Corrected(
        value=figure(found.estimate),
        low=figure(found.low),
        high=figure(found.high),
        power=figure(found.power) or 0.0,
        people=None,
        people_low=None,
        people_high=None,
        n_labelled=found.n_labelled,
        n_unlabelled=found.n_items - found.n_labelled,
    )
