"""Where a leaderboard comes from: what a reader needs to judge and to reproduce it."""

import shlex
import time
from pathlib import Path
from typing import Any

import msgspec

from adjudge.engine.config.redaction import hidden_in
from adjudge.engine.records.record import RunRecord

__all__ = ["JudgeUsed", "Provenance"]


class JudgeUsed(msgspec.Struct, frozen=True):
    """A judge of a run, and which protocols and media it judged: none named where it judged all."""

    name: str
    fingerprint: str
    sampling: str
    answers: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """In one line."""
        judged = f" ({', '.join(self.answers)})" if self.answers else ""
        return f"{self.name}{judged}, fingerprint {self.fingerprint}, sampling {self.sampling}"


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """A run as a leaderboard shows it: judge, prompts (file name to digest), protocols with options, seed and command.

    `judge` names all `judges`; `fingerprint` and `sampling` are those of the first.
    `began` is in UTC, `seconds` is the duration, and `rejected` counts input lines left out. Paths occur only in
    `command`, as it was typed.
    """

    run: str
    command: str
    judge: str
    fingerprint: str
    sampling: str
    prompts: dict[str, str]
    protocols: tuple[dict[str, Any], ...]
    repeats: int
    seed: int
    versions: dict[str, str]
    began: str
    seconds: float
    tasks: int
    systems: int
    rejected: int
    from_store: int
    from_judge: int
    judges: tuple[JudgeUsed, ...] = ()
    format: str = ""

    @property
    def judges_used(self) -> tuple[JudgeUsed, ...]:
        """All judges; leaderboards of earlier versions name one."""
        return self.judges or (JudgeUsed(self.judge, self.fingerprint, self.sampling),)

    @classmethod
    def of(cls, record: RunRecord) -> "Provenance":
        """The provenance of the run in `record`."""
        made = cls(
            run=record.run,
            command=_typed(record.command),
            judge=record.judging.said,
            judges=tuple(
                JudgeUsed(judge.name, judge.fingerprint, judge.sampling, answers)
                for judge, answers in record.judging.each.items()
            ),
            fingerprint=record.judge.fingerprint,
            sampling=record.judge.sampling,
            prompts=record.prompts,
            protocols=tuple(
                {"name": one} if isinstance(one, str) else dict(one) for one in record.config.protocols
            ),
            repeats=record.config.repeats,
            seed=record.config.seed,
            versions={"python": record.python, **record.versions},
            began=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(record.started)),
            seconds=record.ended - record.started,
            tasks=len(record.tasks),
            systems=len(record.systems),
            rejected=len(record.rejected),
            from_store=record.from_store,
            from_judge=record.from_judge,
            format=record.config.format,
        )
        # A record that an earlier version wrote may hold secrets.
        return msgspec.convert(hidden_in(made), type=cls)


def _typed(command: list[str]) -> str:
    """The command as it was typed, without the program's folder."""
    if not command:
        return ""
    program = Path(command[0]).name
    return shlex.join(["adjudge" if program in ("-c", "cli.py") else program, *command[1:]])
