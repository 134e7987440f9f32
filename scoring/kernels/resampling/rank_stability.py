"""How far a ranking hangs on single tasks.

Systems are ranked by the mean of their scores, missing ones left out (DeepResearch Bench, appendix K). Means that
differ by less than 1e-12 of the largest score's size are tied: a smaller difference is rounding. A tied pair counts in
Kendall's tau-b as a tie.
"""

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from adjudge.scoring.kernels.base.arrays import ONE, Flags, Floats, Integers, as_scores, spans
from adjudge.scoring.kernels.base.compiled import compiled, in_threads, laned

__all__ = ["LeaveOneOut", "leave_one_out"]

TIE_SHARE = 1e-12
# Tasks that are left out at once; their means of 100 systems stay in the second-level cache.
TILE = 256
# Rows a power of two apart would share few sets of the first-level cache.
PADDING = 8

Bits = NDArray[np.uint64]


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
    """1 + systems strictly better, at its best with all tasks or without one, `[S]`; 0 for an unranked system"""
    worst_rank: Integers


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
    full = means[systems] = sums / counts
    parts = spans(tasks, 10 * systems.size)
    ranks = np.zeros((len(parts), 2, systems.size), np.int64)

    def leave_out(part: int) -> None:
        start, stop = parts[part]
        out = tau[start:stop], kept[start:stop], ranks[part]
        _leave_out(values[:, start:stop], systems, sums, counts, full, tie, *out)

    in_threads(leave_out, range(len(parts)))
    best, worst = np.zeros((2, values.shape[0]), np.int64)
    best[systems], worst[systems] = ranks[:, 0].min(axis=0), ranks[:, 1].max(axis=0)
    return LeaveOneOut(systems=systems, means=means, tau=tau, kept=kept, best_rank=best, worst_rank=worst)


def _ranked(values: Floats) -> tuple[Integers, Floats, Floats, float]:
    """Systems with scores, best first, their sums and counts, and by how much means must differ."""
    sums, counts, sizes = np.zeros(len(values)), np.zeros(len(values)), np.zeros(len(values))

    def total(span: tuple[int, int]) -> None:
        rows = slice(*span)
        scores = values[rows]
        _sum_rows(scores, scores.view(np.uint64), sums[rows], counts[rows], sizes[rows].view(np.uint64))

    in_threads(total, spans(len(values), values.shape[1]))
    scored = np.flatnonzero(counts)
    order = scored[np.argsort(-sums[scored] / counts[scored], kind="stable")]
    return order, sums[order], counts[order], TIE_SHARE * float(sizes.max(initial=0.0))


@laned
def _sum_rows(values: Floats, every_bits: Bits, sums: Floats, counts: Floats, sizes: Bits) -> None:
    """Sum, number and greatest size of each row's scores; `every_bits` and `sizes` are the bits of floats."""
    for row in range(values.shape[0]):
        scores, bits = values[row], every_bits[row]
        total, count, size = 0.0, 0, np.uint64(0)
        for task in range(scores.size):
            present = scores[task] == scores[task]
            total += scores[task] if present else 0.0
            count += present
            # Without their sign, the bits of floats are ordered as the floats are.
            size = max(size, (bits[task] << ONE) * np.uint64(present))
        sums[row], counts[row], sizes[row] = total, count, size >> ONE


@compiled
def _leave_out(
    values: Floats,
    systems: Integers,
    sums: Floats,
    counts: Floats,
    full: Floats,
    tie: float,
    tau: Floats,
    kept: Flags,
    ranks: Integers,
) -> None:
    """Fills in one result for each task (column of `values`), and the best and worst ranks of the systems.

    `systems` are in the order of their full means; a tile of tasks at a time runs in vector registers.
    """
    size = systems.size
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
    """Tied pairs, those tied before too, and the inverted pairs minus tied ones; widens the ranks seen."""
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
    groups = np.empty(means.size, np.int64)
    group = 0
    for k in range(means.size):
        group += k > 0 and means[k - 1] - means[k] > tie
        groups[k] = group
    return groups


@compiled
def _tied_pairs(groups: Integers) -> int:
    tied, run = 0, 0
    for k in range(1, groups.size):
        run = run + 1 if groups[k] == groups[k - 1] else 0
        tied += run
    return tied
