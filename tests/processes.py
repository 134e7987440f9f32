"""The processes that this one or another has started, and free ports."""

import asyncio
import contextlib
import secrets
import socket
from pathlib import Path


def worker_processes() -> list[int]:
    """Process ids of this process's extraction workers, including dead ones not yet waited for."""
    return sorted(pid for pid in children("self") if b"adjudge.fetchers.worker" in command(pid))


def children(parent: int | str) -> list[int]:
    """Process ids of the children of all threads of `parent`."""
    found = []
    for task in Path(f"/proc/{parent}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended meanwhile
            found += [int(pid) for pid in task.read_text().split()]
    return found


def descendants(parent: int) -> list[int]:
    """Process ids of the children of `parent`, and of theirs."""
    found = children(parent)
    for pid in found:
        found += children(pid)
    return found


def command(pid: int) -> bytes:
    """The command line of `pid`; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


async def ended(pid: int) -> None:
    """Wait until `pid`, which was told to end, has ended. Raises TimeoutError."""
    async with asyncio.timeout(60):
        while Path(f"/proc/{pid}").exists():
            await asyncio.sleep(0.05)


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on and that no connection gets before it is used."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)  # below those that Linux gives to connections
        with socket.socket() as found, contextlib.suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
