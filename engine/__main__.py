# PYTHON_ARGCOMPLETE_OK
"""The installed command: minds an interrupt before it imports what takes a second."""

import atexit
import gc

from adjudge.engine.cli.exits import end_at_once

__all__ = ["main"]


def main() -> None:
    """Run one command and exit with its code."""
    end_at_once()
    from adjudge.engine.cli.main import main as run

    atexit.register(gc.freeze)  # or the last collection walks every module, which takes a tenth of a second
    run()


if __name__ == "__main__":
    main()
