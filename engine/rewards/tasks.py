"""Which task a rollout is about: a known one, by its id or its prompt, or one that the rollout brings along."""

import hashlib
import logging
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from adjudge.engine.rewards.gold import own_gold
from adjudge.engine.rewards.report import prompt_in
from adjudge.engine.rewards.reward import RewardItem
from adjudge.scoring.contract.case import Task

__all__ = ["KnownTasks"]

_log = logging.getLogger(__name__)


class KnownTasks:
    """The tasks of a configuration.

    `counts` says how rollouts were matched: by `id`, `prompt`, `loosely`, with a task of their `own`, or `unknown`. A
    prompt is matched as it is, else (`loosely`, said once) without outer white space and chat template.
    """

    def __init__(self, tasks: Mapping[str, Task], protocols: Sequence[str]) -> None:
        self.counts: Counter[str] = Counter()
        self._tasks = tasks
        self._by_prompt = {task.prompt: task for task in tasks.values()}
        self._loosely = {task.prompt.strip(): task for task in tasks.values()}
        self._protocols = protocols

    def of(self, item: RewardItem) -> tuple[Task, bool]:
        """The task of `item`, and whether it is unknown: neither among the tasks nor brought along."""
        found = self._found(item)
        gold = own_gold(item.gold, item.rubrics, self._protocols) if item.has_gold else {}
        task = found or self._own(item)
        if gold or item.language is not None:
            task = msgspec.structs.replace(
                task, gold={**task.gold, **gold}, language=item.language or task.language
            )
        is_unknown = found is None and not gold and bool(self._tasks)
        if found is None:
            self.counts["unknown" if is_unknown else "own"] += 1
        return task, is_unknown

    def _found(self, item: RewardItem) -> Task | None:
        """The known task: by id where one is given, and then by nothing else."""
        if item.named is not None:
            found = self._tasks.get(item.named)
            self.counts["id"] += found is not None
            return found
        if item.asked is None:
            return None
        found = self._by_prompt.get(item.asked)
        if found is not None:
            self.counts["prompt"] += 1
            return found
        found = self._loosely.get(prompt_in(item.asked)) or self._loosely.get(item.asked.strip())
        if found is not None:
            if not self.counts["loosely"]:
                _log.warning(
                    "reward: the prompt of task %s came with white space or a chat template around it; prompts are "
                    "matched without them",
                    found.id,
                )
            self.counts["loosely"] += 1
        return found

    @staticmethod
    def _own(item: RewardItem) -> Task:
        """A task of the rollout's id and prompt alone."""
        prompt = "" if item.asked is None else prompt_in(item.asked)
        digest = hashlib.blake2b(prompt.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        return Task(id=item.named if item.named is not None else f"prompt {digest}", prompt=prompt)
