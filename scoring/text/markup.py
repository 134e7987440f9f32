"""A report as plain Markdown: HTML in Markdown's forms, without what no reader sees, and marks of chat pages as marks.

Hidden elements, comments, zero-width spaces and the traces that chat pages leave in copies state nothing. Code stays as
it is. Linear in the text: repetitions are bounded, and elements are paired with a stack.
"""

import re
from collections.abc import Iterable, Iterator
from html import unescape
from io import StringIO
from itertools import pairwise

import msgspec

from adjudge.judges.remembering import remembered
from adjudge.scoring.text.citation_marks import leads_out
from adjudge.scoring.text.notations import in_markdown
from adjudge.scoring.text.scan import NOWHERE, code_spans, entry, leads_to_address, raw_lines
from adjudge.scoring.text.titles import LIKELY, strength

_ZERO_WIDTH = "\u200b\u2060\ufeff"
_TURN = r"turn\d{1,4}[a-z]{1,12}\d{1,4}"
_TURNS = re.compile(_TURN)
# What chat pages write for a mark, in private-use characters, with these lost, or in words of their own.
_CHAT = re.compile(
    r"\ue200(?P<private>[^\ue200\ue201\n]{0,500})\ue201"
    rf"|\b(?:cite|navlist|video|image_group)(?P<bare>(?:{_TURN}){{1,40}})\b"
    rf"|[【\[](?P<wide>{_TURN}(?:†[^\[\]【】\n]{{0,80}})?)[】\]]"
    r"|:{0,2}contentReference\[oaicite:(?P<content>\d{1,4})\](?:\{[^{}\n]{0,40}\})?"
    r"|\[oaicite:(?P<cited>\d{1,4})\]"
    r"|<grok:render\b[^<>]{0,300}>\s{0,8}"
    r"(?:<argument name=\"citation_id\">\s{0,4}(?P<card>\d{1,4})\s{0,4}</argument>\s{0,8})?"
    r"(?:<argument\b[^<>]{0,80}+>[^<>]{0,300}+</argument>\s{0,8}+){0,8}</grok:render>"
    r"|\[span_\d{1,5}\]\((?:start|end)_span\)|\[cite_(?:start|end)\]"
)
_CHAT_PARTS = ("\ue200", "oaicite", "_span)", "[cite_", "<grok:")
_TURN_SIGN = re.compile(r"turn\d")
_BROKEN = re.compile(
    r"(?<=[/?&=_-])[ \t]{0,4}\r?\n[ \t]{0,8}(?=(?:[\w.%~/?#&=+-]{1,300})[ \t]{0,4}(?:\r?\n|$))"
)
_LABELLED = re.compile(r"[ \t]{0,8}(?:\d{1,4}[.)]|[-=_]+\s*$)")

# What a quotation begins with that is a note of a kind, and the note's title: "> [!warning] Mind the mill".
_CALLOUT = re.compile(r"^([ \t]{0,3}>[ \t]?)\[!\w{1,20}\][+-]?[ \t]{0,4}([^\n]*)$", re.MULTILINE)
_WITH_ADDRESS = re.compile(r"^[^\n]*://[^\n]*$", re.MULTILINE)
# The target of a link with blanks in it, which no title and no size of an image follows, or in angle brackets.
_SPACED = re.compile(
    r"\]\(https?://[^\s()<>\"']{1,2000}+(?: [^\s()<>\"'=]{1,80}+){1,8}\)"
    r"|\]\(<https?://[^\s<>]{1,2000}+(?: {1,8}[^\s<>]{1,300}+){1,20}>"
)
# An entry's label that leads back to its mark, within the link to the entry's source.
_LABEL_WITHIN = re.compile(r"\[\[(\d{1,4})\]\(#[^\s()]{1,200}\)[ \t]{1,4}(?=[^\]])")
_ENTRY_LABEL = re.compile(r"\[\^?[\w.:-]{1,24}\^?\](?![(\[])|(?<![\w)])[(（]\d{1,3}[)）](?= ?\S)")

_NAME = r"[a-zA-Z][a-zA-Z0-9]{0,12}"
_TAG = re.compile(
    rf"(?P<code>`[^`\n]{{1,1000}}`)|(?P<comment><!--)|<(?P<close>/?)(?P<name>{_NAME})(?P<rest>(?:[\s/][^<>]{{0,2000}})?)>"
)
_ATTRIBUTE = re.compile(
    r"([a-zA-Z-]{1,20})\s{0,3}=\s{0,3}(?:\"([^\"]{0,2000})\"|'([^']{0,2000})'|([^\s\"'>]{1,2000}))"
)
_HIDDEN_STYLE = re.compile(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?:px|pt|em|rem|%)?\s*(?:;|$|!)"
    r"|opacity\s*:\s*0(?:\.0+)?\s*(?:;|$|!))",
    re.IGNORECASE,
)
_HIDDEN_FLAG = re.compile(r"(?<![\w=\"'-])hidden(?![\w-])", re.IGNORECASE)
_UNREAD = ("script", "style", "template")
_CITES = ("cite", "ref", "citation", "source")
_CITED = ("id", "index", "ids", "source", "sources", "doc", "n", "name")
_LABELS_ONLY = re.compile(r"\s?[A-Za-z]{0,8}[_:-]?\d{1,4}(?:\s?,\s?[A-Za-z]{0,8}[_:-]?\d{1,4}){0,20}\s?</")
_VOID = ("br", "img", "hr", "input", "wbr", "meta", "link")
_BLOCKS = frozenset(
    ("p", "div", "ol", "ul", "li", "details", "summary", "section", "article", "center", "blockquote")
)
_TABLE = frozenset(("table", "thead", "tbody", "tfoot", "colgroup", "col", "tr", "td", "th"))
_MAX_CELLS = 100
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_GONE = _BLOCKS | {
    "img",
    "span",
    "a",
    "cite",
    "font",
    "u",
    "small",
    "big",
    "mark",
    "wbr",
    "kbd",
    "button",
    "q",
    "time",
}
_LABEL_SIGNS = re.compile(r"[\[(（]")  # what an entry's label begins with
_MAX_NAME = 80  # characters of a line in front of its first entry
_KEPT_CHARS = 1_000_000  # of the texts whose plain form is kept: several readers begin with it
_MAX_NOTE = 500  # characters of a wiki's note within which its address stands
_MAX_OPEN = 1_000  # elements within each other


@remembered(_KEPT_CHARS)
def plain(text: str) -> str:
    """`text` as plain Markdown."""
    for sign in _ZERO_WIDTH:
        text = text.replace(sign, "")
    if any(part in text for part in _CHAT_PARTS) or _TURN_SIGN.search(text):
        text = _CHAT.sub(_mark, text)
    if "> [!" in text or ">[!" in text:
        text = _CALLOUT.sub(_callout, text)
    text = in_markdown(text)
    if "](" in text and "://" in text:
        text = _SPACED.sub(lambda found: found[0].replace(" ", "%20"), text)
    if "](#" in text:
        text = _LABEL_WITHIN.sub(r"[\1] [", text)
    if "://" in text:
        text = _BROKEN.sub(lambda found: "" if _is_broken(text, found) else found[0], text)
    if "://" in text:
        text = _WITH_ADDRESS.sub(_entries_apart, text)
    if "://" in text and ("```" in text or "~~~" in text):
        text = _joined(part if is_text else _unfenced(part) for is_text, part in _parts(text))
    if "</" in text or "<!--" in text or "<img" in text:
        text = _joined(_Markdown(part).written if is_text else part for is_text, part in _parts(text))
    return text


def _entries_apart(line: re.Match[str]) -> str:
    """Entries of a reference list that stand on one line, each on its own; any other line as it is."""
    text = line[0]
    if text.count("://") < 2 or not _LABEL_SIGNS.search(text, 0, _MAX_NAME):
        return text
    cuts = [label.start() for label in _ENTRY_LABEL.finditer(text)]
    start = cuts[0] if cuts else _MAX_NAME
    name = text[:start].strip(" \t*_>:：")
    if start >= _MAX_NAME or (name and strength(name) < LIKELY):
        return text
    parts = [text[begin:end].strip(" \t;,；，|*_•·") for begin, end in pairwise([*cuts, len(text)])]
    if len(parts) < 2 or not all(map(leads_to_address, parts)):
        return text
    return "\n".join([text[:start], *parts])


def _callout(found: re.Match[str]) -> str:
    """A line that begins a note, without its kind, the title in a paragraph of its own."""
    quote, title = found.groups()
    return f"{quote}{title}\n{quote}" if title.strip() else quote


def _mark(found: re.Match[str]) -> str:
    """A chat page's mark in brackets; nothing for its other traces."""
    numbered = found["content"] or found["cited"]
    if numbered:
        return f"【oaicite:{numbered}】"
    if found["card"]:
        return f"[{found['card']}]"
    named = found["private"] or found["bare"] or found["wide"] or ""
    return "".join(f"【{turn}】" for turn in _TURNS.findall(named))


def _is_broken(text: str, found: re.Match[str]) -> bool:
    """Whether an address goes on behind a line's end."""
    token = text[max(0, found.start() - 2_000) : found.start()].rsplit(None, 1)[-1:]
    return bool(token) and "://" in token[0] and not _LABELLED.match(text, found.end())


def _joined(parts: Iterable[str]) -> str:
    """`"".join(parts)` that never holds all of the parts, of which a text of fences has one in eight characters."""
    whole = StringIO(newline="")
    whole.writelines(parts)
    return whole.getvalue()


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """`text` in parts, and whether each is text rather than a fence of code."""
    spans = code_spans(text)
    start, end = next(spans, NOWHERE)
    begun = at = 0
    for number, line in enumerate(raw_lines(text, keepends=True)):
        if number > end:
            yield False, text[begun:at]
            begun = at
            start, end = next(spans, NOWHERE)
        if number == start and begun < at:
            yield True, text[begun:at]
            begun = at
        at += len(line)
    if begun < at:
        yield (start, end) == NOWHERE, text[begun:]


def _unfenced(code: str) -> str:
    """The entries of a reference list that stand in a code block, as lines or as JSON; any other block as it is."""
    inside = [line for line in code.splitlines()[1:-1] if line.strip()]
    found = _json_entries("\n".join(inside)) or inside
    entries = list(map(entry, found))
    led = sum(one is not None and one.label != "" and leads_to_address(one.rest) for one in entries)
    return "\n".join(["", *found, ""]) if led > 1 and led == len(found) else code


def _json_entries(code: str) -> list[str]:
    """The sources that rows of JSON name, as entries; none if it is anything else."""
    if not code.startswith(("[", "{")):
        return []
    try:
        rows = msgspec.json.decode(code)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return []
    if isinstance(rows, dict) and len(rows) == 1:
        rows = next(iter(rows.values()))
    found: list[str] = []
    for place, row in enumerate(rows if isinstance(rows, list) else (), 1):
        fields = {name.lower(): said for name, said in row.items()} if isinstance(row, dict) else {}
        url = next((str(fields[name]) for name in _JSON_ADDRESS if name in fields), "")
        name = next((str(fields[name]) for name in _JSON_LABEL if name in fields), str(place))
        found.append(f"[{name}] {fields.get('title', '')} {url}")
    return [" ".join(one.split()) for one in found]


_JSON_ADDRESS = ("url", "link", "href")
_JSON_LABEL = ("id", "index", "number", "ref", "key", "citation")


class _Markdown:
    """Writes the HTML of a text as Markdown."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._out = StringIO()
        self._lists: list[
            int
        ] = []  # the number of the last item of each open list; -1 of one without numbers
        self._behind: list[str] = []  # what follows each open link or cited text
        self._table = _Table()
        hidden = iter([*_hidden(text), NOWHERE])
        start, end = next(hidden)
        position = 0
        for tag in _TAG.finditer(text):
            while tag.start() >= end:
                self._keep(position, start)
                position = max(position, end)
                start, end = next(hidden)
            if tag.start() >= start or tag["code"] or tag["comment"] or tag.start() < position:
                continue
            self._keep(position, tag.start())
            written = self._written(tag)
            self._out.write(tag[0] if written is None else written)
            position = tag.end()
        while end != NOWHERE[1]:
            self._keep(position, start)
            position = max(position, end)
            start, end = next(hidden)
        self._keep(position, len(text))
        self.written = self._out.getvalue()

    def _keep(self, start: int, end: int) -> None:
        self._out.write(self._table.kept(self._text[start:end]) if start < end else "")

    def _written(self, tag: re.Match[str]) -> str | None:
        """What stands for a tag; None if it stays."""
        name, closes = tag["name"].lower(), bool(tag["close"])
        if name == "a":
            return self._link(tag, closes)
        if name in _CITES:
            if closes:
                return self._behind.pop() if self._behind else ""
            attributes = _attributes(tag["rest"])
            url = next((one for one in attributes.values() if one.startswith(("http://", "https://"))), "")
            if url and len(self._behind) < _MAX_OPEN:
                if tag["rest"].endswith("/"):
                    return f"[]({url})"
                self._behind.append(f"]({url})")
                return "["
            labels = next((attributes[one] for one in _CITED if one in attributes), "")
            note = (
                self._text[tag.end() : tag.end() + _MAX_NOTE].partition("</ref>")[0] if name == "ref" else ""
            )
            is_note = name == "ref" and (not labels or "://" in note)
            if tag["rest"].endswith("/"):
                return f"[{labels}]" if labels else ""
            only = _LABELS_ONLY.match(self._text, tag.end())
            if only and not labels:
                self._behind.append("]")
                return "["
            if is_note:
                self._behind.append(")")
                return " ("
            self._behind.append("".join(f" [{one.strip()}]" for one in labels.split(",")[:40] if one.strip()))
            return ""
        if name in _TABLE:
            return self._table.written(name, closes)
        if name in ("ol", "ul"):
            if closes:
                del self._lists[-1:]
            elif len(self._lists) < _MAX_OPEN:
                self._lists.append(0 if name == "ol" else -1)
        if name == "li" and not closes:
            if self._lists and self._lists[-1] >= 0:
                self._lists[-1] += 1
                return self._line(tag, f"{self._lists[-1]}. ")
            return self._line(tag, "- ")
        if name in _HEADINGS:
            return self._line(tag, "" if closes else f"{'#' * int(name[1])} ")
        if name in _BLOCKS:
            return self._line(tag, "")
        return "" if name in _GONE else None

    def _line(self, tag: re.Match[str], begins: str) -> str:
        """`begins` on a line of its own."""
        if self._table.in_row:
            return " "
        before = self._text[max(0, tag.start() - 20) : tag.start()].rpartition("\n")
        return begins if before[1] and not before[2].strip() else f"\n{begins}"

    def _link(self, tag: re.Match[str], closes: bool) -> str:
        if closes:
            return self._behind.pop() if self._behind else ""
        url = unescape(_attributes(tag["rest"]).get("href", "")).strip().replace(" ", "%20")
        if leads_out(url) and len(self._behind) < _MAX_OPEN:
            self._behind.append(f"]({url})")
            return "["
        self._behind.append("")
        return ""


class _Table:
    """Writes the rows of a table, each on a line of its own."""

    def __init__(self) -> None:
        self.in_row = False
        self._in_table = False
        self._cells = 0  # of the row
        self._headers = 0  # of these, those that are titles
        self._rows = 0

    def kept(self, text: str) -> str:
        """`text` as it may stand in a row, or beside the rows."""
        if self.in_row:
            return " ".join(["", *text.split(), ""]).replace("|", "/") if self._cells else ""
        return text if text.strip() or not self._in_table else ""

    def written(self, name: str, closes: bool) -> str:
        """What stands for a tag of a table."""
        if name in ("td", "th"):
            if closes or not self.in_row or self._cells > _MAX_CELLS:
                return ""
            self._cells += 1
            self._headers += name == "th"
            return "|"
        ended = self._end_row() if name in ("tr", "table") else ""
        if name == "tr" and not closes:
            self.in_row = True
        elif name == "table":
            self._in_table, self._rows = not closes, 0
            return f"{ended}\n\n"
        return ended

    def _end_row(self) -> str:
        """The end of the row that is open; with a rule below the first, if it holds titles."""
        if not self.in_row:
            return ""
        cells, headers = self._cells, self._headers
        self.in_row, self._cells, self._headers = False, 0, 0
        self._rows += cells > 0
        if not cells:
            return ""
        return "|\n" + ("|---" * cells + "|\n" if self._rows == 1 and headers else "")


def _attributes(rest: str) -> dict[str, str]:
    return {found[1].lower(): found[2] or found[3] or found[4] or "" for found in _ATTRIBUTE.finditer(rest)}


def _hidden(text: str) -> Iterator[tuple[int, int]]:
    """Where comments stand and elements that show nothing, the outermost, in order."""
    found: list[tuple[int, int]] = []
    opened: list[tuple[str, int]] = []  # names, and where the element begins if it is hidden, else -1
    comment_end = 0
    for tag in _TAG.finditer(text):
        if tag.start() < comment_end or tag["code"]:
            continue
        if tag["comment"]:
            end = text.find("-->", tag.end())
            if end < 0:
                break
            comment_end = end + 3
            found.append((tag.start(), comment_end))
            continue
        name = tag["name"].lower()
        if name in _VOID or tag["rest"].endswith("/"):
            continue
        if not tag["close"]:
            opened.append((name, tag.start() if _hides(name, tag["rest"]) else -1))
            del opened[: max(0, len(opened) - _MAX_OPEN)]
        elif opened and opened[-1][0] == name:
            start = opened.pop()[1]
            if start >= 0:
                found.append((start, tag.end()))
    end = 0
    for start, stop in sorted(found):
        if start >= end:
            yield start, stop
            end = stop


def _hides(name: str, rest: str) -> bool:
    if name in _UNREAD:
        return True
    style = _attributes(rest).get("style", "") if "style" in rest else ""
    bare = _ATTRIBUTE.sub("", rest)
    return _HIDDEN_STYLE.search(style) is not None or _HIDDEN_FLAG.search(bare) is not None
