"""How to follow a run that begins: the command that does, or the viewer itself, which ends with the run."""

import json
import logging
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from adjudge.engine.telemetry.logs import event, is_json

__all__ = ["following"]

_log = logging.getLogger(__name__)
_ENDS_S = 5.0


@contextmanager
def following(run: str, console: Console, *, view: bool) -> Iterator[Callable[[], None]]:
    """A function that says on `console` how to follow the run in the folder `run`, once its record is there.

    With `view` it also starts the viewer and says its address; the viewer ends with the block, or with this process.
    """
    started: list[subprocess.Popen[bytes]] = []

    def follow() -> None:
        _say(console, "follow it", f"adjudge view {shlex.quote(run)}")
        if not view:
            return
        command = [
            sys.executable,
            "-m",
            "adjudge.engine",
            "view",
            run,
            "--port",
            "0",
            "--json",
            "--with-stdin",
        ]
        viewer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(viewer)
        threading.Thread(target=_say_address, args=(console, viewer), daemon=True).start()

    try:
        yield follow
    finally:
        for viewer in started:
            viewer.terminate()
            try:
                viewer.wait(_ENDS_S)
            except subprocess.TimeoutExpired:
                viewer.kill()


def _say_address(console: Console, viewer: subprocess.Popen[bytes]) -> None:
    assert viewer.stdout is not None
    line = viewer.stdout.readline()
    if line:
        _say(console, "viewer", json.loads(line)["url"])


def _say(console: Console, what: str, how: str) -> None:
    if is_json():
        event(_log, what, how=how)
    else:
        console.print(f"{what}: {how}", soft_wrap=True, highlight=False, markup=False)
