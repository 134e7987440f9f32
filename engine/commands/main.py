"""The command line: one call per command, results on stdout, everything else on stderr, and an exit code."""

import errno
import gc
import io
import logging
import os
import resource
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from types import TracebackType

from adjudge.engine.commands.exits import DONE, FAILED, INTERRUPTED, USAGE, beginning
from adjudge.engine.commands.parser import parser
from adjudge.engine.config.redaction import hidden, printable
from adjudge.engine.errors import ClusterError, LimitReached, StoreError, UsageError, unwritable
from adjudge.engine.evaluation.memory import rare_collections, share_heap
from adjudge.engine.tables.terminal import Terminal
from adjudge.engine.telemetry.logs import begin, form, is_json
from adjudge.fetchers.process import PoolError
from adjudge.judges.errors import JudgeError
from adjudge.prompts import PromptError

_OPEN_FILES = 65_536
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    sys.excepthook = _unexpected
    for stream in (sys.stdout, sys.stderr):  # a terminal of few characters shows the others as escapes
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except (UsageError, PromptError) as error:
        code = _ended(USAGE, str(error), "red")
    except (JudgeError, LimitReached, StoreError, PoolError, ClusterError) as error:
        code = _ended(FAILED, str(error), "red")
    except KeyboardInterrupt as error:
        with beginning():  # a second interrupt has nothing to add
            code = _ended(INTERRUPTED, "; ".join(("interrupted", *map(str, error.args))), "")
    except BrokenPipeError:  # the reader has gone, so what is still in the buffer has nowhere to go
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = DONE
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        code = _ended(FAILED, unwritable(error, error.filename or "a file"), "red")
    sys.exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    """Run the command that the arguments name; without any, print the help. A shell that asks is answered."""
    with beginning():
        words = sys.argv[1:] if arguments is None else arguments
        commands = parser()
        if "_ARGCOMPLETE" in os.environ:
            # Imported for a shell alone: it takes a tenth of what the commands that look something up take.
            from adjudge.engine.commands.completion import complete

            complete(commands)
        if not words:
            commands.print_help()
            return DONE
        options = commands.parse_args(words)
        begin(form())
        share_heap()
        _allow_open_files()
        # The command alone is imported: another may need what takes a second to load.
        with rare_collections():  # which took a tenth of the time of imports
            action = import_module(f"adjudge.engine.commands.{options.module}")
            if arguments is None:  # a process that is ours alone
                _spare_pandas()
                gc.freeze()  # no collection walks what is imported
    code: int = action.run(options)
    return code


def _allow_open_files() -> None:
    """Raise this process's own limit of open files as far as it may: a judge's connections are files too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # macOS allows less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class _NoPandas:
    """Finds no pandas, installed or not."""

    @staticmethod
    def find_spec(fullname: str, path: object = None, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def _spare_pandas() -> None:
    """Let pyarrow find no pandas when it looks for it, which it does once, at its first conversion.

    Where pandas is installed, importing it takes a tenth of what a run of one report does. No command converts data
    frames, and what asks pyarrow for one, such as `to_pandas()`, still gets it.
    """
    if "pyarrow" not in sys.modules:
        return
    import pyarrow as pa

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(finder)


def _ended(code: int, said: str, style: str) -> int:
    """Say on stderr why the command ended; its exit code."""
    if is_json():
        logging.getLogger("adjudge").error("%s", said)
    else:
        Terminal(stderr=True, soft_wrap=True).print(
            f"adjudge: {hidden(said)}", style=style, markup=False, highlight=False
        )
    return code


def _unexpected(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    """Print the traceback of an error that nothing expected, as Python would, but without secrets."""
    sys.stderr.write(printable(hidden("".join(traceback.format_exception(kind, error, at)))))
