"""What the metrics of a protocol are, in words: for tooltips, tables and documentation."""

from typing import ClassVar, Protocol, runtime_checkable

import msgspec

from adjudge.scoring.contract.scorecard import Metric

__all__ = ["Explains", "MetricWords", "explained"]


class MetricWords(msgspec.Struct, frozen=True, kw_only=True):
    """The words of a protocol's metrics, and their `source`.

    `of` has a sentence by name. A name with a prefix ("reference_first.overall") has those of the rest, one with a tag
    ("tag:accuracy") those of "tag:", and one with an ending of `forms` ("_strict") those of the name without it and of
    the ending. `units` are by name too, for what is not a share.
    """

    source: str
    of: dict[str, str]
    units: dict[str, str] = {}
    forms: dict[str, str] = {}

    def explain(self, metric: Metric) -> Metric:
        """`metric` with its words, "" where there are none."""
        name, said = self._found(metric.name)
        unit = self.units.get(name, self.units.get(metric.name, ""))
        return msgspec.structs.replace(metric, definition=said, unit=unit, source=self.source)

    def _found(self, name: str) -> tuple[str, str]:
        start, colon, _ = name.partition(":")
        for key in (name, f"{start}:" if colon else name, name.rpartition(".")[2]):
            if key in self.of:
                return key, self.of[key]
        for ending, said in self.forms.items():
            if name.endswith(ending):
                key, base = self._found(name.removesuffix(ending))
                return key, f"{base} {said}" if base else ""
        return name, ""


@runtime_checkable
class Explains(Protocol):
    """A protocol that says what its metrics are."""

    words: ClassVar[MetricWords]


def explained(protocol: object, metric: Metric) -> Metric:
    """`metric` of `protocol` with the protocol's words, if it has some."""
    return protocol.words.explain(metric) if isinstance(protocol, Explains) else metric
