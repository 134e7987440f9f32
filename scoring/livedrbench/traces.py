"""What a research trace holds: its sources, branches and backtracks (LiveDRBench, analysis of reasoning traces).

A trace is JSON: a text, or a list of steps, each a text or anything else. Sources are its distinct URLs. For every
step, with the whole trace before it, a judge says whether it opens a new line of inquiry and whether it gives one up. A
step may do both: a dead end abandoned for a new line.
"""

import re
from typing import Annotated, Literal

import msgspec

from adjudge.fetchers.urls import MalformedURL, normalise_url
from adjudge.judges import Answer, Context, numbered
from adjudge.scoring.answers.numbered import BATCH, Numbered, batches
from adjudge.scoring.answers.parts import EVERY, Answered, measured
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Evidence, Missing, Outcome, Value
from adjudge.scoring.livedrbench.claims import rows, shown

MAX_STEPS = 2_000
_SHOWN = 500
_URL = re.compile(r"https?://[^\s<>\"'\\^`{|}]{1,2000}", re.IGNORECASE)
_TRAILING = ".,;:!?)]*_"

StepLabel = Literal["branch", "backtrack", "both", "continue"]


class StepLabels(Answer, frozen=True, kw_only=True):
    """For each numbered step, what it does to the course of the search."""

    analysis: Annotated[str, msgspec.Meta(max_length=600)] = ""
    items: dict[str, StepLabel]


class LabelSteps(Numbered[StepLabels], frozen=True, kw_only=True):
    """What each of at most 20 consecutive `steps` of a trace (context) does; `first` is the number of the first."""

    words = "what each step of a trace does"
    prompt = "livedr_trace"
    version = 2
    answer = StepLabels
    listed = "steps"

    first: int
    steps: tuple[str, ...]


class TraceCounts(msgspec.Struct, frozen=True):
    """Sources, branches and backtracks of a trace, and what was found where."""

    values: tuple[Value, Value, Value]
    evidence: list[Evidence]


def steps(trace: msgspec.Raw) -> list[str]:
    """The steps of a trace, at most 2,000: the elements of its list, or the paragraphs of its text."""
    found = rows(trace)
    texts = [shown(raw) for raw in found] if found is not None else re.split(r"\n[ \t]*\n", shown(trace))
    return [text.strip() for text in texts if text.strip()][:MAX_STEPS]


def sources(trace: list[str]) -> set[str]:
    """The distinct URLs in the steps of a trace, in their one spelling."""
    return {url for step in trace for match in _URL.findall(step) for url in _normal(match.rstrip(_TRAILING))}


async def count_trace(case: Case, trace: msgspec.Raw, tools: Tools) -> TraceCounts:
    """Counts a report's trace. Sources need no judge, and have a value even if the other two do not."""
    found = steps(trace)
    named = float(len(sources(found)))
    context = Context.of(trace="\n\n".join(found))
    starts = range(0, len(found), BATCH)
    questions = [
        LabelSteps(context=context, language=case.task.language, first=start + 1, steps=batch)
        for start, batch in zip(starts, batches([step[:_SHOWN] for step in found]), strict=True)
    ]
    judgments = await tools.ask_all(questions)
    labels: list[Answered[StepLabel | None]] = []
    evidence = []
    for question, judgment in zip(questions, judgments, strict=True):
        items = judgment.answer.items if judgment.answer is not None else {}
        missing = Missing(judgment.reason or "judge_unparseable")
        for step, key in zip(question.steps, numbered(question.count), strict=True):
            label = items.get(key)
            labels.append(Answered(label, missing if label is None else 1.0, 0.0, 1.0))
            if label not in (None, "continue"):
                said = Outcome("note", words="branch, backtrack" if label == "both" else label)
                evidence.append(Evidence(what=step[:200], outcome=said, judgment=judgment.key.hex()))
    return TraceCounts((named, _count(labels, "branch"), _count(labels, "backtrack")), evidence)


def _count(labels: list[Answered[StepLabel | None]], wanted: StepLabel) -> Value:
    """The steps with the label `wanted` or both, each of those without any being one of them or none."""
    return measured(
        labels, lambda known: sum(value for label, value in known if label in (wanted, "both", None)), EVERY
    )


def _normal(url: str) -> list[str]:
    try:
        return [normalise_url(url)]
    except MalformedURL:
        return []
