"""A leaderboard in experiment trackers, one tracked run per system.

MLflow runs go to a database file for `mlflow ui --backend-store-uri`; Weights & Biases runs are offline, for `wandb
sync`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adjudge.engine.errors import UsageError
from adjudge.engine.exports.shared import Figure, figures_of
from adjudge.engine.runs.board import Leaderboard
from adjudge.engine.runs.record import RunRecord

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


PROJECT = "adjudge"


def write_wandb(board: Leaderboard, record: RunRecord, out: Path) -> Iterator[Path]:
    """Write one offline run per system below `out`/wandb; the folders written. Nothing is sent.

    The summary holds each metric with its interval. Raises UsageError where the optional package wandb is missing.
    """
    try:
        import wandb  # optional
    except ImportError as error:
        raise UsageError("format: wandb is not installed; run pip install 'adjudge[wandb]'") from error
    out.mkdir(parents=True, exist_ok=True)
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
        yield Path(run.settings.sync_dir)


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
