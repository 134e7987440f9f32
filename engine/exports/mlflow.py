"""A leaderboard as runs of MLflow, one per system, in a database file for `mlflow ui --backend-store-uri`."""

from collections.abc import Iterator
from pathlib import Path

from adjudge.engine.errors import UsageError
from adjudge.engine.exports.headlines import figures_of
from adjudge.engine.leaderboard.board import Leaderboard
from adjudge.engine.records.record import RunRecord

__all__ = ["write_mlflow"]

FILE = "mlflow.db"
EXPERIMENT = "adjudge"


def write_mlflow(board: Leaderboard, record: RunRecord, out: Path) -> Iterator[Path]:
    """Write one run per system into the new file `out`/mlflow.db; the file. Nothing is sent.

    Raises UsageError if the file exists, or where the optional package mlflow is missing.
    """
    try:
        import sqlalchemy  # noqa: F401 - what MLflow needs for a database
        from mlflow import MlflowClient  # optional
    except ImportError as error:
        raise UsageError("format: mlflow is not installed; run pip install 'adjudge[mlflow]'") from error
    out.mkdir(parents=True, exist_ok=True)
    file = out / FILE
    if file.exists():
        raise UsageError(f"out: {file} exists; choose another folder")
    client = MlflowClient(tracking_uri=f"sqlite:///{file.resolve()}")
    experiment = client.create_experiment(
        EXPERIMENT, artifact_location=(out / "artifacts").resolve().as_uri()
    )
    for system, figures in figures_of(board):
        at = round(record.ended * 1000)
        run = client.create_run(
            experiment, round(record.started * 1000), {"run": record.run}, system
        ).info.run_id
        for protocol in dict.fromkeys(figure.board.protocol for figure in figures):
            client.log_param(run, f"judge.{protocol}", record.judging.said_of(protocol)[:500])
        client.log_param(run, "adjudge", record.versions.get("adjudge", "unknown"))
        for figure in figures:
            name = f"{figure.board.protocol}/{figure.board.metric}".replace(":", "/")
            client.log_metric(run, name, figure.value, at)
            for end, bound in (("low", figure.low), ("high", figure.high)):
                if bound is not None:
                    client.log_metric(run, f"{name}/{end}", bound, at)
        client.set_terminated(run, end_time=at)
    yield file
