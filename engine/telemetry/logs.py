"""What is logged, on stderr: warnings as lines for people, or every event as a JSON line where ADJUDGE_LOG=json.

An event says what it is about (run, shard: the task; case: system, task, sample, repeat). Neither answers nor texts of
reports and pages are ever in one, and the values of variables that hold secrets are left out of every line.
"""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

import msgspec

from adjudge.engine.config.errors import ConfigError

__all__ = ["FORM", "about", "begin", "case_name", "current", "event", "form", "is_json"]

FORM = "ADJUDGE_LOG"
_SECRET = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
_SHORTEST_SECRET = 6  # characters: what is shorter would be struck out of innocent words
_about: ContextVar[dict[str, str]] = ContextVar("adjudge_about")


def form() -> str:
    """The form asked for: `human` or `json`. Raises ConfigError."""
    asked = os.environ.get(FORM, "").strip() or "human"
    if asked not in ("human", "json"):
        raise ConfigError(f"{FORM}: {asked!r} is no form of log; write human or json")
    return asked


def begin(form: str) -> None:
    """Log in `form` from now on, in this process."""
    logger = logging.getLogger("adjudge")
    for handler in [handler for handler in logger.handlers if isinstance(handler, _Stderr)]:
        logger.removeHandler(handler)
    handler = _Stderr()
    handler.setFormatter(_Json() if form == "json" else _Human())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO if form == "json" else logging.WARNING)


def is_json() -> bool:
    """Whether this process logs JSON lines: then nothing else may go to stderr."""
    handlers = logging.getLogger("adjudge").handlers
    return any(isinstance(handler.formatter, _Json) for handler in handlers)


def current() -> dict[str, str]:
    """What events are about here."""
    return _about.get({})


@contextmanager
def about(**what: str) -> Iterator[None]:
    """Inside the block, and in tasks begun there, every event is about `what` too."""
    token = _about.set({**current(), **what})
    try:
        yield
    finally:
        _about.reset(token)


def event(logger: logging.Logger, name: str, level: int = logging.INFO, **fields: object) -> None:
    """Log what happened under `name`, with `fields` of plain values."""
    if logger.isEnabledFor(level):
        said = " ".join(f"{key}={value}" for key, value in fields.items())
        logger.log(level, "%s %s", name, said, extra={"event": name, "fields": fields})


def case_name(system: str, task_id: str, sample: int, repeat: int) -> str:
    """A case in one word: SYSTEM/TASK/SAMPLE/REPEAT."""
    return f"{system}/{task_id}/{sample}/{repeat}"


class _Stderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(_redacted(self.format(record)) + "\n")
        except (OSError, ValueError):
            self.handleError(record)


class _Human(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"adjudge: {record.levelname.lower()}: {super().format(record)}"


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
        return msgspec.json.encode({**fields, **line}).decode()


def _redacted(line: str) -> str:
    for name, value in os.environ.items():
        if name.endswith(_SECRET) and len(value) >= _SHORTEST_SECRET:
            line = line.replace(value, "***")
    return line
