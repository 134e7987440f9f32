"""What a Markdown report cites: (fact, ref_idx, url) triplets, read from its marks (FACT's extraction step).

Forms: `text 15`, `text[15]`, `text[15†L10][5L23]`, `[title](url)`, `text.46`, raised numbers, and a `**title** (link)`
with bullets below, which are the facts; beside the published ones bare URLs, `【15】`, footnotes and ranges. Marks are
resolved through the report's reference lists.

A fact is the sentence that carries the mark, without its marks, links shown as `[title]`; a table cell includes the
names of its row and column, and a short list item its heading. A mark on its own ("(Source: [3])") belongs to the
sentence before it. A sentence with two sources is two triplets. A reference list, or a mark without a URL, makes no
triplet: there is nothing to read.

Deterministic. Time and memory are linear in the text: what is kept of a report is bounded in number and length, and a
paragraph of more than `MAX_PIECE` characters is read in pieces.
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice, takewhile
from typing import NamedTuple, Self

import msgspec

from adjudge.fetchers.urls import MalformedURL, page_key
from adjudge.judges.remembering import remembered
from adjudge.scoring.contract.case import Citation
from adjudge.scoring.text.blocks import ReportLines, address_alone, report_lines
from adjudge.scoring.text.citation_marks import (
    MAX_PIECE,
    Labels,
    Mark,
    author_alone,
    author_year,
    clean_url,
    exact_url,
    label,
    may_hold_mark,
    pieces,
    split,
)
from adjudge.scoring.text.handed import placed
from adjudge.scoring.text.markup import plain
from adjudge.scoring.text.scan import (
    BARE_ADDRESS,
    Entry,
    Line,
    address_in,
    entry,
    keyed,
    numbered_links,
    unquoted,
)
from adjudge.scoring.text.sentences import MAX_FACT, Marked, marked, names_sources, readable
from adjudge.scoring.text.titles import LIKELY, strength

MAX_REFERENCES = 5_000
_KEPT_ADDRESSES = 1_000_000  # characters of the addresses whose keys are kept

_WWW = re.compile(r"(?<![\w/.])www\.[\w-]{1,63}\.[^\s<>\"]{1,2000}", re.IGNORECASE)


class Reference(msgspec.Struct, frozen=True):
    """An entry of a reference list. `index` is its number (its place, if the label is a word), `line` where it stands.

    `url` is "" for an entry that gives none; one whose label is its place has none (`placed`).
    """

    label: str
    index: int
    title: str
    url: str
    line: int
    placed: bool = False


@remembered(_KEPT_ADDRESSES)
def url_key(url: str) -> str:
    """The key that groups URLs by the page that they lead to, or a malformed URL unchanged."""
    exact = exact_url(url)
    try:
        return page_key(exact)
    except MalformedURL:
        return exact


def references_in(found: ReportLines) -> Iterator[Reference]:
    """The entries of all reference lists of a report. A URL on the line below its entry belongs to it."""
    keys = found.outline.keys
    place = 0
    pending: list[Reference] = []
    for number, line in enumerate(found):
        if line.kind != "reference" or line.level:
            yield from pending
            pending, head = [], entry(line.text) if line.level else None
            if head is not None and head.label and line.kind == "reference":
                place += 1
                name = label(head.label)
                pending = [Reference(name, number_of(name, place), *_address(head.rest), number)]
            elif line.kind == "heading" or line.level:
                place = 0
            continue
        raw = unquoted(line.raw)[:MAX_PIECE]
        linked, rest = numbered_links(raw)
        item = None if linked else _keyed_entry(raw, keys) or entry(raw) or _row_entry(raw)
        names, rest = _labels(item.label, item.rest) if item else (tuple(map(label, linked)), rest)
        title, url = _address(rest)
        url = url or (_address(raw)[1] if linked else "")
        if pending and not names and url and _same_page(pending[0].url or url, url):
            yield from (msgspec.structs.replace(one, url=url) for one in pending)
            pending = []
        elif names or url:
            yield from pending
            place += 1
            made = [
                Reference(name, number_of(name, place), title, url, number, not names)
                for name in names or (str(place),)
            ]
            pending = made if linked or not url else []
            yield from () if pending else made
    yield from pending


def _keyed_entry(raw: str, keys: Collection[str]) -> Entry | None:
    """`raw` as an entry whose label is one of `keys`."""
    return next((one for one in keyed(raw) if label(one.label) in keys), None) if keys else None


def _row_entry(raw: str) -> Entry | None:
    """The row of a table as an entry whose label stands in brackets in any of its cells."""
    found = _ROW_LABEL.search(raw) if raw.lstrip().startswith("|") else None
    return Entry(found[1], raw[: found.start()] + raw[found.end() :]) if found else None


def _same_page(one: str, other: str) -> bool:
    return one == other or url_key(one) == url_key(other)


_ROW_LABEL = re.compile(r"\|[ \t]{0,4}\\?\[\^?([^\[\]|\n\\]{1,40})\\?\][ \t]{0,4}(?=\|)")
_MAX_LABELS = 5  # of one entry
_STOPS = (".", "!", "?", "。", "！", "？")
_FEWEST = 3  # numbers close behind words that may be marks


def _labels(first: str, rest: str) -> tuple[tuple[str, ...], str]:
    """The labels that an entry begins with, and what follows them."""
    names = [label(first)] if first else []
    while (
        names and len(names) < _MAX_LABELS and rest.startswith("[") and (more := entry(rest)) and more.label
    ):
        names.append(label(more.label))
        rest = more.rest
    return tuple(names), rest


def labels_of(references: Iterable[Reference], found: ReportLines) -> Labels:
    """The labels that `references` define, numbers without brackets among them unless the report has marks in them."""
    bracketed = found.outline.bracketed
    listed = list(references)
    known = {reference.label for reference in listed}
    if not bracketed:
        known |= set(filter(None, (author_year(reference.title) for reference in listed)))
        known |= _by_author(listed).keys()
    return _in_use(Labels(known, () if bracketed else known, words=found.outline.words), found)


def _by_author(references: Sequence[Reference]) -> dict[str, Reference]:
    """The entries by their authors, of those that have one entry."""
    found = [(author_alone(reference.title), reference) for reference in references if reference.url]
    often = Counter(name for name, _ in found)
    return {name: reference for name, reference in found if name and often[name] == 1}


_NUMBERS = re.compile(r" ?[\d, ]{1,40}")
_ANY_ADDRESS = re.compile(r"(?P<code>`?)(?P<url>https?://[^\s<>`\"()\[\]]{1,2000})", re.IGNORECASE)
_FIGURES_ALONE = re.compile(r"\d{1,3}")
_FIRST_RAISED = re.compile(r"(?=[¹<])(?:¹|<sup>\s?\\?\[?1(?!\d))")
_MAX_SHOWING = 5_000  # marks that show how a report cites


def _in_use(labels: Labels, found: ReportLines) -> Labels:
    """`labels`, with how numbers without any sign may stand in a report of `found` lines, as its first marks show.

    They are figures if the report cites more often in other ways; close behind words they are marks only where a third
    of the list's numbers stand so.
    """
    labels = _with_signs(labels, found)
    if not labels.bare:
        return labels._replace(close=_close(labels, found))
    labels = labels._replace(glued=True)
    plain = others = close = 0
    glued = set[str]()
    for before, mark in islice(_marks_in(found, labels), _MAX_SHOWING):
        is_plain = not mark.url and _NUMBERS.fullmatch(mark.raw) is not None
        if is_plain and mark.raw[0] != " " and not before.endswith(_STOPS):
            glued.update(mark.labels)
            close += 1
        else:
            plain += is_plain
            others += not is_plain and bool(mark.url or mark.labels)  # a picture is none
    is_glued = len(glued) >= _FEWEST and 3 * len(glued) >= sum(map(str.isdecimal, labels.bare))
    return labels._replace(plain=plain + is_glued * close >= others, glued=is_glued)


def _with_signs(labels: Labels, found: ReportLines) -> Labels:
    """`labels`, with what raised numbers and addresses in code are in a report of `found` lines.

    A raised 2 or 3 behind a number is a power where no 1 is raised. Addresses in code are a program's where others
    stand elsewhere.
    """
    raised = (line.raw for line in found if "¹" in line.raw or "<sup" in line.raw)
    labels = labels._replace(powers=not any(map(_FIRST_RAISED.search, raised)))
    if not any("`http" in line.raw for line in found):
        return labels
    coded, others = set[str](), set[str]()
    for line in found:
        if "://" in line.raw and line.kind != "code" and len(others) < MAX_REFERENCES:
            for address in _ANY_ADDRESS.finditer(line.raw):
                (coded if address["code"] else others).add(address["url"].rstrip("/.,;"))
    return labels._replace(coded=not others or 2 * len(coded & others) >= len(coded))


def _close(labels: Labels, found: ReportLines) -> Collection[str]:
    """The numbers that are marks close behind a full stop in a report that has others in brackets: all, or none.

    At least three stand so, and a third of the list's.
    """
    numbers = set(filter(str.isdecimal, labels.known))
    if len(numbers) < _FEWEST:
        return ()
    stand = set[str]()
    for _, mark in islice(_marks_in(found, labels._replace(close=numbers)), _MAX_SHOWING):
        if _FIGURES_ALONE.fullmatch(mark.raw):
            stand.update(mark.labels)
    return numbers if len(stand) >= _FEWEST and 3 * len(stand) >= len(numbers) else ()


def _marks_in(found: Iterable[Line], labels: Labels) -> Iterator[tuple[str, Mark]]:
    """The marks in a report's prose and items, each with the text in front of it, "" behind another mark."""
    for line in found:
        text = line.text
        if line.kind not in ("prose", "item") or not ("(" in text or "（" in text or may_hold_mark(text)):
            continue
        before = ""
        for piece in pieces(text, labels):
            if isinstance(piece, Mark):
                yield before, piece
                before = ""
            else:
                before = piece


def number_of(name: str, place: int) -> int:
    """The number that a label is; its `place` for a word, and for a number of more digits than any list has."""
    return int(name) if name.isdecimal() and len(name) < 10 else place


def _address(text: str) -> tuple[str, str]:
    """Title and URL of a reference; a link rather than the work's name in a register (arXiv, DOI)."""
    found = list(pieces(text, Labels()))
    named = [piece for piece in found if isinstance(piece, Mark) and piece.url]
    linked = [mark for mark in named if not mark.raw.lower().startswith(("arx", "doi"))]
    full = [
        mark for mark in linked if not mark.raw.lower().startswith("www.")
    ]  # the host may be the work's name
    url = next((mark.url for mark in (*full, *linked, *named)), "")
    title = [piece.title if isinstance(piece, Mark) else piece for piece in found]
    bare = None if url else _WWW.search(text) or BARE_ADDRESS.search(text)
    if bare:
        doi = bare.re is BARE_ADDRESS and bare["doi"]
        url = f"https://{'doi.org/' if doi else ''}{clean_url(bare[0])}"
    return "".join(title).strip(" \t*_.:：,|-–—()[]<>"), url


class Sources:
    """The target of a mark on a given line. Lists may restart their numbers: the next definition below counts.

    So it does if a list without addresses stands there, below one with them: its marks lead nowhere.
    """

    def __init__(
        self,
        references: Sequence[Reference],
        handed: Sequence[Citation],
        found: ReportLines,
    ) -> None:
        bracketed = found.outline.bracketed
        self._defined: defaultdict[str, list[Reference]] = defaultdict(list)
        self._listed: dict[str, int] = {}
        self._keys: dict[str, str] = {}
        labelled = {reference.label for reference in references if not reference.placed}
        for reference in references:
            if reference.placed and reference.label in labelled:
                continue
            if reference.url:
                self._defined[reference.label].append(reference)
                self._listed.setdefault(self._key(reference.url), reference.index)
            elif reference.label in self._defined:  # of a further list, which has no addresses
                self._defined[reference.label].append(reference)
        for place, citation in enumerate(handed, 1):
            if citation.position is not None and not citation.marker:
                continue  # it stands in the text
            name = label(citation.marker.strip("[]【】()^ ") or str(place))
            if name not in self._defined:
                index = number_of(name, place)
                self._defined[name].append(Reference(name, index, citation.title, citation.url, 0))
        for reference in () if bracketed else references:
            named = author_year(reference.title)
            if named and reference.url and named not in self._defined:
                self._defined[named].append(reference)
        for name, reference in () if bracketed else _by_author(references).items():
            self._defined[name].append(reference)
        known = frozenset(self._defined)
        self.labels = _in_use(Labels(known, () if bracketed else known, words=found.outline.words), found)
        self.marks = 0
        self.unresolved: list[str] = []
        self.led: dict[str, str] = {}  # the addresses that marks lead to, by their keys

    def counted(self, marks: Sequence[Mark], line: int) -> dict[str, tuple[int, str]]:
        """As `of`, and the marks are counted, those that lead nowhere as they are written."""
        marks = [mark for mark in marks if mark.url or mark.labels]  # a picture is none
        self.marks += len(marks)
        for mark in marks:
            if not mark.url and not any(self._leads(name, line) for name in mark.labels):
                self.unresolved.append(mark.raw[:_MAX_MARK])
        found = self.of(marks, line)
        for key, (_, url) in found.items():
            if len(self.led) < MAX_FACTS:
                self.led.setdefault(key, url)
        return found

    def of(self, marks: Iterable[Mark], line: int) -> dict[str, tuple[int, str]]:
        """(ref_idx, url) of all marks by the URL's key, each URL once."""
        found: dict[str, tuple[int, str]] = {}
        looked_up: set[str] = set()
        for mark in marks:
            listed = mark.is_dead and any(name in self._defined for name in mark.labels)
            if mark.url and not listed:
                key = url_key(mark.url)
                numbered = mark.labels and mark.labels[0].isdecimal()
                found.setdefault(
                    key, (int(mark.labels[0]) if numbered else self._listed.get(key, 0), mark.url)
                )
                continue
            for name in mark.labels:
                if name not in looked_up and name in self._defined:
                    looked_up.add(name)
                    reference = self._below(name, line)
                    if reference.url:
                        found.setdefault(self._key(reference.url), (reference.index, reference.url))
        return found

    def lists(self, url: str) -> bool:
        """Whether an entry of a reference list leads to `url`."""
        return self._key(url) in self._listed

    def _key(self, url: str) -> str:
        """`url_key` of a reference, which many marks may point to."""
        key = self._keys.get(url)
        if key is None:
            key = self._keys[url] = url_key(url)
        return key

    def _leads(self, name: str, line: int) -> bool:
        """Whether the label `name` leads to an address from `line`."""
        return name in self._defined and self._below(name, line).url != ""

    def _below(self, name: str, line: int) -> Reference:
        defined = self._defined[name]
        below = bisect_left(defined, line, key=lambda reference: reference.line)
        return defined[min(below, len(defined) - 1)]


MAX_FACTS = 5_000
"""Facts with a source that are kept of a report; more are not read."""
MAX_PASSAGES = 20_000
MAX_MARKS = 20_000
"""Marks that are read of a report, up to the end of a line."""
MAX_FACT_CHARS = 5_000_000  # of all facts together: a short cell repeats the long names of its row and column
_MAX_MARK = 100
_KEPT_CHARS = 2_000_000  # of the texts whose citations are kept
_MAX_HEADING = 2 * MAX_FACT
_MAX_WORKS = 250  # characters of a line of sources, its marks aside
_SHORT = 60  # columns below which a list item is not a sentence by itself; a Chinese character takes two

_SHORT_SENTENCE = 40  # columns of a cell that says more than a name or a figure
_MAX_ROWS = 1_000  # of a table that are looked at together
_NUMBERING = re.compile(
    r"[\W_]*(?:no|nr|id|编号|序号|番号|번호)?[\W_]*", re.IGNORECASE
)  # the title of such a column

_OUTSIDE = -1  # what no list item is as little deep as
_SECTION = -2  # of a heading
_CAPTION = re.compile(
    r"\s{0,3}(?:\*\*|__)?(?:(?:Table|Tab\.|Tabelle|Tableau|Tabla|Tabela|Таблица) ?[\dIVX]{1,4}(?= ?[.:–—-]|\*\*|__)"
    r"|表 ?[\d一二三四五六七八九十]{1,3}(?=[ .:：]|\*\*|__))"
)
_BOLD_START = re.compile(r"\s{0,3}\[?(?:\*\*|__)")
_TITLE_START = re.compile(r"\s{0,3}(?:\[|\*\*|__)")
_BOLD_LINE = re.compile(r"\s{0,3}(?:\*\*|__)[^*_\n]{1,100}(?:\*\*|__)\s{0,3}[:：]?\s*")
_BOLD = re.compile(r"\*\*[^*\n]{1,300}\*\*|__[^_\n]{1,300}__")
_SOURCE_COLUMN = re.compile(
    r"\b(?:sources?|refs?|references?|citations?|(?:perma)?links?|urls?)\b|来源|出处|参考|引用|文献|链接|網址|网址",
    re.IGNORECASE,
)


_LINK_WORD = re.compile(r"\b(?:(?:perma)?links?|urls?)\b", re.IGNORECASE)
_WORDS = re.compile(r"[^\W\d_]{2}")
_NUMBERS_APART = re.compile(r"[,;，；、]\s{0,3}")
_NUMBERS_ALONE = re.compile(r"[:：][\s*_]{0,4}(\d{1,4}(?:[,;，；、]\s{0,3}\d{1,4}){0,40})[.\s*_)）]{0,4}$")
_BARE_SIGNS = ("(", "（", *map(chr, range(ord("①"), ord("⑳") + 1)))


class Triplet(msgspec.Struct, frozen=True):
    """A fact and one URL that it cites; `ref_idx` is the reference's number, 0 for a link that is in no list."""

    fact: str
    ref_idx: int
    url: str


class Passage(msgspec.Struct, frozen=True):
    """A sentence of the body: as it stands (`raw`), what it states (`fact`), and its (ref_idx, url) sources."""

    raw: str
    fact: str
    sources: tuple[tuple[int, str], ...] = ()


class Citations(msgspec.Struct, frozen=True):
    """A report as parsed: the entries of its reference lists, and the sentences of its body.

    `marks` counts the citation marks of the body; `unresolved` are those that lead to no address, as written;
    `addresses` are the others' (the first 5,000), wherever they stand. `complete` unless the report has more of them
    than are kept.
    """

    references: tuple[Reference, ...]
    passages: tuple[Passage, ...]
    complete: bool = True
    marks: int = 0
    unresolved: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()

    @property
    def triplets(self) -> tuple[Triplet, ...]:
        """One for each fact and source."""
        return tuple(Triplet(one.fact, index, url) for one in self.passages for index, url in one.sources)


@remembered(_KEPT_CHARS)
def parse(text: str, handed: tuple[Citation, ...] = ()) -> Citations:
    """The citations of the Markdown report `text`.

    `handed` are citations that came separately from the text: those with a position stand there, the others define the
    labels that the text does not. Lone surrogates, which neither a store nor a server takes, become question marks.
    """
    return _parsed(text, handed, all_sentences=True)


@remembered(_KEPT_CHARS)
def cited(text: str, handed: tuple[Citation, ...] = ()) -> Citations:
    """As `parse`, but faster and without the passages that have no source, which count towards no limit."""
    return _parsed(text, handed, all_sentences=False)


def _parsed(text: str, handed: tuple[Citation, ...], all_sentences: bool) -> Citations:
    text = plain(readable(placed(text, handed).encode("utf-8", "replace").decode()))
    lines = report_lines(text)
    references = tuple(islice(references_in(lines), MAX_REFERENCES + 1))
    kept = references[:MAX_REFERENCES]
    sources = Sources(kept, handed, lines)
    body = _Body(sources, all_sentences, lines.outline.linked)
    body.read(lines)
    return Citations(
        references=(*kept, *body.listed)[:MAX_REFERENCES],
        passages=tuple(body.passages),
        complete=body.complete and len(references) <= MAX_REFERENCES,
        marks=sources.marks,
        unresolved=tuple(sources.unresolved),
        addresses=tuple(sources.led.values()),
    )


_NUMBERED_NAME = re.compile(r"(?:\*\*|__)[^\W\d_]{1,20} ?#?\d{1,3}[.:：]?(?:\*\*|__)[.:：]?")
"""A name in bold in front of what is stated: "**Finding 3.**"."""


class _Row(NamedTuple):
    """A row of a table, its place in the report, and whether a ruler stands below it."""

    text: Marked
    line: int
    ruled: bool


_NO_SOURCES: dict[str, tuple[int, str]] = {}  # shared by all statements without any, and never written to


class _Statement:
    """What a text states, with its sources, while lines of sources below it may still add to them."""

    __slots__ = ("_linked", "depth", "fact", "raws", "sentence", "sources")

    def __init__(self, sentence: Marked | None, depth: int, linked: bool = False) -> None:
        self.sentence = sentence
        self.depth = depth
        self._linked = linked  # whether the words of a link may be what it states
        self.raws: list[str] = []
        self.fact = ""  # until it is known to state something
        self.sources = _NO_SOURCES

    @classmethod
    def of(cls, raw: str, fact: str) -> Self:
        """A statement that is no sentence: a row of a table, or a cell."""
        made = cls(None, _OUTSIDE)
        made.raws, made.fact = [raw], fact
        return made

    def states(self) -> bool:
        """Whether it states anything; that is looked at when it is asked for."""
        if not self.fact and self.sentence is not None:
            said = self.sentence.fact if self.sentence.states_something else ""
            raw = self.sentence.raw if said or self._linked else ""
            said = "" if len(said) <= _MAX_WORKS and names_sources(raw) else said
            said = "" if _NUMBERED_NAME.fullmatch(raw) else said
            said = said or (self.sentence.linked if self._linked else "")
            if said:
                self.raws, self.fact = [raw], said
            self.sentence = None
        return bool(self.fact)


_FIRST = _Statement(None, _OUTSIDE)  # stands for none above the first sentence of a piece


class _Titled:
    """A title or lead-in with sources, which is what is stated below it cites: the items deeper than `depth`."""

    def __init__(
        self, title: str, sources: dict[str, tuple[int, str]], depth: int, own: _Statement | None = None
    ) -> None:
        self.title = title
        self.sources = sources
        self.depth = depth
        self.own = own  # what it states itself, if nothing below it turns out to cite its sources
        self.used = False


_NOTHING = Line("blank", "", "")
_ATTRIBUTES = re.compile(
    r"[ \t]{0,3}>[ \t]{0,3}[*_]{0,2}[—–] ?[^.!?\n]{1,150}\[[^\[\]\n]{1,200}\]\("
)  # whose words a quote is
_BARE_ITEM = re.compile(r"\s{0,12}[-*+•]\s{1,8}<?https?://[^\s<>]{1,8192}+>?\s*")
# "EPA overview: https://...": a title of six words at most, without figures but a year.
_TITLE_WORD = r"(?:(?:19|20)\d\d|[^\W\d_][^\s\d:：!?*]{0,40}+|[(/&+][^\s\d:：!?*]{0,40}+)"
_NAMED_ADDRESS = re.compile(
    rf"\s*(?:{_TITLE_WORD} ){{0,5}}{_TITLE_WORD}[:：] ?(<?https?://[^\s<>]{{1,8192}}+>?)\s*"
)
# "- **EPA overview** — https://...": such an item, its name and its address.
_NAMED_ITEM = re.compile(
    rf"\s*[*_]{{0,2}}(?P<name>(?:{_TITLE_WORD} ){{0,5}}{_TITLE_WORD})[*_]{{0,2}}(?:[:：]| [—–-])[*_]{{0,2}} ?"
    r"[<`]?(?P<url>https?://[^\s<>()`]{1,8192}+)[>`]?\s*"
)
# Such an item with a remark behind: the first of several, of which each has a name and an address.
_NAMED_START = re.compile(
    rf"\s*[*_]{{0,2}}(?:{_TITLE_WORD} ){{0,5}}{_TITLE_WORD}[*_]{{0,2}}(?:[:：]| [—–-])[*_]{{0,2}} ?<?https?://"
)
_OWN_LINK = re.compile(
    r"\[(?P<words>[^\[\]\s]{3,300})\]\((?P<url>https?://(?:www\.)?(?P<rest>[^\s()<>]{1,2000}))\)$"
)
_MAX_NAME = 24  # columns of a name in wide characters
_WIDE = re.compile(r"[⺀-鿿가-힣]")
# A word or two in front of a list of addresses: "**Repositories:**".
_LABEL = re.compile(r"\s*[*_]{0,3}[^\s\[\]]{1,40}(?: [^\s\[\]]{1,40}){0,2}[:：][*_]{0,3}\s*")
_ENDED = re.compile(r"[.!?。！？][\"”’)*_\]]{0,4}\s*\Z")  # of a sentence, at the end of a line
# In front of a heading: "3. ", "4.2 ", "1 "; no year.
_NUMBER = re.compile(r"^\s*\d{1,2}(?:(?:\.\d{1,2}){1,4}[.、)）]?|[.、)）]|(?=\s+[A-Z]))\s*")
# The end of a heading that states something: none of a title, of a question or of a name ("Inc.", "et al.").
_SAID = re.compile(r"(?:[a-zß-öø-ÿа-яё]{3}[.!]|[\d%)][.!]|[。！।])[\"”’*_]{0,4}\s*\Z")


class _Body:
    """Reads the body of a report, line by line, into `passages`: of all sentences, or of those that have a source.

    A block is what a line of sources below it cites: a paragraph, a list or a table. A line of sources with nothing but
    a title above it is that title's.
    """

    def __init__(self, sources: Sources, all_sentences: bool, linked: bool) -> None:
        self.passages: list[Passage] = []
        # What names a source and states nothing of it, outside reference lists.
        self.listed: list[Reference] = []
        self._linked = linked
        self.complete = True
        self._sources = sources
        self._all_sentences = all_sentences
        self._block: list[_Statement] = []
        self._group: list[_Statement] = []  # of the block, what the line of sources above is about
        self._group_depth = _OUTSIDE
        self._group_keys = set[str]()  # the sources that it has been given
        self._kind = ""  # of the block: "prose", "item" or "row"
        self._fresh = True  # whether the next statement begins a block
        self._stated = 0  # how many passages there are, those of the block included
        self._facts = 0  # how many of them have sources, one for each source
        self._chars = 0  # of all facts
        self._lead = ""  # the current heading
        self._paragraph: list[str] = []
        self._length = 0  # of the paragraph
        self._began = 0
        self._item = False
        self._depth = _OUTSIDE  # of the item that is being read
        self._named = -2  # the last line of sources
        self._pointer = -2  # the last item that is a name and its address
        self._gap = False  # whether the paragraph is a title behind which a blank line has come
        self._section: _Titled | None = None  # a heading that is nothing but a source
        self._card: _Titled | None = None  # a line of sources above the paragraph that cites them
        self._cards = False  # whether such lines stand above
        self._blank = -1  # the last blank line
        self._titled: list[_Titled] = []
        self._table: _Titled | None = None  # a lead-in or a caption of the table that is being read
        self._bare: _Titled | None = None  # a title without sources, if nothing is stated below it yet
        self._header: list[str] = []
        self._rows: list[_Row] = []  # of the table that is being read

    def read(self, found: Iterable[Line]) -> None:
        """Reads the lines of a report, until it is found to state more than is kept."""
        before: tuple[Line, int] | None = None
        for number, line in enumerate(found):
            if before is not None:
                self._line(*before, line)
            if not (self.complete and self._has_room()):
                break
            before = line, number
        else:
            if before is not None:
                self._line(*before, _NOTHING)
            self._end_table()
            self._flush()
            self._end_titled(self._table)
            self._leave(_OUTSIDE)
            self._leave_section()
        self._close()

    def _line(self, line: Line, number: int, below: Line) -> None:
        """Take one line, with the one `below` it."""
        if line.kind == "row" and len(line.text) <= MAX_PIECE:
            if self._paragraph and not self._item and self._heads():
                self._table, self._paragraph, self._length = self._titled.pop(), [], 0
            self._flush()
            self._rows.append(_Row(marked(line.text, self._sources.labels), number, below.kind == "ruler"))
            if len(self._rows) >= _MAX_ROWS:
                self._end_table()
            return
        if self._rows and (line.kind != "ruler" or "|" not in line.raw):
            self._end_table()
        if line.kind not in ("ruler", "blank"):
            self._end_titled(self._table)
            self._table = None
        if line.kind != "ruler":
            self._header = []
            self._fresh = self._fresh or self._kind == "row"
        if line.kind == "blank":
            self._blank = number
            if self._card is not None and self._paragraph:
                self._flush()
                self._card = None
        names = line.kind in ("prose", "item") and names_sources(line.text)
        if line.kind == "blank" and self._may_head():
            self._gap = True
        elif named := self._sources_named(line, names):
            if not self._begins_card(line, number, below):
                self._source_line(named, line, number)
            elif sources := self._sources.counted(named.marks, number):
                self._card = _Titled("", sources, _SECTION)
        elif line.kind == "prose" and names and address_alone(below.text):
            pass  # the titles of what stands below
        elif line.kind == "prose" and _is_address(below) and _LABEL.fullmatch(line.text):
            self._flush()
            self._close()
        elif line.kind in ("prose", "row"):
            if self._gap:
                self._flush()
            if not self._paragraph:
                self._began = number
                if not line.raw[:1].isspace():
                    self._leave(_OUTSIDE)
            self._paragraph.append(self._untitled(line.text, number))
            self._length += len(line.text)
            if self._length > MAX_PIECE:
                self._flush()
        elif line.kind == "item":
            self._begin_item(line, number)
        else:
            self._flush()
            if line.kind == "heading":
                self._begin_section(line.text[:_MAX_HEADING], number)
            elif line.kind == "ruler" and "|" not in line.raw:
                self._leave_section()

    def _begins_card(self, line: Line, number: int, below: Line) -> bool:
        """Whether a line of sources is the first of a paragraph that states what they say.

        So it is where the first that stands so has nothing stated above it in its section.
        """
        first = line.kind == "prose" and below.kind == "prose" and self._blank == number - 1
        first = first and not names_sources(below.text) and not address_alone(below.text)
        if first and (self._bare is not None or not self._block):
            self._cards = True
        if first and self._cards:
            self._flush()
            self._fresh = True
        return first and self._cards

    def _untitled(self, text: str, number: int) -> str:
        """A line of a paragraph; of one that is the title and address of a source of what stands above, the address."""
        named = _NAMED_ADDRESS.fullmatch(text) if "://" in text else None
        if named is None or not (self._paragraph or self._named == number - 1):
            return text
        if not self._paragraph:
            return named[1]
        above = self._paragraph[-1]
        is_stated = _ENDED.search(above) is not None and address_in(above) is None
        return named[1] if is_stated or address_alone(above) or names_sources(above) else text

    def _begin_section(self, text: str, number: int) -> None:
        self._card, self._cards = None, False
        self._leave(_OUTSIDE)
        self._leave_section()
        self._close()
        heading = marked(_NUMBER.sub("", text), self._sources.labels)
        self._lead = _NUMBER.sub("", heading.fact)  # one in bold
        self._bare = None
        live = [mark for mark in heading.marks if not mark.is_button]
        sources = self._sources.counted(live, number) if live else {}
        if not sources:
            own = _Statement(heading, _OUTSIDE) if _SAID.search(text) else None
            self._bare = _Titled(heading.title, {}, _SECTION, own)
        elif heading.states_something:
            self._titled.append(_Titled(heading.title, sources, _OUTSIDE))
        else:
            self._section = _Titled(heading.title, sources, _SECTION)

    def _begin_item(self, line: Line, number: int) -> None:
        depth = _depth(line.raw)
        if not (self._paragraph and depth > self._depth and self._heads()):
            self._flush()
        self._leave(depth)
        text = _linked_item(line.text, self._pointer == number - 1)
        names = text is not line.text or ("://" in text and _NAMED_START.match(text) is not None)
        self._pointer = number if names else self._pointer
        self._paragraph, self._began, self._item = [text], number, True
        self._length, self._depth, self._gap = len(line.text), depth, False

    def _leave(self, depth: int) -> None:
        """End the titles above an item of `depth`. What is stated below one has used its sources, or else it has."""
        while self._titled and self._titled[-1].depth >= depth:
            self._end_titled(self._titled.pop())

    def _end_titled(self, ended: _Titled | None) -> None:
        if ended is None or ended.used:
            return
        if ended.own is None or not ended.own.states():
            self._list((ended.title, url) for _, url in ended.sources.values())
            return
        if ended.own is not self._last():
            self._fresh = True
            self._state(ended.own, {})
            self._fresh = True
        self._add_sources(ended.own, "", ended.sources)

    def _leave_section(self) -> None:
        """End a heading that is a source."""
        self._end_titled(self._section)
        self._section = None

    def _list(self, found: Iterable[tuple[str, str]]) -> None:
        """Keep titles and addresses of sources that nothing states anything of."""
        for title, url in found:
            if len(self.listed) < MAX_REFERENCES and not self._sources.lists(url):
                place = len(self.listed) + 1
                name = title[:_MAX_MARK] or str(place)
                self.listed.append(Reference(name, place, title, url, self._began))

    def _may_head(self) -> bool:
        """Whether the paragraph may be a title or a lead-in of a list behind a blank line."""
        if not self._paragraph:
            return False
        return self._paragraph[-1].rstrip(" *_").endswith((":", "：")) or (
            len(self._paragraph) == 1
            and (_TITLE_START.match(self._paragraph[0]) or _CAPTION.match(self._paragraph[0])) is not None
        )

    def _heads(self) -> bool:
        """Take the paragraph as title or lead-in of the items below it, if it has a source."""
        text = _joined(self._paragraph)[:MAX_PIECE]
        if len(self._paragraph) == 1 and (title := self._title(text)) is not None:
            return self._entitle(title)
        if not text.rstrip(" *_").endswith((":", "：")) and _CAPTION.match(text) is None:
            return False
        *before, last = marked(text, self._sources.labels).sentences()
        if not self._sources.of(last.marks, self._began):
            return False
        self._enter()
        for sentence in before:
            self._sentence(sentence, False, _FIRST)
        return self._entitle(last)

    def _title(self, text: str) -> Marked | None:
        """A line that is nothing but a bold title and its source, or a link that stands alone."""
        if not _TITLE_START.match(text) or len(text) > _MAX_HEADING:
            return None
        rest = marked(_BOLD.sub("", text), self._sources.labels)
        if rest.states_something:
            return None
        title = marked(text, self._sources.labels)
        return title if _BOLD_START.match(text) or (title.links and (self._item or not self._block)) else None

    def _entitle(self, title: Marked) -> bool:
        """Take `title` as that of the items below, if it has a source."""
        if sources := self._sources.of(title.marks, self._began):
            self._sources.counted(title.marks, self._began)
            own = _Statement(title, self._depth, self._linked and self._item)
            self._titled.append(_Titled(title.title.rstrip(":："), sources, self._depth, own))
            self._fresh, self._bare = True, None
        return bool(sources)

    def _has_room(self) -> bool:
        """Whether there is room for more marks; that there is none makes the reading incomplete."""
        self.complete = self.complete and self._sources.marks < MAX_MARKS
        return self._sources.marks < MAX_MARKS

    def _enter(self) -> None:
        """Begin to read a paragraph or an item: a block of its own, unless it goes on with a list."""
        self._fresh = self._fresh or not self._item or self._kind != "item"

    def _flush(self) -> None:
        if self._paragraph:
            self._enter()
            before = self._last()
            for piece in split(_joined(self._paragraph), MAX_PIECE):
                if not self._has_room():
                    break
                sentences = marked(piece, self._sources.labels).sentences()
                for place, sentence in enumerate(sentences):
                    self._sentence(sentence, len(sentences) == 1, before if place else _FIRST)
            if len(self._paragraph) == 1 and _BOLD_LINE.fullmatch(self._paragraph[0]):
                own = self._last()
                own = None if own is before else own
                self._bare = _Titled(self._paragraph[0].strip(" *_:："), {}, self._depth, own)
        self._paragraph, self._length, self._item = [], 0, False
        self._depth, self._gap = _OUTSIDE, False

    def _sentence(self, sentence: Marked, alone: bool, above: "_Statement | None") -> None:
        """Read a sentence, `alone` in its piece of text, which has this statement `above` it, or the piece's _FIRST."""
        statement = _Statement(sentence, self._depth, self._linked and self._item)
        if not (self._all_sentences or sentence.marks or self._item or self._section or self._card):
            if not self._fresh or statement.states():
                self._state(statement, {})
            return
        follows = above is not _FIRST and self._last() is not above
        marks = sentence.marks
        if not (follows or statement.states()):  # nor does a button of its page cite anything
            marks = [mark for mark in marks if not mark.is_button]
        sources = self._sources.counted(marks, self._began)
        if not statement.states():
            if not sources:
                return
            if self._item and sentence.links and not follows:
                self._attach_below(sentence, sources)
            elif self._fresh and (self._bare is None or all(mark.url for mark in sentence.marks)):
                self._attach(sentence, sources, self._depth)
            else:
                self._add_sources(self._last(), sentence.raw, sources)
            return
        titled, lead = self._card or self._section, self._lead
        if self._item and self._titled:
            titled, lead = self._titled[-1], self._titled[-1].title
        if titled is not None and not sources:
            titled.used, sources = True, titled.sources
        if self._item and alone and lead and _columns(statement.fact) < _SHORT:
            statement.fact = f"{lead}: {statement.fact}"
        self._state(statement, sources)

    def _sources_named(self, line: Line, named: bool) -> Marked | None:
        """A line that states nothing but what the sources of something are, as its words say if they are `named`."""
        attributes = line.kind == "prose" and "](" in line.text and _ATTRIBUTES.match(line.raw) is not None
        if line.kind != "source" and not named and not attributes:
            return None
        found = marked(self._numbered(line.text[:MAX_PIECE]), self._sources.labels)
        works = line.kind == "source" or len(found.fact) <= _MAX_WORKS or not found.states_something
        return found if works and (found.marks or line.kind == "source") else None

    def _numbered(self, text: str) -> str:
        """A line of sources that are numbers without brackets, with brackets around them."""
        numbers = _NUMBERS_ALONE.search(text)
        labels = _NUMBERS_APART.split(numbers[1]) if numbers else ()
        if numbers is None or not all(label(one.strip()) in self._sources.labels.known for one in labels):
            return text
        return f"{text[: numbers.start(1)]}[{numbers[1]}]{text[numbers.end(1) :]}"

    def _source_line(self, found: Marked, line: Line, number: int) -> None:
        """Take a line of sources."""
        self._flush()
        self._named = number
        sources = self._sources.counted(found.marks, number)
        inside = self._kind == "item" and (line.kind == "item" or line.raw[:1].isspace())
        depth = _depth(line.raw, line.kind == "item") if inside else _OUTSIDE
        if sources:
            self._attach(found, sources, depth)
        self._fresh = True

    def _attach(self, found: Marked, sources: dict[str, tuple[int, str]], depth: int) -> None:
        """Give `sources` that stand on a line of their own, at `depth`, to what they are the sources of."""
        if self._bare is not None:
            self._head_with(self._bare, sources)
            return
        if not self._group or depth < self._group_depth:
            within = takewhile(lambda one: one.depth >= depth, reversed(self._block))
            group = [one for one in within if one.states() and not one.sources]
            last = self._last()
            self._group = group or ([last] if last else [])
            self._group_depth, self._group_keys = depth, set()
        if not self._group:
            self._list((mark.title, mark.url) for mark in found.marks if mark.url)
        new = {key: source for key, source in sources.items() if key not in self._group_keys}
        self._group_keys.update(new)
        for statement in self._group if new else ():
            self._add_sources(statement, found.raw[:MAX_FACT], new)

    def _attach_below(self, found: Marked, sources: dict[str, tuple[int, str]]) -> None:
        """Give the `sources` of an item that is nothing but links to the statement whose item it stands in."""
        above = self._last() if self._kind == "item" and self._bare is None else None
        if above is not None and above.depth < self._depth and not above.fact.endswith((":", "：")):
            self._attach(found, sources, self._depth)
        else:
            self._list((mark.title, mark.url) for mark in found.marks if mark.url)

    def _last(self) -> _Statement | None:
        """The statement read last in this block."""
        while self._block and not self._block[-1].states():
            self._block.pop()
        return self._block[-1] if self._block else None

    def _head_with(self, bare: _Titled, sources: dict[str, tuple[int, str]]) -> None:
        """Make `bare` a title with sources."""
        bare.sources |= sources
        if bare.depth == _SECTION:
            self._section = bare
        elif bare not in self._titled:
            self._titled.append(bare)

    def _state(self, statement: _Statement, sources: dict[str, tuple[int, str]], kind: str = "") -> None:
        """Add a statement to the block, or to a new one of its `kind`, if there is room for it."""
        kind = kind or ("item" if self._item else "prose")
        if self._fresh or len(self._block) >= MAX_PASSAGES:
            self._close()
            self._kind = kind
        self._fresh, self._bare, self._group = False, None, []
        kept = self._within(sources)
        if self._stated >= MAX_PASSAGES or self._chars >= MAX_FACT_CHARS:
            self.complete = False
        if self.complete or kept:
            statement.sources = kept or _NO_SOURCES
            self._block.append(statement)
            if self._all_sentences or kept:
                self._stated += 1
                self._chars += len(statement.fact)

    def _add_sources(
        self, statement: _Statement | None, raw: str, sources: dict[str, tuple[int, str]]
    ) -> None:
        """Add to what a statement cites, which stands in `raw`."""
        if statement is None:
            return
        new = {key: source for key, source in sources.items() if key not in statement.sources}
        if not (self._all_sentences or statement.sources):
            self._stated += 1
            self._chars += len(statement.fact)
        if raw:
            statement.raws.append(raw)
        statement.sources = statement.sources | self._within(new)

    def _within(self, sources: dict[str, tuple[int, str]]) -> dict[str, tuple[int, str]]:
        """As many of `sources` as there is room for."""
        if not sources:
            return sources
        room = MAX_FACTS - self._facts
        self.complete = self.complete and len(sources) <= room
        self._facts += min(len(sources), room)
        return dict(islice(sources.items(), room))

    def _close(self) -> None:
        """End the block; it takes no more sources."""
        for one in self._block:
            if one.sources or (self._all_sentences and one.states()):
                self.passages.append(Passage(" ".join(one.raws), one.fact, tuple(one.sources.values())))
        self._block, self._group, self._fresh = [], [], True

    def _end_table(self) -> None:
        """Read the rows of a table, or the next of a long one."""
        rows, self._rows = self._rows, []
        title = self._header[0] if self._header else rows[0].text.cells()[0].fact if rows else ""
        for row, alone in zip(rows, _lists_addresses(rows, title), strict=True):
            if not self.complete:  # it states more than is kept
                return
            self._row(row, alone)

    def _row(self, found: "_Row", alone: bool) -> None:
        """Read a row; what stands beside its address states nothing of that if it lists it `alone`."""
        self._fresh = self._fresh or self._kind != "row"
        row, number = found.text, found.line
        raw, cells = row.raw, row.cells()
        # A first row without a rule below, as documents have it, names the columns if one of them holds sources.
        unnamed = self._fresh and not any(self._header) and not row.marks and len(cells) > 1
        heads = (found.ruled and not self._header) or (
            unnamed and any(_names_column(cell.fact) for cell in cells)
        )
        if heads:
            self._header = [cell.fact for cell in cells]
        if heads or not row.states_something:
            self._sources.counted(row.marks, number)
            return
        if len(cells) == 2 and cells[1].marks and not cells[0].marks and _names_column(cells[0].fact):
            sources = self._sources.counted(cells[1].marks, number)
            if self._fresh:  # nothing is stated above it in its table
                self._list((mark.title, mark.url) for mark in cells[1].marks if mark.url)
            elif sources:
                self._attach(cells[1], sources, _OUTSIDE)
            return
        headers = [*self._header, *[""] * len(cells)]
        marks = [self._marks_of(cell, headers[i]) for i, cell in enumerate(cells)]
        said = [cell.raw if cell.marks and not marks[i] else cell.fact for i, cell in enumerate(cells)]
        named = [f"{headers[i]}: {one}" if headers[i] else one for i, one in enumerate(said)]
        name = next((i for i, cell in enumerate(cells) if cell.states_a_name), 0)
        whole = "; ".join(
            text
            for i, text in enumerate(named)
            if said[i] and (not marks[i] or (i == name and not _only_names_sources(headers[i])))
        )[:MAX_FACT]
        cited = alone
        for i, cell in enumerate(cells):
            sources = self._sources.counted(marks[i], number)
            if not sources:
                continue
            if alone and _holds_address(cell):
                self._list((mark.title, mark.url) for mark in marks[i])
                continue
            of_row = i == name or not cell.fact or (i < len(self._header) and _names_column(self._header[i]))
            of_row = of_row or (
                _is_linked(cell) and any(map(_is_long, (one for one in cells if not one.marks)))
            )
            fact = (whole or row.fact) if of_row else f"{cells[name].fact}, {named[i]}"[:MAX_FACT]
            self._state(_Statement.of(raw, fact), sources, "row")
            cited = True
        if not cited:
            titled = self._table or self._section
            if titled is not None:
                titled.used = True
            fact = "; ".join(filter(None, named))[:MAX_FACT]
            self._state(_Statement.of(raw, fact), titled.sources if titled else {}, "row")

    def _marks_of(self, cell: Marked, header: str) -> Sequence[Mark]:
        """The marks of a cell: bare numbers are some in a column of sources, and figures in any other."""
        if not header or (cell.fact and cell.marks):
            return cell.marks
        if _names_column(header):
            names = tuple(label(one) for one in _NUMBERS_APART.split(cell.fact)) if not cell.marks else ()
            listed = bool(names) and all(name in self._sources.labels.known for name in names)
            return [Mark(names, raw=cell.fact)] if listed and cell.fact[:1].isdecimal() else cell.marks
        return [] if all(mark.raw[:1] in _BARE_SIGNS and not mark.url for mark in cell.marks) else cell.marks


def _is_address(line: Line) -> bool:
    """Whether a line is an item that holds nothing but an address."""
    return "://" in line.raw and _BARE_ITEM.fullmatch(line.raw) is not None


def _linked_item(text: str, follows: bool) -> str:
    """The text of an item; of one that is only the name and the address of something, a link.

    A word alone may be a field ("Evidence: https://..."), but for an item that `follows` one that is a name.
    """
    named = _NAMED_ITEM.fullmatch(_with_address(text)) if "://" in text else None
    if named is None or not (follows or " " in named["name"] or _WIDE.search(named["name"])):
        return text
    if _WIDE.search(named["name"]) and _columns(named["name"]) > _MAX_NAME:
        return text
    return f"[{named['name']}]({named['url']})"


def _with_address(text: str) -> str:
    """`text` with its address in the place of a link at its end whose words are that, or its beginning."""
    link = _OWN_LINK.search(text) if text.endswith(")") else None
    if link is None or not link["rest"].lower().startswith(link["words"].lower().rstrip("/")):
        return text
    return f"{text[: link.start()]}{link['url']}"


def _lists_addresses(rows: Sequence[_Row], title: str) -> list[bool]:
    """For each of the rows of a table whether it lists an address and states nothing of it.

    So it is where nearly every row has an address of its own, and what stands beside these and the number of the row
    is the same in many rows: "| 12 | wiki | https://... | 200 |". `title` is that of the first column.
    """
    numbered = _NUMBERING.fullmatch(title) is not None
    beside = [_beside_address(row.text.cells(), numbered) for row in rows]
    found = [one for one in beside if one is not None]
    often = Counter(said for _, said in found)
    listed = len(found) > 2 and 10 * len(found) >= 9 * (len(rows) - 1) and 2 * len(often) <= len(found)
    listed = listed and len({url for url, _ in found}) == len(found)
    return [listed and one is not None and often[one[1]] > 1 for one in beside]


def _beside_address(cells: Sequence[Marked], numbered: bool) -> tuple[str, tuple[str, ...]] | None:
    """The address that stands alone in one of `cells`, and what is said beside it, but for the row's number."""
    alone = [cell.marks[0] for cell in cells if _holds_address(cell)]
    if len(alone) != 1:
        return None
    said = [cell.fact for cell in cells[numbered:] if not cell.marks]
    return alone[0].url, (*said, "" if address_in(alone[0].title) else alone[0].title)


def _holds_address(cell: Marked) -> bool:
    """Whether nothing but an address stands in `cell`, or a link."""
    alone = len(cell.marks) == 1 and cell.marks[0].url
    return bool(alone) and cell.fact in ("", f"[{cell.marks[0].title}]")


def _is_linked(cell: Marked) -> bool:
    """Whether `cell` holds links and nothing else, none of them a figure."""
    titles = [mark.title for mark in cell.marks]
    return all(titles) and not cell.states_something and not any(one[:1].isdecimal() for one in titles)


def _is_long(cell: Marked) -> bool:
    """Whether `cell` is a sentence by itself."""
    return _columns(cell.fact) >= _SHORT_SENTENCE


def _names_column(title: str) -> bool:
    """Whether the column under `title` holds the sources of its rows."""
    return _SOURCE_COLUMN.search(title) is not None or strength(title) >= LIKELY


def _only_names_sources(title: str) -> bool:
    """Whether `title` is that of a column of sources, and of nothing that has them: "Product URL" is not."""
    if not _names_column(title):
        return False
    return (
        _SOURCE_COLUMN.search(_LINK_WORD.sub("", title)) is not None
        or _WORDS.search(_LINK_WORD.sub("", title)) is None
    )


_HARD_ENDS = ("  ", "\\")
_THOUGHT_ENDS = tuple(".!?。！？：:]】)）")


def _joined(paragraph: Sequence[str]) -> str:
    """The lines of a paragraph as one text; a line break that ends a thought stays one."""
    if len(paragraph) == 1:
        return paragraph[0]
    parts: list[str] = []
    for line in paragraph:
        if parts:
            before = parts[-1]
            said = before.rstrip()
            hard = before.endswith(_HARD_ENDS) or said.endswith(_THOUGHT_ENDS)
            wide = "一" <= said[-1:] <= "鿿" and "一" <= line.lstrip()[:1] <= "鿿"
            parts.append("\n" if hard else "" if wide else " ")
        parts.append(line)
    return "".join(parts)


def _depth(raw: str, quoted: bool = True) -> int:
    """How deep a list item stands: by its indentation, a bullet below a number; in a quote, if it is `quoted`."""
    indented = (unquoted(raw[:200]) if quoted else raw[:200]).expandtabs(4)
    item = indented.lstrip()
    return 2 * (len(indented) - len(item)) + (item[:1] in "-*+•·▪–")


def _columns(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(2 if character > "⺀" else 1 for character in text)
