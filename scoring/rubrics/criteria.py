"""Criteria of a rubric: what a report is given points for, how many, and the files that hold them.

A file is JSON Lines, or a list in YAML or JSON:

    {"criterion": "States the dose in mg/kg.", "points": 3, "tags": ["facts"]}
    {"criterion": "Compares at least three options.", "values": [0, 1, 2], "tags": ["depth"]}
    {"criterion": "Recommends a withdrawn product.", "points": -4}

`points` are given if the criterion is met, else 0; `values` are all the points that may be given, where there are steps
between. A row with a `task` is for that task only. A row may also be one string that ends in its values, as Rigorous
Bench publishes them: "Does it give a date? Yes=2, No=0".
"""

import math
import re
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

import msgspec
import yaml

from adjudge.scoring.contract.protocol import ExplainedCriterion

__all__ = ["CriteriaError", "Criterion", "explained_criteria", "general_rubrics", "load_criteria", "tags_of"]

MAX_FILE_BYTES = 20_000_000
MAX_VALUES = 101
MAX_POINTS = 1e9

_VALUE = re.compile(r"[=＝]\s{0,5}([+-]?\d{1,9}(?:\.\d{1,9})?)\s{0,5}(?=[,，;；、/]|[.。)）]{0,3}\s{0,5}$)")


class CriteriaError(ValueError):
    """A file of criteria cannot be used; the message names the file and the row."""


class Criterion(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True, cache_hash=True
):
    """One thing that a report is given points for, or, with negative `points`, has points taken away for.

    `values` are all the points that may be given; left empty they are 0 and `points`. `task` limits it to one task.
    """

    criterion: str
    points: float | None = None
    values: tuple[float, ...] = ()
    tags: tuple[str, ...] = ()
    id: str = ""
    task: str | None = None

    def __post_init__(self) -> None:
        if not self.criterion.strip():
            raise ValueError("a criterion needs words")
        if self.points is None and not self.values:
            raise ValueError("a criterion needs `points` or `values`, or ends in them: Yes=2, No=0")
        if self.points is not None and self.values and self.points not in (self.best, self.worst):
            raise ValueError("`points` must be the highest or the lowest of `values`")
        if len(self.options) < 2 or not all(map(math.isfinite, self.options)):
            raise ValueError("a criterion needs at least two different numbers of points to give")
        if max(map(abs, self.options)) > MAX_POINTS:
            raise ValueError(f"points lie between -{MAX_POINTS:g} and {MAX_POINTS:g}")
        if len(self.options) > MAX_VALUES:
            raise ValueError(f"a criterion has at most {MAX_VALUES} values")

    @classmethod
    def parse(cls, text: str, tags: tuple[str, ...] = ()) -> "Criterion":
        """A criterion written as one string, whose allowed values stand in it: "... Yes=2, No=0". Raises ValueError."""
        return cls(criterion=text, values=tuple(map(float, _VALUE.findall(text))), tags=tags)

    @cached_property
    def options(self) -> tuple[float, ...]:
        """The points that may be given, ascending."""
        # 3 and 3.0, or -0.0 and 0.0, are equal but not to a key: what comes out is one of them, always.
        return tuple(sorted({value + 0.0 for value in self.values or (0.0, self.points or 0.0)}))

    @cached_property
    def worst(self) -> float:
        """The fewest points that may be given; below 0 for a penalty."""
        return min(self.values, default=min(self.points or 0.0, 0.0)) + 0.0

    @cached_property
    def best(self) -> float:
        """The most points that may be given; 0 for a pure penalty."""
        return max(self.values, default=max(self.points or 0.0, 0.0)) + 0.0

    @cached_property
    def full(self) -> float:
        """What the criterion adds to the denominator: its positive points."""
        return max(self.best, 0.0)

    @cached_property
    def weight(self) -> float:
        """The points for a criterion that applies in full: the largest by size."""
        return self.best if self.best >= -self.worst else self.worst

    @cached_property
    def levels(self) -> tuple[float, ...]:
        """The points from "does not apply" to "applies in full"; empty if they lie on both sides of 0."""
        return () if self.worst < 0 < self.best else tuple(sorted(self.options, key=abs))

    def halved(self) -> "Criterion":
        """The same criterion, of which half may be given: for what is met in part."""
        values = (0.0, self.weight / 2, self.weight)
        return msgspec.structs.replace(self, points=None, values=values)


def tags_of(criteria: Iterable[Criterion]) -> list[str]:
    """All tags, in order of first use."""
    return list(dict.fromkeys(tag for criterion in criteria for tag in criterion.tags))


def load_criteria(file: str) -> tuple[Criterion, ...]:
    """The criteria of a file: a list in YAML (.yaml, .yml) or JSON (.json), else JSON Lines. Raises CriteriaError."""
    path = Path(file)
    try:
        status = path.stat()
        return _load(path, status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise CriteriaError(f"{file}: cannot be read: {error.strerror}") from error


@lru_cache(maxsize=64)
def _load(path: Path, modified: int, size: int) -> tuple[Criterion, ...]:
    if size > MAX_FILE_BYTES:
        raise CriteriaError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix in (".yaml", ".yml", ".json"):
            loaded = msgspec.json.decode(text) if path.suffix == ".json" else yaml.safe_load(text)
            rows = list(enumerate(msgspec.convert(loaded, list[object] | None) or [], 1))
        else:
            lines = enumerate(text.split("\n"), 1)
            rows = [(number, msgspec.json.decode(line)) for number, line in lines if line.strip()]
    except (UnicodeDecodeError, msgspec.MsgspecError, yaml.YAMLError, RecursionError) as error:
        raise CriteriaError(f"{path}: neither JSON Lines nor a list: {error}") from error
    if not rows:
        raise CriteriaError(f"{path}: contains no criteria")
    return tuple(_criterion(path, number, row) for number, row in rows)


def _criterion(path: Path, number: int, row: object) -> Criterion:
    try:
        return Criterion.parse(row) if isinstance(row, str) else msgspec.convert(row, Criterion)
    except ValueError as error:
        raise CriteriaError(f"{path}:{number}: {error}") from error


def general_rubrics(language: str = "en") -> tuple[Criterion, ...]:
    """Our own 48 general rubrics, 73 points, each tagged with a dimension of Rigorous Bench; in English or Chinese."""
    shipped = "zh" if language == "zh" else "en"
    return load_criteria(str(Path(__file__).with_name(f"general_rubrics.{shipped}.jsonl")))


def explained_criteria(criteria: Sequence[Criterion], share: float = 1.0) -> list[ExplainedCriterion]:
    """`criteria` with their tags, and what each weighs where all their positive points make up `share`."""
    full = sum(one.full for one in criteria)
    return [
        ExplainedCriterion(
            what=one.criterion, weight=share * one.weight / full if full else None, tags=one.tags
        )
        for one in criteria
    ]
