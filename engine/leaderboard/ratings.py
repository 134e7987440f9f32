"""People's scores of a run's reports, from a file."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.engine.errors import UsageError
from adjudge.engine.records.matrices import ScoreMatrix

__all__ = ["HumanRating", "left_out", "matrix_named", "mean_rating", "rating_array", "read_ratings"]

_NAMED = 5
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

    Raises UsageError for a file that cannot be read or holds no rating, an invalid rating, and two different ratings
    of one report by one rater.
    """
    try:
        if file.suffix == ".csv":
            with file.open(encoding="utf-8-sig", newline="") as lines:
                rows: list[object] = [{k: v for k, v in row.items() if k} for row in csv.DictReader(lines)]
        else:
            text = file.read_text(encoding="utf-8-sig")
            rows = _flat([msgspec.json.decode(line) for line in text.split("\n") if line.strip()], file)
    except (OSError, UnicodeDecodeError, csv.Error, msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"human: {file} cannot be read: {error}") from error
    if not rows:
        raise UsageError(
            f"human: {file}: no ratings; add lines with task_id, system, rater, metric and value"
        )
    seen: dict[tuple[str, str, str, str], tuple[int, float]] = {}
    for number, row in enumerate(rows, 1):
        try:
            rating = msgspec.convert(row, HumanRating, strict=False)
        except msgspec.ValidationError as error:
            raise UsageError(f"human: {file}, rating {number}: {error}") from error
        if not np.isfinite(rating.value):
            raise UsageError(f"human: {file}, rating {number}: value must be a finite number")
        what = (rating.task_id, rating.system, rating.rater, rating.metric)
        first, value = seen.setdefault(what, (number, rating.value))
        if value != rating.value:
            raise UsageError(
                f"human: {file}, ratings {first} and {number}: {rating.rater!r} rated {rating.metric} of system "
                f"{rating.system!r}, task {rating.task_id!r} twice and differently; keep one"
            )
        yield rating


def _flat(rows: Sequence[object], file: Path) -> list[object]:
    """`rows`, every annotation among them as its ratings. Annotators of a task are numbered in the file's order."""
    found: list[object] = []
    seen: Counter[str | int] = Counter()
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or "dimension_scores" not in row:
            found.append(row)
            continue
        try:
            annotation = msgspec.convert(row, Annotation)
        except msgspec.ValidationError as error:
            raise UsageError(f"human: {file}, annotation {number}: {error}") from error
        seen[annotation.id] += 1
        found += annotation.ratings(f"annotator {seen[annotation.id]}")
    return found


def matrix_named(matrices: list[ScoreMatrix], name: str) -> ScoreMatrix:
    """The metric that a rating calls `name`. Raises UsageError."""
    for matrix in matrices:
        if name in (matrix.metric, f"{matrix.protocol}.{matrix.metric}"):
            return matrix
    known = ", ".join(f"{matrix.protocol}.{matrix.metric}" for matrix in matrices)
    raise UsageError(f"human: the run has no metric {name!r}; use one of {known}")


def left_out(matrix: ScoreMatrix, ratings: list[HumanRating]) -> str:
    """The first rated reports that the run does not have, "" if it has all of them."""
    known = {*matrix.systems}, {*matrix.tasks}
    strange = [one for one in ratings if one.system not in known[0] or one.task_id not in known[1]]
    names = list(dict.fromkeys(f"{one.system!r} on task {one.task_id!r}" for one in strange))
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


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
