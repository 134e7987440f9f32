"""How long a rollout may be: what the judge's window has room for beside everything else that a prompt shows."""

import tempfile
from collections.abc import Iterable
from typing import ClassVar

import msgspec

from adjudge.engine.config.run import RunConfig
from adjudge.engine.evaluation.dry_run import dry_run
from adjudge.engine.store import Place
from adjudge.scoring.answers.preferences import COMPARING, LISTED, preference
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.protocol import ScoringProtocol, Tools
from adjudge.scoring.contract.scorecard import Metric, Scorecard

__all__ = ["room_for_reports"]

TASKS = 200  # those with the longest prompts and gold
LEAST_TOKENS = 1_024  # for the rest of a prompt and its answer, where no task shows how much that is
CHARS_PER_TOKEN = 3.0  # fewer than English has
CHARS_PER_TOKEN_ZH = 1.5


async def room_for_reports(config: RunConfig, tasks: Iterable[Task], judge: str, window: int) -> int:
    """The most characters of a report that surely fit into the `window` of a judge, in tokens; 0 for none.

    That follows from its prompts about `tasks`. Raises UsageError, StoreError.
    """
    longest = sorted(tasks, key=_size, reverse=True)[:TASKS]
    shown = longest or [Task(id="room", prompt="")]
    cases = [Case(task=task, report=Report(task_id=task.id, system="room", text="x")) for task in shown]
    with tempfile.TemporaryDirectory(prefix="adjudge-room-") as empty:
        asking: list[ScoringProtocol] = [*config.reward_formula.protocols]
        if (group := config.reward_config().group).asks:
            asking.append(_Comparing(reports=LISTED if group.kind == "listwise" else 2))
        found = await dry_run(config, cases, tuple(asking), Place.of(empty))
    sizes = [max(each) for each in found.notes[judge].sizes.values()]
    taken = max([*sizes, *([] if longest and sizes else [LEAST_TOKENS])])
    per_token = CHARS_PER_TOKEN_ZH if any(task.language == "zh" for task in longest) else CHARS_PER_TOKEN
    reports = 2 if group.asks else 1  # of full length in one prompt
    return max(0, int((window - taken) * per_token / reports))


class _Comparing(msgspec.Struct, frozen=True):
    """Asks what compares so many copies of the report, for its size."""

    reports: int

    name: ClassVar[str] = COMPARING
    metrics: ClassVar[tuple[Metric, ...]] = ()

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        shown = (case.report.text,) * self.reports
        await tools.ask(preference(case.task.prompt, case.task.language, shown))
        return Scorecard.of(self.name, case, {})


def _size(task: Task) -> int:
    return len(task.prompt) + sum(len(raw) for raw in task.gold.values())
