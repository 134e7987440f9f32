"""The record of a run in its folder: run.json."""

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from adjudge.engine.config.redaction import hidden_in
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.records.effort import Effort
from adjudge.engine.records.failures import Failure
from adjudge.engine.records.judging import Judging
from adjudge.engine.records.pulse import alive, last_pulse
from adjudge.engine.records.resolution import Resolution
from adjudge.engine.records.spending import Spent
from adjudge.judges import JudgeIdentity
from adjudge.scoring.contract.case import Case, GoldError, Report, Task
from adjudge.scoring.contract.metric_words import explained
from adjudge.scoring.contract.protocol import CaseMetrics, ScoringProtocol
from adjudge.scoring.contract.scorecard import Metric

__all__ = ["Due", "RunRecord", "TaskRecord", "invalid_gold", "is_finished", "metrics_of"]

_FIELDS = ("language", "domain")


class TaskRecord(msgspec.Struct, frozen=True):
    """What a leaderboard needs of a task, and the digest of what it asks and of its gold.

    `without_gold` names the protocols that lack gold for it. `worst` holds, by protocol, its own metrics (tags, say)
    and those whose worst value is not the protocol's.
    """

    language: str
    domain: str
    digest: str = ""
    without_gold: tuple[str, ...] = ()
    worst: dict[str, dict[str, float]] = {}
    attributes: dict[str, str] = {}

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
        gold = {protocol: _plain(raw) for protocol, raw in task.gold.items()}
        whole = msgspec.json.encode((task.prompt, gold), order="sorted")
        worst: dict[str, dict[str, float]] = {}
        without = []
        case = _any_case(task)
        for protocol in protocols:
            if not isinstance(protocol, CaseMetrics):
                continue
            usual = {metric.name: metric.worst for metric in protocol.metrics}
            try:
                own = {metric.name: metric.worst for metric in protocol.metrics_of(case)}
            except GoldError:
                without.append(protocol.name)
                continue
            differing = {name: value for name, value in own.items() if usual.get(name) != value}
            if differing:
                worst[protocol.name] = differing
        digest = hashlib.blake2b(whole, digest_size=8).hexdigest()
        return cls(task.language, task.domain, digest, tuple(without), worst, dict(task.attributes))


def metrics_of(protocol: ScoringProtocol, tasks: Iterable[Task]) -> tuple[Metric, ...]:
    """The protocol's metrics in its words, and those that only some of `tasks` have."""
    found = {metric.name: metric for metric in protocol.metrics}
    if isinstance(protocol, CaseMetrics):
        for task in tasks:
            with suppress(GoldError):
                for metric in protocol.metrics_of(_any_case(task)):
                    if metric.name not in found:
                        found[metric.name] = msgspec.structs.replace(metric, everywhere=False)
    return tuple(explained(protocol, metric) for metric in found.values())


def invalid_gold(protocol: ScoringProtocol, tasks: Iterable[Task]) -> list[str]:
    """What is wrong with the gold of each of `tasks` whose gold the protocol cannot read; no word of missing gold."""
    found = []
    if isinstance(protocol, CaseMetrics):
        for task in tasks:
            try:
                protocol.metrics_of(_any_case(task))
            except GoldError as error:
                if error.reason == "gold_invalid":
                    found.append(str(error))
    return found


def _any_case(task: Task) -> Case:
    return Case(task=task, report=Report(task_id=task.id, system="any", text=""))


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
    `from_store` and `from_judge` count judgments; `spent` is what systems said their reports took, `effort` by
    protocol what judging them took.
    `failures` are what was unscored, and where; `lacking` says by protocol which file would have held its gold.
    `revisions` are the commits that were read of data sets of the Hub, by address.
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
    effort: dict[str, Effort] = {}
    pages: str
    rejected: tuple[Rejected, ...]
    from_store: int
    from_judge: int
    stopped: Resolution | None = None
    criteria: tuple[str, ...] = ()
    began_in: str | None = None
    failures: tuple[Failure, ...] = ()
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
        return msgspec.json.format(msgspec.json.encode(hidden_in(self)), indent=1)

    def write(self, folder: Path) -> None:
        """Write run.json into `folder`, atomically."""
        written = folder / ".run.json.tmp"
        written.write_bytes(self.encoded())
        written.rename(folder / "run.json")

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
            return msgspec.json.decode(file.read_bytes(), type=cls)
        except OSError as error:
            raise UsageError(
                f"{folder}: not a run: {file} cannot be read ({error.strerror}); pass a run's folder"
            ) from error
        except msgspec.MsgspecError as error:
            raise UsageError(f"{file}: not the record of a run: {error}") from error


def _killed(record: RunRecord, folder: Path) -> RunRecord:
    """The record of a run that could not say how it ended."""
    pulse = last_pulse(folder)
    ended = record.ended if pulse is None else pulse.at
    return msgspec.structs.replace(record, state="stopped", why="its process was killed", ended=ended)


class _State(msgspec.Struct):
    state: str = "finished"


def is_finished(folder: Path) -> bool:
    """Whether the run in `folder` has finished, by its record alone; a folder without one is not asked about."""
    try:
        return msgspec.json.decode((folder / "run.json").read_bytes(), type=_State).state == "finished"
    except (OSError, msgspec.MsgspecError):
        return True
