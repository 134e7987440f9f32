"""People's labels of a run's verdicts: what they say of each line, and a report's scores with their overrides."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import msgspec

from adjudge.engine.runs.items import Item, Label, Stratum, items_of_card, label_readers, read_labels
from adjudge.engine.runs.run import Run
from adjudge.scoring.contract.scorecard import Evidence, Scorecard

__all__ = ["Part", "People", "Report", "Said", "report_of"]

_SAME = 1e-9


class Said(msgspec.Struct, frozen=True):
    """One person's verdict on a line, and whether it is the judge's."""

    label: str
    rater: str
    note: str
    agrees: bool


class Part(msgspec.Struct, frozen=True):
    """An item in one report: what its value adds to the report's."""

    stratum: Stratum
    weight: float
    judge: float
    human: float
    ends: tuple[float, float]


class Report(msgspec.Struct, frozen=True):
    """A report's value by the judge, and its items."""

    value: float
    parts: list[Part]


def report_of(value: float, items: Sequence[Item], labels: Mapping[str, Sequence[str]]) -> Report | None:
    """The report's items with people's `labels` of them; None if they do not make up its `value`."""
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
            parts.append(Part(item.stratum, verdict.weight / full, verdict.value or 0.0, human, ends))
    return Report(value, parts)


class People:
    """The labels in `file`, as `adjudge label` writes them, for `run`. Raises UsageError."""

    def __init__(self, run: Run, file: Path) -> None:
        self._readers = label_readers(run.metrics)
        self._asked_once = run.record.config.repeats == 1
        self._by_item: defaultdict[str, list[Label]] = defaultdict(list)
        self._by_words: defaultdict[tuple[str, str, str], list[Label]] = defaultdict(list)
        self._overrides: dict[str, Label] = {}
        for label in read_labels(file):
            if label.item:
                self._by_item[label.item].append(label)
            else:
                self._by_words[label.system, label.task_id, label.what].append(label)
            if label.verdict:
                self._overrides[label.item] = label

    @property
    def has_overrides(self) -> bool:
        """Whether any label overrides a verdict, of this run or another."""
        return bool(self._overrides)

    def about(self, card: Scorecard) -> dict[int, tuple[Said, ...]]:
        """People's labels on the lines of `card`, by their numbers from 1."""
        found = {}
        for n, item in self._items(card).items():
            named = self._by_item.get(item.id, [])
            worded = [one for one in self._worded(card, item.line) if _is_about(one, card, item.line)]
            said = [
                Said(
                    one.label,
                    one.rater,
                    one.note,
                    one.label in (item.labelled.label, item.line.outcome.words),
                )
                for one in (*named, *worded)
            ]
            if said:
                found[n] = tuple(said)
        return found

    def override(self, item: Item) -> Label | None:
        """The label that overrides the judge's verdict on `item`; of several, the last."""
        label = self._overrides.get(item.id)
        return label if label is not None and label.label in item.labelled.kind.labels else None

    def changes(self, card: Scorecard, items: Collection[Item]) -> dict[str, float | None]:
        """What overrides of the `items` of `card` add to its scores, by metric.

        None for a metric that is not a share of them, or whose judge was asked several times.
        """
        given = {item.id: [label.label] for item in items if (label := self.override(item)) is not None}
        found: dict[str, float | None] = {}
        for metric in sorted(
            {item.labelled.metric for item in items if item.id in given} & card.scores.keys()
        ):
            value = card.scores[metric]
            own = [item for item in items if item.labelled.metric == metric]
            report = None if value is None or not self._asked_once else report_of(value, own, given)
            found[metric] = None if report is None else _change(report)
        return found

    def edited(self, card: Scorecard) -> dict[str, float]:
        """The scores of `card` with people's overrides in the place of the judge's verdicts, where they change any."""
        changes = self.changes(card, self._items(card).values())
        values = ((metric, card.scores[metric], change) for metric, change in changes.items())
        return {
            metric: value + change
            for metric, value, change in values
            if value is not None and change is not None
        }

    def _items(self, card: Scorecard) -> dict[int, Item]:
        read = self._readers.get(card.protocol)
        return {} if read is None or card.repeat else items_of_card(card, read)

    def _worded(self, card: Scorecard, line: Evidence) -> list[Label]:
        return self._by_words.get((card.system, card.task_id, line.what), [])


def _is_about(label: Label, card: Scorecard, line: Evidence) -> bool:
    """Whether a label that is named by its words is about this line of this scorecard."""
    return (
        label.protocol in ("", card.protocol) and label.url in ("", line.url) and label.sample == card.sample
    )


def _change(report: Report) -> float:
    """What people's labels add to the report's value."""
    labelled = (part for part in report.parts if not math.isnan(part.human))
    return sum(part.weight * (part.human - part.judge) for part in labelled)
