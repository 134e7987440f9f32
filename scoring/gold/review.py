"""The review of a task's gold: first by rules on its words, then by a judge for the remaining items."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import msgspec

from adjudge.judges import Answer, Context, Judgment, Question, numbered
from adjudge.judges.lexical import passages, terms
from adjudge.scoring.answers.numbered import BATCH, Numbered, batches
from adjudge.scoring.answers.sameness import SameAs
from adjudge.scoring.contract.case import Case, GoldError, Passage
from adjudge.scoring.contract.gold import MET, Drafting, GoldItem, GoldItems, GoldSource
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.reasons import Reason
from adjudge.scoring.gold.rules import TASK, Problem, known_sources, material, told_by_words

_ABSENT = (
    0.2  # share of an item's words that some passage must hold for the embedded judge not to call it absent
)


class Flaws(Answer, frozen=True, kw_only=True):
    """For each numbered item, why no report can be judged by it."""

    analysis: Annotated[str, msgspec.Meta(max_length=800)] = ""
    items: dict[str, Literal["sound", "vague", "compound", "met_by_nothing"]]


class ItemFlaws(Numbered[Flaws], frozen=True, kw_only=True):
    """Which items are vague, compound or met by a report that says nothing, given the task (context)?"""

    prompt = "gold_flaws"
    words = "items of gold that no report can be judged by"
    answer = Flaws
    listed = "items"

    items: tuple[str, ...]

    def lexical(self) -> Flaws:
        """None: what words alone tell is known before anybody is asked."""
        return Flaws(items=dict.fromkeys(numbered(self.count), "sound"))


class Held(Answer, frozen=True, kw_only=True):
    """For each numbered item, what the material makes of it."""

    analysis: Annotated[str, msgspec.Meta(max_length=800)] = ""
    items: dict[str, Literal["held", "contradicted", "absent", "unclear"]]


class ItemsHeld(Numbered[Held], frozen=True, kw_only=True):
    """Does the material (context: the task, and documents) hold, contradict or lack each item?"""

    prompt = "gold_held"
    words = "what the source makes of items of gold"
    answer = Held
    listed = "items"

    items: tuple[str, ...]

    def lexical(self) -> Held:
        """Absent if no passage of the material has some of the item's words; words alone do not tell more."""
        if len(self.context.sections) < 2:
            return Held(items=dict.fromkeys(numbered(self.count), "unclear"))
        known = passages("\n".join(section.text for section in self.context.sections))
        return Held(
            items={
                key: "absent" if known.support(item).overlap < _ABSENT else "unclear"
                for key, item in zip(numbered(self.count), self.items, strict=True)
            }
        )


class SameItem(SameAs, frozen=True, kw_only=True):
    """Whether an item of gold (candidate) asks for the same as others, given the task (context)."""

    prompt = "gold_same"
    words = "which items of gold ask for the same"


SAYS_NOTHING = {
    "en": "This report makes no statement on the question. It has no content.",
    "zh": "本报告对该问题不作任何陈述，没有内容。",
}
"""The report that meets nothing, by language."""

_WHY = {
    "vague": "the judge finds nothing in it that can be looked for",
    "compound": "the judge finds several things in it",
    "met_by_nothing": "the judge says that a report without content meets it",
}


class Review(msgspec.Struct, frozen=True):
    """A task's items and their problems; what could not be asked, and the sources of passages that were not given."""

    items: tuple[GoldItem, ...]
    problems: tuple[Problem, ...]
    unanswered: tuple[Reason, ...]
    unknown_sources: tuple[str, ...]


Found = tuple[list[Problem], list[Reason]]


async def review(protocol: Drafting, case: Case, given: Sequence[GoldSource], tools: Tools) -> Review:
    """The review of the case's gold for `protocol`. Raises GoldError if it has none that can be read."""
    gold = protocol.gold_items(case)
    if not gold.items:
        return Review((), (), (), ())
    rests_on: Sequence[Passage] = case.task.rests_on.get(protocol.name, ())
    sources = known_sources(gold, case, given, rests_on)
    problems = list(told_by_words(gold, rests_on, sources))

    known = {(one.part, one.item) for one in problems}
    left = [
        one for one in gold.items if (one.part, one.item) not in known and one.kind in ("fact", "requirement")
    ]
    documents = [GoldSource(name, text) for name, text in sources.items() if name != TASK]
    opinions = await asyncio.gather(
        _held(left, case, documents, tools),
        _flawed(left, case, tools),
        _same(left, gold, case, tools),
        _met_by_nothing(protocol, left, case, tools),
    )
    for found, _ in opinions:
        problems += [one for one in found if (one.part, one.item) not in known]
        known |= {(one.part, one.item) for one in found}
    places = {(one.part, one.item): place for place, one in enumerate(gold.items)}
    return Review(
        gold.items,
        tuple(sorted(problems, key=lambda one: places.get((one.part, one.item), -1))),
        tuple(reason for _, reasons in opinions for reason in reasons),
        tuple(dict.fromkeys(one.source for one in rests_on if one.source not in sources)),
    )


async def _held(left: Sequence[GoldItem], case: Case, documents: Sequence[GoldSource], tools: Tools) -> Found:
    """Items that the material does not hold, or contradicts."""
    context, language = material(case, documents), case.task.language

    def question(texts: tuple[str, ...]) -> ItemsHeld:
        return ItemsHeld(context=context, language=language, items=texts)

    def problem(item: GoldItem, verdict: str) -> Problem | None:
        label = "" if item.truth is None else "true" if item.truth else "false"
        if verdict == "absent":
            return Problem.of(item, "unsupported", "the judge finds nothing on it in the source")
        if verdict == "contradicted" and label == "":
            return Problem.of(item, "contradicted", "the judge finds that the source says otherwise")
        if (verdict == "contradicted" and label == "true") or (verdict == "held" and label == "false"):
            return Problem.of(item, "mislabelled", f"labelled {label}, but by the source it is {verdict}")
        return None

    return await _asked(left, question, problem, tools)


async def _flawed(left: Sequence[GoldItem], case: Case, tools: Tools) -> Found:
    """Requirements that the judge finds vague, compound or met by nothing; penalties apply to what reports say."""
    context, language = Context.of(task=case.task.prompt), case.task.language

    def question(texts: tuple[str, ...]) -> ItemFlaws:
        return ItemFlaws(context=context, language=language, items=texts)

    def problem(item: GoldItem, verdict: str) -> Problem | None:
        found = verdict if verdict in _WHY else None
        return None if found is None else Problem.of(item, found, _WHY[found])  # type: ignore[arg-type]

    wanted = [one for one in left if one.kind == "requirement" and not one.penalty]
    return await _asked(wanted, question, problem, tools)


async def _asked(
    items: Sequence[GoldItem],
    question: Callable[[tuple[str, ...]], ItemsHeld | ItemFlaws],
    problem: Callable[[GoldItem, str], Problem | None],
    tools: Tools,
) -> Found:
    asked = batches(items)
    questions: list[Question[Any]] = [question(tuple(one.text for one in batch)) for batch in asked]
    judgments = await tools.ask_all(questions)
    problems: list[Problem] = []
    for batch, judgment in zip(asked, judgments, strict=True):
        if judgment.answer is not None:
            verdicts = (judgment.answer.items[key] for key in numbered(len(batch)))
            found = (problem(item, verdict) for item, verdict in zip(batch, verdicts, strict=True))
            problems += [one for one in found if one is not None]
    return problems, _unanswered(judgments)


async def _same(left: Sequence[GoldItem], gold: GoldItems, case: Case, tools: Tools) -> Found:
    """Items that say the same as an earlier one in other words; each beside the earlier ones most like it."""
    context, language = Context.of(task=case.task.prompt), case.task.language
    wanted = {(one.part, one.item) for one in left}
    before: dict[tuple[str, bool | None], list[tuple[GoldItem, frozenset[str]]]] = {}
    pairs: list[tuple[GoldItem, list[GoldItem]]] = []
    for one in gold.items:
        words, earlier = frozenset(terms(one.text)), before.setdefault((one.part, one.truth), [])
        if earlier and (one.part, one.item) in wanted:
            pairs.append((one, _most_like(words, earlier)))
        earlier.append((one, words))
    judgments = await tools.ask_all(
        SameItem(
            context=context,
            language=language,
            candidate=one.text,
            references=tuple(other.text for other in others),
        )
        for one, others in pairs
    )
    problems = []
    for (one, others), judgment in zip(pairs, judgments, strict=True):
        items = {} if judgment.answer is None else judgment.answer.items
        for other, verdict in zip(others, items.values(), strict=False):
            if verdict == "same":
                problems.append(
                    Problem.of(one, "duplicate", f"the judge finds that it says the same as {other.item!r}")
                )
                break
    return problems, _unanswered(judgments)


def _most_like(words: frozenset[str], before: Sequence[tuple[GoldItem, frozenset[str]]]) -> list[GoldItem]:
    """Up to 20 of the items `before`, in order: those that share most of the `words`."""
    chosen = sorted(range(len(before)), key=lambda place: -len(words & before[place][1]))[:BATCH]
    return [before[place][0] for place in sorted(chosen)]


async def _met_by_nothing(protocol: Drafting, left: Sequence[GoldItem], case: Case, tools: Tools) -> Found:
    """Items for which a report without content gets something, by the protocol itself."""
    text = SAYS_NOTHING.get(case.task.language, SAYS_NOTHING["en"])
    report = msgspec.structs.replace(case.report, text=text, answer=msgspec.Raw(b"[]"))
    try:
        card = await protocol.score(msgspec.structs.replace(case, report=report), tools)
    except GoldError as error:  # it has items to review, but lacks what scoring needs
        return [], [error.reason]
    given = [(item, item.given(card.evidence)) for item in left if not item.penalty]
    problems = [
        Problem.of(item, "met_by_nothing", _WHY["met_by_nothing"])
        for item, value in given
        if value is not None and value >= MET
    ]
    lacks = card.reason is not None and any(value is None for _, value in given)
    return problems, [card.reason] if lacks and card.reason is not None else []


def _unanswered(judgments: Sequence[Judgment[Any]]) -> list[Reason]:
    return [one.reason or "judge_unparseable" for one in judgments if one.answer is None]
