"""The file that labels are appended to, one line of JSON each, synced before the next item is shown.

Several raters may write to one file at a time, and a process that is killed loses nothing but a line that it had not
finished, which the next one cuts off.
"""

import fcntl
import os
from pathlib import Path

import msgspec

from adjudge.engine.errors import UsageError
from adjudge.engine.records.labels import Label

__all__ = ["LabelFile"]

_MAX_BYTES = 1 << 28


class LabelFile:
    """The labels in the file at `path`, by item and rater, in the order in which they were given. Raises UsageError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0
        self._given: dict[tuple[str, str], Label] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise UsageError(f"out: {path} cannot be written: {error.strerror}") from error
        self._cut_off()
        self.refresh()

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def add(self, label: Label) -> None:
        """Append `label` and sync it. Raises OSError."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            os.write(self._file, msgspec.json.encode(label) + b"\n")
            os.fsync(self._file)
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self.refresh()

    def refresh(self) -> None:
        """Read what was appended since, by this process or another. Raises UsageError."""
        added = self._from(self._read)
        whole = added[: added.rfind(b"\n") + 1]
        for line in whole.split(b"\n"):
            if line.strip():
                self._take(line)
        self._read += len(whole)

    def by(self, rater: str) -> dict[str, Label]:
        """What `rater` did with each item: a label, or a skip."""
        return {item: label for (item, by), label in self._given.items() if by == rater}

    def taken(self, rater: str) -> set[str]:
        """The items that raters other than `rater` have labelled."""
        return {item for (item, by), label in self._given.items() if by != rater and label.label}

    def _from(self, place: int) -> bytes:
        size = os.fstat(self._file).st_size - place
        if size > _MAX_BYTES:
            raise UsageError(f"out: {self.path} is too large for a file of labels; choose a new file")
        return os.pread(self._file, max(size, 0), place)

    def _take(self, line: bytes) -> None:
        try:
            label = msgspec.json.decode(line, type=Label)
        except msgspec.MsgspecError as error:
            raise UsageError(
                f"out: {self.path} is not a file of labels: {error}; choose a new file"
            ) from error
        self._given.pop((label.item, label.rater), None)
        if label.label or label.skipped:
            self._given[label.item, label.rater] = label

    def _cut_off(self) -> None:
        """Cut off a last line that was not finished."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            tail = self._from(0)
            if tail and not tail.endswith(b"\n"):
                try:
                    msgspec.json.decode(tail[tail.rfind(b"\n") + 1 :], type=Label)
                    os.write(self._file, b"\n")
                except msgspec.MsgspecError:
                    os.ftruncate(self._file, tail.rfind(b"\n") + 1)
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
