"""DR3-Eval in the benchmark's own calls: recall, factual accuracy, checklist and depth, by the checkout's prompts.

Requests are the code's (`evaluators/`): system and user message, temperature 0, 16,384 tokens, JSON mode. The code
lowers the tokens for some models by their names, which is not copied. `published_replies` has its rules of reading:

- Recall in batches of 10: one detailed call; if it cannot be read, up to three compact ones; if none can, no value. An
  insight that a reply leaves out counts as not recalled.
- The checklist in batches of 5, up to three calls each. A requirement without a verdict is left out of the count;
  without a verdict on any, there is no value.
- Depth in up to three calls, the second and third in other words. The calls ask for tags in JSON mode: the code reads
  the tags in the field `text` of a JSON object, and nothing else. A score that is not a number is 0.

What a reply leaves out is a missing part of such a value: its bounds say what it could be, and the lower
one ranks.

Factual accuracy (`published_facts`) is `fa_lenient`. A judge that cannot be reached gives no value, as everywhere.
Insights and checklist are gold; the code that drafts them is not part of the public checkout. Citation coverage needs
no judge: `cc_lenient` is the code's. `average_code` is the mean of the code's five, without a value if one has none.
"""

import ast
import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from adjudge.judges import Context
from adjudge.judges.published import (
    Checkout,
    PublishedQuestion,
    UnreadableReply,
    Wording,
    Wordings,
    digests,
)
from adjudge.scoring.answers.numbered import batches
from adjudge.scoring.answers.parts import ReadReply, ask_until_read, bounded, combined
from adjudge.scoring.contract.case import Case, GoldError
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Bounds, Evidence, Metric, Missing, Outcome, Partial, Value
from adjudge.scoring.dr3_eval.dr3 import (
    DR3Protocol,
    Gold,
    information_recall,
    instruction_following,
    instruction_following_code,
)
from adjudge.scoring.dr3_eval.published_facts import fact_wordings, factual_accuracy
from adjudge.scoring.dr3_eval.published_replies import Depth, depth_in, recalled_in, satisfied_in

INSIGHTS, REQUIREMENTS = 10, 5
DEPTH_ATTEMPTS = 3
_RECALL = "evaluators/information_recall.py"
_CHECKLIST = "evaluators/format_compliance.py"
_DEPTH = "evaluators/depth_quality.py"
_PARAMETERS: dict[str, Any] = {
    "temperature": 0,
    "max_tokens": 16_384,
    "response_format": {"type": "json_object"},
}
_SHAPE = """", ".join([f'{{"id": {i+1}, "satisfied": true/false}}' for i in range(batch_size)])"""


@lru_cache(maxsize=8)
def dr3_wordings(folder: str) -> dict[str, Wording]:
    """The requests in `folder` but for those about facts; `depth.2` asks again. Raises CheckoutError."""
    checkout = Checkout(folder)
    recall = "InformationRecallEvaluator._verify_batch_insights"
    shown = {_plain("self.query or 'No specific query provided'"): "query", "len(batch)": "count"}
    checks = "FormatComplianceEvaluator._evaluate_checklist_batch"
    depth = "OverallQualityEvaluator.evaluate"
    turns = {
        "recall": (
            checkout.fstring(_RECALL, f"{recall}.prompt", shown),
            checkout.plain(_RECALL, f"{recall}.system_prompt"),
        ),
        "compact": (
            checkout.fstring(_RECALL, f"{recall}_compact.compact_prompt", shown),
            checkout.plain(_RECALL, f"{recall}_compact.compact_system"),
        ),
        "requirements": (
            checkout.fstring(_CHECKLIST, f"{checks}.prompt", {_plain(_SHAPE): "shape"}),
            checkout.passed(_CHECKLIST, checks, "system"),
        ),
    }
    expert = checkout.passed(_DEPTH, depth, "system")
    for nth in (0, 1):
        turns[f"depth.{nth + 1}"] = checkout.fstring(_DEPTH, f"{depth}.prompt", nth=nth), expert
    return {name: Wording.of(*each, **_PARAMETERS) for name, each in turns.items()}


def _plain(source: str) -> str:
    """An expression as this Python spells it."""
    return ast.unparse(ast.parse(source, mode="eval").body)


class PublishedCompactRecall(PublishedQuestion[tuple[float | None, ...]], frozen=True, kw_only=True):
    """How far does the report (`result_text`) bring out each of `count` insights?"""

    words = "insights that a report brings out, published short call"
    attempts: ClassVar[int] = 3

    insights_list: str
    count: int

    def read(self, text: str) -> tuple[float | None, ...]:
        """A score for each."""
        return recalled_in(text, self.count)

    def example(self) -> str:
        """All are recalled."""
        listed = ", ".join(f'{{"id": {n}, "score": 1.0}}' for n in range(1, self.count + 1))
        return f'{{"results": [{listed}]}}'


class PublishedRecall(PublishedCompactRecall, frozen=True, kw_only=True):
    """How far does the report bring out each of `count` insights that matter for `query`?"""

    words = "insights that a report brings out, published call"
    attempts: ClassVar[int] = 1

    query: str

    def example(self) -> str:
        """All are recalled, with a word on each."""
        said = '"core_points": ["x"], "found_in_report": "x", "missing_points": [], "reasoning": "x"'
        listed = ", ".join(f'{{"id": {n}, {said}, "score": 1.0}}' for n in range(1, self.count + 1))
        return f'{{"results": [{listed}]}}'


class PublishedRequirements(PublishedQuestion[tuple[bool | None, ...]], frozen=True, kw_only=True):
    """Which of `batch_size` requirements does the report (`result_text`) satisfy?"""

    words = "requirements that a report meets, published call"
    attempts: ClassVar[int] = 3

    checklist_list: str
    batch_size: int
    shape: str

    def read(self, text: str) -> tuple[bool | None, ...]:
        """A verdict on each."""
        return satisfied_in(text, self.batch_size)

    def example(self) -> str:
        """All are satisfied."""
        return f'{{"results": [{self.shape.replace("true/false", "true")}]}}'


class PublishedDepth(PublishedQuestion[Depth], frozen=True, kw_only=True):
    """How deep is the analysis of the report (`result_text`)?"""

    words = "depth of the analysis, published call"
    attempts: ClassVar[int] = DEPTH_ATTEMPTS

    dr_question: str

    def read(self, text: str) -> Depth:
        """The depth."""
        return depth_in(text)

    def example(self) -> str:
        """A middling score, in the form that the code reads."""
        said = "<depth_quality><score>6</score><justification>So it is.</justification></depth_quality>"
        return f'{{"text": "{said}"}}'


class PublishedDR3(DR3Protocol, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score a report's recall, checklist and depth by the calls of the benchmark at `checkout`."""

    checkout: str

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All metrics that a task may have, in the paper's order."""
        names = ("ir_uf", "ir_sc", "ir", "cc_lenient", "fa_lenient", "if", "dq", "average_code")
        return tuple(Metric(name=name, scale=100.0, headline=name == "average_code") for name in names)

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        """The metrics for which this task has gold. Raises GoldError."""
        sides, gold = _sides(case), case.gold(self.name, Gold)
        there = {"ir": sides, "cc_lenient": gold.sandbox.titles, "if": gold.checklist}
        names = {"average_code", "fa_lenient", "dq", *sides, *(name for name, one in there.items() if one)}
        return tuple(metric for metric in self.metrics if metric.name in names)

    def prompts(self) -> dict[str, str]:
        """Digests of all that may be sent, by what it is for. Raises CheckoutError."""
        facts = fact_wordings(self.checkout).parts()
        return digests("dr3", {**dr3_wordings(self.checkout), **facts})

    async def found(
        self, case: Case, gold: Gold, tools: Tools
    ) -> tuple[dict[str, Value], Iterable[Evidence]]:
        """Every metric that the task has, as the code scores, and the evidence. Raises GoldError."""
        asking = _Asking(case, dr3_wordings(self.checkout), tools)
        sides, facts = _sides(case), fact_wordings(self.checkout)
        recalls, accuracy, coverage, followed, depth = await asyncio.gather(
            asyncio.gather(*(asking.recall(insights) for insights in sides.values())),
            factual_accuracy(case, gold, facts, tools, asking.evidence),
            gold.sandbox.code_coverage(case.report),
            asking.follow(gold.checklist),
            asking.depth(),
        )
        values: dict[str, Value] = {"fa_lenient": accuracy, "dq": depth}
        if recalls:
            values["ir"] = _mean(recalls)
        if coverage is not None:
            values["cc_lenient"] = coverage
        if gold.checklist:
            values["if"] = followed
        values["average_code"] = _mean(list(values.values()))
        return values | dict(zip(sides, recalls, strict=True)), asking.evidence


def _sides(case: Case) -> dict[str, tuple[str, ...]]:
    """The gold insights by metric. Raises GoldError for a task without any gold."""
    gold = case.gold("dr3", Gold)
    found = {"ir_uf": gold.insights.user_files or (), "ir_sc": gold.insights.corpus or ()}
    sides = {name: insights for name, insights in found.items() if insights}
    if not sides and not gold.checklist:
        raise GoldError("gold_missing", f"task {case.task.id}: neither gold insights nor a checklist")
    return sides


class _Asking:
    """Asks about one report."""

    def __init__(self, case: Case, wordings: Wordings, tools: Tools) -> None:
        self._task = case.task.prompt
        self._wordings = wordings
        self._tools = tools
        self._context = Context.of(result_text=case.report.text)
        self.evidence: list[Evidence] = []

    async def recall(self, insights: Sequence[str]) -> Value:
        """The share of insights that are recalled; one that a reply leaves out is not."""
        found = await asyncio.gather(*(self._recalled(batch) for batch in batches(insights, INSIGHTS)))
        missing = next((one for one in found if isinstance(one, Missing)), None)
        if missing is not None:
            return missing
        scores = [score for one in found if not isinstance(one, Missing) for score in one]
        return _counted(scores, information_recall, information_recall(scores))

    async def _recalled(self, batch: Sequence[str]) -> Sequence[float | None] | Missing:
        listed = _listed(batch)
        full = PublishedRecall(
            context=self._context,
            wording=self._wordings["recall"],
            insights_list=listed,
            count=len(batch),
            query=self._task or "No specific query provided",
        )
        compact = PublishedCompactRecall(
            context=self._context, wording=self._wordings["compact"], insights_list=listed, count=len(batch)
        )
        missing = Missing("judge_unparseable")
        for question in (full, compact):
            reply = await ask_until_read(self._tools, question)
            if isinstance(reply, ReadReply):
                self._note("insight", batch, reply.value, reply.judgment)
                return reply.value
            missing = reply
            if missing.reason != "judge_unparseable":
                break
        return missing

    async def follow(self, checklist: Sequence[str]) -> Value:
        """The share of requirements with a verdict that are satisfied."""
        listed = batches(checklist, REQUIREMENTS)
        found = await asyncio.gather(*map(self._followed, listed))
        verdicts: list[bool | None] = []
        for batch, one in zip(listed, found, strict=True):
            if isinstance(one, Missing) and one.reason != "judge_unparseable":
                return one
            verdicts += [None] * len(batch) if isinstance(one, Missing) else one
        return _counted(verdicts, instruction_following, instruction_following_code(verdicts))

    async def _followed(self, batch: Sequence[str]) -> Sequence[bool | None] | Missing:
        shape = ", ".join(f'{{"id": {n}, "satisfied": true/false}}' for n in range(1, len(batch) + 1))
        question = PublishedRequirements(
            context=self._context,
            wording=self._wordings["requirements"],
            checklist_list=_listed(batch),
            batch_size=len(batch),
            shape=shape,
        )
        reply = await ask_until_read(self._tools, question)
        if isinstance(reply, Missing):
            return reply
        self._note("checklist", batch, reply.value, reply.judgment)
        return reply.value

    async def depth(self) -> Value:
        """The depth from 0 to 1."""
        for attempt in range(DEPTH_ATTEMPTS):
            question = PublishedDepth(
                context=self._context,
                wording=self._wordings["depth.2" if attempt else "depth.1"],
                attempt=attempt,
                dr_question=self._task,
            )
            judgment = await self._tools.ask(question)
            if judgment.answer is None:
                return Missing(judgment.reason or "judge_unparseable")
            try:
                found = question.read(judgment.answer.text)
            except UnreadableReply:
                continue
            self._note("depth", ["of 1"], [found.value if found.told else None], judgment.key.hex())
            return found.value if found.told else Partial(found.value, Bounds(0.0, 1.0, 0, 1))
        return Missing("judge_unparseable")

    def _note(self, kind: str, batch: Sequence[str], found: Sequence[float | None], judgment: str) -> None:
        for item, value in zip(batch, found, strict=True):
            outcome = (
                Outcome("missing", words="not in the reply")
                if value is None
                else Outcome.graded(float(value), 1.0, f"{float(value):g}")
            )
            reason = "judge_unparseable" if value is None else ""
            self.evidence.append(
                Evidence(what=f"{kind}: {item}", outcome=outcome, judgment=judgment, reason=reason)
            )


def _listed(items: Sequence[str]) -> str:
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))


def _counted(
    found: Sequence[float | None],
    measure: Callable[[Sequence[float | None]], float | None],
    value: float | None,
) -> Value:
    """The code's `value` over what was `found`, with its bounds where a reply left something out."""
    lost = found.count(None)
    ends = [measure([end if one is None else one for one in found]) for end in (0.0, 1.0)]
    known: float | Missing = Missing("judge_unparseable") if value is None else value
    if not lost:
        return known
    return bounded(known, [0.0 if end is None else end for end in ends], len(found) - lost, len(found))


def _mean(values: Sequence[Value]) -> Value:
    """Their mean; without a value where one has none."""
    missing = next((one for one in values if isinstance(one, Missing)), None)
    if missing is not None:
        return missing
    known = [one for one in values if not isinstance(one, Missing)]
    return combined(known, lambda each: sum(each) / len(each))
