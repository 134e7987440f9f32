"""Rubrics drafted by a judge: criteria with points for a task, and query-specific rubrics with keywords (Rigorous)."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Any

import msgspec

from adjudge.judges import Answer, Context, Question
from adjudge.judges.lexical import names, sentences, terms
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.gold import GoldItem, GoldItems, GoldSource, joined
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Missing, first_missing
from adjudge.scoring.rubrics.criteria import Criterion

TOTAL = 30  # points of a query's own rubrics, as published
FEWEST, MOST = 8, 15

Rubric = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
Word = Annotated[str, msgspec.Meta(min_length=1, max_length=60)]


class DraftedRubric(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A proposed rubric; its points say how much it counts beside the others."""

    rubric: Rubric
    points: Annotated[int, msgspec.Meta(ge=1, le=6)]


class DraftedRubrics(Answer, frozen=True, kw_only=True):
    """The proposed rubrics of a task."""

    analysis: Annotated[str, msgspec.Meta(max_length=800)] = ""
    rubrics: Annotated[list[DraftedRubric], msgspec.Meta(min_length=FEWEST, max_length=MOST)]


class RubricsOf(Question[DraftedRubrics], frozen=True, kw_only=True):
    """By which criteria, with how many points, should a report on the task (context) be judged?"""

    prompt = "rubric_draft"
    words = "a draft of criteria for the task"
    answer = DraftedRubrics

    def lexical(self) -> DraftedRubrics:
        """As many sentences of the context as a draft may have, repeated where there are too few."""
        every = (one for section in self.context.sections for one in sentences(section.text) if len(one) > 10)
        found = list(islice(every, MOST)) or ["-"]
        while len(found) < FEWEST:
            found += found
        return DraftedRubrics(rubrics=[DraftedRubric(rubric=one[:300], points=2) for one in found[:MOST]])


class QueryRubricsOf(RubricsOf, frozen=True, kw_only=True):
    """Which questions with points tell whether a report answers this very query (context)?"""

    prompt = "rigorous_rubrics"
    words = "a draft of rubrics for the query"


class DraftedKeywords(Answer, frozen=True, kw_only=True):
    """Words that a focused report uses (`anchors`) and that a report beside the point uses (`deviations`)."""

    analysis: Annotated[str, msgspec.Meta(max_length=400)] = ""
    anchors: Annotated[tuple[Word, ...], msgspec.Meta(min_length=1, max_length=12)]
    deviations: Annotated[tuple[Word, ...], msgspec.Meta(max_length=8)]


class KeywordsOf(Question[DraftedKeywords], frozen=True, kw_only=True):
    """Which keywords tell a focused report on the query (context) from one beside the point?"""

    prompt = "rigorous_keywords"
    words = "a draft of keywords for the query"
    answer = DraftedKeywords

    def lexical(self) -> DraftedKeywords:
        """The most frequent words and the names; words alone do not show what to avoid."""
        text = "\n".join(section.text for section in self.context.sections)
        frequent = [word for word, _ in Counter(terms(text)).most_common(8)]
        found = dict.fromkeys([*frequent, *sorted(names(text))[:4]])
        return DraftedKeywords(
            anchors=tuple(word[:60] for word in found) or (text[:60] or "-",), deviations=()
        )


def criterion_item(criterion: Criterion, part: str = "rubrics") -> GoldItem:
    """A criterion as an item of gold."""
    return GoldItem(
        part=part,
        item=criterion.criterion,
        kind="requirement",
        line=criterion.criterion,
        full=criterion.best if criterion.best > 0 else -criterion.worst,
        penalty=criterion.best <= 0,
    )


def query_items(rubrics: Sequence[Criterion], anchors: Sequence[str], deviations: Sequence[str]) -> GoldItems:
    """The items of a query's gold in Rigorous Bench."""
    items = [criterion_item(one, "qsr") for one in rubrics]
    items += [GoldItem(part="fak", item=word, kind="anchor") for word in anchors]
    items += [GoldItem(part="fdk", item=word, kind="deviation") for word in deviations]
    return GoldItems(items=tuple(items))


async def draft_criteria(case: Case, tools: Tools, sources: Sequence[GoldSource]) -> msgspec.Raw | Missing:
    """Criteria for the case's task, drafted from its prompt and the `sources`."""
    judgment = await tools.ask(RubricsOf(context=_context(case, sources), language=case.task.language))
    if judgment.answer is None:
        return Missing(judgment.reason or "judge_unparseable")
    rows = [{"criterion": one.rubric, "points": one.points} for one in judgment.answer.rubrics]
    return msgspec.Raw(msgspec.json.encode(rows))


async def draft_query(case: Case, tools: Tools, sources: Sequence[GoldSource]) -> msgspec.Raw | Missing:
    """Gold of Rigorous Bench with rubrics of 30 points and keywords, drafted where the task has none. GoldError."""
    gold: dict[str, Any] = {}
    if "rigorous" in case.task.gold:
        gold |= case.gold("rigorous", dict[str, Any])
    context, language = _context(case, sources), case.task.language

    asked: list[Question[Any]] = []
    if "qsr" not in gold:
        asked.append(QueryRubricsOf(context=context, language=language))
    if "fak" not in gold:
        asked.append(KeywordsOf(context=context, language=language))
    judgments = await tools.ask_all(asked)
    if missing := first_missing(judgments):
        return missing
    for judgment in judgments:
        answer = judgment.answer
        if isinstance(answer, DraftedRubrics):
            points = with_total([one.points for one in answer.rubrics], TOTAL)
            gold["qsr"] = [
                {"criterion": one.rubric, "points": full}
                for one, full in zip(answer.rubrics, points, strict=True)
            ]
        elif isinstance(answer, DraftedKeywords):
            gold |= {"fak": answer.anchors, "fdk": answer.deviations}
    return msgspec.Raw(msgspec.json.encode(gold))


def with_total(points: Sequence[int], total: int) -> list[int]:
    """`points` in about the same proportions with the sum `total`, each at least 1 (if `total` is enough for that)."""
    spare, whole = total - len(points), sum(points)
    shares = [one * spare / whole for one in points]
    given = [1 + int(share) for share in shares]
    largest = sorted(range(len(points)), key=lambda place: int(shares[place]) - shares[place])
    for place in largest[: total - sum(given)]:
        given[place] += 1
    return given


def _context(case: Case, sources: Sequence[GoldSource]) -> Context:
    if not sources:
        return Context.of(task=case.task.prompt)
    return Context.of(task=case.task.prompt, document=joined(sources))
