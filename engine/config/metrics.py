"""The names of metrics, and the metrics that protocols are ranked by: decided here for every command and page.

A metric's full name is `protocol.metric`. Its short name is enough where only one of the given protocols has such
a metric.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol, TypeVar

from adjudge.engine.errors import UsageError, nearest
from adjudge.scoring.contract.scorecard import Metric

__all__ = ["Name", "headlines", "named", "names_in", "only", "short_names"]


class Name(NamedTuple):
    """A metric of a protocol."""

    protocol: str
    metric: str

    @property
    def full(self) -> str:
        """`protocol.metric`."""
        return f"{self.protocol}.{self.metric}"


class _Ranked(Protocol):
    @property
    def headline(self) -> bool: ...


R = TypeVar("R", bound=_Ranked)


def headlines(metrics: Iterable[R]) -> tuple[R, ...]:
    """The metrics among those of one protocol, or of one of its tables, that it is ranked by.

    A protocol has one for each table of its paper; one that declares none is ranked by its first metric.
    """
    every = tuple(metrics)
    return tuple(metric for metric in every if metric.headline) or every[:1]


def names_in(metrics: Mapping[str, Iterable[Metric]]) -> list[Name]:
    """The names of metrics that are given by protocol."""
    return [Name(protocol, metric.name) for protocol, own in metrics.items() for metric in own]


def short_names(known: Iterable[Name]) -> dict[Name, str]:
    """The shortest name of every metric that means no other: in full where several protocols have it."""
    every = list(dict.fromkeys(known))
    times = Counter(name.metric for name in every)
    return {name: name.full if times[name.metric] > 1 else name.metric for name in every}


def named(said: str, known: Iterable[Name], key: str, error: Callable[[str], Exception] = UsageError) -> Name:
    """The metric of those `known` that `said` names, in full or short.

    Raises `error`, in one line that begins with `key`: for a short name of several protocols, with all full names, and
    for an unknown one, with the nearest.
    """
    short = short_names(known)
    found = [name for name in short if said == name.full] or [name for name in short if said == name.metric]
    if not found:
        offered = (name.full if "." in said else short[name] for name in short)
        raise error(f"{key}: unknown metric {said!r}; {nearest(said, offered)}")
    return only(said, found, key, error)


def only(said: str, found: Iterable[Name], key: str, error: Callable[[str], Exception] = UsageError) -> Name:
    """The one metric that was `found` for `said`. Raises `error` with all full names if there are several."""
    first, *others = dict.fromkeys(found)
    if others:
        names = " or ".join(name.full for name in (first, *others))
        raise error(f"{key}: {said!r} is a metric of several protocols; write {names}")
    return first
