"""A server in a process of its own, for as long as a benchmark needs it."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["said_by", "serve"]


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


async def serve(connection: Callable[[], asyncio.Protocol]) -> None:
    """Print a free port of this machine, and serve there until the process is killed."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(connection, "127.0.0.1", 0, backlog=4096)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()
