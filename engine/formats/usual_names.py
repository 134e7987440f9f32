"""Names that columns have in files of others, where they have not the layout's own."""

import re
from collections.abc import Container
from functools import lru_cache

TASK = ("id", "task", "idx", "qid", "uid", "query_id", "question_id", "prompt_id", "task_idx", "key")
TEXT = (
    "text",
    "article",
    "response",
    "report",
    "final_report",
    "final_answer",
    "output",
    "answer",
    "prediction",
    "completion",
)
SYSTEM = ("model", "model_name", "system_name", "agent")
PROMPT = ("prompt", "question", "query", "task")
TASKS_COLUMNS = {
    "id": tuple(name for name in ("task_id", *TASK) if name not in ("id", "task")),
    "prompt": tuple(name for name in PROMPT if name != "prompt"),
}
"""Names that columns have in files of tasks, where they have not ours."""
BESIDE = (
    "task_id", "system", "language", "domain", "sample", "gold", "citations", "plan", "evidence", "trace", "usage",
    "seconds", "annotations", "attributes", "references", "reference", "sources", "source", "context", "contexts",
    "reference_answer", "reference_report", "ground_truth", "gold_answer", "expected", "expected_answer",
    "expected_output", "ideal", "target", "rubric", "rubrics", "criteria", "criterion", "checklist", "instructions",
    "system_prompt", "background", "description", "explanation", "rationale", "reasoning", "notes", "note", "comment",
    "comments", "remarks", "feedback", "metadata", "tags", "category", "topic", "title", "url", "urls",
)  # fmt: skip
"""Names of columns that stand beside questions and reports."""
_KNOWN = frozenset({"task_id", "system", "language", "domain", "sample", *TASK, *TEXT, *SYSTEM, *PROMPT})
_USUAL = re.compile(rf"(?i)(?:{'|'.join(TEXT)})s?")


def is_usual(stem: str) -> bool:
    """Whether a file's name says only that it is a report: `report.md`, `final-report.html`."""
    return _USUAL.fullmatch(re.sub(r"[ -]", "_", stem)) is not None


def names_system(column: str) -> bool:
    """Whether a column's name is none of the usual ones, and may be a system's."""
    return bool(column.strip()) and _plain(column) not in _KNOWN.union(BESIDE, TASKS_COLUMNS["id"])


@lru_cache(maxsize=4_096)
def _plain(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip()).lower()


def spelt(name: str, others: Container[str]) -> str:
    """A heading of a table as the usual name that it is (`Final Report`), if none of the `others` is that name."""
    usual = _plain(name)
    return usual if usual in _KNOWN and usual not in others else name
