"""Which of a run's verdicts people's labels are for."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from adjudge.engine.errors import UsageError
from adjudge.engine.records.items import Stratum, items_of, stratum_sizes
from adjudge.engine.records.labels import Label, read_labels
from adjudge.engine.records.record import RunRecord
from adjudge.engine.store import Place
from adjudge.engine.store.scorecards import run_cards

__all__ = ["Given", "GivenLabels", "labels_given"]

_NAMED = 5
_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,12})?")
_ASIDE = re.compile(r"(?:(-?\d[\d.]{0,20}) of |(\w[\w-]{0,40}) \().*", re.DOTALL)


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict of the judge ("" where it gave none) with people's labels of it, by rater.

    `stratum` is what it was drawn from, None if the labels name it by its words.
    """

    protocol: str
    kind: str
    task_id: str
    verdict: str
    stratum: Stratum | None
    labels: dict[str, str]


class GivenLabels(msgspec.Struct, frozen=True, kw_only=True):
    """The labels that are for a run, the first of those that are not, and how many items the run has by stratum."""

    given: list[Given]
    sizes: Counter[Stratum]
    left_out: str


def labels_given(record: RunRecord, file: Path) -> GivenLabels:
    """The verdicts of a run that the labels in `file` are for.

    Raises UsageError for a file that cannot be read, a label that fits several different verdicts or is not one of its
    kind, two labels of one item by one rater, and if no label is for the run; StoreError.
    """
    labels = read_labels(file)
    numbered = list(enumerate(labels, 1))
    drawn, sizes, unknown = _by_item(record, file, [one for one in numbered if one[1].item])
    worded, absent = _by_words(record, file, [one for one in numbered if not one[1].item])
    given = [*drawn, *worded]
    if not given:
        raise UsageError(f"labels: no label in {file} is for this run; check task_id, system and what")
    named = [*unknown, *absent]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return GivenLabels(given=given, sizes=sizes, left_out=", ".join(named[:_NAMED]) + more)


Numbered = Sequence[tuple[int, Label]]


def _by_item(
    record: RunRecord, file: Path, labels: Numbered
) -> tuple[list[Given], Counter[Stratum], list[str]]:
    """The labels that name items as `adjudge label` does."""
    if not labels:
        return [], Counter(), []
    items = {item.id: item for item in items_of(record)}
    given: dict[str, Given] = {}
    absent = []
    for number, label in labels:
        item = items.get(label.item)
        if item is None:
            absent.append(f"item {label.item!r}")
            continue
        kind, said = item.labelled.kind, label.label.strip().casefold()
        if said not in kind.labels:
            raise UsageError(
                f"labels: {file}, label {number}: {label.label!r} is unknown; use one of {', '.join(kind.labels)}"
            )
        one = Given(
            protocol=item.protocol,
            kind=kind.name,
            task_id=item.task_id,
            verdict=item.labelled.label,
            stratum=item.stratum,
            labels={},
        )
        given.setdefault(item.id, one).labels[label.rater] = said
    return list(given.values()), stratum_sizes(items.values()), absent


class _Line(msgspec.Struct, frozen=True):
    """What was judged, in the run; `verdict` is "" where the judge gave none."""

    protocol: str
    place: int
    verdict: str


_Key = tuple[str, str, str, int]


def _by_words(record: RunRecord, file: Path, labels: Numbered) -> tuple[list[Given], list[str]]:
    """The labels that name a verdict by the words of the evidence."""
    if not labels:
        return [], []
    lines = _lines(record, {(one.task_id, one.system) for _, one in labels})
    given: dict[_Line, Given] = {}
    absent = []
    for number, label in labels:
        fitting = set(_fitting(lines, label))
        if not fitting:
            absent.append(f"{label.what!r} of {label.system!r} on task {label.task_id!r}")
            continue
        if len({(one.protocol, one.verdict) for one in fitting}) > 1:
            raise UsageError(
                f"labels: {file}, label {number}: fits several verdicts; add url, protocol or sample"
            )
        line = min(fitting, key=lambda one: one.place)
        one = Given(
            protocol=line.protocol,
            kind="",
            task_id=label.task_id,
            verdict=line.verdict,
            stratum=None,
            labels={},
        )
        by = given.setdefault(line, one).labels
        if by.setdefault(label.rater, _plain(label.label)) != _plain(label.label):
            raise UsageError(
                f"labels: {file}, label {number}: {label.rater!r} labelled this before and differently; keep one"
            )
    return list(given.values()), absent


def _lines(record: RunRecord, wanted: set[tuple[str, str]]) -> dict[_Key, list[tuple[str, _Line]]]:
    """What was judged of the reports that were labelled, each with its URL, by task, system, wording and sample."""
    found: dict[_Key, list[tuple[str, _Line]]] = defaultdict(list)
    place = 0
    for card in run_cards(Place.of(record.config.store), record.run):
        if card.repeat or (card.task_id, card.system) not in wanted:
            continue
        for line in card.evidence:
            place += 1
            verdict = "" if line.reason else _plain(line.outcome)
            key = (card.task_id, card.system, line.what.strip(), card.sample)
            found[key].append((line.url, _Line(card.protocol, place, verdict)))
    return found


def _fitting(lines: dict[_Key, list[tuple[str, _Line]]], label: Label) -> Iterator[_Line]:
    for url, line in lines.get((label.task_id, label.system, label.what.strip(), label.sample), ()):
        if label.url in ("", url) and label.protocol in ("", line.protocol):
            yield line


def _plain(verdict: str) -> str:
    """A verdict as it is compared: without what is said beside it, "1.0 of 2" as 1."""
    text = verdict.strip().casefold()
    said = _ASIDE.fullmatch(text)
    text = (said[1] or said[2]) if said else text
    return f"{float(text):g}" if _NUMBER.fullmatch(text) else text
