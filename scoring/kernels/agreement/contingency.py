"""Correlations of few-valued scores from the table of how often each pair of values occurs."""

import numpy as np
import numpy.typing as npt

from adjudge.scoring.kernels.base.arrays import Floats, Integers
from adjudge.scoring.kernels.base.compiled import compiled

SmallCodes = npt.NDArray[np.uint8]


@compiled
def _pearson(table: Integers, x: Floats, y: Floats, n: int) -> float:
    """Pearson's r of the values `x[a]` and `y[b]`, each pair `table[a, b]` times of `n`."""
    mean_x, mean_y = 0.0, 0.0
    for a in range(x.size):
        for b in range(y.size):
            mean_x += table[a, b] * x[a]
            mean_y += table[a, b] * y[b]
    mean_x /= n
    mean_y /= n
    products, squares_x, squares_y = 0.0, 0.0, 0.0
    for a in range(x.size):
        for b in range(y.size):
            products += table[a, b] * (x[a] - mean_x) * (y[b] - mean_y)
            squares_x += table[a, b] * (x[a] - mean_x) ** 2
            squares_y += table[a, b] * (y[b] - mean_y) ** 2
    return float(products / (np.sqrt(squares_x) * np.sqrt(squares_y)))


@compiled
def _twice_centred_midranks(counts: Integers, n: int, ranks: Floats) -> None:
    """2 * midrank - (n + 1) of each value, from how often it occurs."""
    before = 0
    for a in range(counts.size):
        ranks[a] = 2 * before + counts[a] - n
        before += counts[a]


@compiled
def _tau(table: Integers, rows: Integers, columns: Integers, n: int) -> float:
    """Kendall's tau-b: concordant minus discordant pairs, over the geometric mean of the untied."""
    agreement = 0
    above = np.zeros(columns.size, dtype=np.int64)  # of rows with a smaller value
    for a in range(rows.size):
        below, total = 0, 0
        for b in range(columns.size):
            total += above[b]
        for b in range(columns.size):
            agreement += table[a, b] * (2 * below + above[b] - total)
            below += above[b]
        for b in range(columns.size):
            above[b] += table[a, b]
    pairs = n * (n - 1) // 2
    tied_x, tied_y = 0, 0
    for count in rows:
        tied_x += count * (count - 1) // 2
    for count in columns:
        tied_y += count * (count - 1) // 2
    return float(agreement / (np.sqrt(float(pairs - tied_x)) * np.sqrt(float(pairs - tied_y))))


@compiled
def table_row(
    first: int,
    raters: Integers,
    codes: SmallCodes,
    groups: Integers,
    values: Floats,
    pearson: Floats,
    spearman: Floats,
    kendall: Floats,
    n_used: Integers,
) -> None:
    """Fills row and column `raters[first]` of the four `[R, R]` for the raters listed after it.

    codes[F, N], groups[F], values[F, most]: of the listed raters; a missing score has the code groups[f].
    Undefined coefficients are left alone.
    """
    side = values.shape[1] + 1
    table = np.empty((side, side), dtype=np.int64)
    rows, columns = np.empty(side, dtype=np.int64), np.empty(side, dtype=np.int64)
    rank_x, rank_y = np.empty(side), np.empty(side)
    g = groups[first]
    for second in range(first, raters.size):
        h = groups[second]
        table[: g + 1, : h + 1] = 0
        x, y = codes[first], codes[second]
        for item in range(x.size):
            table[x[item], y[item]] += 1
        rows[:g] = 0
        columns[:h] = 0
        for a in range(g):
            for b in range(h):
                rows[a] += table[a, b]
                columns[b] += table[a, b]
        n = rows[:g].sum()
        i, j = raters[first], raters[second]
        n_used[i, j] = n_used[j, i] = n
        if (rows[:g] > 0).sum() < 2 or (columns[:h] > 0).sum() < 2:
            continue
        cells = table[:g, :h]
        _twice_centred_midranks(rows[:g], n, rank_x)
        _twice_centred_midranks(columns[:h], n, rank_y)
        pearson[i, j] = pearson[j, i] = _pearson(cells, values[first, :g], values[second, :h], n)
        spearman[i, j] = spearman[j, i] = _pearson(cells, rank_x[:g], rank_y[:h], n)
        kendall[i, j] = kendall[j, i] = _tau(cells, rows[:g], columns[:h], n)
