"""Structured answers as they come from a report: JSON of any shape, read without trusting any of it.

A prediction is a list of slots. Anything without gold's shape does not count as a prediction; nothing is repaired.
"""

from collections.abc import Iterator
from typing import Annotated, TypeVar

import msgspec

from adjudge.judges import Answer, Context, Question
from adjudge.judges.schema import UnparseableReply
from adjudge.scoring.contract.case import NULL, Case
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Missing, first_missing

__all__ = [
    "NOTHING",
    "Fields",
    "ReadAnswer",
    "Rows",
    "Structured",
    "decoded",
    "fenced_json",
    "fields",
    "rows",
    "shown",
    "slots",
    "structured_answer",
]

T = TypeVar("T")

Fields = dict[str, msgspec.Raw]
Rows = list[msgspec.Raw]

NOTHING = msgspec.Raw(b"[]")
"""The answer of a report that gives none."""


class Structured(Answer, frozen=True, kw_only=True):
    """The answer that a report gives, as JSON text; empty if it gives none."""

    answer: Annotated[str, msgspec.Meta(max_length=8_000)]


class ReadAnswer(Question[Structured], frozen=True, kw_only=True):
    """The answer that a report (context) gives to `task`, in the JSON form that the task asks for.

    LiveDRBench's answers are JSON; systems that write prose have theirs read out of it first.
    """

    words = "the answer in a report"
    prompt = "livedr_answer"
    answer = Structured

    task: str

    def typed(self, answer: Answer) -> Structured:
        """Raises UnparseableReply if the text in the answer is not JSON: the judge's failure, not the report's."""
        found = super().typed(answer)
        if found.answer.strip() and decoded(msgspec.Raw(found.answer.encode()), object) is None:
            raise UnparseableReply("answer: not the text of a JSON value")
        return found


async def structured_answer(case: Case, tools: Tools) -> msgspec.Raw | Missing:
    """The report's structured answer: `answer`, else its last fenced JSON, else what a judge reads in its text."""
    if case.report.answer != NULL:
        return case.report.answer
    fenced = fenced_json(case.report.text)
    if fenced is not None:
        return fenced
    context = Context.of(report=case.report.text)
    question = ReadAnswer(context=context, language=case.task.language, task=case.task.prompt)
    judgment = await tools.ask(question)
    missing = first_missing([judgment])
    if missing is not None or judgment.answer is None:
        return missing or NOTHING
    return msgspec.Raw(judgment.answer.answer.encode()) if judgment.answer.answer.strip() else NOTHING


def fenced_json(text: str) -> msgspec.Raw | None:
    """The last fenced code block of `text` that is a JSON list or object, or None."""
    found = None
    for block in _fenced(text):
        raw = msgspec.Raw(block.encode("utf-8", "replace"))
        if rows(raw) is not None or fields(raw) is not None:
            found = raw
    return found


def _fenced(text: str) -> Iterator[str]:
    block: list[str] | None = None
    for line in text.splitlines():
        if not line.lstrip().startswith("```"):
            if block is not None:
                block.append(line)
        elif block is None:
            block = []
        else:
            yield "\n".join(block)
            block = None


def slots(answer: msgspec.Raw, gold: list[type]) -> list[msgspec.Raw]:
    """The slots of `answer` for gold slots that are so many lists (`list`) and objects (`dict`), in order.

    An answer to a question of one slot may come without the list around it. An answer of another shape has no slots;
    those beyond gold's are left out (the reference code's zip).
    """
    if len(gold) == 1 and gold[0] is dict and fields(answer) is not None:
        return [answer]
    found = rows(answer)
    if found is None:
        return []
    if len(gold) == 1 and gold[0] is list and any(rows(slot) is None for slot in found):
        return [answer]
    return found[: len(gold)]


def rows(raw: msgspec.Raw) -> Rows | None:
    """The elements of a JSON list, not looked into; None if it is not a list."""
    return decoded(raw, list[msgspec.Raw])


def fields(raw: msgspec.Raw) -> Fields | None:
    """The fields of a JSON object, not looked into; None if it is not an object."""
    return decoded(raw, dict[str, msgspec.Raw])


def decoded(raw: msgspec.Raw, kind: type[T]) -> T | None:
    """`raw` as a `kind`; None if it is something else, not JSON, or nested too deep to read (about 300 levels)."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        return None


def shown(raw: msgspec.Raw) -> str:
    """A JSON value as a judge reads it: a string bare, anything else as compact JSON; empty for null."""
    value: object = decoded(raw, object)
    if value is None:
        return "" if raw == NULL else bytes(raw).decode("utf-8", "replace")
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
