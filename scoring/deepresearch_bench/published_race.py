"""RACE in the benchmark's own calls: its prompts from the user's checkout, its replies read as its code does.

The report is cleaned of citations by the judge, marked beside the reference by all criteria in one call, and weighed
(`published_marks`). Weights and criteria that the task's gold lacks are made by the judge (`published_criteria`).

Requests are the code's: one user message, no system message, no parameters. Up to 10 attempts to clean and to mark;
a report that cannot be cleaned is cleaned in two parts, up to 3 attempts each, and so is one that the judge's window
does not take. The code cleans every report in the language it comes to first, Chinese where the set has Chinese tasks;
here it is the task's own, unless `cleaning_language` says otherwise.

Metrics have the published names. The code scores a reply that lacks a dimension's marks, with 0; `_strict` metrics have
no value then.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar, Literal

import msgspec

from adjudge.judges import Context
from adjudge.judges.checkout import Checkout
from adjudge.judges.published import PublishedQuestion, UnreadableReply, Wording
from adjudge.scoring.answers.attempts import ReadReply, ask_until_read
from adjudge.scoring.contract.case import Case, GoldError
from adjudge.scoring.contract.gold import GoldSource
from adjudge.scoring.contract.protocol import ExplainedCriterion, Tools
from adjudge.scoring.contract.scorecard import Evidence, Metric, Missing, Scorecard, Value
from adjudge.scoring.deepresearch_bench.published_criteria import CriteriaWordings, published_yardstick
from adjudge.scoring.deepresearch_bench.published_marks import MarkedItem, RaceShares, marks_in, shares
from adjudge.scoring.deepresearch_bench.words import RACE
from adjudge.scoring.deepresearch_bench.yardstick import (
    DIMENSIONS,
    Criterion,
    MeasuredByGold,
    RaceGold,
    Yardstick,
    frozen,
)

__all__ = [
    "PublishedClean",
    "PublishedMarks",
    "PublishedPartClean",
    "PublishedRace",
    "RaceWordings",
    "halves",
]

Language = Literal["en", "zh"]
Variant = Literal["full", "pointwise"]

MIN_CLEANED = 100
_MARKS = {"full": "generate_merged_score_prompt", "pointwise": "point_wise_score_prompt"}
_ENDS = frozenset(".?!。？！\n")
_SEARCHED = 200


class RaceWordings(msgspec.Struct, frozen=True):
    """The requests of one checkout by language."""

    clean: dict[str, Wording]
    marks: dict[str, Wording]
    criteria: dict[str, CriteriaWordings]

    @classmethod
    def of(cls, folder: str, variant: Variant = "full") -> "RaceWordings":
        """The wordings in the checkout at `folder`. Raises CheckoutError."""
        checkout = Checkout(folder)
        return cls(
            {
                language: Wording.of(
                    checkout.formatted("prompt/clean_prompt.py", f"clean_article_prompt_{language}")
                )
                for language in ("en", "zh")
            },
            {
                language: Wording.of(
                    checkout.formatted(f"prompt/score_prompt_{language}.py", _MARKS[variant])
                )
                for language in ("en", "zh")
            },
            {language: CriteriaWordings.of(checkout, language) for language in ("en", "zh")},
        )


_wordings = lru_cache(maxsize=8)(RaceWordings.of)


class PublishedPartClean(PublishedQuestion[str], frozen=True, kw_only=True):
    """What is a part of the report, its `article`, without citations?"""

    words = "a part of a report without citations, published call"
    attempts: ClassVar[int] = 3

    def read(self, text: str) -> str:
        """The reply, if it is long enough."""
        if len(text.strip()) < MIN_CLEANED:
            raise UnreadableReply(f"fewer than {MIN_CLEANED} characters")
        return text

    def example(self) -> str:
        """The text as it was."""
        return self.context["article"].ljust(MIN_CLEANED, ".")


class PublishedClean(PublishedPartClean, frozen=True, kw_only=True):
    """What is the report, its `article`, without citations?"""

    words = "a report without citations, published call"
    attempts: ClassVar[int] = 10


class PublishedMarks(PublishedQuestion[object], frozen=True, kw_only=True):
    """How do the report (`article_1`) and the reference (`article_2`) do by each criterion?"""

    words = "marks by criterion beside the reference, published call"
    attempts: ClassVar[int] = 10

    article_2: str
    criteria_list: str

    def read(self, text: str) -> object:
        """The JSON in the reply that holds all dimensions."""
        return marks_in(text)

    def example(self) -> str:
        """Middling marks for every criterion."""
        return _middling(self.criteria_list, article_1_score=5.0, article_2_score=5.0)


class PublishedMarksAlone(PublishedQuestion[object], frozen=True, kw_only=True):
    """How does the report (`article`) do by each criterion, with nothing to compare it with?"""

    words = "marks by criterion, published call"
    attempts: ClassVar[int] = 10

    criteria_list: str

    def read(self, text: str) -> object:
        """The JSON in the reply that holds all dimensions."""
        return marks_in(text)

    def example(self) -> str:
        """Middling marks for every criterion."""
        return _middling(self.criteria_list, target_score=5.0)


class PublishedRace(MeasuredByGold, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score a report under the task's gold `race` (`RaceGold`) by the calls of the benchmark at `checkout`.

    `cleaning: none` takes reports that are clean already. `variant: pointwise` shows no reference: shares of 10.
    """

    name: ClassVar[str] = "race"
    words: ClassVar = RACE

    checkout: str
    variant: Variant = "full"
    cleaning: Literal["judge", "none"] = "judge"
    cleaning_language: Language | None = None

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Overall first, then the dimensions; then the same without what the code scores 0 for a lacking reply."""
        names = ("overall", *DIMENSIONS)
        return (
            Metric(name="overall", scale=100, headline=True),
            *(Metric(name=name, scale=100) for name in DIMENSIONS),
            *(Metric(name=f"{name}_strict", scale=100, shown=False) for name in names),
        )

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        """`metrics`, the same for every task. Raises GoldError."""
        self._gold(case)
        return self.metrics

    def prompts(self) -> dict[str, str]:
        """Digests of all that may be sent, by what it is for. Raises CheckoutError."""
        found = _wordings(self.checkout, self.variant)
        kinds = {"clean": found.clean, "marks": found.marks}
        own = {
            f"race.{kind}.{language}": wording.digest.hex()
            for kind, wordings in kinds.items()
            for language, wording in wordings.items()
        }
        made = (wordings.digests(language) for language, wordings in found.criteria.items())
        return own | {name: digest for each in made for name, digest in each.items()}

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """Clean the report, find or make its criteria, ask for marks, weigh them. Raises GoldError."""
        gold, language = self._gold(case), _language(case)
        wordings = _wordings(self.checkout, self.variant)
        article = await self._cleaned(case, wordings, tools)
        if isinstance(article, Missing):
            return self._unscored(case, article)
        measure = await published_yardstick(case, gold, wordings.criteria[language], tools)
        if isinstance(measure, Missing):
            return self._unscored(case, measure)
        question = self._question(case, article, gold.reference, measure)
        reply = await ask_until_read(tools, question)
        if isinstance(reply, Missing):
            return self._unscored(case, reply)
        try:
            alone = self.variant == "pointwise"
            found = shares(reply.value, measure.weights, measure.criteria, alone=alone)
        except UnreadableReply:
            return self._unscored(case, Missing("judge_unparseable"))
        return Scorecard.of(self.name, case, _values(found), _evidence(found, reply))

    async def draft(
        self, case: Case, tools: Tools, sources: Sequence[GoldSource] = ()
    ) -> msgspec.Raw | Missing:
        """The task's gold with weights and criteria, made by the published calls if missing. Raises GoldError."""
        wordings = _wordings(self.checkout, self.variant).criteria[_language(case)]
        measure = await published_yardstick(case, RaceGold.of(case), wordings, tools)
        return measure if isinstance(measure, Missing) else frozen(case, measure)

    async def explained(self, case: Case, tools: Tools) -> list[ExplainedCriterion]:
        """The criteria with their explanations and what they weigh in `overall`. Raises GoldError."""
        wordings = _wordings(self.checkout, self.variant).criteria[_language(case)]
        measure = await published_yardstick(case, self._gold(case), wordings, tools)
        return [] if isinstance(measure, Missing) else measure.explained()

    def _gold(self, case: Case) -> RaceGold:
        gold = RaceGold.of(case)
        if self.variant == "full" and not gold.reference.strip():
            raise GoldError("gold_missing", f"task {case.task.id}: gold for race has no reference")
        return gold

    def _question(
        self, case: Case, article: str, reference: str, measure: Yardstick
    ) -> PublishedMarks | PublishedMarksAlone:
        task, language, listed = case.task.prompt, _language(case), _listed(*measure.criteria.items())
        wording = _wordings(self.checkout, self.variant).marks[language]
        if self.variant == "pointwise":
            context = Context.of(task_prompt=task, article=article)
            return PublishedMarksAlone(
                context=context, language=language, wording=wording, criteria_list=listed
            )
        return PublishedMarks(
            context=Context.of(task_prompt=task, article_1=article),
            language=language,
            wording=wording,
            article_2=reference,
            criteria_list=listed,
        )

    async def _cleaned(self, case: Case, wordings: RaceWordings, tools: Tools) -> str | Missing:
        article = case.report.text
        if self.cleaning == "none":
            return article
        language = self.cleaning_language or _language(case)
        wording = wordings.clean[language]
        whole = PublishedClean(context=Context.of(article=article), language=language, wording=wording)
        reply = await ask_until_read(tools, whole)
        if isinstance(reply, ReadReply):
            return reply.value
        if reply.reason not in ("judge_unparseable", "context_overflow"):
            return reply
        parts = [
            await ask_until_read(
                tools,
                PublishedPartClean(context=Context.of(article=part), language=language, wording=wording),
            )
            for part in halves(article)
        ]
        cleaned = [part.value for part in parts if isinstance(part, ReadReply)]
        failed = next((part for part in parts if isinstance(part, Missing)), None)
        return failed or "".join(cleaned)

    def _unscored(self, case: Case, missing: Missing) -> Scorecard:
        return Scorecard.of(self.name, case, {metric.name: missing for metric in self.metrics})


def _middling(criteria_list: str, **marks: float) -> str:
    """A reply with the same `marks` for every criterion."""
    listed: dict[str, list[dict[str, str]]] = json.loads(criteria_list)
    found = {
        name: [
            {"criterion": one["criterion"], "analysis": "x" * 300, **marks} for one in listed.get(name, ())
        ]
        for name in DIMENSIONS
    }
    return json.dumps(found, ensure_ascii=False)


def halves(article: str) -> tuple[str, str]:
    """The two parts that the code cleans apart: up to the last end of a sentence near the middle, and from the middle.

    What stands between the end of that sentence and the middle is in neither.
    """
    middle = end = len(article) // 2
    for place in range(middle, max(0, middle - _SEARCHED), -1):
        if place < len(article) and article[place] in _ENDS:
            end = place + 1
            break
    return article[:end], article[middle:]


def _language(case: Case) -> Language:
    return "zh" if case.task.language == "zh" else "en"


@lru_cache(maxsize=64)
def _listed(*criteria: tuple[str, tuple[Criterion, ...]]) -> str:
    """The criteria as the code shows them, the same for all reports on a task: without weights, in the gold's order."""
    shown = {
        name: [{"criterion": one.criterion, "explanation": one.explanation} for one in each]
        for name, each in criteria
    }
    return json.dumps(shown, ensure_ascii=False, indent=2)


def _values(found: RaceShares) -> dict[str, Value]:
    published = {"overall": found.overall, **found.dimensions}
    whole = found.whole
    strict: dict[str, Value] = {
        f"{name}_strict": value
        if (name in whole or (name == "overall" and len(whole) == len(DIMENSIONS)))
        else Missing("judge_unparseable")
        for name, value in published.items()
    }
    return published | strict


def _evidence(found: RaceShares, reply: ReadReply[object]) -> list[Evidence]:
    return [
        Evidence(
            what=f"{name}: {item.criterion}",
            outcome=_shown(item),
            judgment=reply.judgment,
            value=None if item.reference is None else item.target,
        )
        for name, marks in found.marks.items()
        for item in marks.items
    ]


def _shown(item: MarkedItem) -> str:
    mark = f"{item.target:g} of 10"
    return mark if item.reference is None else f"{mark}, reference {item.reference:g}"
