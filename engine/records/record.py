"""The record of a run in its folder: run.json."""

import hashlib
import os
from pathlib import Path

import msgspec

from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.formats import Rejected
from adjudge.engine.records.resolution import Resolution
from adjudge.engine.records.spending import Spent
from adjudge.judges import JudgeIdentity
from adjudge.scoring.contract.case import Task
from adjudge.scoring.contract.scorecard import Metric

__all__ = ["RunRecord", "TaskRecord"]


class TaskRecord(msgspec.Struct, frozen=True):
    """What a leaderboard groups a task by, and a digest of its prompt and gold."""

    language: str
    domain: str
    digest: str = ""

    @classmethod
    def of(cls, task: Task) -> "TaskRecord":
        """The record of `task`. Whitespace and the order of keys in its gold do not change the digest."""
        gold = {protocol: _plain(raw) for protocol, raw in task.gold.items()}
        whole = msgspec.json.encode((task.prompt, gold), order="sorted")
        return cls(task.language, task.domain, hashlib.blake2b(whole, digest_size=8).hexdigest())


def _plain(raw: msgspec.Raw) -> object:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return bytes(raw)


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A run: its configuration as it was used, versions, judge, prompts (file name to digest), metrics and tasks.

    `pages` is the source its pages are stored under. `started` and `ended` are seconds since the epoch, UTC.
    `from_store` and `from_judge` count judgments; `spent` is what systems reported that their reports took.
    `stopped` says how a run ended that stops once its comparisons are resolved. `criteria` are the digests of the
    protocols' files of criteria. `began_in` is the path from the run's folder to the working directory of the run,
    which relative paths start from.
    """

    run: str
    started: float
    ended: float
    command: list[str]
    config: RunConfig
    versions: dict[str, str]
    python: str
    judge: JudgeIdentity
    prompts: dict[str, str]
    metrics: dict[str, tuple[Metric, ...]]
    tasks: dict[str, TaskRecord]
    systems: list[str]
    spent: dict[str, Spent] = {}
    pages: str
    rejected: tuple[Rejected, ...]
    from_store: int
    from_judge: int
    stopped: Resolution | None = None
    criteria: tuple[str, ...] = ()
    began_in: str | None = None

    def found_from_here(self, folder: Path) -> "RunRecord":
        """The record of the run in `folder`, with its relative paths rewritten for this process's working directory."""
        if self.began_in is None:
            return self
        return msgspec.structs.replace(
            self, config=self.config.rooted(os.path.relpath(folder / self.began_in))
        )

    def write(self, folder: Path) -> None:
        """Write run.json into `folder`, atomically."""
        written = folder / ".run.json.tmp"
        written.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1))
        written.rename(folder / "run.json")

    @classmethod
    def read(cls, folder: Path) -> "RunRecord":
        """The record in `folder`. Raises UsageError if it is missing, or if this version cannot read it."""
        file = folder / "run.json"
        try:
            return msgspec.json.decode(file.read_bytes(), type=cls)
        except OSError as error:
            raise UsageError(
                f"{folder}: not a run: {file} cannot be read ({error.strerror}); pass a run's folder"
            ) from error
        except msgspec.MsgspecError as error:
            raise UsageError(f"{file}: not the record of a run: {error}") from error
