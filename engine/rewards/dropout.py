"""Rubric dropout: at each step of a training some of a task's criteria are left out, so that none is worth gaming.

The draw follows from the step, the task and the criterion alone: all rollouts of a step are judged by the same
criteria, wherever and however often they are judged.
"""

import hashlib
from functools import lru_cache

import msgspec

from adjudge.scoring.contract.case import Task
from adjudge.scoring.rubrics.criteria import Criterion
from adjudge.scoring.rubrics.figures import GOLD

__all__ = ["thinned"]


def thinned(task: Task, share: float, step: int) -> Task:
    """`task` without about a `share` of the criteria in its gold `rubrics`, drawn for `step`.

    One with positive points always stays. The others keep their ids. Gold that cannot be read is left as it is.
    """
    raw = task.gold.get(GOLD)
    kept = None if raw is None else _kept(bytes(raw), share, f"{step} {task.id}")
    return task if kept is None else msgspec.structs.replace(task, gold={**task.gold, GOLD: kept})


@lru_cache(maxsize=64)  # the rollouts of one task come one after the other
def _kept(raw: bytes, share: float, seed: str) -> msgspec.Raw | None:
    try:
        criteria = msgspec.json.decode(raw, type=tuple[Criterion, ...])
    except (msgspec.MsgspecError, RecursionError):
        return None
    named = [
        msgspec.structs.replace(one, id=one.id or f"c{number:02d}") for number, one in enumerate(criteria, 1)
    ]
    draws = [_draw(seed, number) for number in range(len(named))]
    positive = [draw for one, draw in zip(named, draws, strict=True) if one.full]
    least = min(share, max(positive, default=share))
    return msgspec.Raw(
        msgspec.json.encode([one for one, draw in zip(named, draws, strict=True) if draw >= least])
    )


def _draw(seed: str, number: int) -> float:
    """From 0 up to 1, the same for the same seed and number."""
    text = f"{number} {seed}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") / 2**64
