"""Mutation testing of the protocols: the share of single changes in scoring/ (except its kernels) that tests notice.

    python -m benchmarks.mutants [--quick] [--json]

Of all mutants that mutmut's operators make of the modules (except strings, most of which are text for people), 300 are
drawn with a fixed seed (quick: 2 of `rubrics`, run with its own tests only). A new process imports each mutant in place
of its module and runs the tests that execute the mutated function until one fails, the shortest first. A mutant outside
of functions meets the tests that execute its module or are in a file that names it. No file is changed. Mutants that
cannot be imported are not drawn, since they would flatter the result. A mutant whose tests take ten times as long as
without it counts as killed, since the test run's own time limit would end it. Equivalent mutants, which no test could
tell from the original, are not excluded.
"""

import importlib.machinery
import itertools
import multiprocessing
import os
import re
import resource
import signal
import sys
import tempfile
import types
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Literal, NoReturn

import coverage
import msgspec
import pytest

from benchmarks.mutant import Mutant, drawn
from benchmarks.timing import Row, alone, main

ROOT = Path(__file__).resolve().parent.parent
TESTS = (
    "attack citations conformance documents dr3 drmi fact livedr pairwise protocols published race real_reports "
    "rewards rigorous rler rubric_items rubrics scoring_expected"
).split()
# What the tests need of others is imported once; each process is a fork of one that has it.
PRELOADED = (
    "aiohttp hypothesis libcst lxml mutmut.mutation.mutators numba numpy pandas pyarrow.parquet pytest pytest_asyncio "
    "schemathesis.pytest.plugin scipy.stats trafilatura"
).split()
QUIET = (
    "-q",
    *("-p", "no:cacheprovider"),
    *("-m", "not vllm and not soak"),
    "--hypothesis-seed=0",
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of what is preloaded
    *("-W", "ignore::coverage.exceptions.CoverageWarning"),
)
SEED, SAMPLE = 20, 300
QUICK, QUICK_SAMPLE = ("rler", "rubric_items", "rubrics"), 2
WHOLE = "rubrics.rubrics"
AIM = 0.85
MEMORY = 8 << 30  # bytes a process may have
LOST = 255  # what multiprocessing gives where it could not read how a process ended
KILLED = {pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED, pytest.ExitCode.NO_TESTS_COLLECTED}

Outcome = Literal["killed", "timed out", "survived"]
_forks = multiprocessing.get_context("forkserver")


class Trace(msgspec.Struct, frozen=True):
    """The seconds that each test takes, which tests run a line of a file, and which are in files that name a module.

    The lines of a test exclude what runs at import, so tests of a module's tables are found by the module's name.
    """

    seconds: dict[str, float]
    running: dict[str, dict[int, set[str]]]
    naming: dict[str, set[str]]

    def reaching(self, mutant: Mutant) -> dict[str, float]:
        """The tests that run the mutated code, with their seconds, the shortest first."""
        lines, body = self.running.get(str(mutant.path), {}), mutant.body()
        found = {test for line in lines if body is None or line in body for test in lines[line]}
        if body is None:
            found |= self.naming.get(mutant.module, set())
        return {test: self.seconds[test] for test in sorted(found, key=self.seconds.__getitem__)}


def trace(tests: Sequence[str]) -> Trace:
    """Run tests/test_*.py of these names as the code stands. Raises RuntimeError if one fails."""
    with tempfile.TemporaryDirectory() as folder:
        seconds, lines = Path(folder, "seconds"), Path(folder, "lines")
        _run(partial(_trace, tests, seconds, lines), None)
        if not seconds.exists():
            raise RuntimeError("a test fails without any mutant")
        traced = coverage.CoverageData(str(lines))
        traced.read()
        running = {
            file: {
                line: {phase.rpartition("|")[0] for phase in phases} - {""}
                for line, phases in traced.contexts_by_lineno(file).items()
            }
            for file in traced.measured_files()
        }
        taken = msgspec.json.decode(seconds.read_bytes(), type=dict[str, float])
        return Trace(taken, running, _naming(taken))


def _naming(tests: Iterable[str]) -> dict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for file, of_file in itertools.groupby(sorted(tests), lambda test: test.partition("::")[0]):
        own = set(of_file)
        for module in re.findall(r"adjudge\.scoring\.([\w.]+)", (ROOT / file).read_text(encoding="utf-8")):
            found[module] |= own
    return found


class _Seconds:
    """A pytest plugin: the seconds of each test, including its set-up."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.of[report.nodeid] += report.duration  # type: ignore[assignment]


def _trace(tests: Sequence[str], out: Path, lines: Path) -> int:
    os.environ["COVERAGE_FILE"] = str(lines)
    seconds = _Seconds()
    traced = ("-n", "auto", "--cov", "--cov-context=test", "--cov-report=", "--cov-fail-under=0")
    code = pytest.main([*QUIET, *traced, *(f"tests/test_{name}.py" for name in tests)], plugins=[seconds])
    if code == 0:
        out.write_bytes(msgspec.json.encode(seconds.of))
    return code


def outcome(mutant: Mutant, tests: dict[str, float]) -> Outcome:
    """What becomes of the mutant in these tests. Raises RuntimeError if they cannot be run."""
    work, limit_s = partial(_meet, mutant, tests), 30 + 10 * sum(tests.values())
    code = _run(work, limit_s) if tests else 0
    if code == LOST:
        code = _run(work, limit_s)
    if code is None:
        return "timed out"
    if code in KILLED or code < 0:  # by a signal
        return "killed"
    if code != 0:
        raise RuntimeError(f"the tests ended with {code} for\n{mutant.diff}")
    return "survived"


class _Chosen:
    """A plugin of pytest: runs these tests and no others, in this order."""

    def __init__(self, tests: dict[str, float]) -> None:
        self._order = {test: place for place, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self._order]
        items[:] = sorted(chosen, key=lambda item: self._order[item.nodeid])


def _meet(mutant: Mutant, tests: dict[str, float]) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    _import_instead(mutant)
    files = sorted({test.partition("::")[0] for test in tests})
    return pytest.main([*QUIET, "-x", *files], plugins=[_Chosen(tests)])


def _import_instead(mutant: Mutant) -> None:
    loader = importlib.machinery.SourceFileLoader
    original = loader.get_code

    def get_code(self: importlib.machinery.SourceFileLoader, fullname: str) -> types.CodeType | None:
        if fullname == f"adjudge.scoring.{mutant.module}":
            return compile(mutant.source, mutant.path, "exec", dont_inherit=True)
        return original(self, fullname)

    loader.get_code = get_code  # type: ignore[method-assign]


def _run(work: Callable[[], int], limit_s: float | None) -> int | None:
    """The exit status of `work` in a process, with those that it starts; None: it ran too long."""
    process = _forks.Process(target=_child, args=(work,))
    process.start()
    process.join(limit_s)
    code = process.exitcode
    if code is None and process.pid is not None:
        os.killpg(process.pid, signal.SIGKILL)
        process.join()
    return code


def _child(work: Callable[[], int]) -> NoReturn:
    os.setsid()
    os.chdir(ROOT)
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    with tempfile.TemporaryDirectory() as examples:
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = examples
        code = work()
    os._exit(code)


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Trace the tests, let the sample meet them, and count."""
    _forks.set_forkserver_preload(PRELOADED)
    tests = trace(QUICK if quick else TESTS)
    sample = (mutant for mutant in drawn(SEED) if not quick or mutant.module == WHOLE)
    mutants = list(itertools.islice(sample, QUICK_SAMPLE if quick else SAMPLE))
    whole = Mutant(WHOLE, (1, 1), (ROOT / "scoring/rubrics/rubrics.py").read_text(encoding="utf-8"))
    if outcome(whole, tests.reaching(whole)) != "survived":
        raise RuntimeError("a module that is not changed is killed")
    found: Counter[Outcome] = Counter()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutant, became in zip(mutants, pool.map(partial(_became, tests), mutants), strict=True):
            found[became] += 1
            told = f":\n{mutant.diff}" if became == "survived" else ""
            print(f"{became:>9}  {mutant.path.name}:{mutant.lines[0]}{told}", file=sys.stderr, flush=True)
    killed = (len(mutants) - found["survived"]) / len(mutants)
    yield Row("mutants killed", killed, AIM, "aim", killed / AIM, "", len(mutants), 1)
    yield alone("mutants killed by their time limit", found["timed out"], "", n=len(mutants))


def _became(tests: Trace, mutant: Mutant) -> Outcome:
    return outcome(mutant, tests.reaching(mutant))


if __name__ == "__main__":
    main(__doc__, rows)
