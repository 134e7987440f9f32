"""Which rollouts of a prompt are compared with which, and what the answers say about each of them.

Rollouts are numbers here. A comparison shows two or more of them side by side, in one order and in the reverse, so that
a judge who prefers a place prefers nobody; it counts once both were answered.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise

import msgspec
import numpy as np
from scipy.special import expit

from adjudge.scoring.contract.reasons import Reason
from adjudge.scoring.kernels.comparison.strengths import bradley_terry

__all__ = ["Comparison", "Share", "first_share", "lists", "pairs", "shares"]

PRIOR = 0.01
"""Tied comparisons added to each rollout's: enough for a finite strength, too few to move a share by 0.01."""
LEAST_ANSWERED = 0.5
"""The share of a rollout's comparisons that must be answered for it to have a value."""


class Comparison(msgspec.Struct):
    """Rollouts shown side by side, and the marks that they got in the order of `members`."""

    members: tuple[int, ...]
    forward: tuple[float, ...] | None = None
    """when shown in this order"""
    backward: tuple[float, ...] | None = None
    """when shown in the reverse order"""
    reasons: tuple[Reason, ...] = ()

    @property
    def marks(self) -> tuple[tuple[float, ...], ...]:
        """The marks of both orders; nothing unless both were answered."""
        return () if self.forward is None or self.backward is None else (self.forward, self.backward)


class Share(msgspec.Struct, frozen=True):
    """The share of the others that a rollout is expected to win against, or None and the reason."""

    value: float | None
    reason: Reason | None = None
    answered: int = 0
    """comparisons, each in both orders"""


def pairs(count: int, each: int) -> list[tuple[int, ...]]:
    """Pairs of `count` rollouts that put each of them beside at most `each` others, in one connected round."""
    if each >= count - 1:
        return [*combinations(range(count), 2)]
    found: list[tuple[int, ...]] = [
        (first, (first + apart) % count) for apart in range(1, each // 2 + 1) for first in range(count)
    ]
    if each % 2 and count % 2 == 0:  # those who sit opposite
        found += [(first, first + count // 2) for first in range(count // 2)]
    return found


def lists(count: int, each: int, most: int) -> list[tuple[int, ...]]:
    """Lists of `count` rollouts, at most `most` (3 or more) in one, that show each of them in at most `each` lists.

    The lists of one turn have even lengths; from turn to turn everybody moves on, to another place or neighbours.
    """
    runs = -(-count // most)
    found: dict[tuple[int, ...], tuple[int, ...]] = {}
    for turn in range(each):
        shift = turn * count // (each * runs)
        circle = [(place + shift) % count for place in range(count)]
        for start, end in pairwise(count * run // runs for run in range(runs + 1)):
            shown = tuple(circle[start:end])
            if len(shown) > 1:
                found.setdefault(min(shown, shown[::-1]), shown)
    return list(found.values())


def shares(comparisons: Sequence[Comparison], copies: Sequence[int], beaten: int) -> list[Share]:
    """The share of wins that each rollout's strength (Bradley and Terry) expects against all others of the group.

    There are `copies` of each, which tie with one another, and `beaten` more that everybody wins against. Comparisons
    without an answer are left out; a rollout with fewer than half of its own has no share.
    """
    count = len(copies)
    planned, answered = Counter[int](), Counter[int]()
    for one in comparisons:
        planned.update(one.members)
        answered.update(one.members if one.marks else ())
    found = bradley_terry(_wins(count, comparisons), prior=PRIOR)
    chance = expit(found.strength[:, None] - found.strength[None, :])
    met = (found.component[None, :] == found.component[:, None]) & ~np.isnan(chance)
    others = np.where(met, np.asarray(copies), 0)
    np.fill_diagonal(others, np.asarray(copies) - 1)
    np.fill_diagonal(chance, 0.5)
    total = np.where(others > 0, others * chance, 0.0).sum(axis=1) + beaten
    group = others.sum(axis=1) + beaten
    return [
        Share(float(total[one] / group[one]), None, answered[one])
        if group[one] and answered[one] >= LEAST_ANSWERED * planned[one]
        else Share(None, _reason(one, comparisons) if planned[one] else "group_missing", answered[one])
        for one in range(count)
    ]


def first_share(comparisons: Iterable[Comparison]) -> float | None:
    """The share of wins, ties as half, of what was shown first against the rest: 0.5 unless its place counts.

    None without an answered comparison.
    """
    won = [
        _won(marks[at], mark)
        for one in comparisons
        for marks, at in zip(one.marks, (0, len(one.members) - 1), strict=False)
        for place, mark in enumerate(marks)
        if place != at
    ]
    return sum(won) / len(won) if won else None


def _wins(
    count: int, comparisons: Iterable[Comparison]
) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    wins = np.zeros((count, count))
    for one in comparisons:
        for marks in one.marks:
            for (first, mine), (second, other) in combinations(zip(one.members, marks, strict=True), 2):
                won = _won(mine, other)
                wins[first, second] += won
                wins[second, first] += 1.0 - won
    return wins


def _won(mine: float, other: float) -> float:
    return 0.5 if mine == other else float(mine > other)


def _reason(rollout: int, comparisons: Iterable[Comparison]) -> Reason:
    """The most frequent reason of its comparisons without an answer, by name among equals; else the time was up."""
    counts = Counter[Reason](
        reason for one in comparisons if rollout in one.members and not one.marks for reason in one.reasons
    )
    return min(counts, key=lambda reason: (-counts[reason], reason), default="deadline")
