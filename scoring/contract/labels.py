"""Lines of evidence as labels of a closed list, so that people can answer what the judge answered."""

from typing import Protocol, runtime_checkable

import msgspec

from adjudge.scoring.contract.scorecard import Evidence

__all__ = ["GivesLabels", "LabelKind", "Labelled"]


class LabelKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of verdict: its `name`, the `question` to people in plain words, and every label that answers it.

    `labels` gives each label what it counts in the metric, from -1 to 1. `shows` names the fields of the judge's
    question, beside its context, without which nobody can answer.
    """

    name: str
    question: str
    labels: dict[str, float]
    shows: tuple[str, ...] = ()


class Labelled(msgspec.Struct, frozen=True, kw_only=True):
    """A line of evidence as one of the labels of its `kind`, "" where the judge gave none.

    `metric` is the sum of `weight` * `value` over the report's lines, divided by the sum of `full`; "" where no metric
    is such a share. A line without a `value` is left out of both sums.
    """

    kind: LabelKind
    label: str
    metric: str = ""
    value: float | None = None
    weight: float = 1.0
    full: float = 1.0

    @classmethod
    def of(cls, kind: LabelKind, label: str, metric: str = "") -> "Labelled":
        """A line that counts what its label counts, as much as any other line."""
        return cls(kind=kind, label=label, metric=metric, value=kind.labels.get(label))


@runtime_checkable
class GivesLabels(Protocol):
    """A protocol whose evidence people can label.

    `labelled` needs no options of the protocol, and reads lines of older runs as far as their words allow.
    """

    @staticmethod
    def labelled(line: Evidence) -> Labelled | None:
        """The label of a line of evidence; None for a line that has none of this kind."""
        ...
