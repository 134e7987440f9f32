"""What a task asks for, item by item, and which items a report satisfies (DR3-Eval, instruction following)."""

from collections.abc import Sequence
from itertools import islice
from typing import Annotated

import msgspec

from adjudge.judges import Answer, Context, Question, numbered
from adjudge.judges.lexical import coverage, sentences, terms
from adjudge.scoring.answers.answered import Answered, ask_numbered
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Missing

__all__ = ["ChecklistMet", "ChecklistOf", "check_report", "find_checklist"]

_MOST = 12
_SEEN = 0.45

Requirement = Annotated[str, msgspec.Meta(max_length=300)]


class Checklist(Answer, frozen=True, kw_only=True):
    """The requirements of a task, each to be met or not."""

    analysis: Annotated[str, msgspec.Meta(max_length=400)] = ""
    requirements: Annotated[tuple[Requirement, ...], msgspec.Meta(min_length=1, max_length=_MOST)]


class ChecklistOf(Question[Checklist], frozen=True, kw_only=True):
    """What does a task require of its report?"""

    words = "requirements of a task"
    prompt = "dr3_checklist"
    answer = Checklist

    def lexical(self) -> Checklist:
        """The task's own sentences."""
        task = self.context["task"]
        return Checklist(
            requirements=tuple(found[:300] for found in islice(sentences(task), _MOST)) or (task[:300],)
        )


class Met(Answer, frozen=True, kw_only=True):
    """Whether the report meets each requirement."""

    analysis: Annotated[str, msgspec.Meta(max_length=800)] = ""
    met: dict[str, bool]


class ChecklistMet(Question[Met], frozen=True, kw_only=True):
    """Which of the requirements does the report meet?"""

    words = "requirements that a report meets"
    prompt = "dr3_met"
    answer = Met

    requirements: tuple[str, ...]

    @property
    def count(self) -> int:
        """One verdict per requirement."""
        return len(self.requirements)

    def lexical(self) -> Met:
        """Met if the report uses the requirement's words."""
        words = set(terms(self.context["report"]))
        met = (coverage(terms(requirement), words) >= _SEEN for requirement in self.requirements)
        return Met(met=dict(zip(numbered(self.count), met, strict=True)))


async def find_checklist(case: Case, tools: Tools) -> list[str] | Missing:
    """The requirements of the task, read out of its words; equal for every system."""
    judgment = await tools.ask(
        ChecklistOf(context=Context.of(task=case.task.prompt), language=case.task.language)
    )
    if judgment.answer is None:
        return Missing(judgment.reason or "judge_unparseable")
    return list(judgment.answer.requirements)


async def check_report(
    requirements: Sequence[str] | Missing, case: Case, tools: Tools
) -> list[Answered[str]]:
    """Whether the report meets each requirement, 1 or 0, up to 20 per question."""
    if isinstance(requirements, Missing):
        return [Answered("requirements of the task", requirements, 0.0, 1.0)]
    report, language = Context.of(report=case.report.text), case.task.language

    def question(batch: tuple[str, ...]) -> ChecklistMet:
        return ChecklistMet(context=report, language=language, requirements=batch)

    return await ask_numbered(requirements, tools, question, _met, 0.0, 1.0)


def _met(answer: Met, key: str) -> float:
    return float(answer.met[key])
