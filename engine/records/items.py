"""What a run's judge gave single verdicts on: every statement, criterion or claim that people can label."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from adjudge.engine.records.record import RunRecord
from adjudge.engine.store import Place
from adjudge.engine.store.scorecards import run_cards
from adjudge.scoring.contract.labels import GivesLabels, Labelled
from adjudge.scoring.contract.protocol import installed_protocols
from adjudge.scoring.contract.scorecard import Evidence, Scorecard

__all__ = ["Item", "Stratum", "items_of", "items_of_card", "label_readers", "labelled_cards", "stratum_sizes"]

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


def label_readers(record: RunRecord) -> dict[str, LabelReader]:
    """How the evidence of each protocol of a run is read, for those whose evidence people can label."""
    loaders = dict(installed_protocols())
    found = {name: loaders[name]() for name in record.metrics if name in loaders}
    return {name: kind.labelled for name, kind in found.items() if isinstance(kind, GivesLabels)}


def labelled_cards(record: RunRecord) -> Iterator[tuple[Scorecard, list[Item]]]:
    """Every scorecard of a run, of the judge's first repeat, with its lines that are read as labels, "" among them.

    Raises StoreError.
    """
    readers = label_readers(record)
    for card in run_cards(Place.of(record.config.store), record.run):
        if not card.repeat and not card.rival and card.protocol in readers:
            yield card, list(items_of_card(card, readers[card.protocol]).values())


def items_of(record: RunRecord) -> Iterator[Item]:
    """Every verdict of the judge in a run that people can label. Raises StoreError."""
    for _, items in labelled_cards(record):
        yield from (item for item in items if item.labelled.label)


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
