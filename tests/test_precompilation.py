"""What is compiled ahead is all that a leaderboard uses."""

import os
import subprocess
import sys
from pathlib import Path

from tests.examples import shipped

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


def test_a_leaderboard_finds_its_kernels_compiled(tmp_path: Path) -> None:
    example = shipped("quickstart", to=tmp_path)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    ahead = [sys.executable, "-m", "adjudge.scoring.kernels.precompilation"]
    subprocess.run(ahead, env=environment, check=True)
    run = [sys.executable, "-c", COUNTED, "evaluate", str(example / "adjudge.yaml")]
    done = subprocess.run(run, env=environment, capture_output=True, text=True)
    assert done.returncode == 3 and done.stderr.endswith("compiled: 0"), done.stderr
