"""DR3-Eval's questions, by metric.

Information recall: the insights in a task's sources that its report should bring out. Factual accuracy: a report's
claims against the sources it cites for them. Instruction following: what a task asks for, item by item, and which items
a report satisfies.
"""

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Literal

import msgspec

from adjudge.judges import Answer, Context, Question
from adjudge.judges.lexical import coverage, figures, names, passages, sentences, terms
from adjudge.scoring.answers.numbered import Numbered
from adjudge.scoring.answers.parts import EVERY, Answered, ask_numbered, measured
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Metric, Missing, Value
from adjudge.scoring.dr3_eval.citing import Cited, Cites
from adjudge.scoring.dr3_eval.sandbox import Sandbox, Source
from adjudge.scoring.text.aside import aside, storable
from adjudge.scoring.text.relevance import chunks_for

BATCH = 10
MAX_SOURCE_CHARS = 100_000
_MOST = 5
_PARTLY, _MOSTLY = 0.3, 0.5

Insight = Annotated[str, msgspec.Meta(max_length=300)]


class Insights(Answer, frozen=True, kw_only=True):
    """The insights of one source that matter for the task."""

    analysis: Annotated[str, msgspec.Meta(max_length=400)] = ""
    insights: Annotated[tuple[Insight, ...], msgspec.Meta(min_length=1, max_length=_MOST)]


class InsightsOf(Question[Insights], frozen=True, kw_only=True):
    """What does a source hold that a good report on the task must bring out?"""

    words = "insights of a source"
    prompt = "dr3_insights"
    answer = Insights

    task: str

    def lexical(self) -> Insights | None:
        """The sentences that share most with the task and state figures and names."""
        if self.context.media:
            return None
        wanted = set(terms(self.task))
        found = list(
            dict.fromkeys(sentence for sentence in sentences(self.context["source"]) if len(sentence) > 20)
        )
        found.sort(key=lambda s: -(len(wanted & set(terms(s))) + len(figures(s)) + 0.5 * len(names(s))))
        return Insights(insights=tuple(sentence[:300] for sentence in found[:_MOST])) if found else None


class Recalled(Answer, frozen=True, kw_only=True):
    """How far the report brings out each insight: 1 by more than half of its substance, 0.5 in part, 0 not."""

    analysis: Annotated[str, msgspec.Meta(max_length=800)] = ""
    recalled: dict[str, Annotated[float, msgspec.Meta(ge=0, le=1, multiple_of=0.5)]]


class Recall(Numbered[Recalled], frozen=True, kw_only=True):
    """How far does the report bring out each of up to ten insights, given the `task`?"""

    words = "insights that a report brings out"
    prompt = "dr3_recall"
    answer = Recalled
    listed = "insights"

    task: str
    insights: tuple[str, ...]

    def lexical(self) -> Recalled:
        """By how many of an insight's words, figures and names occur together in the report."""
        report = passages(self.context["report"])
        found = [report.support(insight) for insight in self.insights]
        values = [
            1.0
            if one.verdict == "supported" or one.overlap > _MOSTLY
            else 0.5
            if one.overlap >= _PARTLY
            else 0.0
            for one in found
        ]
        return Recalled(recalled=self.keyed(values))


async def find_insights(sources: Sequence[Source], case: Case, tools: Tools) -> list[str | Missing]:
    """The insights of `sources`, requested one by one; equal for every system.

    `Missing` represents every insight that a source without an answer may have.
    """
    questions = (
        InsightsOf(
            context=source.context(MAX_SOURCE_CHARS), language=case.task.language, task=case.task.prompt
        )
        for source in sources
    )
    judgments = await tools.ask_all(questions)
    found: dict[str, None] = {}
    missing: list[Missing] = []
    for judgment in judgments:
        if judgment.answer is None:
            missing += [Missing(judgment.reason or "judge_unparseable")] * _MOST
        else:
            found |= dict.fromkeys(judgment.answer.insights)
    return [*found, *missing]


async def recall_insights(insights: Sequence[str | Missing], case: Case, tools: Tools) -> list[Answered[str]]:
    """How far the report brings out each insight: 1, 0.5 or 0, ten per question."""
    report, language = Context.of(report=case.report.text), case.task.language

    def question(batch: tuple[str, ...]) -> Recall:
        return Recall(context=report, language=language, task=case.task.prompt, insights=batch)

    known = [insight for insight in insights if isinstance(insight, str)]
    unknown = [insight for insight in insights if isinstance(insight, Missing)]
    answers = await ask_numbered(
        known, tools, question, lambda answer, key: answer.recalled[key], 0.0, 1.0, BATCH
    )
    return answers + [Answered("an insight of a source", missing, 0.0, 1.0) for missing in unknown]


ROLES = ("supportive", "distractor", "noise")

COUNTS = (
    Metric(name="cited", best=None, shown=False, kind="count"),
    *(
        Metric(name=f"{count}:{role}", best=None, shown=False, kind="count")
        for role in ROLES
        for count in ("cited", "pairs", "supported")
    ),
)
POOLED = tuple(
    Metric(name=f"{name}:{role}", scale=100.0, ratio=ratio, shown=False)
    for role in ROLES
    for name, ratio in (("fa", (f"supported:{role}", f"pairs:{role}")), ("share", (f"cited:{role}", "cited")))
)


class Pair(msgspec.Struct, frozen=True):
    """A claim (its place among the report's cited sentences, and its words) and one source that it cites.

    A source that is not in the sandbox may be one of its sources by lenient matching.
    """

    claim: int
    text: str
    cites: Cites

    @property
    def source(self) -> int | None:
        """The place of the source; None if it is not in the sandbox."""
        return self.cites.place


class Verdicts(Answer, frozen=True, kw_only=True):
    """Whether the source backs each claim."""

    analysis: Annotated[str, msgspec.Meta(max_length=800)] = ""
    verdicts: dict[str, Literal["supported", "unsupported"]]


class Grounded(Numbered[Verdicts], frozen=True, kw_only=True):
    """Does the source back each of the claims that cite it?"""

    words = "claims that their source backs"
    prompt = "dr3_grounded"
    answer = Verdicts
    listed = "claims"

    claims: tuple[str, ...]

    def lexical(self) -> Verdicts | None:
        """By words, figures and names; the embedded judge cannot read a picture."""
        if self.context.media:
            return None
        source = passages(self.context["source"])
        verdicts = (source.support(claim).verdict for claim in self.claims)
        return Verdicts(verdicts=self.keyed(verdicts))


async def ground_claims(
    cited: Cited, sandbox: Sandbox, case: Case, tools: Tools, long_source: int
) -> list[Answered[Pair]]:
    """Whether its source backs each (claim, source) pair, 1 or 0; up to 20 claims of one source per question.

    The source is found leniently, as the published code does; `strictly` takes what that adds away again. One that does
    not exist backs nothing. One of more than `long_source` characters, or one that does not fit the
    judge's window, is shown to each claim alone, as the five chunks of 500 characters that fit the claim best.
    """
    pairs = [
        Pair(place, text, cites) for place, (text, sources) in enumerate(cited.claims) for cites in sources
    ]
    by_source: dict[int | None, list[Pair]] = {}
    for pair in pairs:
        by_source.setdefault(pair.cites.lenient, []).append(pair)
    invented = by_source.pop(None, [])
    answered = await asyncio.gather(
        *(
            _ground(sandbox.sources[source], group, case, tools, long_source)
            for source, group in by_source.items()
            if source is not None
        )
    )
    known = {answer.item: answer for group in answered for answer in group}
    known |= {pair: Answered(pair, 0.0, 0.0, 0.0) for pair in invented}
    return [known[pair] for pair in pairs]


async def _ground(
    source: Source, pairs: Sequence[Pair], case: Case, tools: Tools, long_source: int
) -> list[Answered[Pair]]:
    if not source.text.strip() and source.media is None:
        missing = Missing("media_unsupported")
        return [Answered(pair, missing, 0.0, 1.0) for pair in pairs]
    language = case.task.language

    def whole(batch: tuple[Pair, ...]) -> Grounded:
        return Grounded(
            context=source.context(), language=language, claims=tuple(pair.text for pair in batch)
        )

    async def by_chunks(pairs: Sequence[Pair]) -> list[Answered[Pair]]:
        queries = tuple(storable(pair.text) for pair in pairs)
        chunks = dict(zip(queries, await aside(chunks_for, storable(source.text), queries), strict=True))

        def relevant(batch: tuple[Pair, ...]) -> Grounded:
            [pair] = batch
            context = Context.of(name=source.label, source=chunks[storable(pair.text)])
            return Grounded(context=context, language=language, claims=(pair.text,))

        return await ask_numbered(pairs, tools, relevant, _supported, 0.0, 1.0, 1)

    if len(source.text) > long_source:
        return await by_chunks(pairs)
    answers = await ask_numbered(pairs, tools, whole, _supported, 0.0, 1.0)
    beyond = [answer.item for answer in answers if answer.value == Missing("context_overflow")]
    if not beyond or source.media is not None:
        return answers
    again = await by_chunks(beyond)
    shorter = {answer.item: answer for answer in again}
    return [shorter.get(answer.item, answer) for answer in answers]


def strictly(pairs: Sequence[Answered[Pair]]) -> list[Answered[Pair]]:
    """`pairs` with those whose source is not in the sandbox by its own name unsupported, whatever the judge said."""
    return [Answered(pair.item, 0.0, 0.0, 0.0) if pair.item.source is None else pair for pair in pairs]


def _supported(answer: Verdicts, key: str) -> float:
    return float(answer.verdicts[key] == "supported")


def role_counts(pairs: Sequence[Answered[Pair]], sandbox: Sandbox, cited: Cited) -> dict[str, Value]:
    """For pages of each role: how many are cited, (claim, source) pairs, and how many of those are supported."""
    roles = {place: source.role for place, source in enumerate(sandbox.sources)}
    counts: dict[str, Value] = {"cited": float(sum(roles[place] in ROLES for place in cited.sources))}
    for role in ROLES:
        values = [
            answer for answer in pairs if answer.item.source is not None and roles[answer.item.source] == role
        ]
        supported = measured(values, lambda known: float(sum(value == 1 for _, value in known)), EVERY)
        counts[f"cited:{role}"] = float(sum(roles[place] == role for place in cited.sources))
        counts[f"pairs:{role}"] = float(len(values))
        counts[f"supported:{role}"] = supported
    return counts


_MOST_ITEMS = 12
_SEEN = 0.45

Requirement = Annotated[str, msgspec.Meta(max_length=300)]


class Checklist(Answer, frozen=True, kw_only=True):
    """The requirements of a task, each to be met or not."""

    analysis: Annotated[str, msgspec.Meta(max_length=400)] = ""
    requirements: Annotated[tuple[Requirement, ...], msgspec.Meta(min_length=1, max_length=_MOST_ITEMS)]


class ChecklistOf(Question[Checklist], frozen=True, kw_only=True):
    """What does a task require of its report?"""

    words = "requirements of a task"
    prompt = "dr3_checklist"
    answer = Checklist

    def lexical(self) -> Checklist:
        """The task's own sentences."""
        task = self.context["task"]
        return Checklist(
            requirements=tuple(found[:300] for found in islice(sentences(task), _MOST_ITEMS)) or (task[:300],)
        )


class Met(Answer, frozen=True, kw_only=True):
    """Whether the report meets each requirement."""

    analysis: Annotated[str, msgspec.Meta(max_length=800)] = ""
    met: dict[str, bool]


class ChecklistMet(Numbered[Met], frozen=True, kw_only=True):
    """Which of the requirements does the report meet?"""

    words = "requirements that a report meets"
    prompt = "dr3_met"
    answer = Met
    listed = "requirements"

    requirements: tuple[str, ...]

    def lexical(self) -> Met:
        """Met if the report uses the requirement's words."""
        words = set(terms(self.context["report"]))
        met = (coverage(terms(requirement), words) >= _SEEN for requirement in self.requirements)
        return Met(met=self.keyed(met))


async def find_checklist(case: Case, tools: Tools) -> list[str] | Missing:
    """The requirements of the task, read out of its words; equal for every system."""
    judgment = await tools.ask(
        ChecklistOf(context=Context.of(task=case.task.prompt), language=case.task.language)
    )
    if judgment.answer is None:
        return Missing(judgment.reason or "judge_unparseable")
    return list(judgment.answer.requirements)


async def check_report(
    requirements: Sequence[str] | Missing, case: Case, tools: Tools
) -> list[Answered[str]]:
    """Whether the report meets each requirement, 1 or 0, up to 20 per question."""
    if isinstance(requirements, Missing):
        return [Answered("requirements of the task", requirements, 0.0, 1.0)]
    report, language = Context.of(report=case.report.text), case.task.language

    def question(batch: tuple[str, ...]) -> ChecklistMet:
        return ChecklistMet(context=report, language=language, requirements=batch)

    return await ask_numbered(
        requirements, tools, question, lambda answer, key: float(answer.met[key]), 0.0, 1.0
    )
