"""`RewardScorer`: scores rollouts in one event loop, in batches or singly, each call within its deadline.

A rollout may be as long as the judge's window allows beside everything else that a prompt shows.
"""

import asyncio
import logging
import tempfile
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import msgspec

from adjudge.engine.config.reward import Formula
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import StoreError, UsageError
from adjudge.engine.evaluation.assembly import LEAST_WINDOW, open_evaluator
from adjudge.engine.evaluation.dry_run import dry_run
from adjudge.engine.evaluation.evaluator import Evaluator
from adjudge.engine.evaluation.gate import Gates, Patience, RewardGates, RunGates
from adjudge.engine.evaluation.memory import rare_collections
from adjudge.engine.formats.dataset import load_tasks
from adjudge.engine.rewards.audit import Audit, CanaryWatch
from adjudge.engine.rewards.dropout import thinned
from adjudge.engine.rewards.group import Group, Positions, groups_of, shares
from adjudge.engine.rewards.panel import Panel
from adjudge.engine.rewards.reward import Item, Reward, RewardError, RewardItem, as_items
from adjudge.engine.rewards.rollout import KnownTasks, Rollout
from adjudge.engine.rewards.run_log import RunLog, formula_digest
from adjudge.engine.rewards.tokens import worded
from adjudge.engine.runs.record import Judging
from adjudge.engine.store import Place
from adjudge.engine.store.upkeep import prune, tidied
from adjudge.judges.errors import JudgeError
from adjudge.scoring.answers.preferences import COMPARING, LISTED, preference
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.gold import invalid_gold
from adjudge.scoring.contract.protocol import ScoringProtocol, Tools
from adjudge.scoring.contract.scorecard import Metric, Scorecard

__all__ = ["RewardScorer", "open_replay", "open_rewards", "room_for_reports"]

_log = logging.getLogger(__name__)

TASKS = 200  # those with the longest prompts and gold
LEAST_TOKENS = 1_024  # for the rest of a prompt and its answer, where no task shows how much that is
CHARS_PER_TOKEN = 3.0  # fewer than English has
CHARS_PER_TOKEN_ZH = 1.5


async def room_for_reports(
    config: RunConfig, tasks: Iterable[Task], judge: str, window: int, formula: Formula | None = None
) -> int:
    """The most characters of a report that surely fit into the `window` of a judge, in tokens; 0 for none.

    That follows from its prompts about `tasks` for `formula`, or the configuration's. Raises UsageError, StoreError.
    """
    longest = sorted(tasks, key=_size, reverse=True)[:TASKS]
    shown = longest or [Task(id="room", prompt="")]
    cases = [Case(task=task, report=Report(task_id=task.id, system="room", text="x")) for task in shown]
    with tempfile.TemporaryDirectory(prefix="adjudge-room-") as empty:
        asking: list[ScoringProtocol] = [*(formula or config.reward_formula).protocols]
        if (group := config.reward_config().group).asks:
            asking.append(_Comparing(reports=LISTED if group.kind == "listwise" else 2))
        found = await dry_run(config, cases, tuple(asking), Place.of(empty))
    sizes = [max(each) for each in found.notes[judge].sizes.values()]
    taken = max([*sizes, *([] if longest and sizes else [LEAST_TOKENS])])
    per_token = CHARS_PER_TOKEN_ZH if any(task.language == "zh" for task in longest) else CHARS_PER_TOKEN
    reports = 2 if group.asks else 1  # of full length in one prompt
    return max(0, int((window - taken) * per_token / reports))


class _Comparing(msgspec.Struct, frozen=True):
    """Asks a comparison of several copies of the report, to measure its size."""

    reports: int

    name: ClassVar[str] = COMPARING
    metrics: ClassVar[tuple[Metric, ...]] = ()

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        shown = (case.report.text,) * self.reports
        await tools.ask(preference(case.task.prompt, case.task.language, shown))
        return Scorecard.of(self.name, case, {})


def _size(task: Task) -> int:
    return len(task.prompt) + sum(len(raw) for raw in task.gold.values())


# Outstanding questions per question that the judge can take, so that it never waits for a rollout to begin.
AHEAD = 2
# Subtracted from a priority, so that rewards reach the judge before all other questions.
BEFORE_BULK = 1_000_000
HAND_OVER_S = 0.02  # in which a call's rewards reach the thread that waits for them
KEPT_TASKS = 10_000  # tasks whose answers are remembered; counts of more tasks are kept together

Work = tuple[str, Callable[[], Coroutine[Any, Any, None]]]
"""The task that something is done for, and what begins it."""


@asynccontextmanager
async def open_rewards(config: RunConfig, patience: Patience | None = None) -> AsyncIterator["RewardScorer"]:
    """The scorer of `config`, with open stores, canaries and audit. Raises ConfigError and StoreError.

    Its judge may come later: until then, and whenever it cannot be used, rewards are judge_unavailable, and it is tried
    again in the background, as often as `patience` says.

    Judgments and pages of rollouts are kept in `rewards` inside the store; those beyond the retention time are removed
    first.
    """
    reward = config.reward_config()
    config.check_reward()
    formula, config = config.reward_formula, config.for_rewards()
    store = Place.of(config.store)
    place = store / "rewards"
    await asyncio.to_thread(prune, place, days=reward.retention_days)
    async with AsyncExitStack() as stack:
        stack.enter_context(rare_collections())
        await stack.enter_async_context(tidied(store))
        tasks = (
            await asyncio.to_thread(load_tasks, config.format, config.tasks, config.date)
            if config.tasks
            else {}
        )
        _say_invalid(config, tasks)
        scorer = await stack.enter_async_context(_open(config, formula, place, tasks, patience))
        if reward.audit is not None:
            other = msgspec.structs.replace(config, judge=config.audit_judge(), judges={})
            second = await stack.enter_async_context(
                _open(other, other.reward_formula, place, tasks, patience)
            )
            scorer.audit = await stack.enter_async_context(
                Audit.running(reward.audit, partial(second.score, alone=True))
            )
        if reward.canary is not None:
            scorer.canary = await stack.enter_async_context(
                CanaryWatch.running(reward.canary, partial(scorer.score, alone=True, whole=True))
            )
        if reward.log is not None:
            digest = await asyncio.to_thread(formula_digest, config, tasks.values(), scorer.judge)
            scorer.log = await stack.enter_async_context(RunLog.running(reward.log, scorer.judge, digest))
        yield scorer


def _say_invalid(config: RunConfig, tasks: Mapping[str, Task]) -> None:
    """Log how many tasks have gold that a protocol cannot read: no judge is asked about these."""
    for protocol in config.resolved.protocols:
        if wrong := invalid_gold(protocol, tasks.values()):
            _log.warning(
                "reward: the gold of %d of %d tasks cannot be read, and their rewards fail: %s",
                len(wrong),
                len(tasks),
                wrong[0],
            )


@asynccontextmanager
async def open_replay(config: RunConfig) -> AsyncIterator["RewardScorer"]:
    """The scorer of `config` for rollouts of the past: it waits for its judge, as a run does, and logs nothing.

    Raises ConfigError, StoreError and, while it scores, JudgeError.
    """
    config.check_reward()
    formula, config = config.reward_formula, config.for_rewards()
    tasks = await asyncio.to_thread(load_tasks, config.format, config.tasks) if config.tasks else {}

    async def fit(judge: str, window: int) -> None:
        await scorer.fit_reports(judge, window)

    gates = RunGates(config, check=fit)
    async with _evaluator(config, Place.of(config.store) / "rewards", gates) as evaluator:
        scorer = RewardScorer(config, evaluator, tasks, formula=formula)
        try:
            yield scorer
        finally:
            await scorer.close()


@asynccontextmanager
async def _open(
    config: RunConfig,
    formula: Formula,
    place: Place,
    tasks: Mapping[str, Task],
    patience: Patience | None,
) -> AsyncIterator["RewardScorer"]:
    """The scorer of `config` alone, without canaries and audit."""
    gates = RewardGates(patience)
    async with _evaluator(config, place, gates) as evaluator:
        scorer = RewardScorer(config, evaluator, tasks, gates, formula)
        if config.reward_config().group.asks:
            await asyncio.to_thread(shares, [], [1, 1], 0)  # compiled before a deadline runs
        gates.start(scorer.fit_reports)
        try:
            yield scorer
        finally:
            await scorer.close()


def _evaluator(config: RunConfig, place: Place, gates: Gates) -> AbstractAsyncContextManager[Evaluator]:
    """An evaluator that does all its work in this process, or has judge and fetchers on a cluster."""
    if not config.resolved.is_on_cluster:
        return open_evaluator(config, place, gates=gates)
    from adjudge.engine.cluster.workers import open_front

    return open_front(config, place, gates)


class RewardScorer:
    """Computes rewards by `formula`, that of `config` without one, with `evaluator` to ask and read. One event loop.

    `gates` are before the judges behind `evaluator`.
    """

    def __init__(
        self,
        config: RunConfig,
        evaluator: Evaluator,
        tasks: Mapping[str, Task],
        gates: RewardGates | None = None,
        formula: Formula | None = None,
    ) -> None:
        self.reward_config = config.reward_config()
        self.evaluator = evaluator
        self.formula = formula or config.reward_formula
        self.audit: Audit | None = None
        self.canary: CanaryWatch | None = None
        self.log: RunLog | None = None
        self._gates = gates or RewardGates()
        evaluator.report_limit = min(evaluator.report_limit, self.reward_config.length.max)
        self._config = config
        self.positions = Positions()
        self.panel = Panel()
        self.unanswered: Counter[tuple[str, str]] = Counter()
        self.tasks = KnownTasks(tasks, [protocol.name for protocol in self.formula.protocols])
        self._tasks = tasks
        self._is_unclear_said = False
        self._answered: OrderedDict[str, None] = OrderedDict()
        self._leaving: set[asyncio.Task[None]] = set()
        self._turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self._enough = {
            name: AHEAD * max(LEAST_WINDOW, seat.slots) * (seat.config.replicas or 1)
            for name, seat in config.resolved.bench.seats.items()
        }

    @property
    def judge(self) -> str:
        """The judges, in words."""
        return Judging.of(self._config.resolved.bench, self.evaluator.judges).said

    @property
    def judge_trouble(self) -> str | None:
        """Why the judge cannot be used now, in one line; rewards are judge_unavailable then. None if it can."""
        return self._gates.trouble

    async def fit_reports(self, judge: str, window: int) -> None:
        """Hold reports to what the window of a judge, in tokens, has room for. Raises JudgeError.

        A configured limit is kept: a judge whose window is too small for it is refused.
        """
        try:
            room = await room_for_reports(self._config, self._tasks.values(), judge, window, self.formula)
        except (UsageError, StoreError) as error:
            raise JudgeError(f"report_limit: cannot be derived from the judge's window: {error}") from error
        explicit = self._config.report_limit
        if explicit is not None and explicit > room:
            raise JudgeError(
                f"report_limit: {explicit:,} characters do not fit into the judge's window of {window:,} tokens; "
                f"set it to {room:,} at most, or serve the model with a longer context",
                "window_too_small",
            )
        if not room:
            name = self.evaluator.judges[judge].name
            raise JudgeError(
                f"judge {name}: its window of {window:,} tokens has no room for a report; serve the model with a "
                "longer context",
                "window_too_small",
            )
        if explicit is None and room < self.evaluator.report_limit:
            self.evaluator.report_limit = room
            _log.warning("report_limit: %s characters, by the judge's window of %s tokens", room, window)

    async def score(
        self,
        items: Iterable[Item],
        *,
        deadline: float | None = None,
        priority: int = 0,
        repeat: int = 0,
        step: int | None = None,
        alone: bool = False,
        whole: bool = False,
    ) -> list[Reward]:
        """The rewards of `items`, in their order.

        `deadline` is in seconds from now; a reward without an answer by then is None (deadline, or judge_unavailable
        if the judge cannot be used), and the call returns within 1.1 x deadline. Lower `priority` goes first, all of
        them before bulk evaluation. With another `repeat` the judge is asked the same again. A failure of the judge is
        the reward's reason. `step` is the trainer's, which weights and criteria may depend on; `alone` leaves out how
        rollouts stand beside each other, `whole` leaves out no criterion. Raises RewardError for an item that is not a
        rollout, for a missing step, and for too many rollouts of one prompt; StoreError.
        """
        seconds = self.reward_config.deadline_s if deadline is None else deadline
        until = asyncio.get_running_loop().time() + seconds
        formula = self._formula_at(step)
        if alone:
            formula = formula.alone()
        taken = await worded(as_items(items))
        rollouts = [
            Rollout(
                item,
                self._found(item, None if whole else step),
                self.evaluator,
                formula,
                self.reward_config,
                self._config.fetch,
                self._gates,
                priority - BEFORE_BULK,
                repeat,
            )
            for item in taken
        ]
        group = self.reward_config.group
        self._say_unclear(rollouts)
        groups = groups_of(rollouts, self.evaluator, group) if formula.group_weight else []
        work: list[Work] = [(one.case.task.id, one.run) for one in rollouts]
        work += [(group.task_id, group.run) for group in groups]
        await self._run(work, priority, until)
        await _settle(groups)
        await self._ask_again(rollouts, groups, priority, until)
        for one in groups:
            self.positions.add(one.comparisons)
        rewards = [rollout.reward() for rollout in rollouts]
        if not alone:
            self.panel.add([rollout.case.task.id for rollout in rollouts], rewards, formula.highest)
        if self.audit is not None:
            for item, rollout, reward in zip(taken, rollouts, rewards, strict=True):
                self.audit.offer(item, rollout.reward_alone() if groups else reward, step)
        if self.log is not None and not alone:
            self.log.keep(taken, [rollout.case for rollout in rollouts], rewards, step)
        return rewards

    def _found(self, item: RewardItem, step: int | None) -> tuple[Task, bool]:
        """The task of `item` with the criteria of `step`, and whether it is unknown."""
        task, is_unknown = self.tasks.of(item)
        share = self.reward_config.dropout
        return (thinned(task, share, step) if share and step is not None else task), is_unknown

    def _say_unclear(self, rollouts: Iterable[Rollout]) -> None:
        """Say once that the texts of rollouts do not show what in them is the report."""
        if self._is_unclear_said or not any(one.is_unclear for one in rollouts):
            return
        self._is_unclear_said = True
        _log.warning(
            "reward: the turns of some rollouts cannot be told apart (scores: unclear_turns), and thoughts or tool "
            "results may be paid; send messages, or the text with its mask, or keep special tokens; report: strict "
            "gives such rollouts no reward"
        )

    def _formula_at(self, step: int | None) -> Formula:
        scheduled = self.formula.scheduled
        if step is None and (scheduled or self.reward_config.dropout):
            what = f"the weight of {scheduled[0]} depends" if scheduled else "the criteria depend (dropout)"
            raise RewardError(f"step: missing; {what} on it, so pass the trainer's step")
        return self.formula if step is None or not scheduled else self.formula.at(step)

    async def _ask_again(
        self, rollouts: list[Rollout], groups: list[Group], priority: int, until: float
    ) -> None:
        """Ask a second time about rollouts without a readable answer, where the judge has answered about others.

        Rollouts still without one are flagged and counted: they may have provoked it.
        """
        for rollout in rollouts:
            if rollout.value().value is not None:
                self._answered[rollout.case.task.id] = None
                self._answered.move_to_end(rollout.case.task.id)
        while len(self._answered) > KEPT_TASKS:
            self._answered.popitem(last=False)
        silent = [one for one in rollouts if one.is_silent and one.case.task.id in self._answered]
        if not silent:
            return
        tasks = {one.case.task.id for one in silent}
        work = [(one.case.task.id, one.again) for one in silent]
        work += [(one.task_id, one.again) for one in groups if one.task_id in tasks]
        await self._run(work, priority, until)
        await _settle(groups)
        for rollout in silent:
            if rollout.is_silent:
                rollout.is_unanswered = True
                name = rollout.case.task.id, str(rollout.value().reason)
                self.unanswered[
                    name if name in self.unanswered or len(self.unanswered) < KEPT_TASKS else ("", name[1])
                ] += 1
                _log.warning("reward: task %s: no readable answer twice (%s), others have one", *name)

    async def _run(self, todo: list[Work], priority: int, until: float) -> None:
        """Run `todo` until all is done or the time is up; what is unfinished is cancelled in the background."""
        loop = asyncio.get_running_loop()
        work: list[asyncio.Task[None]] = []
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    # Rollouts of one task go together, and their group after them.
                    for _, begin in sorted(todo, key=lambda one: one[0]):
                        await self._begin(begin, priority - BEFORE_BULK, work)
            # A judge that is away is waited for only as long as it could still answer in time.
            needed = min(self._gates.seconds, (until - loop.time()) / 2)
            if work:
                last = until - loop.time() - needed
                await asyncio.wait(work, timeout=last, return_when=asyncio.FIRST_EXCEPTION)
            if work and needed > 0 and self._gates.trouble is None:
                await asyncio.wait(work, timeout=until - loop.time(), return_when=asyncio.FIRST_EXCEPTION)
            errors = [
                task.exception() for task in work if task.done()
            ]  # of all, or asyncio reports the others
            for error in errors:
                if error is not None:
                    raise error
        finally:
            late = [task for task in work if not task.done()]
            if late:
                leaving = asyncio.ensure_future(_give_up(late))
                self._leaving.add(leaving)
                leaving.add_done_callback(self._leaving.discard)

    async def _begin(
        self,
        begin: Callable[[], Coroutine[Any, Any, None]],
        priority: int,
        work: list["asyncio.Task[None]"],
    ) -> None:
        """Begin, and add what has begun to `work`, once the judge has room at this priority.

        Rollouts wait for a busy judge, not their questions: a rollout is cheap to hold and to give up.
        """
        turn = self._turns.setdefault(priority, asyncio.Lock())
        async with turn:
            for name, asker in self.evaluator.askers.items():
                if not self._gates.is_away:  # else what waits for the judge would keep those that need none
                    await asker.room(self._enough[name], priority)
            work.append(asyncio.ensure_future(begin()))
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Wait until the unfinished rollouts of past calls are cancelled."""
        await asyncio.gather(*self._leaving)


async def _settle(groups: Iterable[Group]) -> None:
    """Give all rollouts of `groups` their standings; large groups take a while."""
    for group in groups:
        await asyncio.to_thread(group.settle)


async def _give_up(work: list["asyncio.Task[None]"]) -> None:
    """Cancel `work` a little at a time, so that the event loop stays free for other calls.

    Before that the loop rests: while it is busy with short steps, the thread that waits for the rewards hardly runs.
    """
    await asyncio.sleep(HAND_OVER_S)
    for task in work:
        task.cancel()
        await asyncio.sleep(0)
    await asyncio.gather(*work, return_exceptions=True)
