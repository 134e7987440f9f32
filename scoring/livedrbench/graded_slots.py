"""LiveDRBench's graded categories: NovelDS and Flights, and SciFacts.

NovelDS and Flights: answers in slots, each an object or a list of rows. An object is graded field by field, 0..3. In a
list every predicted row in order is matched to a gold row by the primary keys, that gold row is taken away, and the
pair is graded. A field is right from 2 on. A main claim graded 0 or 1, or missing, zeroes the whole question if it is
in an object slot, and otherwise its row.

SciFacts: rows of papers, or of materials and papers, against alias sets. A predicted value is a gold entry's if it
equals one of its aliases after lower case and strip, or else the judge says so. Duplicates count, and an empty value is
wrong.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np

from adjudge.judges import Answer, numbered
from adjudge.judges.lexical import coverage, figures, terms
from adjudge.scoring.answers.numbered import Numbered, batches
from adjudge.scoring.answers.parts import Overlap
from adjudge.scoring.answers.sameness import clipped, same_text
from adjudge.scoring.contract.case import NULL
from adjudge.scoring.contract.scorecard import Evidence, Missing, Outcome, first_missing
from adjudge.scoring.kernels.matching import match_claims as kernel
from adjudge.scoring.livedrbench.claims import (
    MAX_CLAIMS,
    Comparison,
    Fields,
    Forest,
    fields,
    match_in_order,
    rows,
    shown,
)

WRONG, BEST = 1, 3
"""The highest grade at which a field is wrong, and the highest."""

Slot = Fields | list[Fields]


class Rules(msgspec.Struct, frozen=True):
    """A question's `eval_info`: which keys match rows, which gate, which are left out of both counts.

    `weights` of keys are ours, for Eq. 1; a key without one weighs 1.
    """

    primary_keys: tuple[str, ...] = ()
    main_claims: tuple[str, ...] = ()
    ignore_keys: tuple[str, ...] = ()
    evaluation_note: msgspec.Raw = NULL
    weights: dict[str, Annotated[float, msgspec.Meta(ge=0)]] = {}


class Graded(msgspec.Struct, frozen=True):
    """A predicted object or row: its keys, its grades 0..3 by key (None: no gold row is the same), and gold's keys.

    A field is right above grade 1; published replies have fractions.

    `whole` marks an object slot, whose main claims gate the whole question.
    """

    keys: tuple[str, ...]
    grades: Mapping[str, float] | None
    gold_keys: tuple[str, ...] = ()
    whole: bool = False


class Points(msgspec.Struct, frozen=True):
    """How many fields are right, of how many predicted and how many gold ones; ignored keys are in none of them."""

    right: int
    predicted: int
    gold: int

    @property
    def overlap(self) -> Overlap:
        """Precision, recall and F1."""
        return Overlap.counted(self.right, self.predicted, self.gold)


class FieldGrades(Answer, frozen=True, kw_only=True):
    """A grade for each numbered field."""

    analysis: Annotated[str, msgspec.Meta(max_length=600)] = ""
    items: dict[str, Annotated[int, msgspec.Meta(ge=0, le=3)]]


class GradeFields(Numbered[FieldGrades], frozen=True, kw_only=True):
    """How well `predicted` says what `reference` says, field by field; both hold "key: value" in the same order."""

    words = "grades of an answer's fields"
    prompt = "livedr_grade"
    answer = FieldGrades
    listed = "reference"

    reference: tuple[str, ...]
    predicted: tuple[str, ...]
    notes: str

    def lexical(self) -> FieldGrades:
        """3 for equal texts, else by the share of the reference's words that are there, figures included."""
        pairs = zip(numbered(self.count), self.reference, self.predicted, strict=True)
        return FieldGrades(items={key: _likeness(gold, found) for key, gold, found in pairs})


def slot_points(items: Sequence[Graded], gold_fields: int, rules: Rules) -> Points:
    """The points of a question (LiveDRBench's NovelDS and Flights).

    `gold_fields` counts gold's fields that are not ignored. A gate looks at the grades that are there: a published
    reply that leaves a main claim out does not close it.
    """
    ignored = frozenset(rules.ignore_keys)
    closed = any(item.whole and not _open(item, rules) for item in items)
    right = sum(
        grade > WRONG and key not in ignored
        for item in items
        if not closed and _open(item, rules)
        for key, grade in (item.grades or {}).items()
    )
    return Points(right, sum(key not in ignored for item in items for key in item.keys), gold_fields)


def count_fields(slots: Sequence[Mapping[str, Any] | Sequence[Mapping[str, Any]]], rules: Rules) -> int:
    """How many fields gold has, ignored keys left out."""
    found = (row for slot in slots for row in ([slot] if isinstance(slot, Mapping) else slot))
    return sum(key not in rules.ignore_keys for row in found for key in row)


def slot_claims(items: Sequence[Graded], slots: Sequence[Slot], rules: Rules) -> Forest:
    """The same question as claims for Eq. 1: an object or row is a claim, its fields are its subclaims.

    It is right if it matches and its main claims are; they are what it is, so they are not among its subclaims
    (unless it has no other field: then it is a leaf). A gate that is closed makes every claim wrong.
    """
    closed = any(item.whole and not _open(item, rules) for item in items)
    forest = Forest(sum(len(slot) if isinstance(slot, list) else 1 for slot in slots))
    identity = frozenset(rules.main_claims)
    left_out = identity | frozenset(rules.ignore_keys)
    for item in items:
        right = item.grades is not None and not closed and _open(item, rules)
        weight = _weight([key for key in item.keys if key in identity], rules)
        gold_keys = [key for key in item.gold_keys if key not in left_out]
        index = forest.add(-1, float(right), weight, len(gold_keys))
        for key in item.keys:
            if key not in left_out:
                grade = (item.grades or {}).get(key, 0) if key in gold_keys else 0
                forest.add(index, float(grade > WRONG), _weight([key], rules))
    return forest


def _open(item: Graded, rules: Rules) -> bool:
    return item.grades is not None and all(item.grades.get(key, BEST) > WRONG for key in rules.main_claims)


def _weight(keys: Sequence[str], rules: Rules) -> float:
    weight = 1.0
    for key in keys:
        weight *= rules.weights.get(key, 1.0)
    return weight


class Grading(msgspec.Struct, frozen=True):
    """The grades; `worst` and `best` differ if judgments are missing: those of `missing` out of `parts` rows.

    A row whose match is missing matches nothing at worst, and is wholly right at best.
    """

    worst: list[Graded]
    best: list[Graded]
    parts: int
    missing: list[Missing]
    evidence: list[Evidence]

    @classmethod
    def joined(cls, every: Sequence["Grading"]) -> "Grading":
        """All of `every` as one."""
        return cls(
            [item for one in every for item in one.worst],
            [item for one in every for item in one.best],
            sum(one.parts for one in every),
            [missing for one in every for missing in one.missing],
            [line for one in every for line in one.evidence],
        )


async def grade_slots(
    comparison: Comparison, predicted: Sequence[msgspec.Raw], gold: Sequence[Slot], rules: Rules
) -> Grading:
    """Matches and grades every gold slot's prediction; one that is not there or of another shape is not predicted."""
    given = [*predicted, *[NULL] * (len(gold) - len(predicted))]
    return Grading.joined(
        await asyncio.gather(
            *(_slot(comparison, raw, slot, rules) for raw, slot in zip(given, gold, strict=False))
        )
    )


async def _slot(comparison: Comparison, raw: msgspec.Raw, gold: Slot, rules: Rules) -> Grading:
    if isinstance(gold, list):
        return await _rows(comparison, [fields(row) or {} for row in rows(raw) or []], gold, rules)
    found = fields(raw)
    if found is None and gold.keys().isdisjoint(rules.main_claims):
        return Grading.joined([])
    return await _graded(
        comparison, found or {}, gold, rules, whole=True
    )  # without main claims, their gate closes


async def _rows(comparison: Comparison, predicted: list[Fields], gold: list[Fields], rules: Rules) -> Grading:
    keys = rules.primary_keys or rules.main_claims
    matching = await match_in_order(
        comparison, [_identity(row, keys) for row in predicted], [_identity(row, keys) for row in gold]
    )
    grades = await asyncio.gather(
        *(_graded(comparison, predicted[place], gold[index], rules) for place, index in matching.pairs)
    )
    by_place = {place: one for (place, _), one in zip(matching.pairs, grades, strict=True)}
    found = [Grading([], [], 0, [], matching.evidence)]
    for place, row in enumerate(predicted):
        keys, known = tuple(row) or ("",), place < matching.known
        best = None if matching.best(place) is None else dict.fromkeys(keys, BEST)
        wrong, right = Graded(keys, None), Graded(keys, best, keys)
        missing = [] if known or matching.missing is None else [matching.missing]
        found.append(by_place.get(place) or Grading([wrong], [wrong if known else right], 1, missing, []))
    return Grading.joined(found)


async def _graded(
    comparison: Comparison, predicted: Fields, gold: Fields, rules: Rules, whole: bool = False
) -> Grading:
    """An object or row beside its gold: the fields that count or gate; those not predicted are 0 without asking."""
    wanted = [key for key in gold if key not in rules.ignore_keys or key in rules.main_claims]
    asked = batches([key for key in wanted if key in predicted])
    judgments = await comparison.tools.ask_all(
        GradeFields(
            context=comparison.context,
            language=comparison.language,
            reference=tuple(clipped(f"{key}: {shown(gold[key])}") for key in batch),
            predicted=tuple(clipped(f"{key}: {shown(predicted[key])}") for key in batch),
            notes=comparison.notes,
        )
        for batch in asked
    )
    missing = first_missing(judgments)
    worst, best = dict.fromkeys(wanted, 0), dict.fromkeys(wanted, 0)
    evidence = []
    for batch, judgment in zip(asked, judgments, strict=True):
        if judgment.answer is None:
            best |= dict.fromkeys(batch, BEST)
            continue
        for key, number in zip(batch, numbered(len(batch)), strict=True):
            worst[key] = best[key] = judgment.answer.items[number]
            what = f"{clipped(key)}: {clipped(shown(predicted[key]))}"
            grade = Outcome("points", float(worst[key]), float(BEST), words=str(worst[key]))
            evidence.append(Evidence(what=what, outcome=grade, judgment=judgment.key.hex()))
    ends = [Graded(tuple(predicted), grades, tuple(gold), whole) for grades in (worst, best)]
    return Grading(ends[:1], ends[1:], 1, [missing] if missing else [], evidence)


def _identity(row: Fields, keys: Sequence[str]) -> str:
    """The key that matches a row: its primary keys, or the whole row if the question names none."""
    named = [key for key in keys if key in row] or ([] if keys else list(row))
    return "\n".join(f"{key}: {shown(row[key])}" for key in named if shown(row[key]).strip())


def _likeness(gold: str, found: str) -> int:
    wanted, given = gold.partition(": ")[2], found.partition(": ")[2]
    if same_text(wanted, given):
        return 3
    if not figures(wanted) <= figures(given):
        return 0
    share = coverage(terms(wanted), set(terms(given)))
    return 3 if share == 1 else 2 if share >= 0.6 else 1 if share >= 0.3 else 0


Same = list[list[bool]]
"""[predicted][gold]: whether they are the same."""

MATERIAL, TITLE = "material", "paper_title"


class Row(msgspec.Struct, frozen=True):
    """A gold row: the aliases of its paper's title and, in SciFacts Materials, of its material."""

    paper_title: tuple[str, ...]
    material: tuple[str, ...] = ()


def has_materials(gold: Sequence[Row]) -> bool:
    """Whether gold has materials: SciFacts Materials, and not SciFacts Geo."""
    return any(row.material for row in gold)


class Compared(msgspec.Struct, frozen=True):
    """The gold entries found the same, by title and by material (None in SciFacts Geo), for each predicted row."""

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
    matrix = np.array(same, dtype=np.float64).reshape(len(same), gold)
    found = kernel.coverage(kernel.ClaimPairs.from_matrices([matrix]))
    return Overlap(float(found.precision[0]), float(found.recall[0]), float(found.f1[0]))


def product(fields: Sequence[Overlap]) -> Overlap:
    """SciFacts as the reference code has it: each figure is the product over the fields (materials and titles).

    F1 too is a product, of the fields' F1, and not the harmonic mean of the other two.
    """
    return Overlap(
        math.prod(one.precision for one in fields),
        math.prod(one.recall for one in fields),
        math.prod(one.f1 for one in fields),
    )


def material_overlap(material: Same, title: Same, gold: int) -> Overlap:
    """SciFacts Materials: the product over its two fields."""
    return product([field_overlap(material, gold), field_overlap(title, gold)])


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
    if not has_materials(gold):
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
        evidence = msgspec.structs.replace(evidence, outcome=Outcome("matched", words=literal), value=1.0)
    return same, evidence


def _value(row: Fields, key: str) -> str:
    return shown(row[key]) if key in row else ""
