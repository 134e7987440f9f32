"""Criteria of a rubric, the files that hold them, and their arithmetic: scores, shares and pass rates from points.

A file is JSON Lines, a list in YAML or JSON, or a table (CSV or TSV) with columns of these names, in whose cells `;`
stands between values or tags:

    {"criterion": "States the dose in mg/kg.", "points": 3, "tags": ["facts"]}
    {"criterion": "Compares at least three options.", "values": [0, 1, 2], "tags": ["depth"]}
    {"criterion": "Recommends a withdrawn product.", "points": -4}

`points` are given if the criterion is met, else 0; `values` are all the points that may be given, if there are steps
between. A row with a `task` is for that task only. A row may also be one string that ends in its values, as Rigorous
Bench publishes them: "Does it give a date? Yes=2, No=0".
"""

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

import msgspec
import yaml

from adjudge.fetchers.separated import separator_of
from adjudge.scoring.answers.parts import Measure
from adjudge.scoring.contract.protocol import ExplainedCriterion
from adjudge.scoring.contract.scorecard import MetricWords

_POINTS = "The points of the criteria that are met, over all positive points"

RUBRICS = MetricWords(
    source="adjudge",
    of={
        "score": f"{_POINTS}; below 0 where penalties prevail.",
        "score_clipped": f"{_POINTS}, not below 0.",
        "score_mean_clipped": f"{_POINTS}; only the mean over tasks is held between 0 and 1.",
        "share": "The criteria that are met, without their points; a criterion with penalty counts when it is not.",
        "pass_rate": "The criteria that are met in full, without their points.",
        "tag:": f"{_POINTS}, over the criteria with this tag.",
        "share:": "The criteria with this tag that are met, without their points.",
        "pass_rate:": "The criteria with this tag that are met in full.",
    },
)
HEALTHBENCH = MetricWords(
    source="HealthBench",
    of={
        "score": f"{_POINTS}; the mean over examples is held between 0 and 1.",
        "score_length_adjusted": "The score less the published rate of its set for every 500 characters beyond 2,000.",
        "tag:": f"{_POINTS}, over the criteria with this tag.",
    },
    units=dict.fromkeys(("score", "score_length_adjusted", "tag:"), "share"),
)
DRACO = MetricWords(
    source="DRACO",
    of={
        "score": f"{_POINTS}, held between 0 and 1.",
        "pass_rate": "The criteria that pass, without their points; a negative one passes when it is not met.",
        "score:": f"{_POINTS}, over the criteria of this section.",
        "pass_rate:": "The criteria of this section that pass.",
    },
)
RESEARCHRUBRICS = MetricWords(
    source="ResearchRubrics",
    of={
        "score": f"{_POINTS}; below 0 where penalties prevail.",
        "axis:": f"{_POINTS}, over the criteria of this axis.",
    },
)
RLER = MetricWords(
    source="DR Tulu (RLER)",
    of={
        "rubric_reward": "The weighted scores of all rubrics, over their weights.",
        "persistent_rubric_reward": "The weighted scores of the persistent rubrics, as the training code divides them.",
        "adaptive_rubric_reward": "The weighted scores of the adaptive rubrics, as the training code divides them.",
    },
    units=dict.fromkeys(("persistent_rubric_reward", "adaptive_rubric_reward"), "share"),
)
DRB2 = MetricWords(
    source="DeepResearch Bench II",
    of={
        "total": "The items of all dimensions that are met.",
        "info_recall": "The items about information that are met.",
        "analysis": "The items about analysis that are met.",
        "presentation": "The items about presentation that are met.",
        "blocked_rate": "The items that are met only by text that rests on the blocked source.",
    },
)
LIVERESEARCHBENCH = MetricWords(
    source="LiveResearchBench",
    of={
        "average": "The mean of presentation, coverage, consistency and citation; ours, without depth.",
        "presentation": "The ten fixed items about presentation that are met.",
        "coverage": "The items of the task's checklist that are met.",
        "consistency": "A score by the number of contradictions that the judge lists.",
        "citation": "A score by the number of statements without a citation that the judge lists.",
        "depth": "Depth against the reference report in both orders: 1 for a win, a half for a tie.",
        "depth_code": "Wins in depth over wins and losses, pooled over tasks.",
        "depth_won": "Orders in which the report wins in depth.",
        "depth_decided": "Orders in which the report wins or loses in depth.",
    },
    units={**dict.fromkeys(("average", "consistency", "citation"), "share")},
)

RIGOROUS = MetricWords(
    source="Rigorous Bench",
    of={
        "integrated": "Quality times one minus drift times boost, times 100.",
        "quality": "The mean of the shares of points under the task's own and the general rubrics.",
        "qsr": "Points of the task's own rubrics, over all of them.",
        "grr": "Points of the general rubrics, over all of them.",
        "dimension:": "Points of the general rubrics of this dimension, over all of them.",
        "drift": "How far the report is from the task's subject, by keywords.",
        "fak_drift": "How much the keywords that the report should have are missing.",
        "fdk_drift": "How much the keywords that the report should not have are there.",
        "boost": "A factor for citing trusted sources and hosts.",
        "contribution_per_token": "The integrated score over the tokens that the system spent beyond its input.",
        "retrieval_index": "Cited links over the pages that were retrieved.",
        "annotated": "Cited links, each once.",
        "retrieved": "Pages that the system retrieved, as it states.",
        "inference_seconds": "The time in which a model wrote, as the system states.",
        "retrieval_seconds": "The time in which pages were sought and read, as the system states.",
    },
    units={
        "integrated": "points from 0 to 120",
        "boost": "factor from 1 to 1.2",
        "contribution_per_token": "points a token",
        "retrieval_index": "links a page",
        "annotated": "links",
        "retrieved": "pages",
        **dict.fromkeys(("inference_seconds", "retrieval_seconds"), "seconds"),
    },
    forms={
        "_alg1": "By algorithm 1: trusted hosts without the links that match in full.",
        "_code": "By the code: addresses are matched as substrings.",
    },
)


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
        if not all(map(math.isfinite, (*self.values, self.points or 0.0))):
            raise ValueError("`points` and `values` must be finite numbers, not NaN or infinity")
        if self.points is not None and self.values and self.points not in (self.best, self.worst):
            raise ValueError("`points` must be the highest or the lowest of `values`")
        if len(self.options) < 2:
            raise ValueError("a criterion needs at least two different numbers of points to give")
        if max(map(abs, self.options)) > MAX_POINTS:
            raise ValueError(f"points lie between -{MAX_POINTS:g} and {MAX_POINTS:g}")
        if len(self.options) > MAX_VALUES:
            raise ValueError(f"a criterion has at most {MAX_VALUES} values")

    @classmethod
    def parse(cls, text: str, tags: tuple[str, ...] = ()) -> "Criterion":
        """A criterion written as one string that includes its allowed values: "... Yes=2, No=0". Raises ValueError."""
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
        """The criterion's part of the denominator: its positive points."""
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
    """The criteria of a file: a list in YAML or JSON, a table (.csv, .tsv), else JSON Lines. Raises CriteriaError."""
    path = Path(file)
    try:
        status = path.stat()
        return _load(path, status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise CriteriaError(f"{file}: cannot be read: {error.strerror}; give a file of criteria") from error


@lru_cache(maxsize=64)
def _load(path: Path, modified: int, size: int) -> tuple[Criterion, ...]:
    if size > MAX_FILE_BYTES:
        raise CriteriaError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix in (".yaml", ".yml", ".json"):
            loaded = msgspec.json.decode(text) if path.suffix == ".json" else yaml.safe_load(text)
            rows = list(enumerate(msgspec.convert(loaded, list[object] | None) or [], 1))
        elif path.suffix in (".csv", ".tsv"):
            rows = list(_of_table(text, path.suffix))
        else:
            lines = enumerate(text.split("\n"), 1)
            rows = [(number, msgspec.json.decode(line)) for number, line in lines if line.strip()]
    except (UnicodeDecodeError, msgspec.MsgspecError, yaml.YAMLError, csv.Error, RecursionError) as error:
        raise CriteriaError(
            f"{path}: no list, table or JSON Lines of criteria: {error}; write criteria as "
            '- {criterion: "...", points: 1}, as JSON Lines, or as CSV'
        ) from error
    if not rows:
        raise CriteriaError(f"{path}: contains no criteria")
    return tuple(_criterion(path, number, row) for number, row in rows)


def _of_table(text: str, suffix: str) -> Iterator[tuple[int, dict[str, object]]]:
    """The rows of a table that hold anything, by line; empty cells are left out."""
    table = csv.DictReader(
        io.StringIO(text, newline=""),
        delimiter=separator_of(text, suffix),
        restkey="",
        restval="",
        strict=True,
    )
    for cells in table:
        if any(cells.pop("", ())):
            raise csv.Error(
                f"line {table.line_num} has more cells than the first; "
                "put quotation marks around a text with the separator in it"
            )
        row: dict[str, object] = {
            name.strip().lower(): cell.strip() for name, cell in cells.items() if cell.strip()
        }
        for name in ("values", "tags"):
            if name in row:
                row[name] = [one.strip() for one in str(row[name]).split(";")]
        if row:
            yield table.line_num, row


def _criterion(path: Path, number: int, row: object) -> Criterion:
    try:
        if isinstance(row, str):  # without values it is one point, as in a task
            return Criterion.parse(row) if "=" in row or "＝" in row else Criterion(criterion=row, points=1)
        return msgspec.convert(row, Criterion, strict=path.suffix not in (".csv", ".tsv"))
    except msgspec.ValidationError as error:
        may = ", ".join(Criterion.__struct_fields__)
        raise CriteriaError(
            f"{path}:{number}: {str(error).replace(' - at `$.', ' in `')}; a criterion is a text, or a mapping of {may}"
        ) from error
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


Given = Iterable[tuple[Criterion, float]]
"""Criteria, each with the points it was given."""


def rubric_score(given: Given) -> float | None:
    """Points given over all positive points: at most 1, below 0 where penalties prevail; None without any."""
    pairs = list(given)
    full = sum([criterion.full for criterion, _ in pairs])
    return sum([points for _, points in pairs]) / full if full else None


def tag_score(given: Given) -> float | None:
    """`rubric_score` of one tag's criteria; of penalties alone, the points over what there is to lose: -1 to 0."""
    pairs = list(given)
    score = rubric_score(pairs)
    if score is not None or not pairs:
        return score
    return sum(points for _, points in pairs) / -sum(criterion.worst for criterion, _ in pairs)


def share(given: Given) -> float | None:
    """How far the criteria with positive points are met, 0 to 1, each counting the same; None without any."""
    met = [points / criterion.full for criterion, points in given if criterion.full]
    return sum([one if one > 0.0 else 0.0 for one in met]) / len(met) if met else None


def pass_rate(given: Given) -> float | None:
    """The share of criteria that pass, each counting the same; None without any.

    A criterion passes with its best points: one with negative points passes when it does not apply.
    """
    passed = [points == criterion.best for criterion, points in given]
    return sum(passed) / len(passed) if passed else None


def held(score: float | None) -> float | None:
    """`score` between 0 and 1."""
    return None if score is None else min(max(score, 0.0), 1.0)


def clipped(measure: Callable[[Given], float | None]) -> Measure[Criterion]:
    """`measure`, held between 0 and 1 for each report."""
    return lambda given: held(measure(given))
