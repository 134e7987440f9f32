"""Floors: numbers that a run's systems must reach, whatever another run has: those its leaderboard ranks by."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from adjudge.engine.config.metrics import Name, named
from adjudge.engine.errors import UsageError, nearest
from adjudge.engine.runs.board import MetricBoard, Standing
from adjudge.engine.runs.run import Run
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.scoring.contract.scorecard import Metric

__all__ = ["FloorCheck", "floor_checks", "floor_in"]


class FloorCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One system under one metric that must reach `least`. Figures are in the units of tables.

    `value` is the number that ranks, with all that is missing at its worst; None if nothing bounds that. It passes by
    reaching `least`. Otherwise it regressed if what it could become once all is scored does not reach it either, or if
    at least the asked share is scored; else it is unclear. `why` says what an outcome other than `passed` rests on.
    """

    system: str
    protocol: str
    metric: str
    value: float | None
    least: float
    coverage: float
    outcome: Literal["passed", "regressed", "unclear"]
    why: str = ""
    decimals: int = 2


def floor_in(said: str) -> tuple[str, float]:
    """`METRIC=VALUE` as a metric's name and a number. Raises UsageError."""
    metric, equals, text = said.rpartition("=")
    try:
        least = float(text)
    except ValueError:
        least = math.nan
    if not (metric and equals and math.isfinite(least)):
        raise UsageError(f"min: {said!r} is not METRIC=VALUE; write for example --min race.overall=40")
    return metric, least


def floor_checks(
    run: str | Path, least: Mapping[str, float], system: str | None, min_scored: float
) -> tuple[FloorCheck, ...]:
    """Whether each system of `run`, or one, reaches what `least` asks of metrics by their names. Raises UsageError."""
    boards = {Name(one.protocol, one.metric): one for one in build_leaderboard([run]).metrics}
    asked = {named(said, boards, "min"): value for said, value in least.items()}
    for protocol, metrics in Run.open(run).metrics.items():
        for metric in metrics:
            _check_reach(protocol, metric, asked.get(Name(protocol, metric.name)))
    return tuple(
        found for name, value in asked.items() for found in _checked(boards[name], value, system, min_scored)
    )


def _check_reach(protocol: str, metric: Metric, least: float | None) -> None:
    """Raises UsageError for a metric whose best is below `least`: no system could ever reach it."""
    if least is not None and metric.best is not None and least > metric.scale * metric.best:
        raise UsageError(
            f"min: {protocol}.{metric.name} is at most {metric.scale * metric.best:g} and can never reach {least:g}; "
            "choose a value in the units of the leaderboard"
        )


def _checked(board: MetricBoard, least: float, system: str | None, min_scored: float) -> Iterator[FloorCheck]:
    name = f"{board.protocol}.{board.metric}"
    if board.lower_is_better:
        raise UsageError(f"min: {name}: lower is better for this metric; choose one where higher is better")
    chosen = [one for one in board.standings if system in (None, one.system)]
    if not chosen:
        near = nearest(system or "", (one.system for one in board.standings))
        raise UsageError(f"system: {system!r} has no {name} in the run; {near}")
    for one in sorted(chosen, key=lambda standing: standing.system):
        yield _floor(board, one, least, min_scored)


def _floor(board: MetricBoard, one: Standing, least: float, min_scored: float) -> FloorCheck:
    # A number that is shown as the floor reaches it.
    slack = 0.5 * 10.0 ** -(board.decimals + 6)
    value = None if one.value is None else one.value * board.scale
    most = math.inf if one.bound_high is None else one.bound_high * board.scale
    outcome: Literal["passed", "regressed", "unclear"] = "passed"
    why = ""
    if value is None or value < least - slack:
        shown = "no number" if value is None else f"{value:.{board.decimals}f}"
        decided = most < least - slack or one.coverage >= min_scored
        outcome = "regressed" if decided else "unclear"
        why = f"{shown}, under {least:g}"
        if not decided:
            why += f", with {one.coverage:.1%} scored"
    return FloorCheck(
        system=one.system,
        protocol=board.protocol,
        metric=board.metric,
        value=value,
        least=least,
        coverage=one.coverage,
        outcome=outcome,
        why=why,
        decimals=board.decimals,
    )
