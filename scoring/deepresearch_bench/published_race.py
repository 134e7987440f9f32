"""RACE in the benchmark's own calls: its prompts from the user's checkout, its replies read as its code does.

The report is cleaned of citations by the judge, marked beside the reference by all criteria in one call, and weighted.
Weights and criteria that the task's gold lacks are made by the judge (`published_criteria`).

Requests are the code's: one user message, no system message, no parameters. Cleaning and marking get up to 10 attempts;
a report that cannot be cleaned, or does not fit the judge's window, is cleaned in two parts, up to 3 attempts each. The
code cleans every report in the language it comes to first, Chinese where the set has Chinese tasks; here it is the
task's own, unless `cleaning_language` says otherwise.

Metrics have the published names. If a reply lacks a dimension's marks, the code scores it 0; its bounds, and those of
the overall score, say what it could be, and reports are ranked by the lower one.

Marks are read and weighted by the reference code's rules, quirks included, for `call: published` alone:

- A criterion that the reply leaves out counts in no sum; one that it repeats counts each time.
- The weight of an item is that of the criterion with its text (stripped; else without regard to case; else the first
  where one text contains the other), else the mean weight of the dimension.
- A missing mark of the reference adds nothing to its sum, whose divisor it still enters; if the last one of a dimension
  is missing, the reference's whole dimension is 0.
- A dimension without a list of marks, or without a usable one, is 0 for both; so is a share of NaN. Such a score is the
  reply's fault and not the report's: `whole` says which dimensions miss nothing.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Literal

import msgspec

from adjudge.judges import Context
from adjudge.judges.published import Checkout, PublishedQuestion, UnreadableReply, Wording, digests
from adjudge.scoring.answers.parts import ReadReply, ask_until_read
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import MISSING, Bounds, Evidence, Metric, Missing, Partial, Value
from adjudge.scoring.deepresearch_bench.published_criteria import (
    LANGUAGES,
    Language,
    criteria_wordings,
    language_of,
    published_yardstick,
)
from adjudge.scoring.deepresearch_bench.race import (
    Found,
    RaceProtocol,
    mark_evidence,
    match_weight,
    share,
    total,
    weighted_mean,
)
from adjudge.scoring.deepresearch_bench.yardstick import DIMENSIONS, Criterion, RaceGold, Yardstick

_FENCE = "```json"
_BRACE = re.compile(r"[{}]")
_CRITERION = re.compile(r'"criterion"\s*:\s*"([^"]+)"')
_TARGET = re.compile(r'"article_1_score"\s*:\s*(\d+\.?\d*)')
_REFERENCE = re.compile(r'"article_2_score"\s*:\s*(\d+\.?\d*)')


def marks_in(text: str) -> object:
    """The JSON value in a reply's `text` that holds all four dimensions. Raises UnreadableReply. Linear."""
    found = json_in(text)
    if not isinstance(found, dict | list | str) or any(name not in found for name in DIMENSIONS):
        raise UnreadableReply("a dimension is missing")
    return found


def json_in(text: str) -> object:
    """The JSON value in `text`: of several ways to find one, the first that gives valid JSON. Raises UnreadableReply.

    The text as a whole, if it is in braces; its first fence; the text as a whole; from its first brace to the one that
    closes it, braces within strings counted too; from its first brace to its last; marks gathered from broken JSON.
    """
    for candidate in _candidates(text):
        try:
            return json.loads(candidate)
        except json.JSONDecodeError:
            continue
        except (ValueError, RecursionError) as error:
            raise UnreadableReply(f"{type(error).__name__} in the reply's JSON") from error
    gathered = _gathered(text)
    if not any(gathered.values()):
        raise UnreadableReply("no JSON in the reply")
    return gathered


def _candidates(text: str) -> Iterator[str]:
    whole = text.strip()
    if whole.startswith("{") and whole.endswith("}"):
        yield whole
    start = text.find(_FENCE) + len(_FENCE)
    if start >= len(_FENCE) and (close := text.find("```", start)) > start:
        yield text[start:close].strip()
    yield whole
    first, last = text.find("{"), text.rfind("}")
    if first >= 0:
        depth = 0
        for brace in _BRACE.finditer(text, first):
            depth += 1 if brace[0] == "{" else -1
            if depth == 0:
                yield text[first : brace.end()]
                break
        if last > first:
            yield text[first : last + 1]


def _gathered(text: str) -> dict[str, list[dict[str, object]]]:
    """Criteria and marks by dimension, wherever they are in broken JSON."""
    if any(word not in text for word in (DIMENSIONS[0], "article_1_score", "article_2_score")):
        return {}
    found: dict[str, list[dict[str, object]]] = {}
    for name in DIMENSIONS:
        if name in text:
            start = next(place for place in _places(text, name, 0, 0) if place >= 0)
            after = start + len(name)
            ends = [
                next((place for place in _places(text, other, start, after) if place >= 0), len(text))
                for other in DIMENSIONS
                if other != name
            ]
            section = text[start : min(ends)]
            columns = [pattern.findall(section) for pattern in (_CRITERION, _TARGET, _REFERENCE)]
            found[name] = [
                {"criterion": said, "article_1_score": float(target), "article_2_score": float(reference)}
                for said, target, reference in zip(*columns, strict=False)
            ]
    return found


def _places(text: str, name: str, quoted_from: int, bare_from: int) -> Iterator[int]:
    """Positions of `name` in double quotes, in single quotes, and unquoted; -1 for none."""
    yield text.find(f'"{name}"', quoted_from)
    yield text.find(f"'{name}'", quoted_from)
    yield text.find(name, bare_from)


class MarkedItem(msgspec.Struct, frozen=True):
    """A criterion's text as the reply gives it, its weight, and the marks; `reference` None if there is none."""

    criterion: str
    weight: float
    target: float
    reference: float | None

    @property
    def is_whole(self) -> bool:
        """Whether both marks are numbers."""
        return math.isfinite(self.target) and self.reference is not None and math.isfinite(self.reference)


class DimensionMarks(msgspec.Struct, frozen=True):
    """A dimension's weighted means, and the items behind them. `whole`: no mark is missing."""

    items: tuple[MarkedItem, ...]
    target: float
    reference: float
    whole: bool


class RaceShares(msgspec.Struct, frozen=True):
    """A report's results: the shares of target / (target + reference), overall and by dimension, and their marks."""

    overall: float
    dimensions: dict[str, float]
    marks: dict[str, DimensionMarks]

    @property
    def whole(self) -> frozenset[str]:
        """The dimensions that miss nothing."""
        return frozenset(name for name in DIMENSIONS if name in self.marks and self.marks[name].whole)


def shares(
    reply: object,
    weights: Mapping[str, float],
    criteria: Mapping[str, Sequence[Criterion]],
    *,
    alone: bool = False,
) -> RaceShares:
    """The results of a `reply` that `marks_in` accepts. Raises UnreadableReply if no number results.

    A report that was marked `alone`, without a reference, has its marks as shares of 10, within 0..1.
    """
    if not isinstance(reply, dict):
        raise UnreadableReply("no object of dimensions in the reply")
    try:
        marks = {
            name: _dimension(items, criteria[name], alone)
            for name, items in reply.items()
            if isinstance(items, list) and name in weights and criteria.get(name)
        }
    except OverflowError as error:
        raise UnreadableReply("a mark beyond all numbers") from error
    dimensions = {
        name: share(marks[name].target, marks[name].reference, not alone) if name in marks else 0.0
        for name in DIMENSIONS
    }
    target = total({name: one.target for name, one in marks.items()}, weights)
    overall = share(target, total({name: one.reference for name, one in marks.items()}, weights), not alone)
    if not all(map(math.isfinite, (overall, *dimensions.values()))):
        raise UnreadableReply("a mark that is not a finite number")
    return RaceShares(overall, dimensions, marks)


def _dimension(raw: list[Any], criteria: Sequence[Criterion], alone: bool) -> DimensionMarks:
    items: list[MarkedItem] = []
    last: float | None = None
    for one in raw:
        try:
            target, reference = _marks(one)
        except (TypeError, ValueError):
            continue
        last = reference
        text = one.get("criterion")
        text = text.strip() if isinstance(text, str) else ""
        if text and target is not None:
            items.append(MarkedItem(text, match_weight(text, criteria), target, reference))
    weight = sum(item.weight for item in items)
    if not weight > 0:
        return DimensionMarks(tuple(items), 0.0, 0.0, False)
    targets = weighted_mean((item.target, item.weight) for item in items)
    references = sum(item.reference * item.weight for item in items if item.reference is not None)
    whole = all(math.isfinite(item.target) and (alone or item.is_whole) for item in items)
    whole = whole and (alone or last is not None)
    return DimensionMarks(tuple(items), targets, 0.0 if last is None else references / weight, whole)


def _marks(item: Any) -> tuple[float | None, float | None]:
    """The marks of target and reference. Raises TypeError or ValueError for what is not an item with numbers."""
    if not isinstance(item, dict):
        raise TypeError("not an item")
    target, reference = item.get("article_1_score"), item.get("article_2_score")
    if target is None:
        target = item.get("target_score")
    return (None if target is None else float(target)), (None if reference is None else float(reference))


Variant = Literal["full", "pointwise"]

MIN_CLEANED = 100
_MOST = 10.0  # of a mark, as the prompts ask for it
_MARKS = {"full": "generate_merged_score_prompt", "pointwise": "point_wise_score_prompt"}
_ENDS = frozenset(".?!。？！\n")
_SEARCHED = 200


@lru_cache(maxsize=8)
def race_wordings(folder: str, variant: Variant = "full") -> dict[str, Wording]:
    """The requests in the checkout at `folder`, by what they are for and by language. Raises CheckoutError."""
    checkout = Checkout(folder)
    prompts = {
        "clean": ("prompt/clean_prompt.py", "clean_article_prompt_{}"),
        "marks": ("prompt/score_prompt_{}.py", _MARKS[variant]),
    }
    found = {
        f"{kind}.{language}": Wording.of(checkout.formatted(file.format(language), name.format(language)))
        for kind, (file, name) in prompts.items()
        for language in LANGUAGES
    }
    return found | criteria_wordings(checkout)


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


class PublishedRace(RaceProtocol, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score a report under the task's gold `race` (`RaceGold`) by the calls of the benchmark at `checkout`.

    `cleaning: none` takes reports that are clean already. `variant: pointwise` shows no reference: shares of 10.
    """

    checkout: str
    variant: Variant = "full"
    cleaning: Literal["judge", "none"] = "judge"
    cleaning_language: Language | None = None

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Overall first, then the dimensions."""
        names = ("overall", *DIMENSIONS)
        return tuple(Metric(name=name, scale=100, headline=name == "overall") for name in names)

    @property
    def compares(self) -> bool:
        """Whether a report is shown beside the reference."""
        return self.variant == "full"

    def prompts(self) -> dict[str, str]:
        """Digests of all that may be sent, by what it is for. Raises CheckoutError."""
        return digests("race", race_wordings(self.checkout, self.variant))

    async def cleaned(self, case: Case, tools: Tools) -> str | Missing:
        """The report as the judge cleans it, whole or in two parts."""
        article = case.report.text
        if self.cleaning == "none":
            return article
        language = self.cleaning_language or language_of(case)
        wording = race_wordings(self.checkout, self.variant)[f"clean.{language}"]
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
        failed = next((part for part in parts if isinstance(part, Missing)), None)
        return failed or "".join(part.value for part in parts if isinstance(part, ReadReply))

    async def yardstick(self, case: Case, gold: RaceGold, tools: Tools) -> Yardstick | Missing:
        """Weights and criteria: gold's, made by the published calls where it has none."""
        return await published_yardstick(case, gold, race_wordings(self.checkout, self.variant), tools)

    async def marked(
        self, case: Case, article: str, reference: str, measure: Yardstick, tools: Tools
    ) -> Found | Missing:
        """Every metric by the code's rules, and a line of evidence for each mark, and each dimension that lacks one."""
        task, language = case.task.prompt, language_of(case)
        listed = _listed(*measure.criteria.items())
        wording = race_wordings(self.checkout, self.variant)[f"marks.{language}"]
        question: PublishedQuestion[object]
        if self.compares:
            context = Context.of(task_prompt=task, article_1=article)
            question = PublishedMarks(
                context=context, language=language, wording=wording, article_2=reference, criteria_list=listed
            )
        else:
            context = Context.of(task_prompt=task, article=article)
            question = PublishedMarksAlone(
                context=context, language=language, wording=wording, criteria_list=listed
            )
        reply = await ask_until_read(tools, question)
        if isinstance(reply, Missing):
            return reply
        try:
            found = shares(reply.value, measure.weights, measure.criteria, alone=not self.compares)
        except UnreadableReply:
            return Missing("judge_unparseable")
        evidence = [
            mark_evidence(f"{name}: {item.criterion}", item.target, item.reference, reply.judgment)
            for name, marks in found.marks.items()
            for item in marks.items
        ]
        evidence += [
            Evidence(what=name, outcome=MISSING, judgment=reply.judgment, reason="judge_unparseable")
            for name in DIMENSIONS
            if name not in found.whole
        ]
        return _bounded(found, measure.weights, self.compares), evidence


def _bounded(found: RaceShares, weights: Mapping[str, float], compares: bool) -> dict[str, Value]:
    """Every metric as the code counts it, between what it could be if the reply lacked nothing."""
    lost = [name for name in DIMENSIONS if name not in found.whole]
    if not lost:
        return {"overall": found.overall, **found.dimensions}
    kept = {name: found.marks[name] for name in found.whole}
    target = total({name: one.target for name, one in kept.items()}, weights)
    reference = total({name: one.reference for name, one in kept.items()}, weights)
    most = total(dict.fromkeys(lost, _MOST), weights)
    ends = (share(target, reference + most, compares), share(target + most, reference, compares))
    values: dict[str, Value] = {
        name: _within(one, (0.0, 1.0), 0, 1) if name in lost else one
        for name, one in found.dimensions.items()
    }
    return {"overall": _within(found.overall, ends, len(kept), len(DIMENSIONS)), **values}


def _within(value: float, ends: tuple[float, float], answered: int, parts: int) -> Partial:
    """The code's `value`, which may lie beyond the `ends`: its marks have no limits."""
    return Partial(value, Bounds(min(value, *ends), max(value, *ends), answered, parts))


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

    The text between the end of that sentence and the middle is in neither.
    """
    middle = end = len(article) // 2
    for place in range(middle, max(0, middle - _SEARCHED), -1):
        if place < len(article) and article[place] in _ENDS:
            end = place + 1
            break
    return article[:end], article[middle:]


@lru_cache(maxsize=64)
def _listed(*criteria: tuple[str, tuple[Criterion, ...]]) -> str:
    """The criteria as the code shows them, the same for all reports on a task: without weights, in the gold's order."""
    shown = {
        name: [{"criterion": one.criterion, "explanation": one.explanation} for one in each]
        for name, each in criteria
    }
    return json.dumps(shown, ensure_ascii=False, indent=2)
