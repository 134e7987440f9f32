"""Insights: what a task's sources hold that its report should bring out (DR3-Eval, information recall)."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from adjudge.judges import Answer, Context, Question, numbered
from adjudge.judges.lexical import figures, names, passages, sentences, terms
from adjudge.scoring.answers.answered import Answered, ask_numbered
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Missing
from adjudge.scoring.dr3_eval.sandbox import Source

__all__ = ["InsightsOf", "Recall", "find_insights", "recall_insights"]

BATCH = 10
MAX_SOURCE_CHARS = 100_000
_MOST = 5
_PARTLY, _MOSTLY = 0.3, 0.5

Insight = Annotated[str, msgspec.Meta(max_length=300)]


class Insights(Answer, frozen=True, kw_only=True):
    """The insights of one source that matter for the task."""

    analysis: Annotated[str, msgspec.Meta(max_length=400)] = ""
    insights: Annotated[tuple[Insight, ...], msgspec.Meta(min_length=1, max_length=_MOST)]


class InsightsOf(Question[Insights], frozen=True, kw_only=True):
    """What does a source hold that a good report on the task must bring out?"""

    words = "insights of a source"
    prompt = "dr3_insights"
    answer = Insights

    task: str

    def lexical(self) -> Insights | None:
        """The sentences that share most with the task and state figures and names."""
        if self.context.media:
            return None
        wanted = set(terms(self.task))
        found = list(
            dict.fromkeys(sentence for sentence in sentences(self.context["source"]) if len(sentence) > 20)
        )
        found.sort(key=lambda s: -(len(wanted & set(terms(s))) + len(figures(s)) + 0.5 * len(names(s))))
        return Insights(insights=tuple(sentence[:300] for sentence in found[:_MOST])) if found else None


class Recalled(Answer, frozen=True, kw_only=True):
    """How far the report brings out each insight: 1 by more than half of its substance, 0.5 in part, 0 not."""

    analysis: Annotated[str, msgspec.Meta(max_length=800)] = ""
    recalled: dict[str, Annotated[float, msgspec.Meta(ge=0, le=1, multiple_of=0.5)]]


class Recall(Question[Recalled], frozen=True, kw_only=True):
    """How far does the report bring out each of up to ten insights, given the `task`?"""

    words = "insights that a report brings out"
    prompt = "dr3_recall"
    answer = Recalled

    task: str
    insights: tuple[str, ...]

    @property
    def count(self) -> int:
        """One value per insight."""
        return len(self.insights)

    def lexical(self) -> Recalled:
        """By how many of an insight's words, figures and names stand together in the report."""
        report = passages(self.context["report"])
        found = [report.support(insight) for insight in self.insights]
        values = [
            1.0
            if one.verdict == "supported" or one.overlap > _MOSTLY
            else 0.5
            if one.overlap >= _PARTLY
            else 0.0
            for one in found
        ]
        return Recalled(recalled=dict(zip(numbered(self.count), values, strict=True)))


async def find_insights(sources: Sequence[Source], case: Case, tools: Tools) -> list[str | Missing]:
    """The insights of `sources`, requested one by one; equal for every system.

    `Missing` stands for each insight that a source without an answer may have.
    """
    questions = (
        InsightsOf(
            context=source.context(MAX_SOURCE_CHARS), language=case.task.language, task=case.task.prompt
        )
        for source in sources
    )
    judgments = await tools.ask_all(questions)
    found: dict[str, None] = {}
    missing: list[Missing] = []
    for judgment in judgments:
        if judgment.answer is None:
            missing += [Missing(judgment.reason or "judge_unparseable")] * _MOST
        else:
            found |= dict.fromkeys(judgment.answer.insights)
    return [*found, *missing]


async def recall_insights(insights: Sequence[str | Missing], case: Case, tools: Tools) -> list[Answered[str]]:
    """How far the report brings out each insight: 1, 0.5 or 0, ten per question."""
    report, language = Context.of(report=case.report.text), case.task.language

    def question(batch: tuple[str, ...]) -> Recall:
        return Recall(context=report, language=language, task=case.task.prompt, insights=batch)

    known = [insight for insight in insights if isinstance(insight, str)]
    unknown = [insight for insight in insights if isinstance(insight, Missing)]
    answers = await ask_numbered(known, tools, question, _recalled, 0.0, 1.0, BATCH)
    return answers + [Answered("an insight of a source", missing, 0.0, 1.0) for missing in unknown]


def _recalled(answer: Recalled, key: str) -> float:
    return answer.recalled[key]
