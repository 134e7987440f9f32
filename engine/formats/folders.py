"""Finds a benchmark's result files in a folder, and reads them."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from adjudge.engine.formats import deepresearch_bench, deepresearchgym, dr3, livedrbench
from adjudge.engine.formats.dataset import UNREADABLE, FormatError, Key, rows
from adjudge.engine.formats.deepresearch_bench import Query
from adjudge.engine.formats.recorded import Results
from adjudge.engine.formats.rejected import Rejected
from adjudge.scoring.contract.case import Task
from adjudge.scoring.deepresearch_bench.yardstick import Criterion, RaceGold


class _Criteria(msgspec.Struct):
    id: Key
    dimension_weight: dict[str, float]
    criterions: dict[str, tuple[Criterion, ...]]


_RAW = "raw_results"
_FIRST_LINE = 1 << 26  # bytes
_FIRST_LINES = 10


Reader = Callable[[Path, str | None, Results], None]
"""Adds the results in a folder or file, as a system's where its name is given. Raises FormatError."""


def read_results(folder: Path, benchmark: str, read: Reader, system: str | None = None) -> Results:
    """What `read` finds of `benchmark` in `folder`. Raises FormatError if there are no results."""
    if not folder.exists():
        raise FormatError(f"import: {folder} does not exist; give a folder of results")
    results = Results()
    read(folder, system, results)
    if not results.found:
        if other := recorded_in(folder, *(one for one in READERS if one != benchmark)):
            raise FormatError(
                f"import: {folder} has no results of {benchmark}, but of {other}: --format {other}"
            )
        first = f"; the first line left out: {results.rejected[0]}" if results.rejected else ""
        raise FormatError(f"import: {folder} has no results of {benchmark}; give their folder or file{first}")
    return results


def read_deepresearch_bench(folder: Path, system: str | None, results: Results) -> None:
    """Add the rows of RACE and FACT; a file is known by the keys of its first row."""
    steps: dict[tuple[Path, str], list[Path]] = {}
    judged: list[Path] = []
    criteria: dict[str, RaceGold] = {}
    for file in _files(folder, "*.jsonl"):
        try:
            keys = _first_keys(file)
        except FormatError as error:
            results.rejected.append(Rejected(str(file), 0, str(error)))
            continue
        if "overall_score" in keys or {"id", "error"} <= keys:
            deepresearch_bench.read_race(file, system or _system(file, (_RAW,)), results)
        elif {"id", "citations"} <= keys:
            name = system or _system(file, deepresearch_bench.STEPS)
            steps.setdefault((file.parent, name), []).append(file)
        elif {"id", "judge_details"} <= keys:
            judged.append(file)
        elif {"id", "dimension_weight", "criterions"} <= keys:
            criteria |= {
                str(row.id): RaceGold(row.dimension_weight, row.criterions)
                for _, row in rows(file, _Criteria, results.rejected)
            }
        elif {"id", "prompt", "language"} <= keys:
            for _, row in rows(file, Query, []):  # queries are not results
                results.tasks[str(row.id)] = Task(
                    id=str(row.id), prompt=row.prompt, language=row.language, domain=str(row.topic)
                )
    for (_, name), files in steps.items():
        deepresearch_bench.read_fact(files, name, results)
    for file in judged:
        deepresearch_bench.read_judged(file, system or file.stem, criteria, results)
    reported = {one.card.task_id for one in results.found}
    results.tasks = {name: task for name, task in results.tasks.items() if name in reported}


def read_livedrbench(folder: Path, system: str | None, results: Results) -> None:
    """Add the results of a file for each system."""
    for file in (*_files(folder, "*.json"), *_files(folder, "*.jsonl")):
        try:
            livedrbench.read_results(file, system or file.stem, results)
        except FormatError as error:  # it costs the others nothing
            results.rejected.append(Rejected(str(file), 0, str(error)))


def read_dr3(folder: Path, system: str | None, results: Results) -> None:
    """Add the results of folders that name their systems. Raises FormatError for a `system`."""
    if system is not None:
        raise FormatError("import: DR3-Eval's folders name their systems; leave --system out")
    dr3.read_results(folder, results)


def read_deepresearchgym(folder: Path, system: str | None, results: Results) -> None:
    """Add the results of a file for each system, whose folder has its name."""
    for file in _files(folder, f"{deepresearchgym.FILE}*.json"):
        deepresearchgym.read_results(file, system or file.absolute().parent.name, results)


def _files(folder: Path, pattern: str) -> Iterator[Path]:
    if folder.is_file():
        yield from [folder] if folder.match(pattern) else []
        return
    for file in sorted(folder.rglob(pattern)):
        if not any(part.startswith(".") for part in file.relative_to(folder).parts):
            yield file


def _first_keys(file: Path) -> set[str]:
    """The keys of a file's first row that can be read, none if it is not an object.

    Raises FormatError, also if there are lines, and none of the first can be read.
    """
    try:
        with file.open("rb") as file_lines:
            lines = [
                file_lines.readline(_FIRST_LINE).removeprefix(b"\xef\xbb\xbf") for _ in range(_FIRST_LINES)
            ]
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}") from error
    for line in lines:
        with suppress(*UNREADABLE):
            row: Any = msgspec.json.decode(line)
            return set(row) if isinstance(row, dict) else set()
    if any(map(bytes.strip, lines)):
        raise FormatError("not JSON; a file of JSON Lines has one object per line")
    return set()


def _system(file: Path, endings: tuple[str, ...]) -> str:
    """The system that a file of results is about: its folder's name, or the file name before one of `endings`."""
    for ending in endings:
        if file.stem == ending:
            return file.absolute().parent.name
        if file.stem.endswith(f"_{ending}"):
            return file.stem.removesuffix(f"_{ending}")
    return file.stem


READERS: dict[str, Reader] = {
    "deepresearch-bench": read_deepresearch_bench,
    "livedrbench": read_livedrbench,
    "dr3-eval": read_dr3,
    "deepresearchgym": read_deepresearchgym,
}
"""What reads the results of a benchmark, by its name."""


def recorded_in(folder: Path, *benchmarks: str) -> str:
    """The one of `benchmarks`, or of all, whose results are in `folder`; "" if it has none."""
    for benchmark in benchmarks or READERS:
        results = Results()
        with suppress(FormatError):
            READERS[benchmark](folder, None, results)
        if results.found:
            return benchmark
    return ""
