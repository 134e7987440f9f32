"""Figures of a judge, corrected by people: the types alone, which need no statistics."""

import msgspec

__all__ = ["Corrected", "CorrectedDifference", "Correction"]


class Corrected(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate of people's mean score over all tasks, on their scale, at 95 %; None where too few are labelled.

    `power` is the weight given to the judge (PPI++; 0: people alone, about 1: a judge as good as people).
    `people`, `people_low` and `people_high` come from the labels alone; None for labels of single verdicts, which say
    nothing without the judge. `n_labelled` tasks, or verdicts, have a label and the judge's score, `n_unlabelled` only
    the judge's.
    """

    value: float | None
    low: float | None
    high: float | None
    power: float
    people: float | None
    people_low: float | None
    people_high: float | None
    n_labelled: int
    n_unlabelled: int


class CorrectedDifference(msgspec.Struct, frozen=True, kw_only=True):
    """System `a` minus system `b`: the judge's own mean difference with Student's interval, and the corrected one."""

    a: str
    b: str
    raw: float | None
    raw_low: float | None
    raw_high: float | None
    corrected: Corrected


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """All systems and pairs of one metric; systems without a label have no figures, pairs without one are left out.

    `left_out` are the reports that people rated and the runs do not have. `basis` says what the figures rest on,
    `notes` what could not be corrected.
    """

    protocol: str
    metric: str
    means: dict[str, Corrected]
    differences: tuple[CorrectedDifference, ...]
    left_out: str = ""
    basis: str = (
        "corrected figures estimate people's mean scores; they hold if the rated tasks were drawn at random"
    )
    notes: tuple[str, ...] = ()
