"""What a folder holds, as people have it: tasks, reports, criteria and pages, told apart by what is in the files.

Names decide only where the content leaves two readings. Hidden folders, runs, virtual environments and folders of
pages are not searched for reports; files about the folder itself (README, LICENSE) are no reports.
"""

import glob
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

import msgspec
import yaml

from adjudge.engine.errors import UsageError
from adjudge.engine.file_kinds import DOCUMENTS, SAVE_AS, TABLES
from adjudge.engine.formats.columns import (
    JOINED,
    LONG,
    PEEKED,
    SAMPLE,
    place_of,
    question_in,
    report_in,
    row_of,
    systems_in,
)
from adjudge.engine.formats.dataset import Dataset, layouts, load_dataset, load_tasks, quietly
from adjudge.engine.formats.input_files import (
    MAX_FILES,
    UNSEEN,
    Given,
    InputFile,
    by_number,
    matched,
)
from adjudge.engine.formats.own import language_of
from adjudge.engine.formats.recorded import ROWS
from adjudge.engine.formats.records import UNREADABLE, Raws, records
from adjudge.engine.formats.rejected import FormatError, Rejected
from adjudge.engine.formats.report_documents import read_report
from adjudge.engine.formats.usual_names import TASKS_COLUMNS, is_usual
from adjudge.judges.plural import listed
from adjudge.scoring.contract.case import Task
from adjudge.scoring.text.scan import front_lines, raw_lines

__all__ = ["OWN", "FoundFolder", "found_in"]

OWN = "adjudge"
_ABOUT = re.compile(
    r"(?i)readme|licen[cs]e|copying|notice|changelog|contributing|security|requirements|citation|code_of_conduct|claude|agents"
)
_ASKING = re.compile(r"(?i)(?:tasks?|quer(?:y|ies)|questions?|prompts?)\b")
_SEARCHED = TABLES | DOCUMENTS | SAVE_AS.keys() | {".zip"}
_NOT_SEARCHED = frozenset({"node_modules", "__pycache__", "site-packages"})
_NOT_IN = ("run.json", ROWS, "pyvenv.cfg")  # what a folder of something else holds: a run, or half an import
_NAMED = 40  # characters of a column's name in a message
_YAML_BYTES = 2_000_000
_FIELDS_CHARS = 20_000  # above a report
# The one that keeps most of a report first.
_FORMS = (".md", ".markdown", ".docx", ".html", ".htm", ".pdf", ".txt")
_DEPTH, _FOLDERS = 3, 200  # where data sets are looked for


class FoundFolder(msgspec.Struct, frozen=True, kw_only=True):
    """What was found; paths are relative to the folder."""

    layout: str = OWN
    """The format: our own, or that of a published benchmark."""
    tasks: str = ""
    """The file or folder of tasks; "" where there is none."""
    reports: tuple[str, ...] = ()
    """Files, folders and patterns of reports; none where the benchmark's folder names them itself."""
    criteria: str = ""
    """A file of criteria for the protocol `rubrics`."""
    pages: str = ""
    """A folder of frozen pages."""
    aside: tuple[str, ...] = ()
    """Files that were taken for nothing, though people keep reports in their kind."""
    made: tuple[Task, ...] = ()
    """Where there is no file of tasks: the tasks that the reports are for."""
    unasked: int = 0
    """How many tasks of `made` have no question; their names stand for them."""


def found_in(folder: Path) -> FoundFolder:
    """What `folder` holds. Raises FormatError if there is no report in it."""
    with quietly():
        published = _published(folder)
    return _own(folder) if published is None else published


def _published(folder: Path) -> FoundFolder | None:
    """The data set of a published benchmark that `folder` is, or that a folder in it is, beside reports.

    Raises FormatError where there is such a data set, and no report at all.
    """
    alone: list[tuple[str, Path]] = []
    for place in (folder, *_within(folder)):
        for layout in layouts():
            with suppress(UsageError, OSError, *UNREADABLE):
                if layout == OWN or not _has_tasks(layout, place):
                    continue
                tasks = os.path.relpath(place, folder)
                if _has_reports(layout, place, ()):
                    return FoundFolder(layout=layout, tasks=tasks)
                reports = tuple(_beside(folder, layout, place))
                if reports and _has_reports(layout, place, [str(folder / one) for one in reports]):
                    return FoundFolder(layout=layout, tasks=tasks, reports=reports)
                if not reports:
                    alone.append((layout, place))
    if alone:
        raise FormatError(
            f"{alone[0][1]}: has the tasks of {alone[0][0]}, but no report was found beside them"
        )
    return None


def _within(folder: Path) -> list[Path]:
    """The folders in `folder`, and in these, that a data set may be in."""
    found: list[Path] = []
    level = [folder]
    for _ in range(_DEPTH):
        level = sorted(
            one
            for above in level
            for one in above.iterdir()
            if one.is_dir() and not one.name.startswith(UNSEEN)
        )
        if len(found) + len(level) > _FOLDERS:
            break
        found += level
    return found


def _beside(folder: Path, layout: str, place: Path) -> Iterator[str]:
    """The entries of the reports in `folder` beside the data set at `place`, of those in it where there are none.

    Tables of the data set's own tasks may have answers, and are no reports.
    """
    files = [file for path in _files(folder, []) if _kind(file := InputFile(path)) in _REPORTS]
    outside = [file for file in files if place not in Path(str(file)).parents]
    inside = [file for file in files if file.suffix not in TABLES or not _has_tasks(layout, Path(str(file)))]
    yield from _entries(folder, outside or inside)


def _has_tasks(layout: str, tasks: Path) -> bool:
    with suppress(UsageError, OSError, *UNREADABLE):
        return bool(load_tasks(layout, str(tasks)))
    return False


def _has_reports(layout: str, tasks: Path, entries: Iterable[str]) -> bool:
    with suppress(UsageError, OSError, *UNREADABLE):
        found: Dataset = load_dataset(layout, str(tasks), list(entries))
        return bool(found.reports)
    return False


def _own(folder: Path) -> FoundFolder:
    pages: list[Path] = []
    files = [InputFile(path) for path in _files(folder, pages)]
    kinds = {str(file): _kind(file) for file in files}
    if (
        "reports" in kinds.values()
    ):  # beside reports of the usual form, questions with long texts are no others
        kinds |= {str(file): _kind(file, wide=False) for file in files if kinds[str(file)] == "systems"}
    tasks = [file for file in files if kinds[str(file)] == "tasks"]
    reports = [file for file in files if kinds[str(file)] in _REPORTS]
    strays = _strays(folder, reports)
    reports = [file for file in reports if file not in strays]
    questions = set() if tasks else _asking(reports)
    doubles = _doubles([file for file in reports if file not in questions])
    reports = [file for file in reports if file not in questions | doubles]
    named = [file for file in tasks if _ASKING.match(file.stem)]
    if len(named) == 1:
        tasks = named
    if len(tasks) > 1:
        names = listed([_name(folder, file) for file in tasks])
        raise FormatError(
            f"{folder}: any of {names} could be the tasks; name one of them as tasks: in a configuration"
        )
    if not reports:
        raise FormatError(f"{folder}: no report was found; {_instead(folder, files, kinds)}")
    criteria = [file for file in files if kinds[str(file)] == "criteria"] or list(_yaml_criteria(folder))
    made, unasked = ((), 0) if tasks else _tasks_of(reports, questions)
    aside = [file for file in files if kinds[str(file)] == "" or file in doubles | strays]
    return FoundFolder(
        tasks=_name(folder, tasks[0]) if tasks else "",
        reports=tuple(_entries(folder, reports)),
        criteria=_name(folder, criteria[0]) if criteria else "",
        pages=os.path.relpath(pages[0], folder) if pages else "",
        aside=tuple(_name(folder, file) for file in aside),
        made=made,
        unasked=unasked,
    )


def _instead(folder: Path, files: list[InputFile], kinds: Mapping[str, str]) -> str:
    """What to do about a folder without reports: about its first table that was taken for nothing, if it has one."""
    of_tables = [file for file in files if file.suffix in TABLES]
    tables = [file for kind in ("", "tasks") for file in of_tables if kinds[str(file)] == kind]
    for file in tables:
        if columns := list(_first(file)):
            return (
                f"{_name(folder, file)} has the columns {listed([repr(one[:_NAMED]) for one in columns])}: call the "
                "one of reports `text`, the one of questions `prompt` and the one of systems `system`; each row is "
                f"one report (columns that are called after systems need reports of more than {LONG} characters)"
            )
    if tables:
        rejected: list[Rejected] = []
        with suppress(*UNREADABLE, FormatError):
            any(records(tables[0], rejected))
        why = f": {rejected[0].why}" if rejected else ""
        return f"{_name(folder, tables[0])} holds no row that can be read{why}"
    for file in files:
        if form := SAVE_AS.get(file.suffix):
            return f"{file.suffix} files are not read; save {_name(folder, file)} as {form}"
    return (
        "a report is a document (.md, .txt, .html, .pdf, .docx), or a row of a table (.jsonl, .json, .csv, .tsv, "
        ".parquet) with its text in a column such as `text` or `report`"
    )


def _strays(folder: Path, files: list[InputFile]) -> set[InputFile]:
    """Documents beside the folders of several systems, named after none of the reports there: notes, or questions."""
    documents = [file for file in files if file.suffix in DOCUMENTS]
    loose = {file for file in documents if Path(str(file)).parent == folder}
    inside = [file for file in documents if file not in loose]
    if len({Path(_name(folder, file)).parts[0] for file in inside}) < 2:
        return set()
    stems = {file.stem for file in inside}
    return {file for file in loose if file.stem not in stems and JOINED not in file.stem}


def _asking(files: list[InputFile]) -> set[InputFile]:
    """The documents that are questions of reports: `TASK/prompt.txt` beside them, or `prompts/TASK.txt`."""
    documents = [file for file in files if file.suffix in DOCUMENTS]
    beside = Counter(file.place for file in files)
    found = {
        file
        for file in documents
        if (_ASKING.fullmatch(file.stem) and beside[file.place] > 1) or _ASKING.fullmatch(next(file.folders))
    }
    return found if len(found) < len(files) else set()


def _doubles(files: list[InputFile]) -> set[InputFile]:
    """Documents that are not reports: other forms of one, and what lies beside a `report.md`, such as notes."""
    documents = [file for file in files if file.suffix in DOCUMENTS]
    forms: dict[tuple[str, str], InputFile] = {}
    for file in sorted(documents, key=lambda one: _FORMS.index(one.suffix)):
        forms.setdefault((file.place, file.stem), file)
    usual = _usual(forms.values())
    places = {file.place for file in forms.values() if file.stem in usual}
    others = {file.stem for file in documents if file.place in places} - usual
    return {file for file in documents if forms[file.place, file.stem] is not file or file.stem in others}


def _usual(documents: Iterable[InputFile]) -> set[str]:
    """The names that say only that a file is a report, where several folders have it."""
    counts = Counter(file.stem for file in documents if is_usual(file.stem))
    return {stem for stem, count in counts.items() if count > 1}


def _name(folder: Path, file: InputFile) -> str:
    return os.path.relpath(str(file), folder)


def _files(folder: Path, pages: list[Path]) -> Iterator[Path]:
    """The files below `folder` of kinds that people keep tasks or reports in; `pages` takes the folders of pages."""
    seen = 0
    for parent, folders, names in os.walk(folder):
        if parent != str(folder) and any(one in names for one in _NOT_IN):
            folders.clear()
            continue
        if "index.jsonl" in names and _first(InputFile(Path(parent, "index.jsonl"))).keys() >= {
            "url",
            "file",
        }:
            pages.append(Path(parent))
            folders.clear()
            continue
        folders[:] = sorted(
            (one for one in folders if not one.startswith(UNSEEN) and one not in _NOT_SEARCHED), key=by_number
        )
        seen += len(names)
        if seen > MAX_FILES:
            raise FormatError(f"{folder}: has more than {MAX_FILES:,} files; give a folder with fewer")
        for name in sorted(names, key=by_number):
            path = Path(parent, name)
            suffix = InputFile(path).suffix
            if not name.startswith(UNSEEN) and suffix in _SEARCHED and path.is_file():
                yield path


_REPORTS = ("reports", "systems")


def _kind(file: InputFile, *, wide: bool = True) -> str:
    """`tasks`, `reports`, `criteria`, or "" for a file that is none of these.

    Unless not `wide`, a table with a column for each system is of kind `systems`.
    """
    if file.suffix in SAVE_AS:
        return ""
    if file.suffix in DOCUMENTS or file.suffix == ".zip":
        return "" if _ABOUT.fullmatch(file.stem) else "reports"
    rows = _first_rows(file, PEEKED)
    line, row = rows[0] if rows else (0, {})
    if any(name.lower() == "criterion" for name in row):
        return "" if file.suffix in (".parquet", ".xlsx") or file.is_packed else "criteria"
    text, (task, question) = report_in(row), question_in(row)
    asks = question or any(name in row for name in ("gold", *TASKS_COLUMNS["prompt"]))
    is_gold = "gold" in row or (text in ("answer", "final_answer") and _ASKING.match(file.stem))
    has_id = any(name in row for name in ("id", *TASKS_COLUMNS["id"]))
    systems = systems_in(each for _, each in rows) if wide and "gold" not in row else ()
    if len(systems) > has_id:  # a question with an id and one long text may be a task
        return "systems"
    if asks and (not text or is_gold):
        # One object is no list of tasks, and without ids nothing says which report is for which.
        return "tasks" if line and has_id else ""
    return "reports" if text or (not task and _is_texts_by_task(row)) else ""


def _first(file: InputFile) -> Raws:
    """The first row of a table; empty if there is none that can be read."""
    rows = _first_rows(file, 1)
    return rows[0][1] if rows else {}


def _first_rows(file: InputFile, count: int) -> list[tuple[int, Raws]]:
    """The first rows of a table with their lines, as far as they can be read."""
    found: list[tuple[int, Raws]] = []
    with suppress(*UNREADABLE, FormatError, OSError):
        found.extend((record.line, row_of(record)) for record in islice(records(file, []), count))
    return found


def _is_texts_by_task(row: Raws) -> bool:
    """Whether a JSON object has a report under the name of each task."""
    return bool(row) and all(bytes(raw)[:1] == b'"' and len(raw) > LONG for raw in row.values())


def _yaml_criteria(folder: Path) -> Iterator[InputFile]:
    for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
        with suppress(OSError, UnicodeError, RecursionError, yaml.YAMLError):
            if path.stat().st_size > _YAML_BYTES:
                continue
            # Only which events come is looked at, so that aliases cost nothing.
            words = {
                one.value for one in yaml.parse(path.read_text("utf-8")) if isinstance(one, yaml.ScalarEvent)
            }
            if "criterion" in words or path.stem.lower() in ("criteria", "rubrics"):
                yield InputFile(path)


def _entries(folder: Path, files: list[InputFile]) -> Iterator[str]:
    """`files` as few entries of `reports:`: a folder where all in it are reports, else a pattern, else names."""
    chosen = {Path(str(file)) for file in files}
    tops = dict.fromkeys(Path(_name(folder, file)).parts[0] for file in files)
    loose: list[Path] = []
    for top in tops:
        place = folder / top
        if place.is_dir() and _readable(place) <= chosen:
            yield top
        else:
            loose += [one for one in chosen if one == place or place in one.parents]
    usual = Counter(one.name for one in loose if is_usual(one.stem))
    for name in [name for name, count in usual.items() if count > 1]:
        pattern = f"**/{glob.escape(name)}"
        if set(folder.glob(pattern)) <= chosen:
            yield pattern
            loose = [one for one in loose if one.name != name]
    groups = defaultdict[tuple[Path, str], list[Path]](list)
    for one in sorted(loose, key=lambda path: by_number(str(path))):
        groups[one.parent, one.suffix].append(one)
    for (parent, suffix), those in groups.items():
        pattern = os.path.relpath(parent / "x", folder)[:-1]
        if len(those) > 1 and set(parent.glob(f"*{glob.escape(suffix)}")) == set(those):
            yield f"{glob.escape(pattern)}*{suffix}"
        else:
            yield from (glob.escape(os.path.relpath(one, folder)) for one in those)


def _readable(place: Path) -> set[Path]:
    """What an entry of `reports:` that names the folder would read."""
    return {
        Path(parent, name)
        for parent, folders, names in os.walk(place)
        for name in names
        if not name.startswith(UNSEEN) and InputFile(Path(name)).suffix in TABLES | DOCUMENTS
        if not any(part.startswith(UNSEEN) for part in Path(parent).relative_to(place).parts)
    }


def _tasks_of(files: list[InputFile], asking: Iterable[InputFile]) -> tuple[tuple[Task, ...], int]:
    """The tasks of reports, by the questions and ids in their rows, else by their paths; how many have no question."""
    unpacked = [
        one for file in files for one in (matched(Given(str(file))) if file.suffix == ".zip" else [file])
    ]
    rows = [pair for file in unpacked if file.suffix in TABLES for pair in _asked_in(file)]
    questions: dict[str, str] = {}
    ids = defaultdict[str, set[str]](set)
    for task, question in rows:
        ids[" ".join(question.split())].add(task)
    one_each = all(len(those) == 1 for question, those in ids.items() if question)
    if one_each and len({task for task, _ in rows if task}) >= len(ids):
        for task, question in rows:
            if task:
                questions.setdefault(task, question)
    else:  # the ids are those of rows
        for number, question in enumerate((one for one in ids if one), 1):
            questions[f"question-{number}"] = question
    for file in sorted(asking, key=lambda one: by_number(str(one))):
        with suppress(*UNREADABLE):
            task = next(file.folders) if _ASKING.fullmatch(file.stem) else file.stem
            questions[task] = read_report(file)
    documents = [file for file in unpacked if file.suffix in DOCUMENTS]
    for name in _names(documents, questions):
        questions.setdefault(name, "")
    for file in documents:
        if questions.get(task := place_of(file, questions)[0]) == "":
            questions[task] = _asked_above(file)
    made = tuple(
        Task(id=task, prompt=question or task, language=language_of(question or task))
        for task, question in questions.items()
    )
    return made, sum(not question for question in questions.values())


def _asked_above(file: InputFile) -> str:
    """The question in the fields above a report in Markdown; "" if there is none."""
    if file.suffix not in (".md", ".markdown", ".txt"):
        return ""
    with suppress(*UNREADABLE, yaml.YAMLError):
        text = read_report(file)
        fields = "\n".join(islice(raw_lines(text), 1, max(front_lines(text) - 1, 1)))
        # Composed alone, so that aliases, dates and long numbers cost nothing.
        found = yaml.compose(fields[:_FIELDS_CHARS], Loader=yaml.SafeLoader)
        pairs = found.value if isinstance(found, yaml.MappingNode) else []
        texts = {name.value: value.value for name, value in pairs if isinstance(value, yaml.ScalarNode)}
        return question_in({name: msgspec.Raw(msgspec.json.encode(text)) for name, text in texts.items()})[
            1
        ].strip()
    return ""


def _asked_in(file: InputFile) -> Iterator[tuple[str, str]]:
    """The task's id and question of every row that can be read."""
    rejected: list[Rejected] = []
    first = _first(file)
    known = first.keys() if _is_texts_by_task(first) and not report_in(first) else ()
    for record in records(file, rejected, known):
        with suppress(*UNREADABLE):
            task, question = question_in(row_of(record))
            if record.task or task or question:
                yield record.task or task, question
            elif not record.line:
                yield file.stem, ""


def _names(documents: list[InputFile], questions: Mapping[str, str]) -> list[str]:
    """The tasks that documents are named after: `ID`, or `ID-K` where that is a sample of another that is there.

    Where several folders have a `report.md`, it is named after its folder. Where every name is two joined ones, the
    task is the last, or the first if there are more of these. Those for `questions` are left out.
    """
    unasked = [file for file in documents if place_of(file, questions)[0] not in questions]
    usual = _usual(unasked)
    stems = dict.fromkeys(next(file.folders) if file.stem in usual else file.stem for file in unasked)
    first, last = (Counter(stem.split(JOINED, 1)[at] for stem in stems if JOINED in stem) for at in (0, -1))
    if first.total() == len(stems) > max(len(first), len(last)) > 0 and "" not in first | last:
        stems = dict.fromkeys(first if len(first) > len(last) else last)
    matches = {stem: found[1] for stem in stems if (found := SAMPLE.fullmatch(stem)) is not None}
    sizes = Counter(matches.values())
    samples = len(matches) == len(stems) and len(sizes) > 1 and min(sizes.values()) > 1

    def task(stem: str) -> str:
        prefix = matches.get(stem, "")
        is_sample = prefix and (samples or prefix in stems or (prefix.isdecimal() and sizes[prefix] > 1))
        return prefix if is_sample else stem

    return list(dict.fromkeys(task(stem) for stem in stems))
