"""The result for one report under one protocol: a value or a reason for every metric, and the evidence.

A line of evidence ends in an `Outcome`: its kind from a closed list, the points it gives, and its words for people.

What the metrics of a protocol are, in words: for tooltips, tables and documentation.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Literal, Protocol, TypeVar, runtime_checkable

import msgspec

from adjudge.judges import Answer, Judgment, Status, Usage
from adjudge.scoring.contract.answers import Answers
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.reasons import Reason

__all__ = [
    "MISSING",
    "Bounds",
    "Evidence",
    "Length",
    "Metric",
    "MetricWords",
    "Missing",
    "Outcome",
    "OutcomeKind",
    "Partial",
    "Scorecard",
    "Value",
    "count_kinds",
    "explained",
    "first_missing",
]

A = TypeVar("A", bound=Answer)


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of a protocol.

    `worst` and `best` bound it (None: unbounded); an empty or oversized report takes `worst`. `scale` is the factor
    for display. `ratio` names the two metrics whose sums over tasks it is pooled from: such a metric has no value for
    one report. `clip` are the bounds to which the mean over tasks is clipped, while values of single reports may lie
    outside. A leaderboard ranks by the `headline` metric; `shown` ones are
    beside it, in the order in which the protocol declares them: the columns of its paper's table. A protocol whose
    paper has several tables names the `table` of each metric, and each table has its own headline. A metric that
    is not `everywhere` is some tasks' own (their tags, say). One that names a part of its protocol's `gold` is due only
    on tasks that have it.

    `kind` is what it measures: the report's quality, a count of something in it, or what the system spent on it, which
    a report need not state. `decimals` are those of a mean in tables; a count of one report has none. `definition` says
    in a sentence what it is, `unit` of what (a share where nothing is said and it is bounded by 0 and 1), `source`
    where it is defined.
    """

    name: str
    worst: float = 0.0
    best: float | None = 1.0
    scale: float = 1.0
    ratio: tuple[str, str] | None = None
    headline: bool = False
    shown: bool = True
    lower_is_better: bool = False
    clip: tuple[float, float] | None = None
    everywhere: bool = True
    table: str = ""
    kind: Literal["quality", "count", "resource"] = "quality"
    gold: str = ""
    decimals: int = 2
    definition: str = ""
    unit: str = ""
    source: str = ""

    @property
    def units(self) -> str:
        """The unit, in words; "" where it is not known."""
        of_kind = "count" if self.kind == "count" else ""
        return self.unit or of_kind or ("share" if {self.worst, self.best} == {0.0, 1.0} else "")


class Bounds(msgspec.Struct, frozen=True, gc=False):
    """Between what a metric lies, whatever its missing parts would have answered; `low` <= `high`.

    None is unbounded. `answered` of `parts` have an answer.
    """

    low: float | None
    high: float | None
    answered: int
    parts: int

    @classmethod
    def whole(cls, value: float) -> "Bounds":
        """The bounds of a value that misses nothing."""
        return cls(value, value, 1, 1)

    @classmethod
    def unknown(cls, metric: Metric) -> "Bounds":
        """The bounds of a `metric` of which nothing is known: its worst and best."""
        if metric.best is None:
            return cls(metric.worst, None, 0, 1)
        return cls(min(metric.worst, metric.best), max(metric.worst, metric.best), 0, 1)


class Missing(msgspec.Struct, frozen=True):
    """The reason a value is missing, in its place."""

    reason: Reason


class Partial(msgspec.Struct, frozen=True):
    """A metric made of parts: its value, or why there is none, and its bounds."""

    value: float | Missing
    bounds: Bounds


Value = float | Missing | Partial


OutcomeKind = Literal[
    "supported", "unsupported", "unknown", "unreachable",
    "met", "partly", "unmet", "blocked",
    "matched", "unmatched",
    "true", "false", "not_stated",
    "won", "tied", "lost",
    "points", "problem", "note", "missing",
]  # fmt: skip
"""What came of a line of evidence.

Of a statement and its source: "supported", "unsupported", "unknown", or "unreachable" (the page). Of a criterion: "met"
(all points), "partly", "unmet", or "blocked" (met, but only by a source that does not count). Of an answer beside gold:
"matched" or "unmatched". Of a gold statement, by the report: "true", "false" or "not_stated". Of a comparison: "won",
"tied" or "lost". "points" are a mark or a grade that is neither met nor unmet. A "problem" is one that the judge lists,
a "note" says something and judges nothing. "missing" has no verdict; the line's `reason` says why.
"""


class Outcome(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What came of a line of evidence, and its `words` for people, which no program reads.

    `points` of `most`, in the protocol's own unit, beside those of a `reference` report; each None where the protocol
    does not say.
    """

    kind: OutcomeKind
    points: float | None = None
    most: float | None = None
    reference: float | None = None
    words: str = ""

    @classmethod
    def graded(cls, points: float, most: float, words: str = "") -> "Outcome":
        """A criterion with `points` of `most`: met, partly met or unmet; `words` says so where it is empty."""
        kind: OutcomeKind = "met" if points >= most else "partly" if points > 0 else "unmet"
        return cls(kind, points, most, words=words or f"{points:g} of {most:g}")


MISSING = Outcome("missing")
"""No verdict, and nothing to say but the line's reason."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """A line of evidence: what was judged (a criterion, a statement), the outcome, and its source.

    `judgment` is the hex key of a judgment, `url` a page's URL, `reason` why there is no outcome; each may be empty.
    `value` is the outcome as a number, where it is one, `worst` the least it could be where that is below 0, `id` a
    name for what was judged. `quote` is what the judge quotes from the report for it, `note` the reason it gives.
    """

    what: str
    outcome: Outcome
    judgment: str = ""
    url: str = ""
    reason: str = ""
    id: str = ""
    value: float | None = None
    quote: str = ""
    note: str = ""
    worst: float | None = None


class Length(msgspec.Struct, frozen=True, gc=False):
    """How long a report is: its words (an ideograph is one), about how many tokens, and the addresses that it cites."""

    words: int
    tokens: int
    citations: int


class Scorecard(msgspec.Struct, frozen=True, kw_only=True):
    """One report's scores under one protocol; those of a comparison name the `rival` that it was compared with.

    `scores` holds every metric, None where unscored, with its reason in `reasons`. `status` is scored if no metric
    is None. A scored card with a `reason` took the minimum by the report's own doing. `bounds` holds the metrics that
    are made of several parts or miss some; `bounds_of` answers for every one. `judgments` are the hex keys of all that
    was asked, `pages` the URLs of all that was read, in order of first use. `key` is a hex digest of all that decided
    it, empty where a question has no answer or something else has a say, like a page, which may change. `signs` and
    `rival_signs` are what the report and the rival's do to please a judge (`signs_in` of `scoring/text/integrity.py`),
    whatever the protocol; empty where nobody has looked, as `length` is None. `answers` are by question type what the
    judge said, and how its replies ended.
    """

    protocol: str
    system: str
    task_id: str
    sample: int
    repeat: int
    scores: dict[str, float | None]
    status: Status
    reason: Reason | None = None
    reasons: dict[str, Reason] = {}
    evidence: tuple[Evidence, ...] = ()
    judgments: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    usage: Usage = Usage()
    bounds: dict[str, Bounds] = {}
    rival: str = ""
    key: str = ""
    signs: dict[str, float] = {}
    rival_signs: dict[str, float] = {}
    length: Length | None = None
    answers: dict[str, Answers] = {}

    def bounds_of(self, metric: Metric) -> Bounds:
        """The bounds of `metric`: those kept, else the value alone, else everything from its worst to its best."""
        kept = self.bounds.get(metric.name)
        if kept is not None:
            return kept
        value = self.scores.get(metric.name)
        return Bounds.unknown(metric) if value is None else Bounds.whole(value)

    @classmethod
    def of(
        cls, protocol: str, case: Case, values: Mapping[str, Value], evidence: Iterable[Evidence] = ()
    ) -> "Scorecard":
        """The scorecard of `case` with `values`, unscored if any of them is missing."""
        bounds = {name: value.bounds for name, value in values.items() if isinstance(value, Partial)}
        plain = {name: value.value if isinstance(value, Partial) else value for name, value in values.items()}
        reasons = {name: value.reason for name, value in plain.items() if isinstance(value, Missing)}
        return cls(
            protocol=protocol,
            system=case.report.system,
            task_id=case.report.task_id,
            sample=case.report.sample,
            repeat=case.repeat,
            scores={
                name: None if isinstance(value, Missing) else float(value) for name, value in plain.items()
            },
            status="unscored" if reasons else "scored",
            reason=next(iter(reasons.values()), None),
            reasons=reasons,
            evidence=tuple(evidence),
            bounds=bounds,
            rival="" if case.rival is None else case.rival.system,
        )

    def derived(self, metric: str, name: str, of: Callable[[float], float]) -> "Scorecard":
        """With a metric `name` that is `of`, a rising function, what `metric` is; missing and bounded as that is."""
        value, bounds, reason = self.scores[metric], self.bounds.get(metric), self.reasons.get(metric)
        ends = (
            {}
            if bounds is None
            else {
                name: msgspec.structs.replace(
                    bounds,
                    low=None if bounds.low is None else of(bounds.low),
                    high=None if bounds.high is None else of(bounds.high),
                )
            }
        )
        return msgspec.structs.replace(
            self,
            scores=self.scores | {name: None if value is None else of(value)},
            reasons=self.reasons | ({} if reason is None else {name: reason}),
            bounds=self.bounds | ends,
        )


def first_missing(judgments: Iterable[Judgment[A]]) -> Missing | None:
    """`Missing` with the reason of the first unscored judgment, or None if all are scored."""
    for judgment in judgments:
        if judgment.reason is not None:
            return Missing(judgment.reason)
    return None


def count_kinds(lines: Iterable[Evidence]) -> dict[str, int]:
    """How many lines have which kind of outcome."""
    return dict(Counter(line.outcome.kind for line in lines))


class MetricWords(msgspec.Struct, frozen=True, kw_only=True):
    """The words of a protocol's metrics, and their `source`.

    `of` has a sentence by name. A name with a prefix ("reference_first.overall") has those of the rest, one with a tag
    ("tag:accuracy") those of "tag:", and one with an ending of `forms` ("_strict") those of the name without it and of
    the ending. `units` are by name too, for what is not a share.
    """

    source: str
    of: dict[str, str]
    units: dict[str, str] = {}
    forms: dict[str, str] = {}

    def explain(self, metric: Metric) -> Metric:
        """`metric` with its words, "" where there are none."""
        name, said = self._found(metric.name)
        unit = self.units.get(name, self.units.get(metric.name, ""))
        return msgspec.structs.replace(metric, definition=said, unit=unit, source=self.source)

    def _found(self, name: str) -> tuple[str, str]:
        start, colon, _ = name.partition(":")
        for key in (name, f"{start}:" if colon else name, name.rpartition(".")[2]):
            if key in self.of:
                return key, self.of[key]
        for ending, said in self.forms.items():
            if name.endswith(ending):
                key, base = self._found(name.removesuffix(ending))
                return key, f"{base} {said}" if base else ""
        return name, ""


@runtime_checkable
class Explains(Protocol):
    """A protocol that says what its metrics are."""

    words: ClassVar[MetricWords]


def explained(protocol: object, metric: Metric) -> Metric:
    """`metric` of `protocol` with the protocol's words, if it has some."""
    return protocol.words.explain(metric) if isinstance(protocol, Explains) else metric
