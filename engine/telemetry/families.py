"""Metrics as values that are sent between processes, added up, and printed in Prometheus' text format."""

from collections import defaultdict
from collections.abc import Iterable

import msgspec
from prometheus_client import generate_latest
from prometheus_client.core import Metric

from adjudge.engine.config.redaction import hidden

__all__ = ["CONTENT_TYPE", "Family", "added", "page"]

CONTENT_TYPE = "text/plain; version=0.0.4"


class Family(msgspec.Struct, frozen=True, array_like=True):
    """The current state of one metric; samples are (name, labels, value). Families of one name can be added."""

    name: str
    kind: str
    help: str
    samples: tuple[tuple[str, dict[str, str], float], ...]


def added(families: Iterable[Family]) -> list[Family]:
    """`families` of any processes, with those of the same name added up."""
    heads: dict[str, Family] = {}
    values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = defaultdict(dict)
    for family in families:
        heads.setdefault(family.name, family)
        sums = values[family.name]
        for name, labels, value in family.samples:
            key = name, tuple(labels.items())
            sums[key] = value if family.kind == "info" else sums.get(key, 0.0) + value
    return [
        Family(
            name,
            head.kind,
            head.help,
            tuple((sample, dict(pairs), value) for (sample, pairs), value in values[name].items()),
        )
        for name, head in heads.items()
    ]


def page(families: Iterable[Family]) -> bytes:
    """The sum of `families` in Prometheus' text format."""
    return hidden(generate_latest(_Page(families)).decode()).encode()


class _Page:
    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """The metrics, as prometheus_client expects of a collector."""
        for family in added(self._families):
            metric = Metric(family.name, family.help, family.kind)
            for sample, labels, value in family.samples:
                metric.add_sample(sample, labels, value)
            yield metric
