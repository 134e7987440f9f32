"""The kernels that pair predicted with gold claims: greedy, and maximum cardinality.

Each works through a span of problems in ragged (CSR) arrays: predicted claims are rows, gold claims columns,
and an edge is a pair that may be matched. `row_offsets` and `edge_offsets` are those of the span's rows, which
count from 0; `matched` receives the column of every row and holds -1 before.
"""

import numpy as np
from numpy.typing import NDArray

from adjudge.scoring.kernels.base.arrays import Integers
from adjudge.scoring.kernels.base.compiled import compiled

Words = NDArray[np.uint64]
Columns = NDArray[np.int32]

NO_BITS = np.uint64(0)
ONE = np.uint64(1)
# A de Bruijn sequence: its product with a power of two has a different top byte for each of the 64 powers.
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
TOP_SIX = np.uint64(58)
BIT_INDEX = np.zeros(64, np.int64)
for _bit in range(64):
    BIT_INDEX[(int(DE_BRUIJN) << _bit) % 2**64 >> 58] = _bit


@compiled
def match_in_order(
    row_offsets: Integers,
    gold_counts: Integers,
    edge_offsets: Integers,
    golds: Columns,
    matched: Integers,
) -> None:
    """Every row in order takes its first column that is still free."""
    for problem in range(gold_counts.size):
        taken = np.zeros(gold_counts[problem], np.bool_)
        for row in range(row_offsets[problem], row_offsets[problem + 1]):
            for edge in range(edge_offsets[row], edge_offsets[row + 1]):
                if not taken[golds[edge]]:
                    taken[golds[edge]] = True
                    matched[row] = golds[edge]
                    break


@compiled
def match_most(
    row_offsets: Integers,
    gold_counts: Integers,
    edge_offsets: Integers,
    golds: Columns,
    matched: Integers,
) -> None:
    """Maximum cardinality: free columns in order, then an augmenting path from each row that found none.

    Paths are searched breadth first, over sets of 64 columns a word.
    """
    most_rows, most_words = 0, 0
    for problem in range(gold_counts.size):
        most_rows = max(most_rows, row_offsets[problem + 1] - row_offsets[problem])
        most_words = max(most_words, (gold_counts[problem] + 63) // 64)
    adjacent = np.empty(most_rows * most_words, np.uint64)
    free, alive, unseen = np.empty((3, most_words), np.uint64)
    row_of, came_from = np.empty(64 * most_words, np.int64), np.empty(64 * most_words, np.int64)
    queue = np.empty(most_rows, np.int64)
    for problem in range(gold_counts.size):
        first = row_offsets[problem]
        rows, words = row_offsets[problem + 1] - first, (gold_counts[problem] + 63) // 64
        adjacent[: rows * words] = NO_BITS
        for row in range(rows):
            for edge in range(edge_offsets[first + row], edge_offsets[first + row + 1]):
                adjacent[row * words + (golds[edge] >> 6)] |= ONE << np.uint64(golds[edge] & 63)
        free[:words], alive[:words] = ~NO_BITS, ~NO_BITS
        for row in range(rows):
            for word in range(words):
                open_ends = adjacent[row * words + word] & free[word]
                if open_ends:
                    free[word] &= ~(open_ends & (~open_ends + ONE))
                    column = 64 * word + _lowest_bit(open_ends)
                    matched[first + row], row_of[column] = column, row
                    break
        own = matched[first : first + rows]
        _augment(words, adjacent, free, alive, unseen, row_of, came_from, queue, own)


@compiled
def _lowest_bit(word: np.uint64) -> int:
    return int(BIT_INDEX[((word & (~word + ONE)) * DE_BRUIJN) >> TOP_SIX])


@compiled
def _augment(
    words: int,
    adjacent: Words,
    free: Words,
    alive: Words,
    unseen: Words,
    row_of: Integers,
    came_from: Integers,
    queue: Integers,
    matched: Integers,
) -> None:
    """Finds an augmenting path from every row without a column, or that there is none."""
    for start in range(matched.size):
        if matched[start] >= 0:
            continue
        unseen[:words] = alive[:words]
        queue[0] = start
        head, tail, row, end = 0, 1, start, -1
        while head < tail and end < 0:
            row = queue[head]
            head += 1
            for word in range(words):
                open_ends = adjacent[row * words + word] & free[word]
                if open_ends:
                    end = 64 * word + _lowest_bit(open_ends)
                    free[word] &= ~(ONE << np.uint64(end & 63))
                    break
                reached = adjacent[row * words + word] & unseen[word]
                unseen[word] &= ~reached
                while reached:
                    column = 64 * word + _lowest_bit(reached)
                    reached &= reached - ONE
                    came_from[column] = row
                    queue[tail] = row_of[column]
                    tail += 1
        if end < 0:
            # What a search in vain has seen will never lead to a free column.
            alive[:words] = unseen[:words]
        # Back along the path, every row moves on to the column that was reached from it.
        while end >= 0:
            matched[row], row_of[end], end = end, row, matched[row]
            row = came_from[end] if end >= 0 else -1
