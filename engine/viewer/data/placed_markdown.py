"""Markdown as tokens that know where in the source their text stands, so that passages can be marked in what is shown.

markdown-it numbers the lines of its blocks only. Here the parser of what is inside a block also notes where each piece
of text begins; a piece is placed if the source has the same characters there.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal, NewType

import msgspec
from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType

__all__ = ["MAX_NESTING", "Block", "PlacedLines", "Source", "blocks", "markdown", "source_of"]

MAX_NESTING = 20
"""Levels of blocks in blocks; what lies deeper is left out by markdown-it."""
_AT = "at"

Source = NewType("Source", str)
"""A text as Markdown reads it (`source_of`). Of any other, its lines and markdown-it's would not be the same."""


def source_of(text: str) -> Source:
    """`text` with the line ends and characters that Markdown is read by: the text that all places count in."""
    return Source(text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd"))


class Block(msgspec.Struct, frozen=True):
    """A block of a text that stands in no other: its tokens, and where it begins and ends."""

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
