"""DR3-Eval's tasks, reports and results: its own folders, and a second form with a whole task in one folder.

Its own folders, as its code reads them:

    data/datasets_en/                      the folder to name as `tasks:`
      query.jsonl                          rows with task, id or number, and query
      001/                                 the user's files, flat, or all in source/
        long_context_sampled_64k.json      the corpus of that size: a list of title and page_body
        useful_search.json or .jsonl       the supportive pages, identified by their titles
    evaluation/insights/datasets_en/001/   gold_insights_from_long_context.json, gold_insights_from_source.json
    evaluation/checklists/datasets_en/001/ checklist.json
    results_main/datasets_en/64k/MODEL/001/final_report.md

`evaluation/` is searched for in the folders above the tasks. Every size makes a task, `001@64k`; reports are the
final_report.md files, or folders that hold them, and the path gives size, model and task.

The second form:

    tasks/                           the folder to name as `tasks:`
      001/
        task.json                    query; optionally language, domain, insights, checklist
        files/                       the user's files: text, Markdown, HTML, PDF, DOCX, PPTX, XLSX, CSV, pictures, ...
        corpus/64k.jsonl, 512k.jsonl one page per line: url, title, text, role (supportive, distractor or noise)

Every corpus makes a separate task, `001@64k`; a folder without a corpus makes the task `001`. Reports: `SYSTEM.jsonl`,
one per line: id, size, report; optionally citations (url, title, marker), sample, seconds.

Results: `SIZE/MODEL/NNN/eval_METRIC_TIME.json`, one file per report and metric; the latest counts.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from adjudge.engine.formats.dataset import (
    UNREADABLE,
    Dataset,
    FormatError,
    InputFile,
    Key,
    Located,
    Prompts,
    located,
    rows,
)
from adjudge.engine.formats.documents import DocumentError, MissingReader, read_source
from adjudge.engine.formats.recorded import Results, RunToWrite, folder_name, scorecard
from adjudge.engine.formats.rejected import Rejected
from adjudge.fetchers.files import file_name
from adjudge.scoring.contract.case import Amount, Citation, Report, Sample, Task
from adjudge.scoring.contract.scorecard import Bounds, Partial, Scorecard, Value
from adjudge.scoring.dr3_eval.dr3 import Gold, GoldInsights
from adjudge.scoring.dr3_eval.sandbox import Role, Source


def user_files(
    folder: Path, rejected: list[Rejected], is_users: Callable[[Path], bool] = lambda file: True
) -> Iterator[Source]:
    """Every file of `folder` that `is_users`. One that cannot be read is rejected, but remains a source to cite.

    So is a link that leads out of the folder. Raises FormatError if the library that reads a file is not installed.
    """
    inside = folder.resolve()
    for file in sorted(folder.glob("*")):
        if file.name.startswith(".") or not file.is_file() or not is_users(file):
            continue
        try:
            if not file.resolve().is_relative_to(inside):
                raise DocumentError(f"{file}: is a link that leads out of its folder")
            yield read_source(file)
        except MissingReader as error:
            raise FormatError(str(error)) from error
        except DocumentError as error:
            rejected.append(Rejected(str(file), 0, str(error).removeprefix(f"{file}: ")))
            yield Source(name=file.name)


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


class PublishedPage(msgspec.Struct):
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


def read_published(tasks: Path, reports: list[InputFile]) -> Dataset:
    """The dataset of a published folder. Raises FormatError for a missing reader of files."""
    rejected: list[Rejected] = []
    known: dict[str, Task] = {}
    for line, query in rows(tasks / QUERIES, Query, rejected):
        try:
            folder = tasks / query.key
        except ValueError as error:
            rejected.append(Rejected.of(tasks / QUERIES, line, Query, error))
            continue
        if not folder.is_dir() or folder.parent.resolve() != tasks.resolve():
            rejected.append(Rejected(str(tasks / QUERIES), line, f"no folder {query.key!r} beside it"))
            continue
        known |= {task.id: task for task in _published_tasks(folder, query, rejected)}
    if not known:
        raise FormatError(
            f"tasks: {tasks / QUERIES} names no task that has a folder; give the data set's folder"
        )
    named = (file for file in reports if file.is_named or file.name == REPORT)
    return Dataset(known, [one for file in named for one in _reports(file.path, rejected)], rejected)


def _published_tasks(folder: Path, query: Query, rejected: list[Rejected]) -> Iterator[Task]:
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
            attributes=_attributes(size, files),
        )


def _attributes(size: str, files: Sequence[Source]) -> dict[str, str]:
    """What a task can be grouped by: the size of its corpus, and the kinds of the user's files, by their endings."""
    kinds = sorted({Path(file.name).suffix.lower().removeprefix(".") for file in files} - {""})
    named = {"size": size, "files": " + ".join(kinds)}
    return {name: value for name, value in named.items() if value}


def _is_users(file: Path) -> bool:
    return file.name not in _NOT_USERS and not file.name.startswith(_CORPUS)


def _source(page: PublishedPage, role: Literal["supportive", "unlabelled"]) -> Source:
    return Source(url=page.url or page.link, title=page.title, text=page.page_body, role=role)


def _supportive(folder: Path, rejected: list[Rejected]) -> dict[str, PublishedPage]:
    """The supportive pages by title."""
    lines, whole = folder / "useful_search.jsonl", folder / "useful_search.json"
    if lines.exists():
        pages = [page for _, page in rows(lines, PublishedPage, rejected)]
    else:
        pages = list(_pages(whole, rejected)) if whole.exists() else []
    return {page.title: page for page in pages if page.title}


def _pages(file: Path, rejected: list[Rejected]) -> Iterator[PublishedPage]:
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
        rejected.append(Rejected.of(file, 0, PublishedPage, error))
        return
    for place, raw in enumerate(listed, 1):
        try:
            yield msgspec.json.decode(raw, type=PublishedPage)
        except UNREADABLE as error:
            rejected.append(Rejected.of(file, place, PublishedPage, error))


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
    """The report of a final_report.md."""
    try:
        yield Located.of(_published_report(file), f"{file}:0", partial(_published_report, file))
    except (OSError, *UNREADABLE) as error:
        rejected.append(Rejected(str(file), 0, f"cannot be read: {error}"[:300]))


def _published_report(file: Path) -> Report:
    """The report at SIZE/MODEL/NNN/final_report.md. Raises ValueError if the path is not like this, or not UTF-8."""
    where = file.resolve().parts[-4:]
    if len(where) < 4 or file.name != REPORT:
        raise ValueError(f"not a path like SIZE/MODEL/NNN/{REPORT}")
    size, model, task, _ = where
    return Report(task_id=f"{task}@{size}", system=model, text=file.read_bytes().decode())


class TaskFile(msgspec.Struct):
    """A task.json."""

    query: str
    language: str | None = None
    domain: Key = ""
    insights: GoldInsights = GoldInsights()
    checklist: tuple[str, ...] = ()


class Page(msgspec.Struct):
    """A line of a corpus."""

    text: str
    url: str = ""
    title: str = ""
    role: Role = "unlabelled"


class Row(msgspec.Struct):
    """A line of a system's file."""

    task_id: Key = msgspec.field(name="id")
    text: str = msgspec.field(name="report")
    size: str = ""
    citations: tuple[Citation, ...] = ()
    sample: Sample = 0
    seconds: Amount | None = None
    prompt: str = ""


def read(tasks: Path, reports: list[InputFile]) -> Dataset:
    """The dataset of a folder of tasks with the systems of `reports`. Raises FormatError if either is missing.

    A user's file that cannot be read is rejected, but remains a source that a report should cite.
    """
    if (tasks / QUERIES).is_file():
        return read_published(tasks, reports)
    folders = sorted(file.parent for file in tasks.glob("*/task.json"))
    if not folders:
        raise FormatError(
            f"tasks: {tasks} has neither query.jsonl nor a folder with a task.json; give the folder "
            "above those of the tasks"
        )
    rejected: list[Rejected] = []
    known = {task.id: task for folder in folders for task in _tasks(folder, rejected)}
    prompts = Prompts(known)
    found = [report for file in reports for report in located(file, Row, rejected, prompts, _report)]
    return Dataset(known, found, rejected)


def _tasks(folder: Path, rejected: list[Rejected]) -> Iterator[Task]:
    """The tasks of one folder, one per corpus."""
    file = folder / "task.json"
    try:
        task = msgspec.json.decode(file.read_bytes(), type=TaskFile)
    except (OSError, *UNREADABLE) as error:
        rejected.append(Rejected.of(file, 0, Task, error))
        return
    files = tuple(user_files(folder / "files", rejected))
    corpora: list[Path | None] = [*sorted((folder / "corpus").glob("*.jsonl"))]
    for corpus in corpora or [None]:
        pages = [] if corpus is None else [page for _, page in rows(corpus, Page, rejected)]
        size = "" if corpus is None else corpus.stem
        gold = Gold(
            user_files=files,
            corpus=tuple(
                Source(url=page.url, title=page.title, text=page.text, role=page.role) for page in pages
            ),
            insights=task.insights,
            checklist=task.checklist,
            corpus_size=size,
        )
        yield Task(
            id=_id(folder.name, size),
            prompt=task.query,
            language=task.language or ("zh" if folder.resolve().parent.name.endswith("_zh") else "en"),
            domain=str(task.domain),
            gold={"dr3": msgspec.Raw(msgspec.json.encode(gold))},
            attributes=_attributes(size, files),
        )


def _id(task: str, size: str) -> str:
    return f"{task}@{size}" if size else task


def _report(system: str, line: Row) -> Report:
    return Report(
        task_id=_id(str(line.task_id), line.size),
        system=system,
        sample=line.sample,
        text=line.text,
        citations=line.citations,
        seconds=line.seconds,
    )


PROTOCOL = "dr3"
_FILE = re.compile(r"eval_(?P<metric>[a-z_]+?)(?:_(?P<time>\d{8}_\d{6}))?\.json")
METRICS = {
    "information_recall": "ir",
    "factual_accuracy": "fa_lenient",
    "overall_quality": "dq",
    "format_compliance": "if",
    "citation_coverage": "cc_lenient",
}
"""The code's metrics by our names for the same rules."""
_SIDES = {"long_context": "ir_sc", "source_documents": "ir_uf"}


class Side(msgspec.Struct, frozen=True):
    """The recall of one kind of insights."""

    score: float | None = None
    available: bool = False


class Details(msgspec.Struct, frozen=True):
    """The fields that are read from a metric's details."""

    components: dict[str, Side] = {}
    status: str = ""
    error: str | None = None


class Result(msgspec.Struct, frozen=True):
    """An eval_*.json: a score from 0 to 100; below 0 the metric failed."""

    metric_name: str
    score: float
    details: Details = Details()
    weight: float = 1.0

    @property
    def values(self) -> dict[str, float | None]:
        """Our metrics. Raises ValueError for one that is unknown, or over 100."""
        if self.metric_name not in METRICS:
            raise ValueError(f"unknown metric {self.metric_name!r}; use one of {', '.join(METRICS)}")
        sides = {
            _SIDES[name]: _share(side.score)
            for name, side in self.details.components.items()
            if name in _SIDES and side.available
        }
        failed = self.details.status == "failed"
        return {METRICS[self.metric_name]: None if failed else _share(self.score), **sides}


def _share(score: float | None) -> float | None:
    if score is None or score < 0:
        return None
    if not score <= 100:
        raise ValueError(f"a score of {score:g} is over 100")
    return score / 100


def read_results(folder: Path, results: Results) -> None:
    """Add the results of every report below `folder`; files that are not results go to its rejected lines."""
    latest: dict[Path, dict[str, tuple[str, Path]]] = {}
    for file in sorted(folder.rglob("eval_*.json")):
        match = _FILE.fullmatch(file.name)
        if match is not None:
            known = latest.setdefault(file.parent, {})
            known[match["metric"]] = max(known.get(match["metric"], ("", file)), (match["time"] or "", file))
    for case, files in latest.items():
        values: dict[str, Value | None] = {}
        kept: dict[str, str] = {}
        for metric, (_, file) in sorted(files.items()):
            try:
                content = file.read_bytes()
                text = content.decode()
                values |= msgspec.json.decode(content, type=Result).values
                kept[file.name] = text
            except (OSError, *UNREADABLE) as error:
                results.rejected.append(Rejected.of(file, 0, Result, error))
                values |= {METRICS[metric]: None} if metric in METRICS else {}
        if not kept:
            continue
        values["average_code"] = _average([values[name] for name in METRICS.values() if name in values])
        size, system = case.parent.parent.name, case.parent.name
        task = f"{case.name}@{size}"
        card = scorecard((PROTOCOL, system, task, 0), values)
        results.add(card, msgspec.json.encode(kept).decode(), case, 0)
        results.tasks.setdefault(task, Task(id=task, prompt="", attributes={"size": size}))


def _average(parts: Sequence[Value | None]) -> Value | None:
    """The mean of the parts that were recorded, and between what it lies with the others at their worst and best."""
    known = [part for part in parts if isinstance(part, float)]
    if not known:
        return None
    value, lost = sum(known) / len(known), len(parts) - len(known)
    ends = Bounds(sum(known) / len(parts), (sum(known) + lost) / len(parts), len(known), len(parts))
    return Partial(value, ends) if lost else value


def write_results(run: RunToWrite, out: Path) -> Iterator[Path]:
    """Write a file for each report and metric below `out`; the files written."""
    for (system, sample), cards in run.of(PROTOCOL).items():
        for card in cards:
            task, at, size = card.task_id.partition("@")
            of_size = "all" if not at else "%61ll" if size == "all" else file_name(size)
            folder = out / of_size / folder_name(system, sample) / file_name(task)
            for name, text in _files(run, card).items():
                folder.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text, encoding="utf-8")
                yield folder / name


def _files(run: RunToWrite, card: Scorecard) -> dict[str, str]:
    """The files by name: as they were imported, or from the scores."""
    raw = run.rows.get((PROTOCOL, card.system, card.task_id, card.sample))
    if raw is not None:
        return msgspec.json.decode(raw, type=dict[str, str])
    return {
        f"eval_{metric}.json": msgspec.json.format(
            msgspec.json.encode(_result(card, metric)), indent=2
        ).decode()
        for metric, name in METRICS.items()
        if card.scores.get(name) is not None
    }


def _result(card: Scorecard, metric: str) -> dict[str, Any]:
    sides = {side: card.scores.get(name) for side, name in _SIDES.items()}
    components = {
        side: {"score": 100 * value, "details": {}, "available": True}
        for side, value in sides.items()
        if value is not None
    }
    return {
        "metric_name": metric,
        "score": 100 * (card.scores[METRICS[metric]] or 0.0),
        "weight": 1.0,
        "details": {"components": components} if metric == "information_recall" else {},
    }
