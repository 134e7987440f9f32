"""Commands in processes of their own that start at once: each is a fork of one that has imported adjudge.

    done = forked("evaluate", config, path=folder)

For tests to which it matters that a command has a process, but not how that one starts.
"""

import atexit
import os
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import NoReturn

import msgspec

ROOT = Path(__file__).parent.parent


class Job(msgspec.Struct):
    """A command with its working directory and environment, and the largest file that it may write, in bytes."""

    words: list[str]
    folder: str
    environment: dict[str, str]
    limit: int | None


class Done(msgspec.Struct):
    """The exit code of a command and what it said."""

    returncode: int
    stdout: str
    stderr: str


def forked(*words: object, path: Path | None = None, limit: int | None = None) -> Done:
    """Run `adjudge` with `words`; it finds packages in the folder `path` and writes no file of over `limit` bytes."""
    environment = {**os.environ} if path is None else {**os.environ, "PYTHONPATH": str(path)}
    parent = _parent()
    assert parent.stdin is not None and parent.stdout is not None
    parent.stdin.write(
        msgspec.json.encode(Job([*map(str, words)], str(Path.cwd()), environment, limit)) + b"\n"
    )
    parent.stdin.flush()
    return msgspec.json.decode(parent.stdout.readline(), type=Done)


@cache
def _parent() -> "subprocess.Popen[bytes]":
    """The process that is forked. It ends with this one."""
    command = [sys.executable, "-m", "tests.forks"]
    parent = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(parent.communicate)
    return parent


def _run(job: Job, out: int, err: int) -> NoReturn:
    """The command itself, in the fork."""
    for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), out, err)):
        os.dup2(file, number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", 1, closefd=False) for number in (1, 2))
    os.chdir(job.folder)
    os.environ.clear()
    os.environ |= job.environment
    if "PYTHONPATH" in job.environment:
        sys.path.insert(0, job.environment["PYTHONPATH"])
    if job.limit is not None:
        sys.dont_write_bytecode = True  # Python would keep what the limit cut off as the compiled module
        resource.setrlimit(resource.RLIMIT_FSIZE, (job.limit, job.limit))
    sys.argv = ["adjudge", *job.words]
    main()
    sys.exit()


def _said(pipe: int) -> str:
    with os.fdopen(pipe, encoding="utf-8") as file:
        return file.read()


if __name__ == "__main__":
    from adjudge.engine import commands
    from adjudge.engine.__main__ import main
    from adjudge.scoring.kernels.precompilation import precompile

    for found in iter_modules(commands.__path__, "adjudge.engine.commands."):
        import_module(found.name)
    precompile()
    jobs, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    for line in jobs:
        (out, to_out), (err, to_err) = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            _run(msgspec.json.decode(line, type=Job), to_out, to_err)
        os.close(to_out)
        os.close(to_err)
        with ThreadPoolExecutor(2) as readers:
            said, error = readers.map(_said, (out, err))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        answers.write(msgspec.json.encode(Done(code, said, error)) + b"\n")
        answers.flush()
