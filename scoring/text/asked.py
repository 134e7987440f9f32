"""What a report was asked: its task, and the criteria in the task's gold, whatever its protocols are.

An echo of these is the same for rewards (flags) and boards (counts).
"""

from collections.abc import Iterator

import msgspec

from adjudge.scoring.contract.case import Task
from adjudge.scoring.text.aside import storable

__all__ = ["asked_of"]

_CRITERIA = frozenset(
    {"criterion", "criteria", "criterions", "description", "explanation", "rubric", "rubrics"}
)


def asked_of(task: Task) -> tuple[str, ...]:
    """What a task asks: its prompt, and the words of the criteria in its gold."""
    found = [task.prompt]
    for name, raw in task.gold.items():
        try:
            gold = msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue
        found += _criteria(gold, name in _CRITERIA, 8)
    return tuple(map(storable, found))


def _criteria(gold: object, is_criterion: bool, depth: int) -> Iterator[str]:
    """The texts under the names of criteria, however rows are nested."""
    if isinstance(gold, str) and is_criterion:
        yield gold
    elif isinstance(gold, list) and depth:
        for one in gold:
            yield from _criteria(one, is_criterion, depth - 1)
    elif isinstance(gold, dict) and depth:
        for name, one in gold.items():
            yield from _criteria(
                one, name in _CRITERIA or (is_criterion and not isinstance(one, str)), depth - 1
            )
