"""What this process has started and not yet ended, and where it can start more."""

import socket
from pathlib import Path


def worker_processes() -> list[int]:
    """Process ids of this process's extraction workers, those that are dead but not yet waited for included."""
    tasks = Path("/proc/self/task").iterdir()
    children = {int(pid) for task in tasks for pid in _read(task / "children").split()}
    return sorted(
        pid for pid in children if b"adjudge.fetchers.worker" in _read(Path(f"/proc/{pid}/cmdline"))
    )


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _read(file: Path) -> bytes:
    """What `file` holds; nothing if its thread or process has ended meanwhile."""
    try:
        return file.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
