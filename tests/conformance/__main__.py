"""`python -m tests.conformance DIR [--json]`: runs every case file below DIR.

DIR is laid out like `tests/golden/`, or is one of its folders; files are found by their names. Exit code 0 if every
case of every file passes, 1 if one fails or a file is not known, 2 if there is nothing to run.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import msgspec

from tests.conformance import dr3, drmi, fact, livedrbench, liveresearchbench, race, rigorous, rubrics, stats
from tests.conformance.case import Check, Checker

# One module per folder. Each has CHECKS (file-name pattern -> checker) and DATA (patterns of plain data files).
FOLDERS = (dr3, drmi, fact, livedrbench, liveresearchbench, race, rigorous, rubrics, stats)
PLAIN = ("INDEX.md", "README.md", "*.expected.json", "langchain_*.jsonl", "slime.json", "nemo_gym.json")
FAILURES_SHOWN = 5

# What a checker may raise over a file that is malformed or over code that is wrong.
FAULTS = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError, msgspec.MsgspecError)


class Outcome(NamedTuple):
    """The cases of one file: how many passed, of how many, and the failures."""

    file: str
    passed: int
    total: int
    failures: list[str]

    @property
    def ok(self) -> bool:
        return self.passed == self.total


def find_checker(path: Path) -> Checker | None:
    """The checker of a case file, by its name."""
    checks = ((pattern, check) for folder in FOLDERS for pattern, check in folder.CHECKS.items())
    return next((check for pattern, check in checks if fnmatch(path.name, pattern)), None)


def is_data(path: Path) -> bool:
    """Whether a file belongs to the cases of other files."""
    patterns = PLAIN + tuple(pattern for folder in FOLDERS for pattern in folder.DATA)
    return any(fnmatch(path.name, pattern) for pattern in patterns)


def run_file(path: Path, name: str) -> Outcome | None:
    """Runs one file; None for a plain data file."""
    checker = find_checker(path)
    if checker is None:
        return None if is_data(path) else Outcome(name, 0, 1, ["no checker knows this file"])
    checks = list(_guarded(checker, path))
    failures = [f"{case}: {detail}" for case, ok, detail in checks if not ok]
    return Outcome(name, len(checks) - len(failures), len(checks), failures)


def _guarded(checker: Checker, path: Path) -> Iterator[Check]:
    found = False
    try:
        for check in checker(path):
            found = True
            yield check
    except FAULTS as fault:
        yield "(file)", False, f"{type(fault).__name__}: {fault}"
        return
    if not found:
        yield "(file)", False, "holds no case"


def run_folder(folder: Path) -> list[Outcome]:
    """Runs every case file below a folder, in the order of their paths; `published/` is what `tests.recorded` reads."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    files = [path for path in files if path.relative_to(folder).parts[0] != "published"]
    outcomes = (run_file(path, path.relative_to(folder).as_posix()) for path in files)
    return [outcome for outcome in outcomes if outcome is not None]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--json", action="store_true", help="a list of file, passed and total")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        print(f"{options.folder}: no such folder", file=sys.stderr)
        return 2
    outcomes = run_folder(options.folder)
    if options.json:
        print(
            json.dumps([{"file": o.file, "passed": o.passed, "total": o.total} for o in outcomes], indent=1)
        )
    else:
        _print_outcomes(outcomes)
    if not outcomes:
        print(f"{options.folder}: no case files", file=sys.stderr)
        return 2
    return 0 if all(outcome.ok for outcome in outcomes) else 1


def _print_outcomes(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        print(f"{outcome.file} {outcome.passed}/{outcome.total}")
        for failure in outcome.failures[:FAILURES_SHOWN]:
            print(f"    {failure}")
        if len(outcome.failures) > FAILURES_SHOWN:
            print(f"    and {len(outcome.failures) - FAILURES_SHOWN} more")


if __name__ == "__main__":
    sys.exit(main())
