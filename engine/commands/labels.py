"""A judge's single verdicts against people's: statements, rubrics, insights and the like, one by one.

Labels that name items as `adjudge label` does are a sample drawn evenly from the judge's verdicts, so they are weighed
back to the run: each counts for as many items as its stratum has for each of its labels. The figures then estimate
those over all verdicts of the run. Labels written by hand count once each, and speak for themselves alone.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from adjudge.engine.commands.attack import wilson
from adjudge.engine.commands.labelled import Given, labels_given
from adjudge.engine.records.items import Stratum
from adjudge.engine.records.matrices import figure
from adjudge.engine.records.record import RunRecord
from adjudge.scoring.kernels.agreement.human_consistency import krippendorffs_alpha

__all__ = ["LabelAgreement", "LabelGroup", "Pair", "VerdictAgreement", "share_of", "with_labels"]

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
    does not have, the first of them in `left_out`.
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
    record = RunRecord.read(Path(run)).found_from_here(Path(run))
    found = labels_given(record, Path(file))
    kinds = sorted({(one.protocol, one.kind) for one in found.given})
    return [
        _agreement(
            record,
            [one for one in found.given if (one.protocol, one.kind) == (protocol, kind)],
            found.sizes,
            found.left_out,
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
