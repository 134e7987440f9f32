"""The folder of a run: its record from the first second on, its scores and its leaderboard at the end."""

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from types import TracebackType

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from adjudge.engine.config.redaction import hidden
from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.evaluation.assembly import prompts_of
from adjudge.engine.formats.dataset import Dataset
from adjudge.engine.runs.board import Leaderboard
from adjudge.engine.runs.pulse import Reading, beating, held
from adjudge.engine.runs.record import Due, Judging, RunRecord, metrics_of
from adjudge.engine.tables.files import write_leaderboard
from adjudge.fetchers.files import whole_file, write_whole
from adjudge.judges import JudgeIdentity
from adjudge.scoring.contract.scorecard import Scorecard

SCORE_GROUP = 1 << 16  # rows: a reader of one system's scores opens few of them


class RunFolder:
    """The folder `out` while a run is at work there. Inside the block no other run may use it.

    The record is there from the beginning, and says at the end how the run ended. A run that ends early without a
    scorecard, or because its judge gave no answer at all, leaves the record that was there before. Raises ConfigError.
    """

    def __init__(self, out: Path, record: RunRecord, reading: Callable[[], Reading]) -> None:
        self.out = out
        self.record = record
        self._reading = reading
        self._made = 0
        self._before: bytes | None = None
        self._held = ExitStack()

    def __enter__(self) -> "RunFolder":
        with self._held:
            self._held.enter_context(held(self.out))
            self._held.enter_context(beating(self.out, self._reading))
            file = self.out / "run.json"
            self._before = file.read_bytes() if file.exists() else None
            self._write(self.record)
            self._held = self._held.pop_all()
        return self

    def take(self, card: Scorecard) -> None:
        """One more scorecard is stored."""
        self._made += 1

    def unanswered(self) -> None:
        """The judge cannot be used and has answered nothing: scorecards that needed no judge do not count."""
        self._made = 0

    def opened(self, judging: Judging, pages: str) -> None:
        """Note who judges, and the source of pages."""
        self._write(
            msgspec.structs.replace(
                self.record, judge=judging.judge, judges=judging.judges, media=judging.media, pages=pages
            )
        )

    def finish(
        self, record: RunRecord, scores: pa.Table, numbers: bytes, board: Callable[[RunRecord], Leaderboard]
    ) -> Leaderboard:
        """Write everything; the record comes last, so that a run that has finished is whole."""
        write_scores(self.out, scores, numbers)
        record = msgspec.structs.replace(record, cost=self._reading().cost)
        read = msgspec.json.decode(
            record.encoded(), type=RunRecord
        )  # 100 is 100.0, as any later reader has it
        found = board(read)
        write_leaderboard(found, self.out)
        self._write(record)
        return found

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        with self._held:
            if self.record.state != "running":
                return
            if self._before is not None and not self._made:
                write_whole(self.out / "run.json", self._before)
                return
            why = hidden(str(error)) if isinstance(error, Exception) and str(error) else "interrupted"
            self._write(
                msgspec.structs.replace(
                    self.record, state="stopped", why=why, ended=time.time(), cost=self._reading().cost
                )
            )

    def _write(self, record: RunRecord) -> None:
        self.record = record
        try:
            record.write(self.out)
        except OSError as error:
            raise _unwritable(self.out, error) from error


def begun(config: RunConfig, dataset: Dataset, run: str, started: float, scorecards: int) -> RunRecord:
    """The record of a run that begins, of at most so many `scorecards`. Its judges are known by their models only."""
    protocols = config.resolved.protocols
    metrics, tasks = metrics_of(protocols, dataset.tasks.values())
    systems = Counter(report.system for report in dataset.reports)
    seats = config.resolved.bench.seats.items()
    judging = Judging.of(
        config.resolved.bench,
        {name: JudgeIdentity(seat.config.model or seat.config.backend, "", "") for name, seat in seats},
    )
    return RunRecord(
        run=run,
        started=started,
        ended=started,
        command=sys.argv,
        config=config,
        versions=versions(),
        python=sys.version.split()[0],
        judge=judging.judge,
        judges=judging.judges,
        media=judging.media,
        prompts=prompts_of(config),
        metrics=metrics,
        tasks=tasks,
        systems=sorted(systems),
        pages="",
        rejected=tuple(dataset.rejected),
        from_store=0,
        from_judge=0,
        criteria=config.criteria_digests(),
        lacking={
            name: why for name, why in dataset.lacking.items() if any(name == one.name for one in protocols)
        },
        revisions=dataset.revisions,
        began_in=os.path.relpath(Path.cwd(), config.out),
        commit=commit(),
        state="running",
        due=Due(
            scorecards=scorecards,
            systems=dict(systems),
            tasks=dict(Counter(report.task_id for report in dataset.reports)),
        ),
    )


def make_folder(out: Path, inputs: Iterable[Path] = ()) -> None:
    """Make the run's folder, in which `inputs` are to be written too, before anything is asked.

    Raises ConfigError if nothing can be written there, or if a file that is no run's would be written over.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            foreign = None if is_run(out) else _in_the_way(out, inputs)
    except OSError as error:
        raise _unwritable(out, error) from error
    if foreign is not None:
        raise ConfigError(f"out: {foreign} does not belong to a run; move it away or choose another folder")


class _AnyRecord(msgspec.Struct):
    """As much of a run's record as is in that of every version."""

    run: str
    config: dict[str, object]


def is_run(out: Path) -> bool:
    """Whether a run, of any version, has written into the folder `out`."""
    try:
        msgspec.json.decode((out / "run.json").read_bytes(), type=_AnyRecord)
    except (OSError, msgspec.MsgspecError):
        return False
    return True


def _in_the_way(out: Path, inputs: Iterable[Path]) -> Path | None:
    """A file in `out` with the name of one that a run writes, or one of its `inputs`."""
    own = (out / name for name in ("run.json", "scores.parquet", "metrics.prom"))
    return next(filter(os.path.lexists, [*own, *out.glob("leaderboard.*"), *inputs]), None)


def versions() -> dict[str, str]:
    """The versions that numbers may depend on, by package."""
    return {name: version(name) for name in ("adjudge", "numpy", "numba", "pyarrow", "trafilatura")}


def commit() -> str:
    """The commit of the checkout that the working directory is in, `-dirty` behind it if files were changed, or ""."""
    asked = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    unlocked = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        said = subprocess.run(asked, capture_output=True, text=True, timeout=5, env=unlocked, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    return said.stdout.strip()


def write_run(out: Path, record: RunRecord, scores: pa.Table, numbers: bytes) -> None:
    """Write run.json, scores.parquet and metrics.prom into `out`. Raises ConfigError if that cannot be done."""
    write_scores(out, scores, numbers)
    try:
        record.write(out)
    except OSError as error:
        raise _unwritable(out, error) from error


def write_scores(out: Path, scores: pa.Table, numbers: bytes) -> None:
    """Write scores.parquet and metrics.prom into `out`. Raises ConfigError if that cannot be done."""
    try:
        with whole_file(out / "scores.parquet") as file:
            pq.write_table(scores, file, compression="zstd", compression_level=1, row_group_size=SCORE_GROUP)
        write_whole(out / "metrics.prom", numbers)
    except OSError as error:
        raise _unwritable(out, error) from error


def _unwritable(out: Path, error: OSError) -> ConfigError:
    fix = "; choose a folder" if isinstance(error, FileExistsError | NotADirectoryError) else ""
    return ConfigError(f"out: {out} cannot be written: {error.strerror}{fix}")
