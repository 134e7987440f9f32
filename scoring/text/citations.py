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
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from adjudge.fetchers.urls import MalformedURL, normalise_url
from adjudge.judges.lexical import remembered
from adjudge.scoring.contract.case import Citation
from adjudge.scoring.text.blocks import lines, outlined
from adjudge.scoring.text.citation_marks import (
    MAX_PIECE,
    Labels,
    Mark,
    author_year,
    clean_url,
    label,
    pieces,
    split,
)
from adjudge.scoring.text.markup import plain
from adjudge.scoring.text.scan import BARE_ADDRESS, Line, entry, unquoted
from adjudge.scoring.text.sentences import MARKS, MAX_FACT, Marked, marked

MAX_REFERENCES = 5_000

_WWW = re.compile(r"(?<![\w/.])www\.[\w-]{1,63}\.[^\s<>\"]{1,2000}", re.IGNORECASE)


class Reference(msgspec.Struct, frozen=True):
    """An entry of a reference list. `index` is its number (its place, if the label is a word), `line` where it stands.

    `url` is "" for an entry that gives none.
    """

    label: str
    index: int
    title: str
    url: str
    line: int


def url_key(url: str) -> str:
    """The key that groups URLs: the normal form, or a malformed URL unchanged."""
    cleaned = clean_url(url)
    try:
        return normalise_url(cleaned)
    except MalformedURL:
        return cleaned


def references_in(found: Iterable[Line]) -> Iterator[Reference]:
    """The entries of all reference lists among a report's lines. A URL on the line below its entry belongs to it."""
    place = 0
    pending: list[Reference] = []
    for number, line in enumerate(found):
        if line.kind != "reference" or line.level:
            place = 0 if line.kind == "heading" or line.level else place
            continue
        raw = unquoted(line.raw)[:MAX_PIECE]
        item = entry(raw)
        names, rest = _labels(item.label, item.rest) if item else ((), raw)
        title, url = _address(rest)
        if pending and not names and url:
            yield from (msgspec.structs.replace(one, url=url) for one in pending)
            pending = []
        elif names or url:
            yield from pending
            place += 1
            made = [
                Reference(name, number_of(name, place), title, url, number) for name in names or (str(place),)
            ]
            pending = [] if url else made
            yield from made if url else ()
    yield from pending


_MAX_LABELS = 5  # of one entry


def _labels(first: str, rest: str) -> tuple[tuple[str, ...], str]:
    """The labels that an entry begins with, and what follows them."""
    names = [label(first)] if first else []
    while (
        names and len(names) < _MAX_LABELS and rest.startswith("[") and (more := entry(rest)) and more.label
    ):
        names.append(label(more.label))
        rest = more.rest
    return tuple(names), rest


def labels_of(references: Iterable[Reference], bracketed: bool) -> Labels:
    """The labels that `references` define, numbers without brackets among them unless the report has marks in them."""
    known = set[str]()
    for reference in references:
        known.add(reference.label)
        if not bracketed and (named := author_year(reference.title)):
            known.add(named)
    return Labels(known, () if bracketed else known)


def number_of(name: str, place: int) -> int:
    """The number that a label is; its `place` for a word, and for a number of more digits than any list has."""
    return int(name) if name.isdecimal() and len(name) < 10 else place


def _address(text: str) -> tuple[str, str]:
    """Title and URL of a reference; a link rather than the work's name in a register (arXiv, DOI)."""
    found = list(pieces(text, Labels()))
    named = [piece for piece in found if isinstance(piece, Mark) and piece.url]
    linked = [mark for mark in named if not mark.raw.lower().startswith(("arx", "doi"))]
    url = next((mark.url for mark in (*linked, *named)), "")
    title = [piece.title if isinstance(piece, Mark) else piece for piece in found]
    bare = None if url else _WWW.search(text) or BARE_ADDRESS.search(text)
    if bare:
        doi = bare.re is BARE_ADDRESS and bare["doi"]
        url = f"https://{'doi.org/' if doi else ''}{clean_url(bare[0])}"
    return "".join(title).strip(" \t*_.:：,|-–—()[]<>"), url


class Sources:
    """The target of a mark on a given line. Lists may restart their numbers: the next definition below counts."""

    def __init__(self, references: Sequence[Reference], handed: Sequence[Citation], bracketed: bool) -> None:
        self._defined: defaultdict[str, list[Reference]] = defaultdict(list)
        self._listed: dict[str, int] = {}
        self._keys: dict[str, str] = {}
        for reference in references:
            if reference.url:
                self._defined[reference.label].append(reference)
                self._listed.setdefault(self._key(reference.url), reference.index)
        for place, citation in enumerate(handed, 1):
            name = label(citation.marker.strip("[]【】()^ ") or str(place))
            if name not in self._defined:
                index = number_of(name, place)
                self._defined[name].append(Reference(name, index, citation.title, citation.url, 0))
        for reference in () if bracketed else references:
            named = author_year(reference.title)
            if named and reference.url and named not in self._defined:
                self._defined[named].append(reference)
        known = frozenset(self._defined)
        self.labels = Labels(known, () if bracketed else known)
        self.marks = 0
        self.unresolved: list[str] = []

    def counted(self, marks: Sequence[Mark], line: int) -> dict[str, tuple[int, str]]:
        """As `of`, and the marks are counted, those that lead nowhere as they are written."""
        self.marks += len(marks)
        for mark in marks:
            if not mark.url and not any(name in self._defined for name in mark.labels):
                self.unresolved.append(mark.raw[:_MAX_MARK])
        return self.of(marks, line)

    def of(self, marks: Iterable[Mark], line: int) -> dict[str, tuple[int, str]]:
        """(ref_idx, url) of all marks by the URL's key, each URL once."""
        found: dict[str, tuple[int, str]] = {}
        looked_up: set[str] = set()
        for mark in marks:
            if mark.url:
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
                    found.setdefault(self._key(reference.url), (reference.index, reference.url))
        return found

    def _key(self, url: str) -> str:
        """`url_key` of a reference, which many marks may point to."""
        key = self._keys.get(url)
        if key is None:
            key = self._keys[url] = url_key(url)
        return key

    def _below(self, name: str, line: int) -> Reference:
        defined = self._defined[name]
        below = bisect_left(defined, line, key=lambda reference: reference.line)
        return defined[min(below, len(defined) - 1)]


MAX_FACTS = 5_000
"""Facts with a source that are kept of a report; more are not read."""
MAX_PASSAGES = 20_000
MAX_FACT_CHARS = 5_000_000  # of all facts together: a short cell repeats the long names of its row and column
_MAX_MARK = 100
_KEPT_CHARS = 2_000_000  # of the texts whose citations are kept
_MAX_HEADING = 2 * MAX_FACT
_SHORT = 60  # columns below which a list item is not a sentence by itself; a Chinese character takes two

_OUTSIDE = -1  # what no list item is as little deep as
_BOLD_START = re.compile(r"\s{0,3}\[?(?:\*\*|__)")
_BOLD = re.compile(r"\*\*[^*\n]{1,300}\*\*|__[^_\n]{1,300}__")
_SOURCE_COLUMN = re.compile(
    r"\b(?:sources?|refs?|references?|citations?)\b|来源|出处|参考|引用|文献", re.IGNORECASE
)


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

    `marks` counts the citation marks of the body; `unresolved` are those that lead to no address, as written.
    `complete` unless the report has more of them than are kept.
    """

    references: tuple[Reference, ...]
    passages: tuple[Passage, ...]
    complete: bool = True
    marks: int = 0
    unresolved: tuple[str, ...] = ()

    @property
    def triplets(self) -> tuple[Triplet, ...]:
        """One for each fact and source."""
        return tuple(Triplet(one.fact, index, url) for one in self.passages for index, url in one.sources)


@remembered(_KEPT_CHARS)
def parse(text: str, handed: tuple[Citation, ...] = ()) -> Citations:
    """The citations of the Markdown report `text`.

    `handed` are citations that came separately from the text; they define the labels that the text does not. Lone
    surrogates, which neither a store nor a server takes, become question marks.
    """
    return _parsed(text, handed, all_sentences=True)


@remembered(_KEPT_CHARS)
def cited(text: str, handed: tuple[Citation, ...] = ()) -> Citations:
    """As `parse`, but faster and without the passages that have no source, which count towards no limit."""
    return _parsed(text, handed, all_sentences=False)


def _parsed(text: str, handed: tuple[Citation, ...], all_sentences: bool) -> Citations:
    text = plain(text.encode("utf-8", "replace").decode().translate(MARKS))
    outline = outlined(text)
    references = tuple(islice(references_in(lines(text, outline)), MAX_REFERENCES + 1))
    kept = references[:MAX_REFERENCES]
    sources = Sources(kept, handed, outline.bracketed)
    body = _Body(sources, all_sentences)
    body.read(lines(text, outline))
    return Citations(
        references=kept,
        passages=tuple(body.passages),
        complete=body.complete and len(references) <= MAX_REFERENCES,
        marks=sources.marks,
        unresolved=tuple(sources.unresolved),
    )


class _Open:
    """The passage read last, to which marks that stand alone behind it still belong."""

    def __init__(self, raw: str, fact: str, sources: dict[str, tuple[int, str]]) -> None:
        self.raws = [raw]
        self.fact = fact
        self.sources = sources

    def passage(self) -> Passage:
        return Passage(" ".join(self.raws), self.fact, tuple(self.sources.values()))


class _Titled(msgspec.Struct, frozen=True):
    """A title with a source, which is what the items below it cite: those that are deeper than `depth`."""

    title: str
    sources: dict[str, tuple[int, str]]
    depth: int


class _Body:
    """Reads the body of a report, line by line, into `passages`: of all sentences, or of those that have a source."""

    def __init__(self, sources: Sources, all_sentences: bool) -> None:
        self.passages: list[Passage] = []
        self.complete = True
        self._sources = sources
        self._all_sentences = all_sentences
        # Of this section, after the last passage; empty if all sentences are wanted.
        self._unmarked: deque[Marked] = deque(maxlen=MAX_PASSAGES)
        self._open: _Open | None = None  # the last passage of this section
        self._facts = 0  # how many of them have sources, one for each source
        self._chars = 0  # of all facts
        self._lead = ""  # the current heading
        self._paragraph: list[str] = []
        self._length = 0  # of the paragraph
        self._began = 0
        self._item = False
        self._depth = _OUTSIDE  # of the item that is being read
        self._gap = False  # whether the paragraph is a title behind which a blank line has come
        self._titled: list[_Titled] = []
        self._header: list[str] = []

    def read(self, found: Iterable[Line]) -> None:
        """Reads the lines of a report, until it is found to state more than is kept."""
        before: tuple[Line, int] | None = None
        for number, line in enumerate(found):
            if before is not None:
                self._line(*before, line.kind == "ruler")
            if not self.complete:
                break
            before = line, number
        else:
            if before is not None:
                self._line(*before, False)
            self._flush()
        self._close()

    def _line(self, line: Line, number: int, ruled: bool) -> None:
        """Take one line; `ruled` says that the next one is a ruler."""
        if line.kind == "row" and len(line.text) <= MAX_PIECE:
            self._flush()
            self._row(line.text, number, ruled and not self._header)
            return
        if line.kind != "ruler":
            self._header = []
        if line.kind == "blank" and len(self._paragraph) == 1 and _BOLD_START.match(self._paragraph[0]):
            self._gap = True
            return
        if line.kind in ("prose", "row"):
            if self._gap:
                self._flush()
            if not self._paragraph and not line.raw[:1].isspace():
                self._titled.clear()
            self._began = self._began if self._paragraph else number
            self._paragraph.append(line.text)
            self._length += len(line.text)
            if self._length > MAX_PIECE:
                self._flush()
            return
        if line.kind == "item":
            self._begin_item(line, number)
            return
        self._flush()
        if line.kind == "heading":
            self._close()
            self._titled.clear()
            heading = marked(line.text[:_MAX_HEADING], self._sources.labels)
            self._lead = heading.fact.lstrip("0123456789.、 ")
            self._entitle(heading, number, _OUTSIDE)

    def _begin_item(self, line: Line, number: int) -> None:
        depth = _depth(line.raw)
        title = self._title(self._paragraph[0]) if len(self._paragraph) == 1 and depth > self._depth else None
        if title is None or not self._entitle(title, self._began, self._depth):
            self._flush()
        while self._titled and self._titled[-1].depth >= depth:
            self._titled.pop()
        self._paragraph, self._began, self._item = [line.text], number, True
        self._length, self._depth, self._gap = len(line.text), depth, False

    def _title(self, text: str) -> Marked | None:
        """A line that is nothing but a bold title and its source."""
        if not _BOLD_START.match(text) or len(text) > _MAX_HEADING:
            return None
        rest = marked(_BOLD.sub("", text), self._sources.labels)
        return None if rest.states_something else marked(text, self._sources.labels)

    def _entitle(self, title: Marked, number: int, depth: int) -> bool:
        """Take `title` as that of the items below, if it has a source."""
        if sources := self._sources.of(title.marks, number):
            self._sources.counted(title.marks, number)
            self._close()
            self._titled.append(_Titled(title.title, sources, depth))
        return bool(sources)

    def _flush(self) -> None:
        if self._paragraph:
            for piece in split(_joined(self._paragraph), MAX_PIECE):
                sentences = marked(piece, self._sources.labels).sentences()
                for sentence in sentences:
                    self._sentence(sentence, len(sentences) == 1)
        self._paragraph, self._length, self._item = [], 0, False
        self._depth, self._gap = _OUTSIDE, False

    def _sentence(self, sentence: Marked, alone: bool) -> None:
        if not (self._all_sentences or sentence.marks or self._item):
            self._unmarked.append(sentence)
            return
        sources = self._sources.counted(sentence.marks, self._began)
        if sentence.states_something:
            fact, lead = sentence.fact, self._lead
            if self._item and self._titled:
                sources, lead = sources or self._titled[-1].sources, self._titled[-1].title
            if self._item and alone and lead and _columns(fact) < _SHORT:
                fact = f"{lead}: {fact}"
            self._add(sentence.raw, fact, sources)
            return
        if sources:
            self._open_unmarked()
        if sources and self._open is not None and not (self._item and sentence.links):
            new = {key: source for key, source in sources.items() if key not in self._open.sources}
            self._open.raws.append(sentence.raw)
            self._open.sources |= self._within(new)

    def _open_unmarked(self) -> None:
        """Begin a passage with the last sentence without marks that states something, if there is one."""
        while self._unmarked:
            sentence = self._unmarked.pop()
            if sentence.states_something:
                self._add(sentence.raw, sentence.fact, {})

    def _add(self, raw: str, fact: str, sources: dict[str, tuple[int, str]]) -> None:
        """Begin a passage, if there is room for it."""
        self._close()
        kept = self._within(sources)
        if len(self.passages) >= MAX_PASSAGES or self._chars >= MAX_FACT_CHARS:
            self.complete = False
        if self.complete or kept:
            self._open = _Open(raw, fact, kept)
            self._chars += len(fact)

    def _within(self, sources: dict[str, tuple[int, str]]) -> dict[str, tuple[int, str]]:
        """As many of `sources` as there is room for."""
        if not sources:
            return sources
        room = MAX_FACTS - self._facts
        self.complete = self.complete and len(sources) <= room
        self._facts += min(len(sources), room)
        return dict(islice(sources.items(), room))

    def _close(self) -> None:
        """End the passage read last; it takes no more marks."""
        self._unmarked.clear()
        if self._open is not None:
            if self._all_sentences or self._open.sources:
                self.passages.append(self._open.passage())
            self._open = None

    def _row(self, text: str, number: int, heads: bool) -> None:
        row = marked(text, self._sources.labels)
        raw, cells = row.raw, row.cells()
        if heads:
            self._header = [cell.fact for cell in cells]
        if heads or not row.states_something:
            return
        named = [
            f"{self._header[i]}: {cell.fact}" if i < len(self._header) and self._header[i] else cell.fact
            for i, cell in enumerate(cells)
        ]
        name = next((i for i, cell in enumerate(cells) if cell.states_a_name), 0)
        whole = "; ".join(
            text for cell, text in zip(cells, named, strict=True) if cell.fact and not cell.marks
        )[:MAX_FACT]
        cited = False
        for i, cell in enumerate(cells):
            sources = self._sources.counted(cell.marks, number)
            if not sources:
                continue
            of_row = (
                i == name
                or not cell.fact
                or (i < len(self._header) and _SOURCE_COLUMN.search(self._header[i]))
            )
            fact = (whole or row.fact) if of_row else f"{cells[name].fact}, {named[i]}"[:MAX_FACT]
            self._add(raw, fact, sources)
            cited = True
        if not cited:
            self._add(raw, "; ".join(filter(None, named))[:MAX_FACT], {})


def _joined(paragraph: Sequence[str]) -> str:
    """The lines of a paragraph as one text; a line break that ends a thought stays one."""
    parts: list[str] = []
    for line in paragraph:
        if parts:
            before = parts[-1]
            hard = before.endswith(("  ", "\\")) or before.rstrip().endswith(tuple(".!?。！？：:]】)）"))
            wide = "一" <= before.rstrip()[-1:] <= "鿿" and "一" <= line.lstrip()[:1] <= "鿿"
            parts.append("\n" if hard else "" if wide else " ")
        parts.append(line)
    return "".join(parts)


def _depth(raw: str) -> int:
    """How deep a list item stands: by its indentation, a bullet below a number."""
    indented = unquoted(raw[:200]).expandtabs(4)
    item = indented.lstrip()
    return 2 * (len(indented) - len(item)) + (item[:1] in "-*+•·▪–")


def _columns(text: str) -> int:
    return sum(2 if character > "⺀" else 1 for character in text)
