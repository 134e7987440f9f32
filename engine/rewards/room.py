"""How long a rollout may be: what the judge's window has room for beside everything else that a prompt shows."""

import tempfile
from collections.abc import Iterable

from adjudge.engine.config.run import RunConfig
from adjudge.engine.evaluation.dry_run import dry_run
from adjudge.engine.store import Place
from adjudge.scoring.contract.case import Case, Report, Task

__all__ = ["room_for_reports"]

TASKS = 200  # those with the longest prompts and gold
LEAST_TOKENS = 1_024  # for the rest of a prompt and its answer, where no task shows how much that is
CHARS_PER_TOKEN = 3.0  # fewer than English has
CHARS_PER_TOKEN_ZH = 1.5


async def room_for_reports(config: RunConfig, tasks: Iterable[Task], window: int) -> int:
    """The most characters of a report that surely fit into `window` tokens, by the prompts about `tasks`; 0 for none.

    Raises UsageError, StoreError.
    """
    longest = sorted(tasks, key=_size, reverse=True)[:TASKS]
    cases = [Case(task=task, report=Report(task_id=task.id, system="room", text="x")) for task in longest]
    with tempfile.TemporaryDirectory(prefix="adjudge-room-") as empty:
        found = await dry_run(config, cases, tuple(config.reward_formula.protocols), Place.of(empty))
    taken = max((max(sizes) for sizes in found.notes.sizes.values()), default=LEAST_TOKENS)
    per_token = CHARS_PER_TOKEN_ZH if any(task.language == "zh" for task in longest) else CHARS_PER_TOKEN
    return max(0, int((window - taken) * per_token))


def _size(task: Task) -> int:
    return len(task.prompt) + sum(len(raw) for raw in task.gold.values())
