"""Precision, recall and F1 of what was found against gold, with every empty denominator giving 0."""

import msgspec

__all__ = ["Overlap", "f1"]


class Overlap(msgspec.Struct, frozen=True):
    """Precision, recall and their harmonic mean; each in 0..1 unless weights say otherwise."""

    precision: float
    recall: float
    f1: float

    @classmethod
    def of(cls, precision: float, recall: float) -> "Overlap":
        """With the harmonic mean of the two."""
        return cls(precision, recall, f1(precision, recall))

    @classmethod
    def counted(cls, right: float, predicted: float, gold: float) -> "Overlap":
        """From `right` among so many predicted and so many gold."""
        return cls.of(right / predicted if predicted else 0.0, right / gold if gold else 0.0)


def f1(precision: float, recall: float) -> float:
    """The harmonic mean; 0 if both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
