"""The wheel of what is committed."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
UV = Path(sys.executable).parent / "uv"


def build_wheel(folder: Path) -> Path:
    """Build it in `folder`; its path."""
    source = folder / "source"
    subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(source)], check=True)
    subprocess.run([UV, "build", "--quiet", "--wheel", "--out-dir", str(folder), str(source)], check=True)
    (wheel,) = folder.glob("adjudge-*.whl")
    return wheel
