"""What people said about the judge's verdicts, line by line of a scorecard."""

from collections import defaultdict
from pathlib import Path

import msgspec

from adjudge.engine.records.items import items_of_card, label_readers
from adjudge.engine.records.labels import Label, read_labels
from adjudge.engine.records.record import RunRecord
from adjudge.scoring.contract.scorecard import Evidence, Scorecard

__all__ = ["People", "Said"]


class Said(msgspec.Struct, frozen=True):
    """One person's verdict on a line, and whether it is the judge's."""

    label: str
    rater: str
    note: str
    agrees: bool


class People:
    """The labels in `file`, as `adjudge label` writes them, for the run of `record`. Raises UsageError."""

    def __init__(self, record: RunRecord, file: Path) -> None:
        self._readers = label_readers(record)
        self._by_item: defaultdict[str, list[Label]] = defaultdict(list)
        self._by_words: defaultdict[tuple[str, str, str], list[Label]] = defaultdict(list)
        for label in read_labels(file):
            if label.item:
                self._by_item[label.item].append(label)
            else:
                self._by_words[label.system, label.task_id, label.what].append(label)

    def about(self, card: Scorecard) -> dict[int, tuple[Said, ...]]:
        """What was said about the lines of `card`, by their numbers from 1."""
        read = self._readers.get(card.protocol)
        if read is None or card.repeat:
            return {}
        found = {}
        for n, item in items_of_card(card, read).items():
            named = self._by_item.get(item.id, [])
            worded = [one for one in self._worded(card, item.line) if _is_about(one, card, item.line)]
            said = [
                Said(one.label, one.rater, one.note, one.label in (item.labelled.label, item.line.outcome))
                for one in (*named, *worded)
            ]
            if said:
                found[n] = tuple(said)
        return found

    def _worded(self, card: Scorecard, line: Evidence) -> list[Label]:
        return self._by_words.get((card.system, card.task_id, line.what), [])


def _is_about(label: Label, card: Scorecard, line: Evidence) -> bool:
    """Whether a label that is named by its words is about this line of this scorecard."""
    return (
        label.protocol in ("", card.protocol) and label.url in ("", line.url) and label.sample == card.sample
    )
