"""Claims drafted from a document: what it holds that a system should find (LiveDRBench, category `claims`)."""

from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Any

import msgspec

from adjudge.judges import Answer, Context, Question
from adjudge.judges.lexical import figures, names, sentences
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.gold import GoldItem, GoldSource, joined
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Missing
from adjudge.scoring.livedrbench.claims import Claim

__all__ = ["ClaimsOf", "DraftedClaims", "claim_items", "draft_claims"]

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


async def draft_claims(case: Case, tools: Tools, sources: Sequence[GoldSource]) -> msgspec.Raw | Missing:
    """Gold of the category `claims`, drafted from `sources`."""
    context = Context.of(task=case.task.prompt, document=joined(sources))
    judgment = await tools.ask(ClaimsOf(context=context, language=case.task.language))
    if judgment.answer is None:
        return Missing(judgment.reason or "judge_unparseable")
    claims = [_claim(one) for one in judgment.answer.claims]
    return msgspec.Raw(msgspec.json.encode({"category": "claims", "ground_truths": claims}))


def _claim(one: DraftedClaim) -> dict[str, Any]:
    below = {"claims": [{"claim": text} for text in one.subclaims]} if one.subclaims else {}
    return {"claim": one.claim, **below}


def claim_items(claims: Sequence[Claim]) -> tuple[GoldItem, ...]:
    """Claims and their subclaims as items, a claim before what is below it."""
    found: list[GoldItem] = []
    waiting = list(reversed(claims))
    while waiting:
        claim = waiting.pop()
        found.append(GoldItem(part="claims", item=claim.claim, kind="fact", matched=True))
        waiting += reversed(claim.claims)
    return tuple(found)
