"""LiveDRBench's SciFacts: rows of papers, or of materials and papers, against alias sets.

A predicted value is a gold entry's if it equals one of its aliases after lower case and strip, or else the judge says
so. Duplicates count, and an empty value is wrong.
"""

import asyncio
from collections.abc import Sequence

import msgspec
import numpy as np

from adjudge.scoring.answers.overlap import Overlap
from adjudge.scoring.answers.sameness import same_text
from adjudge.scoring.contract.scorecard import Evidence, Missing
from adjudge.scoring.kernels.matching import match_claims as kernel
from adjudge.scoring.livedrbench.claims import MAX_CLAIMS, Comparison, Forest
from adjudge.scoring.livedrbench.graded_slots import Rules
from adjudge.scoring.livedrbench.prediction import Fields, fields, shown

__all__ = ["Row", "Same", "compare_rows", "field_overlap", "filled", "material_overlap", "row_claims"]

Same = list[list[bool]]
"""[predicted][gold]: whether they are the same."""

MATERIAL, TITLE = "material", "paper_title"


class Row(msgspec.Struct, frozen=True):
    """A gold row: the aliases of its paper's title and, in SciFacts Materials, of its material."""

    paper_title: tuple[str, ...]
    material: tuple[str, ...] = ()


class Compared(msgspec.Struct, frozen=True):
    """What was found the same, by title and by material (None in SciFacts Geo), for each predicted row."""

    title: list[list[bool] | Missing]
    material: list[list[bool] | Missing] | None
    evidence: list[Evidence]

    @property
    def missing(self) -> list[Missing]:
        """One for each row of which a comparison is missing."""
        other = self.material if self.material is not None else self.title
        rows = zip(self.title, other, strict=True)
        return [
            next(one for one in row if isinstance(one, Missing)) for row in rows if Missing in map(type, row)
        ]


def filled(same: list[list[bool] | Missing], gold: int, best: bool) -> Same:
    """`same` with the rows that are missing equal to every gold entry, or to none."""
    return [[best] * gold if isinstance(row, Missing) else row for row in same]


def field_overlap(same: Same, gold: int) -> Overlap:
    """One field: precision over predictions that match any gold entry, recall over gold entries that any matches."""
    found = kernel.coverage(_pairs(same, gold))
    return Overlap(float(found.precision[0]), float(found.recall[0]), float(found.f1[0]))


def material_overlap(material: Same, title: Same, gold: int) -> Overlap:
    """SciFacts Materials as the reference code has it: each figure is the product over the two fields.

    F1 too is a product, of the fields' F1, and not the harmonic mean of the other two.
    """
    one, other = field_overlap(material, gold), field_overlap(title, gold)
    return Overlap(one.precision * other.precision, one.recall * other.recall, one.f1 * other.f1)


def row_claims(title: Same, material: Same | None, gold: int, rules: Rules) -> Forest:
    """The rows as claims for Eq. 1, one-to-one: a material with its paper as subclaim, or a paper alone.

    Row-aligned: material and paper must be right in one gold row. As many rows as possible are matched.
    """
    weights = rules.weights
    both = np.array(title, dtype=np.float64).reshape(len(title), gold)
    if material is not None:
        both *= np.array(material, dtype=np.float64).reshape(len(title), gold)
    matched = kernel.match_cardinality(kernel.ClaimPairs.from_matrices([both])).matched
    forest = Forest(gold)
    for place in matched:
        if place < 0:
            forest.add(-1, 0.0)
        elif material is None:
            forest.add(-1, 1.0, weights.get(TITLE, 1.0))
        else:
            row = forest.add(-1, 1.0, weights.get(MATERIAL, 1.0), subclaims=1)
            forest.add(row, 1.0, weights.get(TITLE, 1.0))
    return forest


async def compare_rows(
    comparison: Comparison, predicted: Sequence[msgspec.Raw], gold: Sequence[Row]
) -> Compared:
    """Compares every predicted row's title, and material where gold has materials, with every gold row's."""
    rows = [fields(raw) or {} for raw in predicted]
    titles = _same(comparison, [_value(row, TITLE) for row in rows], [row.paper_title for row in gold])
    if not any(row.material for row in gold):
        title, evidence = await titles
        return Compared(title, None, evidence)
    materials = _same(comparison, [_value(row, MATERIAL) for row in rows], [row.material for row in gold])
    (title, evidence), (material, more) = await asyncio.gather(titles, materials)
    return Compared(title, material, evidence + more)


async def _same(
    comparison: Comparison, predicted: Sequence[str], gold: Sequence[Sequence[str]]
) -> tuple[list[list[bool] | Missing], list[Evidence]]:
    distinct = list(dict.fromkeys(predicted[:MAX_CLAIMS]))
    answers = await asyncio.gather(*(_matches(comparison, value, gold) for value in distinct))
    found: dict[str, list[bool] | Missing] = {}
    evidence = []
    for value, answer in zip(distinct, answers, strict=True):
        if isinstance(answer, Missing):
            found[value] = answer
        else:
            found[value] = answer[0]
            evidence.append(answer[1])
    nothing = [False] * len(gold)
    known = len(predicted[:MAX_CLAIMS])
    return [found[value] if place < known else nothing for place, value in enumerate(predicted)], evidence


async def _matches(
    comparison: Comparison, value: str, gold: Sequence[Sequence[str]]
) -> tuple[list[bool], Evidence] | Missing:
    """The gold entries that `value` is: those with an equal alias, and those that the judge says."""
    equal = [any(same_text(value, alias) for alias in aliases) for aliases in gold]
    open_entries = [" | ".join(aliases) for aliases, known in zip(gold, equal, strict=True) if not known]
    verdicts = await comparison.which(value, open_entries)
    if isinstance(verdicts, Missing):
        return verdicts
    judged = iter(verdicts.same)
    same = [known or next(judged) for known in equal]
    evidence = verdicts.evidence(value, open_entries)
    if any(equal):
        literal = next(" | ".join(aliases) for aliases, known in zip(gold, equal, strict=True) if known)
        evidence = msgspec.structs.replace(evidence, outcome=literal)
    return same, evidence


def _value(row: Fields, key: str) -> str:
    return shown(row[key]) if key in row else ""


def _pairs(same: Same, gold: int) -> kernel.ClaimPairs:
    return kernel.ClaimPairs.from_matrices([np.array(same, dtype=np.float64).reshape(len(same), gold)])
