"""Keywords of a report: how often it uses them, and how relevant they are to what it is about."""

import re
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from adjudge.judges import Answer, Context, Question, numbered
from adjudge.judges.lexical import rank
from adjudge.judges.remembering import remembered
from adjudge.scoring.answers.answered import Answered, ask_numbered
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Evidence
from adjudge.scoring.text.splitting import compatible

__all__ = ["Keyword", "KeywordRelevance", "Matching", "keyword_frequency", "rate_keywords"]

_KEPT_CHARS = 2_000_000  # of the texts whose folded form is kept
Matching = Literal["auto", "words", "substrings"]

_IDEOGRAPHS = "㐀-䶿一-鿿豈-﫿぀-ヿ가-힯"
_HAS_IDEOGRAPHS = re.compile(f"[{_IDEOGRAPHS}]")
_SPACES = re.compile(r"\s{2,}|[^\S ]")  # what is more than one space, or another kind
_WORD_START = rf"(?<![^\W{_IDEOGRAPHS}])"
_WORD_END = rf"(?![^\W{_IDEOGRAPHS}])"


def keyword_frequency(keyword: str, text: str, matching: Matching = "auto") -> int:
    """How often `keyword` stands in `text`, in any case and width, with any white space between its words.

    As whole words ("art" is not in "party"), or as a substring; `auto` takes words unless the keyword has characters
    of a script that puts no spaces between words. The published code takes substrings.
    """
    wanted = _folded(keyword)
    if not wanted:
        return 0
    if matching == "substrings" or (matching == "auto" and _HAS_IDEOGRAPHS.search(wanted)):
        return _folded(text).count(wanted)
    return sum(1 for _ in re.finditer(_WORD_START + re.escape(wanted) + _WORD_END, _folded(text)))


@remembered(_KEPT_CHARS)
def _folded(text: str) -> str:
    return _SPACES.sub(" ", compatible(text).casefold()).strip()


class Keyword(msgspec.Struct, frozen=True):
    """A keyword that a focused report uses (`wanted`) or avoids, and how often this report uses it."""

    word: str
    wanted: bool
    frequency: int


class Relevances(Answer, frozen=True, kw_only=True):
    """How relevant each keyword is to what the report is about: 1 not at all, 5 a central theme."""

    analysis: Annotated[str, msgspec.Meta(max_length=600)] = ""
    relevance: dict[str, Annotated[int, msgspec.Meta(ge=1, le=5)]]


class KeywordRelevance(Question[Relevances], frozen=True, kw_only=True):
    """How relevant is each keyword to the content of the report?"""

    words = "how relevant keywords are to a report"
    prompt = "keyword_relevance"
    answer = Relevances

    keywords: tuple[str, ...]

    @property
    def count(self) -> int:
        """One relevance per keyword."""
        return len(self.keywords)

    def lexical(self) -> Relevances:
        """By how often the report uses the keyword."""
        text = self.context["report"]
        uses = (keyword_frequency(keyword, text) for keyword in self.keywords)
        relevance = {
            key: 1 + rank(count, (1, 2, 4, 8)) for key, count in zip(numbered(self.count), uses, strict=True)
        }
        return Relevances(relevance=relevance)


async def rate_keywords(
    keywords: Sequence[Keyword], case: Case, tools: Tools
) -> tuple[list[Answered[Keyword]], list[Evidence]]:
    """The relevance, 1..5, of every keyword that the report uses; 1 for those it does not use, without asking."""
    used = list(dict.fromkeys(keyword.word for keyword in keywords if keyword.frequency))
    report, language = Context.of(report=case.report.text), case.task.language

    def question(words: tuple[str, ...]) -> KeywordRelevance:
        return KeywordRelevance(context=report, language=language, keywords=words)

    rated = await ask_numbered(used, tools, question, _relevance, 1.0, 5.0)
    by_word = {answer.item: answer for answer in rated}
    answers = [_answer(keyword, by_word.get(keyword.word)) for keyword in keywords]
    return answers, [_evidence(answer) for answer in answers]


def _relevance(answer: Relevances, key: str) -> float:
    return float(answer.relevance[key])


def _answer(keyword: Keyword, rated: Answered[str] | None) -> Answered[Keyword]:
    """The relevance of a keyword, the worst being the most relevance for one that a report should avoid."""
    if rated is None:
        return Answered(keyword, 1.0, 1.0, 1.0)
    answer = rated.about(keyword)
    if keyword.wanted:
        return answer
    return msgspec.structs.replace(answer, worst=5.0, best=1.0)


def _evidence(answer: Answered[Keyword]) -> Evidence:
    keyword = answer.item
    what = f"{'anchor' if keyword.wanted else 'deviation'}: {keyword.word}"
    if not keyword.frequency:
        return Evidence(what=what, outcome="not used")
    return answer.evidence(what, lambda relevance: f"used {keyword.frequency} times, relevance {relevance:g}")
