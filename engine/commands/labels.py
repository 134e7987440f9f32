"""A judge's single verdicts against people's: statements, rubrics, insights and the like, one by one."""

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from adjudge.engine.commands.attack import wilson
from adjudge.engine.errors import UsageError
from adjudge.engine.records.matrices import figure
from adjudge.engine.records.record import RunRecord
from adjudge.engine.store import Place
from adjudge.engine.store.scorecards import run_cards
from adjudge.scoring.kernels.agreement.human_consistency import cohens_kappa, krippendorffs_alpha

__all__ = ["Label", "LabelAgreement", "VerdictAgreement", "read_labels", "with_labels"]

_NAMED = 5
_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,12})?")
_ASIDE = re.compile(r"(?:(-?\d[\d.]{0,20}) of |(\w[\w-]{0,40}) \().*", re.DOTALL)


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """One person's verdict on `what`, as the evidence of the report words it (`adjudge show`).

    `label` is a word of the judge's verdicts ("supported", "met", "true") or the points of a rubric. `url`, `protocol`
    and `sample` are needed only where `what` alone fits several verdicts.
    """

    task_id: str
    system: str
    what: str
    label: str
    rater: str = ""
    url: str = ""
    protocol: str = ""
    sample: int = 0


class VerdictAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """One verdict: how many items people and the judge gave it, and how often the other said the same.

    `recall` is the share of people's that the judge gave too, `precision` the share of the judge's that people gave
    too, each with Wilson's interval at 95 %; None without any.
    """

    verdict: str
    n_people: int
    n_judge: int
    recall: float | None
    recall_interval: tuple[float, float] | None
    precision: float | None
    precision_interval: tuple[float, float] | None


class LabelAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """The verdicts of one protocol against those of most raters, on the `n_items` that have both.

    `accuracy` has Wilson's interval at 95 %, `kappa` is Cohen's, `alpha` Krippendorff's among the raters (nominal;
    None without two). Left out are `n_unscored` items without the judge's verdict, `n_tied` without a majority of
    raters, and labels of what the run does not have, the first of them in `left_out`.
    """

    protocol: str
    n_items: int
    n_raters: int
    n_unscored: int
    n_tied: int
    accuracy: float | None
    accuracy_interval: tuple[float, float] | None
    kappa: float | None
    alpha: float | None
    verdicts: tuple[VerdictAgreement, ...]
    left_out: str = ""


class _Item(msgspec.Struct, frozen=True):
    """What was judged, in the run; `verdict` is "" where the judge gave none."""

    protocol: str
    place: int
    verdict: str


def read_labels(file: Path) -> list[Label]:
    """The labels in `file`: CSV if its name ends in .csv, else JSON Lines. Raises UsageError."""
    try:
        text = file.read_text(encoding="utf-8-sig")
        rows: list[Any] = (
            [
                {k: v for k, v in row.items() if k and v}
                for row in csv.DictReader(text.splitlines(keepends=True))
            ]
            if file.suffix == ".csv"
            else [msgspec.json.decode(line) for line in text.split("\n") if line.strip()]
        )
    except (OSError, UnicodeDecodeError, csv.Error, msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"labels: {file} cannot be read: {error}") from error
    if not rows:
        raise UsageError(f"labels: {file}: no labels; add lines with task_id, system, what and label")
    found = []
    for number, row in enumerate(rows, 1):
        try:
            found.append(msgspec.convert(row, Label, strict=False))
        except msgspec.ValidationError as error:
            raise UsageError(f"labels: {file}, label {number}: {error}") from error
    return found


def with_labels(run: str | Path, file: str | Path) -> list[LabelAgreement]:
    """Agreement of the run's single verdicts with the labels in `file`, by protocol.

    Raises UsageError for a file that cannot be read, a label that fits several different verdicts, two labels of one
    item by one rater, and if no label is for the run; StoreError if the run's store cannot be read.
    """
    record = RunRecord.read(Path(run)).found_from_here(Path(run))
    labels = read_labels(Path(file))
    items = _items(record, {(one.task_id, one.system) for one in labels})
    given: dict[_Item, dict[str, str]] = defaultdict(dict)
    absent: list[str] = []
    for number, label in enumerate(labels, 1):
        fitting = set(_fitting(items, label))
        if not fitting:
            absent.append(f"{label.what!r} of {label.system!r} on task {label.task_id!r}")
        elif len({(one.protocol, one.verdict) for one in fitting}) > 1:
            raise UsageError(
                f"labels: {file}, label {number}: fits several verdicts; add url, protocol or sample"
            )
        else:
            item = min(fitting, key=lambda one: one.place)
            if given[item].setdefault(label.rater, _plain(label.label)) != _plain(label.label):
                raise UsageError(
                    f"labels: {file}, label {number}: {label.rater!r} labelled this before and differently; keep one"
                )
    if not given:
        raise UsageError(f"labels: no label in {file} is for this run; check task_id, system and what")
    left_out = ", ".join(absent[:_NAMED]) + (
        f" and {len(absent) - _NAMED} more" if len(absent) > _NAMED else ""
    )
    return [
        _agreement(protocol, {item: by for item, by in given.items() if item.protocol == protocol}, left_out)
        for protocol in sorted({item.protocol for item in given})
    ]


_Key = tuple[str, str, str, int]


def _items(record: RunRecord, wanted: set[tuple[str, str]]) -> dict[_Key, list[tuple[str, _Item]]]:
    """What was judged of the reports that were labelled, each with its URL, by task, system, wording and sample."""
    found: dict[_Key, list[tuple[str, _Item]]] = defaultdict(list)
    place = 0
    for card in run_cards(Place.of(record.config.store), record.run):
        if card.repeat or (card.task_id, card.system) not in wanted:
            continue
        for line in card.evidence:
            place += 1
            verdict = "" if line.reason else _plain(line.outcome)
            key = (card.task_id, card.system, line.what.strip(), card.sample)
            found[key].append((line.url, _Item(card.protocol, place, verdict)))
    return found


def _fitting(items: dict[_Key, list[tuple[str, _Item]]], label: Label) -> Iterator[_Item]:
    for url, item in items.get((label.task_id, label.system, label.what.strip(), label.sample), ()):
        if label.url in ("", url) and label.protocol in ("", item.protocol):
            yield item


def _plain(verdict: str) -> str:
    """A verdict as it is compared: without what is said beside it, "1.0 of 2" as 1."""
    text = verdict.strip().casefold()
    said = _ASIDE.fullmatch(text)
    text = (said[1] or said[2]) if said else text
    return f"{float(text):g}" if _NUMBER.fullmatch(text) else text


def _agreement(protocol: str, given: dict[_Item, dict[str, str]], left_out: str) -> LabelAgreement:
    people = {item: _majority(list(by.values())) for item, by in given.items()}
    pairs = [(said, item.verdict) for item, said in people.items() if said and item.verdict]
    verdicts = list(dict.fromkeys(one for pair in sorted(pairs) for one in pair))
    code = {verdict: float(place) for place, verdict in enumerate(verdicts)}
    right = sum(said == judged for said, judged in pairs)
    coded = np.array([[code[one] for one in pair] for pair in pairs]).reshape(-1, 2)
    raters = sorted({rater for by in given.values() for rater in by})
    return LabelAgreement(
        protocol=protocol,
        n_items=len(pairs),
        n_raters=len(raters),
        n_unscored=sum(not item.verdict for item in given),
        n_tied=sum(not said for said in people.values()),
        accuracy=right / len(pairs) if pairs else None,
        accuracy_interval=wilson(right, len(pairs)) if pairs else None,
        kappa=figure(cohens_kappa(coded[:, 0], coded[:, 1])) if pairs else None,
        alpha=_among(list(given.values()), raters) if len(raters) > 1 else None,
        verdicts=tuple(_verdict(verdict, pairs) for verdict in verdicts),
        left_out=left_out,
    )


def _majority(labels: Sequence[str]) -> str:
    """The label that most raters gave, "" if there are several."""
    (first, most), *others = Counter(labels).most_common(2)
    return "" if others and others[0][1] == most else first


def _among(given: Sequence[dict[str, str]], raters: Sequence[str]) -> float | None:
    codes = {
        label: float(place)
        for place, label in enumerate(sorted({one for by in given for one in by.values()}))
    }
    rows = [[codes[by[rater]] if rater in by else np.nan for by in given] for rater in raters]
    return figure(krippendorffs_alpha(np.array(rows), level="nominal"))


def _verdict(verdict: str, pairs: Sequence[tuple[str, str]]) -> VerdictAgreement:
    people, judge = (sum(pair[side] == verdict for pair in pairs) for side in (0, 1))
    both = sum(pair == (verdict, verdict) for pair in pairs)
    return VerdictAgreement(
        verdict=verdict,
        n_people=people,
        n_judge=judge,
        recall=both / people if people else None,
        recall_interval=wilson(both, people) if people else None,
        precision=both / judge if judge else None,
        precision_interval=wilson(both, judge) if judge else None,
    )
