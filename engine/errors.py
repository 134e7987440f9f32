"""What goes wrong, and who has to act.

    UsageError              what the user gave cannot be used: exit code 2
        ConfigError         a configuration (`config/settings.py`)
            FormulaError    what a reward is computed from (`config/formula.py`)
        FormatError         files of tasks or reports (`formats/rejected.py`)
    PromptError             the prompt of a package's own question (`prompts/`): exit code 2
    JudgeError              the judge cannot be used (`judges/errors.py`): exit code 1
    LimitReached            a run has spent what it may spend: exit code 1
    StoreError              the store cannot be read or written: exit code 1
    PoolError               the processes that read pages cannot work (`fetchers/process.py`): exit code 1
    ClusterError            the cluster cannot run its workers: exit code 1
    RewardError             an item is not a rollout, or its caller wants failures raised (`rewards/reward.py`)

One report's failure is never an exception: it is a row with a reason (`scoring/contract/reasons.py`).
"""

import difflib
import re
from collections.abc import Iterable

__all__ = [
    "ClusterError",
    "LimitReached",
    "StoreError",
    "UsageError",
    "nearest",
    "unloadable",
    "unread",
    "unwritable",
]

_NEAREST = 3
_LISTED = 12  # names; a shorter list is offered whole where none is near
_COMPARED = 200  # characters of a name: comparing two takes time that grows with their product


class UsageError(ValueError):
    """What the user gave cannot be used: the key or place, the problem, and what to do, in one line."""


class LimitReached(RuntimeError):
    """A run has asked or spent as much as its configuration allows: the key and the amount, in one line."""


class StoreError(OSError):
    """A store cannot be reached, read or written; the message names its place."""


class ClusterError(RuntimeError):
    """The cluster cannot run its workers at all."""


def nearest(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """What to do about an unknown `name`, in words: use one of those `known` that are most like it, else `otherwise`.

    Like it are names that differ little, those whose words are among its own, `url` for `base_url`, and without any,
    those that have all of its own: `task_id` for `id`.
    """
    every = [one for one in dict.fromkeys(known) if one]
    if not every:
        return "leave it out"
    folded = {one.casefold()[:_COMPARED]: one for one in every}
    said = name.casefold()[:_COMPARED]
    if said in folded:
        return f"use {folded[said]!r}"
    near = [folded[one] for one in difflib.get_close_matches(said, folded, n=_NEAREST)]
    within = [one for key, one in folded.items() if _words(key) < _words(said)]
    around = [one for key, one in folded.items() if set() < _words(said) < _words(key)]
    near.sort(key=lambda one: one not in around)  # `task_id` before `mask` for `task`
    offered = list(dict.fromkeys([*within, *near] or around))[:_NEAREST]
    if not offered and len(every) > _LISTED:
        some = ", ".join(map(repr, every[:_NEAREST]))
        said = f"there are {len(every):,} others, none like it: {some} and so on"
        return f"{said}; {otherwise}" if otherwise else said
    return f"use {' or '.join(map(repr, offered or every))}"


def _words(name: str) -> frozenset[str]:
    return frozenset(re.split(r"[^a-z0-9]+", name)) - {""}


def unwritable(error: Exception, out: object) -> str:
    """What to say of the file or folder `out` that raised `error` when it was written, or of the one in its way."""
    if isinstance(error, FileExistsError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    said = error.strerror if isinstance(error, OSError) and error.strerror else " ".join(str(error).split())
    return f"{out} cannot be written: {said}"


def unread(error: Exception) -> str:
    """Why a file, which is named already, cannot be read."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def unloadable(key: str, name: str, error: Exception) -> str:
    """What to say of an installed package: its entry `name`, which `key` chose, raised `error` when imported."""
    said = " ".join(str(error).split())
    return f"{key}: {name}: its package cannot be loaded ({type(error).__name__}: {said}); repair or uninstall it"
