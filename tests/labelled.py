"""Runs with every kind of item to label."""

from pathlib import Path

from adjudge.engine.runs.run import Run
from tests.examples import evaluated


def example(name: str, folder: Path) -> Run:
    return Run.open(evaluated(name, folder))
