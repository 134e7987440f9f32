"""DeepResearch Bench as published: queries, criteria and references, and one file of articles per system.

Either the repository's `data/` folder (or its parent), the Hub set with its `generated_reports/`, or the same files
flat in one folder. Articles are raw, as the system wrote them, or cleaned of citations.
"""

import re
from pathlib import Path
from typing import Literal

import msgspec

from adjudge.engine.formats.dataset import Dataset, FormatError, Key, Prompts, located, rows
from adjudge.engine.formats.rejected import Rejected
from adjudge.scoring.contract.case import Report, Task

__all__ = ["read"]

_QUERY = ("prompt_data/query.jsonl", "query.jsonl")
_CRITERIA = ("criteria_data/criteria.jsonl", "criteria.jsonl")
_REFERENCE = (
    "test_data/cleaned_data/reference.jsonl",
    "test_data/raw_data/reference.jsonl",
    "reference.jsonl",
)
_HUB = "generated_reports"
_RAW, _CLEANED, _FLAT = ("test_data/raw_data", _HUB), ("test_data/cleaned_data",), (".",)
_ARTICLES = {"raw": _RAW, "cleaned": _CLEANED, None: (*_RAW, *_CLEANED, *_FLAT)}
_NOT_SYSTEMS = frozenset({"query", "criteria", "reference", "human_RACE_annotation"})
_REFERENCES = "reference"
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


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


def read(tasks: Path, reports: list[Path], articles: Literal["raw", "cleaned"] | None = None) -> Dataset:
    """The dataset of a published folder, with the systems of `reports`, or without any, all in the folder.

    Raises FormatError if the folder has no queries, or no articles of the chosen kind (raw or cleaned).
    """
    if reports and articles:
        raise FormatError("articles: chooses among the folder's own reports; remove articles: or reports:")
    root = next((folder for folder in (tasks / "data", tasks) if _holds_queries(folder)), None)
    if root is None:
        raise FormatError(
            f"tasks: {tasks} holds no query.jsonl; give the folder that DeepResearch Bench publishes as data/"
        )
    rejected: list[Rejected] = []
    reference = _find(root, _REFERENCE)
    gold = _gold(_find(root, _CRITERIA), reference, rejected)
    query = _find(root, _QUERY)
    queries = [row for _, _, row in rows(query, Query, rejected)] if query else _asked(root / _HUB)
    known = {
        str(row.id): Task(
            id=str(row.id),
            prompt=row.prompt,
            language=row.language,
            domain=row.topic,
            gold={"race": msgspec.Raw(msgspec.json.encode(gold[str(row.id)]))} if str(row.id) in gold else {},
        )
        for row in queries
    }
    systems = _named(reports, rejected) if reports else _systems(root, articles)
    prompts = Prompts(known)
    found = [report for file in systems for report in located(file, Article, rejected, prompts, _report)]
    lacking = f"{root / (_REFERENCE[0] if query and query.parent != root else _REFERENCE[-1])} is missing"
    return Dataset(known, found, rejected, {} if reference else {"race": lacking})


def _holds_queries(root: Path) -> bool:
    return _find(root, _QUERY) is not None or (root / _HUB).is_dir()


def _asked(reports: Path) -> list[Query]:
    """The queries of the Hub set, which stand beside its reports alone."""
    found: dict[str, Query] = {}
    for file in sorted(reports.glob("*.jsonl")):
        for _, _, row in rows(file, Article, []):  # the reports' own reading names invalid lines
            language = "zh" if _CHINESE.search(row.prompt) else "en"
            found.setdefault(str(row.id), Query(id=row.id, prompt=row.prompt, language=language))
    return list(found.values())


def _gold(
    criteria: Path | None, reference: Path | None, rejected: list[Rejected]
) -> dict[str, dict[str, msgspec.Raw | str]]:
    gold: dict[str, dict[str, msgspec.Raw | str]] = {}
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


def _systems(root: Path, articles: Literal["raw", "cleaned"] | None) -> list[Path]:
    """The files of the folder's systems, from the first place that has any."""
    for place in _ARTICLES[articles]:
        found = [file for file in sorted((root / place).glob("*.jsonl")) if _is_system(file)]
        if found:
            return found
    if articles is not None:
        raise FormatError(f"articles: {root} has no {articles} articles; remove articles: or add the files")
    return []


def _is_system(file: Path) -> bool:
    return file.stem not in _NOT_SYSTEMS and not file.stem.startswith(_REFERENCES)


def _named(reports: list[Path], rejected: list[Rejected]) -> list[Path]:
    """The files of `reports:` without the benchmark's own ones; other references go to `rejected`."""
    rejected += [
        Rejected(str(file), 0, "a reference file is not a system; rename it if it holds a system's reports")
        for file in reports
        if file.stem not in _NOT_SYSTEMS and not _is_system(file)
    ]
    return [file for file in reports if _is_system(file)]


def _find(root: Path, names: tuple[str, ...]) -> Path | None:
    return next((root / name for name in names if (root / name).is_file()), None)


def _report(file: Path, article: Article) -> Report:
    return Report(task_id=str(article.id), system=file.stem, text=article.article)
