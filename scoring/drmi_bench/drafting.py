"""Statements and a plan drafted from a paper (Dr.Mi-Bench)."""

import asyncio
from collections.abc import Sequence
from itertools import cycle, islice
from typing import Annotated, Any

import msgspec

from adjudge.judges import Answer, Context, Question
from adjudge.judges.lexical import sentences
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.gold import GoldSource, joined
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Missing

__all__ = ["DraftedPlan", "DraftedStatements", "PlanOf", "StatementsOf", "draft_paper"]

FEWEST, MOST = 15, 20  # statements of a paper, as published
MOST_SUBTASKS = 12

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]


class DraftedStatement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A statement, and whether it is true of the paper."""

    text: Text
    truth: bool


class DraftedStatements(Answer, frozen=True, kw_only=True):
    """Statements about a paper's question, some of them false."""

    analysis: Annotated[str, msgspec.Meta(max_length=600)] = ""
    statements: Annotated[list[DraftedStatement], msgspec.Meta(min_length=FEWEST, max_length=MOST)]


class StatementsOf(Question[DraftedStatements], frozen=True, kw_only=True):
    """Which statements, true and false, show whether a report knows what the paper (context) found?"""

    prompt = "drmi_draft_statements"
    words = "a draft of statements from a paper"
    answer = DraftedStatements

    def lexical(self) -> DraftedStatements:
        """The paper's own sentences, all of them true: words alone do not make a plausible falsehood."""
        found = [one[:300] for one in islice(sentences(self.context["document"]), MOST)] or ["-"]
        count = max(FEWEST, len(found))
        return DraftedStatements(
            statements=[DraftedStatement(text=one, truth=True) for one in islice(cycle(found), count)]
        )


class DraftedPlan(Answer, frozen=True, kw_only=True):
    """The subtasks of the research that a paper reports."""

    analysis: Annotated[str, msgspec.Meta(max_length=400)] = ""
    subtasks: Annotated[tuple[Text, ...], msgspec.Meta(min_length=3, max_length=MOST_SUBTASKS)]


class PlanOf(Question[DraftedPlan], frozen=True, kw_only=True):
    """Into which subtasks would an expert divide the research that the paper (context) reports?"""

    prompt = "drmi_draft_plan"
    words = "a draft of a plan from a paper"
    answer = DraftedPlan

    def lexical(self) -> DraftedPlan:
        """The first lines of the paper's sections, as far as sentences show them."""
        found = [one[:300] for one in islice(sentences(self.context["document"]), 6)] or ["-"]
        return DraftedPlan(subtasks=tuple(islice(cycle(found), max(3, len(found)))))


async def draft_paper(case: Case, tools: Tools, sources: Sequence[GoldSource]) -> msgspec.Raw | Missing:
    """Gold of Dr.Mi-Bench with statements and a plan, drafted from `sources` where the task has none. GoldError."""
    gold: dict[str, Any] = {}
    if "drmi" in case.task.gold:
        gold |= case.gold("drmi", dict[str, Any])
    context, language = Context.of(task=case.task.prompt, document=joined(sources)), case.task.language

    async def statements() -> dict[str, Any] | Missing:
        if gold.get("statements"):
            return {}
        judgment = await tools.ask(StatementsOf(context=context, language=language))
        if judgment.answer is None:
            return Missing(judgment.reason or "judge_unparseable")
        return {"statements": judgment.answer.statements}

    async def plan() -> dict[str, Any] | Missing:
        if gold.get("plan"):
            return {}
        judgment = await tools.ask(PlanOf(context=context, language=language))
        if judgment.answer is None:
            return Missing(judgment.reason or "judge_unparseable")
        return {"plan": judgment.answer.subtasks}

    for made in await asyncio.gather(statements(), plan()):
        if isinstance(made, Missing):
            return made
        gold |= made
    return msgspec.Raw(msgspec.json.encode(gold))
