"""Metrics by people's verdicts beside the judge's, on reports that people labelled whole (LiveDRBench, Table 11).

The run's tasks and reports are read again for what verdicts alone do not say: how much was predicted, and expected.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import fmean

import msgspec

from adjudge.engine.config.protocols import protocol_loaders
from adjudge.engine.errors import UsageError
from adjudge.engine.runs.choice import chosen_dataset
from adjudge.engine.runs.run import Run
from adjudge.scoring.contract.case import Case, GoldError
from adjudge.scoring.contract.labels import ScoresLabels

__all__ = ["ByPeople", "by_people"]


class ByPeople(msgspec.Struct, frozen=True, kw_only=True):
    """A metric by the verdicts of `people` and of the `judge`, of one kind.

    Both are means over the `n_reports` whose every verdict people gave.
    """

    protocol: str
    kind: str
    metric: str
    people: float
    judge: float
    n_reports: int


def by_people(run: Run, labels: Mapping[str, str]) -> list[ByPeople]:
    """The metrics that people's `labels` of the run's items give; none if its tasks and reports are gone.

    Raises StoreError.
    """
    found: defaultdict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for name, people, judge in _values(run, labels):
        found[name].append((people, judge))
    return [
        ByPeople(
            protocol=protocol,
            kind=kind,
            metric=metric,
            people=fmean(people for people, _ in pairs),
            judge=fmean(judge for _, judge in pairs),
            n_reports=len(pairs),
        )
        for (protocol, kind, metric), pairs in found.items()
    ]


def _values(run: Run, labels: Mapping[str, str]) -> Iterator[tuple[tuple[str, str, str], float, float]]:
    """Protocol, kind and metric with the value by people and by the judge, of every report that is labelled whole."""
    scoring = _scoring(run)
    whole = []
    for card, every in run.labelled_cards():
        items = [item for item in every if item.labelled.label]  # those with a verdict of the judge
        if card.protocol in scoring and items and all(item.id in labels for item in items):
            whole.append((card, items))
    if not whole or run.record.recorded:
        return
    try:
        dataset = chosen_dataset(run.config)
    except UsageError:
        return
    reports = {(one.system, one.task_id, one.sample): one for one in dataset.reports}
    for card, items in whole:
        report = reports.get((card.system, card.task_id, card.sample))
        if report is None:
            continue
        case = Case(task=dataset.tasks[card.task_id], report=report.load())
        try:
            given = scoring[card.protocol].by_labels(case, [labels[item.id] for item in items])
        except GoldError:
            continue
        for metric, people in given.items():
            judge = card.scores.get(metric)
            if judge is not None:
                yield (card.protocol, items[0].labelled.kind.name, metric), people, judge


def _scoring(run: Run) -> dict[str, ScoresLabels]:
    """The run's protocols with metrics that labels give, by name."""
    loaders = protocol_loaders()
    kinds = {name: loaders[name]() for name in run.metrics if name in loaders}
    return {name: kind for name, kind in kinds.items() if isinstance(kind, ScoresLabels)}
