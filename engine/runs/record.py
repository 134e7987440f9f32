"""The record of a run in its folder: run.json, with what judging took, what failed, and how the run ended."""

import hashlib
import os
from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import msgspec

from adjudge.engine.config.judge import Bench
from adjudge.engine.config.redaction import masked, without_logins
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.runs.pulse import alive, last_pulse
from adjudge.engine.runs.tallies import AnswersOf, Constant, MeanLength, SignsOf, Unread
from adjudge.fetchers.files import write_whole
from adjudge.judges import JudgeIdentity, Usage
from adjudge.judges.judgment import Verdict
from adjudge.judges.plural import plural
from adjudge.scoring.contract.case import Case, GoldError, Report, Task
from adjudge.scoring.contract.protocol import CaseMetrics, ScoringProtocol
from adjudge.scoring.contract.scorecard import Metric, Scorecard, explained

__all__ = [
    "Due",
    "Effort",
    "Efforts",
    "Failure",
    "Failures",
    "Judging",
    "Resolution",
    "ResolvedPair",
    "RunRecord",
    "Spending",
    "Spent",
    "TaskRecord",
    "metrics_of",
]


class Effort(msgspec.Struct, frozen=True):
    """Tokens over the scorecards of a protocol, of all their questions, asked now or answered from the store.

    A question that several scorecards share counts for each.
    """

    scorecards: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def more(self, usage: Usage) -> "Effort":
        """With another scorecard's."""
        return Effort(
            self.scorecards + 1,
            self.prompt_tokens + usage.prompt_tokens,
            self.completion_tokens + usage.completion_tokens,
        )


class Efforts:
    """Adds up what scorecards took, as they pass."""

    def __init__(self) -> None:
        self._by_protocol: dict[str, Effort] = {}

    def take(self, card: Scorecard) -> None:
        """One more scorecard."""
        before = self._by_protocol.get(card.protocol, Effort())
        self._by_protocol[card.protocol] = before.more(card.usage)

    def result(self) -> dict[str, Effort]:
        """By protocol, those that took nothing left out."""
        return {name: one for name, one in sorted(self._by_protocol.items()) if one.prompt_tokens}


_PLACES = 3
_LONGEST = 200  # characters of a place


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """The `scorecards` of a protocol that lack scores for one `reason`.

    `places` are some of what failed, in alphabetical order: URLs, or "SYSTEM on TASK".
    """

    protocol: str
    reason: str
    scorecards: int
    places: tuple[str, ...]


class Failures:
    """Counts what is unscored, as scorecards pass; the same whatever their order."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._places: dict[tuple[str, str], list[str]] = {}

    def take(self, card: Scorecard) -> None:
        """Count what `card` misses."""
        for reason in {str(reason) for reason in card.reasons.values()}:
            key = card.protocol, reason
            self._counts[key] = self._counts.get(key, 0) + 1
            urls = [line.url for line in card.evidence if line.reason == reason and line.url]
            for place in urls or [f"{card.system} on {card.task_id}"]:
                self._add(self._places.setdefault(key, []), place[:_LONGEST])

    def _add(self, places: list[str], place: str) -> None:
        if place not in places and (len(places) < _PLACES or place < places[-1]):
            insort(places, place)
            del places[_PLACES:]

    def result(self) -> tuple[Failure, ...]:
        """What was missing until now, by protocol and reason."""
        return tuple(
            Failure(
                protocol=protocol,
                reason=reason,
                scorecards=count,
                places=tuple(self._places[protocol, reason]),
            )
            for (protocol, reason), count in sorted(self._counts.items())
        )


class Judging(msgspec.Struct, frozen=True):
    """The `judge` of a run, unless `judges` has another for a protocol or a medium. Empty where one judges all.

    `media` are by protocol those media that its questions may carry and that another judge takes.
    """

    judge: JudgeIdentity
    judges: dict[str, JudgeIdentity] = {}
    media: dict[str, tuple[str, ...]] = {}

    @classmethod
    def of(cls, bench: Bench, by_name: Mapping[str, JudgeIdentity]) -> "Judging":
        """What the judges of `bench` judge, whose identities are given by their names."""
        if len(bench.seats) == 1:
            (only,) = by_name.values()
            return cls(only)
        judges = {answer: by_name[seat.name] for seat in bench.seats.values() for answer in seat.answers}
        media = {name: tuple(bench.for_media(name)) for name in bench.protocols if bench.for_media(name)}
        return cls(by_name.get("judge", next(iter(by_name.values()))), judges, media)

    def protocol(self, name: str) -> JudgeIdentity:
        """The judge of a protocol's questions."""
        return self.judges.get(name, self.judge)

    def protocol_media(self, name: str) -> dict[str, JudgeIdentity]:
        """The judges of those of a protocol's questions that carry a medium."""
        return {medium: self.judges[medium] for medium in self.media.get(name, ())}

    def all_of(self, protocol: str) -> tuple[JudgeIdentity, ...]:
        """Every judge of a protocol, its own first, each once."""
        every = (self.protocol(protocol), *self.protocol_media(protocol).values())
        return tuple(dict.fromkeys(every))

    def said_of(self, protocol: str) -> str:
        """The judges of a protocol in words: `A`, or `A, image: B`."""
        own = self.protocol(protocol)
        others = {medium: one for medium, one in self.protocol_media(protocol).items() if one != own}
        return ", ".join([own.name, *(f"{medium}: {one.name}" for medium, one in others.items())])

    @property
    def each(self) -> dict[JudgeIdentity, tuple[str, ...]]:
        """Every judge that was used, with the protocols and media that it judged; nothing for one that judged all."""
        found: dict[JudgeIdentity, tuple[str, ...]] = {}
        for answer, judge in self.judges.items():
            found[judge] = (*found.get(judge, ()), answer)
        return found or {self.judge: ()}

    @property
    def said(self) -> str:
        """All judges in words: `A`, or `A (race), B (fact, image)`."""
        return ", ".join(
            f"{judge.name} ({', '.join(answers)})" if answers else judge.name
            for judge, answers in self.each.items()
        )


class ResolvedPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two systems: `ahead` is the one that the full run would put first, known after `resolved_at` tasks; None if open.

    `difference` is the mean of `a` minus `b` over the `n_used` tasks judged and scored for both; `low`..`high` is the
    interval then (or at the end) for what it would be over all planned tasks, None where it is still undefined.
    """

    a: str
    b: str
    ahead: str | None
    resolved_at: int | None
    difference: float | None
    low: float | None
    high: float | None
    n_used: int


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """How a run that may stop early ended: after `judged_tasks` of `planned_tasks`, every system on the same ones.

    The chance that any of `pairs` is resolved wrongly, against what the full run would say, is at most `error_rate`
    (confidence sequences; exact rules in `scoring.kernels.comparison.confidence_sequences`). `saved_questions` is an
    estimate: the number of scorecards left out times the mean number of questions of those made.
    """

    protocol: str
    metric: str
    error_rate: float
    planned_tasks: int
    judged_tasks: int
    pairs: tuple[ResolvedPair, ...]
    asked_questions: int
    saved_questions: int
    saved_scorecards: int

    @property
    def early(self) -> bool:
        """Whether tasks were left out."""
        return self.judged_tasks < self.planned_tasks

    @property
    def note(self) -> str:
        """The outcome in one line, for readers of the scores."""
        name = f"{self.protocol}.{self.metric}"
        if not self.early:
            open_still = sum(
                pair.resolved_at is None or pair.resolved_at == self.planned_tasks for pair in self.pairs
            )
            return (
                f"all {plural(self.planned_tasks, 'task')} judged: {open_still} of "
                f"{plural(len(self.pairs), 'comparison')} by {name} open to the end"
            )
        share = self.saved_questions / max(1, self.asked_questions + self.saved_questions)
        return (
            f"stopped early, after {self.judged_tasks} of {plural(self.planned_tasks, 'task')}: all "
            f"{plural(len(self.pairs), 'comparison')} by {name} resolved, error rate {self.error_rate:g} "
            f"together; about {plural(self.saved_questions, 'question')} saved ({share:.0%})"
        )


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """Means over a system's reports: wall `seconds`, `cost` in the user's currency, `tokens` in all, `words` of text.

    `tokens_written` is `tokens` minus the input tokens. Each mean is over the reports that state it, and None if no
    report does; `reports` counts all reports. `words` are read in the text, by leaderboards.
    """

    reports: int
    seconds: float | None
    cost: float | None
    tokens: float | None
    tokens_written: float | None = None
    words: float | None = None

    @property
    def rate(self) -> float | None:
        """Tokens a second, all reports together; None where either is not stated, or no time passed."""
        return self.tokens / self.seconds if self.tokens is not None and self.seconds else None


class Spending:
    """Adds up what the reports of cases state, as they pass."""

    def __init__(self) -> None:
        self._reports: dict[str, int] = {}
        self._sums: dict[tuple[str, str], tuple[float, int]] = {}

    def watch(self, cases: Iterable[Case]) -> Iterator[Case]:
        """Pass `cases` through unchanged; each report is counted once, at the judge's first repeat."""
        for case in cases:
            if case.repeat == 0:
                self._count(case)
            yield case

    def _count(self, case: Case) -> None:
        report = case.report
        self._reports[report.system] = self._reports.get(report.system, 0) + 1
        usage = report.usage
        stated = {
            "seconds": report.seconds,
            "cost": None if usage is None else usage.cost,
            "tokens": None if usage is None else usage.total_tokens,
            "tokens_written": None if usage is None else usage.written,
        }
        for name, value in stated.items():
            if value is not None:
                total, count = self._sums.get((report.system, name), (0.0, 0))
                self._sums[report.system, name] = total + value, count + 1

    def result(self) -> dict[str, Spent]:
        """What each system spent until now, by name."""
        return {
            system: Spent(
                reports=count,
                seconds=self._mean(system, "seconds"),
                cost=self._mean(system, "cost"),
                tokens=self._mean(system, "tokens"),
                tokens_written=self._mean(system, "tokens_written"),
            )
            for system, count in sorted(self._reports.items())
        }

    def _mean(self, system: str, name: str) -> float | None:
        total, count = self._sums.get((system, name), (0.0, 0))
        return total / count if count else None


_FIELDS = ("language", "domain")


class TaskRecord(msgspec.Struct, frozen=True):
    """What a leaderboard needs of a task, and the digest of what it asks and of its gold.

    `without_gold` names the protocols that lack gold for it, `undue` by protocol the metrics whose part of the gold it
    lacks. `worst` holds, by protocol, its own metrics (tags, say) and those whose worst value is not the protocol's.
    """

    language: str
    domain: str
    digest: str = ""
    without_gold: tuple[str, ...] = ()
    worst: dict[str, dict[str, float]] = {}
    attributes: dict[str, str] = {}
    undue: dict[str, tuple[str, ...]] = {}

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """What the task can be grouped by."""
        return (*_FIELDS, *self.attributes)

    def attribute(self, name: str) -> str:
        """The task's value of an attribute, "" if it has none."""
        return str(getattr(self, name)) if name in _FIELDS else self.attributes.get(name, "")

    @classmethod
    def of(cls, task: Task, protocols: Iterable[ScoringProtocol] = ()) -> "TaskRecord":
        """The record of `task`; how its gold is spelled, spaces and order of keys, makes no difference."""
        return cls._of(task, [(protocol, _due(protocol, task)) for protocol in protocols])

    @classmethod
    def _of(cls, task: Task, due: Iterable[tuple[ScoringProtocol, "_Due"]]) -> "TaskRecord":
        gold = {protocol: _plain(raw) for protocol, raw in task.gold.items()}
        whole = msgspec.json.encode((task.prompt, gold), order="sorted")
        worst: dict[str, dict[str, float]] = {}
        undue: dict[str, tuple[str, ...]] = {}
        without = []
        for protocol, metrics in due:
            if metrics is None:
                without.append(protocol.name)
                continue
            usual = {metric.name: metric.worst for metric in protocol.metrics}
            own = {metric.name: metric.worst for metric in metrics}
            differing = {name: value for name, value in own.items() if usual.get(name) != value}
            if differing:
                worst[protocol.name] = differing
            lacking = tuple(one.name for one in protocol.metrics if one.gold and one.name not in own)
            if lacking:
                undue[protocol.name] = lacking
        digest = hashlib.blake2b(whole, digest_size=8).hexdigest()
        return cls(task.language, task.domain, digest, tuple(without), worst, dict(task.attributes), undue)


_Due = tuple[Metric, ...] | None


def _due(protocol: ScoringProtocol, task: Task) -> _Due:
    """The metrics that a report to `task` has; None where it lacks the gold."""
    if not isinstance(protocol, CaseMetrics):
        return protocol.metrics
    try:
        return protocol.metrics_of(Case(task=task, report=Report(task_id=task.id, system="any", text="")))
    except GoldError:
        return None


def metrics_of(
    protocols: Sequence[ScoringProtocol], tasks: Iterable[Task]
) -> tuple[dict[str, tuple[Metric, ...]], dict[str, TaskRecord]]:
    """By protocol, its metrics in its words, those that only some of `tasks` have too; and the records of `tasks`.

    Each task's gold is read once, whatever it has of criteria.
    """
    found = {one.name: {metric.name: metric for metric in one.metrics} for one in protocols}
    records = {}
    for task in tasks:
        due = [(protocol, _due(protocol, task)) for protocol in protocols]
        records[task.id] = TaskRecord._of(task, due)
        for protocol, metrics in due:
            known = found[protocol.name]
            for metric in metrics or ():
                if metric.name not in known:
                    known[metric.name] = msgspec.structs.replace(metric, everywhere=False)
    return (
        {one.name: tuple(explained(one, metric) for metric in found[one.name].values()) for one in protocols},
        records,
    )


def _plain(raw: msgspec.Raw) -> object:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return bytes(raw)


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has to do: at most so many `scorecards`, and how many reports there are by system and by task."""

    scorecards: int
    systems: dict[str, int]
    tasks: dict[str, int]


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A run: its configuration as it was used, versions, judge, prompts (file name to digest), metrics and tasks.

    `judges` and `media` say who judged what, where several did (`judging` reads them).
    `pages` is the source its pages are stored under. `started` and `ended` are seconds since the epoch, UTC.
    `from_store` and `from_judge` count judgments, and `cost` is what those from the judge cost, None without prices;
    `spent` is what systems said their reports took, `effort` by
    protocol what judging them took, `signs` by protocol and system how many reports do something to please a judge,
    `lengths` by system how long reports are.
    `failures` are what was unscored, and where, `unread` the pages that were not read; `lacking` says by protocol which
    file would have held its gold, `constant` what the judge said every time.
    `answers` are by protocol and question type what the judges said, and how their replies ended,
    `probed` by a judge's name what was found of its servers before the first question.
    `revisions` are the commits that were read of data sets of the Hub, by address; `commit` is that of the checkout
    which the run was started in, with `-dirty` behind it where files were changed, "" outside one.
    `recorded` is the benchmark whose recorded results these are, "" for a run that asked a judge itself.
    `stopped` says how a run ended that was to stop when its comparisons were resolved. `criteria` are the digests of
    the protocols' files of criteria. `began_in` leads from the run's folder to the one that relative paths are seen
    from, as both were.

    While a run is `running`, and after it has `stopped` early for the reason `why`, `due` says what it has to do. Its
    judge, `ended` and all counts are then those that were known last.
    """

    run: str
    started: float
    ended: float
    command: list[str]
    config: RunConfig
    versions: dict[str, str]
    python: str
    judge: JudgeIdentity
    judges: dict[str, JudgeIdentity] = {}
    media: dict[str, tuple[str, ...]] = {}
    prompts: dict[str, str]
    metrics: dict[str, tuple[Metric, ...]]
    tasks: dict[str, TaskRecord]
    systems: list[str]
    spent: dict[str, Spent] = {}
    signs: SignsOf = {}
    lengths: dict[str, MeanLength] = {}
    effort: dict[str, Effort] = {}
    pages: str
    rejected: tuple[Rejected, ...]
    from_store: int
    from_judge: int
    cost: float | None = None
    stopped: Resolution | None = None
    criteria: tuple[str, ...] = ()
    began_in: str | None = None
    commit: str = ""
    failures: tuple[Failure, ...] = ()
    unread: tuple[Unread, ...] = ()
    constant: dict[str, Constant] = {}
    answers: AnswersOf = {}
    probed: dict[str, tuple[Verdict, ...]] = {}
    lacking: dict[str, str] = {}
    recorded: str = ""
    revisions: dict[str, str] = {}
    state: Literal["running", "stopped", "finished"] = "finished"
    why: str = ""
    due: Due | None = None

    @property
    def is_whole(self) -> bool:
        """Whether everything that the run selected has its scores."""
        return self.state == "finished" and self.stopped is None

    @property
    def judging(self) -> Judging:
        """Who judged what."""
        return Judging(self.judge, self.judges, self.media)

    def found_from_here(self, folder: Path) -> "RunRecord":
        """The record of the run in `folder`, with its relative paths rewritten for this process's working directory."""
        if self.began_in is None:
            return self
        return msgspec.structs.replace(
            self, config=self.config.rooted(os.path.relpath(folder / self.began_in))
        )

    def encoded(self) -> bytes:
        """The content of run.json."""
        plain = msgspec.to_builtins(self, str_keys=True)
        # A record that an earlier version wrote may hold secrets here.
        plain |= {"config": masked(plain["config"]), "command": list(map(without_logins, self.command))}
        return msgspec.json.format(msgspec.json.encode(plain), indent=1)

    def write(self, folder: Path) -> None:
        """Write run.json into `folder`, atomically."""
        write_whole(folder / "run.json", self.encoded())

    @classmethod
    def read(cls, folder: Path) -> "RunRecord":
        """The record in `folder`; a run whose process is gone has stopped, whatever its file says.

        Raises UsageError if it is missing, or if this version cannot read it.
        """
        found = cls._written(folder)
        if found.state != "running" or alive(folder):
            return found
        found = cls._written(folder)  # it may have ended in between
        return _killed(found, folder) if found.state == "running" else found

    @classmethod
    def _written(cls, folder: Path) -> "RunRecord":
        file = folder / "run.json"
        try:
            return msgspec.convert(_current(msgspec.json.decode(file.read_bytes())), cls)
        except OSError as error:
            raise UsageError(
                f"{folder}: not a run: {file} cannot be read ({error.strerror}); {_instead(folder)}"
            ) from error
        except msgspec.MsgspecError as error:
            raise UsageError(f"{file}: not the record of a run: {error}") from error


def _instead(folder: Path) -> str:
    """What to give instead of a `folder` that is no run: the last in it, or those beside it called almost like it."""
    if folder.is_file():
        return "pass the folder of its run, which out: names" if folder.suffix in (".yaml", ".yml") else _PASS
    inside = [one for depth in ("*", "*/*") for one in folder.glob(f"{depth}/run.json")]
    inside.sort(key=lambda one: one.stat().st_mtime, reverse=True)
    if not folder.exists():
        beside = {one.parent.name: one for one in folder.parent.glob("*/run.json")}
        inside = [beside[name] for name in get_close_matches(folder.name, beside)]
    return f"pass {' or '.join(str(one.parent) for one in inside[:_NAMED])}" if inside else _PASS


_PASS = "pass a run's folder"
_NAMED = 3  # runs


_GONE = (("config", "fetch", "limits", "retry_after"),)
"""Keys that records of earlier versions have."""


def _current(record: Any) -> Any:
    """A record as this version would have written it."""
    for *path, key in _GONE:
        section = record
        for name in path:
            section = section.get(name) if isinstance(section, dict) else None
        if isinstance(section, dict):
            section.pop(key, None)
    return record


def _killed(record: RunRecord, folder: Path) -> RunRecord:
    """The record of a run that could not say how it ended."""
    pulse = last_pulse(folder)
    ended = record.ended if pulse is None else pulse.at
    return msgspec.structs.replace(record, state="stopped", why="its process was killed", ended=ended)
