"""Spearman's rho and Kendall's tau-b of one rater with many others, over the items both have scored.

Sums of ranks and counts of pairs are whole numbers, so the coefficients are exact up to one final rounding.
"""

import numpy as np
import numpy.typing as npt

from adjudge.scoring.kernels.agreement.ranks import ABSENT, Codes
from adjudge.scoring.kernels.base.arrays import Flags, Floats, Integers
from adjudge.scoring.kernels.base.compiled import compiled

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
