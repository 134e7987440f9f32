"""A Markdown report as lines of known kinds, its reference lists separated from its prose.

A line scanner, not a Markdown parser: it classifies each line and never looks back further than one line, nor ahead
further than three, so its time is linear in the text, whatever the text holds.
"""

import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Literal, NamedTuple

Kind = Literal["blank", "heading", "item", "row", "ruler", "prose", "code", "reference"]

MAX_TITLE = 120
SURE, LIKELY, PERHAPS = 3, 2, 1  # how surely a title names a reference list
_LABEL_LEVEL = 7  # of a line such as "Sources:" or "**Sources**", which opens a list without being a heading

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|(?=[^#\s]))(.*)")
# Where str.splitlines ends a line.
_BREAK = re.compile(r"\r\n|[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")
_PIECE = 10_000  # of a text, whose lines are held at once
_LOOK_AHEAD = 3
_NOWHERE = (sys.maxsize, sys.maxsize)
_TEXT_FENCES = ("markdown", "md", "text")
_FENCE = re.compile(r" {0,3}(```+|~~~+)[ \t]*([\w+-]*)")
_ITEM = re.compile(
    r"\s{0,20}(?:[-*+•·▪–][ \t]{1,8}|(?:\(?\d{1,3}[.)、．]|[(（]\d{1,3}[)）])[ \t]{0,8})(?=\S)"
)
_RULER = re.compile(r"\s{0,3}(?:[-*_=][ \t]{0,3}){3,200}$")
_ROW_RULE = frozenset("|:-+ \t")
_QUOTE = re.compile(r"(?:[ \t]{0,3}>[ \t]?){1,5}")
_BOLD_LINE = re.compile(r"\s{0,3}(?:\*\*|__)([^*_]{1,60})(?:\*\*|__)\s*[:：]?\s*")
_ADDRESS = re.compile(r"https?://|\bdoi:|\barxiv:|\bwww\.", re.IGNORECASE)

_NUMBERING = re.compile(
    r"\s*(?:[(（]?[\dIVXivx]{1,5}[)）.、．:： ]{1,3}|[(（]?[一二三四五六七八九十]{1,3}[)）、.．:： ]{1,3}"
    r"|第[一二三四五六七八九十\d]{1,3}[章节部分]{1,2}\s?)"
)
_ASIDE = re.compile(r"[(（][^()（）]{0,60}[)）]")
_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a all and authorities cited citations consulted external footnotes full further key links list literature
        main materials notes of online other primary quoted reading reference references resources secondary section
        selected source sources the used works endnotes bibliography citation urls url web
        """,
    )
)
_STRONG = frozenset(["references", "bibliography", "citations", "footnotes", "endnotes"])
_WEAK = frozenset(
    ["reference", "source", "sources", "cited", "notes", "citation", "literature", "reading", "links"]
)
_MAX_WORDS = 6  # of a title that names a list among other words: "Appendix A: Data sources"
_CHINESE = re.compile(
    r"[主要关關键鍵核心部分全附录錄注註脚腳尾参參考引用资資料信息訊数數据據文献獻来來源出处處链鏈连連接結网網址列表目录"
    r"与與和及说說明释釋的著作书書籍相延伸阅閱读讀、：:\s]{2,14}"
)
_CHINESE_STRONG = re.compile("参考|參考|引用|引文|文献|文獻|脚注|腳註|尾注|尾註")
_CHINESE_WEAK = re.compile("来源|來源|出处|出處|注释|註釋|附注|附註|链接|鏈接|連結")

_ENTRY = re.compile(
    r"\s{0,12}(?:[-*+•][ \t]{1,8})?"
    r"(?:\|[ \t]{0,4}\[?(?P<cell>\d{1,4})\]?[ \t]{0,4}\||\\?\[\^?(?P<bracket>[\w.:-]{1,24})\\?\]"
    r"|[【［〔]\^?(?P<wide>\d{1,4})[】］〕]|\^?(?P<plain>\d{1,4})(?:[.)、．]|[ \t]{1,4}(?=\S)))"
    r"[ \t]{0,8}[:：.]?[ \t]{0,8}(?P<rest>.*)"
)
_BULLET = re.compile(r"\s{0,12}[-*+•][ \t]{1,8}(?P<rest>.*)")


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


def lines(text: str) -> Iterator[Line]:
    """The lines of `text`, in order. Linear in its length; holds four of them at a time."""
    code = _code_spans(text)
    lists = _ReferenceLists()
    raws = _raw_lines(text)
    ahead = deque(islice(raws, _LOOK_AHEAD))
    start, end = next(code, _NOWHERE)
    number = 0
    while ahead:
        raw = ahead.popleft()
        ahead.extend(islice(raws, 1))
        if number > end:
            start, end = next(code, _NOWHERE)
        if start <= number <= end:
            yield Line("code", raw, raw)
        else:
            line = _line(raw)
            yield line._replace(kind="reference") if lists.holds(line, ahead) else line
        number += 1


def _raw_lines(text: str) -> Iterator[str]:
    """The lines of `text.splitlines()`."""
    start = 0
    while start < len(text):
        found = _BREAK.search(text, start + _PIECE)
        end = found.end() if found else len(text)
        yield from text[start:end].splitlines()
        start = end


def entry(raw: str) -> Entry | None:
    """`raw` as an entry of a reference list: labelled, or a bullet without a label; None if it is neither."""
    match = _ENTRY.match(raw)
    if match:
        return Entry(match["bracket"] or match["wide"] or match["plain"] or match["cell"], match["rest"])
    bullet = _BULLET.match(raw)
    return Entry("", bullet["rest"]) if bullet else None


def _line(raw: str) -> Line:
    if not raw:
        return _EMPTY
    text = unquoted(raw)
    if not text.strip():
        return Line("blank", "", raw)
    heading = _HEADING.fullmatch(text)
    if heading:
        return Line("heading", heading[2].rstrip(" \t#"), raw, len(heading[1]))
    if _RULER.fullmatch(raw):
        return Line("ruler", "", raw)
    if "|" in text and (text.lstrip().startswith("|") or text.count("|") > 1):
        return Line("ruler" if _ROW_RULE.issuperset(text) and "-" in text else "row", text.strip(), raw)
    item = _ITEM.match(text)
    if item:
        return Line("item", text[item.end() :], raw)
    return Line("prose", text, raw)


def unquoted(raw: str) -> str:
    """A line without the marks of a block quote."""
    quote = _QUOTE.match(raw)
    return raw[quote.end() :] if quote else raw


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    """The first and last line of each closed code fence; one that says Markdown, or is never closed, is text."""
    if "```" not in text and "~~~" not in text:
        return
    opened: tuple[int, str, str] | None = None
    for number, raw in enumerate(_raw_lines(text)):
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


class _ReferenceLists:
    """The state of a line-by-line reader with respect to reference lists."""

    def __init__(self) -> None:
        self._level = 0  # of the heading whose list is being read; 0 outside
        self._entries = False  # whether the list has shown a labelled or bulleted entry
        self._gap = False  # whether a blank line came last

    def holds(self, line: Line, following: Iterable[str]) -> bool:
        """Whether `line` belongs to a reference list. `following` are the lines below it."""
        title = self._title(line)
        if title is None:
            return self._inside(line) if self._level else _definition(line)
        if self._level and title[1] > self._level:
            return True
        strength = _strength(title[0])
        opens = strength == SURE or (strength > 0 and _opens_list(following, strength))
        self._level, self._entries, self._gap = title[1] if opens else 0, False, False
        return opens

    def _inside(self, line: Line) -> bool:
        if line.kind in ("blank", "ruler"):
            self._gap = self._gap or line.kind == "blank"
            return True
        listed = _entry_like(unquoted(line.raw))
        prose = not listed and self._gap and (self._entries or self._level == _LABEL_LEVEL)
        if prose:
            self._level = 0
            return False
        self._entries = self._entries or listed
        self._gap = False
        return True

    def _title(self, line: Line) -> tuple[str, int] | None:
        if line.kind == "heading":
            return line.text, line.level
        if line.kind != "prose" or len(line.text) > MAX_TITLE:
            return None
        bold = _BOLD_LINE.fullmatch(line.text)
        text = bold[1] if bold else line.text.strip()
        if (bold or text.endswith((":", "：")) or len(text) < 40) and _strength(text):
            return text, _LABEL_LEVEL
        return None


def _opens_list(lines: Iterable[str], strength: int) -> bool:
    """Whether the first of `lines` that is not blank shows that the title above it names a reference list."""
    following = next(filter(str.strip, map(unquoted, lines)), "")
    heading = _HEADING.fullmatch(following)
    if heading:
        return _strength(heading[2]) >= LIKELY
    found = entry(following)
    if strength < LIKELY:
        return found is not None and _leads_to_address(found.rest)
    return bool(found and found.label and found.rest) or bool(_ADDRESS.search(following))


def _entry_like(raw: str) -> bool:
    found = entry(raw)
    return (found is not None and bool(found.rest)) or bool(_ADDRESS.search(raw))


def _definition(line: Line) -> bool:
    """A labelled address wherever it stands: `[1] Title: https://...`, `[^1]: ...`, `[1]: https://...`."""
    raw = unquoted(line.raw)
    start = raw.lstrip()
    if start.startswith("[^"):
        label, colon, _ = start[:60].partition("]:")
        return bool(colon) and " " not in label
    if not start.startswith(("[", "【", "［", "\\[")):
        return False
    found = _ENTRY.match(raw)
    return found is not None and not found["rest"].startswith("(") and _leads_to_address(found["rest"])


def _leads_to_address(rest: str) -> bool:
    """Whether an address ends the line (a sentence that only mentions one goes on, or is longer than a title)."""
    address = _ADDRESS.search(rest)
    return (
        address is not None and address.start() < 400 and " " not in rest[address.start() :].strip(" )>.。")
    )


@lru_cache(maxsize=1_000)
def _strength(title: str) -> int:
    """SURE or LIKELY if `title` names a reference list, PERHAPS if it also says other things, 0 if it does not."""
    if len(title) > MAX_TITLE:
        return 0
    title = _ASIDE.sub("", title).strip(" \t*_#:：.。")
    numbering = _NUMBERING.match(title)
    title = title[numbering.end() if numbering else 0 :].strip(" *_:：")
    words = re.findall(r"[a-z]+", title.lower())
    if words:
        if _STRONG.isdisjoint(words) and _WEAK.isdisjoint(words):
            return 0
        if not _WORDS.issuperset(words) or re.search(r"[一-鿿]", title):
            return PERHAPS if len(words) <= _MAX_WORDS else 0
        return LIKELY if _STRONG.isdisjoint(words) else SURE
    strong, weak = _CHINESE_STRONG.search(title), _CHINESE_WEAK.search(title)
    if not _CHINESE.fullmatch(title):
        return PERHAPS if strong or weak else 0
    return SURE if strong else LIKELY if weak else 0
