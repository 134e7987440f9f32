"""Resampled rankings against the full one: rank distribution, Kendall's tau-b and Spearman's rho.

Rank 1 is the highest mean. Systems with equal means share the mean of the ranks they occupy (midranks).

To show how much a ranking depends on single tasks, systems are ranked by the mean of their scores, missing ones left
out (DeepResearch Bench, appendix K). Means that differ by less than 1e-12 of the largest score's size are tied: a
smaller difference is rounding. A tied pair counts in Kendall's tau-b as a tie.
"""

from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from adjudge.scoring.kernels.base.arrays import (
    ONE,
    Flags,
    Floats,
    Integers,
    as_scores,
    available_threads,
    compiled,
    in_threads,
    laned,
    spans,
)

FEW = 9
"""So many systems are ranked without a kernel, which takes 1.5 s to compile."""
_TILE = 128  # resamples transposed at a time
_RUN = 16  # systems sorted by insertion


class Rankings(NamedTuple):
    """`counts[S, S]`: how many resamples gave rank 1 to S, equals sharing the best of theirs (1, 1, 3).

    `tau[B]`, `rho[B]`: NaN if undefined.
    """

    counts: Integers
    tau: Floats
    rho: Floats


def descending_midranks(estimates: Floats) -> Floats:
    """The ranks of `estimates[S]`, highest first, ties sharing their mean; NaN where the estimate is NaN."""
    smallest_first = np.sort(-estimates[~np.isnan(estimates)])
    before = np.searchsorted(smallest_first, -estimates, side="left")
    through = np.searchsorted(smallest_first, -estimates, side="right")
    return np.where(np.isnan(estimates), np.nan, (before + through + 1) / 2.0)


def rankings(estimates: Floats, means: Floats, threads: int | None = None) -> Rankings:
    """Ranks `means[S, B]` within each resample and compares them with the ranking by `estimates[S]`.

    A resample in which some system has no mean (NaN) is not ranked: its tau and rho are NaN, and it is
    in no count.
    """
    systems, resamples = means.shape
    order = np.argsort(-estimates, kind="stable")
    ranked = means[order]
    sorted_estimates = estimates[order]
    group_starts = np.searchsorted(-sorted_estimates, -sorted_estimates, side="left").astype(np.int64)
    tau, rho = np.full(resamples, np.nan), np.full(resamples, np.nan)
    if systems < 2:  # nothing to rank it against
        ranked_first = np.count_nonzero(~np.isnan(means), axis=1).astype(np.int64)
        return Rankings(ranked_first.reshape(systems, systems), tau, rho)
    if systems <= FEW:
        counts_of_few = _rank_few(ranked, group_starts, tau, rho)
        return Rankings(counts_of_few[np.argsort(order)], tau, rho)
    shares = np.linspace(0, resamples, (threads or available_threads()) + 1).astype(np.int64)
    counts = np.zeros((shares.size - 1, systems, systems), dtype=np.int64)

    def share(number: int) -> None:
        begin, end = shares[number], shares[number + 1]
        _rank_resamples(ranked, begin, end, group_starts, counts[number], tau, rho)

    in_threads(share, range(shares.size - 1), threads, steps=4 * means.size // (shares.size - 1))
    in_given_order = np.empty_like(counts[0])
    in_given_order[order] = counts.sum(axis=0)
    return Rankings(in_given_order, tau, rho)


def _rank_few(means: Floats, group_starts: Integers, tau: Floats, rho: Floats) -> Integers:
    """As `_rank_resamples` for all columns, by comparing all pairs: no more work for few systems, and not compiled.

    Returns the counts; every figure is the same to the last bit.
    """
    n = len(means)
    defined = ~np.isnan(means).any(axis=0)
    drawn = means[:, defined]
    above, below = np.zeros((2, *drawn.shape), np.int8)  # 9 systems make 36 pairs
    untied, agreement = np.zeros((2, drawn.shape[1]), np.int8)
    untied_in_full = 0
    for one in range(n):
        for other in range(one + 1, n):
            ahead = (drawn[one] > drawn[other]).view(np.int8)
            behind = (drawn[one] < drawn[other]).view(np.int8)
            above[one] += behind
            below[one] += ahead
            above[other] += ahead
            below[other] += behind
            untied += ahead + behind
            if group_starts[one] != group_starts[other]:
                untied_in_full += 1
                agreement += ahead - behind
    centred = above - below
    full = 2 * group_starts + np.bincount(group_starts, minlength=n)[group_starts] - n
    pairs = untied * float(untied_in_full)
    squares = np.square(centred, dtype=np.int16).sum(axis=0) * float((full * full).sum())
    for found, said, scale in ((tau, agreement, pairs), (rho, full @ centred, squares)):
        found[defined] = np.divide(said, np.sqrt(scale), out=np.full(len(scale), np.nan), where=scale > 0)
    return np.stack([np.bincount(row, minlength=n) for row in above])


@compiled
def _sink(values: Floats, systems: Integers, start: int, floor: int) -> int:
    """Moves the value at `start`, with its system, before all lesser ones from `floor` on; over how many it went."""
    value, system = values[start], systems[start]
    place = start
    while place > floor and values[place - 1] < value:
        values[place] = values[place - 1]
        systems[place] = systems[place - 1]
        place -= 1
    values[place] = value
    systems[place] = system
    return start - place


@compiled
def _insert(values: Floats, systems: Integers, floors: Integers) -> int:
    """Sorts `values` downwards, with `systems`; none passes below its floor. Returns the number of exchanges."""
    exchanges = 0
    for start in range(1, values.size):
        exchanges += _sink(values, systems, start, floors[start])
    return exchanges


@compiled
def _sort(values: Floats, systems: Integers, left_values: Floats, left_systems: Integers) -> int:
    """As `_insert` with floors of 0, in n log n steps: runs of `_RUN` are sorted so and merged. Two are scratch."""
    n = values.size
    exchanges = 0
    for begin in range(0, n, _RUN):
        for start in range(begin + 1, min(begin + _RUN, n)):
            exchanges += _sink(values, systems, start, begin)
    width = _RUN
    while width < n:
        for begin in range(0, n - width, 2 * width):
            middle, end = begin + width, min(begin + 2 * width, n)
            if values[middle - 1] >= values[middle]:
                continue
            for k in range(width):
                left_values[k] = values[begin + k]
                left_systems[k] = systems[begin + k]
            left, right, place = 0, middle, begin
            while left < width:
                if right < end and values[right] > left_values[left]:
                    values[place] = values[right]
                    systems[place] = systems[right]
                    exchanges += width - left
                    right += 1
                else:
                    values[place] = left_values[left]
                    systems[place] = left_systems[left]
                    left += 1
                place += 1
        width *= 2
    return exchanges


@compiled
def _tied_pairs(values: Floats, floors: Integers) -> int:
    """Pairs of equal neighbours' runs in sorted `values`; a run ends where the floor changes."""
    pairs = 0
    run = 0
    for place in range(1, values.size):
        same = values[place] == values[place - 1] and floors[place] == floors[place - 1]
        run = run + 1 if same else 0
        pairs += run
    return pairs


@compiled
def _rank_one(
    values: Floats,
    systems: Integers,
    group_starts: Integers,
    spare: Floats,
    spare_systems: Integers,
    full: Integers,
    counts: Integers,
) -> tuple[float, float]:
    """Tau-b and rho of one resample; `values` come in the full ranking's order. Adds its ranks to `counts`.

    Knight's method: within a group tied in the full ranking, sorting is not a disagreement; afterwards each
    exchange is one discordant pair. `full` has twice the full midranks minus (S + 1).
    """
    n = values.size
    tied_in_full = 0
    for place in range(n):
        systems[place] = place
        tied_in_full += place - group_starts[place]
    tied_in_both = 0
    if tied_in_full > 0:
        _insert(values, systems, group_starts)
        tied_in_both = _tied_pairs(values, group_starts)
    discordant = _sort(values, systems, spare, spare_systems)
    tied_here, squares_here, squares_full, products = 0, 0, 0, 0
    begin = 0
    while begin < n:
        end = begin + 1
        while end < n and values[end] == values[begin]:
            end += 1
        tied_here += (end - begin) * (end - begin - 1) // 2
        for place in range(begin, end):
            system = systems[place]
            counts[system, begin] += 1
            centred = begin + end - n
            squares_here += centred * centred
            squares_full += full[system] * full[system]
            products += centred * full[system]
        begin = end
    pairs = n * (n - 1) // 2
    agreement = pairs - tied_here - tied_in_full + tied_in_both - 2 * discordant
    untied = float(pairs - tied_here) * float(pairs - tied_in_full)
    tau = agreement / np.sqrt(untied) if untied > 0 else np.nan
    squares = float(squares_here) * float(squares_full)
    rho = products / np.sqrt(squares) if squares > 0 else np.nan
    return tau, rho


@compiled
def _rank_resamples(
    means: Floats, begin: int, end: int, group_starts: Integers, counts: Integers, tau: Floats, rho: Floats
) -> None:
    """Ranks columns `begin` to `end` of `means[S, B]`, whose rows are in the full ranking's order."""
    n = means.shape[0]
    rows = np.empty((_TILE, n))
    undefined = np.empty(_TILE, dtype=np.bool_)
    systems = np.empty(n, dtype=np.int64)
    spare, spare_systems = np.empty(n), np.empty(n, dtype=np.int64)
    full = np.empty(n, dtype=np.int64)
    size = np.zeros(n, dtype=np.int64)
    for place in range(n):
        size[group_starts[place]] += 1
    for place in range(n):
        full[place] = 2 * group_starts[place] + size[group_starts[place]] - n
    for tile in range(begin, end, _TILE):
        width = min(_TILE, end - tile)
        undefined[:] = False
        for place in range(n):
            for k in range(width):
                rows[k, place] = means[place, tile + k]
                undefined[k] |= np.isnan(means[place, tile + k])
        for k in range(width):
            if not undefined[k]:
                tau[tile + k], rho[tile + k] = _rank_one(
                    rows[k], systems, group_starts, spare, spare_systems, full, counts
                )


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
    """the worst one likewise, `[S]`"""
    moved: Integers
    """tasks whose absence gives the system another rank, `[S]`"""


def leave_one_out(scores: ArrayLike) -> LeaveOneOut:
    """The ranking of systems without each task in turn.

    Without a task, the mean of a system that has no other score is its full mean.

    scores: `[S, T]`, NaN for missing.
    Raises KernelError for scores of another shape, or an infinite one.
    """
    values = as_scores(scores, 2)
    systems, sums, counts, tie = _ranked(values)
    tasks = values.shape[1]
    tau, kept = np.empty(tasks), np.empty(tasks, np.bool_)
    means = np.full(values.shape[0], np.nan)
    full = means[systems] = sums / counts
    parts = spans(tasks, 10 * systems.size) or [(0, 0)]
    ranks = np.zeros((len(parts), 3, systems.size), np.int64)

    def leave_out(part: int) -> None:
        start, stop = parts[part]
        out = tau[start:stop], kept[start:stop], ranks[part]
        _leave_out(values[:, start:stop], systems, sums, counts, full, tie, *out)

    in_threads(leave_out, range(len(parts)), steps=10 * values.size // len(parts), sparing=True)
    best, worst, moved = np.zeros((3, values.shape[0]), np.int64)
    best[systems], worst[systems] = ranks[:, 0].min(axis=0), ranks[:, 1].max(axis=0)
    moved[systems] = ranks[:, 2].sum(axis=0)
    return LeaveOneOut(
        systems=systems, means=means, tau=tau, kept=kept, best_rank=best, worst_rank=worst, moved=moved
    )


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
    """Fills in one result for each task (column of `values`), and in `ranks` best, worst and moved of the systems.

    `systems` are in the order of their full means; a tile of tasks at a time runs in vector registers.
    """
    size = systems.size
    groups = _tie_groups(full, tie)
    ties_full = _left_out_tied_pairs(groups)
    own = _own_ranks(groups)
    for k in range(size):  # the assignment of an array takes 2 s to compile, for the message of a wrong shape
        ranks[0, k] = ranks[1, k] = own[k]
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
            ties, ties_both, discordant = _tied_runs(means, groups, order, tie, discordant, own, ranks)
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
    means: Floats,
    groups: Integers,
    order: Integers,
    tie: float,
    inverted: int,
    own: Integers,
    ranks: Integers,
) -> tuple[int, int, int]:
    """Tied pairs, those tied before too, and the inverted pairs minus tied ones; widens the ranks seen.

    Counts who is off its `own` rank of the full order.
    """
    ties, ties_both, rank = 0, 0, 0
    best, worst, moved = ranks[0], ranks[1], ranks[2]
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
        moved[k] += rank != own[k]
        if tied:
            for before in range(rank - 1, place):
                other = order[before]
                ties += 1
                ties_both += groups[other] == groups[k]
                inverted -= other > k and groups[other] != groups[k]
    return ties, ties_both, inverted


@compiled
def _own_ranks(groups: Integers) -> Integers:
    """The ranks of the full order, where the systems of a group share the first one's."""
    ranks = np.empty(groups.size, np.int64)
    rank = 1
    for k in range(groups.size):
        if k and groups[k] != groups[k - 1]:
            rank = k + 1
        ranks[k] = rank
    return ranks


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
def _left_out_tied_pairs(groups: Integers) -> int:
    tied, run = 0, 0
    for k in range(1, groups.size):
        run = run + 1 if groups[k] == groups[k - 1] else 0
        tied += run
    return tied
