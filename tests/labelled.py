"""Runs with every kind of item to label."""

from pathlib import Path

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.run import RunConfig
from adjudge.engine.runs.run import Run
from tests.examples import shipped


def example(name: str, folder: Path) -> Run:
    config = shipped(name) / "adjudge.yaml"
    evaluate(RunConfig.load(config, out=str(folder / "run"), store=str(folder / "store")))
    return Run.open(folder / "run")
