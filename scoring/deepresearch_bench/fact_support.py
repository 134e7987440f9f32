"""FACT's questions about one page: which statements repeat each other, and which of them the page supports."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import msgspec

from adjudge.fetchers.page import Page
from adjudge.judges import Answer, Context, Judgment, Question, numbered
from adjudge.judges.lexical import has_content, passages
from adjudge.judges.remembering import remembered
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.text.relevance import relevant_chunks

__all__ = ["PAGE_CHARS", "Backed", "Repeats", "Verdict", "back", "distinct", "excerpt", "same_words"]

_CHUNK = 1_500
_MAX_CHUNKS = 20
PAGE_CHARS = _MAX_CHUNKS * _CHUNK
_KEPT_CHARS = 8_000_000  # of the pages whose contexts are kept
_STOPS = " .!。！"

Verdict = Literal["supported", "unsupported", "unknown"]


class Repeated(Answer, frozen=True, kw_only=True):
    """For each numbered statement, whether an earlier one says exactly the same."""

    items: dict[str, Literal["new", "repeat"]]


class Repeats(Question[Repeated], frozen=True, kw_only=True):
    """Which of `statements` say exactly what an earlier one in the context says? `first` is the place of the first."""

    words = "statements said twice"
    prompt = "fact_repeats"
    answer = Repeated

    first: int
    statements: tuple[str, ...]

    @property
    def count(self) -> int:
        """One item per statement."""
        return len(self.statements)

    @classmethod
    def about(cls, statements: Sequence[str], language: str, size: int = 20) -> list["Repeats"]:
        """The questions that cover all of `statements`, in their order."""
        context = Context.of(
            statements="\n".join(f"{place}. {text}" for place, text in enumerate(statements, 1))
        )
        return [
            cls(
                context=context,
                language=language,
                first=start + 1,
                statements=tuple(statements[start : start + size]),
            )
            for start in range(0, len(statements), size)
        ]

    def lexical(self) -> Repeated:
        """A repeat if all is equal but case, spaces and the last stop."""
        every = [line.partition(". ")[2] for line in self.context["statements"].splitlines()]
        seen = {same_words(text) for text in every[: self.first - 1]}
        items: dict[str, Literal["new", "repeat"]] = {}
        for key, text in zip(numbered(self.count), self.statements, strict=True):
            items[key] = "repeat" if same_words(text) in seen else "new"
            seen.add(same_words(text))
        return Repeated(items=items)


class Verdicts(Answer, frozen=True, kw_only=True):
    """For each numbered statement, what the page says to it."""

    analysis: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    items: dict[str, Verdict]


class Backed(Question[Verdicts], frozen=True, kw_only=True):
    """Which of these statements does the page in the context support?"""

    words = "statements a cited page supports"
    prompt = "fact_support"
    answer = Verdicts

    statements: tuple[str, ...]

    @property
    def count(self) -> int:
        """One item per statement."""
        return len(self.statements)

    def lexical(self) -> Verdicts:
        """By words and figures; unknown if the page holds nothing, or a notice in place of its content."""
        text = self.context["page"]
        if not has_content(text):
            verdicts: Iterable[Verdict] = ["unknown"] * self.count
        else:
            whole = passages("\n".join(section.text for section in self.context.sections))
            verdicts = [whole.support(statement).partly for statement in self.statements]
        return Verdicts(items=dict(zip(numbered(self.count), verdicts, strict=True)))


async def back(
    tools: Tools, page: Page, statements: tuple[str, ...], language: str
) -> tuple[Judgment[Verdicts], str]:
    """What `page` says to `statements`, and how much of it was shown to say so, "" for all.

    A question that does not fit the judge's window is asked with half as much of the page, down to one chunk: which
    chunks, the page and the statements alone decide.
    """
    chunks = min(-(-len(page.text) // _CHUNK), _MAX_CHUNKS)
    while True:
        context = excerpt(page, statements, chunks)
        judgment = await tools.ask(Backed(context=context, language=language, statements=statements))
        if judgment.reason != "context_overflow" or chunks <= 1:
            break
        chunks //= 2
    shown = chunks * _CHUNK
    return judgment, f"{shown} of {len(page.text)} characters shown" if shown < len(page.text) else ""


def excerpt(page: Page, statements: Sequence[str], chunks: int = _MAX_CHUNKS) -> Context:
    """What of `page` is shown with `statements`: title, description and text.

    A longer text is shown as its `chunks` chunks of 1,500 characters that fit the statements best.
    """
    text = relevant_chunks(page.text, "\n".join(statements), chunks, _CHUNK)
    return _shown(text, page.title[:500], page.description[:2_000])


@remembered(_KEPT_CHARS)
def _shown(text: str, title: str, description: str) -> Context:
    """The context of a page; hashed once for all the reports that cite it."""
    return Context.of(title=title, description=description, page=text)


def distinct(facts: Sequence[str]) -> tuple[str, ...]:
    """`facts`, each only once: those equal word for word need no judge."""
    return tuple({same_words(fact): fact for fact in reversed(facts)}.values())[::-1]


def same_words(text: str) -> str:
    """`text` without case, runs of spaces and its last stop: equal for statements that are the same word for word.

    A sign inside may turn what is said: "p < 0.05", "-5 %", "$1.5 billion".
    """
    return " ".join(text.casefold().split()).rstrip(_STOPS)
