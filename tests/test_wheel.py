"""The wheel holds every module and every file that the code reads."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("engine", "judges", "fetchers", "scoring", "prompts")
READ = {".py", ".md", ".jsonl", ".html", ".css", ".js", ".typed"}


@pytest.fixture(scope="module")
def names(tmp_path_factory) -> set[str]:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(source)], check=True)
    uv = Path(sys.executable).parent / "uv"
    subprocess.run([uv, "build", "--quiet", "--wheel", "--out-dir", str(folder), str(source)], check=True)
    (wheel,) = folder.glob("adjudge-*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


def test_it_holds_all_that_is_read(names):
    tracked = subprocess.run(
        ["git", "ls-files", *FOLDERS], cwd=ROOT, check=True, capture_output=True, text=True
    )
    wanted = {
        f"adjudge/{file}"
        for file in tracked.stdout.splitlines()
        if Path(file).suffix in READ and Path(file).name != "README.md"
    }
    assert wanted - names == set()


def test_it_holds_nothing_else_of_the_checkout(names):
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "adjudge/tests"))]
