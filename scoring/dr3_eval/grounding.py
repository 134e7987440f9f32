"""Claims of a report against the sources it cites for them (DR3-Eval, factual accuracy)."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from adjudge.judges import Answer, Context, Question, numbered
from adjudge.judges.lexical import passages
from adjudge.scoring.answers.answered import Answered, ask_numbered
from adjudge.scoring.answers.parts import EVERY, measured
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Metric, Missing, Value
from adjudge.scoring.dr3_eval.citing import Cited, Cites
from adjudge.scoring.dr3_eval.sandbox import Sandbox, Source
from adjudge.scoring.text.aside import aside, storable
from adjudge.scoring.text.relevance import chunks_for

__all__ = [
    "COUNTS",
    "POOLED",
    "Grounded",
    "Pair",
    "ground_claims",
    "role_counts",
    "strictly",
]

ROLES = ("supportive", "distractor", "noise")

COUNTS = (
    Metric(name="cited", best=None, shown=False),
    *(
        Metric(name=f"{count}:{role}", best=None, shown=False)
        for role in ROLES
        for count in ("cited", "pairs", "supported")
    ),
)
POOLED = tuple(
    Metric(name=f"{name}:{role}", scale=100.0, ratio=ratio, shown=False)
    for role in ROLES
    for name, ratio in (
        ("fa", (f"supported:{role}", f"pairs:{role}")),
        ("share", (f"cited:{role}", "cited")),
    )
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


class Grounded(Question[Verdicts], frozen=True, kw_only=True):
    """Does the source back each of the claims that cite it?"""

    words = "claims that their source backs"
    prompt = "dr3_grounded"
    answer = Verdicts

    claims: tuple[str, ...]

    @property
    def count(self) -> int:
        """One verdict per claim."""
        return len(self.claims)

    def lexical(self) -> Verdicts | None:
        """By words, figures and names; the embedded judge cannot read a picture."""
        if self.context.media:
            return None
        source = passages(self.context["source"])
        verdicts = (source.support(claim).verdict for claim in self.claims)
        return Verdicts(verdicts=dict(zip(numbered(self.count), verdicts, strict=True)))


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
