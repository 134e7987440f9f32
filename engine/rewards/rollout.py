"""A rollout on its way to its reward: its task and case, its scorecards and flags so far, and what the call wants.

Its task is a known one, found by id or prompt, or one that the rollout brings along.
"""

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from adjudge.engine.config.fetch import FetchConfig
from adjudge.engine.config.reward import Formula, RewardConfig, Value
from adjudge.engine.evaluation.evaluator import CaseTools, Evaluator, usage_of
from adjudge.engine.evaluation.gate import RewardGates
from adjudge.engine.formats.messages import GivenPage
from adjudge.engine.rewards.flags import ALWAYS, UNCLEAR, Said, flags_of
from adjudge.engine.rewards.report import Written, prompt_in, report_in
from adjudge.engine.rewards.reward import Part, Reward, RewardItem, own_gold, pages_of
from adjudge.engine.telemetry.metrics import note
from adjudge.fetchers.page import Page, address_of
from adjudge.fetchers.urls import NormalURL
from adjudge.scoring.contract.case import NULL, Case, Report, Task, Unread
from adjudge.scoring.contract.protocol import MAX_REPORT_CHARS, ScoringProtocol, minimum, own_doing
from adjudge.scoring.contract.reasons import Reason
from adjudge.scoring.contract.scorecard import Scorecard
from adjudge.scoring.text.aside import aside, storable
from adjudge.scoring.text.asked import asked_of
from adjudge.scoring.text.seen import seen

__all__ = ["SECOND", "UNANSWERED", "KnownTasks", "Rollout", "Standing"]

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
        """The task of `item`, and whether it is unknown: neither among the tasks nor brought along.

        An unknown id says nothing of its task; an unknown prompt is a task by itself, where no gold is needed.
        """
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


SYSTEM = "policy"
UNANSWERED = frozenset({"judge_refused", "judge_unparseable", "answer_truncated", "context_overflow"})
"""Why a judge that answers others gives no answer about one report: the report may have provoked it."""
SECOND = 1 << 30  # of a repeat: its question is asked once more


def case_of(item: RewardItem, task: Task, written: Written, repeat: int) -> Case:
    """The case to judge: the report that `item` has `written`, as a reader sees it, under `task`."""
    messages = [] if item.messages is None else [f"{one.speaker}: {one.text}" for one in item.messages]
    trace = item.trace if item.trace is not None else messages or None
    report = Report(
        task_id=task.id,
        system=SYSTEM,
        sample=item.sample,
        text=seen(written.text).text if len(written.text) <= MAX_REPORT_CHARS else written.text,
        citations=item.citations,
        answer=_raw(item.answer),
        trace=_raw(trace),
        truncated=item.truncated or not written.is_whole,
    )
    return Case(task=task, report=report, repeat=repeat)


def page_of(given: GivenPage) -> tuple[NormalURL, Page] | None:
    """A page that a rollout has read, by its address; None for an address that no citation can lead to."""
    address = address_of(given.url)
    if isinstance(address, Page):
        return None
    page = Page(
        url=address,
        final_url=address,
        status="read",
        reason=None,
        fetched_at=0.0,
        content_type="text/plain",
        sha256="",
        title=given.title,
        description="",
        text=given.text,
    )
    return address, page


def _pages(item: RewardItem, fetch: FetchConfig) -> dict[NormalURL, Page] | None:
    """The pages that the rollout brings, which then are all there are; None where others may be read.

    Where none are read, a conversation that brings none has called no tool that returns any: that is its choice.
    """
    given = pages_of(item)
    if given is None and fetch.mode == "off" and (fetch.closed or item.messages is not None):
        given = ()
    return None if given is None else dict(found for found in map(page_of, given) if found is not None)


def _raw(value: object) -> msgspec.Raw:
    return NULL if value is None else msgspec.Raw(msgspec.json.encode(value))


class Standing(msgspec.Struct, frozen=True):
    """A rollout among the others of its prompt: the share of them that it beats, or the reason there is none."""

    value: float | None
    reason: Reason | None = None
    first: float | None = None
    """the share of the group's comparisons that the report shown first won"""
    answered: int | None = None
    """comparisons, each in both orders"""
    is_suspect: bool = False
    """whether others of the group have a value, so that a missing one may be this rollout's own fault"""


class Rollout:
    """A rollout in one call of a scorer; lower `priority` goes first. A `Group` gives it its `standing`."""

    def __init__(
        self,
        item: RewardItem,
        found: tuple[Task, bool],
        evaluator: Evaluator,
        formula: Formula,
        config: RewardConfig,
        fetch: FetchConfig,
        gates: RewardGates,
        priority: int,
        repeat: int,
    ) -> None:
        task, self._is_unknown = found
        written = report_in(item.said, config.report_rules, item.mask)
        self.case = case_of(item, task, written, repeat)
        self.is_unclear = not written.is_clear
        most = 2 * len(written.text) + 1  # a page that is longer says other things, too
        pages = tuple(page.text[:most] for page in pages_of(item) or ())
        self._said = Said(storable(written.text), item.citations, asked_of(task), pages)
        self.priority = priority
        self.is_unanswered = False
        self.standing: Standing | None = None
        self.is_of_a_prompt = item.named is not None or item.asked is not None
        self._is_nameless = self._is_unknown and item.asked is None
        self._evaluator = evaluator
        self._formula = formula
        self._config = config
        self._gates = gates
        self._pages = _pages(item, fetch)
        # Whatever the text: a report without citations must not have a value where one with citations has none.
        self._lacks_pages = self._pages is None and fetch.mode == "off" and formula.reads_pages
        self._all: list[CaseTools] = []
        self._tools = self._new_tools(self.case)
        self._cards: dict[str, Scorecard] = {}
        self._flags: dict[str, float] | None = None
        self._failure: Reason | None = None

    async def run(self) -> None:
        """Score the case under every protocol, and look for flags."""
        if self.is_left_out or self._is_nameless:
            self._failure = "truncated" if self.is_left_out else "task_unknown"
            return
        if self._lacks_pages:
            self._failure = "pages_off"
            return
        if self.is_unclear and self._config.report_rules.strict:
            self._failure = "report_unclear"
            return
        await asyncio.gather(self._judge(self.case), self._flag())

    async def again(self) -> None:
        """Ask once more what had no answer the first time; what was scored then stays."""
        case = msgspec.structs.replace(self.case, repeat=self.case.repeat ^ SECOND)
        self._tools = self._new_tools(case)
        await self._judge(case)

    async def _judge(self, case: Case) -> None:
        evaluator = self._evaluator
        scored = {name for name, card in self._cards.items() if card.status == "scored"}
        protocols = [one for one in self._formula.protocols if one.name not in scored]
        limit = 0
        while limit != evaluator.report_limit:  # which the judge's first probe may lower meanwhile
            limit = evaluator.report_limit
            await asyncio.gather(*(self._score(case, protocol) for protocol in protocols))

    async def _flag(self) -> None:
        limits, wanted = self._config.length, {*ALWAYS, *self._formula.flags}
        if len(self._said.text) > limits.max:
            self._flags = flags_of(self._said, limits, wanted)
            return
        try:
            self._flags = await aside(flags_of, self._said, limits, wanted)
        except Unread as error:
            self._failure = error.reason

    async def _score(self, case: Case, protocol: ScoringProtocol) -> None:
        """Score under one protocol."""
        tools, wanted = self._tools[protocol.name], True
        while wanted:
            card = self._cards[protocol.name] = await self._evaluator.score(case, protocol, tools)
            wanted = await tools.come_back()
        note(card, self._evaluator.metrics)

    def _new_tools(self, case: Case) -> dict[str, CaseTools]:
        made = {
            protocol.name: self._evaluator.tools(case, protocol.name, self.priority, self._pages)
            for protocol in self._formula.protocols
        }
        self._all += made.values()
        return made

    @property
    def has_no_report(self) -> bool:
        """Whether it gets the minimum, or no reward, without being judged."""
        return own_doing(self.case.report, self._evaluator.report_limit) is not None

    @property
    def is_left_out(self) -> bool:
        """Whether it has no reward because it was cut off."""
        return self.case.report.truncated and self._config.on_truncated == "none"

    @property
    def late(self) -> Reason:
        """Why there is no answer in time."""
        is_away = self._gates.trouble is not None or any(
            one.reasons["judge_unavailable"] for one in self._all
        )
        return "judge_unavailable" if is_away else "deadline"

    @property
    def is_silent(self) -> bool:
        """Whether the judge gave no readable answer about it, which may be its own doing."""
        found = self.value()
        if found.value is not None or found.reason not in UNANSWERED:
            return False
        return self.absolute().value is None or (self.standing is not None and self.standing.is_suspect)

    def charge(self, tools: CaseTools) -> None:
        """Count what is asked through `tools` as asked for it."""
        self._all.append(tools)

    def absolute(self) -> Value:
        """The value by metrics and penalties alone, or the reason there is none."""
        return self._value(None)

    def value(self) -> Value:
        """The reward's value, or the reason there is none."""
        standing = self.standing or Standing(None, self.late)
        found = self._value(Value(standing.value, standing.reason))
        if found.value is None and self.is_unanswered and self._config.on_unanswered == "minimum":
            worst = {one.name: minimum(one, self.case, "truncated") for one in self._formula.protocols}
            return msgspec.structs.replace(self._formula.value(worst, {}, Value(0.0)), reason=found.reason)
        return found

    def _value(self, group: Value | None) -> Value:
        if self._failure is not None:
            return Value(None, self._failure)
        if self._flags is None or not self._formula.needed <= self._cards.keys():
            return Value(None, self.late)
        found = self._formula.value(self._cards, self._flags, group)
        is_unknown = found.value is None and found.reason == "gold_missing" and self._is_unknown
        return Value(None, "task_unknown") if is_unknown else found

    def reward(self) -> Reward:
        """The reward as far as it is known now."""
        return self._reward(self.value())

    def reward_alone(self) -> Reward:
        """The reward without its part by comparison with others."""
        return self._reward(self.absolute())

    def _reward(self, found: Value) -> Reward:
        return Reward(
            value=found.value,
            status="unscored" if found.value is None else "scored",
            reason=found.reason,
            scores=self._scores(),
            parts=tuple(_parts(self._cards)),
            n_asked=sum(each.asked for each in self._all),
            n_answered=sum(each.answered for each in self._all),
            usage=usage_of(self._all),
        )

    def _scores(self) -> dict[str, float | None]:
        """The same keys for every rollout of a task, whatever failed."""
        flags = dict.fromkeys(sorted({*ALWAYS, *self._formula.flags}), None)
        return {
            **self._formula.scores(self._cards),
            **flags,
            **(self._flags or {}),
            UNCLEAR: float(self.is_unclear),
            "unanswered": float(self.is_unanswered),
            **self._group_scores(),
        }

    def _group_scores(self) -> dict[str, float | None]:
        if self._config.group.kind == "none":
            return {}
        found = self.standing or Standing(None)
        return {"group": found.value, "group_first": found.first, "group_comparisons": found.answered}


def _parts(cards: Mapping[str, Scorecard]) -> list[Part]:
    parts = []
    for protocol, card in sorted(cards.items()):
        judged = [line for line in card.evidence if line.judgment or line.value is not None]
        for number, line in enumerate(judged, 1):
            name = line.id or f"c{number:02d}"
            parts.append(Part(protocol=protocol, id=name, value=line.value, reason=line.reason))
    return parts
