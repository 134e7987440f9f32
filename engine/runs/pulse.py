"""The sign of life of a run at work: a lock on its folder, and a small file that says each second how it goes.

On one machine the lock decides, which the system drops with its process. From another machine, or where folders cannot
be locked, a run counts as at work as long as its file is fresh.
"""

import fcntl
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from adjudge.engine.config.settings import ConfigError
from adjudge.fetchers.files import write_whole

__all__ = ["Reading", "alive", "beating", "held", "last_pulse"]

FILE = "pulse.json"
THREAD = "adjudge pulse"
BEAT_S = 1.0
STALE_S = 60.0
_ATTEMPTS, _ATTEMPT_S = 20, 0.05  # who only looks whether the folder is locked holds the lock for an instant
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Reading(msgspec.Struct, frozen=True):
    """What a run has asked its judges until now, and what that cost (None without prices).

    It is `waiting` while questions wait for a judge that does not answer.
    """

    asked: int = 0
    cost: float | None = None
    waiting: bool = False


class Pulse(msgspec.Struct, frozen=True, kw_only=True):
    """One beat: the process of the run, and its `reading`. `boot` tells machines apart, and their starts."""

    boot: str
    host: str
    pid: int
    reading: Reading = Reading()
    at: float = 0.0

    @property
    def process(self) -> str:
        """The process, in words."""
        return f"process {self.pid} on {self.host}"


def last_pulse(folder: Path) -> Pulse | None:
    """The last beat of the run in `folder`, `at` seconds since the epoch; None if there is none."""
    file = folder / FILE
    try:
        pulse = msgspec.json.decode(file.read_bytes(), type=Pulse)
        return msgspec.structs.replace(pulse, at=file.stat().st_mtime)
    except (OSError, msgspec.MsgspecError):
        return None


def alive(folder: Path) -> bool:
    """Whether a process is at work on the run in `folder`."""
    pulse = last_pulse(folder)
    if pulse is None:
        return False
    if pulse.boot and pulse.boot == _boot():
        locked = _is_locked(folder)
        if locked is not None:
            return locked
    return abs(time.time() - pulse.at) < STALE_S


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other runs out of `folder` inside the block. Raises ConfigError while another is at work there."""
    if alive(folder):
        raise _taken(folder)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for attempt in range(_ATTEMPTS):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if attempt == _ATTEMPTS - 1:
                    raise _taken(folder) from None
                time.sleep(_ATTEMPT_S)
            except OSError:  # such a folder cannot be locked: the file alone says that the run is at work
                break
        yield
    finally:
        os.close(descriptor)


@contextmanager
def beating(folder: Path, reading: Callable[[], Reading]) -> Iterator[None]:
    """Write what `reading` gives into `folder` every second inside the block; the file is gone afterwards."""
    pulse = Pulse(boot=_boot(), host=socket.gethostname(), pid=os.getpid())
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(BEAT_S):
            _write(folder, msgspec.structs.replace(pulse, reading=reading()))

    _write(folder, pulse)
    thread = threading.Thread(target=beat, name=THREAD, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with suppress(OSError):
            (folder / FILE).unlink(missing_ok=True)


def _write(folder: Path, pulse: Pulse) -> None:
    """A beat that cannot be written is left out: the run matters more."""
    with suppress(OSError):
        write_whole(folder / FILE, msgspec.json.encode(pulse))


def _is_locked(folder: Path) -> bool | None:
    """Whether another process holds `folder`; None where that cannot be told."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _boot() -> str:
    """The start of this machine that this process belongs to, "" where the system does not say."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


def _taken(folder: Path) -> ConfigError:
    pulse = last_pulse(folder)
    by = "" if pulse is None else f" ({pulse.process})"
    return ConfigError(f"out: another run is at work in {folder}{by}; wait for it, or pass another --out")
