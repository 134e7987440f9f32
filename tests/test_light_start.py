"""Each command imports what it needs: a fresh process per command, and the packages that it may not have imported."""

import argparse
import os
import socket
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from adjudge.engine.commands.main import main
from adjudge.engine.commands.parser import parser
from tests.libraries import COMPUTING, FILES, HEAVY, NETWORK
from tests.worlds import world

SHELL = {"argcomplete", "zipfile"}  # what answers a shell, and what looks up an installed package

RUN = """
import sys
from adjudge.engine.__main__ import main
try:
    main()
finally:
    sys.stderr.write("\\nimported: " + " ".join(name for name in sys.modules if "." not in name))
"""


# argcomplete ends the process without further ado, so what was imported is said just before.
ASKED = """
import os, sys
def ended(code, ends=os._exit):
    print(*sys.modules, flush=True)
    ends(code)
os._exit = ended
"""


def imported(*words: str, code: int = 0) -> set[str]:
    """The top-level modules that a command has imported when it ends with `code`."""
    done = subprocess.run([sys.executable, "-c", RUN, *words], capture_output=True, text=True)
    said, _, names = done.stderr.rpartition("imported: ")
    assert done.returncode == code, said
    return set(names.split())


def commands() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command by its name."""
    (found,) = (one for one in parser()._actions if isinstance(one, argparse._SubParsersAction))
    return dict(found.choices)


COMMANDS = commands()


@pytest.mark.parametrize("words", [[], ["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)])
def test_help_imports_no_library(words: list[str]) -> None:
    found = imported(*words)
    assert found & (HEAVY | FILES) == set()
    assert words == ["--version"] or found & SHELL == set()


@pytest.mark.parametrize("words", [["evalute"], ["evaluate", "--stroe", "s", "a.yaml"], ["show"]])
def test_mistake_imports_no_library(words: list[str]) -> None:
    assert imported(*words, code=2) & (HEAVY | FILES) == set()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run and the store of a small world."""
    folder = tmp_path_factory.mktemp("light")
    with pytest.raises(SystemExit):
        main(["evaluate", str(world(folder, systems=2, tasks=2))])
    return folder


def test_reading_commands_import_nothing_heavy(run: Path) -> None:
    show = ("show", str(run / "run"), "--task", "0", "--system", "system0")
    for words in (("store", "ls", str(run / "store")), show, (*show, "--json")):
        assert imported(*words) & (HEAVY | SHELL | {"yaml"}) == set(), words
    assert imported("snapshot", str(run / "run"), "--out", str(run / "pages"), code=2) & COMPUTING == set()


def test_run_imports_what_computes_its_leaderboard_only_then(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    words = ("evaluate", str(world(tmp_path)), "--judge", f"openai:http://127.0.0.1:{port}/v1#m")
    assert imported(*words, code=1) & COMPUTING == set()


def test_run_without_live_pages_imports_no_network(tmp_path: Path) -> None:
    found = imported("evaluate", str(world(tmp_path, systems=1, tasks=1)))
    assert found & {"aiohttp", "aiodns", "pypdfium2"} == set()


def test_run_of_one_report_imports_no_compiler_and_no_pandas(tmp_path: Path) -> None:
    found = imported("evaluate", str(world(tmp_path, systems=1, tasks=1)))
    assert find_spec("pandas") and found & {"numba", "llvmlite", "pandas"} == set()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("adjudge ev", {"evaluate "}),
        ("adjudge evaluate --protocol ra", {"race "}),
        ("adjudge evaluate --format dra", {"draco "}),
        ("adjudge evaluate --fetch ", {"live", "snapshot", "off"}),
        ("adjudge export run --format wan", {"wandb "}),
        ("adjudge import results --format dr", {"dr3-eval "}),
        ("adjudge store prune --da", {"--days "}),
        ("adjudge plan a.y", {"a.yaml "}),
        ("adjudge nonsense --wh", set()),
        ("adjudge plan 'un", set()),
    ],
)
def test_completion_offers_what_fits_and_stays_light(tmp_path: Path, line: str, offered: set[str]) -> None:
    (tmp_path / "a.yaml").touch()
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    answer = {"_ARGCOMPLETE_STDOUT_FILENAME": str(tmp_path / "answer")}
    done = subprocess.run(
        [sys.executable, "-c", ASKED + RUN],
        cwd=tmp_path,
        env={**os.environ, **asked, **answer},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert set((tmp_path / "answer").read_text().split("\n")) - {""} == offered
    assert {name.split(".")[0] for name in done.stdout.split()} & (HEAVY | FILES) == set()


def test_every_command_has_its_module() -> None:
    for command in COMMANDS.values():
        module = import_module(f"adjudge.engine.commands.{command.get_default('module')}")
        assert callable(module.run)


def test_viewer_computes_no_statistics() -> None:
    """It shows boards that were computed before; only a run at work needs more."""
    code = "import sys, adjudge.engine.viewer; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not COMPUTING & set(done.stdout.split())


def test_template_is_compiled_once(tmp_path: Path) -> None:
    find = "; of('adjudge.engine.tables').get_template('leaderboard.html.jinja')"
    find = f"from adjudge.engine.tables.page import _templates as of{find}"
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    for before in ("", "import jinja2; jinja2.Environment.compile = None; "):
        subprocess.run([sys.executable, "-c", before + find], env=environment, check=True)


@pytest.mark.parametrize("worker", ["adjudge.fetchers.worker", "adjudge.scoring.text.worker"])
def test_a_worker_imports_neither_network_nor_stores(worker: str) -> None:
    code = f"import sys, {worker}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert not (NETWORK | COMPUTING | FILES) & set(done.stdout.split())
