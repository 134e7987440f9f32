"""A leaderboard in experiment trackers, one tracked run per system.

MLflow runs go to a database file for `mlflow ui --backend-store-uri`; Weights & Biases runs are offline, for `wandb
sync`.
"""

import logging
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from adjudge.engine.errors import UsageError
from adjudge.engine.exports.shared import Figure, figures_of
from adjudge.engine.runs.board import Leaderboard
from adjudge.engine.runs.record import RunRecord

FILE = "mlflow.db"
EXPERIMENT = "adjudge"
MOST_PARAMS, MOST_METRICS = 100, 1000  # that MLflow takes at once

T = TypeVar("T")


def write_mlflow(board: Leaderboard, record: RunRecord, out: Path, place: Path) -> Iterator[Path]:
    """Write one run per system into the new file `out`/mlflow.db, which is to be moved to `place`; the file.

    Nothing is sent. Raises UsageError if `place` has the file already, if it cannot be written, or where the optional
    package mlflow is missing.
    """
    if (place / FILE).exists():
        raise UsageError(f"out: {place / FILE} exists; choose another folder")
    try:
        from mlflow import MlflowClient  # optional
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError  # what MLflow needs for a database
    except ImportError as error:
        raise UsageError("format: mlflow is not installed; run pip install 'adjudge[mlflow]'") from error
    try:
        client = MlflowClient(tracking_uri=f"sqlite:///{(out / FILE).resolve()}")
        _fill(client, board, record, (place / "artifacts").resolve().as_uri())
    except (MlflowException, SQLAlchemyError) as error:
        why = str(error).splitlines()[0]
        raise UsageError(f"out: {place / FILE} cannot be written: {why}; choose another folder") from error
    yield out / FILE


def _fill(client: Any, board: Leaderboard, record: RunRecord, artifacts: str) -> None:
    """Log one run per system. Raises what MLflow and its database raise."""
    from mlflow.entities import Metric, Param

    experiment = client.create_experiment(EXPERIMENT, artifact_location=artifacts)
    for system, figures in figures_of(board):
        at = round(record.ended * 1000)
        run = client.create_run(
            experiment, round(record.started * 1000), {"run": record.run}, system
        ).info.run_id
        protocols = dict.fromkeys(figure.board.protocol for figure in figures)
        said = {f"judge.{name}": record.judging.said_of(name)[:500] for name in protocols}
        said["adjudge"] = record.versions.get("adjudge", "unknown")
        params = [Param(name, value) for name, value in said.items()]
        metrics = [Metric(name, value, at, 0) for name, value in _bounded(figures)]
        for at_once in batched(params, MOST_PARAMS):
            client.log_batch(run, params=at_once)
        for few in batched(metrics, MOST_METRICS):
            client.log_batch(run, metrics=few)
        client.set_terminated(run, end_time=at)


def _bounded(figures: list[Figure]) -> Iterator[tuple[str, float]]:
    """Each figure under its name in MLflow, and the ends of its interval."""
    for figure in figures:
        name = f"{figure.board.protocol}/{figure.board.metric}".replace(":", "/")
        ends = ((name, figure.value), (f"{name}/low", figure.low), (f"{name}/high", figure.high))
        yield from ((end, value) for end, value in ends if value is not None)


def batched(values: list[T], most: int) -> Iterator[list[T]]:
    """`values`, at most so many at a time."""
    return (values[at : at + most] for at in range(0, len(values), most))


PROJECT = "adjudge"
_WRITTEN_S = 20.0


def write_wandb(board: Leaderboard, record: RunRecord, out: Path) -> Iterator[Path]:
    """Write one offline run per system below `out`/wandb; the folders written. Nothing is sent.

    The summary holds each metric with its interval. Raises UsageError where the optional package wandb is missing, and
    where a run could not be written whole.
    """
    try:
        import wandb  # optional
    except ImportError as error:
        raise UsageError("format: wandb is not installed; run pip install 'adjudge[wandb]'") from error
    # Nothing of this machine, its code or its output belongs to a run that took place elsewhere.
    settings = wandb.Settings(
        console="off",
        disable_code=True,
        disable_git=True,
        save_code=False,
        silent=True,
        x_disable_machine_info=True,
        x_disable_meta=True,
        x_disable_stats=True,
    )
    for system, figures in figures_of(board):
        with _unlogged():
            run: Any = wandb.init(
                mode="offline",
                dir=out,
                project=PROJECT,
                group=record.run,
                name=system,
                config=_config(figures, record),
                reinit="finish_previous",
                settings=settings,
            )
            run.summary.update(dict(_summary(figures)))
            run.finish()
        folder = out / "wandb" / Path(run.settings.sync_dir).name
        if not _ends(folder / f"run-{run.id}.wandb"):
            raise UsageError("out: the run of a system could not be written whole: is the disk full?")
        yield folder


def _ends(file: Path) -> bool:
    """Whether the file of an offline run, which another process of wandb's writes, is whole before long."""
    until = time.monotonic() + _WRITTEN_S
    while not has_ended(file):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


@contextmanager
def _unlogged() -> Iterator[None]:
    """Without reports of logs that cannot be written: wandb keeps some beside its files, on a disk that may be full."""
    before, logging.raiseExceptions = logging.raiseExceptions, False
    try:
        yield
    finally:
        logging.raiseExceptions = before


_BLOCK, _PIECE = (
    32_768,
    struct.Struct("<IHB"),
)  # of LevelDB's log: checksum, length and kind stand before each piece
_WHOLE, _LAST = 1, 4


def has_ended(file: Path) -> bool:
    """Whether the last record in the file of an offline run says that the run has ended: wandb reports no full disk."""
    data, at, record, last = file.read_bytes(), _PIECE.size, b"", b""
    while at + _PIECE.size <= len(data):
        if _BLOCK - at % _BLOCK < _PIECE.size:
            at += _BLOCK - at % _BLOCK
            continue
        _, length, kind = _PIECE.unpack_from(data, at)
        at += _PIECE.size + length
        record += data[at - length : at]
        if kind in (_WHOLE, _LAST):
            record, last = b"", record
    if at > len(data):  # the last was cut off
        return False
    return bool(import_module("wandb.proto.wandb_internal_pb2").Record.FromString(last).HasField("exit"))


def _config(figures: list[Figure], record: RunRecord) -> dict[str, Any]:
    protocols = dict.fromkeys(figure.board.protocol for figure in figures)
    return {
        "run": record.run,
        "judges": {name: record.judging.said_of(name) for name in protocols},
        "versions": record.versions,
        "tasks": len(record.tasks),
    }


def _summary(figures: list[Figure]) -> Iterator[tuple[str, float]]:
    for figure in figures:
        name = f"{figure.board.protocol}/{figure.board.metric}"
        yield name, figure.value
        for end, bound in (("low", figure.low), ("high", figure.high)):
            if bound is not None:
                yield f"{name}/{end}", bound
        yield f"{name}/coverage", figure.row.coverage
