"""The wheel holds every module and every file that the code reads."""

import shutil
import subprocess
import zipfile
from pathlib import Path

import nbformat
import pytest

from tests.test_readme import BLOCKS, IN_GUIDE, SERVER, block, folder, judge
from tests.wheel import ROOT, UV, build_wheel

__all__ = ["folder"]

FOLDERS = ("engine", "judges", "fetchers", "scoring", "prompts")
READ = {".py", ".md", ".jsonl", ".html", ".jinja", ".css", ".js", ".typed"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def test_wheel_holds_every_file_that_is_read(names):
    tracked = subprocess.run(
        ["git", "ls-files", *FOLDERS], cwd=ROOT, check=True, capture_output=True, text=True
    )
    wanted = {
        f"adjudge/{file.removeprefix('engine/package/')}"  # `import adjudge` itself
        for file in tracked.stdout.splitlines()
        if Path(file).suffix in READ and Path(file).name != "README.md"
    }
    assert wanted - names == set()


def test_wheel_holds_nothing_else_of_the_checkout(names):
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "adjudge/tests"))]


@pytest.fixture(scope="module")
def alone(wheel: Path, tmp_path_factory) -> Path:
    """The Python of an environment that has nothing but the wheel and what a notebook needs."""
    python = tmp_path_factory.mktemp("alone") / "environment" / "bin" / "python"
    subprocess.run([UV, "venv", "--quiet", str(python.parent.parent)], check=True)
    beside = ["ipykernel", "nbclient", "nbconvert", "pandas"]
    subprocess.run(
        [UV, "pip", "install", "--quiet", "--python", str(python), str(wheel), *beside], check=True
    )
    return python


@pytest.mark.parametrize("snippet", ["adjudge.evaluate(", "RewardModel"])
def test_documents_python_runs_with_the_wheel_alone(alone: Path, folder: Path, snippet: str) -> None:
    """The Python of the README and the guide, away from the checkout."""
    code = block(snippet, [*BLOCKS, *IN_GUIDE])
    with judge() as url:
        config = block("# adjudge.yaml").replace(SERVER, url).replace("my-judge", "m")
        (folder / "adjudge.yaml").write_text(config, encoding="utf-8")
        (folder / "rewards.yaml").write_text(config + block("# rewards.yaml"), encoding="utf-8")
        done = subprocess.run(
            [alone, "-c", code],
            cwd=folder,
            env={"PATH": str(alone.parent), "HOME": str(folder)},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0 and done.stdout, done.stderr


def test_notebook_runs_with_the_wheel_alone(alone: Path, tmp_path: Path) -> None:
    """In that environment, away from the checkout."""
    for name in ("notebook", "quickstart"):
        left_out = shutil.ignore_patterns("runs", ".adjudge")
        shutil.copytree(ROOT / "examples" / name, tmp_path / "examples" / name, ignore=left_out)
    file = tmp_path / "examples" / "notebook" / "adjudge.ipynb"
    done = subprocess.run(
        [alone, "-m", "nbconvert", "--to", "notebook", "--execute", "--inplace", str(file)],
        cwd=file.parent,
        env={"PATH": str(alone.parent), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outputs = [one for cell in nbformat.read(file, as_version=4).cells for one in cell.get("outputs", ())]
    shown = [one.get("data", {}) for one in outputs]
    assert any("ranked by c_acc" in data.get("text/html", "") for data in shown)
    assert any("Score(" in data.get("text/plain", "") for data in shown)
