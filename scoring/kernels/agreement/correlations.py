"""Pearson's r, Spearman's rho and Kendall's tau-b among all raters at once, over the items both raters have scored.

Scores are coded by their rank among the distinct values of their row. Pairs of raters with at most 32 distinct values
each are counted into a table of value pairs, from which all three follow. Others are summed (Pearson) or walked in one
rater's order (Spearman and Kendall). Sums of ranks and counts of pairs are whole numbers, so those coefficients are
exact up to one final rounding.
"""

from collections.abc import Collection
from typing import Literal, NamedTuple, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.scoring.kernels.base.arrays import (
    Flags,
    Floats,
    Integers,
    KernelError,
    as_scores,
    compiled,
    in_threads,
    summing,
)

Codes = npt.NDArray[np.int32]

FEW = 32  # at most so many distinct values make a row few-valued
ABSENT = -1


class Coded(NamedTuple):
    """Rows as codes 0, 1, ... from the smallest value up, ABSENT where a score is missing.

    codes[R, N]; groups[R]: how many distinct values; values[R, FEW]: these, for rows with at most FEW.
    """

    codes: Codes
    groups: Integers
    values: Floats

    @property
    def few_valued(self) -> npt.NDArray[np.bool_]:
        """Which rows have at most FEW distinct values."""
        return self.groups <= FEW


def coded(scores: Floats, threads: int | None = None) -> Coded:
    """The codes of `scores[R, N]`, NaN absent."""
    result = Coded(
        codes=np.empty(scores.shape, dtype=np.int32),
        groups=np.zeros(len(scores), dtype=np.int64),
        values=np.zeros((len(scores), FEW)),
    )

    def row(number: int) -> None:
        found = _code_few(scores[number], result.codes[number], result.values[number])
        if found > FEW:
            order = np.argsort(np.where(np.isnan(scores[number]), np.inf, scores[number]))  # NaN sorts slowly
            found = _code_sorted(scores[number], order, result.codes[number])
        result.groups[number] = found

    in_threads(row, range(len(scores)), threads)
    return result


@compiled
def _code_few(scores: Floats, codes: Codes, values: Floats) -> int:
    """Codes a row and keeps its distinct values; gives up, returning FEW + 1, if there are more than FEW."""
    found = 0
    for score in scores:
        if np.isnan(score):
            continue
        place = 0
        while place < found and values[place] < score:
            place += 1
        if place < found and values[place] == score:
            continue
        if found == FEW:
            return FEW + 1
        for later in range(found, place, -1):
            values[later] = values[later - 1]
        values[place] = score
        found += 1
    for item in range(scores.size):
        score = scores[item]
        code = 0
        for place in range(found):
            code += score > values[place]
        codes[item] = ABSENT if np.isnan(score) else code
    return found


@compiled
def _code_sorted(scores: Floats, order: Integers, codes: Codes) -> int:
    """Codes a row from the order that sorts it, NaN last; returns how many distinct values there are."""
    code = ABSENT
    last = np.nan
    for item in order:
        score = scores[item]
        if np.isnan(score):
            codes[item] = ABSENT
            continue
        if score != last:
            code += 1
            last = score
        codes[item] = code
    return code + 1


@compiled
def sorted_items(codes: Codes, groups: int) -> Integers:
    """The items of a row that are not absent, from its lowest code up, equal ones in order: a counting sort."""
    places = np.zeros(groups + 1, dtype=np.int64)
    for code in codes:
        if code != ABSENT:
            places[code + 1] += 1
    for group in range(groups):
        places[group + 1] += places[group]
    order = np.empty(places[groups], dtype=np.int64)
    for item in range(codes.size):
        if codes[item] != ABSENT:
            order[places[codes[item]]] = item
            places[codes[item]] += 1
    return order


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


_CANCELLED = 1e-6  # a variance so small against the sum of squares is computed again, around its own mean


def centred(scores: Floats) -> Floats:
    """Each row of `scores[R, N]` minus its mean, over its largest distance from it; NaN stays."""
    n = np.maximum(np.count_nonzero(~np.isnan(scores), axis=1, keepdims=True), 1)
    values = scores - np.nansum(scores, axis=1, keepdims=True) / n
    largest = np.fmax.reduce(np.abs(values), axis=1, keepdims=True, initial=0.0)
    return np.asarray(values / np.where(largest > 0.0, largest, 1.0), dtype=np.float64)


@summing
def _sums(x: Floats, y: Floats) -> tuple[int, float, float, float, float, float]:
    """n, and the sums of x, y, xx, yy, xy over the items both have."""
    n = 0
    sum_x, sum_y, sum_xx, sum_yy, sum_xy = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(x.size):
        both = x[k] == x[k] and y[k] == y[k]
        a = x[k] if both else 0.0
        b = y[k] if both else 0.0
        n += both
        sum_x += a
        sum_y += b
        sum_xx += a * a
        sum_yy += b * b
        sum_xy += a * b
    return n, sum_x, sum_y, sum_xx, sum_yy, sum_xy


@compiled
def _careful(x: Floats, y: Floats, mean_x: float, mean_y: float) -> float:
    """Pearson's r in a second pass around the means; NaN if one side is constant."""
    moves_x, moves_y = False, False
    last_x, last_y = np.nan, np.nan
    scale_x, scale_y = 0.0, 0.0
    for k in range(x.size):
        if not np.isnan(x[k] + y[k]):
            moves_x = moves_x or last_x < x[k] or last_x > x[k]
            moves_y = moves_y or last_y < y[k] or last_y > y[k]
            last_x, last_y = x[k], y[k]
            scale_x, scale_y = max(scale_x, abs(x[k] - mean_x)), max(scale_y, abs(y[k] - mean_y))
    if not (moves_x and moves_y):
        return np.nan
    products, squares_x, squares_y = 0.0, 0.0, 0.0
    for k in range(x.size):
        if not np.isnan(x[k] + y[k]):
            a, b = (x[k] - mean_x) / scale_x, (y[k] - mean_y) / scale_y
            products += a * b
            squares_x += a * a
            squares_y += b * b
    return float(products / (np.sqrt(squares_x) * np.sqrt(squares_y)))


@compiled
def moment_row(first: int, values: Floats, few: Flags, pearson: Floats, n_used: Integers) -> None:
    """Fills row and column `first` of `pearson` and `n_used`, `[R, R]`, for later raters.

    Pairs of two `few`-valued raters are left out. `values` are `centred`. NaN for fewer than two items in
    common or if one rater's scores of them are all equal.
    """
    x = values[first]
    for second in range(first, len(values)):
        if few[first] and few[second]:
            continue
        y = values[second]
        n, sum_x, sum_y, sum_xx, sum_yy, sum_xy = _sums(x, y)
        n_used[first, second] = n_used[second, first] = n
        if n < 2:
            continue
        spread_x = sum_xx - sum_x * sum_x / n
        spread_y = sum_yy - sum_y * sum_y / n
        if spread_x < _CANCELLED * sum_xx or spread_y < _CANCELLED * sum_yy or spread_x * spread_y == 0.0:
            r = _careful(x, y, sum_x / n, sum_y / n)
        else:
            r = (sum_xy - sum_x * sum_y / n) / (np.sqrt(spread_x) * np.sqrt(spread_y))
        pearson[first, second] = pearson[second, first] = r


Words = npt.NDArray[np.uint64]

_ONE = np.uint64(1)
_PAIRS = np.uint64(0x5555555555555555)
_NIBBLES = np.uint64(0x3333333333333333)
_BYTES = np.uint64(0x0F0F0F0F0F0F0F0F)
_SUMS = np.uint64(0x0101010101010101)


@compiled
def _common(order: Integers, first: Codes, second: Codes, xs: Codes, ys: Codes) -> int:
    """Lists the codes of both over the items both have, in the first's order; returns how many."""
    n = 0
    for item in order:
        xs[n] = first[item]
        ys[n] = second[item]
        n += second[item] != ABSENT
    return n


@compiled
def _sort_ties(xs: Codes, ys: Codes) -> tuple[int, int]:
    """Sorts `ys` where the sorted `xs` are equal; returns the pairs tied in `xs`, and those tied in both."""
    tied, tied_both = 0, 0
    begin = 0
    for end in range(1, xs.size + 1):
        if end < xs.size and xs[end] == xs[begin]:
            continue
        if end - begin > 1:
            ys[begin:end].sort()
            tied += (end - begin) * (end - begin - 1) // 2
            run = 0
            for k in range(begin + 1, end):
                run = run + 1 if ys[k] == ys[k - 1] else 0
                tied_both += run
        begin = end
    return tied, tied_both


@compiled
def _count_below(codes: Codes, below: Integers) -> int:
    """Fills `below[g]` with how many codes are below g, up to the number of groups; returns the tied pairs."""
    below[:] = 0
    for code in codes:
        below[code + 1] += 1
    tied = 0
    for group in range(1, below.size):
        tied += below[group] * (below[group] - 1) // 2
        below[group] += below[group - 1]
    return tied


@compiled
def _rho(xs: Codes, ys: Codes, tied_x: int, below: Integers, ranks: Integers) -> float:
    """Spearman's rho: Pearson's r of the midranks, doubled and minus n + 1, so whole and of sum 0.

    `xs` is sorted; `below` belongs to `ys`; `ranks` is scratch.
    """
    n = xs.size
    squares_y = 0
    for group in range(below.size - 1):
        ranks[group] = below[group] + below[group + 1] - n
        squares_y += (below[group + 1] - below[group]) * ranks[group] * ranks[group]
    products, squares_x = 0, 0
    if tied_x == 0:
        for k in range(n):
            products += (2 * k + 1 - n) * ranks[ys[k]]
        squares_x = (n - 1) * n * (n + 1) // 3
    else:
        begin = 0
        for end in range(1, n + 1):
            if end < n and xs[end] == xs[begin]:
                continue
            x = begin + end - n
            squares_x += (end - begin) * x * x
            for k in range(begin, end):
                products += x * ranks[ys[k]]
            begin = end
    return float(products / (np.sqrt(float(squares_x)) * np.sqrt(float(squares_y))))


@compiled
def _discordant(positions: Codes, bits: Words, in_chapter: Codes, before: Codes) -> int:
    """Pairs that come in falling order in `positions`, a permutation of 0, ..., n - 1.

    The positions seen so far are a bit set of 64-bit words, 16 of them a chapter: `in_chapter[w]` counts those
    in earlier words of w's chapter, `before[c]` those in earlier chapters than c.
    """
    bits[:] = 0
    in_chapter[:] = 0
    before[:] = 0
    pairs = 0
    for k in range(positions.size):
        word, chapter = positions[k] >> 6, positions[k] >> 10
        bit = _ONE << np.uint64(positions[k] & 63)
        lower = bits[word] & (bit - _ONE)
        lower -= (lower >> _ONE) & _PAIRS
        lower = (lower & _NIBBLES) + ((lower >> np.uint64(2)) & _NIBBLES)
        lower = (((lower + (lower >> np.uint64(4))) & _BYTES) * _SUMS) >> np.uint64(56)
        pairs += k - (before[chapter] + in_chapter[word] + np.int64(lower))
        bits[word] |= bit
        for place in range(16):
            in_chapter[(chapter << 4) + place] += np.int32(place > (word & 15))
        for place in range(before.size):
            before[place] += np.int32(place > chapter)
    return pairs


@compiled
def _agreement(ys: Codes, below: Integers, tied: int, scratch: tuple[Codes, Words, Codes, Codes]) -> int:
    """Concordant minus discordant pairs, by Knight's method; `tied` counts the pairs tied in either.

    `ys` come in the first rater's order, sorted where that has ties. Uses `below` up.
    """
    positions, bits, in_chapter, before = scratch
    n = ys.size
    for k in range(n):  # equal ys get rising positions: a tie is not a discordance
        positions[k] = below[ys[k]]
        below[ys[k]] += 1
    chapters = (n + 1023) >> 10
    words = 16 * chapters
    falling = _discordant(positions[:n], bits[:words], in_chapter[:words], before[: (chapters + 15) & ~15])
    return n * (n - 1) // 2 - tied - 2 * falling


@compiled
def rank_row(
    first: int,
    order: Integers,
    codes: Codes,
    groups: Integers,
    few: Flags,
    wants_rho: bool,
    wants_tau: bool,
    rho: Floats,
    tau: Floats,
    n_used: Integers,
) -> None:
    """Fills row and column `first` of `rho`, `tau` and `n_used`, all `[R, R]`, for later raters.

    Pairs of two `few`-valued raters are left out. `order` lists the items the first has scored from its
    lowest score up. NaN for fewer than two items in common or if one rater's scores of them are all equal.
    """
    raters, items = codes.shape
    chapters = (items + 1023) >> 10
    xs, ys = np.empty(items + 1, dtype=np.int32), np.empty(items + 1, dtype=np.int32)
    below, ranks = np.empty(items + 1, dtype=np.int64), np.empty(items + 1, dtype=np.int64)
    scratch = (
        np.empty(items, dtype=np.int32),
        np.empty(16 * chapters, dtype=np.uint64),
        np.empty(16 * chapters, dtype=np.int32),
        np.empty((chapters + 15) & ~15, dtype=np.int32),
    )
    has_ties = groups[first] < order.size
    for second in range(first, raters):
        if few[first] and few[second]:
            continue
        n = _common(order, codes[first], codes[second], xs, ys)
        n_used[first, second] = n_used[second, first] = n
        pairs = n * (n - 1) // 2
        tied_x, tied_both = _sort_ties(xs[:n], ys[:n]) if has_ties else (0, 0)
        counts = below[: groups[second] + 1]
        tied_y = _count_below(ys[:n], counts)
        if tied_x == pairs or tied_y == pairs:
            continue
        if wants_rho:
            rho[first, second] = rho[second, first] = _rho(xs[:n], ys[:n], tied_x, counts, ranks)
        if wants_tau:
            agreement = _agreement(ys[:n], counts, tied_x + tied_y - tied_both, scratch)
            untied = np.sqrt(float(pairs - tied_x)) * np.sqrt(float(pairs - tied_y))
            tau[first, second] = tau[second, first] = agreement / untied


Coefficient = Literal["pearson", "spearman", "kendall"]


class Correlations(msgspec.Struct, frozen=True):
    """Coefficients of all pairs of raters, `[R, R]` each and symmetric; None for those not asked for.

    n_used: items that both raters scored. defined: False, and every coefficient NaN, where these are fewer
    than two or one of the raters gave all of them the same score.
    """

    pearson: Floats | None
    spearman: Floats | None
    kendall: Floats | None
    n_used: Integers
    defined: Flags


def correlations(
    scores: npt.ArrayLike,
    *,
    coefficients: Collection[Coefficient] = get_args(Coefficient),
    threads: int | None = None,
) -> Correlations:
    """Correlates the raters of `scores[R raters, N items]` pair by pair; NaN is a missing score.

    Raises KernelError for another shape, infinite scores, or an unknown or no coefficient.
    """
    values = as_scores(scores, 2)
    if len(values) == 0:
        raise KernelError("scores: no raters")
    unknown = set(coefficients) - set(get_args(Coefficient))
    if unknown or not coefficients:
        raise KernelError(f"coefficients: {sorted(coefficients)}, expected some of {get_args(Coefficient)}")
    raters = len(values)
    r, ranked, ordered = (np.full((raters, raters), np.nan) for _ in get_args(Coefficient))
    n_used = np.zeros((raters, raters), dtype=np.int64)
    few = np.zeros(raters, dtype=np.bool_)
    rho, tau = "spearman" in coefficients, "kendall" in coefficients
    if rho or tau:
        codes = coded(values, threads)
        few = codes.few_valued
        chosen = np.flatnonzero(few)
        groups, rows = codes.groups[chosen], codes.codes[chosen]
        small = np.where(rows == ABSENT, groups[:, None], rows).astype(np.uint8)
        distinct = centred(codes.values[chosen, : int(groups.max(initial=0))])

        def tabulate(first: int) -> None:
            table_row(first, chosen, small, groups, distinct, r, ranked, ordered, n_used)

        def walk(first: int) -> None:
            if not few[first:].all():
                order = sorted_items(codes.codes[first], int(codes.groups[first]))
                rank_row(first, order, codes.codes, codes.groups, few, rho, tau, ranked, ordered, n_used)

        in_threads(tabulate, range(len(chosen)), threads)
        in_threads(walk, range(raters), threads)
    if "pearson" in coefficients:
        around_mean = centred(values)

        def sum_moments(first: int) -> None:
            moment_row(first, around_mean, few, r, n_used)

        in_threads(sum_moments, range(raters), threads)
    pearson, spearman, kendall = (
        np.clip(matrix, -1.0, 1.0) if name in coefficients else None
        for name, matrix in zip(get_args(Coefficient), (r, ranked, ordered), strict=True)
    )
    some = next(matrix for matrix in (pearson, spearman, kendall) if matrix is not None)
    return Correlations(pearson, spearman, kendall, n_used=n_used, defined=~np.isnan(some))
