"""The wheel holds every module and every file that the code reads."""

import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import nbformat
import pytest

from tests.examples import shipped
from tests.guide import BLOCKS, IN_GUIDE, SERVER, block, folder, judge
from tests.wheel import ROOT, UV, build_wheel
from tests.worlds import world

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
    """The Python of an environment that has nothing but the wheel and what a notebook needs, kernels compiled."""
    python = tmp_path_factory.mktemp("alone") / "environment" / "bin" / "python"
    subprocess.run([UV, "venv", "--quiet", str(python.parent.parent)], check=True)
    beside = ["ipykernel", "nbclient", "nbconvert", "pandas"]
    subprocess.run(
        [UV, "pip", "install", "--quiet", "--python", str(python), str(wheel), *beside], check=True
    )
    subprocess.run([python, "-m", "adjudge.scoring.kernels.precompilation"], check=True)
    return python


COUNTED = """
import sys
from numba.core import event
from adjudge.engine.commands.main import main
with event.install_recorder("numba:compile") as compiled:
    try:
        main()
    finally:
        sys.stderr.write(f"compiled: {len(compiled.buffer)}")
"""


def test_a_leaderboard_finds_its_kernels_compiled(alone: Path, tmp_path: Path) -> None:
    """What is compiled ahead is all that a leaderboard uses."""
    example = shipped("quickstart", to=tmp_path)
    done = subprocess.run(
        [alone, "-c", COUNTED, "evaluate", str(example / "adjudge.yaml")],
        env={"PATH": str(alone.parent), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3 and done.stderr.endswith("compiled: 0"), done.stderr


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
        shipped(name, to=tmp_path)
    file = tmp_path / "notebook" / "adjudge.ipynb"
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


PROJECT = """[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "wordcount"
version = "1"
dependencies = ["adjudge"]

[project.entry-points."adjudge.protocols"]
wordcount = "wordcount:WordCount"

[tool.setuptools]
packages = ["wordcount"]
package-data = {wordcount = ["*.md"]}
"""


@pytest.fixture(scope="module")
def extended(alone: Path, tmp_path_factory) -> Path:
    """The Python of that environment, after a distribution with a protocol was built and installed into it."""
    folder = tmp_path_factory.mktemp("outside")
    package = folder / "source" / "wordcount"
    package.mkdir(parents=True)
    (folder / "source" / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    shutil.copy(ROOT / "tests/outside_protocol/wordcount.py", package / "__init__.py")
    shutil.copy(ROOT / "tests/outside_protocol/length.en.md", package)
    build = [UV, "build", "--quiet", "--wheel", "--out-dir", str(folder), str(folder / "source")]
    subprocess.run(build, check=True)
    (built,) = folder.glob("wordcount-*.whl")
    subprocess.run([UV, "pip", "install", "--quiet", "--python", str(alone), str(built)], check=True)
    return alone


def test_protocol_of_another_distribution_works(extended: Path, tmp_path: Path) -> None:
    """From both wheels: it is planned, evaluated, ranked, shown, and offered for a misspelt name."""

    def typed(*words: str, code: int = 0) -> str:
        done = subprocess.run(
            [extended.parent / "adjudge", *words],
            cwd=tmp_path,
            env={"PATH": str(extended.parent), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    config = str(world(tmp_path, systems=2, tasks=3, protocols=["wordcount"]))
    assert json.loads(typed("plan", config, "--json"))["questions"] == {"Length": 6}
    typed("evaluate", config)
    assert "wordcount (judge: lexical; ranked by fits" in typed("leaderboard", "run")
    assert "Length" in typed("show", "run", "--task", "1", "--system", "system0")
    typed("view", "run", "--export", "pages")
    pages = [file.read_text(encoding="utf-8") for file in (tmp_path / "pages").rglob("*.html")]
    assert any("wordcount" in page for page in pages)
    assert "wordcount" in typed("evaluate", config, "--protocol", "wordcuont", code=2)
