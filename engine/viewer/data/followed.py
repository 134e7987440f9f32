"""The run in a folder as it is now: opened anew when another takes its place, it ends, or its process dies."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from adjudge.engine.records.pulse import alive
from adjudge.engine.viewer.data.following import Snapshot
from adjudge.engine.viewer.data.open_run import OpenRun

__all__ = ["FollowedRun"]

NOTICED_S = 1.0  # until a stream sees that a run has ended, or that another has begun


class FollowedRun:
    """The run in `folder`, and people's `labels` of it, if given. Raises UsageError if `folder` has no run."""

    def __init__(self, folder: str, labels: Path | None = None) -> None:
        self._folder = folder
        self._labels = labels
        self._written = _written(folder)
        self._run = OpenRun(folder, labels)
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def last(self) -> OpenRun:
        """The run as it was when it was last asked for."""
        return self._run

    def now(self) -> OpenRun:
        """The run as it is now. Call from the event loop. Raises UsageError."""
        written = _written(self._folder)
        died = self._run.record.state == "running" and not alive(Path(self._folder))
        if written != self._written or died:
            run = OpenRun(self._folder, self._labels)
            closing = asyncio.ensure_future(self._run.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
            self._written, self._run = written, run
            run.begin()
        return self._run

    async def snapshots(self) -> AsyncIterator[Snapshot]:
        """The run at each look that is due, until it has finished. Raises UsageError, StoreError."""
        while (following := self.now().following) is not None:
            snapshot = await following.next(NOTICED_S)
            if snapshot is not None:
                yield snapshot

    async def close(self) -> None:
        """Cancel what is being opened and followed."""
        await asyncio.gather(self._run.close(), *self._closing)


def _written(folder: str) -> tuple[int, int]:
    """When the record was written, and as which file: equal as long as it is the same."""
    try:
        found = (Path(folder) / "run.json").stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_ino)
