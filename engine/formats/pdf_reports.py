"""A PDF as the Markdown that its author would have written: headings, lists, tables, raised marks, and links.

A PDF knows only where its signs stand. Lines larger than most of the text are headings, a line begins a paragraph where
the one above is further away than lines are, wide gaps within lines are the columns of a table, and a link is an area
of the page with the signs inside of it.
"""

import ctypes
import io
import itertools
import re
import statistics
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
import pypdfium2
from pypdfium2 import raw

from adjudge.fetchers.process import Unreadable
from adjudge.scoring.text.citation_marks import leads_out

__all__ = ["markdown_of"]

_MOST = 2_000_000  # signs that are read
_LINKS = 5_000  # of a page
_LINKS_OF_A_LINE = 100
_LONGEST = 4_000  # characters of an address
_LARGER = 1.12  # times the usual size of the text: a heading's
_LONGEST_HEADING = 200
_APART = 1.5  # sizes of a sign between the feet of two lines, at most, within a paragraph
_OUT = 1  # sizes of a sign that a line stands further out than the one above, which begins a paragraph
_GAP = 1.2  # sizes of a sign between two cells, at least
_RAISED, _SMALLER = 0.15, 0.9  # as in fetchers/pdf.py
_BULLET = re.compile(r"[•◦▪▫●○■□‣⁃∙·–—-]\s+")
_NUMBER = re.compile(r"\[?\(?\d{1,3}[.)\]]\s+|\^\S")
_EDGE, _PAGES = 2, 3  # lines at the head and foot of a page, and pages that have them, at least
_DIGITS = re.compile(r"\d+")
_DOT = 0.15, 0.7  # sizes of a sign that a drawn bullet is high
_ROUND = 0.8, 1.25  # times its height that it is wide
_AWAY = 2.5  # sizes of a sign between a drawn bullet and its item, at most
_SENTENCE = ".。,;"  # what a heading does not end in
_ENDS = ".!?:;。！？：；)）]】"  # what a paragraph ends in
_MARK = re.compile(r"[\d,;\s\u2013-]{1,40}")
_HYPHENS = "\x02\ufffe"  # PDFium's, for the one that a line ends in; it takes the next line for the same
_REST = re.compile(r"[\w.%+-]*?[/=_]")  # what the line begins with after an address that does not end


class _Sign(msgspec.Struct):
    """A sign of a page, with its place in points, its size, and the address that it leads to."""

    text: str
    left: float
    right: float
    foot: float
    top: float
    size: float
    is_bold: bool
    url: str = ""


_Line = list[_Sign]


def markdown_of(body: bytes) -> str:
    """The text of all pages. Raises Unreadable."""
    try:
        document = pypdfium2.PdfDocument(io.BytesIO(body))
    except pypdfium2.PdfiumError as error:
        raise Unreadable(f"a PDF that does not open: {error}") from None
    pages: list[list[_Line]] = []
    with document:
        left = _MOST
        for index in range(len(document)):
            try:
                found = list(_lines(document[index], document, left))
            except pypdfium2.PdfiumError:
                continue  # one broken page of many
            pages.append(found)
            left -= sum(map(len, found))
    lines = _without_edges(pages)
    if not lines:  # scanned: what it says is not known
        raise Unreadable("no text in it")
    return "\n\n".join(_with_notes(list(_blocks(lines))))


def _without_edges(pages: Sequence[Sequence[_Line]]) -> list[_Line]:
    """The lines of all pages but what most of them have at the same place at their edges, save its numbers."""
    outer = []
    for lines in pages:
        feet = sorted({round(_foot(line)) for line in lines})
        edges = {*feet[:_EDGE], *feet[-_EDGE:]}
        named = [(round(_foot(line)), _size(line), _DIGITS.sub("0", _text(line))) for line in lines]
        outer.append([name if name[0] in edges else None for name in named])
    often = Counter(name for names in outer for name in {*names} - {None})
    most = max(_PAGES, len(pages) // 2 + 1)
    return [
        line
        for lines, names in zip(pages, outer, strict=True)
        for line, name in zip(lines, names, strict=True)
        if often[name] < most
    ]


def _text(line: _Line) -> str:
    return "".join(sign.text for sign in line)


_NOTE = re.compile(r"(\d{1,3})[.)]\s+")
_SUP = re.compile(r"<sup>(\d{1,3}(?:\s?[,;]\s?\d{1,3})*)</sup>")


def _with_notes(blocks: list[str]) -> list[str]:
    """`blocks` with the list that they end in as notes, if it has all that raised numbers point at."""
    notes = len(blocks)
    while notes and _NOTE.match(blocks[notes - 1]):
        notes -= 1
    defined = {found[1] for block in blocks[notes:] if (found := _NOTE.match(block))}
    raised = {
        number for block in blocks[:notes] for marks in _SUP.findall(block) for number in _numbers(marks)
    }
    if not raised or not raised <= defined:
        return blocks
    marked = [
        _SUP.sub(lambda marks: "".join(f"[^{number}]" for number in _numbers(marks[1])), block)
        for block in blocks[:notes]
    ]
    return marked + [_NOTE.sub(r"[^\1]: ", block, count=1) for block in blocks[notes:]]


def _numbers(marks: str) -> list[str]:
    return re.findall(r"\d+", marks)


def _lines(page: pypdfium2.PdfPage, document: pypdfium2.PdfDocument, most: int) -> Iterator[_Line]:
    """The lines of a page that show something, without blanks at their ends."""
    text = page.get_textpage()
    areas = list(itertools.islice(_areas(page, document), _LINKS))
    bullets = sorted(itertools.islice(_bullets(page), _LINKS))
    box, line, is_over = raw.FS_RECTF(), _Line(), False
    for index in range(min(text.count_chars(), most)):
        sign = chr(raw.FPDFText_GetUnicode(text, index))
        if sign in "\r\n":
            is_over = is_over or sign == "\n"
            continue
        if sign == "\0" or not raw.FPDFText_GetLooseCharBox(text, index, box):
            continue
        size = raw.FPDFText_GetFontSize(text, index)
        weight = raw.FPDFText_GetFontWeight(text, index)
        one = _Sign(sign, box.left, box.right, box.bottom, box.top, size, weight >= 600)
        if is_over and not sign.isspace():
            if _is_shown(line) and not _follows(line, one):
                yield _bulleted(_linked(line, areas), bullets)
                line = []
            is_over = False
        line.append(one)
        is_over = is_over or sign in _HYPHENS
    if _is_shown(line):
        yield _bulleted(_linked(line, areas), bullets)


def _follows(line: _Line, sign: _Sign) -> bool:
    """Whether a sign stands right of `line`, one of both raised: PDFium takes some marks for lines."""
    last = next(one for one in reversed(line) if not one.text.isspace())
    low, high = sorted((last, sign), key=lambda one: one.foot)
    is_raised = high.size < _SMALLER * low.size and low.foot < high.foot < low.top
    return is_raised and -_RAISED * low.size <= sign.left - last.right <= _GAP * low.size


_Bullet = tuple[float, float, float]


def _bullets(page: pypdfium2.PdfPage) -> Iterator[_Bullet]:
    """The middle, right edge and height of every drawing that is about as wide as it is high."""
    left, foot, right, top = (ctypes.c_float() for _ in range(4))
    for drawing in page.get_objects(filter=[raw.FPDF_PAGEOBJ_PATH], max_depth=1):
        if not raw.FPDFPageObj_GetBounds(drawing, left, foot, right, top):
            continue
        wide, high = right.value - left.value, top.value - foot.value
        if high > 0 and _ROUND[0] <= wide / high <= _ROUND[1]:
            yield (foot.value + top.value) / 2, right.value, high


def _bulleted(line: _Line, bullets: Sequence[_Bullet]) -> _Line:
    """`line` with a bullet in front, if one of those in order is drawn there."""
    first = line[0]
    place = bisect(bullets, (first.foot,))
    for middle, right, high in bullets[place : place + _LINKS_OF_A_LINE]:
        is_beside = middle < first.top and 0 <= first.left - right <= _AWAY * first.size
        if is_beside and _DOT[0] * first.size <= high <= _DOT[1] * first.size:
            signs = (msgspec.structs.replace(first, text=text, url="") for text in "\u2022 ")
            return [*signs, *line]
    return line


def _is_shown(line: _Line) -> bool:
    return any(not sign.text.isspace() for sign in line)


_Area = tuple[float, float, float, float, str]


def _areas(page: pypdfium2.PdfPage, document: pypdfium2.PdfDocument) -> Iterator[_Area]:
    """Left, foot, right and top of every area that leads to an address, and the address."""
    position, link, quad = ctypes.c_int(0), raw.FPDF_LINK(), raw.FS_QUADPOINTSF()
    while raw.FPDFLink_Enumerate(page, position, link):
        action = raw.FPDFLink_GetAction(link)
        size = raw.FPDFAction_GetURIPath(document, action, None, 0) if action else 0
        if not 1 < size <= _LONGEST:
            continue
        path = ctypes.create_string_buffer(size)
        raw.FPDFAction_GetURIPath(document, action, path, size)
        url = path.value.decode("utf-8", "replace").strip()
        if not leads_out(url):
            continue
        for number in range(min(raw.FPDFLink_CountQuadPoints(link), _LINKS)):
            if raw.FPDFLink_GetQuadPoints(link, number, quad):
                across = (quad.x1, quad.x2, quad.x3, quad.x4)
                up = (quad.y1, quad.y2, quad.y3, quad.y4)
                yield min(across), min(up), max(across), max(up), url
        rectangle = raw.FS_RECTF()
        if not raw.FPDFLink_CountQuadPoints(link) and raw.FPDFLink_GetAnnotRect(link, rectangle):
            yield rectangle.left, rectangle.bottom, rectangle.right, rectangle.top, url


def _linked(line: _Line, areas: Sequence[_Area]) -> _Line:
    """`line` without outer blanks, its signs with the addresses of the areas that they stand in."""
    while line[0].text.isspace():
        line.pop(0)
    while line[-1].text.isspace():
        line.pop()
    foot, top = min(sign.foot for sign in line), max(sign.top for sign in line)
    here = [area for area in areas if area[1] < top and area[3] > foot][:_LINKS_OF_A_LINE]
    shown = [sign for sign in line if not sign.text.isspace()]
    for sign in shown if here else ():
        across, up = (sign.left + sign.right) / 2, (sign.foot + sign.top) / 2
        sign.url = next((one[4] for one in here if one[0] <= across <= one[2] and one[1] <= up <= one[3]), "")
    last, at = shown[0], 0
    for sign in line:  # a blank is often PDFium's own, and has no place
        if not sign.text.isspace():
            last, at = sign, at + 1
        else:
            sign.size, sign.foot, sign.is_bold = last.size, last.foot, last.is_bold
            sign.url = last.url if last.url == shown[at].url else ""
    return line


def _blocks(lines: Sequence[_Line]) -> Iterator[str]:
    """The blocks of Markdown that `lines` make."""
    sizes = Counter(round(sign.size, 1) for line in lines for sign in line)
    usual = sizes.most_common(1)[0][0]
    levels = _levels(lines, usual)
    cells = [_cells(line) for line in lines]
    paragraph, at = "", 0
    while at < len(lines):
        line, words = lines[at], _words(lines[at])
        end = at
        while end < len(lines) and len(cells[end]) == len(cells[at]) > 1:
            end += 1
        level = levels.get(_size(line))
        begins = level is not None or end - at > 1 or _starts(words) or not _goes_on(lines, at)
        if begins and paragraph:
            yield paragraph
            paragraph = ""
        if end - at > 1:
            yield _table(cells[at:end])
            at = end
            continue
        if level is not None:
            goes_on = (
                at + 1 < len(lines) and levels.get(_size(lines[at + 1])) == level and _goes_on(lines, at + 1)
            )
            paragraph = _joined(paragraph, words) if paragraph else f"{'#' * level} {words}"
            if not goes_on:
                yield paragraph
                paragraph = ""
        else:
            paragraph = _joined(
                paragraph, _BULLET.sub("- ", words, count=1) if _BULLET.match(words) else words
            )
        at += 1
    if paragraph:
        yield paragraph


def _levels(lines: Sequence[_Line], usual: float) -> dict[float, int]:
    """The level of headings, by their size."""
    larger = {
        _size(line)
        for line in lines
        if _size(line) > _LARGER * usual and len(line) <= _LONGEST_HEADING and line[-1].text not in _SENTENCE
    }
    return {size: min(level, 6) for level, size in enumerate(sorted(larger, reverse=True), 1)}


def _size(line: _Line) -> float:
    return round(statistics.median(sign.size for sign in line), 1)


def _starts(words: str) -> bool:
    return bool(_BULLET.match(words) or _NUMBER.match(words))


def _goes_on(lines: Sequence[_Line], at: int) -> bool:
    """Whether a line stands directly below the one before it, and not further out."""
    if at == 0:
        return False
    above, line = lines[at - 1], lines[at]
    if above[-1].text in _HYPHENS:
        return True
    apart = _foot(above) - _foot(line)
    size = max(_size(above), _size(line))
    if apart < 0:  # at the head of the next page, or column
        begins = line[0].text
        same = _size(above) == _size(line) and above[-1].text not in _ENDS
        return same and (begins.islower() or begins > "\u2e7f" or above[-1].text == ",")
    return 0 < apart <= _APART * size and above[0].left - line[0].left < _OUT * size


def _foot(line: _Line) -> float:
    return statistics.median(sign.foot for sign in line)


def _joined(paragraph: str, words: str) -> str:
    """`paragraph` and the line after it; a word, address or link that the line's end divides is one again."""
    if not paragraph:
        return words
    if paragraph.endswith(">)"):
        link = paragraph.rfind("](<")
        shown, same, rest = words.partition(paragraph[link:])
        if same and shown.startswith("[") and "](<" not in shown:
            begun = paragraph[paragraph.rfind("[", 0, link) + 1 : link]
            is_address = begun + shown[1:] in same
            text = paragraph[:link] + shown[1:] if is_address else _joined(paragraph[:link], shown[1:])
            return text + same + rest
    last = paragraph.rsplit(maxsplit=1)[-1]
    is_address = "://" in last
    if last[-1] in _HYPHENS:
        is_word = not is_address and last[-2:-1].isalpha()
        return paragraph[:-1] + ("" if is_word else "-") + words
    goes_on = is_address and (words[0] in "?/=&" or (last[-1] in "?/=&-" and _REST.match(words)))
    divides = last[-1] > "\u2e7f" and words[0] > "\u2e7f"  # no blanks between Chinese signs
    return paragraph + words if goes_on or divides else f"{paragraph} {words}"


def _cells(line: _Line) -> list[_Line]:
    """The parts of a line between wide gaps."""
    cells, last = [_Line()], line[0]
    for sign in line:
        if not sign.text.isspace():
            if sign.left - last.right > _GAP * sign.size:
                cells.append([])
            last = sign
        cells[-1].append(sign)
    return cells


def _table(rows: Sequence[Sequence[_Line]]) -> str:
    made = ["| " + " | ".join(_words(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([made[0], "|" + " --- |" * len(rows[0]), *made[1:]])


def _words(line: _Line) -> str:
    """The signs of a line, its links and raised marks as Markdown has them."""
    pieces = []
    for url, linked in itertools.groupby(line, key=lambda sign: sign.url):
        signs = list(linked)
        text = _raised(signs, line)
        shown = text.strip()
        blanks = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        pieces.append(f"{blanks[0]}[{shown}](<{url}>){blanks[1]}" if url and shown else text)
    return "".join(pieces).strip()


def _raised(signs: Sequence[_Sign], line: _Line) -> str:
    """The text of `signs`, what is raised among those of its line in tags."""
    size, foot = _size(line), _foot(line)
    pieces = []
    for is_raised, group in itertools.groupby(
        signs, key=lambda one: one.size < _SMALLER * size and one.foot - foot > _RAISED * size
    ):
        text = "".join(sign.text for sign in group)
        mark = text.rstrip()
        if is_raised and _MARK.fullmatch(mark):
            text = f"<sup>{mark}</sup>{text[len(mark) :]}"
        pieces.append(text)
    return "".join(pieces)
