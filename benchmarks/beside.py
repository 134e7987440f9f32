"""A server in a process of its own, for as long as a benchmark needs it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["said_by"]


@contextmanager
def said_by(module: str, *arguments: str) -> Iterator[str]:
    """The first line that `python -m module` prints; the process is killed when the block ends."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()
