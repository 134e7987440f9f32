"""Metrics corrected by people's labels of single verdicts, which `adjudge label` drew.

A metric can be corrected if every report's value is the share that its lines of evidence make up, as the protocol says
(`GivesLabels`); one that is clipped, say, is not.

People's scores of a run's reports, from a file.

A judge's means and differences, corrected by people's scores of a few tasks (prediction-powered inference).
"""

import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.engine.config.metrics import Name, named
from adjudge.engine.config.settings import mistake
from adjudge.engine.errors import UsageError, unread
from adjudge.engine.runs.board import Corrected, CorrectedDifference, Correction
from adjudge.engine.runs.items import Stratum, sampled_labels
from adjudge.engine.runs.people import Report, report_of
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.runs.run import Run
from adjudge.engine.runs.scores import ScoreMatrix, figure
from adjudge.fetchers.separated import separator_of
from adjudge.judges.plural import listed
from adjudge.scoring.kernels.comparison.corrections import (
    LabelledItems,
    LabelledMean,
    PredictionPowered,
    labelled_mean,
    powered_differences,
    powered_means,
)
from adjudge.scoring.kernels.comparison.paired_tests import paired_t

__all__ = [
    "HumanRating",
    "corrections",
    "item_corrections",
    "left_out",
    "matrix_named",
    "mean_rating",
    "rating_array",
    "read_ratings",
    "report_of",
]

_RATING = "a rating has task_id, system, rater, metric and value"
_NOT_LETTERS = re.compile(r"[^a-z]+")


class HumanRating(msgspec.Struct, frozen=True, kw_only=True):
    """One rater's score of one report. `metric` is a metric of the run, or `protocol.metric`.

    `value` is in the units of scores.parquet: 0 to 1 for most, where tables show 0 to 100.
    """

    task_id: str
    system: str
    rater: str
    metric: str
    value: float


class Annotation(msgspec.Struct, frozen=True):
    """A line of DeepResearch Bench's `human_RACE_annotation.jsonl`: one person's marks of several systems' reports."""

    id: str | int
    dimension_scores: dict[str, dict[str, float]]
    overall_scores: dict[str, float] = {}

    def ratings(self, rater: str) -> Iterator[dict[str, str | float]]:
        """The marks as ratings of RACE's metrics, in the units of the file."""
        marks = {system: dict(scores) for system, scores in self.dimension_scores.items()}
        for system, overall in self.overall_scores.items():
            marks.setdefault(system, {})["overall"] = overall
        for system, scores in marks.items():
            for dimension, value in scores.items():
                yield {
                    "task_id": str(self.id),
                    "system": system,
                    "rater": rater,
                    "metric": f"race.{_NOT_LETTERS.sub('_', dimension.strip().lower())}",
                    "value": value,
                }


def read_ratings(file: Path) -> Iterator[HumanRating]:
    """The ratings in `file`: CSV if its name ends in .csv, else JSON Lines, of ratings or of annotations.

    CSV is separated by commas, semicolons or tabs, whatever its first line has most of.

    Raises UsageError for a file that cannot be read or holds no rating, an invalid rating, and two different ratings
    of one report by one rater.
    """
    try:
        if file.suffix == ".csv":
            text = file.read_text(encoding="utf-8-sig")
            table = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator_of(text))
            rows: list[tuple[int, object]] = [
                (table.line_num, {k: v for k, v in row.items() if k}) for row in table
            ]
        else:
            text = file.read_text(encoding="utf-8-sig")
            rows = _flat(_decoded(text, file), file)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"human: {file} cannot be read: {unread(error)}; correct the path") from error
    if not rows:
        raise UsageError(f"human: {file}: no ratings; {_RATING}")
    seen: dict[tuple[str, str, str, str], tuple[int, float]] = {}
    for line, row in rows:
        try:
            rating = msgspec.convert(row, HumanRating, strict=False)
        except msgspec.ValidationError as error:
            raise UsageError(
                f"human: {file}:{line}: {mistake(error, HumanRating, row)}; {_RATING}"
            ) from error
        if not np.isfinite(rating.value):
            raise UsageError(f"human: {file}:{line}: value: must be a finite number")
        what = (rating.task_id, rating.system, rating.rater, rating.metric)
        first, value = seen.setdefault(what, (line, rating.value))
        if value != rating.value:
            raise UsageError(
                f"human: {file}, lines {first} and {line}: {rating.rater!r} rated {rating.metric} of system "
                f"{rating.system!r}, task {rating.task_id!r} twice and differently; keep one"
            )
        yield rating


def _decoded(text: str, file: Path) -> Iterator[tuple[int, object]]:
    """The rows of JSON Lines, with their lines."""
    for number, line in enumerate(text.split("\n"), 1):
        try:
            if line.strip():
                yield number, msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise UsageError(f"human: {file}:{number}: not JSON: {error}") from error


def _flat(rows: Iterable[tuple[int, object]], file: Path) -> list[tuple[int, object]]:
    """`rows`, every annotation among them as its ratings. Annotators of a task are numbered in the file's order."""
    found: list[tuple[int, object]] = []
    seen: Counter[str | int] = Counter()
    for line, row in rows:
        if not isinstance(row, dict) or "dimension_scores" not in row:
            found.append((line, row))
            continue
        try:
            annotation = msgspec.convert(row, Annotation)
        except msgspec.ValidationError as error:
            raise UsageError(f"human: {file}:{line}: {mistake(error, Annotation, row)}") from error
        seen[annotation.id] += 1
        found += ((line, one) for one in annotation.ratings(f"annotator {seen[annotation.id]}"))
    return found


def matrix_named(matrices: list[ScoreMatrix], name: str) -> ScoreMatrix:
    """The metric that a rating calls `name`. Raises UsageError."""
    known = {Name(matrix.protocol, matrix.metric): matrix for matrix in matrices}
    return known[named(name, known, "human")]


def left_out(matrix: ScoreMatrix, ratings: list[HumanRating]) -> str:
    """The first rated reports that the run does not have, "" if it has all of them."""
    known = {*matrix.systems}, {*matrix.tasks}
    strange = [one for one in ratings if one.system not in known[0] or one.task_id not in known[1]]
    names = list(dict.fromkeys(f"{one.system!r} on task {one.task_id!r}" for one in strange))
    return listed(names)


def rating_array(matrix: ScoreMatrix, ratings: list[HumanRating]) -> npt.NDArray[np.float64]:
    """Ratings as [S, T, R]; those of reports that the run does not have are left out. Raises UsageError."""
    systems = {name: row for row, name in enumerate(matrix.systems)}
    tasks = {name: column for column, name in enumerate(matrix.tasks)}
    raters = {name: place for place, name in enumerate(sorted({rating.rater for rating in ratings}))}
    humans = np.full((len(systems), len(tasks), len(raters)), np.nan)
    for rating in ratings:
        if rating.system in systems and rating.task_id in tasks:
            humans[systems[rating.system], tasks[rating.task_id], raters[rating.rater]] = rating.value
    if np.isnan(humans).all():
        raise UsageError(
            f"human: no rating of {matrix.metric!r} is for a report in this run; check task_id and system"
        )
    return humans


def mean_rating(ratings: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The mean rating `[S, T]` of `[S, T, R]`, over raters; NaN where nobody rated."""
    rated = ~np.isnan(ratings)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(rated, ratings, 0.0).sum(axis=2) / rated.sum(axis=2))


Floats = npt.NDArray[np.float64]


def corrections(matrices: list[ScoreMatrix], human: str | Path) -> list[Correction]:
    """The corrections of every metric rated in the file `human`; a report's label is the mean of its ratings.

    The rated tasks must have been drawn at random. Raises UsageError for a file that cannot be read, an invalid line,
    and an unknown metric.
    """
    ratings = list(read_ratings(Path(human)))
    found = []
    for name in dict.fromkeys(rating.metric for rating in ratings):
        matrix = matrix_named(matrices, name)
        named = [rating for rating in ratings if rating.metric == name]
        found.append(_correction(matrix, mean_rating(rating_array(matrix, named)), left_out(matrix, named)))
    return found


def _correction(matrix: ScoreMatrix, labels: Floats, strange: str) -> Correction:
    judge = matrix.values
    means = _listed(powered_means(judge, labels), powered_means(judge, labels, power=0.0))
    differences = _listed(powered_differences(judge, labels), powered_differences(judge, labels, power=0.0))
    raw = paired_t(judge)
    pairs = [
        CorrectedDifference(
            a=matrix.systems[raw.first[pair]],
            b=matrix.systems[raw.second[pair]],
            raw=figure(raw.mean_difference[pair]),
            raw_low=figure(raw.low[pair]),
            raw_high=figure(raw.high[pair]),
            corrected=corrected,
        )
        for pair, corrected in enumerate(differences)
        if corrected.n_labelled
    ]
    return Correction(
        protocol=matrix.protocol,
        metric=matrix.metric,
        means=dict(zip(matrix.systems, means, strict=True)),
        differences=tuple(pairs),
        left_out=strange,
    )


def _listed(found: PredictionPowered, alone: PredictionPowered) -> list[Corrected]:
    return [
        Corrected(
            value=figure(found.estimate[row]),
            low=figure(found.low[row]),
            high=figure(found.high[row]),
            power=float(found.power[row]),
            people=figure(alone.estimate[row]),
            people_low=figure(alone.low[row]),
            people_high=figure(alone.high[row]),
            n_labelled=int(found.n_labelled[row]),
            n_unlabelled=int(found.n_unlabelled[row]),
        )
        for row in range(found.estimate.size)
    ]


BASIS = (
    "corrected figures put people's labels in the place of the judge's verdicts; they hold for labels of items that "
    "adjudge label drew"
)


_Reports = dict[str, dict[str, list[Report]]]
"""The reports of a metric, by system and task."""


def item_corrections(runs: Sequence[tuple[Run, RunRecord]], file: str | Path) -> list[Correction]:
    """The corrections of every metric that the items labelled in `file` make up.

    Of each run, only the systems and tasks that the record beside it names are looked at. Raises UsageError for a file
    that cannot be read, StoreError.
    """
    labels: dict[str, list[str]] = defaultdict(list)
    for label in sampled_labels(Path(file)):
        labels[label.item].append(label.label.strip().casefold())
    metrics: dict[Name, _Reports] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    other: set[Name] = set()
    labelled: set[Name] = set()
    for run, record in runs:
        for card, items in run.labelled_cards():
            if card.system not in record.systems or card.task_id not in record.tasks:
                continue
            for metric in {item.labelled.metric for item in items} & card.scores.keys():
                name, own = (
                    Name(card.protocol, metric),
                    [one for one in items if one.labelled.metric == metric],
                )
                value = card.scores[metric]
                found = None if value is None else report_of(value, own, labels)
                if found is not None:
                    metrics[name][card.system][card.task_id].append(found)
                elif value is not None:
                    other.add(name)
                if any(item.id in labels for item in own):
                    labelled.add(name)
    found_all = [_item_correction(name, metrics[name]) for name in sorted(labelled - other)]
    return [*found_all, *(_uncorrected(name) for name in sorted(labelled & other))]


def _item_correction(name: Name, reports: _Reports) -> Correction:
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


def _labelled(reports: dict[str, list[Report]]) -> bool:
    every = (one for own in reports.values() for one in own)
    return any(not np.isnan(part.human) for one in every for part in one.parts)


def _mean(sides: Sequence[tuple[dict[str, list[Report]], float]], tasks: Sequence[str]) -> LabelledMean:
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
