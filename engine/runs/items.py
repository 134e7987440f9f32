"""The single verdicts of a run's judge that people can label, statements, criteria or claims, and people's labels."""

import csv
import hashlib
import io
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from adjudge.engine.config.protocols import protocol_loaders
from adjudge.engine.errors import UsageError
from adjudge.fetchers.separated import separator_of
from adjudge.scoring.contract.labels import GivesLabels, Labelled
from adjudge.scoring.contract.scorecard import Evidence, Scorecard

__all__ = [
    "Item",
    "Label",
    "Stratum",
    "items_of_card",
    "label_readers",
    "labelled_cards",
    "read_labels",
    "read_rows",
    "sampled_labels",
    "stratum_sizes",
]

_log = logging.getLogger(__name__)

T = TypeVar("T")

LabelReader = Callable[[Evidence], Labelled | None]


class Stratum(NamedTuple):
    """The items between which a sample does not choose: those of one system with one verdict of the judge."""

    protocol: str
    kind: str
    system: str
    label: str


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict of the judge. `id` names it without telling system, report or verdict."""

    id: str
    protocol: str
    system: str
    task_id: str
    sample: int
    line: Evidence
    labelled: Labelled

    @property
    def stratum(self) -> Stratum:
        """The stratum that it is drawn from."""
        return Stratum(self.protocol, self.labelled.kind.name, self.system, self.labelled.label)


def label_readers(protocols: Iterable[str]) -> dict[str, LabelReader]:
    """How the evidence of each of `protocols` is read, for those whose evidence people can label."""
    loaders = protocol_loaders()
    found = {name: loaders[name]() for name in protocols if name in loaders}
    return {name: kind.labelled for name, kind in found.items() if isinstance(kind, GivesLabels)}


def labelled_cards(
    cards: Iterable[Scorecard], readers: Mapping[str, LabelReader]
) -> Iterator[tuple[Scorecard, list[Item]]]:
    """The scorecards of the judge's first repeat, each with its lines that are read as labels, "" among them."""
    for card in cards:
        if not card.repeat and not card.rival and card.protocol in readers:
            yield card, list(items_of_card(card, readers[card.protocol]).values())


def stratum_sizes(items: Iterable[Item]) -> Counter[Stratum]:
    """How many of `items` each stratum has."""
    return Counter(item.stratum for item in items)


def items_of_card(card: Scorecard, read: LabelReader) -> dict[int, Item]:
    """The lines of a scorecard that are read as labels, "" among them, by their numbers from 1."""
    found: dict[int, Item] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for n, line in enumerate(card.evidence, 1):
        labelled = read(line)
        seen[line.what, line.url] += 1
        if labelled is not None:
            identity = (card.protocol, card.system, card.task_id, str(card.sample), line.what, line.url)
            found[n] = Item(
                id=_id(*identity, str(seen[line.what, line.url])),
                protocol=card.protocol,
                system=card.system,
                task_id=card.task_id,
                sample=card.sample,
                line=line,
                labelled=labelled,
            )
    return found


def _id(*names: str) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for name in names:
        raw = name.encode("utf-8", "surrogatepass")
        digest.update(b"%d " % len(raw) + raw)
    return f"v{digest.hexdigest()}"  # a letter first: a spreadsheet takes digits for a number


class Label(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One person's verdict on one item, or, with an empty `label`, none: it was `skipped`, or taken back.

    An item is named by its `item`, as `adjudge label` names it, or by `task_id`, `system` and `what`, as the evidence
    of the report words it (`adjudge show`). `label` is one of the labels of the item's kind; for an item named by its
    words, it is a word of the judge's verdicts or the points of a rubric. `url`, `protocol` and `sample` are needed
    only where `what` alone fits several verdicts. A label with a `verdict` overrides this one of the judge, which its
    rater saw; the `note` then says why.
    """

    item: str = ""
    task_id: str = ""
    system: str = ""
    what: str = ""
    label: str = ""
    rater: str = ""
    url: str = ""
    protocol: str = ""
    sample: int = 0
    note: str = ""
    skipped: bool = False
    verdict: str = ""

    def __post_init__(self) -> None:
        if not self.item:
            for name in ("task_id", "system", "what", "label"):
                if not getattr(self, name):
                    raise ValueError(f"needs `{name}`, or the `item` that adjudge label gives it")


def read_labels(file: Path) -> list[Label]:
    """The labels in `file`: CSV if its name ends in .csv, else JSON Lines. Raises UsageError.

    Of several for one `item` by one rater the last counts; empty ones are left out.
    """
    found = read_rows(file, Label, "label")
    if not found:
        raise UsageError(f"labels: {file}: no labels; write some with `adjudge label RUN --out {file}`")
    standing = [label for label in standing_labels(found) if label.label]
    if not standing:
        raise UsageError(f"labels: {file}: every label is empty; fill some in")
    return standing


def read_rows(file: Path, kind: type[T], one: str) -> list[T]:
    """The rows of `file`, each a `kind`: CSV if its name ends in .csv, else JSON Lines. Raises UsageError.

    `one` is what a row is, in messages.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
        rows = _cells(text) if file.suffix == ".csv" else _lines(text, file)
    except OSError as error:
        raise UsageError(f"{one}s: {file} cannot be read: {error.strerror}; correct the path") from error
    except (UnicodeDecodeError, csv.Error, msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"{one}s: {file} cannot be read: {error}") from error
    found = []
    for number, row in enumerate(rows, 1):
        try:
            found.append(msgspec.convert(row, kind, strict=False))
        except msgspec.ValidationError as error:
            raise UsageError(f"{one}s: {file}, {one} {number}: {error}") from error
    return found


def sampled_labels(file: Path) -> list[Label]:
    """The labels in `file` that were given without sight of the judge's verdict. Raises UsageError."""
    return [label for label in read_labels(file) if not label.verdict]


def standing_labels(labels: Iterable[Label]) -> list[Label]:
    """`labels` without those that a later one for the same item by the same rater replaced."""
    standing: dict[object, Label] = {}
    for place, label in enumerate(labels):
        key: object = (label.item, label.rater) if label.item else place
        standing.pop(key, None)
        standing[key] = label
    return list(standing.values())


def _cells(text: str) -> list[Any]:
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator_of(text))
    return [{name: cell for name, cell in row.items() if name and cell} for row in rows]


def _lines(text: str, file: Path) -> list[Any]:
    """The rows of JSON Lines; a line that was cut off while it was written is left out and named."""
    rows, unread = [], []
    for number, line in enumerate(text.split("\n"), 1):
        try:
            if line.strip():
                rows.append(msgspec.json.decode(line))
        except msgspec.DecodeError as error:
            unread.append((number, error))
    if unread and not rows:
        raise unread[0][1]
    for number, why in unread:
        _log.warning("%s:%d: left out, not a whole line: %s", file, number, why)
    return rows
