"""A judge's single verdicts against people's: statements, rubrics, insights and the like, one by one.

Labels that name items as `adjudge label` does are a sample drawn evenly from the judge's verdicts, so they are weighed
back to the run: each counts for as many items as its stratum has for each of its labels. The figures then estimate
those over all verdicts of the run. Labels written by hand count once each, and speak for themselves alone.

Which of a run's verdicts people's labels are for.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from adjudge.engine.errors import UsageError
from adjudge.engine.runs.items import Label, Stratum, sampled_labels, stratum_sizes
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.runs.run import Run
from adjudge.engine.runs.scores import figure
from adjudge.engine.statistics.by_people import ByPeople, by_people
from adjudge.judges.plural import listed
from adjudge.scoring.contract.scorecard import Outcome
from adjudge.scoring.kernels.agreement.human_consistency import krippendorffs_alpha, wilson

__all__ = ["LabelAgreement", "Pair", "share_of", "with_labels"]

_ON_SOURCES = frozenset({"supported", "unsupported", "unknown", "unreachable"})
_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,12})?")
_ASIDE = re.compile(r"(?:(-?\d[\d.]{0,20}) of |(\w[\w-]{0,40}) \().*", re.DOTALL)


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict of the judge ("" where it gave none) with people's labels of it, by rater.

    `item` is its id and `stratum` what it was drawn from; "" and None if the labels name it by its words.
    """

    protocol: str
    kind: str
    task_id: str
    verdict: str
    stratum: Stratum | None
    labels: dict[str, str]
    item: str = ""


class GivenLabels(msgspec.Struct, frozen=True, kw_only=True):
    """The labels that are for a run, the first of those that are not, and how many items the run has by stratum."""

    given: list[Given]
    sizes: Counter[Stratum]
    left_out: str


def labels_given(run: Run, file: Path) -> GivenLabels:
    """The verdicts of a run that the labels in `file` are for.

    Raises UsageError for a file that cannot be read, a label that fits several different verdicts or is not one of its
    kind, two labels of one item by one rater, and if no label is for the run; StoreError.
    """
    labels = sampled_labels(file)
    numbered = list(enumerate(labels, 1))
    drawn, sizes, unknown = _by_item(run, file, [one for one in numbered if one[1].item])
    worded, absent = _by_words(run, file, [one for one in numbered if not one[1].item])
    given = [*drawn, *worded]
    if not given:
        raise UsageError(
            f"labels: no label in {file} is for this run; check task_id, system and what (overrides by "
            "`label --edit` are not compared: people saw the judge's verdict)"
        )
    return GivenLabels(given=given, sizes=sizes, left_out=listed([*unknown, *absent]))


Numbered = Sequence[tuple[int, Label]]


def _by_item(run: Run, file: Path, labels: Numbered) -> tuple[list[Given], Counter[Stratum], list[str]]:
    """The labels that name items as `adjudge label` does."""
    if not labels:
        return [], Counter(), []
    items = {item.id: item for item in run.items}
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
            item=item.id,
        )
        given.setdefault(item.id, one).labels[label.rater] = said
    return list(given.values()), stratum_sizes(items.values()), absent


class _Line(msgspec.Struct, frozen=True):
    """What was judged, in the run; `verdict` is "" where the judge gave none."""

    protocol: str
    place: int
    verdict: str


_Key = tuple[str, str, str, int]


def _by_words(run: Run, file: Path, labels: Numbered) -> tuple[list[Given], list[str]]:
    """The labels that name a verdict by the words of the evidence."""
    if not labels:
        return [], []
    lines = _lines(run, {(one.task_id, one.system) for _, one in labels})
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


def _lines(run: Run, wanted: set[tuple[str, str]]) -> dict[_Key, list[tuple[str, _Line]]]:
    """What was judged of the reports that were labelled, each with its URL, by task, system, wording and sample."""
    found: dict[_Key, list[tuple[str, _Line]]] = defaultdict(list)
    place = 0
    for card in run.cards:
        if card.repeat or (card.task_id, card.system) not in wanted:
            continue
        for line in card.evidence:
            place += 1
            verdict = "" if line.reason or line.outcome.kind == "missing" else _said(line.outcome)
            key = (card.task_id, card.system, line.what.strip(), card.sample)
            found[key].append((line.url, _Line(card.protocol, place, verdict)))
    return found


def _fitting(lines: dict[_Key, list[tuple[str, _Line]]], label: Label) -> Iterator[_Line]:
    for url, line in lines.get((label.task_id, label.system, label.what.strip(), label.sample), ()):
        if label.url in ("", url) and label.protocol in ("", line.protocol):
            yield line


def _said(outcome: Outcome) -> str:
    """The judge's verdict as a label is compared with it: points, the kind of a verdict on a source, or the words."""
    if outcome.points is not None and outcome.most is not None:
        return f"{outcome.points:g}"
    return outcome.kind if outcome.kind in _ON_SOURCES else outcome.words.strip().casefold()


def _plain(label: str) -> str:
    """A label as it is compared: without what is said beside it, "1.0 of 2" as 1."""
    text = label.strip().casefold()
    said = _ASIDE.fullmatch(text)
    text = (said[1] or said[2]) if said else text
    return f"{float(text):g}" if _NUMBER.fullmatch(text) else text


ATTRIBUTES = ("language", "domain")
_NEUTRAL = 1.0 / 3.0  # of a label, added at either end where an interval needs a spread

Interval = tuple[float, float]
Share = tuple[float | None, Interval | None]
_NOTHING: Share = (None, None)


class VerdictAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """One verdict: how many items people and the judge gave it, and how often the other said the same.

    `recall` is the share of people's that the judge gave too, `precision` the share of the judge's that people gave
    too, each with an interval at 95 % (Wilson's); None without any.
    """

    verdict: str
    n_people: int
    n_judge: int
    recall: float | None
    recall_interval: Interval | None
    precision: float | None
    precision_interval: Interval | None


class LabelGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The items of tasks with one value `name` of an `attribute` ("language" or "domain")."""

    attribute: str
    name: str
    n_items: int
    accuracy: float | None
    accuracy_interval: Interval | None
    kappa: float | None


class LabelAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """The verdicts of one protocol, and of one `kind` where it is known, against those of most raters.

    `accuracy`, `kappa` (Cohen's), recall and precision are `weighed` back to all `n_verdicts` of the run if the items
    were drawn by `adjudge label`; else they are over the `n_items` that both judged. Intervals are Wilson's at 95 %,
    with the effective number of items. `alpha` is Krippendorff's among the raters (nominal; None without two),
    `alpha_judge` that of the raters and the judge together, both of the labelled items as they are. Left out are
    `n_unscored` items without the judge's verdict, `n_tied` without a majority of raters, and labels of what the run
    does not have, the first of them in `left_out`. `by_people` has the metrics that the labels give.
    """

    protocol: str
    n_items: int
    n_raters: int
    n_unscored: int
    n_tied: int
    accuracy: float | None
    accuracy_interval: Interval | None
    kappa: float | None
    alpha: float | None
    verdicts: tuple[VerdictAgreement, ...]
    left_out: str = ""
    kind: str = ""
    weighed: bool = False
    n_verdicts: int = 0
    alpha_judge: float | None = None
    groups: tuple[LabelGroup, ...] = ()
    by_people: tuple[ByPeople, ...] = ()

    @property
    def name(self) -> str:
        """The protocol, and the kind where it is known."""
        return f"{self.protocol} ({self.kind})" if self.kind else self.protocol


class Pair(msgspec.Struct, frozen=True):
    """An item that most raters and the judge gave a verdict, and how many items of the run it stands for."""

    people: str
    judge: str
    stratum: Stratum | None
    weight: float
    task: str


def with_labels(run: str | Path, file: str | Path) -> list[LabelAgreement]:
    """Agreement of the run's single verdicts with the labels in `file`, by protocol and kind.

    Raises UsageError for a file that cannot be read, a label that fits several different verdicts or is unknown, two
    labels of one item by one rater, and if no label is for the run; StoreError if the run's store cannot be read.
    """
    opened = Run.open(run)
    found = labels_given(opened, Path(file))
    kinds = sorted({(one.protocol, one.kind) for one in found.given})
    said = {
        one.item: label for one in found.given if one.item and (label := _majority([*one.labels.values()]))
    }
    figures = by_people(opened, said)
    return [
        msgspec.structs.replace(
            _agreement(
                opened.record,
                [one for one in found.given if (one.protocol, one.kind) == (protocol, kind)],
                found.sizes,
                found.left_out,
            ),
            by_people=tuple(one for one in figures if (one.protocol, one.kind) == (protocol, kind)),
        )
        for protocol, kind in kinds
    ]


def _agreement(
    record: RunRecord, given: Sequence[Given], sizes: Counter[Stratum], left_out: str
) -> LabelAgreement:
    people = [(one, _majority(list(one.labels.values()))) for one in given]
    pairs = _pairs(people, sizes)
    raters = sorted({rater for one in given for rater in one.labels})
    first = given[0]
    accuracy, interval = share_of(pairs, lambda pair: pair.people == pair.judge)
    verdicts = dict.fromkeys(one for pair in sorted((p.people, p.judge) for p in pairs) for one in pair)
    weighed = any(pair.stratum is not None for pair in pairs)
    return LabelAgreement(
        protocol=first.protocol,
        kind=first.kind,
        n_items=len(pairs),
        n_raters=len(raters),
        n_unscored=sum(not one.verdict for one in given),
        n_tied=sum(not said for _, said in people),
        accuracy=accuracy,
        accuracy_interval=interval,
        kappa=_kappa(pairs),
        alpha=_among([one.labels for one in given], raters) if len(raters) > 1 else None,
        alpha_judge=_among([{**one.labels, "": one.verdict} for one in given if one.verdict], ["", *raters]),
        verdicts=tuple(_verdict(verdict, pairs) for verdict in verdicts),
        weighed=weighed,
        n_verdicts=sum(
            size for stratum, size in sizes.items() if stratum[:2] == (first.protocol, first.kind)
        ),
        groups=tuple(_groups(record, pairs)),
        left_out=left_out,
    )


def _pairs(people: Sequence[tuple[Given, str]], sizes: Counter[Stratum]) -> list[Pair]:
    usable = [(one, said) for one, said in people if said and one.verdict]
    labelled = Counter(one.stratum for one, _ in usable)
    return [
        Pair(
            said,
            one.verdict,
            one.stratum,
            1.0 if one.stratum is None else sizes[one.stratum] / labelled[one.stratum],
            one.task_id,
        )
        for one, said in usable
    ]


def _majority(labels: Sequence[str]) -> str:
    """The label that most raters gave, "" if there are several."""
    (first, most), *others = Counter(labels).most_common(2)
    return "" if others and others[0][1] == most else first


def share_of(pairs: Sequence[Pair], hit: Callable[[Pair], bool]) -> Share:
    """The weighed share of `pairs` that `hit`, with Wilson's interval for the effective number of items.

    That number is what gives a simple random sample the variance of this one, which is drawn within strata.
    """
    if not pairs:
        return _NOTHING
    total = sum(pair.weight for pair in pairs)
    share = sum(pair.weight for pair in pairs if hit(pair)) / total
    strata: dict[Stratum | None, list[Pair]] = defaultdict(list)
    for pair in pairs:
        strata[pair.stratum].append(pair)
    middle = variance = 0.0
    for own in strata.values():
        part = sum(pair.weight for pair in own) / total
        near = (sum(map(hit, own)) + _NEUTRAL) / (len(own) + 2.0 * _NEUTRAL)
        middle += part * near
        variance += part**2 * near * (1.0 - near) / len(own)
    effective = middle * (1.0 - middle) / variance
    return share, wilson(share * effective, effective)


def _kappa(pairs: Sequence[Pair]) -> float | None:
    """Cohen's kappa, weighed; None where both give every item one and the same verdict."""
    total = sum(pair.weight for pair in pairs)
    if not total:
        return None
    people: Counter[str] = Counter()
    judge: Counter[str] = Counter()
    same = 0.0
    for pair in pairs:
        people[pair.people] += pair.weight / total  # type: ignore[assignment]
        judge[pair.judge] += pair.weight / total  # type: ignore[assignment]
        same += pair.weight / total if pair.people == pair.judge else 0.0
    chance = sum(share * judge[verdict] for verdict, share in people.items())
    return (same - chance) / (1.0 - chance) if chance < 1.0 - 1e-12 else None


def _among(given: Sequence[dict[str, str]], raters: Sequence[str]) -> float | None:
    codes = {
        label: float(place)
        for place, label in enumerate(sorted({one for by in given for one in by.values()}))
    }
    rows = [[codes[by[rater]] if rater in by else np.nan for by in given] for rater in raters]
    return figure(krippendorffs_alpha(np.array(rows).reshape(len(raters), -1), level="nominal"))


def _verdict(verdict: str, pairs: Sequence[Pair]) -> VerdictAgreement:
    people = [pair for pair in pairs if pair.people == verdict]
    judge = [pair for pair in pairs if pair.judge == verdict]
    recall, recall_interval = share_of(people, lambda pair: pair.judge == verdict)
    precision, precision_interval = share_of(judge, lambda pair: pair.people == verdict)
    return VerdictAgreement(
        verdict=verdict,
        n_people=len(people),
        n_judge=len(judge),
        recall=recall,
        recall_interval=recall_interval,
        precision=precision,
        precision_interval=precision_interval,
    )


def _groups(record: RunRecord, pairs: Sequence[Pair]) -> Iterator[LabelGroup]:
    """The pairs by each attribute that tells their tasks apart."""
    for attribute in ATTRIBUTES:
        by: dict[str, list[Pair]] = defaultdict(list)
        for pair in pairs:
            task = record.tasks.get(pair.task)
            by["" if task is None else getattr(task, attribute)].append(pair)
        for name, own in sorted(by.items()) if len(by) > 1 else ():
            accuracy, interval = share_of(own, lambda pair: pair.people == pair.judge)
            yield LabelGroup(
                attribute=attribute,
                name=name,
                n_items=len(own),
                accuracy=accuracy,
                accuracy_interval=interval,
                kappa=_kappa(own),
            )
