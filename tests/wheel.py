"""The wheel of the commit."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
UV = Path(sys.executable).parent / "uv"


def cloned(folder: Path) -> Path:
    """A clone in `folder`."""
    subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(folder)], check=True)
    return folder


def build_wheel(folder: Path) -> Path:
    """Build it in `folder`; its path."""
    source = cloned(folder / "source")
    subprocess.run([UV, "build", "--quiet", "--wheel", "--out-dir", str(folder), str(source)], check=True)
    (wheel,) = folder.glob("adjudge-*.whl")
    return wheel
