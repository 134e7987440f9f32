"""The query strings of the pages' URLs, typed and bounded, and the URLs made from them."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Literal, TypeVar
from urllib.parse import urlencode

import msgspec

from adjudge.fetchers.urls import MAX_URL
from adjudge.scoring.contract.scorecard import Scorecard

Q = TypeVar("Q")

Name = Annotated[str, msgspec.Meta(max_length=2_000)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Sample = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Key = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]


class BadQuery(ValueError):
    """An address that no link of the viewer has; the message says in one line what is wrong with it."""


class NotThere(LookupError):
    """This run does not have what an address names."""


class ListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a table: `filter` keeps rows with these words; `sort` names a column, descending after a hyphen."""

    page: Annotated[int, msgspec.Meta(ge=1, le=10**7)] = 1
    sort: Name = ""
    filter: Name = ""


Named = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]


class BesideQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs of a folder, by their names in addresses."""

    a: Named
    b: Named


class SystemQuery(ListQuery, frozen=True, kw_only=True):
    """A system's reports by one metric; those with a `reason`, or with any ("any")."""

    system: Name
    protocol: Name = ""
    metric: Name = ""
    reason: Name = ""


class TaskQuery(ListQuery, frozen=True, kw_only=True):
    """A task and the reports for it."""

    task: Name
    protocol: Name = ""


class ReportQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A report under one protocol (empty: the first), the `part` of a long text, and its `text` as it was written."""

    system: Name
    task: Name
    sample: Sample = 0
    repeat: Count = 0
    protocol: Name = ""
    part: Annotated[int, msgspec.Meta(ge=1, le=10**6)] = 1
    text: Literal["", "raw"] = ""

    @classmethod
    def of(cls, card: Scorecard) -> "ReportQuery":
        """The report of a scorecard, under its protocol."""
        return cls(
            system=card.system,
            task=card.task_id,
            sample=card.sample,
            repeat=card.repeat,
            protocol=card.protocol,
        )


class EvidenceQuery(ReportQuery, frozen=True, kw_only=True):
    """Line `n` of a scorecard's evidence, counted from 1."""

    n: Annotated[int, msgspec.Meta(ge=1, le=10**7)]


class QuestionsQuery(ListQuery, frozen=True, kw_only=True):
    """A page of the questions about a report."""

    system: Name
    task: Name
    sample: Sample = 0
    repeat: Count = 0
    protocol: Name = ""

    @property
    def report(self) -> ReportQuery:
        """The report."""
        return msgspec.convert(self, ReportQuery, from_attributes=True)


class QuestionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A judgment by the hex of its key; naming the report that it was asked for lets its prompt be shown."""

    key: Key
    system: Name = ""
    task: Name = ""
    sample: Sample = 0
    repeat: Count = 0
    protocol: Name = ""

    @classmethod
    def of(cls, key: str, report: ReportQuery) -> "QuestionQuery":
        """The judgment with the hex `key`, asked for a report."""
        return cls(
            key=key,
            system=report.system,
            task=report.task,
            sample=report.sample,
            repeat=report.repeat,
            protocol=report.protocol,
        )

    @property
    def report(self) -> ReportQuery | None:
        """The report it was asked for, if the address names one."""
        return msgspec.convert(self, ReportQuery, from_attributes=True) if self.system else None


class PageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A page that was read, by its URL."""

    url: Annotated[str, msgspec.Meta(max_length=MAX_URL)]
    part: Annotated[int, msgspec.Meta(ge=1, le=10**6)] = 1


class SearchQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Words to look for and where; `after` is where the previous search stopped."""

    q: Name = ""
    where: Literal["tasks", "statements", "reports", "answers", "pages"] = "statements"
    after: Annotated[int, msgspec.Meta(ge=0, le=2**62)] = 0


class DifferencesQuery(ListQuery, frozen=True, kw_only=True):
    """Reports of two runs, sorted by how much they differ in one metric."""

    protocol: Name = ""
    metric: Name = ""


def read(given: Mapping[str, str], kind: type[Q]) -> Q:
    """The query of an address as `kind`; unknown names are ignored. Raises BadQuery."""
    try:
        return msgspec.convert(dict(given), type=kind, strict=False)
    except msgspec.ValidationError as error:
        named = re.search(r"\$\.(\w+)|field `(\w+)`", str(error))
        what = (named[1] or named[2]) if named else "something"
        raise BadQuery(
            f"in this address {what} is missing, or says what it cannot: follow a link of the viewer"
        ) from error


def address(path: str, query: msgspec.Struct | None = None, **changes: object) -> str:
    """The address of `path` with the fields of `query`, then `changes`; empty and default values are left out.

    Inside `addressed` it is where that page is instead.
    """
    fields = {} if query is None else msgspec.structs.asdict(query)
    kept = {name: str(value) for name, value in (fields | changes).items() if _says_something(name, value)}
    return _WHERE.get()(path, kept)


def with_fields(path: str, fields: Mapping[str, str]) -> str:
    """`path` and its query string."""
    return f"{path}?{urlencode(fields, errors='replace')}" if fields else path


Where = Callable[[str, Mapping[str, str]], str]
_WHERE: ContextVar[Where] = ContextVar("where", default=with_fields)


@contextmanager
def addressed(where: Where) -> Iterator[None]:
    """Let `where` say, while the context is open, where the page of a path and its fields is."""
    token = _WHERE.set(where)
    try:
        yield
    finally:
        _WHERE.reset(token)


def _says_something(name: str, value: object) -> bool:
    return value not in ("", None) and (name, value) not in _DEFAULTS


_DEFAULTS = (("page", 1), ("part", 1), ("sample", 0), ("repeat", 0), ("after", 0))
