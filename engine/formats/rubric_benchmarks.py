"""Rubric benchmarks as published: DRACO, DeepResearch Bench II, HealthBench and ResearchRubrics.

Tasks are a JSON Lines file, or its folder, one task per line. Reports are in our own layout (`engine/formats/own.py`);
documents may also be named `SYSTEM/idx-ID.md`.

DRACO, `test.jsonl`: id, domain, problem, answer. `answer` is JSON text: sections, each with an id and its criteria (id,
requirement, weight). A criterion's section is its tag.

DeepResearch Bench II, `tasks_and_rubrics.jsonl`: idx, language, theme, prompt, content (rubric: the items of
info_recall, analysis and presentation; blocked: title, authors and urls of the source that a report must not rest on),
and optionally id and description. A report's `task_id` is idx.

HealthBench and its Professional form: prompt_id, prompt (the messages of a conversation: role, content), rubrics
(criterion, points, tags), and optionally example_tags. A task's prompt is the conversation that the response continues.
Of an example tag such as `theme:emergency` the attribute `theme` is kept, for tables by theme.

ResearchRubrics, `processed_data.jsonl`: sample_id, prompt, domain, rubrics (criterion, weight from -5 to 5, axis). A
criterion's axis is its tag.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from adjudge.engine.formats import own
from adjudge.engine.formats.dataset import UNREADABLE, Dataset, FormatError, InputFile, Key, Prompts, rows
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.formats.rubric_rows import as_criteria
from adjudge.scoring.contract.case import Task
from adjudge.scoring.rubrics.criteria import Criterion
from adjudge.scoring.rubrics.drb2 import Gold

R = TypeVar("R")


def read_set(
    tasks: Path, names: Sequence[str], kind: type[R], task: Callable[[R], Task], reports: Sequence[InputFile]
) -> Dataset:
    """The dataset of the file `tasks`, or of the first of `names` in that folder, with `reports`.

    A row that is not a `kind`, or of which `task` makes none, is rejected with its line. Raises FormatError.
    """
    file = next((tasks / name for name in names if (tasks / name).is_file()), tasks)
    if not file.is_file():
        raise FormatError(f"tasks: {tasks} has no {names[0]}; give that file or its folder")
    rejected: list[Rejected] = []
    known: dict[str, Task] = {}
    for line, row in rows(file, kind, rejected):
        try:
            made = task(row)
        except UNREADABLE as error:
            rejected.append(Rejected.of(file, line, kind, error))
            continue
        if known.setdefault(made.id, made) != made:
            raise FormatError(
                f"{file}:{line}: task {made.id!r} was given before with other content; use distinct ids"
            )
    prompts = Prompts(known)
    found = [one for report in reports for one in own.reports(report, prompts, rejected)]
    return Dataset(known, found, rejected)


def criteria_gold(rubrics: object) -> msgspec.Raw:
    """Rows of rubrics as the gold `rubrics`. Raises ValidationError (a ValueError) for an invalid criterion."""
    criteria = msgspec.convert(as_criteria(rubrics), tuple[Criterion, ...])
    return msgspec.Raw(msgspec.json.encode([_row(one) for one in criteria]))


def _row(criterion: Criterion) -> dict[str, object]:
    row = msgspec.structs.asdict(criterion)
    return {name: value for name, value in row.items() if value not in (None, "", ())}


class Row(msgspec.Struct):
    """A line of tasks_and_rubrics.jsonl."""

    idx: Key
    prompt: str
    content: Gold
    language: str = "en"
    theme: str = ""


def read_deepresearch_bench_2(tasks: Path, reports: list[InputFile]) -> Dataset:
    """The dataset of the published tasks with `reports`. Raises FormatError."""
    return read_set(tasks, ("tasks_and_rubrics.jsonl",), Row, _bench_2_task, reports)


def _bench_2_task(row: Row) -> Task:
    return Task(
        id=str(row.idx),
        prompt=row.prompt,
        language=row.language,
        domain=row.theme,
        attributes={"theme": row.theme} if row.theme else {},
        gold={"drb2": msgspec.Raw(msgspec.json.encode(row.content))},
    )


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
    """The JSON text in `answer`, decoded."""

    sections: list[Section]


def read_draco(tasks: Path, reports: list[InputFile]) -> Dataset:
    """The dataset of the published tasks with `reports`. Raises FormatError."""
    return read_set(tasks, ("test.jsonl",), Problem, _draco_task, reports)


def _draco_task(row: Problem) -> Task:
    answer = msgspec.json.decode(row.answer, type=Answer)
    rubrics = [
        {"requirement": one.requirement, "weight": one.weight, "id": str(one.id), "tags": [section.id]}
        for section in answer.sections
        for one in section.criteria
    ]
    return Task(
        id=str(row.id), prompt=row.problem, domain=row.domain, gold={"rubrics": criteria_gold(rubrics)}
    )


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


def read_healthbench(tasks: Path, reports: list[InputFile]) -> Dataset:
    """The dataset of the published examples with the responses of `reports`. Raises FormatError."""
    return read_set(tasks, _FILES, Example, _healthbench_task, reports)


def _healthbench_task(row: Example) -> Task:
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


class Sample(msgspec.Struct):
    """A line of processed_data.jsonl."""

    sample_id: Key
    prompt: str
    rubrics: list[dict[str, Any]]
    domain: str = ""


def read_researchrubrics(tasks: Path, reports: list[InputFile]) -> Dataset:
    """The dataset of the published tasks with `reports`. Raises FormatError."""
    return read_set(tasks, ("processed_data.jsonl",), Sample, _researchrubrics_task, reports)


def _researchrubrics_task(row: Sample) -> Task:
    return Task(
        id=str(row.sample_id),
        prompt=row.prompt,
        domain=row.domain,
        gold={"rubrics": criteria_gold(row.rubrics)},
    )
