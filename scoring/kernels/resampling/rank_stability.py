"""How far a ranking hangs on single tasks, and how many tasks it needs.

Systems are ranked by the mean of their scores, missing ones left out (DeepResearch Bench, appendix K). Means that
differ by less than 1e-12 of the largest score's size are tied: less is rounding. A tied pair counts in Kendall's
tau-b as a tie.
"""

import msgspec
import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from adjudge.scoring.kernels.base.arrays import ONE, Flags, Floats, Integers, as_scores, as_share, spans
from adjudge.scoring.kernels.base.compiled import compiled, in_threads
from adjudge.scoring.kernels.base.errors import KernelError
from adjudge.scoring.kernels.base.streams import philox, seed_key

__all__ = ["LeaveOneOut", "TaskCount", "leave_one_out", "smallest_task_count"]

TIE_SHARE = 1e-12
# The purpose of a random counter, as in streams.
ORDERS = np.uint32(0x80000002)
ORDERS_AT_ONCE = 16
# Tasks that are left out at once; their means of 100 systems stay in the second-level cache.
TILE = 256
# Rows a power of two apart would share few sets of the first-level cache.
PADDING = 8

Words = NDArray[np.uint32]


class LeaveOneOut(msgspec.Struct, frozen=True):
    """The ranking without each of the T tasks."""

    systems: Integers
    """the ranked systems, best first; one without any score is not ranked"""
    means: Floats
    """of all systems, `[S]`"""
    tau: Floats
    """Kendall's tau-b of the ranking without each task with the full one, `[T]`; NaN where either is one tie"""
    kept: Flags
    """tasks whose absence leaves every pair of systems as it was, ties included, `[T]`"""
    best_rank: Integers
    """1 + systems strictly better, at its best with all tasks or without one, `[S]`; 0 for one not ranked"""
    worst_rank: Integers


class TaskCount(msgspec.Struct, frozen=True):
    """How often the first n tasks of a random order give the ranking of all of them."""

    tasks: int
    """the smallest n from which on `chance` never falls below the probability asked for"""
    chance: Floats
    """share of orders in which the first n tasks keep the ranking, for n = 1 .. T"""
    probability: float
    least_tau: float
    orders: int
    seed: int


def leave_one_out(scores: ArrayLike) -> LeaveOneOut:
    """The ranking of systems without each task in turn.

    Without a task, the mean of a system that has no other score is its full mean.

    Args:
        scores: `[S, T]`, NaN for missing.

    Raises:
        KernelError: scores of another shape, or an infinite one.
    """
    values = as_scores(scores, 2)
    systems, sums, counts, tie = _ranked(values)
    tasks = values.shape[1]
    tau, kept = np.empty(tasks), np.empty(tasks, np.bool_)
    means = np.full(values.shape[0], np.nan)
    means[systems] = sums / counts
    parts = spans(tasks, 10 * systems.size)
    ranks = np.zeros((len(parts), 2, systems.size), np.int64)

    def leave_out(part: int) -> None:
        start, stop = parts[part]
        out = tau[start:stop], kept[start:stop], ranks[part]
        _leave_out(values[:, start:stop], systems, sums, counts, tie, *out)

    in_threads(leave_out, range(len(parts)))
    best, worst = np.zeros((2, values.shape[0]), np.int64)
    best[systems], worst[systems] = ranks[:, 0].min(axis=0), ranks[:, 1].max(axis=0)
    return LeaveOneOut(systems=systems, means=means, tau=tau, kept=kept, best_rank=best, worst_rank=worst)


def smallest_task_count(
    scores: ArrayLike,
    *,
    probability: float = 0.95,
    least_tau: float = 1.0,
    orders: int = 1000,
    seed: int = 0,
) -> TaskCount:
    """The smallest number of tasks, drawn without replacement, that keeps the ranking of all T.

    A subset keeps it when, among the pairs of systems that all T tasks separate, the pairs in the same order minus
    the others (tied ones included) are at least `least_tau` of all; 1 asks for every pair.

    Args:
        scores: `[S, T]`, NaN for missing.
        probability: share of random subsets that must keep the ranking.
        least_tau: -1 to 1.
        orders: random orders of the tasks; the first n of each are the subsets of n.
        seed: any 64-bit integer; an order depends on it and its own number alone.

    Raises:
        KernelError: scores of another shape or infinite, no task, or an option out of range.
    """
    values = as_scores(scores, 2)
    probability = as_share(probability, "probability")
    if not -1 <= least_tau <= 1 or orders < 1 or not values.shape[1]:
        raise KernelError("least_tau lies in -1 to 1; there must be at least one order and one task")
    systems, sums, counts, tie = _ranked(values)
    columns = np.ascontiguousarray(values[systems].T)
    tasks = columns.shape[0]
    starts = range(0, orders, ORDERS_AT_ONCE)
    held = np.zeros((len(starts), tasks), np.int64)

    def draw(part: int) -> None:
        numbers = np.arange(starts[part], min(starts[part] + ORDERS_AT_ONCE, orders), dtype=np.uint32)
        words = _order_words(numbers, tasks, seed)
        _count_kept(columns, sums / counts, tie, least_tau, words, held[part])

    in_threads(draw, range(len(starts)))
    chance = held.sum(axis=0) / orders
    short = np.flatnonzero(chance < probability)
    return TaskCount(
        tasks=int(short[-1]) + 2 if short.size else 1,
        chance=chance,
        probability=probability,
        least_tau=least_tau,
        orders=orders,
        seed=seed,
    )


def _ranked(values: Floats) -> tuple[Integers, Floats, Floats, float]:
    """Systems with scores, best first, their sums and counts, and by how much means must differ."""
    sums, counts, sizes = np.zeros(len(values)), np.zeros(len(values)), np.zeros(len(values))

    def total(span: tuple[int, int]) -> None:
        rows = slice(*span)
        _sum_rows(values[rows], sums[rows], counts[rows], sizes[rows])

    in_threads(total, spans(len(values), values.shape[1]))
    scored = np.flatnonzero(counts)
    order = scored[np.argsort(-sums[scored] / counts[scored], kind="stable")]
    return order, sums[order], counts[order], TIE_SHARE * float(sizes.max(initial=0.0))


# Sums may be reassociated, so that they run in vector registers.
@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc"})
def _sum_rows(values: Floats, sums: Floats, counts: Floats, sizes: Floats) -> None:
    """Sum, number and greatest size of each row's scores."""
    for row in range(values.shape[0]):
        scores = values[row]
        bits = scores.view(np.uint64)
        total, count, size = 0.0, 0, np.uint64(0)
        for task in range(scores.size):
            present = scores[task] == scores[task]
            total += scores[task] if present else 0.0
            count += present
            # Without their sign, the bits of floats are ordered as the floats are.
            size = max(size, (bits[task] << ONE) * np.uint64(present))
        sums[row], counts[row] = total, count
        sizes[row] = np.array([size >> ONE], np.uint64).view(np.float64)[0]


def _order_words(numbers: NDArray[np.uint32], tasks: int, seed: int) -> Words:
    """A random word for each order and task, `[orders, tasks]`."""
    blocks = (tasks + 3) // 4
    words = np.empty((4, numbers.size * blocks), np.uint32)
    words[0] = np.tile(np.arange(blocks, dtype=np.uint32), numbers.size)
    words[1] = 0
    words[2] = np.repeat(numbers, blocks)
    words[3] = ORDERS
    philox(words, *seed_key(seed))
    return np.ascontiguousarray(words.T).reshape(numbers.size, 4 * blocks)[:, :tasks].copy()


@compiled
def _leave_out(
    values: Floats,
    systems: Integers,
    sums: Floats,
    counts: Floats,
    tie: float,
    tau: Floats,
    kept: Flags,
    ranks: Integers,
) -> None:
    """Fills in one result for each task (column of `values`), and the best and worst ranks of the systems.

    `systems` are in the order of their full means; a tile of tasks at a time runs in vector registers.
    """
    size = systems.size
    full = sums / counts
    groups = _tie_groups(full, tie)
    ties_full = _tied_pairs(groups)
    _widen(ranks, groups)
    without = np.empty((size, TILE + PADDING))
    gaps = np.empty(TILE)
    means, order = np.empty(size), np.empty(size, np.int64)
    for start in range(0, tau.size, TILE):
        width = min(TILE, tau.size - start)
        # The smallest distance between neighbours: above `tie`, the order is the full one.
        gaps[:] = np.inf if ties_full == 0 else 0.0
        for k in range(size):
            scores = values[systems[k], start : start + width]
            # The full mean stands where no score is left.
            share = 1 / (counts[k] - 1) if counts[k] > 1 else 0.0
            for task in range(width):
                mean = (sums[k] - scores[task]) * share
                without[k, task] = mean if scores[task] == scores[task] and share > 0 else full[k]
            if k:
                for task in range(width):
                    gap = without[k - 1, task] - without[k, task]
                    gaps[task] = gap if gap < gaps[task] else gaps[task]
        for task in range(width):
            if gaps[task] > tie and size > 1:
                tau[start + task], kept[start + task] = 1.0, True
                continue
            for k in range(size):
                means[k] = without[k, task]
            discordant = _sort_means(means, groups, order)
            ties, ties_both, discordant = _tied_runs(means, groups, order, tie, discordant, ranks)
            pairs = size * (size - 1) // 2
            scale = np.sqrt(float(pairs - ties_full) * float(pairs - ties))
            concordant = pairs - ties_full - ties + ties_both - discordant
            tau[start + task] = (concordant - discordant) / scale if scale > 0 else np.nan
            kept[start + task] = discordant == 0 and ties == ties_full == ties_both


@compiled
def _sort_means(means: Floats, groups: Integers, order: Integers) -> int:
    """Fills `order` with the systems by falling mean; returns the inverted pairs of different groups."""
    inverted = 0
    last = np.inf
    for k in range(means.size):
        mean = means[k]
        if mean <= last:
            order[k], last = k, mean
            continue
        place = k
        while place > 0 and means[order[place - 1]] < mean:
            inverted += groups[order[place - 1]] != groups[k]
            order[place] = order[place - 1]
            place -= 1
        order[place] = k
    return inverted


@compiled
def _tied_runs(
    means: Floats, groups: Integers, order: Integers, tie: float, inverted: int, ranks: Integers
) -> tuple[int, int, int]:
    """Tied pairs, those tied before too, and the inverted pairs less tied ones; widens the ranks seen."""
    ties, ties_both, rank = 0, 0, 0
    best, worst = ranks[0], ranks[1]
    previous = np.inf
    for place in range(order.size):
        k = order[place]
        mean = means[k]
        tied = previous - mean <= tie
        previous = mean
        if not tied:
            rank = place + 1
        # Most often there is nothing to store.
        if rank < best[k]:
            best[k] = rank
        if rank > worst[k]:
            worst[k] = rank
        if tied:
            for before in range(rank - 1, place):
                other = order[before]
                ties += 1
                ties_both += groups[other] == groups[k]
                inverted -= other > k and groups[other] != groups[k]
    return ties, ties_both, inverted


@compiled
def _widen(ranks: Integers, groups: Integers) -> None:
    """The ranks of the full order, where the systems of a group share the first one's."""
    rank = 1
    for k in range(groups.size):
        if k and groups[k] != groups[k - 1]:
            rank = k + 1
        ranks[:, k] = rank


@compiled
def _tie_groups(means: Floats, tie: float) -> Integers:
    """Numbers of the runs of tied systems, whose means fall; neighbours within `tie` share a run."""
    groups = np.zeros(means.size, np.int64)
    for k in range(1, means.size):
        groups[k] = groups[k - 1] + (means[k - 1] - means[k] > tie)
    return groups


@compiled
def _tied_pairs(groups: Integers) -> int:
    tied, run = 0, 0
    for k in range(1, groups.size):
        run = run + 1 if groups[k] == groups[k - 1] else 0
        tied += run
    return tied


@compiled
def _count_kept(
    columns: Floats, full: Floats, tie: float, least_tau: float, words: Words, held: Integers
) -> None:
    """Adds to `held[n - 1]` the orders whose first n tasks keep the ranking; rows of `columns` are tasks."""
    tasks, systems = columns.shape
    groups = _tie_groups(full, tie)
    separated = systems * (systems - 1) // 2 - _tied_pairs(groups)
    # The slack makes up for the rounding of shares such as 0.9.
    allowed = int(np.floor((1 - least_tau) * separated / 2 + 1e-9))
    order, ranking = np.empty(tasks, np.int64), np.empty(systems, np.int64)
    sums, counts, means = np.empty(systems), np.empty(systems), np.empty(systems)
    for draw in range(words.shape[0]):
        order[:] = np.arange(tasks)
        sums[:] = 0.0
        counts[:] = 0.0
        for n in range(tasks):
            # Fisher and Yates; a 32-bit word times the number of places left is uneven by less than 1e-5.
            place = n + np.int64((np.uint64(words[draw, n]) * np.uint64(tasks - n)) >> np.uint64(32))
            order[n], order[place] = order[place], order[n]
            for k in range(systems):
                score = columns[order[n], k]
                present = score == score
                sums[k] += score if present else 0.0
                counts[k] += present
                means[k] = sums[k] / counts[k]
            held[n] += _is_kept(means, groups, tie, allowed, ranking)


@compiled
def _is_kept(means: Floats, groups: Integers, tie: float, allowed: int, order: Integers) -> bool:
    """Whether at most `allowed` pairs of different groups are out of order or tied; False without every mean."""
    lost = 0
    for k in range(means.size):
        if means[k] != means[k]:
            return False
        place, before = k, k
        # Sorted by falling mean, so everything before the first clear gap is clear too.
        while before > 0 and not means[order[before - 1]] - means[k] > tie:
            before -= 1
            lost += groups[order[before]] != groups[k]
            if lost > allowed:
                return False
            if means[order[before]] < means[k]:
                order[place] = order[before]
                place = before
        order[place] = k
    return True
