"""The kernels that pair predicted with gold claims: greedy, maximum cardinality, maximum weight.

Each works through a span of problems in ragged (CSR) arrays: predicted claims are rows, gold claims columns,
and an edge is a pair that may be matched. `row_offsets` and `edge_offsets` are those of the span's rows, which
count from 0; `matched` receives the column of every row and holds -1 before.
"""

import numpy as np
from numpy.typing import NDArray

from adjudge.scoring.kernels.base.arrays import Floats, Integers
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
    weights: Floats,
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
    weights: Floats,
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


@compiled
def match_heaviest(
    row_offsets: Integers,
    gold_counts: Integers,
    edge_offsets: Integers,
    golds: Columns,
    weights: Floats,
    matched: Integers,
) -> None:
    """Maximum total weight; edges of weight 0 or less are never taken."""
    for problem in range(gold_counts.size):
        first = row_offsets[problem]
        rows, columns = row_offsets[problem + 1] - first, gold_counts[problem]
        # The solver wants no more rows than columns.
        turned = rows > columns
        cost = np.zeros((columns, rows) if turned else (rows, columns))
        for row in range(rows):
            for edge in range(edge_offsets[first + row], edge_offsets[first + row + 1]):
                i, j = (golds[edge], row) if turned else (row, golds[edge])
                cost[i, j] = min(cost[i, j], -weights[edge])
        column_of = np.full(cost.shape[0], -1, np.int64)
        if cost.size:
            _assign(cost, column_of)
        for i in range(column_of.size):
            if cost[i, column_of[i]] < 0:
                row, column = (column_of[i], i) if turned else (i, column_of[i])
                matched[first + row] = column


@compiled
def _assign(cost: Floats, column_of: Integers) -> None:
    """Minimum-cost assignment of all rows of `cost[n, m]`, n <= m (Jonker and Volgenant 1987).

    With n < m, prices of columns that no row holds must stay 0: columns are not reduced then.
    """
    rows, columns = cost.shape
    price = np.zeros(columns)
    row_of = np.full(columns, -1, np.int64)
    free = np.arange(rows)
    waiting = rows
    if rows == columns:
        waiting = _reduce_columns(cost, price, column_of, row_of, free)
    waiting = _bid(cost, price, column_of, row_of, free, waiting)
    distance = np.empty(columns)
    came_from = np.empty(columns, np.int64)
    order = np.empty(columns, np.int64)
    for k in range(waiting):
        end = _shortest_path(free[k], cost, price, row_of, distance, came_from, order)
        row = -1
        while row != free[k]:
            row = came_from[end]
            row_of[end] = row
            end, column_of[row] = column_of[row], end


@compiled
def _reduce_columns(
    cost: Floats, price: Floats, column_of: Integers, row_of: Integers, free: Integers
) -> int:
    """Columns go to their cheapest row, at prices that keep it there. Returns the rows left over."""
    rows, columns = cost.shape
    cheapest = np.zeros(columns, np.int64)
    price[:] = cost[0]
    for row in range(1, rows):
        for column in range(columns):
            if cost[row, column] < price[column]:
                price[column], cheapest[column] = cost[row, column], row
    wins = np.zeros(rows, np.int64)
    for column in range(columns - 1, -1, -1):
        row = cheapest[column]
        wins[row] += 1
        if wins[row] == 1:
            column_of[row], row_of[column] = column, row
    left = 0
    for row in range(rows):
        if wins[row] == 0:
            free[left] = row
            left += 1
        elif wins[row] == 1 and columns > 1:
            slack = np.inf
            for column in range(columns):
                if column != column_of[row]:
                    slack = min(slack, cost[row, column] - price[column])
            price[column_of[row]] -= slack
    return left


@compiled
def _bid(
    cost: Floats, price: Floats, column_of: Integers, row_of: Integers, free: Integers, waiting: int
) -> int:
    """One round of row reduction: rows take their cheapest column and displace each other. Rows left over."""
    rows, columns = cost.shape
    todo, left, turn = waiting, 0, 0
    # Bids that gain almost nothing could displace each other for very long.
    budget = 4 * rows
    while turn < todo:
        row = free[turn]
        turn += 1
        best, second = np.inf, np.inf
        at, at_second = -1, -1
        for column in range(columns):
            reduced = cost[row, column] - price[column]
            if reduced < second:
                if reduced < best:
                    best, second, at, at_second = reduced, best, column, at
                else:
                    second, at_second = reduced, column
        if best < second < np.inf:
            price[at] -= second - best
        elif row_of[at] >= 0 and at_second >= 0:
            at = at_second
        displaced = row_of[at]
        row_of[at], column_of[row] = row, at
        if displaced < 0:
            continue
        column_of[displaced] = -1
        if best < second and budget > 0:
            budget -= 1
            turn -= 1
            free[turn] = displaced
        else:
            free[left] = displaced
            left += 1
    return left


@compiled
def _shortest_path(
    start: int,
    cost: Floats,
    price: Floats,
    row_of: Integers,
    distance: Floats,
    came_from: Integers,
    order: Integers,
) -> int:
    """Dijkstra from a free row to the nearest free column, which is returned; updates the prices.

    `order` holds the columns: finished ones, then those at the current distance, then the others.
    """
    columns = order.size
    for column in range(columns):
        distance[column] = cost[start, column] - price[column]
        came_from[column] = start
        order[column] = column
    finished, current = 0, 0
    while True:
        nearest = distance[order[current]]
        for k in range(current + 1, columns):
            nearest = min(nearest, distance[order[k]])
        done = finished
        for k in range(current, columns):
            column = order[k]
            if distance[column] == nearest:
                if row_of[column] < 0:
                    _settle(price, distance, order, done, nearest)
                    return int(column)
                order[k], order[current] = order[current], column
                current += 1
        while finished < current:
            through = order[finished]
            finished += 1
            row = row_of[through]
            offset = cost[row, through] - price[through] - nearest
            for k in range(current, columns):
                column = order[k]
                length = cost[row, column] - price[column] - offset
                if length < distance[column]:
                    distance[column], came_from[column] = length, row
                    if length == nearest:
                        if row_of[column] < 0:
                            _settle(price, distance, order, done, nearest)
                            return int(column)
                        order[k], order[current] = order[current], column
                        current += 1


@compiled
def _settle(price: Floats, distance: Floats, order: Integers, done: int, nearest: float) -> None:
    for k in range(done):
        price[order[k]] += distance[order[k]] - nearest
