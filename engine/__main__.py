# PYTHON_ARGCOMPLETE_OK
"""The installed command: minds an interrupt before it imports what takes a second."""

import atexit
import gc
import os
import signal

__all__ = ["main"]

INTERRUPTED = 130


def main() -> None:
    """Run one command and exit with its code."""
    minded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if minded:
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    from adjudge.engine.cli.exits import end
    from adjudge.engine.cli.main import main as run

    if minded:
        signal.signal(signal.SIGINT, end)  # until the command begins
    atexit.register(gc.freeze)  # or the last collection walks every module, which takes a tenth of a second
    run()


if __name__ == "__main__":
    main()
