"""What a process that has freed memory still holds."""

import subprocess
import sys

FREED = """
from pathlib import Path
from adjudge.engine.evaluation.memory import give_back

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

held = [bytes(900) for _ in range(200_000)]
kept = held[::1_000]  # so that the heap cannot shrink by itself
before = resident()
del held
give_back()
print(before - resident())
"""


def test_freed_memory_goes_back_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 100e6, "of 180 MB"
