"""HealthBench as published, and its Professional form: a JSON Lines file of examples, one per line.

Fields: prompt_id, prompt (the messages of a conversation: role, content), rubrics (criterion, points, tags), and
optionally example_tags. A task's prompt is the conversation that the response continues; of example tags
`theme:emergency` the attribute `theme` is kept, for tables by theme. Responses: `SYSTEM/PROMPT_ID.md` (or another
document), or files of our own layout.
"""

from pathlib import Path
from typing import Annotated, Any

import msgspec

from adjudge.engine.formats.dataset import Dataset
from adjudge.engine.formats.rubric_sets import criteria_gold, read_set
from adjudge.scoring.contract.case import Task

__all__ = ["read"]

_FILES = ("healthbench.jsonl", "2025-05-07-06-14-12_oss_eval.jsonl")


class Message(msgspec.Struct):
    """A message of the conversation."""

    role: str
    content: str


class Example(msgspec.Struct):
    """A line of the file."""

    prompt_id: str
    prompt: Annotated[list[Message], msgspec.Meta(min_length=1)]
    rubrics: list[dict[str, Any]]
    example_tags: list[str] = []


def read(tasks: Path, reports: list[Path]) -> Dataset:
    """The dataset of the published examples with the responses of `reports`. Raises FormatError."""
    return read_set(tasks, _FILES, Example, _task, reports)


def _task(row: Example) -> Task:
    named = (tag.partition(":") for tag in row.example_tags)
    attributes = {kind: name for kind, colon, name in named if colon}
    return Task(
        id=row.prompt_id,
        prompt=_conversation(row.prompt),
        domain=attributes.get("theme", ""),
        attributes=attributes,
        gold={"rubrics": criteria_gold(row.rubrics)},
    )


def _conversation(messages: list[Message]) -> str:
    """The words of a single message, or every message under its role."""
    if len(messages) == 1:
        return messages[0].content
    return "\n\n".join(f"{one.role}: {one.content}" for one in messages)
