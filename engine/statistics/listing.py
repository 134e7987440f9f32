"""The pairs and the shares of ranks behind a ranking: listed one by one, or as columns where systems are many."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from adjudge.engine.runs.board import MOST_PAIRS, Detail, Pair, RankShare
from adjudge.engine.runs.scores import Floats, Integers
from adjudge.engine.statistics.placement import Claims
from adjudge.scoring.kernels.comparison.claims import tiers
from adjudge.scoring.kernels.resampling.bootstrap import Bootstrap

__all__ = ["listed"]


def listed(
    systems: Sequence[str],
    drawn: Bootstrap,
    claims: Claims,
    order: Sequence[int],
    *,
    sign: float = 1.0,
    n_used: Floats | None = None,
) -> Detail:
    """The ranks and pairs of the `systems` in `order`, the first of a pair the earlier; differences times `sign`.

    `n_used` [S, S] takes the place of the tasks that are scored for both.
    """
    names = pa.array([systems[row] for row in order], pa.string())
    first, second, pairs = _pairs(names, claims, order, sign, n_used)
    ranks = _ranks(names, drawn, order)
    if len(pairs) <= MOST_PAIRS:
        return Detail(
            ranks=tuple(RankShare(**row) for row in ranks.to_pylist()),
            pairs=tuple(Pair(**row) for row in pairs.to_pylist()),
            frontiers=(),
            noise=None,
        )
    tier = tiers(np.where(claims.ranked, drawn.estimate, np.nan), claims.above)[list(order)]
    best = np.searchsorted(tier, tier)  # tiers rise in order of rank
    told = pairs.filter((second == first + 1) | (first == best[second]))
    return Detail(
        ranks=(),
        pairs=tuple(Pair(**row) for row in told.to_pylist()),
        frontiers=(),
        noise=None,
        more_pairs=len(pairs) - len(told),
        every_pair=pairs,
        every_rank=ranks,
    )


def _pairs(
    names: pa.Array, claims: Claims, order: Sequence[int], sign: float, n_used: Floats | None
) -> tuple[Integers, Integers, pa.Table]:
    """The places in `order` of the two systems of every pair, in order, and the columns of `Pair`."""
    tests, place = claims.pairs, np.full(claims.ranked.size, -1)
    place[list(order)] = np.arange(len(order))
    one, other = place[tests.first], place[tests.second]
    first, second = np.minimum(one, other), np.maximum(one, other)
    rows = np.lexsort((second, first))
    rows = rows[first[rows] >= 0]
    first, second = first[rows], second[rows]
    turn = np.where(one < other, sign, -sign)[rows]
    ends = turn * tests.low[rows], turn * tests.high[rows]
    found = tests.n_used[rows] if n_used is None else np.rint(n_used[tests.first[rows], tests.second[rows]])
    columns = {
        "difference": turn * tests.difference[rows],
        "low": np.where(turn > 0, *ends),
        "high": np.where(turn > 0, *ends[::-1]),
        "p": tests.p[rows],
        "holm": claims.holm[rows],
    }
    table = pa.table(
        {
            "a": names.take(pa.array(first)),
            "b": names.take(pa.array(second)),
            **{
                name: pa.array(values + 0.0, from_pandas=True)  # NaN is null, and there is no negative zero
                for name, values in columns.items()
            },
            "n_used": pa.array(found.astype(np.int64)),
        }
    )
    return first, second, table


def _ranks(names: pa.Array, drawn: Bootstrap, order: Sequence[int]) -> pa.Table:
    """The columns of `RankShare`, of every system and each rank that it has in any resample."""
    counts = drawn.rank_counts[list(order)]
    rows, places = np.nonzero(counts)
    return pa.table(
        {
            "system": names.take(pa.array(rows)),
            "rank": pa.array(1.0 + places),
            "share": pa.array(counts[rows, places] / max(drawn.ranked, 1)),
        }
    )
