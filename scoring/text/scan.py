"""A report as raw lines of known kinds, and what an entry of a reference list looks like.

A line scanner, not a Markdown parser: it classifies each line by itself, so its time is linear in the text.

An entry is a label, or a bullet, and what follows it: `[1] Title. https://...`, `2. ...`, `(3) ...`, `[S1] ...`,
`Source 4: ...`, `① ...`, `| S05 | ... |`, `- ...`.
"""

import re
import sys
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Literal, NamedTuple

Kind = Literal["blank", "heading", "item", "row", "ruler", "prose", "code", "reference", "source"]

HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|(?=[^#\s]))(.*)")
NOWHERE = (sys.maxsize, sys.maxsize)
_ITEM = re.compile(
    r"\s{0,20}(?:[-*+•·▪–][ \t]{1,8}|(?:\(?\d{1,3}[.)、．]|[(（]\d{1,3}[)）])[ \t]{0,8})(?=\S)"
)
_RULER = re.compile(r"\s{0,3}(?:[-*_=][ \t]{0,3}){3,200}$")
_RULES = frozenset("-*_=")
_ROW_RULE = frozenset("|:-+ \t")
# Where str.splitlines ends a line.
_BREAK = re.compile(r"\r\n|[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")
_PIECE = 10_000  # of a text, whose lines are held at once
_TEXT_FENCES = ("markdown", "md", "text")
_FENCE = re.compile(r"[ \t]{0,12}(```+|~~~+)[ \t]*([\w+-]*)")
_MAX_FRONT = 200  # lines
_TINY = 8  # characters of lines that are likely to come again
_KEPT_LINES, _KEPT_LENGTH = 2_000, 500  # short lines whose kinds are kept: a report is scanned several times
_FIELD = re.compile(r"[\w.-]{1,60}[ \t]{0,4}[:=](?=\s|$)")
_FIELD_LINE = re.compile(rf"{_FIELD.pattern}|[ \t]|[-#\]}}]|$")
_QUOTE = re.compile(r"(?:[ \t]{0,3}>[ \t]?){1,5}")
# Written out, without regard to case: that is searched twice as fast.
ADDRESS = re.compile(
    r"[hH][tT][tT][pP][sS]?://|[dD](?<!\w.)[oO][iI]:|[aA](?<!\w.)[rR][xX][iI][vV]:|[wW](?<!\w.)[wW][wW]\."
)


def address_in(text: str, start: int = 0) -> re.Match[str] | None:
    """The beginning of the first address of `text` from `start` on."""
    if ":" not in text and "." not in text:
        return None
    if len(text) < _SHORT:
        return ADDRESS.search(text, start)
    lower = text.lower()
    signs = _ADDRESS_SIGNS if ":" in text else _ADDRESS_SIGNS[-1:]
    places = [place for sign in signs if (place := lower.find(sign, start)) >= 0]
    if not places:  # quickly, which a search is not
        return None
    near = min(places) - _LONGEST_SCHEME if len(lower) == len(text) else start
    return ADDRESS.search(text, max(start, near))


_ADDRESS_SIGNS = ("://", "doi:", "arxiv:", "www.")  # the last is the one without a colon
_LONGEST_SCHEME = 5
_SHORT = 50  # characters that are searched as quickly


# An address without its scheme, which only an entry has: host and path.
_HOST_AND_PATH = r"(?<![\w@/.:-])(?:[a-zA-Z\d-]{1,63}\.){1,4}[a-zA-Z]{2,24}/[^\s<>|]{0,2000}"
BARE_ADDRESS = re.compile(rf"(?P<doi>\b10\.\d{{4,9}}/[^\s<>\"|]{{1,300}})|{_HOST_AND_PATH}")
_ENTRY = re.compile(
    r"\s{0,12}(?:[-*+•][ \t]{1,8})?"
    r"(?:\|[ \t]{0,4}\\?\[?(?P<cell>[A-Za-z]{0,8}[_:-]?\d{1,4})\\?\]?[ \t]{0,4}\|"
    r"|(?:\*\*|__)?\\?\[\^?(?:(?P<number>\d{1,4})\^?\\?\]|(?P<bracket>[^\[\]\s\\^!][^\[\]\n\\^]{0,40})\^?\\?\](?!\())"
    r"|[【［〔]\^?(?P<wide>\d{1,4})[】］〕]|[(（](?P<round>\d{1,3})[)）](?=[ \t])|(?P<circled>[①-⑳㉑-㉟])"
    r"|(?P<worded>(?:source|reference|ref|citation|来源|文献)[ \t]?\d{1,4})[ \t]{0,2}(?=[.:：)、-])"
    r"|\^?(?P<plain>\d{1,4})(?:[.)、．:：]|[ \t]{1,4}(?=\S)))"
    r"[ \t]{0,8}(?:\*\*|__)?[:：.)-]?(?:\*\*|__)?[ \t]{0,8}(?P<rest>.*)",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\s{0,12}[-*+•][ \t]{1,8}(?P<rest>.*)")
_NUMBERED_LINK = re.compile(r"\[(?:\\?\[)?\^?\d{1,4}(?:\\?\])?\]\(<?$")
# An address in the parentheses of a link, which may hold some of its own.
WITH_PARENTHESES = r"(?>(?:[^\s()]{1,8192}+|\([^\s()]{0,300}+\)){1,50})"
_LABEL_LINK = re.compile(rf"\[(?:\\?\[)?\^?(\d{{1,4}})\^?(?:\\?\])?\]\(<?{WITH_PARENTHESES}\)[\s,;]{{0,4}}+")
_MAX_KEY, _MAX_KEYS = 80, 6
_KEY_START = re.compile(r"\s{0,12}(?:[-*+•][ \t]{1,8}|\|)?[ \t]{0,4}")
_KEY_END = re.compile(
    r"[*_`]{0,3}[ \t]{0,2}(?:[:：.)|=–—-][*_`]{0,3}(?=[\s\[<]|http)|(?<=\d)(?=[*_`]{0,3}[ \t]))"
)
_KEY_SIGNS = " \t*_`[]【】()\\^"
_BULLET_SIGN = re.compile(r"\s{0,12}(?:[-*+•][ \t]{1,8})?")


class Line(NamedTuple):
    """A line: `text` without its markup (#, bullet, >), `raw` as it stood, `level` of a heading (else 0)."""

    kind: Kind
    text: str
    raw: str
    level: int = 0


_EMPTY = Line("blank", "", "")


class Entry(NamedTuple):
    """A line of a reference list: its label ("" if it has none) and what follows it."""

    label: str
    rest: str


def raw_lines(text: str, keepends: bool = False) -> Iterator[str]:
    """The lines of `text.splitlines(keepends)`, of which few are held at a time."""
    start = 0
    while start < len(text):
        found = _BREAK.search(text, start + _PIECE)
        end = found.end() if found else len(text)
        yield from text[start:end].splitlines(keepends)
        start = end


def entry(raw: str) -> Entry | None:
    """`raw` as an entry of a reference list: labelled, or a bullet without a label; None if it is neither."""
    match = _ENTRY.match(raw)
    if match:
        circled = match["circled"]
        groups = ("cell", "number", "bracket", "wide", "round", "worded", "plain")
        label = next(match[group] for group in groups if match[group]) if not circled else _circled(circled)
        return Entry(label, match["rest"])
    bullet = _BULLET.match(raw)
    return Entry("", bullet["rest"]) if bullet else None


def keyed(raw: str) -> Iterator[Entry]:
    """`raw` as an entry whose label may be any word: what stands in front of a colon, a stop, a dash or a cell's end.

    Which of these is a label, only the marks of the report can tell.
    """
    start = _KEY_START.match(raw)
    begin = start.end() if start else 0
    row = raw[begin - 1 : begin] == "|" or raw.lstrip().startswith("|")
    head = raw[begin : begin + _MAX_KEY]
    at = 0
    for number, end in enumerate(_KEY_END.finditer(head)):
        if number == _MAX_KEYS:
            break
        key = head[at if row else 0 : end.start()].strip(_KEY_SIGNS)
        if key:
            yield Entry(key, raw[begin + end.end() :])
        at = end.end()


def numbered_links(raw: str) -> tuple[tuple[str, ...], str]:
    """The numbers of the links that a line begins with, and what follows them: `[[1]](https://...) [2](...) Title`."""
    names: list[str] = []
    bullet = _BULLET_SIGN.match(raw)
    end = bullet.end() if bullet else 0
    while link := _LABEL_LINK.match(raw, end):
        names.append(link[1])
        end = link.end()
    return tuple(names), raw[end:]


def unquoted(raw: str) -> str:
    """A line without the marks of a block quote."""
    quote = _QUOTE.match(raw) if ">" in raw else None
    return raw[quote.end() :] if quote else raw


def code_spans(text: str) -> Iterator[tuple[int, int]]:
    """The first and last line of each closed code fence; one that says Markdown, or is never closed, is text."""
    if "```" not in text and "~~~" not in text:
        return
    opened: tuple[int, str, str] | None = None
    for number, raw in enumerate(raw_lines(text)):
        fence = _FENCE.match(raw)
        if not fence:
            continue
        if opened is None:
            opened = number, fence[1], fence[2].lower()
        elif fence[1].startswith(opened[1]) and not fence[2]:
            start, _, info = opened
            yield from ((start, start), (number, number)) if info in _TEXT_FENCES else ((start, number),)
            opened = None
        elif opened[2] in _TEXT_FENCES:
            opened = number, fence[1], fence[2].lower()


def scan(text: str) -> Iterator[Line]:
    """The lines of `text`, in order; what is in a reference list is not told.

    Fields in front of the report state nothing; those with an address name a source.
    """
    front = front_lines(text)
    code = code_spans(text)
    start, end = next(code, NOWHERE)
    for number, raw in enumerate(raw_lines(text)):
        if number > end:
            start, end = next(code, NOWHERE)
        if number < front:
            yield Line("source" if address_in(raw) else "code", raw, raw)
        else:
            yield Line("code", raw, raw) if start <= number <= end else _line(raw)


def front_lines(text: str) -> int:
    """How many lines of fields a report begins with, the rulers around them included."""
    if not text.startswith(("---", "+++")):
        return 0
    first, *others = islice(raw_lines(text), _MAX_FRONT)
    ruler = first.rstrip()
    for number, raw in enumerate(others, 1):
        if raw.rstrip() in (ruler, "...") and number > 1:
            return number + 1
        if ruler not in ("---", "+++") or not (_FIELD_LINE if number > 1 else _FIELD).match(raw):
            break
    return 0


def _circled(sign: str) -> str:
    return str(int(unicodedata.numeric(sign)))


def _line(raw: str) -> Line:
    if not raw:
        return _EMPTY
    if len(raw) > _TINY and raw[0].isalpha() and "|" not in raw:  # most lines, told by a glance
        return Line("prose", raw, raw)
    return _kept_line(raw) if len(raw) <= _KEPT_LENGTH else _looked_at(raw)


def _looked_at(raw: str) -> Line:
    text = unquoted(raw)
    if not text.strip():
        return Line("blank", "", raw)
    first = text.lstrip()[0]
    heading = HEADING.fullmatch(text) if first == "#" else None
    if heading:
        return Line("heading", heading[2].rstrip(" \t#"), raw, len(heading[1]))
    if first in _RULES and _RULER.fullmatch(raw):
        return Line("ruler", "", raw)
    if "|" in text and (text.lstrip().startswith("|") or _bars(text) > 1):
        return Line("ruler" if _ROW_RULE.issuperset(text) and "-" in text else "row", text.strip(), raw)
    item = _ITEM.match(text)
    if item:
        return Line("item", text[item.end() :], raw)
    return Line("prose", text, raw)


_kept_line = lru_cache(maxsize=_KEPT_LINES)(_looked_at)

_NO_BAR = re.compile(r"\\\||\[[^\[\]\n]{1,300}+\](?=\()")


def _bars(text: str) -> int:
    """How many bars part the cells of a row: none that is escaped, or a part of a link's title."""
    return (_NO_BAR.sub("", text) if "](" in text or "\\" in text else text).count("|")


def leads_to_address(rest: str) -> bool:
    """Whether an address ends the line, and is no mark's.

    A sentence that only mentions one goes on, or is longer than a title; one that cites it has a number for a link.
    """
    address = address_in(rest)
    if address is None or address.start() >= 400 or " " in rest[address.start() :].strip(" )>.。"):
        return False
    mark = _NUMBERED_LINK.search(rest, 0, address.start())
    return mark is None or not rest[: mark.start()].strip()
