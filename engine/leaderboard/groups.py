"""The same leaderboard for groups of tasks, and for the mean over the groups: the tables that papers print.

A group's board is that of its tasks alone: what is missing counts as the worst it could be, coverage is that of the
group's tasks, and the number shown ranks. In the mean over groups each counts the same, however many tasks it has.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from adjudge.engine.errors import UsageError
from adjudge.engine.leaderboard.board import Group, Grouping, MetricBoard
from adjudge.engine.leaderboard.measured import Measured
from adjudge.engine.leaderboard.placement import placed, ranked_among, sign_of
from adjudge.engine.leaderboard.selection import Filled, Integers
from adjudge.engine.leaderboard.statistics import CONFIDENCE
from adjudge.engine.records.record import TaskRecord
from adjudge.scoring.kernels.resampling.bootstrap import (
    BootstrapPart,
    among,
    bootstrap_part,
    clipped,
    mean_of,
    merge,
)

__all__ = ["Drawing", "attributes_of", "grouped", "known_attribute"]

MOST_GROUPS = 30
"""The most groups of an attribute that nobody asked for."""

_DIGITS = re.compile(r"([0-9]+)")


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    """How many `resamples` are drawn from which `seed`."""

    resamples: int
    seed: int


def attributes_of(tasks: Mapping[str, TaskRecord]) -> list[str]:
    """The attributes that tell `tasks` apart, into not too many groups."""
    values = {name: {task.attribute(name) for task in tasks.values()} for name in _named(tasks)}
    return [name for name, found in values.items() if 2 <= len(found) <= MOST_GROUPS]


def known_attribute(name: str, tasks: Mapping[str, TaskRecord]) -> str:
    """`name`, if some of `tasks` have such an attribute. Raises UsageError."""
    known = _named(tasks)
    if name not in known:
        offered = f"use {' or '.join(map(repr, known))}" if known else "leave it out: these tasks have none"
        raise UsageError(f"by: unknown attribute {name!r}; {offered}")
    return name


def grouped(
    attribute: str,
    metrics: Iterable[tuple[Measured, Integers]],
    tasks: Mapping[str, TaskRecord],
    drawing: Drawing,
) -> Grouping:
    """`metrics`, each with what is `expected` of its systems, by an `attribute` of their tasks."""
    values = {name: task.attribute(attribute) for name, task in tasks.items()}
    boards: dict[str, list[MetricBoard]] = {name: [] for name in sorted({*values.values(), ""}, key=_natural)}
    mean = []
    for one, expected in metrics:
        found: list[tuple[Filled, BootstrapPart]] = []
        every = {*one.among.tasks, *one.among.without_gold}
        for number, name in enumerate(boards, 1):
            chosen = {task for task in every if values.get(task, "") == name}
            filled = one.within(chosen, expected)
            if filled is None:
                continue
            drawn = bootstrap_part(
                sign_of(one) * filled.values,
                denominators=filled.denominators,
                first=0,
                count=drawing.resamples,
                seed=drawing.seed + number,  # groups are drawn independently
            )
            part = clipped(drawn, filled.signed_clip(sign_of(one)))
            found.append((filled, part))
            boards[name].append(_board(one, filled, part, len(chosen - {*filled.tasks})))
        if len(found) > 1:
            over = _mean([filled for filled, _ in found])
            part = mean_of([part for _, part in found])
            mean.append(_board(one, over, part, len(every) - len(over.tasks)))
    groups = (Group(name=name, metrics=tuple(found)) for name, found in boards.items() if found)
    return Grouping(attribute=attribute, groups=tuple(groups), mean=tuple(mean))


def _board(one: Measured, filled: Filled, part: BootstrapPart, without_gold: int) -> MetricBoard:
    own = merge([part], level=CONFIDENCE)
    ranked = ranked_among(filled, own.estimate)
    drawn = own if ranked.all() else merge([among(part, ranked)], level=CONFIDENCE)
    return placed(one, filled, own, drawn, without_gold)


def _mean(groups: Sequence[Filled]) -> Filled:
    """The mean over `groups` of a metric; of counts, the sums."""
    denominators = [group.denominators for group in groups if group.denominators is not None]
    return Filled(
        systems=groups[0].systems,
        tasks=tuple(task for group in groups for task in group.tasks),
        values=np.hstack([group.values for group in groups]),
        low=np.mean([group.low for group in groups], axis=0),
        high=np.mean([group.high for group in groups], axis=0),
        worst=float(np.mean([group.worst for group in groups])),
        scored=np.hstack([group.scored for group in groups]),
        total=np.sum([group.total for group in groups], axis=0),
        coverage=np.mean([group.coverage for group in groups], axis=0),
        expected=groups[0].expected,
        n_total=np.sum([group.n_total for group in groups], axis=0),
        n_scored=np.sum([group.n_scored for group in groups], axis=0),
        unscored=tuple(
            dict(sum(map(Counter, counts), Counter()))
            for counts in zip(*(group.unscored for group in groups), strict=True)
        ),
        not_submitted=tuple(one for group in groups for one in group.not_submitted)[:3],
        denominators=np.hstack(denominators) if denominators else None,
    )


def _named(tasks: Mapping[str, TaskRecord]) -> list[str]:
    """The attributes of which some task has a value."""
    names = dict.fromkeys(name for task in tasks.values() for name in task.attribute_names)
    return [name for name in names if any(task.attribute(name) for task in tasks.values())]


def _natural(name: str) -> tuple[bool, list[tuple[int, str]], str]:
    """Orders names by the numbers in them: 64k, 128k, 512k; the empty name last."""
    parts = _DIGITS.split(name)
    numbers = (part.lstrip("0") for part in parts[1::2])
    parts[1::2] = numbers
    return not name, [(len(part) * (place % 2), part) for place, part in enumerate(parts)], name
