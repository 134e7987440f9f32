"""The log on stderr: warnings as readable lines or, with ADJUDGE_LOG=json, every event as a JSON line.

An event names its subject (run; shard: the task; case: system, task, sample, repeat). It never contains answers or the
text of reports and pages. Secrets are masked in every line (`engine/config/redaction.py`).
"""

import logging
import os
import sys
from contextlib import AbstractContextManager
from contextvars import ContextVar
from datetime import UTC, datetime

from adjudge.engine.config.redaction import hidden, printable, printable_json
from adjudge.engine.config.settings import ConfigError

FORM = "ADJUDGE_LOG"
_about: ContextVar[dict[str, str]] = ContextVar("adjudge_about")


def form() -> str:
    """The configured form of the log: `human` or `json`. Raises ConfigError."""
    asked = os.environ.get(FORM, "").strip() or "human"
    if asked not in ("human", "json"):
        raise ConfigError(f"{FORM}: {asked!r} is not a log format; write human or json")
    return asked


def begin(form: str) -> None:
    """Log in `form` from now on, in this process; what other libraries log takes the same way out."""
    own, root = logging.getLogger("adjudge"), logging.getLogger()
    for logger in (own, root):
        for handler in [handler for handler in logger.handlers if isinstance(handler, _Stderr)]:
            logger.removeHandler(handler)
        handler = _Stderr()
        handler.setFormatter(_Json() if form == "json" else _Human())
        logger.addHandler(handler)
    handler.addFilter(lambda record: record.name.partition(".")[0] != "adjudge")
    own.setLevel(logging.INFO if form == "json" else logging.WARNING)


def is_json() -> bool:
    """Whether this process logs JSON lines; if so, nothing else may go to stderr."""
    handlers = logging.getLogger("adjudge").handlers
    return any(isinstance(handler.formatter, _Json) for handler in handlers)


def current() -> dict[str, str]:
    """The subject of events in the current context."""
    return _about.get({})


def about(**what: str) -> AbstractContextManager[None]:
    """Add `what` to every event logged inside the block and in tasks started there."""
    return _About(what)


class _About(AbstractContextManager[None]):
    """Every scorecard enters one, and a generator would take several times as long."""

    def __init__(self, what: dict[str, str]) -> None:
        self._what = what

    def __enter__(self) -> None:
        self._token = _about.set({**current(), **self._what})

    def __exit__(self, *_: object) -> None:
        _about.reset(self._token)


def event(logger: logging.Logger, name: str, level: int = logging.INFO, **fields: object) -> None:
    """Log what happened under `name`, with `fields` of plain values."""
    if logger.isEnabledFor(level):
        text = " ".join(f"{key}={value}" for key, value in fields.items())
        logger.log(level, "%s %s", name, text, extra={"event": name, "fields": fields})


def case_name(system: str, task_id: str, sample: int, repeat: int) -> str:
    """The name of a case: SYSTEM/TASK/SAMPLE/REPEAT."""
    return f"{system}/{task_id}/{sample}/{repeat}"


class _Stderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(printable(self.format(record)) + "\n")
        except (OSError, ValueError):
            self.handleError(record)


class _Human(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return hidden(f"adjudge: {record.levelname.lower()}: {super().format(record)}")


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", "message"),
            **current(),
            "logger": record.name,
        }
        fields: dict[str, object] = getattr(record, "fields", {"message": record.getMessage()})
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        return printable_json({**fields, **line})
