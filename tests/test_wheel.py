"""The wheel holds every module and every file that the code reads."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.wheel import ROOT, build_wheel

FOLDERS = ("engine", "judges", "fetchers", "scoring", "prompts")
READ = {".py", ".md", ".jsonl", ".html", ".css", ".js", ".typed"}


@pytest.fixture(scope="module")
def names(tmp_path_factory) -> set[str]:
    return set(zipfile.ZipFile(build_wheel(tmp_path_factory.mktemp("wheel"))).namelist())


def test_wheel_holds_every_file_that_is_read(names):
    tracked = subprocess.run(
        ["git", "ls-files", *FOLDERS], cwd=ROOT, check=True, capture_output=True, text=True
    )
    wanted = {
        f"adjudge/{file}"
        for file in tracked.stdout.splitlines()
        if Path(file).suffix in READ and Path(file).name != "README.md"
    }
    assert wanted - names == set()


def test_wheel_holds_nothing_else_of_the_checkout(names):
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "adjudge/tests"))]
