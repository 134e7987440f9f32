"""Claims: a system's list of findings, matched against gold one by one (LiveDRBench).

A list is matched in order: every predicted claim is compared with the gold claims that are still unmatched, and takes
the first that is the same. The rule makes that sequential; different lists run in parallel.

Structured answers from a report are JSON of any shape, read without trusting any of it. A prediction is a list of
slots. Anything without gold's shape does not count as a prediction; nothing is repaired.
"""

import asyncio
from collections.abc import Sequence
from typing import Annotated, NamedTuple, TypeVar

import msgspec

from adjudge.judges import Answer, Context, Question
from adjudge.judges.schema import UnparseableReply
from adjudge.scoring.answers.parts import Overlap
from adjudge.scoring.answers.sameness import SameAs, Verdicts, clipped, same_as
from adjudge.scoring.contract.case import NULL, Case, Report
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Evidence, Missing, first_missing
from adjudge.scoring.kernels.matching import match_claims as kernel

T = TypeVar("T")

Fields = dict[str, msgspec.Raw]
Rows = list[msgspec.Raw]

NOTHING = msgspec.Raw(b"[]")
"""The answer of a report that gives none."""


class Structured(Answer, frozen=True, kw_only=True):
    """The answer that a report gives, as JSON text; empty if it gives none."""

    answer: Annotated[str, msgspec.Meta(max_length=8_000)]


class ReadAnswer(Question[Structured], frozen=True, kw_only=True):
    """The answer that a report (context) gives to `task`, in the JSON form that the task asks for.

    LiveDRBench's answers are JSON; systems that write prose have theirs read out of it first.
    """

    words = "the answer in a report"
    prompt = "livedr_answer"
    answer = Structured

    task: str

    def typed(self, answer: Answer) -> Structured:
        """Raises UnparseableReply if the text in the answer is not JSON: the judge's failure, not the report's."""
        found = super().typed(answer)
        if found.answer.strip() and decoded(msgspec.Raw(found.answer.encode()), object) is None:
            raise UnparseableReply("answer: not the text of a JSON value")
        return found


def given_answer(report: Report) -> msgspec.Raw | None:
    """A report's `answer`, else its last fenced JSON, else None."""
    return report.answer if report.answer != NULL else fenced_json(report.text)


async def structured_answer(case: Case, tools: Tools) -> msgspec.Raw | Missing:
    """The report's structured answer, or what a judge reads in its text."""
    given = given_answer(case.report)
    if given is not None:
        return given
    context = Context.of(report=case.report.text)
    question = ReadAnswer(context=context, language=case.task.language, task=case.task.prompt)
    judgment = await tools.ask(question)
    missing = first_missing([judgment])
    if missing is not None or judgment.answer is None:
        return missing or NOTHING
    return msgspec.Raw(judgment.answer.answer.encode()) if judgment.answer.answer.strip() else NOTHING


def fenced_json(text: str) -> msgspec.Raw | None:
    """The last fenced code block of `text` that is a JSON list or object, or None."""
    found: msgspec.Raw | None = None
    block: list[str] | None = None
    for line in text.splitlines():
        if not line.lstrip().startswith("```"):
            if block is not None:
                block.append(line)
        elif block is None:
            block = []
        else:
            raw = msgspec.Raw("\n".join(block).encode("utf-8", "replace"))
            found = found if rows(raw) is None and fields(raw) is None else raw
            block = None
    return found


def slots(answer: msgspec.Raw, gold: list[type]) -> list[msgspec.Raw]:
    """The slots of `answer` for gold slots of the given kinds (`list` or `dict`), in order.

    An answer to a question of one slot may come without the list around it. An answer of another shape has no slots;
    those beyond gold's are left out (the reference code's zip).
    """
    if len(gold) == 1 and gold[0] is dict and fields(answer) is not None:
        return [answer]
    found = rows(answer)
    if found is None:
        return []
    if len(gold) == 1 and gold[0] is list and any(rows(slot) is None for slot in found):
        return [answer]
    return found[: len(gold)]


def rows(raw: msgspec.Raw) -> Rows | None:
    """The elements of a JSON list, not looked into; None if it is not a list."""
    return decoded(raw, list[msgspec.Raw])


def fields(raw: msgspec.Raw) -> Fields | None:
    """The fields of a JSON object, not looked into; None if it is not an object."""
    return decoded(raw, dict[str, msgspec.Raw])


def decoded(raw: msgspec.Raw, kind: type[T]) -> T | None:
    """`raw` as a `kind`; None if it is something else, not JSON, or nested too deep to read (about 300 levels)."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        return None


def shown(raw: msgspec.Raw) -> str:
    """A JSON value as a judge reads it: a string bare, anything else as compact JSON; empty for null."""
    value: object = decoded(raw, object)
    if value is None:
        return "" if raw == NULL else bytes(raw).decode("utf-8", "replace")
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


MAX_CLAIMS = 200
"""How many predicted claims of one list are put before the judge; those beyond count as wrong."""


class Claim(msgspec.Struct, frozen=True):
    """A gold claim: its text, its weight in Eq. 1, and its subclaims, of any depth that JSON is read to."""

    claim: str
    weight: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    claims: tuple["Claim", ...] = ()


class Forest(msgspec.Struct, frozen=True):
    """Predicted claims of one question, parents before children, as matched against `gold` main claims.

    For each claim: the index of its parent (-1 at the root), its weight, its score (0 where it matches nothing),
    the `best` score it may have (another one where a judgment is missing), and how many subclaims its gold claim has.
    Flat, so that any depth works.
    """

    gold: int
    parents: list[int] = []
    weights: list[float] = []
    scores: list[float] = []
    best: list[float] = []
    subclaims: list[int] = []

    def add(
        self, parent: int, score: float, weight: float = 1.0, subclaims: int = 0, best: float | None = None
    ) -> int:
        """Adds a claim below `parent`; its index. `best` is `score` if not given."""
        self.parents.append(parent)
        self.weights.append(weight)
        self.scores.append(score)
        self.best.append(score if best is None else best)
        self.subclaims.append(subclaims)
        return len(self.parents) - 1

    def overlaps(self, best: bool = False) -> tuple[Overlap, Overlap]:
        """LiveDRBench's Eq. 1, standard and strict, over the scores or the best ones.

        Weights above 1 can lift it above 1, as denominators are counts.
        """
        scores = self.best if best else self.scores
        below: list[list[kernel.Claim]] = [[] for _ in self.parents]
        roots: list[kernel.Claim] = []
        for index in reversed(range(len(self.parents))):
            parent = self.parents[index]
            claim = kernel.Claim(
                score=scores[index],
                weight=self.weights[index],
                subclaims=tuple(reversed(below[index])),
                gold_subclaims=self.subclaims[index],
            )
            (roots if parent < 0 else below[parent]).append(claim)
        found = kernel.nested_scores([(roots[::-1], self.gold)])
        return (
            Overlap(float(found.precision[0]), float(found.recall[0]), float(found.f1[0])),
            Overlap(
                float(found.strict_precision[0]), float(found.strict_recall[0]), float(found.strict_f1[0])
            ),
        )


class Matching(msgspec.Struct, frozen=True):
    """For each predicted item the gold item it was matched to, or None; each gold item at most once.

    With `missing` a judgment was: items from the place `known` on, and the gold items `left`, are unmatched so far.
    """

    gold: list[int | None]
    evidence: list[Evidence]
    known: int
    missing: Missing | None = None
    left: tuple[int, ...] = ()

    def best(self, place: int) -> int | None:
        """The gold item of an item: one that is left for each that is not known, as long as there are any."""
        if place < self.known:
            return self.gold[place]
        spare = place - self.known
        return self.left[spare] if spare < len(self.left) else None

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """(predicted, gold) of all matches."""
        return [(place, gold) for place, gold in enumerate(self.gold) if gold is not None]


class SameClaim(SameAs, frozen=True, kw_only=True):
    """Whether a predicted claim (a name, a title, a row's primary keys) is one of the reference entries."""

    words = "which gold claims a claim equals"
    prompt = "livedr_same"

    notes: str


class Comparison(msgspec.Struct, frozen=True):
    """How the claims of one case are compared: under its task, in its language, with its notes."""

    tools: Tools
    context: Context
    language: str
    notes: str

    @classmethod
    def of(cls, case: Case, tools: Tools, notes: str) -> "Comparison":
        """For `case`; the task is the context, so that all its comparisons share a prefix."""
        return cls(tools, Context.of(task=case.task.prompt), case.task.language, notes)

    async def which(self, candidate: str, references: Sequence[str]) -> Verdicts | Missing:
        """Which of `references` mean the same as `candidate`; an empty candidate none, without asking."""
        if not candidate.strip():
            return Verdicts([False] * len(references), [])

        def ask(batch: tuple[str, ...]) -> SameClaim:
            return SameClaim(
                context=self.context,
                language=self.language,
                candidate=clipped(candidate),
                references=tuple(clipped(reference) for reference in batch),
                notes=self.notes,
            )

        return await same_as(self.tools, ask, references)


async def match_in_order(comparison: Comparison, predicted: Sequence[str], gold: Sequence[str]) -> Matching:
    """One-to-one: each of `predicted` in order takes the first of the remaining `gold` that is the same.

    It ends at the first judgment that is missing: what comes after depends on it.
    """
    remaining = list(range(len(gold)))
    matching = Matching([None] * len(predicted), [], len(predicted))
    for place, candidate in enumerate(predicted[:MAX_CLAIMS]):
        if not remaining:
            break
        references = [gold[index] for index in remaining]
        verdicts = await comparison.which(candidate, references)
        if isinstance(verdicts, Missing):
            return msgspec.structs.replace(matching, known=place, missing=verdicts, left=tuple(remaining))
        if verdicts.first is not None:
            matching.gold[place] = remaining.pop(verdicts.first)
        matching.evidence.append(verdicts.evidence(candidate, references))
    return matching


class _Siblings(NamedTuple):
    """A list of predicted claims below one parent, and the gold claims it is matched against."""

    parent: int
    predicted: Rows
    gold: Sequence[Claim]


class Nested(msgspec.Struct, frozen=True):
    """Nested claims as matched: all lists of siblings that were compared."""

    forest: Forest
    matchings: list[Matching]


async def match_nested(comparison: Comparison, predicted: Rows, gold: Sequence[Claim]) -> Nested:
    """Matches nested claims level by level: the subclaims of a match against the subclaims of its gold claim.

    A predicted claim is a string or an object with `claim` and, if it has subclaims, `claims`. The subclaims of a
    claim that matches nothing are ignored: it counts nothing whatever they say.
    """
    nested = Nested(Forest(len(gold)), [])
    level = [_Siblings(-1, predicted, gold)]
    while level:
        matchings = await asyncio.gather(
            *(
                match_in_order(
                    comparison,
                    [named(raw, "claim") for raw in siblings.predicted],
                    [claim.claim for claim in siblings.gold],
                )
                for siblings in level
            )
        )
        nested.matchings.extend(matchings)
        below: list[_Siblings] = []
        for siblings, matching in zip(level, matchings, strict=True):
            for at, (raw, place) in enumerate(zip(siblings.predicted, matching.gold, strict=True)):
                if place is None:
                    nested.forest.add(siblings.parent, 0.0, best=float(matching.best(at) is not None))
                    continue
                claim = siblings.gold[place]
                index = nested.forest.add(siblings.parent, 1.0, claim.weight, len(claim.claims))
                subclaims = rows((fields(raw) or {}).get("claims", NULL))
                if subclaims:
                    below.append(_Siblings(index, subclaims, claim.claims))
        level = below
    return nested


def named(raw: msgspec.Raw, key: str) -> str:
    """What a prediction says under `key`, or the whole of it if it is not an object."""
    found = fields(raw)
    return shown(raw) if found is None else shown(found.get(key, NULL))
