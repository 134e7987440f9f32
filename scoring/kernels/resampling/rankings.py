"""Resampled rankings against the full one: rank distribution, Kendall's tau-b and Spearman's rho.

Rank 1 is the highest mean. Systems with equal means share the mean of the ranks they occupy (midranks).
"""

from typing import NamedTuple

import numpy as np

from adjudge.scoring.kernels.base.arrays import Floats, Integers
from adjudge.scoring.kernels.base.compiled import available_threads, compiled, in_threads

_TILE = 128  # resamples transposed at a time


class Rankings(NamedTuple):
    """`counts[S, 2S - 1]`: how many resamples gave rank 1, 1.5, ... S; `tau[B]`, `rho[B]`: NaN if undefined."""

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
    shares = np.linspace(0, resamples, (threads or available_threads()) + 1).astype(np.int64)
    counts = np.zeros((shares.size - 1, systems, max(2 * systems - 1, 0)), dtype=np.int64)

    def share(number: int) -> None:
        begin, end = shares[number], shares[number + 1]
        _rank_resamples(ranked, begin, end, group_starts, counts[number], tau, rho)

    in_threads(share, range(shares.size - 1), threads)
    in_given_order = np.empty_like(counts[0])
    in_given_order[order] = counts.sum(axis=0)
    return Rankings(in_given_order, tau, rho)


@compiled
def _insert(values: Floats, systems: Integers, floors: Integers) -> int:
    """Sorts `values` downwards, with `systems`; none passes below its floor. Returns the number of exchanges."""
    exchanges = 0
    for start in range(1, values.size):
        value, system, floor = values[start], systems[start], floors[start]
        place = start
        while place > floor and values[place - 1] < value:
            values[place] = values[place - 1]
            systems[place] = systems[place - 1]
            place -= 1
        values[place] = value
        systems[place] = system
        exchanges += start - place
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
    whole: Integers,
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
    discordant = _insert(values, systems, whole)
    tied_here, squares_here, squares_full, products = 0, 0, 0, 0
    begin = 0
    while begin < n:
        end = begin + 1
        while end < n and values[end] == values[begin]:
            end += 1
        tied_here += (end - begin) * (end - begin - 1) // 2
        for place in range(begin, end):
            system = systems[place]
            counts[system, begin + end - 1] += 1
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
    means: Floats,
    begin: int,
    end: int,
    group_starts: Integers,
    counts: Integers,
    tau: Floats,
    rho: Floats,
) -> None:
    """Ranks columns `begin` to `end` of `means[S, B]`, whose rows are in the full ranking's order."""
    n = means.shape[0]
    rows = np.empty((_TILE, n))
    undefined = np.empty(_TILE, dtype=np.bool_)
    systems = np.empty(n, dtype=np.int64)
    whole = np.zeros(n, dtype=np.int64)
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
                tau[tile + k], rho[tile + k] = _rank_one(rows[k], systems, group_starts, whole, full, counts)
