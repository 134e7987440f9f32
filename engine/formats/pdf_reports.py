"""A PDF as the Markdown that its author would have written: headings, lists, tables, raised marks, and links.

A PDF knows only where its signs stand. Lines larger than most of the text are headings, a line begins a paragraph where
the one above is further away than lines are, wide gaps within lines are the columns of a table, and a link is an area
of the page with the signs inside of it.
"""

import ctypes
import io
import itertools
import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce

import msgspec
import pypdfium2
from pypdfium2 import raw

from adjudge.engine.formats.pdf_tables import (
    APART,
    LARGER,
    Drawing,
    Line,
    Sign,
    Table,
    foot_of,
    size_of,
    with_tables,
)
from adjudge.fetchers.process import Unreadable
from adjudge.scoring.text.citation_marks import leads_out

__all__ = ["markdown_of"]

_MOST = 2_000_000  # signs that are read
_LINKS = 5_000  # of a page
_DRAWINGS = 20_000  # of a page
_LINKS_OF_A_LINE = 100
_LONGEST = 4_000  # characters of an address
_LONGEST_HEADING = 200
_OUT = 1  # sizes of a sign that a line stands further out than the one above, which begins a paragraph
_GAP = 1.2  # sizes of a sign between two cells, at least
_RAISED, _SMALLER = 0.15, 0.9  # as in fetchers/pdf.py
_BULLET = re.compile(r"[•◦▪▫●○■□‣⁃∙·–—-]\s+")
_NUMBER = re.compile(r"\[?\(?\d{1,3}[.)\]]\s+|\^\S")
_EDGE, _PAGES = 2, 3  # lines at the head and foot of a page, and pages that have them, at least
_DIGITS = re.compile(r"\d+")
_DOT = 0.15, 0.7  # sizes of a sign that a drawn bullet is high
_RECTANGLE = 5  # segments; a filled frame has more
_ROUND = 0.8, 1.25  # times its height that it is wide
_AWAY = 2.5  # sizes of a sign between a drawn bullet and its item, at most
_SENTENCE = ".。,;"  # what a heading does not end in
_ENDS = ".!?:;。！？：；)）]】"  # what a paragraph ends in
_MARK = re.compile(r"[\d,;\s\u2013-]{1,40}")
_HYPHENS = "\x02\ufffe"  # PDFium's, for the one that a line ends in; it takes the next line for the same
_REST = re.compile(r"[\w.%+-]*?[/=_]")  # what the line begins with after an address that does not end


def markdown_of(body: bytes) -> str:
    """The text of all pages. Raises Unreadable."""
    try:
        document = pypdfium2.PdfDocument(io.BytesIO(body))
    except pypdfium2.PdfiumError as error:
        raise Unreadable(f"a PDF that does not open: {error}") from None
    pages: list[list[Line]] = []
    drawings: list[list[Drawing]] = []
    with document:
        left = _MOST
        for index in range(len(document)):
            try:
                drawn = list(itertools.islice(_drawings(document[index]), _DRAWINGS))
                found = list(_lines(document[index], document, drawn, left))
            except pypdfium2.PdfiumError:
                continue  # one broken page of many
            drawings.append(drawn)
            pages.append(found)
            left -= sum(map(len, found))
    pages = _without_edges(pages)
    if not any(pages):  # scanned: what it says is not known
        raise Unreadable("no text in it")
    return "\n\n".join(_with_notes(list(_blocks(map(with_tables, pages, drawings)))))


def _without_edges(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """The lines of each page but what most of them have at the same place at their edges, save its numbers."""
    outer = []
    for lines in pages:
        feet = sorted({round(foot_of(line)) for line in lines})
        edges = {*feet[:_EDGE], *feet[-_EDGE:]}
        named = [(round(foot_of(line)), size_of(line), _DIGITS.sub("0", _text(line))) for line in lines]
        outer.append([name if name[0] in edges else None for name in named])
    often = Counter(name for names in outer for name in {*names} - {None})
    most = max(_PAGES, len(pages) // 2 + 1)
    return [
        [line for line, name in zip(lines, names, strict=True) if often[name] < most]
        for lines, names in zip(pages, outer, strict=True)
    ]


def _text(line: Line) -> str:
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


def _lines(
    page: pypdfium2.PdfPage, document: pypdfium2.PdfDocument, drawings: Sequence[Drawing], most: int
) -> Iterator[Line]:
    """The lines of a page that show something, without blanks at their ends."""
    text = page.get_textpage()
    areas = list(itertools.islice(_areas(page, document), _LINKS))
    bullets = sorted(_bullets(drawings))
    box, line, is_over = raw.FS_RECTF(), Line(), False
    for index in range(min(text.count_chars(), most)):
        sign = chr(raw.FPDFText_GetUnicode(text, index))
        if sign in "\r\n":
            is_over = is_over or sign == "\n"
            continue
        if sign == "\0" or not raw.FPDFText_GetLooseCharBox(text, index, box):
            continue
        size = raw.FPDFText_GetFontSize(text, index)
        weight = raw.FPDFText_GetFontWeight(text, index)
        one = Sign(sign, box.left, box.right, box.bottom, box.top, size, weight >= 600)
        if is_over and not sign.isspace():
            if _is_shown(line) and not _follows(line, one):
                yield _bulleted(_linked(line, areas), bullets)
                line = []
            is_over = False
        line.append(one)
        is_over = is_over or sign in _HYPHENS
    if _is_shown(line):
        yield _bulleted(_linked(line, areas), bullets)


def _follows(line: Line, sign: Sign) -> bool:
    """Whether a sign stands right of `line`, one of both raised: PDFium takes some marks for lines."""
    last = next(one for one in reversed(line) if not one.text.isspace())
    low, high = sorted((last, sign), key=lambda one: one.foot)
    is_raised = high.size < _SMALLER * low.size and low.foot < high.foot < low.top
    return is_raised and -_RAISED * low.size <= sign.left - last.right <= _GAP * low.size


_Bullet = tuple[float, float, float]


def _drawings(page: pypdfium2.PdfPage) -> Iterator[Drawing]:
    left, foot, right, top = (ctypes.c_float() for _ in range(4))
    mode, stroke = ctypes.c_int(), ctypes.c_int()
    for drawing in page.get_objects(filter=[raw.FPDF_PAGEOBJ_PATH], max_depth=1):
        if not raw.FPDFPageObj_GetBounds(drawing, left, foot, right, top):
            continue
        is_stroked = raw.FPDFPath_GetDrawMode(drawing, mode, stroke) and stroke.value
        is_area = not is_stroked and raw.FPDFPath_CountSegments(drawing) <= _RECTANGLE
        yield Drawing(left.value, foot.value, right.value, top.value, is_area)


def _bullets(drawings: Sequence[Drawing]) -> Iterator[_Bullet]:
    """The middle, right edge and height of every drawing that is about as wide as it is high."""
    for one in drawings:
        wide, high = one.right - one.left, one.top - one.foot
        if high > 0 and _ROUND[0] <= wide / high <= _ROUND[1]:
            yield (one.foot + one.top) / 2, one.right, high


def _bulleted(line: Line, bullets: Sequence[_Bullet]) -> Line:
    """`line` with a bullet in front, if one of those in order is drawn there."""
    first = line[0]
    place = bisect(bullets, (first.foot,))
    for middle, right, high in bullets[place : place + _LINKS_OF_A_LINE]:
        is_beside = middle < first.top and 0 <= first.left - right <= _AWAY * first.size
        if is_beside and _DOT[0] * first.size <= high <= _DOT[1] * first.size:
            signs = (msgspec.structs.replace(first, text=text, url="") for text in "\u2022 ")
            return [*signs, *line]
    return line


def _is_shown(line: Line) -> bool:
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


def _linked(line: Line, areas: Sequence[_Area]) -> Line:
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


def _blocks(pages: Iterable[Sequence[Line | Table]]) -> Iterator[str]:
    """The blocks of Markdown that `pages` make."""
    found = list(_over_pages(pages))
    lines = [one for one in found if not isinstance(one, Table)]
    in_tables = [
        line for one in found if isinstance(one, Table) for row in one.rows for cell in row for line in cell
    ]
    sizes = Counter(round(sign.size, 1) for line in (*lines, *in_tables) for sign in line)
    levels = _levels(lines, sizes.most_common(1)[0][0])
    for is_line, group in itertools.groupby(found, lambda one: isinstance(one, list)):
        if is_line:
            yield from _paragraphs([one for one in group if isinstance(one, list)], levels)
            continue
        for table in group:
            if isinstance(table, Table):
                yield _table([[reduce(_joined, map(_words, cell), "") for cell in row] for row in table.rows])


def _over_pages(pages: Iterable[Sequence[Line | Table]]) -> list[Line | Table]:
    """Lines and tables in their order; a table that goes on over the end of a page is one."""
    found: list[Line | Table] = []
    for page in pages:
        begin = found[-1] if found else None
        rest = page[0] if page else None
        if isinstance(begin, Table) and isinstance(rest, Table) and len(begin.rows[0]) == len(rest.rows[0]):
            found[-1] = _whole(begin, rest)
            page = page[1:]
        found += page
    return found


def _whole(begin: Table, rest: Table) -> Table:
    """A table that the end of a page divides; its head may stand on both pages, and one of its rows may be cut."""
    rows = rest.rows
    if list(map(_texts, rows[0])) == list(map(_texts, begin.rows[0])):
        rows = rows[1:]
    if not begin.is_open or not rows:
        return Table(begin.rows + rows, rest.is_open)
    cut = [above + below for above, below in zip(begin.rows[-1], rows[0], strict=True)]
    return Table([*begin.rows[:-1], cut, *rows[1:]], rest.is_open)


def _texts(cell: Sequence[Line]) -> list[str]:
    return [_text(line) for line in cell]


def _paragraphs(lines: Sequence[Line], levels: Mapping[float, int]) -> Iterator[str]:
    cells = [_cells(line) for line in lines]
    paragraph, at = "", 0
    while at < len(lines):
        line, words = lines[at], _words(lines[at])
        end = at
        while end < len(lines) and len(cells[end]) == len(cells[at]) > 1:
            end += 1
        level = levels.get(size_of(line))
        begins = level is not None or end - at > 1 or _starts(words) or not _goes_on(lines, at)
        if begins and paragraph:
            yield paragraph
            paragraph = ""
        if end - at > 1:
            yield _table([[_words(cell) for cell in row] for row in cells[at:end]])
            at = end
            continue
        if level is not None:
            goes_on = (
                at + 1 < len(lines)
                and levels.get(size_of(lines[at + 1])) == level
                and _goes_on(lines, at + 1)
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


def _levels(lines: Sequence[Line], usual: float) -> dict[float, int]:
    """The level of headings, by their size."""
    larger = {
        size_of(line)
        for line in lines
        if size_of(line) > LARGER * usual and len(line) <= _LONGEST_HEADING and line[-1].text not in _SENTENCE
    }
    return {size: min(level, 6) for level, size in enumerate(sorted(larger, reverse=True), 1)}


def _starts(words: str) -> bool:
    return bool(_BULLET.match(words) or _NUMBER.match(words))


def _goes_on(lines: Sequence[Line], at: int) -> bool:
    """Whether a line stands directly below the one before it, and not further out."""
    if at == 0:
        return False
    above, line = lines[at - 1], lines[at]
    if above[-1].text in _HYPHENS:
        return True
    apart = foot_of(above) - foot_of(line)
    size = max(size_of(above), size_of(line))
    if apart < 0:  # at the head of the next page, or column
        begins = line[0].text
        same = size_of(above) == size_of(line) and above[-1].text not in _ENDS
        return same and (begins.islower() or begins > "\u2e7f" or above[-1].text == ",")
    return 0 < apart <= APART * size and above[0].left - line[0].left < _OUT * size


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


def _cells(line: Line) -> list[Line]:
    """The parts of a line between wide gaps."""
    cells, last = [Line()], line[0]
    for sign in line:
        if not sign.text.isspace():
            if sign.left - last.right > _GAP * sign.size:
                cells.append([])
            last = sign
        cells[-1].append(sign)
    return cells


def _table(rows: Sequence[Sequence[str]]) -> str:
    made = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([made[0], "|" + " --- |" * len(rows[0]), *made[1:]])


def _words(line: Line) -> str:
    """The signs of a line, its links and raised marks as Markdown has them."""
    pieces = []
    for url, linked in itertools.groupby(line, key=lambda sign: sign.url):
        signs = list(linked)
        text = _raised(signs, line)
        shown = text.strip()
        blanks = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        pieces.append(f"{blanks[0]}[{shown}](<{url}>){blanks[1]}" if url and shown else text)
    return "".join(pieces).strip()


def _raised(signs: Sequence[Sign], line: Line) -> str:
    """The text of `signs`, what is raised among those of its line in tags."""
    size, foot = size_of(line), foot_of(line)
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
