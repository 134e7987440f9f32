"""What a Markdown report cites: (fact, ref_idx, url) triplets, read from its marks (FACT's extraction step).

Forms: `text 15`, `text[15]`, `text[15†L10][5L23]`, `[title](url)`; beside the published ones bare URLs, `【15】`,
superscripts, footnotes and ranges. A fact is the sentence that carries the mark, without its marks, links shown as
`[title]`; a table cell brings the names of its row and column along, and a short list item its heading. A mark that
stands alone ("(Source: [3])") belongs to the sentence before it. A sentence with two sources is two triplets; a
reference list has none, and neither has a mark without a URL: there is nothing that could be read.

Deterministic, and linear in the text.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec

from adjudge.fetchers.urls import MalformedURL, normalise_url
from adjudge.scoring.contract.case import Citation
from adjudge.scoring.text.blocks import Line, entry, lines, unquoted
from adjudge.scoring.text.citation_marks import Mark, clean_url, label, pieces
from adjudge.scoring.text.sentences import MARKS, Marked, marked

__all__ = ["Citations", "Passage", "Reference", "Triplet", "parse", "references_in", "url_key"]

_SHORT = 60  # columns below which a list item is not a sentence by itself; a Chinese character takes two

_WWW = re.compile(r"(?<![\w/.])www\.[\w-]{1,63}\.[^\s<>\"]{1,2000}", re.IGNORECASE)
_SOURCE_COLUMN = re.compile(
    r"\b(?:sources?|refs?|references?|citations?)\b|来源|出处|参考|引用|文献", re.IGNORECASE
)


class Reference(msgspec.Struct, frozen=True):
    """An entry of a reference list. `index` is its number (its place, if the label is a word), `line` where it stands.

    `url` is "" for an entry that gives none.
    """

    label: str
    index: int
    title: str
    url: str
    line: int


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
    """A report as parsed: the entries of its reference lists, and the sentences of its body."""

    references: tuple[Reference, ...]
    passages: tuple[Passage, ...]

    @property
    def triplets(self) -> tuple[Triplet, ...]:
        """One for each fact and source."""
        return tuple(Triplet(one.fact, index, url) for one in self.passages for index, url in one.sources)


@lru_cache(maxsize=64)
def parse(text: str, handed: tuple[Citation, ...] = ()) -> Citations:
    """The citations of the Markdown report `text`.

    `handed` are citations that came separately from the text; they define the labels that the text does not. Lone
    surrogates, which neither a store nor a server takes, become question marks.
    """
    found = list(lines(text.encode("utf-8", "replace").decode().translate(MARKS)))
    references = tuple(references_in(found))
    body = _Body(_Sources(references, handed))
    body.read(found)
    return Citations(references, tuple(body.passages))


def url_key(url: str) -> str:
    """What URLs are grouped by: the normal form, or a malformed URL as it stands."""
    cleaned = clean_url(url)
    try:
        return normalise_url(cleaned)
    except MalformedURL:
        return cleaned


def references_in(found: Sequence[Line]) -> Iterator[Reference]:
    """The entries of all reference lists among a report's lines. A URL on the line below its entry belongs to it."""
    place = 0
    pending: Reference | None = None
    for number, line in enumerate(found):
        if line.kind != "reference" or line.level:
            place = 0 if line.kind == "heading" or line.level else place
            continue
        raw = unquoted(line.raw)
        item = entry(raw)
        title, url = _address(item.rest if item else raw)
        if pending and (item is None or not item.label) and url:
            yield msgspec.structs.replace(pending, url=url)
            pending = None
        elif item and (item.label or url):
            if pending:
                yield pending
            place += 1
            name = label(item.label or str(place))
            made = Reference(name, int(name) if name.isdecimal() else place, title, url, number)
            pending = None if url else made
            if url:
                yield made
    if pending:
        yield pending


def _address(text: str) -> tuple[str, str]:
    """Title and URL of a reference."""
    cut = list(pieces(text, ()))
    url = next((piece.url for piece in cut if isinstance(piece, Mark) and piece.url), "")
    title = "".join(piece if isinstance(piece, str) else piece.title for piece in cut)
    www = None if url else _WWW.search(text)
    if www:
        url = f"https://{clean_url(www[0])}"
    return title.strip(" \t*_.:：,|-–—()[]<>"), url


class _Sources:
    """What a mark on a given line points to. Lists may restart their numbers: the next definition below counts."""

    def __init__(self, references: Sequence[Reference], handed: Sequence[Citation]) -> None:
        self._defined: defaultdict[str, list[Reference]] = defaultdict(list)
        self._listed: dict[str, int] = {}
        for reference in references:
            if reference.url:
                self._defined[reference.label].append(reference)
                self._listed.setdefault(url_key(reference.url), reference.index)
        for place, citation in enumerate(handed, 1):
            name = label(citation.marker.strip("[]【】()^ ") or str(place))
            if name not in self._defined:
                index = int(name) if name.isdecimal() else place
                self._defined[name].append(Reference(name, index, citation.title, citation.url, 0))
        self.known = frozenset(self._defined)

    def of(self, marks: Sequence[Mark], line: int) -> Iterator[tuple[int, str]]:
        """(ref_idx, url) of all marks, each URL once."""
        seen: set[str] = set()
        for mark in marks:
            for index, url in self._resolved(mark, line):
                key = url_key(url)
                if key not in seen:
                    seen.add(key)
                    yield index, url

    def _resolved(self, mark: Mark, line: int) -> Iterator[tuple[int, str]]:
        if mark.url:
            numbered = mark.labels and mark.labels[0].isdecimal()
            yield int(mark.labels[0]) if numbered else self._listed.get(url_key(mark.url), 0), mark.url
            return
        for name in mark.labels:
            defined = self._defined.get(name)
            if defined:
                below = bisect_left(defined, line, key=lambda reference: reference.line)
                reference = defined[min(below, len(defined) - 1)]
                yield reference.index, reference.url


class _Body:
    """Reads the body of a report, line by line, into `passages`."""

    def __init__(self, sources: _Sources) -> None:
        self.passages: list[Passage] = []
        self._sources = sources
        self._section = 0  # how many passages stood before the current heading
        self._lead = ""  # the current heading
        self._paragraph: list[str] = []
        self._began = 0
        self._item = False
        self._header: list[str] = []

    def read(self, found: Sequence[Line]) -> None:
        """Reads all lines of a report."""
        for number, line in enumerate(found):
            if line.kind == "row":
                self._flush()
                heads = number + 1 < len(found) and found[number + 1].kind == "ruler" and not self._header
                self._row(line.text, number, heads)
                continue
            if line.kind != "ruler":
                self._header = []
            if line.kind == "prose":
                self._began = self._began if self._paragraph else number
                self._paragraph.append(line.text)
                continue
            self._flush()
            if line.kind == "heading":
                self._section = len(self.passages)
                self._lead = marked(line.text, self._sources.known).fact.lstrip("0123456789.、 ")
            elif line.kind == "item":
                self._paragraph, self._began, self._item = [line.text], number, True
        self._flush()

    def _flush(self) -> None:
        if self._paragraph:
            sentences = marked(_joined(self._paragraph), self._sources.known).sentences()
            for sentence in sentences:
                self._sentence(sentence, len(sentences) == 1)
        self._paragraph, self._item = [], False

    def _sentence(self, sentence: Marked, alone: bool) -> None:
        sources = tuple(self._sources.of(sentence.marks, self._began))
        if sentence.states_something:
            fact = sentence.fact
            if self._item and alone and self._lead and _columns(fact) < _SHORT:
                fact = f"{self._lead}: {fact}"
            self.passages.append(Passage(sentence.raw, fact, sources))
        elif sources and len(self.passages) > self._section and not (self._item and sentence.links):
            last = self.passages[-1]
            seen = {url_key(url) for _, url in last.sources}
            new = tuple(source for source in sources if url_key(source[1]) not in seen)
            self.passages[-1] = Passage(f"{last.raw} {sentence.raw}", last.fact, last.sources + new)

    def _row(self, text: str, number: int, heads: bool) -> None:
        row = marked(text, self._sources.known)
        cells = row.cells()
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
        )
        before = len(self.passages)
        for i, cell in enumerate(cells):
            sources = tuple(self._sources.of(cell.marks, number))
            if not sources:
                continue
            of_row = (
                i == name
                or not cell.fact
                or (i < len(self._header) and _SOURCE_COLUMN.search(self._header[i]))
            )
            fact = (whole or row.fact) if of_row else f"{cells[name].fact}, {named[i]}"
            self.passages.append(Passage(row.raw, fact, sources))
        if len(self.passages) == before:
            self.passages.append(Passage(row.raw, "; ".join(filter(None, named))))


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


def _columns(text: str) -> int:
    return sum(2 if character > "⺀" else 1 for character in text)
