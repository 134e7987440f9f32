"""The shipped examples as git tracks them, without the stores and runs that an evaluation left beside them."""

import atexit
import fnmatch
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import msgspec

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.run import RunConfig
from adjudge.engine.runs.record import RunRecord

ROOT = Path(__file__).parent.parent


def shipped(name: str, to: Path | None = None) -> Path:
    """The folder of example `name`: a copy in the folder `to`, or the one copy that this process's tests only read.

    A test that writes into the folder needs `to`, and so does one that evaluates the example with the store or the run
    folder that its configuration names.
    """
    example = _copies() / name
    return example if to is None else shutil.copytree(example, to / name)


def evaluated(name: str, folder: Path, run: str = "run") -> Path:
    """A run of example `name` with its own judge: the folder `run` in `folder`, beside its store.

    A copy: this process evaluates each example once.
    """
    kept = _evaluated(name)
    shutil.copytree(kept / "store", folder / "store", dirs_exist_ok=True)
    copy = shutil.copytree(kept / "run", folder / run)
    record = RunRecord.read(copy)
    config = msgspec.structs.replace(record.config, store=str(folder / "store"), out=str(copy))
    msgspec.structs.replace(record, config=config).write(copy)
    return copy


@cache
def tracked() -> list[Path]:
    """The examples' files that git tracks, sorted; in a source distribution, those that .gitignore lets pass."""
    command = ["git", "ls-files", "-z", "examples"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        listed = ""
    files = [ROOT / name for name in listed.split("\0") if name]
    if not files:
        ignored = [name.rstrip("/") for name in (ROOT / ".gitignore").read_text(encoding="utf-8").split()]
        files = [
            path
            for path in (ROOT / "examples").rglob("*")
            if not any(
                fnmatch.fnmatch(part, name) for part in path.relative_to(ROOT).parts for name in ignored
            )
        ]
    return sorted(path for path in files if path.is_file())


@cache
def _evaluated(name: str) -> Path:
    """A folder with the run and the store of example `name`, deleted when this process ends."""
    folder = _folder()
    config = shipped(name) / "adjudge.yaml"
    evaluate(RunConfig.load(config, out=str(folder / "run"), store=str(folder / "store")))
    return folder


def _folder() -> Path:
    """A new folder, deleted when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="adjudge-examples-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _copies() -> Path:
    """A folder with a copy of every example, deleted when this process ends."""
    folder = _folder()
    for file in tracked():
        copy = folder / file.relative_to(ROOT / "examples")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    return folder
