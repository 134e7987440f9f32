"""FACT's questions: what a report states and cites, what repeats, and what a page supports.

The first question is what a report's sentences state, and which of its sources they cite. The judge is shown a report
(a long one in sections cut at line ends, each with the references that it names), its sources under numbers, and at
most eight of its sentences; for each it gives the statements and the numbers of the sources cited. So it cannot invent
a URL, and no sentence is skipped. Sentences that cannot cite in any form are left out: those without a digit, bracket
or URL that are not below a title with a source. A section with more than 300 sources shows only those that its marks
name, and is halved until they fit.

What the reader of marks does not understand, the judge decides: its sources are all addresses of the report, and where
no mark leads to one, it is asked about the line that the address stands on and the sentence above. The entries of a
reference list are asked about only if no mark leads to any of them: it may be none.

The other questions are about one page: which statements repeat each other, and which of them the page supports.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec

from adjudge.fetchers.page import Page
from adjudge.judges import Answer, Context, Question, numbered
from adjudge.judges.lexical import IN_PLACE, has_content, has_known_words, passages, terms
from adjudge.judges.remembering import remembered
from adjudge.judges.schema import UnparseableReply
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.reasons import Reason
from adjudge.scoring.contract.scorecard import Missing, first_missing
from adjudge.scoring.text.accounted import addresses
from adjudge.scoring.text.aside import aside, storable
from adjudge.scoring.text.blocks import lines
from adjudge.scoring.text.citation_marks import Labels, Mark, author_year, cut, pieces
from adjudge.scoring.text.citations import Citations, Passage, Triplet, parse, url_key
from adjudge.scoring.text.cleaning import without_lists
from adjudge.scoring.text.markup import plain
from adjudge.scoring.text.relevance import BETWEEN, relevant_chunks
from adjudge.scoring.text.sentences import marked, tidy

__all__ = [
    "PAGE_CHARS",
    "Backed",
    "Backing",
    "CitedBy",
    "Repeats",
    "Verdict",
    "back",
    "distinct",
    "excerpt",
    "extract",
]

SECTION_CHARS = 60_000
SENTENCES = 8
MAX_SENTENCE = 1_200
MAX_FACT = 400
MAX_CITED = 32
SHOWN_WHOLE = 300  # sources up to which every section is shown all of them
LEAST_CHARS = 2_000  # of a section, however many sources it names
MAX_TITLE = 100
MAX_URL = 300

_MAY_CITE = re.compile(r"[\d\[\]()【】（）［］⁰¹²³⁴-⁹]|https?:", re.IGNORECASE)


class Citing(Answer, frozen=True, kw_only=True):
    """What a sentence states ("" for nothing that cites a source), and the numbers of the sources it cites."""

    fact: Annotated[str, msgspec.Meta(max_length=MAX_FACT)]
    sources: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=4, pattern="^[1-9][0-9]{0,3}$")]],
        msgspec.Meta(max_length=MAX_CITED),
    ]


class Citings(Answer, frozen=True, kw_only=True):
    """Each numbered sentence with what it cites."""

    items: dict[str, Citing]


class CitedBy(Question[Citings], frozen=True, kw_only=True):
    """What do these sentences of the report state, and which of the numbered sources do they cite for it?"""

    words = "statements and the sources they cite"
    prompt = "fact_extract"
    answer = Citings

    sentences: tuple[str, ...]

    @property
    def count(self) -> int:
        """One item per sentence."""
        return len(self.sentences)

    def lexical(self) -> Citings:
        """The answer that the marks give."""
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


class _Source(msgspec.Struct, frozen=True):
    """A source in a report: its number and label there (0 and "" for a link in no list), URL, title, `url_key`."""

    index: int
    label: str
    url: str
    title: str
    key: str

    @property
    def entry(self) -> str:
        """A line of a reference list."""
        return f"[{self.label}] {self.title[:MAX_TITLE]} {self.url}"


class _Section(msgspec.Struct, frozen=True):
    """A part of a report with the references it needs below, and the sources it may cite."""

    text: str
    sources: Sequence[_Source]

    def questions(self, language: str, parsed: Citations, not_understood: Sequence[str]) -> Iterator[CitedBy]:
        """The questions about all its sentences: those that `parsed` has, then those that are `not_understood`."""
        listed = "\n".join(
            f"{number}: {one.url[:MAX_URL]} {one.title[:MAX_TITLE]}".rstrip()
            for number, one in enumerate(self.sources, 1)
        )
        context = Context.of(report=self.text, sources=listed)
        shown = [_shown(one) for one in parsed.passages if one.sources or _MAY_CITE.search(one.raw)]
        known = set(shown)
        others = [one for one in not_understood if one not in known]
        for several in (shown, others):
            for start in range(0, len(several), SENTENCES):
                sentences = tuple(several[start : start + SENTENCES])
                yield CitedBy(context=context, language=language, sentences=sentences)


async def extract(
    case: Case, whole: Citations, unused: Sequence[str], tools: Tools
) -> tuple[Triplet, ...] | Missing:
    """The triplets that the judge finds in the case's report, in its order; none for a report without a source.

    `whole` are the report's citations by its marks: what is `cited`. `unused` are its addresses that no mark leads to.
    """
    sources = _sources(whole, case, unused)
    if not sources:
        return ()
    sections = await _sections(case, sources)
    parsed = await asyncio.gather(*(aside(parse, storable(section.text)) for section in sections))
    lost = tuple(map(url_key, unused))
    near = [await aside(near_addresses, storable(one.text), lost) if lost else () for one in sections]
    asked = [
        (question, section)
        for section, found, others in zip(sections, parsed, near, strict=True)
        for question in section.questions(case.task.language, found, others)
    ]
    judgments = await tools.ask_all([question for question, _ in asked])
    missing = first_missing(judgments)
    if missing:
        return missing
    return tuple(
        triplet
        for (_, section), judgment in zip(asked, judgments, strict=True)
        if judgment.answer is not None
        for triplet in _triplets(judgment.answer, section.sources)
    )


def near_addresses(text: str, keys: tuple[str, ...]) -> tuple[str, ...]:
    """The sentences of a report that hold an address with one of these `keys`, each behind the one before it.

    The entries of a reference list count as such, but are left out if the list holds any other address.
    """
    wanted = frozenset(keys)
    found: dict[str, None] = {}
    entries: list[str] = []  # of the list that is being read
    is_list = False  # whether it holds another address
    before = ""
    for line in lines(plain(text.encode("utf-8", "replace").decode())):
        if line.kind == "blank":
            continue
        held = addresses(line.raw).keys()
        if line.kind == "reference" and not line.level:
            entries += [line.raw] if held & wanted else []
            is_list = is_list or bool(held - wanted)
            continue
        found |= dict.fromkeys(map(_one_line, () if is_list else entries))
        entries, is_list = [], False
        if line.kind in ("code", "heading", "ruler") or line.level:
            before = ""
            continue
        for sentence in marked(line.text, Labels()).sentences():
            said = _one_line(sentence.raw)
            if held & wanted and addresses(said).keys() & wanted:
                found |= dict.fromkeys(filter(None, (before, said)))
            before = said
    found |= dict.fromkeys(map(_one_line, () if is_list else entries))
    return tuple(found)


def _sources(whole: Citations, case: Case, unused: Sequence[str]) -> list[_Source]:
    """All that the report refers to, each URL once: its lists, what was handed over, its links, and the `unused`."""
    listed = [(one.index, one.label, one.url, one.title) for one in whole.references]
    handed = [
        (place, tidy(one.marker.strip("[]")) or str(place), one.url, one.title)
        for place, one in enumerate(case.report.citations, 1)
    ]
    linked = [(index, "", url, "") for passage in whole.passages for index, url in passage.sources]
    linked += [(0, "", url, "") for url in unused]
    found: dict[str, _Source] = {}
    for index, label, url, title in (*listed, *handed, *linked):
        key = url_key(url)
        if url.strip() and key not in found:
            one_line = "".join(url.split())  # another line in the list would be another source
            found[key] = _Source(index, label, one_line, tidy(title), key)
    return list(found.values())


async def _sections(case: Case, sources: Sequence[_Source]) -> list[_Section]:
    """The report, or the parts of its body if it is long, with the references they need below."""
    text = case.report.text
    if len(text) <= SECTION_CHARS and len(sources) <= SHOWN_WHOLE:
        handed = {url_key(one.url) for one in case.report.citations}
        return [_section(text, sources, [one for one in sources if one.key in handed])]
    body = await aside(without_lists, storable(text))
    names = frozenset(one.label for one in sources) | frozenset(author_year(one.title) for one in sources)
    known = Labels(names, names)
    parts = [part for whole in cut(body, SECTION_CHARS) for part in _parts(whole, sources, known)]
    return [_section(part, named, [one for one in named if one.label]) for part, named in parts if named]


def _parts(part: str, sources: Sequence[_Source], known: Labels) -> Iterator[tuple[str, Sequence[_Source]]]:
    """`part` with the sources it may cite, or its halves with theirs as long as there are too many to show."""
    named = sources if len(sources) <= SHOWN_WHOLE else list(_named(part, sources, known))
    if len(named) <= SHOWN_WHOLE or len(part) <= LEAST_CHARS:
        yield part, named
    else:
        for half in cut(part, -(-len(part) // 2)):
            yield from _parts(half, named, known)


def _section(text: str, sources: Sequence[_Source], listed: Sequence[_Source]) -> _Section:
    entries = [one.entry for one in listed]
    return _Section("\n".join([text, "", "## References", *entries]) if entries else text, sources)


def _named(part: str, sources: Iterable[_Source], known: Labels) -> Iterator[_Source]:
    """The sources that the marks in `part` of a report name, by their labels or their URLs."""
    labels, keys = set[str](), set[str]()
    for line in lines(part):
        for piece in pieces(line.raw, known) if line.kind != "reference" else ():
            if isinstance(piece, Mark):
                labels.update(piece.labels)
                keys.update([url_key(piece.url)] if piece.url else ())
    for one in sources:
        if one.label in labels or author_year(one.title) in labels or one.key in keys:
            yield one


def _shown(passage: Passage) -> str:
    return _one_line(passage.raw)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:MAX_SENTENCE]


def _listed(sources: str) -> Iterator[tuple[str, str]]:
    for line in sources.splitlines():
        number, _, rest = line.partition(": ")
        yield number, rest.split(" ", 1)[0]


def _triplets(answer: Citings, sources: Sequence[_Source]) -> Iterator[Triplet]:
    for item in answer.items.values():
        fact = tidy(item.fact)
        for number in dict.fromkeys(item.sources) if fact else ():
            source = sources[int(number) - 1]
            yield Triplet(fact, source.index, source.url)


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


class Backing(NamedTuple):
    """What a page says to a statement, or why that is not known; `shown` says which part of it, "" for all."""

    verdict: Verdict | None
    reason: Reason | None
    judgment: str
    shown: str


async def back(tools: Tools, page: Page, statements: tuple[str, ...], language: str) -> list[Backing]:
    """What `page` says to each of `statements`, at most 20.

    Those that its main text does not support are asked once more, together, with the best passages of all that a
    browser shows, if what it shows beside may speak of them. Whatever is not supported there either is what the main
    text says it is.
    """
    found = await _asked(tools, page, statements, language)
    again = [
        place
        for place, one in enumerate(found)
        if one.verdict in ("unsupported", "unknown") and may_speak_of(page, statements[place])
    ]
    if not again:
        return found
    asked = tuple(statements[place] for place in again)
    for place, more in zip(again, await _asked(tools, page, asked, language, visible=True), strict=True):
        if more.verdict == "supported":
            found[place] = more._replace(shown="beside the page's main text")
        elif more.verdict is None or found[place].verdict == "unknown":
            found[place] = more
    return found


# Of a statement's words, by their weight: true sentences that only stand beside have 0.4 and more.
_SPEAKS = 0.15


def may_speak_of(page: Page, statement: str) -> bool:
    """Whether what `page` shows beside its main text may state `statement`, as menus and notices do not.

    It has some of the statement's words close together, or any with a figure of it. Where the page has none of the
    words at all, it may be in another language; of a statement in a script whose words are not told, nothing is known.
    A long text may speak of anything: it is not looked at on the loop.
    """
    if not page.beside.strip():
        return False
    if len(page.beside) > IN_PLACE or not has_known_words(statement):
        return True
    beside = passages(page.beside)
    if overlap := beside.overlap(statement):
        return overlap >= _SPEAKS or bool(beside.shared_figures(statement))
    words = terms(statement)
    if any(word in page.text for word in words):  # most have one as it stands, and lower case takes long
        return False
    main = page.text.lower()
    return not any(word in main for word in words)


async def _asked(
    tools: Tools, page: Page, statements: tuple[str, ...], language: str, *, visible: bool = False
) -> list[Backing]:
    """What one question says to each of `statements`.

    A question that does not fit the judge's window is asked with half as much of the page, down to one chunk: which
    chunks, the page and the statements alone decide.
    """
    longest = max(len(page.text), len(page.beside)) if visible else len(page.text)
    chunks = min(-(-longest // _CHUNK), _MAX_CHUNKS // 2 if visible else _MAX_CHUNKS)
    while True:
        context = excerpt(page, statements, chunks, visible=visible)
        judgment = await tools.ask(Backed(context=context, language=language, statements=statements))
        if judgment.reason != "context_overflow" or chunks <= 1:
            break
        chunks //= 2
    part = f"{chunks * _CHUNK} of {longest} characters shown" if chunks * _CHUNK < longest else ""
    if judgment.answer is None:
        reason = judgment.reason or "judge_unparseable"
        return [Backing(None, reason, judgment.key.hex(), part)] * len(statements)
    verdicts = map(judgment.answer.items.__getitem__, numbered(len(statements)))
    return [Backing(verdict, None, judgment.key.hex(), part) for verdict in verdicts]


def excerpt(
    page: Page, statements: Sequence[str], chunks: int = _MAX_CHUNKS, *, visible: bool = False
) -> Context:
    """The part of `page` shown with `statements`: title, description and main text.

    A longer text is shown as its `chunks` chunks of 1,500 characters that fit the statements best. If all that is
    `visible` is to be shown, as many of what stands beside the main text follow.
    """
    wanted = "\n".join(statements)
    texts = (page.text, page.beside) if visible else (page.text,)
    text = BETWEEN.join(relevant_chunks(one, wanted, chunks, _CHUNK) for one in texts)
    return _page_shown(text, page.title[:500], page.description[:2_000])


@remembered(_KEPT_CHARS)
def _page_shown(text: str, title: str, description: str) -> Context:
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
