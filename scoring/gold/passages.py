"""Passages that items rest on: finding them by a judge, and checking that they stand in the source."""

import re
from collections.abc import Sequence
from typing import Annotated

import msgspec

from adjudge.judges import Answer, Context, Question, numbered
from adjudge.judges.lexical import coverage, sentences, terms
from adjudge.judges.remembering import remembered
from adjudge.scoring.contract.case import Case, Passage
from adjudge.scoring.contract.gold import GoldItem, GoldSource, joined
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.reasons import Reason
from adjudge.scoring.text.splitting import compatible

__all__ = ["BATCH", "TASK", "PassagesOf", "find_passages", "holds", "material", "source_of"]

TASK = "task"
"""The name of the task's prompt among the sources."""

BATCH = 20
_KEPT_CHARS = 2_000_000
_SPACES = re.compile(r"\s+")
_ALIKE = str.maketrans("“”„«»‘’‚‐‑‒–—−", '"""""' + "'''" + "------")


def holds(text: str, quote: str) -> bool:
    """Whether `quote` stands in `text`, whatever its case, white space, quotation marks and dashes."""
    wanted = _plain.__wrapped__(quote)
    return bool(wanted) and wanted in _plain(text)


@remembered(_KEPT_CHARS)
def _plain(text: str) -> str:
    return _SPACES.sub(" ", compatible(text).translate(_ALIKE).casefold()).strip()


def source_of(quote: str, case: Case, sources: Sequence[GoldSource]) -> str | None:
    """The name of the first document that holds `quote`, or `task` if the prompt does; None if nothing does."""
    named = [(one.name, one.text) for one in sources] + [(TASK, case.task.prompt)]
    return next((name for name, text in named if holds(text, quote)), None)


def material(case: Case, sources: Sequence[GoldSource]) -> Context:
    """What items are drafted from and checked against: the task, and the documents where there are any."""
    if not sources:
        return Context.of(task=case.task.prompt)
    return Context.of(task=case.task.prompt, document=joined(sources))


class Quote(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A passage of the material, "" if there is none."""

    quote: Annotated[str, msgspec.Meta(max_length=400)]


class Quotes(Answer, frozen=True, kw_only=True):
    """The passage that each item rests on."""

    items: dict[str, Quote]


class PassagesOf(Question[Quotes], frozen=True, kw_only=True):
    """On which passages of the material (context) do the items rest?"""

    prompt = "gold_passages"
    words = "passages that items of gold rest on"
    answer = Quotes

    items: tuple[str, ...]

    @property
    def count(self) -> int:
        """One passage per item."""
        return len(self.items)

    def lexical(self) -> Quotes:
        """The sentence that uses most of an item's words."""
        texts = [
            one for section in self.context.sections for one in sentences(section.text) if len(one) <= 400
        ]
        words = [(one, frozenset(terms(one))) for one in texts]
        found = []
        for item in self.items:
            wanted = terms(item)
            best, known = max(words, key=lambda one: coverage(wanted, one[1]), default=("", frozenset[str]()))
            found.append(Quote(quote=best if coverage(wanted, known) else ""))
        return Quotes(items=dict(zip(numbered(self.count), found, strict=True)))


async def find_passages(
    items: Sequence[GoldItem], case: Case, sources: Sequence[GoldSource], tools: Tools
) -> tuple[list[Passage], list[Reason]]:
    """The passages that `items` rest on, as far as they stand in the material, and why there is no answer for others.

    A keyword to avoid rests on nothing.
    """
    context, language = material(case, sources), case.task.language
    wanted = [one for one in items if one.kind != "deviation"]
    batches = [wanted[start : start + BATCH] for start in range(0, len(wanted), BATCH)]
    judgments = await tools.ask_all(
        PassagesOf(context=context, language=language, items=tuple(one.text for one in batch))
        for batch in batches
    )
    found: list[Passage] = []
    missing: list[Reason] = []
    for batch, judgment in zip(batches, judgments, strict=True):
        if judgment.answer is None:
            missing.append(judgment.reason or "judge_unparseable")
            continue
        for item, key in zip(batch, numbered(len(batch)), strict=True):
            quote = judgment.answer.items[key].quote
            source = source_of(quote, case, sources)
            if source is not None:
                found.append(Passage(part=item.part, item=item.item, quote=quote, source=source))
    return found, missing
