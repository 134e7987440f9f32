"""Commands on disks in memory, one after another, each in a fork of one process that has imported adjudge.

    unshare --mount python -m tests.full_disks < JOBS.json

A disk is mounted for each, filled, copied when the command has ended, and unmounted. The commands' exit codes are a
JSON list on stdout.
"""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import msgspec

from adjudge.engine import commands
from adjudge.engine.__main__ import main

MOUNT = """
set -e
mount -t tmpfs -o size=256k disk "$1"
cp -a "$2/." "$1"
{fill}
"""
"""A script that fills a new disk at $1, which has what is in the folder $2."""


class Job(msgspec.Struct):
    """A command, and where: `disk` is mounted, has what is in `content` and is copied to `kept`."""

    words: list[str]
    fill: str
    disk: str
    kept: str
    content: str
    errors: str


def run(job: Job) -> None:
    """The command itself, with its errors in a file."""
    with Path(job.errors).open("wb") as errors, Path(os.devnull).open("wb") as nothing:
        os.dup2(errors.fileno(), 2)
        os.dup2(nothing.fileno(), 1)
    sys.argv = ["adjudge", *job.words]
    main()


if __name__ == "__main__":
    for found in iter_modules(commands.__path__, "adjudge.engine.commands."):
        import_module(found.name)
    codes: list[int] = []
    for job in msgspec.json.decode(sys.stdin.buffer.read(), type=list[Job]):
        subprocess.run(["sh", "-c", MOUNT.format(fill=job.fill), "sh", job.disk, job.content], check=True)
        child = os.fork()
        if child == 0:
            run(job)
            sys.exit()
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        subprocess.run(["cp", "-a", f"{job.disk}/.", job.kept], check=False)
        subprocess.run(["umount", "--lazy", job.disk], check=True)
    sys.stdout.write(msgspec.json.encode(codes).decode())
