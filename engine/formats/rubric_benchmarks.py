"""Rubric benchmarks as published: DRACO, DeepResearch Bench II, HealthBench and ResearchRubrics.

Tasks are a JSON Lines file, or its folder, one task per line. Reports are in our own layout (`engine/formats/own.py`);
documents may also be named `SYSTEM/idx-ID.md`.

DRACO, `test.jsonl`: id, domain, problem, answer. `answer` is JSON text: sections, each with an id and its criteria (id,
requirement, weight). A criterion's section is its tag.

DeepResearch Bench II, `tasks_and_rubrics.jsonl`: idx, language, theme, prompt, content (rubric: the items of
info_recall, analysis and presentation; blocked: title, authors and urls of the source that a report must not rest on),
and optionally id and description. A report's `task_id` is idx.

HealthBench: prompt_id, prompt (the messages of a conversation: role, content), rubrics (criterion, points, tags), and
optionally example_tags. HealthBench Professional: id, conversation (messages), rubric_items (criterion_text, points),
and optionally use_case. A task's prompt is the conversation that the response continues. Of an example tag such as
`theme:emergency` the attribute `theme` is kept, for tables by theme, and so is `use_case`. The attribute `set` is
`professional` for rows of that form, and `regular`, `hard` or `consensus` where the published file's name says so.

ResearchRubrics, `processed_data.jsonl`: sample_id, prompt, domain, rubrics (criterion, weight from -5 to 5, axis). A
criterion's axis is its tag.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

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
    theme: Key = ""


def read_deepresearch_bench_2(tasks: Path, reports: list[InputFile]) -> Dataset:
    """The dataset of the published tasks with `reports`. Raises FormatError."""
    return read_set(tasks, ("tasks_and_rubrics.jsonl",), Row, _bench_2_task, reports)


def _bench_2_task(row: Row) -> Task:
    return Task(
        id=str(row.idx),
        prompt=row.prompt,
        language=row.language,
        domain=str(row.theme),
        attributes={"theme": str(row.theme)} if row.theme != "" else {},
        gold={"drb2": msgspec.Raw(msgspec.json.encode(row.content))},
    )


class Problem(msgspec.Struct):
    """A line of test.jsonl."""

    id: Key
    problem: str
    answer: str
    domain: Key = ""


class Requirement(msgspec.Struct):
    """A criterion; a negative weight is for a fault."""

    requirement: str
    weight: float
    id: Key = ""


class Section(msgspec.Struct):
    """The criteria of one section."""

    id: Key
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
        {"requirement": one.requirement, "weight": one.weight, "id": str(one.id), "tags": [str(section.id)]}
        for section in answer.sections
        for one in section.criteria
    ]
    return Task(
        id=str(row.id), prompt=row.problem, domain=str(row.domain), gold={"rubrics": criteria_gold(rubrics)}
    )


_SETS = {
    "2025-05-07-06-14-12_oss_eval.jsonl": "regular",
    "hard_2025-05-08-21-00-10.jsonl": "hard",
    "consensus_2025-05-09-20-00-46.jsonl": "consensus",
}
_FILES = ("healthbench.jsonl", *_SETS)


class Message(msgspec.Struct):
    """A message of the conversation."""

    role: str
    content: str


class Conversation(msgspec.Struct):
    """What a response continues."""

    messages: list[Message]


class Example(msgspec.Struct):
    """A line of the file in either form: by `prompt_id`, or of HealthBench Professional by `id`."""

    prompt_id: Key | None = None
    prompt: list[Message] = []
    rubrics: list[dict[str, Any]] = []
    example_tags: list[str] = []
    id: Key | None = None
    conversation: Conversation | None = None
    rubric_items: list[dict[str, Any]] = []
    use_case: Key = ""


def read_healthbench(tasks: Path, reports: list[InputFile]) -> Dataset:
    """The dataset of the published examples with the responses of `reports`. Raises FormatError."""
    file = next((tasks / name for name in _FILES if (tasks / name).is_file()), tasks)
    return read_set(file, _FILES, Example, partial(_healthbench_task, _SETS.get(file.name, "")), reports)


def _healthbench_task(named: str, row: Example) -> Task:
    professional = row.conversation is not None
    name = row.id if professional else row.prompt_id
    messages = row.conversation.messages if row.conversation is not None else row.prompt
    rubrics = row.rubric_items if professional else row.rubrics
    if name is None or not messages or not rubrics:
        form = "id, conversation and rubric_items" if professional else "prompt_id, prompt and rubrics"
        raise ValueError(f"{form} is missing or empty")
    tagged = (tag.partition(":") for tag in row.example_tags)
    attributes = {kind: tag for kind, colon, tag in tagged if colon}
    said = {"use_case": str(row.use_case), "set": "professional" if professional else named}
    attributes |= {kind: words for kind, words in said.items() if words}
    return Task(
        id=str(name),
        prompt=_conversation(messages),
        domain=attributes.get("theme") or attributes.get("use_case", ""),
        attributes=attributes,
        gold={"rubrics": criteria_gold(rubrics)},
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
    domain: Key = ""


def read_researchrubrics(tasks: Path, reports: list[InputFile]) -> Dataset:
    """The dataset of the published tasks with `reports`. Raises FormatError."""
    return read_set(tasks, ("processed_data.jsonl",), Sample, _researchrubrics_task, reports)


def _researchrubrics_task(row: Sample) -> Task:
    return Task(
        id=str(row.sample_id),
        prompt=row.prompt,
        domain=str(row.domain),
        gold={"rubrics": criteria_gold(row.rubrics)},
    )
