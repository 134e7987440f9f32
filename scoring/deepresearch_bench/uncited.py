"""Statements that cite nothing, against all pages that the report cites (`fact: {uncited: true}`).

FACT looks at statements with a citation alone. Here every other sentence of the body that states something is checked
too: against the text of all pages that the report cites and that can be read, laid one after the other, of which the
judge is shown the passages that fit a few statements best. A statement is supported, unsupported, or uncheckable: the
pages hold nothing to judge it by, or the report cites none that can be read. Nobody asks whether it should have cited.

The figures are counts and, over all reports together, shares of them; nothing is ranked by them. A statement is missing
by itself where the judge failed, and where it is not supported while a page is missing for no fault of the report.
"""

from collections.abc import Iterable, Sequence

import msgspec

from adjudge.fetchers.page import Page
from adjudge.scoring.answers.parts import EVERY, Answered, measured
from adjudge.scoring.contract.case import Citation
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.reasons import CAUSES
from adjudge.scoring.contract.scorecard import Evidence, Metric, Missing, Outcome, Value
from adjudge.scoring.deepresearch_bench.fact_questions import back, distinct
from adjudge.scoring.text.citations import parse
from adjudge.scoring.text.integrity import prose_words

__all__ = ["UNCITED", "check_uncited", "uncited_of", "without_pages"]

MAX_UNCITED = 500
"""Statements of a report that are checked, from its beginning."""
_LEAST_WORDS = 5
_TOGETHER = 5  # statements in one question: each needs passages of its own
_MOST_CHARS = 2_000_000  # of all pages together

KINDS = ("supported", "unsupported", "uncheckable")
UNCITED = (
    Metric(name="uncited", best=None, shown=False, kind="count"),
    *(Metric(name=f"uncited_{kind}", best=None, shown=False, kind="count") for kind in KINDS),
    *(
        Metric(
            name=f"uncited_{kind}_share",
            best=None,
            kind="count",
            scale=100,
            ratio=(f"uncited_{kind}", "uncited"),
            lower_is_better=kind != "supported",
        )
        for kind in KINDS
    ),
)
"""How many statements cite nothing, how many of them are what, and the shares."""


def uncited_of(text: str, handed: tuple[Citation, ...]) -> tuple[str, ...]:
    """The sentences of the report `text` that state something and cite nothing, each once. Linear time."""
    stated = (one.fact.strip() for one in parse(text, handed).passages if not one.sources)
    claims = (
        one
        for one in stated
        if not one.endswith(("?", "？", ":", "：")) and len(prose_words(one)) >= _LEAST_WORDS
    )
    return distinct(list(claims))[:MAX_UNCITED]


async def check_uncited(
    claims: Sequence[str], found: Iterable[Page | Missing], language: str, tools: Tools
) -> tuple[dict[str, Value], list[Evidence]]:
    """Every figure of `UNCITED`, and a note for each of `claims`, by the pages that were `found` at the citations."""
    every = list(found)
    pages = [one for one in every if isinstance(one, Page)]
    lost = next(
        (one for one in every if isinstance(one, Missing) and CAUSES[one.reason] not in _CHOSEN), None
    )
    if not pages:
        unread: str | Missing = lost or "uncheckable"
        return _figures([(claim, unread, "") for claim in claims])
    whole = msgspec.structs.replace(pages[0], title="", description="", text=_joined(pages), beside="")
    verdicts: list[tuple[str, str | Missing, str]] = []
    for start in range(0, len(claims), _TOGETHER):
        batch = tuple(claims[start : start + _TOGETHER])
        for claim, one in zip(batch, await back(tools, whole, batch, language), strict=True):
            said: str | Missing = Missing(one.reason or "judge_unparseable")
            if one.verdict is not None:
                said = "uncheckable" if one.verdict == "unknown" else one.verdict
                said = said if said == "supported" or lost is None else lost
            verdicts.append((claim, said, one.judgment))
    return _figures(verdicts)


_CHOSEN = ("source", "report")


def without_pages(claims: Sequence[str]) -> tuple[dict[str, Value], list[Evidence]]:
    """The figures where no page is read."""
    return _figures([(claim, Missing("pages_off"), "") for claim in claims])


def _joined(pages: Sequence[Page]) -> str:
    each = dict.fromkeys(f"{page.title}\n{page.visible}".strip() for page in pages)
    return "\n\n".join(each)[:_MOST_CHARS]


def _figures(
    verdicts: Sequence[tuple[str, str | Missing, str]],
) -> tuple[dict[str, Value], list[Evidence]]:
    values: dict[str, Value] = {"uncited": float(len(verdicts))}
    for kind in KINDS:
        answers = [
            Answered(claim, said if isinstance(said, Missing) else float(said == kind), 0.0, 1.0, judgment)
            for claim, said, judgment in verdicts
        ]
        values[f"uncited_{kind}"] = measured(answers, _sum, EVERY)
    evidence = [
        Evidence(
            what=claim,
            outcome=Outcome("note", words="" if isinstance(said, Missing) else f"cites nothing: {said}"),
            judgment=judgment,
            reason=said.reason if isinstance(said, Missing) else "",
        )
        for claim, said, judgment in verdicts
    ]
    return values, evidence


def _sum(answers: Sequence[tuple[str, float]]) -> float:
    return sum(value for _, value in answers)
