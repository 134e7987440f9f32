"""DR3-Eval's own folders, as its code reads them.

    data/datasets_en/                      the folder to name as `tasks:`
      query.jsonl                          rows with task, id or number, and query
      001/                                 the user's files, flat, or all in source/
        long_context_sampled_64k.json      the corpus of that size: a list of title and page_body
        useful_search.json or .jsonl       the supportive pages, told by their titles
    evaluation/insights/datasets_en/001/   gold_insights_from_long_context.json, gold_insights_from_source.json
    evaluation/checklists/datasets_en/001/ checklist.json
    results_main/datasets_en/64k/MODEL/001/final_report.md

`evaluation/` is looked for in the folders above the one of the tasks. Every size makes a task, `001@64k`; reports are
the final_report.md files, or folders that hold them, and the path says size, model and task.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from adjudge.engine.formats.dataset import UNREADABLE, Dataset, FormatError, Key, Located, rows
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.formats.user_files import user_files
from adjudge.scoring.contract.case import Report, Task
from adjudge.scoring.dr3_eval.dr3 import Gold, GoldInsights
from adjudge.scoring.dr3_eval.sandbox import Source

__all__ = ["QUERIES", "read_published"]

T = TypeVar("T")

QUERIES = "query.jsonl"
REPORT = "final_report.md"
_CORPUS = "long_context_sampled_"
_NOT_USERS = frozenset({"useful_search.json", "useful_search.jsonl", "task.json", "task.md"})
_ABOVE = 4


class Query(msgspec.Struct):
    """A line of query.jsonl."""

    query: str
    task: Key | None = None
    id: Key | None = None
    number: Key | None = None

    @property
    def key(self) -> str:
        """The task's number, the name of its folder."""
        found = next((one for one in (self.task, self.id, self.number) if one not in (None, "")), None)
        if found is None:
            raise ValueError("neither `task` nor `number`")
        return str(found)


class Page(msgspec.Struct):
    """A page of a corpus, or of useful_search."""

    title: str = ""
    page_body: str = ""
    url: str = ""
    link: str = ""


class Insight(msgspec.Struct):
    """A gold insight."""

    insight: str


class Insights(msgspec.Struct):
    """A gold_insights_from_*.json."""

    gold_insights: tuple[Insight, ...] = ()


class Requirement(msgspec.Struct):
    """An item of a checklist."""

    requirement: str


class Checklist(msgspec.Struct):
    """A checklist.json."""

    checklist: tuple[Requirement, ...] = ()


def read_published(tasks: Path, reports: list[Path]) -> Dataset:
    """The dataset of a published folder. Raises FormatError for a missing reader of files."""
    rejected: list[Rejected] = []
    known: dict[str, Task] = {}
    for line, _, query in rows(tasks / QUERIES, Query, rejected):
        try:
            folder = tasks / query.key
        except ValueError as error:
            rejected.append(Rejected.of(tasks / QUERIES, line, Query, error))
            continue
        if not folder.is_dir() or folder.parent.resolve() != tasks.resolve():
            rejected.append(Rejected(str(tasks / QUERIES), line, f"no folder {query.key!r} beside it"))
            continue
        known |= {task.id: task for task in _tasks(folder, query, rejected)}
    if not known:
        raise FormatError(
            f"tasks: {tasks / QUERIES} names no task whose folder is there; give the data set's folder"
        )
    return Dataset(known, [one for file in reports for one in _reports(file, rejected)], rejected)


def _tasks(folder: Path, query: Query, rejected: list[Rejected]) -> Iterator[Task]:
    """The tasks of one folder, one per size of the corpus."""
    kept = folder / "source" if (folder / "source").is_dir() else folder
    files = tuple(user_files(kept, rejected, _is_users))
    supportive = _supportive(folder, rejected)
    insights = GoldInsights(*(_insights(folder, side, rejected) for side in ("source", "long_context")))
    checklist = _one(_evaluation(folder, "checklists") / "checklist.json", Checklist, rejected) or Checklist()
    corpora: list[Path | None] = [*sorted(folder.glob(f"{_CORPUS}*.json"))]
    for corpus in corpora or [None]:
        pages = [] if corpus is None else list(_pages(corpus, rejected))
        size = "" if corpus is None else corpus.stem.removeprefix(_CORPUS)
        titles = {page.title for page in pages}
        gold = Gold(
            user_files=files,
            corpus=tuple(
                _source(page, "supportive" if page.title in supportive else "unlabelled") for page in pages
            )
            + tuple(
                msgspec.structs.replace(_source(page, "supportive"), beyond=True)
                for title, page in supportive.items()
                if title not in titles
            ),
            insights=insights,
            checklist=tuple(item.requirement for item in checklist.checklist),
            corpus_size=size,
        )
        yield Task(
            id=f"{query.key}@{size}" if size else query.key,
            prompt=query.query,
            language="zh" if folder.resolve().parent.name.endswith("_zh") else "en",
            gold={"dr3": msgspec.Raw(msgspec.json.encode(gold))},
            attributes={"size": size} if size else {},
        )


def _is_users(file: Path) -> bool:
    return file.name not in _NOT_USERS and not file.name.startswith(_CORPUS)


def _source(page: Page, role: Literal["supportive", "unlabelled"]) -> Source:
    return Source(url=page.url or page.link, title=page.title, text=page.page_body, role=role)


def _supportive(folder: Path, rejected: list[Rejected]) -> dict[str, Page]:
    """The supportive pages by title."""
    lines, whole = folder / "useful_search.jsonl", folder / "useful_search.json"
    if lines.exists():
        pages = [page for _, _, page in rows(lines, Page, rejected)]
    else:
        pages = list(_pages(whole, rejected)) if whole.exists() else []
    return {page.title: page for page in pages if page.title}


def _pages(file: Path, rejected: list[Rejected]) -> Iterator[Page]:
    """The pages of a JSON list, or of a single object; those that are not pages are rejected by their place."""
    whole = _one(file, msgspec.Raw, rejected)
    if whole is None:
        return
    try:
        listed = (
            [whole]
            if bytes(whole).lstrip().startswith(b"{")
            else msgspec.json.decode(whole, type=list[msgspec.Raw])
        )
    except UNREADABLE as error:
        rejected.append(Rejected.of(file, 0, Page, error))
        return
    for place, raw in enumerate(listed, 1):
        try:
            yield msgspec.json.decode(raw, type=Page)
        except UNREADABLE as error:
            rejected.append(Rejected.of(file, place, Page, error))


def _insights(folder: Path, side: str, rejected: list[Rejected]) -> tuple[str, ...] | None:
    """The gold insights of one side; None if the file is missing; then the judge drafts them."""
    file = _evaluation(folder, "insights") / f"gold_insights_from_{side}.json"
    found = _one(file, Insights, rejected)
    return None if found is None else tuple(one.insight for one in found.gold_insights)


def _evaluation(folder: Path, kind: str) -> Path:
    """Where `evaluation/KIND/SET/NNN` is, in one of the folders above the data set; else where it would be."""
    base = folder.parent.resolve()
    places = [above / "evaluation" / kind / base.name / folder.name for above in list(base.parents)[:_ABOVE]]
    return next((place for place in places if place.is_dir()), places[0])


def _one(file: Path, kind: type[T], rejected: list[Rejected]) -> T | None:
    """The content of a JSON file as a `kind`; None if there is none, or it cannot be read, which is rejected."""
    try:
        content = file.read_bytes()
        content.decode()
        return msgspec.json.decode(content, type=kind)
    except FileNotFoundError:
        return None
    except (OSError, *UNREADABLE) as error:
        rejected.append(Rejected(str(file), 0, f"cannot be read: {error}"[:300]))
        return None


def _reports(file: Path, rejected: list[Rejected]) -> Iterator[Located]:
    """The reports of a final_report.md, or of a folder that holds some."""
    for found in sorted(file.rglob(REPORT)) if file.is_dir() else [file]:
        try:
            yield Located.of(_report(found), f"{found}:0", partial(_report, found))
        except (OSError, *UNREADABLE) as error:
            rejected.append(Rejected(str(found), 0, f"cannot be read: {error}"[:300]))


def _report(file: Path) -> Report:
    """The report at SIZE/MODEL/NNN/final_report.md. Raises ValueError if the path is not like this, or not UTF-8."""
    where = file.resolve().parts[-4:]
    if len(where) < 4 or file.name != REPORT:
        raise ValueError(f"not a path like SIZE/MODEL/NNN/{REPORT}")
    size, model, task, _ = where
    return Report(task_id=f"{task}@{size}", system=model, text=file.read_bytes().decode())
