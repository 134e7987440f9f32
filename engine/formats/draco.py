"""DRACO as published: `test.jsonl`, or its folder, one task per line: id, domain, problem, answer.

`answer` is JSON text: sections, each with an id and its criteria (id, requirement, weight). A criterion's section is
its tag. Reports: `SYSTEM/ID.md` (or another document), or files of our own layout.
"""

from pathlib import Path

import msgspec

from adjudge.engine.formats.dataset import Dataset, Key
from adjudge.engine.formats.rubric_sets import criteria_gold, read_set
from adjudge.scoring.contract.case import Task

__all__ = ["read"]


class Problem(msgspec.Struct):
    """A line of test.jsonl."""

    id: Key
    problem: str
    answer: str
    domain: str = ""


class Requirement(msgspec.Struct):
    """A criterion; a negative weight is for a fault."""

    requirement: str
    weight: float
    id: Key = ""


class Section(msgspec.Struct):
    """The criteria of one section."""

    id: str
    criteria: list[Requirement]


class Answer(msgspec.Struct):
    """What `answer` holds as JSON text."""

    sections: list[Section]


def read(tasks: Path, reports: list[Path]) -> Dataset:
    """The dataset of the published tasks with `reports`. Raises FormatError."""
    return read_set(tasks, ("test.jsonl",), Problem, _task, reports)


def _task(row: Problem) -> Task:
    answer = msgspec.json.decode(row.answer, type=Answer)
    rubrics = [
        {"requirement": one.requirement, "weight": one.weight, "id": str(one.id), "tags": [section.id]}
        for section in answer.sections
        for one in section.criteria
    ]
    return Task(
        id=str(row.id), prompt=row.problem, domain=row.domain, gold={"rubrics": criteria_gold(rubrics)}
    )
