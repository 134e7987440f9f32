"""LiveDRBench: deep research as the discovery of claims.

A system's answer is structured: slots of objects, rows or names, by the question's category. Each category has its own
rule for precision, recall and F1 (`precision`, `recall`, `f1`: what the published tables hold). The paper's general
measure over nested claims, Eq. 1, is given too, as a mean (`_eq1`) and with the minimum instead (`_strict`). For a
question of plain nested claims (category `claims`, ours) Eq. 1 is the rule; such claims, what a system should find, can
be drafted from a document.

The paper judges every row: if the comparison of a row or slot is missing, a question has no value, and bounds with what
is missing wrong or right.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from adjudge.judges import Answer, Context, Question
from adjudge.judges.lexical import figures, names, sentences
from adjudge.scoring.answers.parts import Overlap
from adjudge.scoring.contract.case import NULL, Case, GoldError
from adjudge.scoring.contract.gold import DraftsFrom, GoldItem, GoldItems, GoldSource, joined
from adjudge.scoring.contract.labels import MATCH, MATCHED, Labelled
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import (
    Bounds,
    Evidence,
    Metric,
    MetricWords,
    Missing,
    Partial,
    Scorecard,
    Value,
)
from adjudge.scoring.livedrbench.claims import (
    Claim,
    Comparison,
    Forest,
    Nested,
    given_answer,
    match_in_order,
    match_nested,
    named,
    rows,
    shown,
    slots,
    structured_answer,
)
from adjudge.scoring.livedrbench.graded_slots import (
    Row,
    Rules,
    Slot,
    compare_rows,
    count_fields,
    field_overlap,
    filled,
    grade_slots,
    has_materials,
    material_overlap,
    row_claims,
    slot_claims,
    slot_points,
)
from adjudge.scoring.livedrbench.traces import count_trace

LIVEDR = MetricWords(
    source="LiveDRBench",
    of={
        "f1": "The harmonic mean of precision and recall, for each question.",
        "precision": "The claims of the answer that the gold answer has.",
        "recall": "The claims of the gold answer that the answer has.",
        "f1_material": "F1 of the materials alone, on questions that ask for materials and papers.",
        "f1_title": "F1 of the papers' titles alone, on questions that ask for materials and papers.",
        "f1_traced": "F1 of the answers that have a trace.",
        "sources": "Sources that the trace refers to.",
        "branches": "Branches of the search in the trace.",
        "backtracks": "Steps back in the trace.",
        "f1_per_source": "F1 over the number of sources, pooled over questions with a trace.",
        "f1_per_branch": "F1 over the number of branches, pooled over questions with a trace.",
        "f1_per_backtrack": "F1 over the number of steps back, pooled over questions with a trace.",
    },
    units={
        **dict.fromkeys(("sources", "branches", "backtracks"), "count"),
        "f1_per_source": "share a source",
        "f1_per_branch": "share a branch",
        "f1_per_backtrack": "share a step back",
        **{
            f"{name}{form}": "share" for name in ("f1", "precision", "recall") for form in ("_eq1", "_strict")
        },
    },
    forms={
        "_eq1": "By the paper's equation 1: the mean over claims of weight, score and the subclaims' precision.",
        "_strict": "By equation 1, with the least instead of the mean.",
    },
)


MOST = 12

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
Detail = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class DraftedClaim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A claim, and what supports or details it."""

    claim: Text
    subclaims: Annotated[tuple[Detail, ...], msgspec.Meta(max_length=3)]


class DraftedClaims(Answer, frozen=True, kw_only=True):
    """The claims of a document that answer a task."""

    analysis: Annotated[str, msgspec.Meta(max_length=600)] = ""
    claims: Annotated[list[DraftedClaim], msgspec.Meta(min_length=1, max_length=MOST)]


class ClaimsOf(Question[DraftedClaims], frozen=True, kw_only=True):
    """Which claims does the document (context) hold that a system must find for the task?"""

    prompt = "livedr_draft"
    words = "a draft of claims from a document"
    answer = DraftedClaims

    def lexical(self) -> DraftedClaims:
        """The sentences that state figures or names."""
        every = [one[:300] for one in sentences(self.context["document"]) if len(one) > 20]
        telling = (
            [one for one in every if figures(one) or names(one)]
            or every
            or [self.context["task"][:300] or "-"]
        )
        return DraftedClaims(
            claims=[DraftedClaim(claim=one, subclaims=()) for one in islice(dict.fromkeys(telling), MOST)]
        )


Category = Literal[
    "scifacts-materials",
    "scifacts-geo",
    "novel-datasets-identification",
    "novel-datasets-identi-extraction",
    "novel-datasets-peer",
    "prior-art",
    "entities",
    "flights",
    "claims",
]

CATEGORIES: tuple[str, ...] = Category.__args__[:8]  # type: ignore[attr-defined]
"""The eight published categories."""

_FORMS = ("", "_eq1", "_strict")
_COUNTS = {"source": "sources", "branch": "branches", "backtrack": "backtracks"}

TRACED = "f1_traced"
"""F1 of the reports that have a trace: what F1 per source, branch and backtrack are pooled from."""

_NAMES = ("precision", "recall", "f1")
_ANSWER_METRICS = (
    *(Metric(name=name, headline=name == "f1") for name in _NAMES),
    *(Metric(name=name + form, best=None, shown=False) for form in _FORMS[1:] for name in _NAMES),
)
FIELD_METRICS = (Metric(name="f1_material", shown=False), Metric(name="f1_title", shown=False))
"""Of the two fields of SciFacts Materials, whose product is its F1."""
_TRACE_METRICS = (
    Metric(name=TRACED, table="traces"),
    *(Metric(name=name, best=None, table="traces", kind="resource") for name in _COUNTS.values()),
    *(
        Metric(name=f"f1_per_{one}", best=None, ratio=(TRACED, many), table="traces", kind="resource")
        for one, many in _COUNTS.items()
    ),
)


class Gold(msgspec.Struct, frozen=True, kw_only=True):
    """A question's ground truth, decrypted: slots in the shape of its category, and the published `eval_info`."""

    category: Category
    ground_truths: msgspec.Raw
    eval_info: Rules | None = None

    def truth(self) -> Any:
        """The ground truth in its category's layout. Raises GoldError (gold_invalid) if it has another, or is empty."""
        try:
            found = msgspec.json.decode(self.ground_truths, type=_LAYOUTS.get(self.category, _SLOTS))
        except (msgspec.MsgspecError, RecursionError) as error:
            raise GoldError(
                "gold_invalid", f"ground_truths of a {self.category} question: {error}"
            ) from error
        if not found or (isinstance(found, list) and not any(found)):
            raise GoldError("gold_invalid", f"ground_truths of a {self.category} question: empty")
        return found


class PriorArt(msgspec.Struct, frozen=True):
    """A gold paper; only its title counts."""

    title: str


_SLOTS = list[dict[str, msgspec.Raw] | list[dict[str, msgspec.Raw]]]
_LAYOUTS: dict[Category, Any] = {
    "scifacts-materials": list[list[Row]],
    "scifacts-geo": list[list[Row]],
    "prior-art": list[list[PriorArt]],
    "entities": list[list[str]],
    "claims": list[Claim],
}
"""How a category's ground truth is laid out; those not named here hold `_SLOTS`."""


Overlaps = tuple[Overlap, ...]
"""By the category's rule, by Eq. 1, and by Eq. 1 strict; the published voice has the first alone."""


class Outcome(msgspec.Struct, frozen=True):
    """A question's result with what is missing wrong (`worst`) or right (`best`), equal if nothing is.

    Of `parts` predicted rows and objects, `missing` are. Of the three forms, only the first `bounded` have a best: with
    weights, Eq. 1 has none. `fields` are the worst and the best of materials and of titles apart, where there are both.
    """

    worst: Overlaps
    best: Overlaps
    parts: int
    missing: Sequence[Missing]
    evidence: list[Evidence]
    bounded: int = 3
    fields: Sequence[tuple[Overlap, Overlap]] = ()

    @classmethod
    def of(
        cls,
        overlaps: Callable[[bool], Overlaps],
        parts: int,
        missing: Sequence[Missing],
        evidence: list[Evidence],
        bounded: int = 3,
    ) -> "Outcome":
        """From what `overlaps` gives at worst (False) and at best (True)."""
        worst = overlaps(False)
        return cls(worst, overlaps(True) if missing else worst, parts, missing, evidence, bounded)

    def figures(self) -> Iterator[Value]:
        """Precision, recall and F1 of each form: no value where a part is missing, as the paper has all."""
        answered = self.parts - len(self.missing)
        for form, ends in enumerate(zip(self.worst, self.best, strict=True)):
            for name in _NAMES:
                low, high = (getattr(end, name) for end in ends)
                best = (min(high, 1.0) if form == 0 else high) if form < self.bounded else None
                bounds = Bounds(low, best, answered, self.parts)
                yield Partial(self.missing[0], bounds) if self.missing else low

    def field_figures(self) -> Iterator[Value]:
        """F1 of each of `fields`."""
        for worst, best in self.fields:
            bounds = Bounds(worst.f1, best.f1, self.parts - len(self.missing), self.parts)
            yield Partial(self.missing[0], bounds) if self.missing else worst.f1


class LiveDRProtocol(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """LiveDRBench in one of two voices: `LiveDR` or `PublishedLiveDR`.

    A voice reads the answer and compares it with gold in its own words; an `Outcome` holds what comes of it.
    """

    name: ClassVar[str] = "livedr"
    words: ClassVar = LIVEDR
    withheld: ClassVar[str] = "encrypted"
    forms: ClassVar[tuple[str, ...]] = _FORMS
    """Endings of the metrics by the category's rule, by Eq. 1, and by Eq. 1 strict, as far as the voice gives them."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Precision, recall and F1 in each form, and F1 of the two fields of SciFacts Materials."""
        return _ANSWER_METRICS[: len(self.forms) * len(_NAMES)] + FIELD_METRICS

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        """Those of `metrics` that the question and its report have. Raises GoldError."""
        raise NotImplementedError

    async def graded(self, case: Case, tools: Tools) -> Outcome | Missing:
        """A report's answer against gold, by its category's rule. Raises GoldError."""
        raise NotImplementedError

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """Reads the answer, and compares its claims with gold. Raises GoldError."""
        outcome = await self.graded(case, tools)
        names, evidence = [name + form for form in self.forms for name in _NAMES], []
        fields = [metric.name for metric in self.metrics_of(case) if metric in FIELD_METRICS]
        values: dict[str, Value] = (
            dict.fromkeys([*names, *fields], outcome) if isinstance(outcome, Missing) else {}
        )
        if not isinstance(outcome, Missing):
            figures = [*outcome.figures(), *outcome.field_figures()]
            values, evidence = dict(zip([*names, *fields], figures, strict=True)), outcome.evidence
        more, lines = await self.traced(case, values["f1"], tools)
        return Scorecard.of(self.name, case, values | more, [*evidence, *lines])

    async def traced(self, case: Case, f1: Value, tools: Tools) -> tuple[dict[str, Value], list[Evidence]]:
        """What the report's trace holds, if the voice looks at it."""
        return {}, []


class LiveDR(LiveDRProtocol, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The protocol. A report's trace, where it has one, is analysed too (section on reasoning traces)."""

    drafts_from: ClassVar[DraftsFrom] = "document"

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Precision, recall, F1 and other forms; then what traces hold, with F1 per source and step (pooled)."""
        return _ANSWER_METRICS + FIELD_METRICS + _TRACE_METRICS

    @staticmethod
    def labelled(line: Evidence) -> Labelled | None:
        """Whether a claim matches a reference; grades of fields and labels of steps are none."""
        kind = line.outcome.kind
        return Labelled.of(MATCH, MATCHED[kind]) if kind in MATCHED else None

    @staticmethod
    def by_labels(case: Case, labels: Sequence[str]) -> dict[str, float]:
        """Precision, recall and F1 of an answer that lists titles or names; other categories grade fields too."""
        gold, answer = case.gold(LiveDR.name, Gold), given_answer(case.report)
        if gold.category not in ("prior-art", "entities") or answer is None:
            return {}
        truth = gold.truth()
        predicted = sum(len(rows(slot) or []) for slot in slots(answer, [list] * len(truth)))
        expected = sum(map(len, truth))
        right = min(sum(label == MATCHED["matched"] for label in labels), predicted, expected)
        found = Overlap.counted(right, predicted, expected)
        return {name: getattr(found, name) for name in _NAMES}

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        """`metrics` without those of fields and of traces that there are not. Raises GoldError."""
        gold = case.gold(self.name, Gold)
        truth = gold.truth()
        fields = gold.category == "scifacts-materials" and has_materials(truth[0])
        found = _ANSWER_METRICS + (FIELD_METRICS if fields else ())
        return found if case.report.trace == NULL else found + _TRACE_METRICS

    async def graded(self, case: Case, tools: Tools) -> Outcome | Missing:
        """A report's answer against gold, by its category's rule; none scores 0. Raises GoldError."""
        return await evaluate(case, case.gold(self.name, Gold), tools)

    async def traced(self, case: Case, f1: Value, tools: Tools) -> tuple[dict[str, Value], list[Evidence]]:
        """Sources, branches and backtracks of the report's trace, if it has one."""
        if case.report.trace == NULL:
            return {}, []
        counts = await count_trace(case, case.report.trace, tools)
        return {**dict(zip(_COUNTS.values(), counts.values, strict=True)), TRACED: f1}, counts.evidence

    async def draft(
        self, case: Case, tools: Tools, sources: Sequence[GoldSource] = ()
    ) -> msgspec.Raw | Missing:
        """The task's gold, or claims (category `claims`) drafted from documents."""
        if self.name in case.task.gold:
            return case.task.gold[self.name]
        context = Context.of(task=case.task.prompt, document=joined(sources))
        judgment = await tools.ask(ClaimsOf(context=context, language=case.task.language))
        if judgment.answer is None:
            return Missing(judgment.reason or "judge_unparseable")
        claims = [
            {"claim": one.claim}
            | ({"claims": [{"claim": text} for text in one.subclaims]} if one.subclaims else {})
            for one in judgment.answer.claims
        ]
        return msgspec.Raw(msgspec.json.encode({"category": "claims", "ground_truths": claims}))

    def gold_items(self, case: Case) -> GoldItems:
        """The claims of a question of plain nested claims; other categories have none. Raises GoldError."""
        gold = case.gold(self.name, Gold)
        found: list[GoldItem] = []
        waiting: list[Claim] = list(reversed(gold.truth())) if gold.category == "claims" else []
        while waiting:  # a claim before what is below it
            claim = waiting.pop()
            found.append(GoldItem(part="claims", item=claim.claim, kind="fact", matched=True))
            waiting += reversed(claim.claims)
        return GoldItems(items=tuple(found))


async def evaluate(case: Case, gold: Gold, tools: Tools) -> Outcome | Missing:
    """A report's answer against gold, by its category's rule; none scores 0."""
    answer = await structured_answer(case, tools)
    if isinstance(answer, Missing):
        return answer
    truth, rules = gold.truth(), gold.eval_info or Rules()
    comparison = Comparison.of(case, tools, shown(rules.evaluation_note) or "-")
    match gold.category:
        case "scifacts-materials" | "scifacts-geo":
            return await _scifacts(comparison, answer, truth[0], rules)
        case "prior-art":
            return await _named(comparison, answer, [[row.title for row in slot] for slot in truth])
        case "entities":
            return await _named(comparison, answer, truth)
        case "claims":
            nested = await match_nested(comparison, rows(answer) or [], truth)
            return _claimed(nested, _weighted(truth))
        case _:
            return await _slots(comparison, answer, truth, rules)


async def _scifacts(
    comparison: Comparison, answer: msgspec.Raw, gold: Sequence[Row], rules: Rules
) -> Outcome:
    predicted = slots(answer, [list])
    found = await compare_rows(comparison, rows(predicted[0]) or [] if predicted else [], gold)

    def overlaps(best: bool) -> Overlaps:
        title = filled(found.title, len(gold), best)
        material = None if found.material is None else filled(found.material, len(gold), best)
        mean, strict = row_claims(title, material, len(gold), rules).overlaps()
        if material is None:
            return field_overlap(title, len(gold)), mean, strict
        return material_overlap(material, title, len(gold)), mean, strict

    outcome = Outcome.of(overlaps, len(found.title), found.missing, found.evidence)
    if found.material is None:
        return outcome

    def field(same: list[list[bool] | Missing]) -> tuple[Overlap, Overlap]:
        worst, best = (field_overlap(filled(same, len(gold), best), len(gold)) for best in (False, True))
        return worst, best

    return msgspec.structs.replace(outcome, fields=(field(found.material), field(found.title)))


async def _slots(comparison: Comparison, answer: msgspec.Raw, gold: Sequence[Slot], rules: Rules) -> Outcome:
    found = await grade_slots(comparison, slots(answer, [type(slot) for slot in gold]), gold, rules)

    def overlaps(best: bool) -> Overlaps:
        items = found.best if best else found.worst
        category = slot_points(items, count_fields(gold, rules), rules).overlap
        mean, strict = slot_claims(items, gold, rules).overlaps()
        return category, mean, strict

    return Outcome.of(overlaps, found.parts, found.missing, found.evidence, 1 if rules.weights else 3)


async def _named(comparison: Comparison, answer: msgspec.Raw, gold: Sequence[Sequence[str]]) -> Outcome:
    """PriorArt and Entities: lists of titles or names; a row is its title."""
    nested = Nested(Forest(sum(map(len, gold))), [])
    for raw, slot in zip(slots(answer, [list] * len(gold)), gold, strict=False):
        matching = await match_in_order(comparison, [named(row, "title") for row in rows(raw) or []], slot)
        nested.matchings.append(matching)
        for at, place in enumerate(matching.gold):
            nested.forest.add(-1, float(place is not None), best=float(matching.best(at) is not None))
    return _claimed(nested)


def _claimed(nested: Nested, weighted: bool = False) -> Outcome:
    """Matched claims whose category's rule is Eq. 1."""

    def overlaps(best: bool) -> Overlaps:
        mean, strict = nested.forest.overlaps(best)
        return mean, mean, strict

    missing = [
        matching.missing
        for matching in nested.matchings
        if matching.missing is not None
        for _ in matching.gold[matching.known :]
    ]
    evidence = [line for matching in nested.matchings for line in matching.evidence]
    return Outcome.of(overlaps, len(nested.forest.parents), missing, evidence, 0 if weighted else 3)


def _weighted(gold: Sequence[Claim]) -> bool:
    """Whether a claim of any depth weighs more than 1."""
    level = list(gold)
    while level:
        if any(claim.weight > 1 for claim in level):
            return True
        level = [below for claim in level for below in claim.claims]
    return False


class Averages(msgspec.Struct, frozen=True):
    """Means over many questions: of each category, over the categories, and over the questions.

    `categories_mean` is the paper's average, `questions_mean` its weighted average, which its code calls overall. Each
    is None while a question it covers is unscored; `scored` and `total` count questions.
    """

    categories: dict[str, float | None]
    categories_mean: float | None
    questions_mean: float | None
    scored: int
    total: int


def averages(questions: Iterable[tuple[str, float | None]]) -> Averages:
    """Averages of one metric over (category, value) of each question.

    A question that a system did not answer has the value 0; None is for one that could not be judged.
    """
    values: dict[str, list[float | None]] = {}
    for category, value in questions:
        values.setdefault(category, []).append(value)
    categories = {category: _mean(found) for category, found in sorted(values.items())}
    everything = [value for found in values.values() for value in found]
    return Averages(
        categories=categories,
        categories_mean=_mean(list(categories.values())),
        questions_mean=_mean(everything),
        scored=sum(value is not None for value in everything),
        total=len(everything),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if values and len(known) == len(values) else None
