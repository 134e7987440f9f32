"""`adjudge serve`, and a judge for it, as processes of their own, for tests and benchmarks."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SERVE = [sys.executable, "-m", "adjudge.engine", "serve"]


@contextlib.contextmanager
def reward_server(
    config: Path, *arguments: str, token: str = ""
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The URL of a server of `config` on a free port, and its process, which is terminated on exit."""
    environment = {**os.environ, "ADJUDGE_TOKEN": token}
    command = [*SERVE, str(config), "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            assert url.startswith("http"), "the server did not start"
            yield url, process
        finally:
            process.terminate()
            process.wait(30)


@contextlib.contextmanager
def judge_server(latency: float = 0.0) -> Iterator[str]:
    """The URL of a mock judge whose answers differ from text to text (`tests.mock_openai`)."""
    command = [sys.executable, "-m", "tests.mock_openai", "--latency", str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
