"""`Group`: the rollouts of one prompt in one call, judged against each other.

This module chooses which rollouts are compared and turns the answers into results for each. Rollouts are numbered. A
comparison shows two or more side by side, in one order and in the reverse, so that a judge's preference for a position
cancels out; it counts once both orders are answered.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any

import msgspec
import numpy as np

from adjudge.engine.config.reward import GroupConfig
from adjudge.engine.evaluation.evaluator import Evaluator
from adjudge.engine.rewards.reward import RewardError
from adjudge.engine.rewards.rollout import SECOND, UNANSWERED, Rollout, Standing
from adjudge.judges import Judgment
from adjudge.scoring.answers.preferences import COMPARING, LISTED, marks_in, preference
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.reasons import Reason
from adjudge.scoring.kernels.base.distributions import logistic_cdf
from adjudge.scoring.kernels.comparison.strengths import bradley_terry

__all__ = [
    "LARGEST",
    "Comparison",
    "Group",
    "Positions",
    "first_share",
    "groups_of",
    "lists",
    "pairs",
    "shares",
]

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
    chance = logistic_cdf(found.strength[:, None] - found.strength[None, :])
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


LARGEST = 512
"""The most rollouts of a prompt that one call may have compared."""


class Positions:
    """How often the report that was shown first won, in all groups so far; ties are half."""

    def __init__(self) -> None:
        self.comparisons = 0
        self._won = 0.0

    @property
    def first(self) -> float:
        """The share of wins; 0.5 unless the judge prefers a place, and before the first comparison."""
        return self._won / self.comparisons if self.comparisons else 0.5

    def add(self, comparisons: Sequence[Comparison]) -> None:
        """Count the answered ones."""
        share = first_share(comparisons)
        if share is not None:
            answered = sum(bool(one.marks) for one in comparisons)
            self.comparisons += answered
            self._won += share * answered


class Group:
    """Rollouts of one prompt in one call. Identical texts are judged once. Rollouts without a report are not shown.

    They lose against every report, unasked, and get the minimum.
    """

    def __init__(self, rollouts: Sequence[Rollout], evaluator: Evaluator, config: GroupConfig) -> None:
        self.task_id = rollouts[0].case.task.id
        self.comparisons: list[Comparison] = []
        self._rollouts = rollouts
        self._evaluator = evaluator
        self._config = config
        self._shown: dict[str, list[Rollout]] = {}

    async def run(self) -> None:
        """Ask every comparison, in both orders."""
        if self._config.kind == "rank" or len(self._rollouts) < 2:
            return
        # By digest: the same comparisons in any order of the batch, and none of a policy's choosing.
        for one in sorted(self._rollouts, key=lambda one: _digest(one.case.report.text)):
            if not one.has_no_report:
                self._shown.setdefault(one.case.report.text, []).append(one)
        self.comparisons = [Comparison(members) for members in self._planned()]
        await self._ask(self.comparisons, self._rollouts[0].case)

    async def again(self) -> None:
        """Compare those that the judge gave no readable answer about once more, with others that it did."""
        found = self._shares()
        known = [one for one, share in enumerate(found) if share.value is not None]
        silent = {
            one for one, share in enumerate(found) if share.value is None and share.reason in UNANSWERED
        }
        if not known or not silent:
            return
        more = [
            Comparison((one, known[(at + place) % len(known)]))
            for place, one in enumerate(sorted(silent))
            for at in range(min(self._config.comparisons, len(known)))
        ]
        kept = [one for one in self.comparisons if one.marks or silent.isdisjoint(one.members)]
        self.comparisons = kept + more
        case = self._rollouts[0].case
        await self._ask(more, msgspec.structs.replace(case, repeat=case.repeat ^ SECOND))

    def settle(self) -> None:
        """Give every rollout its standing, as far as it is known now."""
        if len(self._rollouts) < 2:
            standings = iter((Standing(None, "group_missing"),))
        elif self._config.kind == "rank":
            standings = self._ranks()
        else:
            standings = self._compared()
        for rollout, standing in zip(self._rollouts, standings, strict=True):
            rollout.standing = standing

    def _planned(self) -> list[tuple[int, ...]]:
        count, each = len(self._shown), self._config.comparisons
        # The limit leaves room for two of the longest reports; a list has as many as take no more than that.
        room = 2 * self._evaluator.report_limit // max(map(len, self._shown), default=1)
        most = 2 if self._config.kind == "pairwise" else min(room, LISTED)
        return lists(count, each, most) if most > 2 else pairs(count, each)

    async def _ask(self, comparisons: Sequence[Comparison], case: Case) -> None:
        await asyncio.gather(*(self._compare(one, case) for one in comparisons))

    async def _compare(self, one: Comparison, case: Case) -> None:
        texts = list(self._shown)
        shown = tuple(texts[place] for place in one.members)
        tools = self._evaluator.tools(case, COMPARING, self._rollouts[0].priority)
        for text in shown:
            for rollout in self._shown[text]:
                rollout.charge(tools)
        forward, backward = await tools.ask_all(
            preference(case.task.prompt, case.task.language, order) for order in (shown, shown[::-1])
        )
        one.forward, found = _marks(forward), _marks(backward)
        one.backward = None if found is None else found[::-1]
        one.reasons = tuple(each.reason for each in (forward, backward) if each.reason is not None)

    def _shares(self) -> list[Share]:
        beaten = sum(one.has_no_report and not one.is_left_out for one in self._rollouts)
        return shares(self.comparisons, [len(same) for same in self._shown.values()], beaten)

    def _compared(self) -> Iterator[Standing]:
        first = first_share(self.comparisons)
        found = dict(zip(self._shown, self._shares(), strict=True))
        is_known = any(share.value is not None for share in found.values())
        for rollout in self._rollouts:
            share = found.get(rollout.case.report.text)
            if rollout.has_no_report:
                yield Standing(0.0)
            elif share is None or share.reason == "deadline":
                yield Standing(None, rollout.late, first)
            else:
                yield Standing(share.value, share.reason, first, share.answered, is_known)

    def _ranks(self) -> Iterator[Standing]:
        """The share of the others whose absolute value is lower, ties as half."""
        values = [one.absolute() for one in self._rollouts]
        known = [found.value for found in values if found.value is not None]
        for found in values:
            if found.value is None:
                yield Standing(None, found.reason)
            elif len(known) < 2:
                yield Standing(None, "group_missing")
            else:
                below = sum(other < found.value for other in known)
                equal = sum(other == found.value for other in known) - 1
                yield Standing((below + equal / 2) / (len(known) - 1))


def groups_of(rollouts: Sequence[Rollout], evaluator: Evaluator, config: GroupConfig) -> list[Group]:
    """The groups of a call: rollouts of one task and prompt. Raises RewardError for one of more than `LARGEST`."""
    found: dict[tuple[str, ...], list[Rollout]] = {}
    for place, one in enumerate(rollouts):
        task = one.case.task
        alone = () if one.is_of_a_prompt else (str(place),)
        found.setdefault((task.id, task.prompt, *alone), []).append(one)
    for same in found.values():
        if len(same) > LARGEST:
            raise RewardError(
                f"task {same[0].case.task.id}: {len(same)} rollouts in one call; send at most {LARGEST}, which can be "
                "compared with each other, or set reward.group.kind to none"
            )
    return [Group(same, evaluator, config) for same in found.values()]


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _marks(judgment: Judgment[Any]) -> tuple[float, ...] | None:
    return None if judgment.answer is None else marks_in(judgment.answer)
