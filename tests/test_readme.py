"""The documents: the README's commands are run as written, and the paths and packages that documents name exist."""

import importlib.util
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import run
from tests.examples import tracked
from tests.guide import GUIDE, IN_GUIDE, README, SERVER, block, folder, judge
from tests.house import FLOORS
from tests.worlds import ADJUDGE

__all__ = ["folder"]

ROOT = Path(__file__).parent.parent
DOCUMENTS = [
    path.relative_to(ROOT)
    for pattern in (
        "*.md",
        "docs/*.md",
        "docs/concepts/*.md",
        "docs/protocols/*.md",
        "docs/reference/*.md",
        "deploy/*.md",
        "benchmarks/README.md",
        "engine/adapters/*.md",
        "scoring/kernels/*.md",
        "tests/golden/*.md",
    )
    for path in sorted(ROOT.glob(pattern))
]
DOCUMENTS += [path.relative_to(ROOT) for path in tracked() if path.match("README.md")]
MODULES = sorted(
    {
        name
        for path in DOCUMENTS
        for name in re.findall(r"python -m ([\w.]+)", (ROOT / path).read_text("utf-8"))
    }
)
PATH = re.compile(
    r"(?<![\w./-])(?:benchmarks|deploy|docs|engine|examples|fetchers|judges|prompts|scoring|tests)/[\w./-]*[\w/]"
    r"|(?<=`)[\w-]+(?:/[\w-]+)+\.py(?=`)"
)


COMMANDS = [
    shlex.split(line, comments=True)[1:]
    for line in block("adjudge evaluate", IN_GUIDE).splitlines()
    if line.startswith("adjudge ")
]


def adjudge(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code, out, error = run(capsys, *arguments)
    # 3: one of the mock's answers leaves a scorecard unscored; the gold that it drafts has problems
    may_fall_short = arguments[0] == "evaluate" or "--check" in arguments
    assert code in ((0, 3) if may_fall_short else (0,)), (arguments, error)
    return out


def viewed(arguments: list[str]) -> str:
    """The first output of `adjudge view`, which is then ended as by Ctrl-C."""
    with subprocess.Popen(
        [*ADJUDGE, *arguments, "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.wait(60)
    return said


def test_commands_work_as_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    said: dict[str, str] = {}
    with judge() as url:
        config = block("# adjudge.yaml").replace(SERVER, url)
        (folder / "adjudge.yaml").write_text(config, encoding="utf-8")
        adjudge(capsys, "evaluate", "adjudge.yaml", "--out", "runs/second", "--repeats", "2")
        for arguments in COMMANDS:
            said[
                " ".join(part for part in arguments if part in ("--human", "--preferences", "--export"))
                or arguments[0]
            ] = (
                viewed(arguments)
                if arguments[0] == "view" and "--export" not in arguments
                else adjudge(capsys, *arguments)
            )
    assert set(said) == {
        "citations",
        "gold",
        "plan",
        "evaluate",
        "show",
        "view",
        "--export",
        "compare",
        "--human",
        "--preferences",
        "ls",
        "leaderboard",
    }
    assert "http://127.0.0.1:" in said["view"]
    assert all(said.values())


def test_readme_is_one_page_and_the_guide_has_its_commands() -> None:
    assert len(README.splitlines()) < 150
    shown = {line.partition("#")[0].strip() for line in block("adjudge evaluate").splitlines()}
    assert shown <= {
        line.partition("#")[0].strip() for line in block("adjudge evaluate", IN_GUIDE).splitlines()
    }
    assert block("# adjudge.yaml").splitlines()[2:] == block("# adjudge.yaml", IN_GUIDE).splitlines()[2:]


def test_rewards_work_as_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with judge() as url:
        config = block("# adjudge.yaml").replace(SERVER, url) + block("# rewards.yaml")
        (folder / "rewards.yaml").write_text(config, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-c", block("RewardModel")],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    value, reason = done.stdout.split(maxsplit=1)
    assert done.returncode == 0 and (0 < float(value) < 1) and reason.strip() == "None", done.stderr
    assert run(capsys, "serve", "--help")[0] == 0


def test_python_works_as_written(folder: Path) -> None:
    with judge() as url:
        config = block("# adjudge.yaml").replace(SERVER, url).replace("my-judge", "m")
        (folder / "adjudge.yaml").write_text(config, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-c", block("adjudge.evaluate(", IN_GUIDE)],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    *_, difference, value = done.stdout.split()
    assert -1 <= float(difference) <= 1
    assert 0 <= float(value) <= 1


def test_doctor_and_store_commands_work_as_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert "adjudge doctor adjudge.yaml" in README and "adjudge store ls/compact/prune/repair URI" in GUIDE
    (folder / "adjudge.yaml").write_text(block("# adjudge.yaml").replace("my-judge", "m"), encoding="utf-8")
    code, out, _ = run(capsys, "doctor", "adjudge.yaml")
    assert code in (0, 1) and "judge" in out
    for action in ("ls", "compact", "prune"):
        assert run(capsys, "store", action, "--help")[0] == 0


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_named_paths_exist(document: Path) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    named = {
        path for path in PATH.findall(text) if "/runs/" not in path
    }  # a run's files are made by a command
    missing = [
        path for path in named if not any((ROOT / base / path).exists() for base in ("", document.parent))
    ]
    assert missing == []


def test_paths_are_found_in_documents() -> None:
    assert PATH.findall(
        "see `scoring/rubrics/rubrics.py`, deploy/README.md. (`matching/match_claims.py`)"
    ) == [
        "scoring/rubrics/rubrics.py",
        "deploy/README.md",
        "matching/match_claims.py",
    ]


@pytest.mark.parametrize("folder", FLOORS)
def test_architecture_lists_every_package(folder: str) -> None:
    """A table of docs/architecture.md gives each package the floor that tests/test_architecture.py holds."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    found, floor = {}, 0
    for number, package in re.findall(rf"^\| (\d*) ?\| `{folder}/([\w/.]+)` \|", text, re.MULTILINE):
        floor = int(number or floor)
        found[package.removesuffix(".py").strip("/").replace("/", ".")] = floor
    assert found == {name: floor for floor, names in enumerate(FLOORS[folder], 1) for name in names}


@pytest.mark.parametrize("module", MODULES)
def test_every_named_module_exists(module: str) -> None:
    assert importlib.util.find_spec(module) is not None


def test_demo_installs_the_pip_that_pages_call() -> None:
    """An activated environment without one would find the pip of another."""
    recipe = (ROOT / "Makefile").read_text().partition("\n.venv/demo.stamp:")[2].partition("\n\n")[0]
    installed = re.search(r"pip install --quiet --python \S+ (.*)", recipe)
    assert installed is not None and "pip" in installed[1].split()
    assert "pip>=" in (ROOT / "pyproject.toml").read_text()  # in that of `make test`


def test_coverage_runs_every_file_that_it_names() -> None:
    """A word behind --cov is its value, not a file of tests."""
    recipe = (ROOT / "Makefile").read_text().partition("\ncoverage:")[2].partition("\n\n")[0]
    assert recipe.endswith(" $(COVERED) --cov")


def test_every_named_make_target_exists() -> None:
    targets = set(re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake (demo|test[\w-]*|bench[\w-]*|peers|check)\b", README)) <= targets
