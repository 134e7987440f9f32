"""Where every system stands under one metric over some tasks: values, intervals, bounds and ranks."""

import numpy as np
import numpy.typing as npt

from adjudge.engine.leaderboard.board import FLAGGED_BELOW, MetricBoard, RankStability, Standing
from adjudge.engine.leaderboard.detail import Detail
from adjudge.engine.leaderboard.measured import Measured
from adjudge.engine.leaderboard.ranks import ranks_of
from adjudge.engine.leaderboard.selection import Filled
from adjudge.engine.records.matrices import Floats, figure
from adjudge.scoring.kernels.resampling.bootstrap import Bootstrap, RankAgreement

__all__ = ["placed", "ranked_among", "sign_of", "stability_of"]

Flags = npt.NDArray[np.bool_]


def sign_of(one: Measured) -> float:
    """The factor that makes higher values of a metric the better ones."""
    return -1.0 if one.metric.lower_is_better else 1.0


def ranked_among(filled: Filled, estimate: Floats) -> Flags:
    """The systems [S] that have a value and enough scores for a rank."""
    return np.asarray(~np.isnan(estimate) & (filled.coverage > FLAGGED_BELOW - 1e-9))


def placed(
    one: Measured,
    filled: Filled,
    own: Bootstrap,
    drawn: Bootstrap,
    without_gold: int,
    detail: Detail | None = None,
) -> MetricBoard:
    """The board of a metric over the tasks of `filled`.

    Values and intervals are those of every system's `own` resamples, ranks those among the ranked systems `drawn`.
    """
    metric, sign = one.metric, sign_of(one)
    ranked = ranked_among(filled, own.estimate)
    return MetricBoard(
        protocol=one.protocol,
        metric=metric.name,
        table=metric.table,
        definition=metric.definition,
        unit=metric.units,
        source=metric.source,
        judge=one.judge,
        headline=metric.headline,
        shown=metric.shown,
        scale=metric.scale,
        lower_is_better=metric.lower_is_better,
        n_tasks=len(filled.tasks),
        n_without_gold=without_gold,
        not_submitted=filled.not_submitted,
        tau=stability_of(drawn.tau),
        rho=stability_of(drawn.rho),
        standings=tuple(_standings(filled, own, drawn, sign, ranked)),
        detail=detail,
    )


def _standings(
    filled: Filled, own: Bootstrap, drawn: Bootstrap, sign: float, ranked: Flags
) -> list[Standing]:
    ends = (filled.low, filled.high) if sign > 0 else (-filled.high, -filled.low)
    found = ranks_of(drawn, own.estimate, ends, sign * filled.worst, ranked)
    values = sign * own.estimate
    standings = [
        Standing(
            system=name,
            value=figure(values[row]),
            low=figure((own.percentile[row] * sign).min()),
            high=figure((own.percentile[row] * sign).max()),
            bound_low=_bound(filled.low[row], values[row]),
            bound_high=_bound(filled.high[row], values[row]),
            standard_error=figure(own.standard_error[row]),
            rank=figure(found.rank[row]),
            rank_low=figure(found.span[row, 0]),
            rank_high=figure(found.span[row, 1]),
            tier=int(drawn.tier[row]) or None,
            n_total=int(filled.n_total[row]),
            n_scored=int(filled.n_scored[row]),
            n_unscored=int(filled.n_total[row] - filled.n_scored[row]),
            unscored=filled.unscored[row],
            coverage=float(filled.coverage[row]),
            flagged=bool(filled.coverage[row] <= FLAGGED_BELOW - 1e-9),
        )
        for row, name in enumerate(filled.systems)
    ]
    return sorted(standings, key=lambda row: _place(row, sign))


def _bound(bound: float, value: float) -> float | None:
    """None for a bound that is infinite or undefined; the value itself where they differ by rounding alone."""
    if not np.isfinite(bound):
        return None
    return figure(value) if np.isclose(bound, value, rtol=1e-9, atol=1e-12) else float(bound)


def _place(row: Standing, sign: float) -> tuple[float, float, str]:
    """By rank; unranked systems after them, by value."""
    if row.rank is not None:
        return 0.0, row.rank, row.system
    return 1.0, np.inf if row.value is None else -sign * row.value, row.system


def stability_of(agreement: RankAgreement) -> RankStability:
    """The kernel's figures, None where they are undefined."""
    return RankStability(figure(agreement.mean), figure(agreement.low), figure(agreement.high))
