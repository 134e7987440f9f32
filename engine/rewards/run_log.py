"""The log of a training run's rewards: each scored rollout with its gold and settings, for `adjudge rewards replay`."""

import asyncio
import hashlib
import logging
import os
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO, Self

import msgspec

from adjudge.engine.config.reward import LogConfig, Step
from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.errors import UsageError
from adjudge.engine.formats.dataset import UNREADABLE
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.rewards.reward import Reward, RewardError, RewardItem, as_items, pages_of, plain
from adjudge.scoring.contract.case import Case, Task

__all__ = ["Logged", "Place", "Refused", "RunLog", "at", "formula_digest", "places"]

WAITING = 64  # calls whose rollouts wait to be written; those of further ones are skipped
LONGEST = 64 << 20  # bytes of a line
EXAMPLES = 20
_log = logging.getLogger(__name__)


class Logged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the log: a rollout of `task`, and the reward that it got from `judge` at `time`, in s since 1970.

    `formula` is the digest of all that decided the reward: rewards of two formulas cannot be compared.
    """

    time: float
    task: str
    judge: str
    item: RewardItem
    reward: Reward
    step: Step | None = None
    formula: str = ""

    @property
    def group(self) -> tuple[int, str]:
        """The step, -1 where the trainer gave none, and the task: rollouts of one group are compared."""
        return (-1 if self.step is None else self.step), self.task


_DECODER = msgspec.json.Decoder(Logged)
_BEGINS = b'{"time":'


_DECIDES = (
    "metric",
    "weights",
    "clip",
    "dropout",
    "penalties",
    "length",
    "group",
    "report",
    "on_truncated",
    "on_unanswered",
)


def formula_digest(config: RunConfig, tasks: Iterable[Task], judge: str) -> str:
    """The digest of what decides a reward: weights and rules, protocols with their criteria, tasks with gold, judge.

    Raises ConfigError for a file of criteria that cannot be read.
    """
    reward = config.reward_config()
    told = [
        [getattr(reward, name) for name in _DECIDES],
        [
            config.protocols,
            config.criteria_digests(),
            config.min_answered,
            config.prompts,
            config.fetch.closed,
        ],
        [[task.id, task.prompt, task.language, task.gold] for task in tasks],
        judge,
    ]
    return hashlib.blake2b(msgspec.json.encode(told, order="deterministic"), digest_size=8).hexdigest()


class RunLog:
    """Appends rollouts to a file, in a separate thread: no reward waits for the disk.

    It counts rollouts: `written`, and `skipped` because the file is full, cannot be written, or is too slow. Several
    processes may append to one file.
    """

    def __init__(self, config: LogConfig, judge: str, formula: str = "") -> None:
        self.written = 0
        self.skipped = 0
        self._config = config
        self._judge = judge
        self._formula = formula
        self._waiting = 0
        self._thread = ThreadPoolExecutor(1, "adjudge reward log")
        try:
            self._file = os.open(config.file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            raise ConfigError(f"reward.log.file: {config.file} cannot be opened: {error.strerror}") from error
        size = os.fstat(self._file).st_size
        first = os.pread(self._file, len(_BEGINS), 0).partition(b"\n")[
            0
        ]  # of which a full disk may have cut some off
        if size and not _BEGINS.startswith(first):
            os.close(self._file)
            raise ConfigError(f"reward.log.file: {config.file} holds something else; choose a new file")
        self._is_torn = size > 0 and os.pread(self._file, 1, size - 1) != b"\n"  # by a kill

    @classmethod
    @asynccontextmanager
    async def running(cls, config: LogConfig, judge: str, formula: str = "") -> AsyncIterator[Self]:
        """A log that has written all it took once the block is left. Raises ConfigError."""
        made = await asyncio.to_thread(cls, config, judge, formula)
        try:
            yield made
        finally:
            await asyncio.to_thread(made._thread.shutdown)
            os.close(made._file)

    def keep(
        self, items: Sequence[RewardItem], cases: Sequence[Case], rewards: Sequence[Reward], step: int | None
    ) -> None:
        """Write the rollouts of one call, soon. Never waits."""
        if self._waiting >= WAITING:
            self.skipped += len(items)
            return
        self._waiting += 1
        now = time.time()
        lines = [
            Logged(
                time=now,
                task=case.task.id,
                judge=self._judge,
                item=item if self._config.keep == "rollout" else _report_of(item, case),
                reward=reward,
                step=step,
                formula=self._formula,
            )
            for item, case, reward in zip(items, cases, rewards, strict=True)
        ]
        self._thread.submit(self._append, lines)

    def _append(self, lines: Sequence[Logged]) -> None:
        """Write whole lines in one call, so that other processes' lines never break into them."""
        try:
            data = b"".join(msgspec.json.encode(line, enc_hook=plain) + b"\n" for line in lines)
            if os.fstat(self._file).st_size + len(data) > self._config.bytes:
                self._skip(
                    len(lines), f"it would be longer than {self._config.bytes:,} bytes (reward.log.bytes)"
                )
                return
            data = b"\n" + data if self._is_torn else data
            self._is_torn = os.write(self._file, data) < len(data)
            if self._is_torn:
                self._skip(len(lines), "not all of a call could be written")
            else:
                self.written += len(lines)
        except (OSError, TypeError, ValueError, RecursionError) as error:
            self._skip(len(lines), str(error))
        finally:
            self._waiting -= 1

    def _skip(self, count: int, why: str) -> None:
        if not self.skipped:
            _log.warning("reward.log.file: %s: rollouts are not logged any more: %s", self._config.file, why)
        self.skipped += count


def _report_of(item: RewardItem, case: Case) -> RewardItem:
    """`item` with what counts as its report in place of all that it said."""
    report = case.report
    return msgspec.structs.replace(
        item,
        text=report.text,
        messages=None,
        mask=None,
        trace=None,
        truncated=report.truncated,
        pages=pages_of(item),
    )


class Place(msgspec.Struct, frozen=True):
    """A line's position in a log (its number from 1 and its byte), and its rollout's group and formula."""

    line: int
    offset: int
    group: tuple[int, str]
    formula: str = ""


class Refused:
    """Lines of a log that hold no rollout: their `count`, and the first `examples`."""

    def __init__(self) -> None:
        self.count = 0
        self.examples: list[Rejected] = []

    def add(self, line: Rejected) -> None:
        """Count a line."""
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(line)


def places(file: Path, refused: Refused) -> Iterator[Place]:
    """The places of the rollouts in a log; lines that hold none are `refused`. Raises UsageError."""
    try:
        with file.open("rb") as lines:
            offset, number = 0, 0
            while line := lines.readline(LONGEST):
                number, start, offset = number + 1, offset, offset + len(line)
                if len(line) == LONGEST and not line.endswith(b"\n"):
                    offset += _rest(lines)
                    refused.add(Rejected(str(file), number, f"longer than {LONGEST:,} bytes"))
                elif line.strip():
                    try:
                        found = _decoded(line)
                        yield Place(number, start, found.group, found.formula)
                    except (*UNREADABLE, RewardError) as error:
                        refused.add(Rejected.of(file, number, Logged, error))
    except OSError as error:
        raise UsageError(f"log: {file} cannot be read: {error.strerror}") from error


def at(file: Path, wanted: Sequence[Place]) -> list[Logged]:
    """The rollouts at the `wanted` places. Raises UsageError if the log has changed since they were found."""
    try:
        with file.open("rb") as lines:
            return [_again(lines, place) for place in wanted]
    except (*UNREADABLE, RewardError, OSError) as error:
        raise UsageError(f"log: {file} changed while it was read; replay a copy of it") from error


def _again(lines: BinaryIO, place: Place) -> Logged:
    lines.seek(place.offset)
    return _decoded(lines.readline(LONGEST))


def _decoded(line: bytes) -> Logged:
    """A line's rollout. Raises one of UNREADABLE, or RewardError."""
    line.decode()  # the decoder does not validate all of it
    found = _DECODER.decode(line)
    as_items([found.item])
    return found


def _rest(lines: BinaryIO) -> int:
    """Pass over the rest of a line; its bytes."""
    passed = 0
    while piece := lines.readline(LONGEST):
        passed += len(piece)
        if piece.endswith(b"\n"):
            break
    return passed
