"""What a protocol is, what it may do, and how it is given a case.

A judge that scores by expectation answers without reasoning, with a mean over labels, and a fast one does so for some
questions. Either is a different measurement, and must never share a column with another, so a protocol under such a
judge has metric names of its own.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Protocol, TypeVar, runtime_checkable

import msgspec

from adjudge.fetchers.page import PageSource
from adjudge.judges import Answer, Judgment, Question
from adjudge.scoring.contract.case import Case, GoldError, Report, Unread
from adjudge.scoring.contract.reasons import Reason
from adjudge.scoring.contract.scorecard import Bounds, Evidence, Metric, Missing, Outcome, Partial, Scorecard

__all__ = [
    "MAX_REPORT_CHARS",
    "CaseMetrics",
    "Comparing",
    "ExplainedCriterion",
    "Explaining",
    "PublishedCalls",
    "ScoringProtocol",
    "ShowsMedia",
    "Tools",
    "by_case",
    "installed_protocols",
    "minimum",
    "own_doing",
    "prefixed",
    "published_protocols",
    "score_case",
    "unscored",
]

A = TypeVar("A", bound=Answer)

MAX_REPORT_CHARS = 500_000
ENTRY_POINTS = "adjudge.protocols"
PUBLISHED = "adjudge.published"


class Tools(PageSource, Protocol):
    """All that a protocol can do to the world: ask a judge and read pages. None of it raises for one row's failure.

    What was asked or read before comes from the store.
    """

    async def ask(self, question: Question[A]) -> Judgment[A]:
        """The judge's answer to `question`, from the store if it was asked before."""
        ...

    async def ask_all(self, questions: Iterable[Question[A]]) -> list[Judgment[A]]:
        """The answers to `questions`, asked all at once, in their order."""
        ...


class ScoringProtocol(Protocol):
    """A protocol: a frozen struct whose fields are its options, registered as an entry point `adjudge.protocols`.

    `metrics` lists every metric that `score` gives under the options chosen, and the pooled ones. Where a benchmark
    keeps its gold to itself, the class has a class variable `withheld` that says how ("encrypted", "gated").
    """

    @property
    def name(self) -> str:
        """The protocol's name, a class variable where it is a struct."""
        ...

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics, headline first."""
        ...

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """Score one case. Raises GoldError if the task's gold is missing or invalid."""
        ...


@runtime_checkable
class CaseMetrics(Protocol):
    """A protocol that needs gold, or whose metrics or their bounds differ from case to case (tags, say, or points).

    The name of a metric that depends on the case contains a colon.
    """

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        """Every metric that `score` gives for this case. Raises GoldError like `score`."""
        ...


@runtime_checkable
class ShowsMedia(Protocol):
    """A protocol whose questions may carry media of these kinds: "image", "audio" or "video"."""

    @property
    def media(self) -> tuple[str, ...]:
        """The kinds of media, a class variable where the protocol is a struct."""
        ...


@runtime_checkable
class PublishedCalls(Protocol):
    """A protocol that sends a benchmark's own prompts, registered as an entry point `adjudge.published`.

    It has the name of the protocol that asks in our words; its option `checkout` is the benchmark's folder.
    """

    def prompts(self) -> dict[str, str]:
        """The digest (hex) of every prompt it may send, by a name. Raises CheckoutError."""
        ...


@runtime_checkable
class Comparing(ScoringProtocol, Protocol):
    """A protocol that compares two systems' reports: its cases have a rival, and those of other protocols have none.

    Every metric of a comparison is 0 for a report that lost, 1 for one that won, 0.5 for a tie. Systems are compared
    with the `baseline`, or without one each with each, in at most `budget` comparisons, or without one in all.
    """

    baseline: str | None
    budget: int | None


class ExplainedCriterion(msgspec.Struct, frozen=True, kw_only=True):
    """The basis of the line of evidence about `what`, for its readers.

    `weight` is the share that it decides of the headline metric, or of the part of it that criteria make; negative for
    a penalty, None if it has none.
    """

    what: str
    explanation: str = ""
    weight: float | None = None
    tags: tuple[str, ...] = ()


@runtime_checkable
class Explaining(ScoringProtocol, Protocol):
    """A protocol that judges by criteria and can explain them."""

    async def explained(self, case: Case, tools: Tools) -> list[ExplainedCriterion]:
        """The criteria of the case's task. Raises GoldError; empty where the judge's answers for them are missing."""
        ...


async def score_case(
    protocol: ScoringProtocol, case: Case, tools: Tools, report_limit: int = MAX_REPORT_CHARS
) -> Scorecard:
    """`protocol`'s scorecard of `case`, with the rules that hold for every protocol.

    A truncated, empty or oversized report takes the minimum without being judged, and loses to a rival; missing or
    invalid gold leaves all metrics unscored, whatever the report, and so does a failure to read the report that is not
    its own doing.
    """
    why = own_doing(case.report, report_limit)
    rivals = None if case.rival is None else own_doing(case.rival, report_limit)
    try:
        if rivals is not None:
            return _unopposed(protocol, case, rivals, 1.0 if why is None else 0.5)
        if why is not None:
            return minimum(protocol, case, why)
        return _bounded(protocol, case, await protocol.score(case, tools))
    except (GoldError, Unread) as error:
        what = "gold" if isinstance(error, GoldError) else "report"
        evidence = [Evidence(what=what, outcome=Outcome("missing", words=str(error)), reason=error.reason)]
        return unscored(protocol, case, error.reason, evidence)


def unscored(
    protocol: ScoringProtocol, case: Case, reason: Reason, evidence: Iterable[Evidence] = ()
) -> Scorecard:
    """The scorecard without any value: every metric may be anything between its worst and best."""
    values = {
        metric.name: Partial(Missing(reason), Bounds.unknown(metric))
        for metric in _metrics_of(protocol, case)
    }
    return Scorecard.of(protocol.name, case, values, evidence)


def _bounded(protocol: ScoringProtocol, case: Case, card: Scorecard) -> Scorecard:
    """`card` with bounds for every metric without a value."""
    if None not in card.scores.values():
        return card
    lacking = [metric for metric in _metrics_of(protocol, case) if card.scores.get(metric.name, 0) is None]
    bounds = {metric.name: card.bounds_of(metric) for metric in lacking}
    return msgspec.structs.replace(card, bounds=card.bounds | bounds) if bounds else card


def _metrics_of(protocol: ScoringProtocol, case: Case) -> list[Metric]:
    """The metrics with a value for one report; those of every task where this one lacks gold."""
    metrics = protocol.metrics
    if isinstance(protocol, CaseMetrics):
        with suppress(GoldError):
            metrics = protocol.metrics_of(case)
    return [metric for metric in metrics if metric.ratio is None]


def minimum(protocol: ScoringProtocol, case: Case, reason: Reason) -> Scorecard:
    """The worst scorecard, for a failure that is the report's own doing."""
    metrics = protocol.metrics_of(case) if isinstance(protocol, CaseMetrics) else protocol.metrics
    values = {metric.name: metric.worst for metric in metrics if metric.ratio is None}
    return msgspec.structs.replace(Scorecard.of(protocol.name, case, values), reason=reason)


def _unopposed(protocol: ScoringProtocol, case: Case, reason: Reason, won: float) -> Scorecard:
    """The scorecard of a comparison whose rival has no report to be judged, by its own doing."""
    card = Scorecard.of(protocol.name, case, {metric.name: won for metric in protocol.metrics})
    return msgspec.structs.replace(card, reason=reason)


def by_case(protocols: Iterable[ScoringProtocol]) -> Callable[[Case], list[ScoringProtocol]]:
    """Which of `protocols` score a case: with a rival those that compare reports, without one the others."""
    alone: list[ScoringProtocol] = []
    comparing: list[ScoringProtocol] = []
    for protocol in protocols:
        (comparing if isinstance(protocol, Comparing) else alone).append(protocol)
    return lambda case: alone if case.rival is None else comparing


def own_doing(report: Report, report_limit: int = MAX_REPORT_CHARS) -> Reason | None:
    """Why `report` gets the minimum without being judged, or None."""
    if report.truncated:
        return "truncated"
    if not report.text.strip():
        return "report_empty"
    return "report_too_large" if len(report.text) > report_limit else None


def installed_protocols() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names and loaders of all installed protocols, ours and others'."""
    return _loaders(ENTRY_POINTS)


def published_protocols() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names and loaders of the protocols that can send a benchmark's own prompts."""
    return _loaders(PUBLISHED)


def _loaders(group: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    from importlib.metadata import entry_points  # commands that look something up need none

    for entry in entry_points(group=group):
        yield entry.name, entry.load


def prefixed(protocol: ScoringProtocol, prefix: str) -> ScoringProtocol:
    """`protocol` with `prefix` before the name of every metric."""
    if isinstance(protocol, CaseMetrics):
        return _PrefixedByCase(protocol, prefix, protocol)
    return _Prefixed(protocol, prefix)


class _Prefixed:
    def __init__(self, protocol: ScoringProtocol, prefix: str) -> None:
        self._protocol = protocol
        self._prefix = prefix

    @property
    def name(self) -> str:
        return self._protocol.name

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return tuple(map(self._renamed, self._protocol.metrics))

    @property
    def pages(self) -> bool:
        return bool(getattr(self._protocol, "pages", False))

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        card = await self._protocol.score(case, tools)
        return msgspec.structs.replace(
            card,
            scores={self._prefix + name: value for name, value in card.scores.items()},
            reasons={self._prefix + name: reason for name, reason in card.reasons.items()},
            bounds={self._prefix + name: bounds for name, bounds in card.bounds.items()},
        )

    def _renamed(self, metric: Metric) -> Metric:
        ratio = metric.ratio and (self._prefix + metric.ratio[0], self._prefix + metric.ratio[1])
        return msgspec.structs.replace(metric, name=self._prefix + metric.name, ratio=ratio)


class _PrefixedByCase(_Prefixed):
    def __init__(self, protocol: ScoringProtocol, prefix: str, metrics: CaseMetrics) -> None:
        super().__init__(protocol, prefix)
        self._metrics = metrics

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        return tuple(map(self._renamed, self._metrics.metrics_of(case)))
