"""A report's Markdown as sanitised HTML with passages marked: nothing in it runs, and nothing is fetched.

To place the marks, the parser notes for every token of text where it is in the source; markdown-it itself numbers only
the lines of blocks. A token is placed if the source has the same characters there.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Literal, NewType, get_args

import msgspec
import nh3
from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType

from adjudge.scoring.contract.scorecard import OutcomeKind

MAX_NESTING = 20
"""Levels of blocks in blocks; what lies deeper is left out by markdown-it."""
_AT = "at"

Source = NewType("Source", str)
"""A text as Markdown reads it (`source_of`). Of any other, its lines and markdown-it's would not be the same."""


def source_of(text: str) -> Source:
    """`text` with the line ends and characters that Markdown is read by: the text that all places count in."""
    return Source(text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd"))


class Block(msgspec.Struct, frozen=True):
    """A top-level block of a text: its tokens, and where it begins and ends."""

    tokens: list[Token]
    start: int
    end: int


@cache
def markdown() -> MarkdownIt:
    """The parser and renderer: CommonMark with tables and strikethrough; HTML in the text is text."""
    made = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING}).enable(
        ["table", "strikethrough"]
    )
    made.disable(["text_join", "fragments_join"])  # joined pieces would not know their places
    inline = _Inline()
    inline.ruler, inline.ruler2 = made.inline.ruler, made.inline.ruler2
    made.inline = inline
    return made


class _Inline(ParserInline):
    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        state = _State(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


class _State(StateInline):
    """The state of the inline parser; its tokens keep where in the block's text they begin."""

    _began = 0

    def append_pending(self, text: str) -> None:
        if not self.pending:
            self._began = self.pos
        super().append_pending(text)

    def pushPending(self) -> Token:
        token = super().pushPending()
        token.meta[_AT] = self._began
        return token

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        token = super().push(ttype, tag, nesting)
        token.meta[_AT] = self.pos
        return token


def blocks(source: Source, lines: "PlacedLines") -> Iterator[Block]:
    """The outermost blocks of `source`, in order, each ending where the next begins."""
    tokens = markdown().parse(source)
    firsts = [n for n, token in enumerate(tokens) if token.level == 0 and token.nesting >= 0 and token.map]
    starts = [lines.start(tokens[n].map) for n in firsts]
    for n, first, start in zip(range(1, len(firsts) + 1), firsts, starts, strict=True):
        last, end = (firsts[n], starts[n]) if n < len(firsts) else (len(tokens), len(source))
        yield Block(tokens[first:last], start, end)


class PlacedLines:
    """The lines of a source, in which the text of tokens is looked for; ask for tokens in their order."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._starts = [0]
        while (found := source.find("\n", self._starts[-1])) >= 0:
            self._starts.append(found + 1)
        self._read: dict[int, int] = {}

    def start(self, lines: list[int] | None) -> int:
        """Where the first of the `lines` of a token begins."""
        return self._starts[lines[0]] if lines else 0

    def of_code(self, token: Token) -> list[tuple[str, int | None]]:
        """The lines of a block of code, each with its line end and its place."""
        first = token.map[0] + (token.type == "fence") if token.map else 0
        *said, rest = token.content.split("\n")
        kept = [f"{line}\n" for line in said] + ([rest] if rest else [])
        return [(line, self._place(first + n, line.rstrip("\n"), cell=False)) for n, line in enumerate(kept)]

    def of_inline(self, token: Token, cell: bool) -> list[int | None]:
        """The place of each of the token's children, None for one whose text the source does not have there."""
        children = token.children or []
        if not token.map:
            return [None] * len(children)
        offsets, places = [], []
        offset = 0
        for n, line in enumerate(token.content.split("\n")):
            offsets.append(offset)
            places.append(self._place(token.map[0] + n, line, cell))
            offset += len(line) + 1
        return [self._child(child, offsets, places) for child in children]

    def _child(self, child: Token, offsets: Sequence[int], places: Sequence[int | None]) -> int | None:
        at = child.meta.get(_AT)
        if at is None:
            return None
        line = bisect_right(offsets, at) - 1
        place = places[line]
        if place is None:
            return None
        begun = place + at - offsets[line]
        # What is escaped, an address in angle brackets and code begin behind their signs.
        signs = len(child.markup) if child.type == "code_inline" else 1
        said = "\n" if child.type == "softbreak" else child.content
        near = (begun, begun + signs, begun + signs + 1)
        return next((one for one in near if said and self._source.startswith(said, one)), None)

    def _place(self, number: int, said: str, cell: bool) -> int | None:
        """Where line `number` has `said`: at its end, or for a `cell` of a table behind the cells found before.

        A line that does not have it is not looked through again.
        """
        if number >= len(self._starts):
            return None
        start = self._read.get(number, self._starts[number])
        end = self._starts[number + 1] - 1 if number + 1 < len(self._starts) else len(self._source)
        trimmed = said.rstrip()
        tail = len(self._source[start:end].rstrip()) + start - len(trimmed) if not cell else -1
        at_end = tail >= start and self._source.startswith(trimmed, tail)
        place = tail if at_end else self._source.find(said, start, end)
        if place >= 0:
            self._read[number] = place + len(said)
            return place
        written = said.replace("|", "\\|")  # as a cell has it
        place = self._source.find(written, start, end) if cell else -1
        self._read[number] = place + len(written) if place >= 0 else end
        return None


PART_CHARS = 100_000
MAX_RENDERED = 500_000
"""Characters of a text that is rendered."""
_MAX_BLOCK = 2 * PART_CHARS
_MAX_HTML = 2_000_000

KINDS = frozenset((*get_args(OutcomeKind), "mixed", "quoted"))
_CLASSES = {f"v-{kind}" for kind in KINDS}
_CLOSERS = re.compile(r"[*_~`]{0,3}[.,:;!?)\]}\"'”’»›。，、：；！？）】」』］》…]{1,4}[*_~`]{0,3}")
_OWN_DIRECTION = frozenset(
    {"paragraph_open", "heading_open", "bullet_list_open", "ordered_list_open", "blockquote_open", "th_open",
     "td_open"}
)  # fmt: skip
_CLEANER = nh3.Cleaner(
    tags={"p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "s", "br", "hr",
          "table", "thead", "tbody", "tr", "th", "td", "a", "mark", "div", "span"},
    attributes={"*": {"dir"}, "a": {"href", "id", "data-panel", "aria-label", "target"}, "ol": {"start"},
                "mark": {"data-n"}, "div": {"role", "tabindex", "aria-label"}},
    allowed_classes={"a": {"chip", "out", *_CLASSES}, "mark": _CLASSES, "div": {"wide"}, "span": {"picture"},
                     "th": {"centre", "end"}, "td": {"centre", "end"}},
    url_schemes={"http", "https"},
    link_rel="noreferrer noopener nofollow",
)  # fmt: skip


class Mark(msgspec.Struct, frozen=True):
    """A passage to be marked, as a `kind` of verdict, and the HTML of the `chips` that follow it.

    `lines` are the numbers of the lines of evidence about it, separated by spaces.
    """

    start: int
    end: int
    kind: str
    lines: str
    chips: str


class MarkedText(msgspec.Struct, frozen=True):
    """A part of a text, from `start` to `end` of the source, as HTML; None where it can only be shown as written."""

    html: str | None
    part: int
    parts: int
    start: int
    end: int


class _Part(msgspec.Struct, frozen=True):
    start: int
    end: int
    blocks: list[Block] | None
    """None for a piece of a block that is too long."""


def marked_text(text: Source, marks: list[Mark], part: int, rendered: bool) -> MarkedText:
    """Part number `part` of `text`, the last part if there are fewer, as HTML if it is `rendered`.

    `marks` come in the order of the text and do not overlap. A part is whole blocks of about 100,000 characters, or a
    piece of one that is longer. HTML is not made of a text or a block that is too long, is nested so deeply that
    Markdown leaves text out, or would make too long a page.
    """
    lines = PlacedLines(text)
    parts = list(_cut(0, len(text))) if len(text) > MAX_RENDERED else _parts(blocks(text, lines), len(text))
    part = min(part, len(parts))
    shown = parts[part - 1]
    html = None
    if rendered and shown.blocks is not None and not any(map(_too_deep, shown.blocks)):
        inside = [mark for mark in marks if shown.start <= mark.start < shown.end]
        html = _html([token for block in shown.blocks for token in block.tokens], lines, inside, text)
    return MarkedText(html, part, len(parts), shown.start, shown.end)


def _html(tokens: list[Token], lines: PlacedLines, marks: list[Mark], text: str) -> str | None:
    md = markdown()
    made = md.renderer.render(list(_Writer(lines, marks, text).written(tokens)), md.options, {})
    return _CLEANER.clean(made) if len(made) <= _MAX_HTML else None


def _too_deep(block: Block) -> bool:
    return any(token.level >= MAX_NESTING - 1 for token in block.tokens)


def _parts(every: Iterable[Block], length: int) -> list[_Part]:
    """The parts of a text of `length` characters; at least one."""
    parts: list[_Part] = []
    held: list[Block] = []
    start = 0
    for block in every:
        if held and block.end - start > PART_CHARS:
            parts.append(_Part(start, block.start, held))
            held, start = [], block.start
        if block.end - block.start > _MAX_BLOCK:
            parts += _cut(start, block.end)
            start = block.end
        else:
            held.append(block)
    if held or not parts:
        parts.append(_Part(start, length, held))
    return parts


def _cut(start: int, end: int) -> Iterator[_Part]:
    """Pieces of as many characters as a part has."""
    for at in range(start, end, PART_CHARS):
        yield _Part(at, min(at + PART_CHARS, end), None)


class _Writer:
    """Rewrites tokens for showing, with marks and chips.

    Headings rank below those of the page, a table can be scrolled, pictures are links, and links lead only to http and
    https. A mark holds text and no element, so it never crosses one. Chips wait until no link is open, and for the full
    stop or bracket that ends a sentence.
    """

    def __init__(self, lines: PlacedLines, marks: Sequence[Mark], text: str) -> None:
        self._lines = lines
        self._marks = marks
        limits = [*(mark.start for mark in marks[1:]), len(text)]
        self._ends = [min(_end(text, mark), limit) for mark, limit in zip(marks, limits, strict=False)]
        self._next = 0
        self._due: list[str] = []
        self._links: list[bool] = []

    def written(self, tokens: Sequence[Token]) -> Iterator[Token]:
        """`tokens` of blocks as they are shown."""
        cell = False
        for token in tokens:
            if token.type in _OWN_DIRECTION:
                token.attrSet("dir", "auto")
            if token.type == "inline":
                yield _inline(_joined(self._inside(token, cell)))
            elif token.type in ("fence", "code_block"):
                yield from self._code(token)
            elif token.type == "table_open":
                yield _opened(
                    "div", **{"class": "wide", "role": "group", "tabindex": "0", "aria-label": "Table"}
                )
                yield token
            elif token.type == "table_close":
                yield token
                yield _closed("div")
            else:
                if token.type in ("heading_open", "heading_close"):
                    token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
                cell = token.type in ("th_open", "td_open")
                if cell:
                    _align(token)
                yield token
        self._pass(1 << 62)
        if self._due:
            yield _inline([_opened("p"), *self._chips(), _closed("p")])

    def _inside(self, token: Token, cell: bool) -> Iterator[Token]:
        """The contents of a block."""
        for child, place in zip(token.children or [], self._lines.of_inline(token, cell), strict=True):
            if child.type in ("text", "text_special"):
                yield from self._text(child.content, place)
            elif child.type == "softbreak":
                yield from self._text("\n", place)
            elif child.type == "link_open":
                yield from self._chips()
                yield from self._link(child)
            elif child.type == "link_close":
                if self._links.pop():
                    yield child
            elif child.nesting < 0:
                yield child
            else:
                yield from self._chips()
                yield from self._other(child, place)
        yield from self._chips()

    def _other(self, child: Token, place: int | None) -> Iterator[Token]:
        if child.type == "code_inline":
            yield _opened("code")
            yield from self._text(child.content, place, code=True)
            yield _closed("code")
        elif child.type == "image":
            url = str(child.attrs.get("src", ""))
            leads = _leads(url) and not any(self._links)
            yield (
                _opened("a", **{"class": "out", "href": url, "target": "_blank"})
                if leads
                else _opened("span", **{"class": "picture"})
            )
            yield _text(f"[picture: {child.content or 'without a description'}]")
            yield _closed("a" if leads else "span")
        else:
            yield child

    def _link(self, child: Token) -> Iterator[Token]:
        url = str(child.attrs.get("href", ""))
        self._links.append(_leads(url))
        if self._links[-1]:
            child.attrs = {"href": url, "class": "out", "target": "_blank"}
            yield child

    def _code(self, token: Token) -> Iterator[Token]:
        lines = self._lines.of_code(token)
        inside = _joined(one for line, place in lines for one in self._text(line, place, code=True))
        yield _inline([_opened("pre", dir="auto"), _opened("code"), *inside, _closed("code"), _closed("pre")])
        if self._due:
            yield _inline([_opened("p"), *self._chips(), _closed("p")])

    def _text(self, said: str, place: int | None, code: bool = False) -> Iterator[Token]:
        """`said`, marked where the passages are."""
        start, at = 0, place
        if at is not None:
            self._pass(at)
        if self._due and not code:
            closing = _CLOSERS.match(said)
            if closing:
                yield _text(closing[0])
                start = closing.end()
            yield from self._chips()
        while at is not None and self._next < len(self._marks):
            mark, end = self._marks[self._next], self._ends[self._next] - at
            low, high = max(mark.start - at, start), min(end, len(said))
            if mark.start - at >= len(said):
                break
            if low < high:
                yield _text(said[start:low])
                yield from _marked(mark, said[low:high])
                start = high
            if end > len(said):
                break
            self._done()
            if not code:
                yield from self._chips()
        yield _text(said[start:])

    def _pass(self, place: int) -> None:
        """Leave the passages that end before `place`."""
        while self._next < len(self._marks) and self._ends[self._next] <= place:
            self._done()

    def _done(self) -> None:
        self._due.append(self._marks[self._next].chips)
        self._next += 1

    def _chips(self) -> Iterator[Token]:
        """The chips that are due, unless a link is open, in which they would be links in a link."""
        if self._due and not any(self._links):
            yield Token("html_inline", "", 0, content="".join(self._due))
            self._due.clear()


def _joined(tokens: Iterable[Token]) -> list[Token]:
    """`tokens` without empty texts, and with one mark for pieces of one passage that follow each other."""
    made: list[Token] = []
    for token in tokens:
        if token.type == "text" and not token.content:
            continue
        if (
            token.type == "mark_open"
            and made
            and made[-1].type == "mark_close"
            and made[-1].meta == token.meta
        ):
            made.pop()
        else:
            made.append(token)
    return made


def _end(text: str, mark: Mark) -> int:
    """Where a mark ends, with the full stop or brackets that end its sentence."""
    closing = _CLOSERS.match(text, mark.end)
    return closing.end() if closing else mark.end


def _leads(url: str) -> bool:
    return url.lower().startswith(("http://", "https://"))


def _align(token: Token) -> None:
    """A class in place of the style that a column of numbers has."""
    style = str(token.attrs.pop("style", ""))
    where = {"text-align:center": "centre", "text-align:right": "end"}.get(style)
    if where:
        token.attrSet("class", where)


def _text(said: str) -> Token:
    return Token("text", "", 0, content=said)


def _marked(mark: Mark, said: str) -> list[Token]:
    """`said` as a piece of a passage; `meta` of the mark's tokens tells which."""
    opened, closed = _opened("mark", **{"class": f"v-{mark.kind}", "data-n": mark.lines}), _closed("mark")
    opened.meta = closed.meta = {"start": mark.start}
    return [opened, _text(said), closed]


def _opened(tag: str, **attributes: str) -> Token:
    return Token(f"{tag}_open", tag, 1, attrs=dict(attributes))


def _closed(tag: str) -> Token:
    return Token(f"{tag}_close", tag, -1)


def _inline(children: list[Token]) -> Token:
    return Token("inline", "", 0, children=children)
