"""FACT's first question: what a report's sentences state, and which of its sources they cite.

The judge is shown a report (a long one in sections cut at line ends, each with the reference list), its sources
under numbers, and at most eight of its sentences; it says for each what it states and the numbers of the sources it
cites. So it cannot invent a URL, and no sentence is passed over. Sentences without a digit, bracket or URL are
left out: they cannot carry a citation in any form.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec

from adjudge.judges import Answer, Context, Question, numbered
from adjudge.judges.schema import UnparseableReply
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Missing, first_missing
from adjudge.scoring.text.aside import aside, storable
from adjudge.scoring.text.citations import Citations, Passage, Triplet, parse
from adjudge.scoring.text.references import url_key
from adjudge.scoring.text.sentences import tidy
from adjudge.scoring.text.splitting import cut

__all__ = ["CitedBy", "extract"]

SECTION_CHARS = 60_000
SENTENCES = 8
MAX_SENTENCE = 1_200
MAX_FACT = 400
MAX_CITED = 16
MAX_SOURCES = 300
MAX_TITLE = 100
MAX_URL = 300

_MAY_CITE = re.compile(r"[\d\[\]()【】（）［］⁰¹²³⁴-⁹]|https?:", re.IGNORECASE)


class Citing(Answer, frozen=True, kw_only=True):
    """What a sentence states ("" for nothing that cites a source), and the numbers of the sources it cites."""

    fact: Annotated[str, msgspec.Meta(max_length=MAX_FACT)]
    sources: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=3, pattern="^[1-9][0-9]{0,2}$")]],
        msgspec.Meta(max_length=MAX_CITED),
    ]


class Citings(Answer, frozen=True, kw_only=True):
    """Each numbered sentence with what it cites."""

    items: dict[str, Citing]


class CitedBy(Question[Citings], frozen=True, kw_only=True):
    """What do these sentences of the report state, and which of the numbered sources do they cite for it?"""

    prompt = "fact_extract"
    answer = Citings

    sentences: tuple[str, ...]

    @property
    def count(self) -> int:
        """One item per sentence."""
        return len(self.sentences)

    def lexical(self) -> Citings:
        """What the marks say."""
        numbers = {url_key(url): number for number, url in _listed(self.context["sources"])}
        known = {_shown(passage): passage for passage in parse(self.context["report"]).passages}
        found = []
        for sentence in self.sentences:
            passage = known.get(sentence, Passage(raw="", fact=""))
            keys = [url_key(url[:MAX_URL]) for _, url in passage.sources]
            cited = [numbers[key] for key in keys if key in numbers][:MAX_CITED]
            found.append(Citing(fact=passage.fact[:MAX_FACT] if cited else "", sources=cited))
        return Citings(items=dict(zip(numbered(len(found)), found, strict=True)))

    def typed(self, answer: Answer) -> Citings:
        """`answer`, if the sources it names exist. Raises UnparseableReply."""
        citings = super().typed(answer)
        last = self.context["sources"].count("\n") + 1
        for key, item in citings.items.items():
            if any(int(number) > last for number in item.sources):
                raise UnparseableReply(f"items.{key}: names a source beyond the last, {last}")
        return citings


async def extract(case: Case, whole: Citations, tools: Tools) -> tuple[Triplet, ...] | Missing:
    """The triplets that the judge finds in the case's report, in its order; none for a report without a source.

    `whole` are the report's citations by its marks.
    """
    sources = _sources(whole, case)
    if not sources:
        return ()
    listed = "\n".join(
        f"{number}: {url[:MAX_URL]} {title[:MAX_TITLE]}".rstrip()
        for number, (_, url, title) in enumerate(sources, 1)
    )
    sections = list(_sections(case, whole))
    parsed = await asyncio.gather(*(aside(parse, storable(section)) for section in sections))
    asked = [
        question
        for section, found in zip(sections, parsed, strict=True)
        for question in _questions(case, section, found, listed)
    ]
    judgments = await tools.ask_all(asked)
    missing = first_missing(judgments)
    if missing:
        return missing
    answers = [judgment.answer for judgment in judgments if judgment.answer is not None]
    return tuple(triplet for answer in answers for triplet in _triplets(answer, sources))


def _sources(whole: Citations, case: Case) -> list[tuple[int, str, str]]:
    """(ref_idx, url, title) of all that the report refers to, each URL once: its lists, then its links."""
    found: dict[str, tuple[int, str, str]] = {}
    handed = [
        (place, citation.url, citation.title) for place, citation in enumerate(case.report.citations, 1)
    ]
    listed = [
        (reference.index, reference.url, reference.title) for reference in whole.references if reference.url
    ]
    linked = [(index, url, "") for passage in whole.passages for index, url in passage.sources]
    for index, url, title in [*listed, *handed, *linked]:
        if url.strip():
            found.setdefault(url_key(url), (index, _in_line(url), tidy(title)))
    return list(found.values())[:MAX_SOURCES]


def _questions(case: Case, section: str, parsed: Citations, listed: str) -> Iterator[CitedBy]:
    context = Context.of(report=section, sources=listed)
    shown = [_shown(passage) for passage in parsed.passages if _MAY_CITE.search(passage.raw)]
    for start in range(0, len(shown), SENTENCES):
        sentences = tuple(shown[start : start + SENTENCES])
        yield CitedBy(context=context, language=case.task.language, sentences=sentences)


def _sections(case: Case, whole: Citations) -> Iterator[str]:
    """The report, or its parts if it is long, with the references they need below."""
    text = case.report.text
    handed = [
        f"[{tidy(c.marker.strip('[]')) or i}] {tidy(c.title)} {_in_line(c.url)}"
        for i, c in enumerate(case.report.citations, 1)
    ]
    if len(text) <= SECTION_CHARS:
        yield "\n".join([text, "", "## References", *handed]) if handed else text
        return
    entries = [f"[{one.label}] {one.title[:MAX_TITLE]} {one.url}" for one in whole.references if one.url]
    for part in cut(text, SECTION_CHARS):
        yield "\n".join([part, "", "## References", *entries[:MAX_SOURCES], *handed])


def _in_line(url: str) -> str:
    """`url` without white space: another line in the list would be another source."""
    return "".join(url.split())


def _shown(passage: Passage) -> str:
    return " ".join(passage.raw.split())[:MAX_SENTENCE]


def _listed(sources: str) -> Iterator[tuple[str, str]]:
    for line in sources.splitlines():
        number, _, rest = line.partition(": ")
        yield number, rest.split(" ", 1)[0]


def _triplets(answer: Citings, sources: Sequence[tuple[int, str, str]]) -> Iterator[Triplet]:
    for item in answer.items.values():
        fact = tidy(item.fact)
        for number in dict.fromkeys(item.sources) if fact else ():
            index, url, _ = sources[int(number) - 1]
            yield Triplet(fact, index, url)
