# PYTHON_ARGCOMPLETE_OK
"""The installed command: minds an interrupt before it imports what takes a second."""

import os

__all__ = ["main"]

INTERRUPTED = 130

try:
    import atexit
    import gc
    import signal
except KeyboardInterrupt:
    os._exit(INTERRUPTED)


def main() -> None:
    """Run one command and exit with its code."""
    untouched = (signal.default_int_handler, signal.SIG_DFL)
    minded = [one for one in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) in untouched]
    for number in minded:
        signal.signal(number, lambda *_: os._exit(INTERRUPTED))
    from adjudge.engine.commands.exits import end
    from adjudge.engine.commands.main import main as run

    for number in minded:
        signal.signal(number, end)  # until the command begins
    atexit.register(gc.freeze)  # or the last collection walks every module, which takes a tenth of a second
    # What ends by itself in a moment keeps its exit code. Python gives our own handlers up before the process is gone.
    atexit.register(lambda: [signal.signal(number, signal.SIG_IGN) for number in minded])
    try:
        run()
    finally:
        for number in minded:
            signal.signal(number, end)  # no traceback of a second interrupt


if __name__ == "__main__":
    main()
