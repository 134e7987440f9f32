"""What this process has started and not yet ended."""

from pathlib import Path


def worker_processes() -> list[int]:
    """Process ids of this process's extraction workers, those that are dead but not yet waited for included."""
    tasks = Path("/proc/self/task").iterdir()
    children = {int(pid) for task in tasks for pid in (task / "children").read_text().split()}
    return sorted(pid for pid in children if _is_worker(pid))


def _is_worker(pid: int) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False
    return b"adjudge.fetchers.worker" in command
