"""The metrics of a run or a server for Prometheus: values that processes send, add up and print in its text format.

Labels come from closed lists or from the configuration (question types, judges, protocols, reasons, tables, live
replicas), never from a report, page or request, so the number of series is bounded. A finished scorecard is counted and
logged the same way in a run and in rewards.
"""

import logging
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from typing import Any, Protocol, runtime_checkable

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric

from adjudge.engine.store.parts import Table
from adjudge.engine.telemetry.logs import about, case_name, event
from adjudge.fetchers.page import Page
from adjudge.judges import Judgment
from adjudge.scoring.contract.answers import Answers
from adjudge.scoring.contract.scorecard import Scorecard

_log = logging.getLogger(__name__)

CONTENT_TYPE = "text/plain; version=0.0.4"


class Family(msgspec.Struct, frozen=True, array_like=True):
    """The current state of one metric; samples are (name, labels, value). Families of one name can be added."""

    name: str
    kind: str
    help: str
    samples: tuple[tuple[str, dict[str, str], float], ...]


def added(families: Iterable[Family]) -> list[Family]:
    """`families` of any processes, with those of the same name added up."""
    heads: dict[str, Family] = {}
    values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = defaultdict(dict)
    for family in families:
        heads.setdefault(family.name, family)
        sums = values[family.name]
        for name, labels, value in family.samples:
            key = name, tuple(labels.items())
            sums[key] = value if family.kind == "info" else sums.get(key, 0.0) + value
    return [
        Family(
            name,
            head.kind,
            head.help,
            tuple((sample, dict(pairs), value) for (sample, pairs), value in values[name].items()),
        )
        for name, head in heads.items()
    ]


def page(families: Iterable[Family]) -> bytes:
    """The sum of `families` in Prometheus' text format."""
    return generate_latest(_Page(families))


class _Page:
    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """The metrics, as prometheus_client expects of a collector."""
        for family in added(self._families):
            metric = Metric(family.name, family.help, family.kind)
            for sample, labels, value in family.samples:
                metric.add_sample(sample, labels, value)
            yield metric


SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)


class Measured(Protocol):
    """What has metrics to show."""

    def measured(self) -> list[Family]:
        """Its metrics now."""
        ...


@runtime_checkable
class _Balanced(Protocol):
    """A judge with several replicas."""

    @property
    def loads(self) -> Mapping[str, int]: ...


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        self.registry = own = CollectorRegistry()
        self._questions = Counter(
            "adjudge_questions",
            "Questions that a judge answered or left unscored",
            ["question", "judge", "status", "reason"],
            registry=own,
        )
        self._choices = Counter(
            "adjudge_answers",
            "What a judge chose among a few, by question type: one for each criterion, statement or mark",
            ["question", "answer"],
            registry=own,
        )
        self._ahead = Counter(
            "adjudge_answers_side_by_side",
            "Two texts marked side by side, by which of them was ahead: first or second shown, or neither",
            ["question", "ahead"],
            registry=own,
        )
        self._broken = Counter(
            "adjudge_answers_broken",
            "Replies that reached a limit of tokens (cut) or ended in repetition (loop)",
            ["question", "how"],
            registry=own,
        )
        self._queue = Histogram(
            "adjudge_judge_queue_seconds",
            "From a question's asking to its sending, and between attempts",
            ["judge"],
            buckets=SECONDS,
            registry=own,
        )
        self._judge = Histogram(
            "adjudge_judge_seconds",
            "From a question's sending to its answer's last byte",
            ["judge"],
            buckets=SECONDS,
            registry=own,
        )
        self._tokens = Counter(
            "adjudge_tokens",
            "Tokens of judgments: of prompts computed or cached, and generated",
            ["judge", "kind"],
            registry=own,
        )
        self._pages = Counter("adjudge_pages", "Pages read, or why they were not", ["result"], registry=own)
        self._page_bytes = Counter("adjudge_page_bytes", "Bytes of the bodies of pages read", registry=own)
        self._scorecards = Counter(
            "adjudge_scorecards",
            "Cases done under a protocol",
            ["protocol", "status", "reason"],
            registry=own,
        )
        self._planned = Gauge("adjudge_scorecards_planned", "Scorecards that the run will make", registry=own)
        self._at_work = 0
        self._begun: set[str] = set()
        Gauge("adjudge_scorecards_in_flight", "Cases at work under a protocol", registry=own).set_function(
            lambda: self._at_work
        )
        self._lost = Counter("adjudge_workers_lost", "Workers that died or hung", ["kind"], registry=own)
        self._workers = Gauge("adjudge_workers", "Workers that are open", ["kind"], registry=own)
        # Looking up the series is half of the cost of counting.
        self._question, self._scorecard = cache(self._questions.labels), cache(self._scorecards.labels)
        self._of_judge = cache(self._judges_own)
        self._watched = _Watched()
        own.register(self._watched)

    def answered(self, judgment: Judgment[Any], said: Answers, among: Sequence[str], waited: float) -> None:
        """Count a judgment that its judge returned after `waited` seconds in all.

        It is what it `said` that is counted, of all that answers of its type may choose `among`.
        """
        self._health(judgment.question, said, among)
        usage = judgment.usage
        self._question(judgment.question, judgment.judge, judgment.status, judgment.reason or "").inc()
        seconds, queue, computed, cached, generated = self._of_judge(judgment.judge)
        seconds.observe(judgment.seconds)
        queue.observe(max(0.0, waited - judgment.seconds))
        computed.inc(max(0, usage.prompt_tokens - usage.cached_tokens))
        cached.inc(usage.cached_tokens)
        generated.inc(usage.completion_tokens)

    def _health(self, name: str, one: Answers, among: Sequence[str]) -> None:
        """Count what was said, in series that all begin with the first answer to a question of that name."""
        if name not in self._begun:
            self._begun.add(name)
            for value in among:
                self._choices.labels(name, value)
            for how in ("cut", "loop"):
                self._broken.labels(name, how)
        for value, count in one.said.items():
            self._choices.labels(name, value).inc(count)
        for ahead, count in (("first", one.first), ("second", one.second), ("neither", one.equal)):
            if count:
                self._ahead.labels(name, ahead).inc(count)
        for how, count in (("cut", one.cut), ("loop", one.looped)):
            if count:
                self._broken.labels(name, how).inc(count)

    def _judges_own(self, judge: str) -> tuple[Histogram, Histogram, Counter, Counter, Counter]:
        return (
            self._judge.labels(judge),
            self._queue.labels(judge),
            self._tokens.labels(judge, "computed"),
            self._tokens.labels(judge, "cached"),
            self._tokens.labels(judge, "generated"),
        )

    def fetched(self, page: Page) -> None:
        """Count a page from the fetcher."""
        self._pages.labels(page.reason or page.status).inc()
        self._page_bytes.inc(page.size)

    def stored(self, table: str, rows: int = 1) -> None:
        """Count `rows` that the store answered from `table`."""
        self._watched.hits[table] += rows

    def planned(self, scorecards: int) -> None:
        """Set how many scorecards there will be."""
        self._planned.set(scorecards)

    def scored(self, card: Scorecard) -> None:
        """Count a scorecard that goes into the run's table, or into a reward."""
        self._scorecard(card.protocol, card.status, card.reason or "").inc()

    def at_work(self, by: int) -> None:
        """Count a case under a protocol that begins (1) or ends (-1)."""
        self._at_work += by

    def workers(self, kind: str, count: int) -> None:
        """Set how many workers of `kind` are open."""
        self._workers.labels(kind).set(count)

    def lost(self, kind: str) -> None:
        """Count a worker that died or hung."""
        self._lost.labels(kind).inc()

    def watch(self, *tables: Table[Any]) -> None:
        """Report from now on what each of `tables` has written and still has to write."""
        self._watched.tables += tables

    def watch_judge(self, judge: object) -> None:
        """Report from now on how many questions each replica of `judge` has outstanding, if it has replicas."""
        if isinstance(judge, _Balanced):
            self._watched.routers.append(judge)

    def families(self) -> list[Family]:
        """All metrics as they are now."""
        return [
            Family(
                metric.name,
                metric.type,
                metric.documentation,
                tuple(
                    (sample.name, sample.labels, sample.value)
                    for sample in metric.samples
                    if not sample.name.endswith("_created")
                ),
            )
            for metric in self.registry.collect()
        ]


class _Watched:
    """Numbers kept by tables and routers, and store hits, which are too many to take a lock for each."""

    def __init__(self) -> None:
        self.hits: Tally[str] = Tally()
        self.tables: list[Table[Any]] = []
        self.routers: list[_Balanced] = []

    def collect(self) -> Iterable[Metric]:
        """The metrics, as prometheus_client expects of a collector."""
        built = InfoMetricFamily("adjudge_build", "Which adjudge this is", {"version": version("adjudge")})
        rows = CounterMetricFamily("adjudge_store_rows", "Rows written to the store", labels=["table"])
        size = CounterMetricFamily("adjudge_store_bytes", "Bytes written to the store", labels=["table"])
        waiting = GaugeMetricFamily("adjudge_store_unwritten_rows", "Rows to be written", labels=["table"])
        failing = GaugeMetricFamily(
            "adjudge_store_failing", "Whether the last attempt to write a table failed", labels=["table"]
        )
        lost = CounterMetricFamily(
            "adjudge_store_rows_set_aside", "Rows that no file can hold, left out", labels=["table"]
        )
        for name, tables in _by_name(self.tables).items():
            failing.add_metric([name], float(any(not one.healthy for one in tables)))
            lost.add_metric([name], sum(one.set_aside for one in tables))
            rows.add_metric([name], sum(one.written for one in tables))
            size.add_metric([name], sum(one.written_bytes for one in tables))
            waiting.add_metric([name], sum(one.unwritten for one in tables))
        hits = CounterMetricFamily(
            "adjudge_store_hits", "Judgments and pages that the store had", labels=["table"]
        )
        for table, had in self.hits.items():
            hits.add_metric([table], had)
        loads = GaugeMetricFamily(
            "adjudge_replica_questions", "Questions outstanding at each replica", labels=["replica"]
        )
        for replica, load in _sums(router.loads for router in self.routers).items():
            loads.add_metric([replica], load)
        return [built, rows, size, waiting, failing, lost, hits, loads]


def _by_name(tables: Iterable[Table[Any]]) -> dict[str, list[Table[Any]]]:
    found: defaultdict[str, list[Table[Any]]] = defaultdict(list)
    for table in tables:
        found[table.name].append(table)
    return found


def _sums(loads: Iterable[Mapping[str, int]]) -> Tally[str]:
    total: Tally[str] = Tally()
    for one in loads:
        total.update(one)
    return total


def note(card: Scorecard, metrics: Metrics) -> None:
    """Count `card` in `metrics` and log it under the name of its case."""
    metrics.scored(card)
    if not _log.isEnabledFor(logging.INFO):
        return
    with about(shard=card.task_id, case=case_name(card.system, card.task_id, card.sample, card.repeat)):
        event(_log, "scorecard", protocol=card.protocol, status=card.status, reason=card.reason)
