"""A report's reference lists, and the lines that name the sources of what stands above them.

A list is known by its structure: a block of entries that lead to addresses, which marks elsewhere point at, or whose
labels stand in brackets. Its title, in whatever language, breaks ties. A line that begins with numbered links and has
nothing but an address below it is an entry wherever it stands.

Time is linear in the text, and a line is never compared with more than the five below it.
"""

import re
import sys
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Set
from functools import lru_cache
from itertools import islice, takewhile
from typing import NamedTuple

import msgspec

from adjudge.judges.remembering import remembered
from adjudge.scoring.text.citation_marks import SMALL, label
from adjudge.scoring.text.scan import (
    BARE_ADDRESS,
    HEADING,
    NOWHERE,
    WITH_PARENTHESES,
    Entry,
    Line,
    address_in,
    entry,
    keyed,
    leads_to_address,
    numbered_links,
    scan,
    unquoted,
)
from adjudge.scoring.text.sentences import names_sources
from adjudge.scoring.text.titles import LIKELY, MAX_TITLE, SURE, strength

_KEPT_CHARS = 400_000  # of the reports whose lines are kept
_LABEL_LEVEL = 7  # of a line such as "Sources:" or "**Sources**", which opens a list without being a heading

_LOOK_AHEAD = 5
_BOLD = frozenset("*_")  # what such a line begins with
_BOLD_LINE = re.compile(r"\s{0,3}(?:\*\*|__)([^*_]{1,60})(?:\*\*|__)\s*[:：]?\s*")


class Outline(msgspec.Struct, frozen=True):
    """Which lines of a report are reference lists or name sources, and how its statements are marked.

    Spans are first and last lines, in order. `bracketed` if marks stand in square brackets, `linked` if list items are
    links whose words are the statements. `keys` are labels of entries that are words, known by the marks that name
    them; `words` stand in front of the numbers in marks ("[Page 3]").
    """

    lists: tuple[tuple[int, int], ...] = ()
    sources: tuple[tuple[int, int], ...] = ()
    bracketed: bool = False
    linked: bool = False
    keys: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()


class ReportLines:
    """The lines of a report and its `outline`, to be read several times: what each line is, is looked at once.

    Of a report with many lines or very short ones, only one byte per line is kept: its kind.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._kinds: bytes | None = None  # of each line its number in `_NAMED_KINDS`
        most = min(_MAX_KEPT, len(text) // _KEPT_LENGTH)
        found = list(islice(_read(text), most + 1))
        few = len(found) <= most
        self.outline = _Outliner().outline(found if few else _read(text))
        self._kept = list(_classified(iter(found), self.outline)) if few else None

    def __iter__(self) -> Iterator[Line]:
        if self._kept is not None:
            return iter(self._kept)
        return self._looked_at() if self._kinds is None else self._known(self._kinds)

    def _looked_at(self) -> Iterator[Line]:
        kinds = bytearray()
        for line in _classified(_read(self._text), self.outline):
            kinds.append(_NAMED_KINDS.get(line.kind, 0))
            yield line
        self._kinds = bytes(kinds)

    def _known(self, kinds: bytes) -> Iterator[Line]:
        for line, named in zip(_read(self._text), kinds, strict=True):
            if named == _REFERENCE:
                yield Line("reference", *line[1:])
            else:
                yield Line("source", *line[1:]) if named else line


@remembered(_KEPT_CHARS)
def report_lines(text: str) -> ReportLines:
    """The lines of the report `text`, which several readers share."""
    return ReportLines(text)


_MAX_KEPT = 16_000
_KEPT_LENGTH = 16  # characters a line, on average: a kept line costs about 200 bytes
_REFERENCE = 1
_NAMED_KINDS = {"reference": _REFERENCE, "source": 2}


def lines(text: str) -> Iterator[Line]:
    """The lines of `text`, in order. Linear in its length."""
    return iter(report_lines(text))


def _classified(unnamed: Iterator[Line], outline: Outline) -> Iterator[Line]:
    """The lines of a report of this `outline`; six are held at a time."""
    lists = _ReferenceLists()
    found = _Lines(unnamed)
    held_spans, source_spans = _Spans(outline.lists), _Spans(outline.sources)
    for number, line in enumerate(found):
        if line.kind == "code":
            yield line
        elif source_spans.hold(number):
            lists.leave()
            yield Line("source", *line[1:]) if line.kind != "blank" else line
        else:
            held = lists.holds(line, found) or held_spans.hold(number)
            yield Line("reference", *line[1:]) if held else line


class _Lines:
    """Lines one after the other, with those below the last one, which are looked at only where they matter."""

    def __init__(self, found: Iterator[Line]) -> None:
        self._found = found
        self._ahead = deque[Line]()

    def __iter__(self) -> Iterator[Line]:
        found, ahead = self._found, self._ahead
        while True:
            if ahead:
                yield ahead.popleft()
            elif (line := next(found, None)) is not None:
                yield line
            else:
                return

    def below(self, count: int) -> Iterator[Line]:
        """The next lines, at most `count`."""
        while len(self._ahead) < count and (line := next(self._found, None)) is not None:
            self._ahead.append(line)
        return islice(self._ahead, count)


class _Spans:
    """First and last lines of spans in order; asked for one line after the other."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._spans = iter(spans)
        self._start, self._end = next(self._spans, NOWHERE)

    def hold(self, number: int) -> bool:
        """Whether a span holds this line."""
        while number > self._end:
            self._start, self._end = next(self._spans, NOWHERE)
        return self._start <= number


class _Block:
    """Labelled entries that follow each other."""

    __slots__ = (
        "alone",
        "bare",
        "end",
        "labels",
        "last",
        "led",
        "marked",
        "row",
        "square",
        "start",
        "titled",
        "waits",
    )

    def __init__(self, start: int, square: bool, row: bool, titled: int, alone: bool) -> None:
        self.start = self.end = self.last = start
        self.square = square  # its labels stand in square brackets
        self.row = row
        self.titled = titled  # how surely the line above names a list
        self.alone = alone  # nothing but a title stands above it in its section
        self.labels: list[str] = []
        self.led = 0  # entries that lead to an address
        self.marked = 0  # entries that hold marks of their own
        self.bare = True  # nothing stands in it but entries, each with an address behind its title
        self.waits = False  # whether the last entry has not led to an address yet

    @property
    def is_named(self) -> bool:
        """Whether it is a list by its title and its numbers, [1], [2], [3], wherever its entries lead."""
        return self.square and self.titled > 0 and self.counts(_FEWEST_NAMED)

    def counts(self, fewest: int) -> bool:
        """Whether its labels count from 1 to the number of its entries, which are at least `fewest`."""
        count = len(self.labels)
        return count >= fewest and self.labels == list(map(str, range(1, count + 1)))

    def leads(self, line: int) -> None:
        self.led, self.waits, self.end = self.led + 1, False, line


_CHANCE, _MANY = (
    2,
    5,
)  # labels in brackets that may stand there by chance, and how many times over others do not
_FEWEST_NAMED = 3  # entries of a list without addresses
_FEWEST_UNTITLED = 10  # entries of a list with text above and no title
_MAX_BEFORE = 60  # characters of an entry in front of its address, where something stands behind that


class _Key(NamedTuple):
    """A line that is an entry if the report's marks name one of `labels`; it ends with the address that it leads to."""

    start: int
    end: int
    labels: tuple[str, ...]


class _Word:
    """A word in front of numbers in marks; `square` if these stand in square brackets."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.numbers = set[str]()
        self.square = False


class _Named:
    """A line such as "Sources:" with addresses below it."""

    def __init__(self, start: int, tight: bool, apart: bool, sure: bool) -> None:
        self.start = self.end = start
        self.tight = tight  # it follows the text without a blank line
        self.apart = apart  # a ruler stands between it and the text
        self.sure = sure  # its words name nothing else
        self.followed = False  # by more text in its section
        self.lines = 0  # with addresses

    @property
    def is_list(self) -> bool:
        """Whether it names so many that they are the report's sources, and not those of what stands beside it."""
        return self.lines > _MOST_SOURCES


_POINTER = re.compile(
    r"[\[【［〔]\^?([^\[\]【】［］〔〕\n]{1,80})[\]】］〕](?![(:：]|\\?\]\((?!#))"  # none that is a link's words
)
_SQUARE_SIGNS = "[【［〔"
_MARK_BEHIND = re.compile(
    r"[^\s\[\]] ?\[\\?\[?\^?\d{1,4}\\?\]?\]\((?!#)"
)  # a numbered link behind what it is the mark of
_MAX_WORK = 250  # characters of a work in front of its address
_NUMBERED_LINK = re.compile(r"\[\\?\[\^?(\d{1,4})\\?\]\]\((?!#)")
_PARTED = re.compile(r"\s{0,3}(?:[,;，；、|&–—-]|(?<=\s)(?:and|und|et|y|和|及)(?=\s))\s{0,3}")
_BARE_POINTER = re.compile(
    r"(?=[\^\d])(?<=[.!?。！？%)）”\"(（ ,，、])\^?(\d{1,3})(?=\s|$|[.,;，、。；)）<]|[一-鿿A-Z])"
)
_RAISED_POINTER = re.compile(
    r"(?=[<¹²³⁴-⁹①-⑳㉑-㉟])(?:<sup>\s?\^?(\d{1,3})(?=[\s,;<])|([¹²³⁴-⁹][⁰¹²³⁴-⁹]{0,2})|([①-⑳㉑-㉟]))"
)
_MAY_POINT = re.compile(r"[\[【［〔〖(（^\d<¹²³⁴-⁹①-⑳㉑-㉟]")  # what a mark of any form has
_MAX_POINTERS = 20_000
_ADDRESS_STARTS = re.compile(r"https?://[^\s<>()\[\]\"#?]{1,300}", re.IGNORECASE)
_MOST_SOURCES = 12  # lines below a name that are the sources of a section
# A word in front of numbers, as marks have it: "[Page 3]", "(Sources: 1, 2)".
_WORDED_POINTER = re.compile(
    r"[\[【［〔〖(（](?<!!.)(?<!!\[\].)\s?([^\W\d_]{1,20}|#|№)[.:：]{0,2}[ _-]?"
    r"(\d{1,4}(?:\s?(?:[,;，；、&]|and|und|et|y|和|及)\s?\d{1,4}){0,20})\s?[\]】］〕〗)）]"
)
_PARTED_KEYS = re.compile(r"[,;，；、] ?")
_KEY = re.compile(r"(?=.*\d)(?=.*[^\W\d_]).+")  # a label that is no number, and no word
_KEY_POINTER = re.compile(
    r"[(（]([^\s()（）,;，；、]{1,40}+(?:[,;，；、] ?[^\s()（）,;，；、]{1,40}+){0,20})[)）]"
)


_LINKS = re.compile(
    rf"(?:\[[^\[\]\n]{{1,1000}}+\]\((?:https?://|www\.){WITH_PARENTHESES}\)[\s,;|·.。]{{0,8}}+){{1,20}}",
    re.IGNORECASE,
)


class _LinkedItems:
    """Tells sentences that are links from lists of links.

    Both are items that are nothing but a link. They are sentences if whole chapters that do not name sources consist of
    them, more than one of these or one with plain sentences among them, and less is cited in any other way.
    """

    def __init__(self) -> None:
        self._chapters = 0
        self._mixed = False
        self._items = self._others = 0  # of the report: items that are links, and other lines with an address
        self._linked = self._plain = 0  # items of the chapter
        self._pure = True  # whether nothing else stands in the chapter
        self._indent = sys.maxsize  # of the last plain item

    def begin(self, title: str) -> None:
        """Begin a chapter."""
        self.end()
        self._linked = self._plain = 0
        self._indent = sys.maxsize
        self._pure = not strength(title)

    def read(self, line: Line, addressed: bool) -> None:
        """Read a line that is neither blank nor a heading, and whether it is `addressed`: holds an address."""
        bold = (
            _BOLD_LINE.fullmatch(line.text)
            if line.kind == "prose" and line.text.lstrip()[:1] in _BOLD
            else None
        )
        if bold:
            self.begin(bold[1])
        elif line.kind == "item" and "](" in line.text and _LINKS.fullmatch(line.text.strip()):
            self._linked += 1
            self._items += 1
            self._pure = self._pure and _indent(line.raw) <= self._indent  # else a source of the item above
        elif addressed:
            self._others += 1
            self._pure = False
        elif line.kind == "item":
            self._plain += 1
            self._indent = _indent(line.raw)
        else:
            self._pure = False

    def end(self) -> None:
        """End the chapter."""
        if self._pure and self._linked:
            self._chapters += 1
            self._mixed = self._mixed or self._plain > 0

    @property
    def are_sentences(self) -> bool:
        """Whether the report's items that are links state what their words say, the last chapter ended."""
        return (self._chapters > 1 or self._mixed) and self._items > self._others


def _indent(raw: str) -> int:
    text = unquoted(raw[:200]).expandtabs(4)
    return len(text) - len(text.lstrip())


class _Outliner:
    """Reads the lines of a report once."""

    def __init__(self) -> None:
        self._linked = _LinkedItems()
        self._last: int | None = None  # a line that names all sources of the report, if nothing follows
        self._paragraphs = 0
        self._addressed = False  # whether another line has an address
        self._sourced = False  # whether another line names sources
        self._cited: set[str] = set()  # the addresses of other lines
        self._listing = False  # whether the heading above names a list
        self._blocks: list[_Block] = []
        self._named: list[_Named] = []
        self._square: set[str] = set()  # labels that marks in brackets name
        self._bare: set[str] = set()  # numbers that may be marks
        self._raised: set[str] = set()  # numbers that are marks without brackets
        self._words: set[str] = set()  # numbers that are the words of links
        self._entries: set[str] = set()  # labels of entries that are known by themselves
        self._worded: dict[str, _Word] = {}
        self._round: set[str] = set()  # labels that marks in parentheses name
        self._keyed: list[_Key] = []
        self._waiting: tuple[int, str] | None = None  # the line above, whose address may stand here
        self._inline = 0  # lines of text that hold an address
        self._block: _Block | None = None
        self._source: _Named | None = None
        self._titled, self._title_at, self._alone = 0, -1, True
        self._gap = True
        self._ruled = False  # whether a ruler has come since the last text
        self._dense = False  # whether the line above is text

    def outline(self, found: Iterable[Line]) -> Outline:
        for number, line in enumerate(found):
            self._read(number, line)
        self._end()
        keys, spans = self._named_by_marks()
        chosen = list(self._chosen())
        long, others = list[_Named](), list[_Named]()
        for one in self._named:
            (long if one.is_list or (one.apart and len(self._named) == 1) else others).append(one)
        lists = _merged(
            [*((block.start, block.end) for block in chosen), *spans, *((one.start, one.end) for one in long)]
        )
        cites = bool(self._inline or self._square or self._raised)
        styles = any(one.tight or one.followed for one in self._named) or (len(others) > 1 and not cites)
        sources = tuple((one.start, one.end) for one in others if styles)
        listed = self._entries.union(keys, *(block.labels for block in chosen))
        words = self._marking_words(listed)
        bracketed = self._bracketed(listed) or any(word.square for word in words)
        if self._last is not None and not self._square:
            lists = (*lists, (self._last, self._last))
        self._linked.end()
        return Outline(
            lists,
            sources,
            bracketed,
            not bracketed and self._linked.are_sentences,
            keys,
            frozenset(word.name for word in words),
        )

    def _bracketed(self, listed: Set[str]) -> bool:
        """Whether marks stand in square brackets; one or two of many may be an index or an interval."""
        square = (self._square | self._words) & listed
        return len(square) > _CHANCE or (bool(square) and len(self._bare & listed) < _MANY * len(square))

    def _named_by_marks(self) -> tuple[frozenset[str], list[tuple[int, int]]]:
        """The labels of entries that are words, and where these stand."""
        pointed = self._square | self._round
        found, spans = set[str](), list[tuple[int, int]]()
        for line in self._keyed:
            name = next((one for one in line.labels if one in pointed), None)
            if name is not None:
                found.add(name)
                spans.append((line.start, line.end))
        return frozenset(found), spans

    def _marking_words(self, listed: Set[str]) -> list[_Word]:
        """The words that stand in front of numbers in marks, where these have no other form.

        The one that names most entries is such a word, and its plural; none that numbers things which no list has.
        """
        numbers = {one for one in listed if one.isdecimal()}
        if not self._square.isdisjoint(numbers):
            return []
        found = [word for word in self._worded.values() if word.numbers <= numbers]
        first = max(found, key=lambda word: len(word.numbers), default=None)
        if first is None or 2 * len(first.numbers) < len(numbers):
            return []
        stem = first.name.rstrip("s.")
        return [word for word in found if word.name.startswith(stem) and len(word.name) <= len(stem) + 2]

    def _read(self, number: int, line: Line) -> None:
        if line.kind in ("blank", "ruler") and not (line.kind == "ruler" and "|" in line.raw):
            self._gap = True
            self._dense = False
            self._ruled = self._ruled or line.kind == "ruler"
            if line.kind == "ruler" and not self._titled:
                self._end()
                self._title_at, self._alone = -1, True
            return
        if line.kind in ("code", "source", "reference"):
            self._end()
            self._alone = self._dense = False
            if line.kind == "reference":
                self._addressed = True
                self._entries.update(map(label, numbered_links(unquoted(line.raw)[:_MAX_LINE])[0]))
        elif line.kind == "heading":
            self._end()
            self._source = None
            self._titled, self._title_at, self._alone = strength(line.text), number, True
            self._dense, self._listing = False, self._titled >= LIKELY
            if address_in(line.text) is not None:
                self._addressed, self._sourced = True, self._sourced or names_sources(line.text)
            self._linked.begin(line.text)
        elif line.kind != "ruler":
            self._text(number, line)
        self._gap = self._ruled = False

    def _text(self, number: int, line: Line) -> None:
        first = address_in(line.text)
        self._linked.read(line, first is not None)
        self._whole(number, line, first)
        text = unquoted(line.raw)[:_MAX_LINE]
        telling = line.kind != "prose" or _TELLING.search(text) is not None
        address = (first if text == line.text else address_in(text)) if telling else None
        if telling:
            self._key(number, line, text, address)
        else:
            self._waiting = None
        if self._below_name(number, text):
            return
        found = entry(text) if telling else None
        if found and found.label and not _statement(found, line):
            self._entry(number, line, found)
        elif self._block and address and address_alone(text):
            if self._block.waits:
                self._block.leads(number)
            self._block.end = number
        elif self._block and self._block.waits and (not self._gap or text[:1].isspace()):
            if address:
                self._block.leads(number)
        elif self._block and not self._gap and text[:1].isspace():
            self._block.end, self._block.bare = number, False
        else:
            self._end()
            if telling:
                self._point(text)
            self._inline += address is not None
            name = _name(line)
            if name:
                self._titled, self._title_at, self._alone = strength(name), number, True
                likely = self._titled >= LIKELY
                sure = self._titled == SURE
                self._source = _Named(number, self._dense, self._ruled, sure) if likely else None
            else:
                self._titled, self._alone = 0, False
                self._dense = True
            return
        self._dense = True

    def _key(self, number: int, line: Line, text: str, address: re.Match[str] | None) -> None:
        """Keep the line if a word that it begins with may be a label, and it or the next leads to an address."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and address_alone(text) and (labels := _words_of(keyed(waiting[1]))):
            self._keyed.append(_Key(waiting[0], number, labels))
            return
        if len(self._keyed) >= _MAX_POINTERS:
            return
        row = line.kind == "row"
        if address is None:
            self._waiting = None if row else (number, text)
        elif not row or _row_leads(text):
            near = row or address.start() < _MAX_BEFORE
            if labels := _words_of(one for one in keyed(text) if near or leads_to_address(one.rest)):
                self._keyed.append(_Key(number, number, labels))

    def _whole(self, number: int, line: Line, first: re.Match[str] | None) -> None:
        """See whether a line on its own, with its `first` address, names all sources of the report.

        So it does if nothing else cites, and as the only line of sources if it repeats what is cited above.
        """
        if self._listing:
            return
        names = line.kind in ("prose", "item") and names_sources(line.text)
        several = names and first is not None and address_in(line.text, first.end() + 1) is not None
        alone = line.kind == "prose" and not self._dense and self._paragraphs > 1
        named = set(_ADDRESS_STARTS.findall(line.raw)) if first is not None else set[str]()
        repeats = not self._sourced and 0 < len(named) <= 2 * len(named & self._cited)
        self._last = number if alone and several and (repeats or not self._addressed) else None
        if len(self._cited) < _MAX_POINTERS:
            self._cited |= named
        self._paragraphs += line.kind == "prose" and not self._dense
        self._addressed = self._addressed or first is not None
        self._sourced = self._sourced or names

    def _below_name(self, number: int, text: str) -> bool:
        """Whether `text` is an address below a line that names sources."""
        source = self._source
        if source is None:
            return False
        found = entry(text)
        address = address_in(text) or BARE_ADDRESS.search(text)
        if (found is None or not found.label) and address:
            rest = found.rest if found else text
            stated = _states(text, sure=source.sure)
            if not stated and (found or address_alone(rest) or rest.lstrip().startswith("[")):
                source.end = number
                source.lines += 1
                return True
        if source.end > source.start:
            source.followed = found is None or not found.label
            self._named.append(source)
            self._alone = False
        self._source = None
        return False

    def _entry(self, number: int, line: Line, found: Entry) -> None:
        square = line.raw.lstrip(" \t>*+•-\\")[:1] in ("[", "【", "［", "〔")
        row = line.kind == "row" and line.text.startswith("|")
        block = self._block
        if block is None or (block.square, block.row) != (square, row):
            self._end()
            block = self._block = _Block(number, square, row, self._titled, self._alone)
            if self._alone and self._title_at >= 0:
                block.start = self._title_at
        rest = found.rest
        block.labels.append(label(found.label))
        block.last = number
        while (
            block.square
            and len(block.labels) < _MAX_ENTRIES
            and (more := entry(rest))
            and rest.startswith("[")
            and more.label
        ):
            block.labels.append(label(more.label))
            rest = more.rest
        address = address_in(rest) or (BARE_ADDRESS.search(rest) if "/" in rest else None)
        leads = address is not None and leads_to_address(rest)
        block.waits = not address
        if address and (leads or not square or len(rest) - address.start() < 200):
            block.leads(number)
        block.bare = block.bare and (not address or leads)
        if not address:
            block.marked += next(self._points(rest), None) is not None
            self._point(rest)
        self._titled, self._alone = 0, False

    def _end(self) -> None:
        if self._source and self._source.end > self._source.start:
            self._named.append(self._source)
            self._source = None
        if self._block:
            self._blocks.append(self._block)
            self._block = None

    def _points(self, text: str) -> Iterator[str]:
        for found in _POINTER.finditer(text):
            if found[1].isdecimal():
                yield label(found[1])
            elif not _WORDED_POINTER.fullmatch(found[0]):
                yield from (label(part.strip("^ \\")) for part in _PARTED.split(found[1]))
                yield from (label(part.strip("^ \\")) for part in _PARTED_KEYS.split(found[1]))

    def _point(self, text: str) -> None:
        """Keep the labels that `text` may point at."""
        if len(self._square) + len(self._bare) + len(self._raised) + len(self._words) > _MAX_POINTERS:
            return
        if not _MAY_POINT.search(text):
            return
        if any(sign in text for sign in _SQUARE_SIGNS):
            self._square.update(self._points(text))
            for found in _POINTER.finditer(text):
                self._square.add(label(found[1].strip("^ \\")))
        if "](" in text:
            self._words.update(label(found[1]) for found in _NUMBERED_LINK.finditer(text))
        self._bare.update(label(found[1]) for found in _BARE_POINTER.finditer(text))
        for found in _RAISED_POINTER.finditer(text) if "<" in text or not text.isascii() else ():
            self._raised.add(label(_plain(found[1] or found[2] or found[3])))
        for found in _WORDED_POINTER.finditer(text):
            name = found[1].casefold()
            word = self._worded.setdefault(name, _Word(name))
            word.numbers.update(map(label, _PARTED.split(found[2])))
            word.square = word.square or found[0][0] not in "(（"
        for found in _KEY_POINTER.finditer(text):
            names = map(label, _PARTED_KEYS.split(found[1]))
            self._round.update(name for name in names if _KEY.fullmatch(name))

    def _chosen(self) -> Iterator[_Block]:
        """The blocks that are reference lists.

        A number in the text may be anything. One without brackets points at a list without a title only where no text
        has addresses of its own, and nothing but the addresses stands behind the titles of the list.
        """
        titled: set[str] = set()
        for block in self._blocks:
            if block.titled >= LIKELY and block.led:
                titled.update(block.labels)
        sure = self._square.union(self._raised, *(word.numbers for word in self._worded.values()))
        pointed = sure | self._bare
        for block in self._blocks:
            names = set(block.labels)
            if 2 * block.led <= len(block.labels) - (len(block.labels) > 1) and not block.is_named:
                continue
            if block.square:
                chosen = True
            elif block.titled >= LIKELY:
                chosen = not block.row or not names.isdisjoint(pointed)
            else:
                used = names & (self._square if block.row else pointed)
                chosen = 3 * len(used) >= len(names) and names.isdisjoint(titled) and not block.marked
                plain = 3 * len(names & sure) < len(names)
                long = not self._inline and block.counts(_FEWEST_UNTITLED)
                chosen = chosen and (block.alone or block.row or (block.bare and (long or not plain)))
                if plain:
                    chosen = chosen and block.bare and self._inline < block.led
            if chosen:
                block.end = max(block.end, block.last if block.is_named else block.end)
                yield block


def _merged(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """`spans` in order, each line in one of them."""
    found = list[tuple[int, int]]()
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return tuple(found)


def _read(text: str) -> Iterator[Line]:
    return _with_entries(scan(text)) if "](" in text else scan(text)


def _with_entries(found: Iterable[Line]) -> Iterator[Line]:
    """The lines, those as references that begin with numbered links and have only an address below, with that.

    A blank line may stand between the two.
    """
    waits = 0  # lines to the address of the entry that has begun
    each = _Lines(iter(found))
    for line in each:
        if not waits and _begins_entry(line):
            below, further, *_ = (*each.below(2), _NOTHING, _NOTHING)
            waits = 1 if _is_address(below) else 2 if below.kind == "blank" and _is_address(further) else 0
            yield Line("reference", *line[1:]) if waits else line
            continue
        yield Line("reference", *line[1:]) if waits and line.kind != "blank" else line
        waits -= waits > 0


_NOTHING = Line("blank", "", "")


def _is_address(line: Line) -> bool:
    return _BARE_ALONE.fullmatch(line.text) is not None


def _begins_entry(line: Line) -> bool:
    if line.kind not in ("prose", "item") or "](" not in line.raw:
        return False
    names, title = numbered_links(unquoted(line.raw)[:_MAX_LINE])
    return bool(names) and bool(title.strip())


_MAX_LINE = 20_000
# What no entry, label, mark or address is without.
_TELLING = re.compile(r"[^\w\s,;'’\"“”!?.]|[\d_¹²³⁰-⁹①-⑳㉑-㉟]|\.(?=[\s\[<h])|[wW]{3}\.")
_MAX_ENTRIES = 1_000_000


def _plain(number: str) -> str:
    return str(int(unicodedata.numeric(number))) if len(number) == 1 else number.translate(SMALL)


def _words_of(found: Iterable[Entry]) -> tuple[str, ...]:
    """The labels of entries that are no numbers."""
    return tuple(name for name in (label(one.label) for one in found) if not name.isdecimal())


def _statement(found: Entry, line: Line) -> bool:
    """Whether a labelled line is a task or a note rather than an entry."""
    return found.label in ("x", "X", " ") and line.kind == "item"


_MARKED = re.compile(r"[:：][\s*_]{0,4}[\[【(（\d]")  # a line of sources rather than their title
_MAX_NAME_ALONE = 40  # characters of a name without a colon
_ENDS = (".", "。", "]", "】", ")", "）")  # of a statement, and of its marks


def _name(line: Line) -> str:
    """The name of a list on a line of its own that is no heading: "Sources:", "**Sources**"; "" for any other line."""
    return _named_by(line.text) if line.kind == "prose" and len(line.text) <= MAX_TITLE else ""


@lru_cache(maxsize=1_000)
def _named_by(text: str) -> str:
    """`_name` of a short line of prose."""
    bold = _BOLD_LINE.fullmatch(text) if text.lstrip()[:1] in _BOLD else None
    text = bold[1] if bold else text.strip()
    if not bold and len(text) >= _MAX_NAME_ALONE and not text.endswith((":", "：")):
        return ""
    sure = strength(text)
    if not sure or _MARKED.search(text):
        return ""
    alone = len(text) < _MAX_NAME_ALONE and (sure >= LIKELY or not text.endswith(_ENDS))
    return text if (bold or text.endswith((":", "：")) or alone) else ""


def address_alone(text: str) -> bool:
    """Whether nothing but addresses stands on a line, or a link whose words are its title."""
    return _ADDRESSES.fullmatch(text.strip()) is not None


def _row_leads(text: str) -> bool:
    """Whether a row has an address in one cell only, which that ends with; others cite in their cells."""
    cells = [cell for cell in text.split("|") if address_in(cell)]
    return len(cells) == 1 and leads_to_address(cells[0])


_ADDRESSES = re.compile(
    r"(?:[-*+•][ \t]{1,8})?(?:(?:<?(?:https?://|www\.|doi:)[^\s<>]{1,8192}+>?|\[[^\[\]\n]{0,1000}+\]\([^\s()]{1,8192}+\))"
    r"[\s,;|·]{0,8}+){1,20}",
    re.IGNORECASE,
)


_BARE_ALONE = re.compile(r"\s{0,12}<?(?:https?://|www\.)[^\s<>]{1,8192}+>?\\?\s{0,8}", re.IGNORECASE)


class _ReferenceLists:
    """The state of a line-by-line reader with respect to reference lists."""

    def __init__(self) -> None:
        self._level = 0  # of the heading whose list is being read; 0 outside
        self._entries = False  # whether the list has shown a labelled or bulleted entry
        self._gap = False  # whether a blank line came last

    def holds(self, line: Line, found: _Lines) -> bool:
        """Whether `line`, the last of those `found`, belongs to a reference list."""
        title = self._title(line) if line.kind in ("heading", "prose") else None
        if title is None:
            return self._inside(line) if self._level else _definition(line)
        if self._level and title[1] > self._level:
            return True
        sure = strength(title[0])
        opens = sure == SURE or (
            sure > 0 and _opens_list((later.raw for later in found.below(_LOOK_AHEAD)), sure)
        )
        self._level, self._entries, self._gap = title[1] if opens else 0, False, False
        return opens

    def _inside(self, line: Line) -> bool:
        if line.kind in ("blank", "ruler"):
            self._gap = self._gap or line.kind == "blank"
            return True
        listed = _entry_like(unquoted(line.raw))
        prose = not listed and self._gap and (self._entries or self._level == _LABEL_LEVEL)
        prose = prose and not _BOLD_LINE.fullmatch(unquoted(line.raw))  # a title of some of the entries
        prose = prose and (self._level == _LABEL_LEVEL or not _leads_in(line.text))
        if prose:
            self._level = 0
            return False
        self._entries = self._entries or listed
        self._gap = False
        return True

    def _title(self, line: Line) -> tuple[str, int] | None:
        if line.kind == "heading":
            return line.text, line.level
        name = _name(line)
        return (name, _LABEL_LEVEL) if name else None

    def leave(self) -> None:
        """End the list that is being read."""
        self._level = 0


def _opens_list(lines: Iterable[str], sure: int) -> bool:
    """Whether the first of `lines` that is not blank shows that the title above it names a reference list."""
    below = list(filter(str.strip, map(unquoted, lines)))
    following = below[0] if below else ""
    heading = HEADING.fullmatch(following)
    if heading and strength(heading[2]) >= LIKELY:
        return True
    if (heading or _BOLD_LINE.fullmatch(following)) and sure >= LIKELY:  # a title of some of the sources
        found = entry(below[1]) if len(below) > 1 else None
        head = entry(heading[2]) if heading else None
        if head is not None and head.label and len(below) > 1 and address_in(below[1]):  # an entry itself
            return True
        return found is not None and _is_work(found.rest)
    if heading:
        return False
    if sure >= LIKELY and following.startswith("|"):
        return any(address_in(row) for row in below)
    if sure >= LIKELY and len(below) > 1 and _leads_in(following):
        return any(one is not None and _is_work(one.rest) for one in map(entry, below[1:]))
    found = entry(following)
    if sure < LIKELY:
        entries = takewhile(lambda one: one is not None, map(entry, below))
        return found is not None and all(one is not None and leads_to_address(one.rest) for one in entries)
    if (found is None or not found.label) and _states(following, sure=sure == SURE):
        return False
    return bool(found and found.label and found.rest) or bool(address_in(following))


def _states(text: str, *, sure: bool) -> bool:
    """Whether an item below the name of a list states something, and cites its source, rather than names a work.

    Below a name that is `sure` to be that of a list only its length tells.
    """
    address = address_in(text)
    if address is None:
        return False
    return address.start() > _MAX_WORK or (not sure and _MARK_BEHIND.search(text) is not None)


_LINKED_WORK = re.compile(
    r"\s{0,3}[*_]{0,3}\[[^\[\]\n]{1,300}+\]\(https?://[^\s()]{1,2000}+\)[*_]{0,3}(?:\s{0,3}[(:,;|–—]|\s{1,3}-\s)"
)


def _is_work(rest: str) -> bool:
    """Whether an entry is a work: an address ends it, or it begins with a link, and a note on that stands apart."""
    return leads_to_address(rest) or _LINKED_WORK.match(rest) is not None


def _leads_in(text: str) -> bool:
    """Whether a line is no entry, but says of what kind those below it are: "Works of its first year:"."""
    ends = text.rstrip(" *_").endswith((":", "：")) and len(text) <= MAX_TITLE
    return ends and entry(text) is None and address_in(text) is None


def _entry_like(raw: str) -> bool:
    found = entry(raw)
    return (found is not None and bool(found.rest)) or bool(address_in(raw))


_OPEN_LABELS = frozenset("[【［\\")


def _definition(line: Line) -> bool:
    """A labelled address wherever it stands: `[1] Title: https://...`, `[^1]: ...`, `[1]: https://...`."""
    if line.raw.lstrip(" \t>")[:1] not in _OPEN_LABELS:
        return False
    raw = unquoted(line.raw)
    start = raw.lstrip()
    if start.startswith("[^"):
        label, colon, _ = start[:60].partition("]:")
        return bool(colon) and " " not in label
    if not start.startswith(("[", "【", "［", "\\[")):
        return False
    found = entry(raw)
    if found is None or not found.label:
        return False
    return not found.rest.startswith("(") and leads_to_address(found.rest)
