"""The files of deploy/, and the tools that check them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"


def tool(name: str) -> str:
    """The path of `name`; without it a test is skipped, or fails in CI."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        said = f"{name} is not installed: make test installs it where it may"
        if os.environ.get("CI"):
            pytest.fail(said)
        pytest.skip(said)
    return found


def checked(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
