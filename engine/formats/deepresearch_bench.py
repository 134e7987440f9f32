"""DeepResearch Bench as published: queries, criteria and references, and one file of articles per system.

Either the repository's `data/` folder (or its parent) or the same files flat in one folder.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from adjudge.engine.formats.dataset import Dataset, FormatError, Key, Prompts, Rejected, located, rows
from adjudge.scoring.contract.case import Report, Task

__all__ = ["read"]

_QUERY = ("prompt_data/query.jsonl", "query.jsonl")
_CRITERIA = ("criteria_data/criteria.jsonl", "criteria.jsonl")
_REFERENCE = ("test_data/cleaned_data/reference.jsonl", "reference.jsonl")
_SYSTEMS = ("test_data/raw_data", ".")
_NOT_SYSTEMS = frozenset({"query", "criteria", "reference"})
_REFERENCES = "reference"


class Query(msgspec.Struct):
    """A line of query.jsonl."""

    id: Key
    prompt: str
    language: str = "en"
    topic: str = ""


class Criteria(msgspec.Struct):
    """A line of criteria.jsonl; the protocol RACE decodes its weights and criteria."""

    id: Key
    dimension_weight: msgspec.Raw
    criterions: msgspec.Raw


class Article(msgspec.Struct):
    """A line of a system's file, or of reference.jsonl."""

    id: Key
    article: str
    prompt: str = ""


def read(tasks: Path, reports: list[Path]) -> Dataset:
    """The dataset of a published folder, with the systems of `reports`, or without any, all in the folder.

    Raises FormatError if query.jsonl is missing.
    """
    root = next((folder for folder in (tasks / "data", tasks) if _find(folder, _QUERY)), None)
    if root is None:
        raise FormatError(
            f"tasks: {tasks} holds no query.jsonl; give the folder that DeepResearch Bench publishes as data/"
        )
    rejected: list[Rejected] = []
    gold = _gold(root, rejected)
    query = _find(root, _QUERY)
    assert query is not None
    known = {
        str(row.id): Task(
            id=str(row.id),
            prompt=row.prompt,
            language=row.language,
            domain=row.topic,
            gold={"race": msgspec.Raw(msgspec.json.encode(gold[str(row.id)]))} if str(row.id) in gold else {},
        )
        for _, _, row in rows(query, Query, rejected)
    }
    systems = _named(reports, rejected) if reports else _systems(root)
    prompts = Prompts(known)
    found = [report for file in systems for report in located(file, Article, rejected, prompts, _report)]
    return Dataset(known, found, rejected)


def _gold(root: Path, rejected: list[Rejected]) -> dict[str, dict[str, msgspec.Raw | str]]:
    gold: dict[str, dict[str, msgspec.Raw | str]] = {}
    criteria, reference = _find(root, _CRITERIA), _find(root, _REFERENCE)
    if criteria:
        for _, _, row in rows(criteria, Criteria, rejected):
            gold[str(row.id)] = {
                "dimension_weight": row.dimension_weight.copy(),
                "criterions": row.criterions.copy(),
            }
    if reference:
        for _, _, article in rows(reference, Article, rejected):
            gold.setdefault(str(article.id), {})["reference"] = article.article
    return gold


def _systems(root: Path) -> Iterator[Path]:
    folder = next(root / place for place in _SYSTEMS if (root / place).is_dir())
    return (
        file
        for file in sorted(folder.glob("*.jsonl"))
        if file.stem not in _NOT_SYSTEMS and not file.stem.startswith(_REFERENCES)
    )


def _named(reports: list[Path], rejected: list[Rejected]) -> Iterator[Path]:
    """The files of `reports:` without the benchmark's own ones; other references go to `rejected`."""
    for file in reports:
        if file.stem in _NOT_SYSTEMS:
            continue
        if file.stem.startswith(_REFERENCES):
            rejected.append(
                Rejected(
                    str(file), 0, "a reference file is not a system; rename it if it holds a system's reports"
                )
            )
        else:
            yield file


def _find(root: Path, names: tuple[str, ...]) -> Path | None:
    return next((root / name for name in names if (root / name).is_file()), None)


def _report(file: Path, article: Article) -> Report:
    return Report(task_id=str(article.id), system=file.stem, text=article.article)
