"""From a Word, PowerPoint or Excel file to its text. Slow and untrusted; the libraries are of the extra `files`.

Such a file is a ZIP archive of XML (ECMA-376), whose unpacked size is checked before it is opened.
"""

import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from datetime import datetime, time
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from lxml import etree

from adjudge.fetchers.process import Extraction, Unreadable
from adjudge.fetchers.raised import raised

if TYPE_CHECKING:
    from docx.document import Document

MAX_UNPACKED_BYTES = 500_000_000
MAX_CELLS = 200_000

T = TypeVar("T")

Office = Literal["word", "powerpoint", "excel"]

_FOLDERS: dict[str, Office] = {"word/": "word", "ppt/": "powerpoint", "xl/": "excel"}
# What the three libraries raise for a broken archive or broken XML (whose errors are SyntaxErrors).
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    SyntaxError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    OSError,
    RuntimeError,
)


class MissingLibrary(Unreadable):
    """A file whose library, of the optional extra `files`, is not installed."""


def office_kind(body: bytes) -> Office | None:
    """Which program's file `body` is, by the names in its archive; None if it is none."""
    if not body.startswith(b"PK\x03\x04"):
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            names = archive.namelist()
    except BROKEN:
        return None
    if "[Content_Types].xml" not in names:
        return None
    return next(
        (kind for name in names for folder, kind in _FOLDERS.items() if name.startswith(folder)), None
    )


def check_size(body: bytes) -> None:
    """Raise Unreadable for an archive that is too large unpacked, and BROKEN for what is no archive."""
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    if unpacked > MAX_UNPACKED_BYTES:
        raise Unreadable(f"larger than {MAX_UNPACKED_BYTES:,} bytes unpacked")


def repacked(body: bytes, change: Callable[[str, bytes], bytes]) -> bytes:
    """The XML of the archive `body`, each file as `change` makes it of its name and content; without pictures."""
    made = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(body)) as archive,
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for name in dict.fromkeys(archive.namelist()):
            if name.endswith((".xml", ".rels")):
                packed.writestr(name, change(name, archive.read(name)))
    return made.getvalue()


def read_office(body: bytes, kind: Office) -> Extraction:
    """Title and text of the file `body`, which `kind` says to open as. Raises Unreadable, of which MissingLibrary."""
    readers: dict[Office, Callable[[bytes], Extraction]] = {
        "word": _word,
        "powerpoint": _powerpoint,
        "excel": _excel,
    }
    found = _opened(body, readers[kind])
    if not found.text.strip():
        raise Unreadable("has no text")
    return found


def read_sheet(body: bytes) -> list[tuple[int, list[str]]]:
    """The rows of the Excel file `body` that are not empty, by their numbers from 1.

    Raises Unreadable, of which MissingLibrary, also for rows in several sheets.
    """
    filled = [(title, rows) for title, rows in _opened(body, lambda it: [*_sheets(_book(it))]) if rows]
    if len(filled) > 1:
        names = ", ".join(title for title, _ in filled)
        raise Unreadable(f"has rows in several sheets ({names}); save the sheet that is meant as .csv")
    return filled[0][1] if filled else []


def _opened(body: bytes, read: Callable[[bytes], T]) -> T:
    """What `read` makes of `body`. Raises Unreadable, of which MissingLibrary."""
    try:
        check_size(body)
        return read(body)
    except ImportError as error:
        raise MissingLibrary(f"needs {error.name}; install it with: pip install 'adjudge[files]'") from error
    except Unreadable:
        raise
    except BROKEN as error:
        raise Unreadable(f"cannot be opened: {error}") from error


def _extraction(properties: Any, lines: Iterator[str]) -> Extraction:
    """With what a file's core properties say of it."""
    return Extraction(properties.title or "", properties.subject or "", "\n".join(lines).strip())


def _word(body: bytes) -> Extraction:
    import docx  # optional

    document = docx.Document(io.BytesIO(body))
    return _extraction(document.core_properties, _word_lines(document))


# Of Word's markup: what may hold paragraphs, and what is not shown in its place.
_HOLDERS = frozenset(("sdt", "sdtContent", "customXml", "ins", "moveTo"))
_NOT_SHOWN = frozenset(("del", "moveFrom", "pPr", "sdtPr", "AlternateContent"))
_NOTES = ("/footnotes", "/endnotes")


def _word_lines(document: "Document") -> Iterator[str]:
    """Paragraphs and tables in their order, then the notes."""
    from docx.oxml import parse_xml

    yield from _blocks(document.element.body, document)
    for relation in document.part.rels.values():
        if relation.reltype.endswith(_NOTES):
            for note in parse_xml(relation.target_part.blob):
                yield from _blocks(note, document)


def _blocks(parent: Any, document: "Document") -> Iterator[str]:
    """The paragraphs, tables and text boxes within an element."""
    from docx.table import Table

    for block in parent:
        name = _local(block)
        if name == "p":
            yield "".join(_pieces(block, []))
            for box in block.iterdescendants("{*}txbxContent"):
                if not any(_local(above) == "Fallback" for above in box.iterancestors()):
                    yield from _blocks(box, document)
        elif name == "tbl":
            for row in Table(block, document).rows:
                # A merged cell is given for each of its places.
                cells = {id(cell._tc): cell for cell in row.cells}
                yield " | ".join("\n".join(_blocks(cell._tc, document)).strip() for cell in cells.values())
        elif name in _HOLDERS:
            yield from _blocks(block, document)


def _pieces(parent: Any, before: list[str]) -> list[str]:
    """`before`, and the text of the runs and formulas within an element as they are shown."""
    from docx.oxml.text.run import CT_R
    from docx.text.font import Font

    for node in parent:
        if isinstance(node, CT_R):
            font = Font(node)
            if not font.hidden:
                text = node.text
                before.append(raised("".join(before[-9:])[-9:], text) if font.superscript else text)
        elif _local(node) == "t":  # of a formula
            before.append(node.text or "")
        elif _local(node) not in _NOT_SHOWN:
            _pieces(node, before)
    return before


def _local(node: Any) -> str:
    return str(node.tag).rpartition("}")[2]


def _powerpoint(body: bytes) -> Extraction:
    import pptx  # optional

    slides = pptx.Presentation(io.BytesIO(body))
    return _extraction(slides.core_properties, _slides(slides.slides))


def _slides(slides: Any) -> Iterator[str]:
    """Slide by slide: text, tables, charts, and the speaker's notes."""
    for number, slide in enumerate(slides, 1):
        yield f"Slide {number}"
        yield from _shapes(slide.shapes)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            yield slide.notes_slide.notes_text_frame.text


def _shapes(shapes: Any) -> Iterator[str]:
    for shape in shapes:
        if hasattr(shape, "shapes"):  # a group
            yield from _shapes(shape.shapes)
        elif shape.has_text_frame:
            yield shape.text_frame.text
        elif shape.has_table:
            for row in shape.table.rows:
                yield " | ".join(cell.text.strip() for cell in row.cells)
        elif shape.has_chart:
            yield from _chart(shape.chart)


def _chart(chart: Any) -> Iterator[str]:
    """The table behind a chart: its categories, then a line for each series."""
    for plot in chart.plots:
        yield " | ".join(["", *map(str, plot.categories)]).strip()
        for series in plot.series:
            yield " | ".join(
                [series.name, *("" if value is None else f"{value:.12g}" for value in series.values)]
            )


def _excel(body: bytes) -> Extraction:
    book = _book(body)
    return _extraction(book.properties, _lines(book))


def _book(body: bytes) -> Any:
    import openpyxl  # optional

    load = partial(openpyxl.load_workbook, read_only=True, data_only=True)
    try:
        return load(io.BytesIO(body))
    except (TypeError, ValueError):  # styles that Excel takes and openpyxl does not, such as an empty fill
        return load(_with_bare_styles(body))


_STYLES = "xl/styles.xml"
_NAMES = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_BARE = (
    f'<styleSheet xmlns="{_NAMES}">'
    "<fonts><font/></fonts><fills><fill><patternFill/></fill></fills><borders><border/></borders>"
    "<cellStyleXfs><xf/></cellStyleXfs><cellXfs/>"
    '<cellStyles><cellStyle name="Normal" xfId="0"/></cellStyles></styleSheet>'
)


def _with_bare_styles(body: bytes) -> io.BytesIO:
    """The book with no more of its styles than how numbers are shown."""
    return io.BytesIO(repacked(body, lambda name, content: _bare(content) if name == _STYLES else content))


def _bare(styles: bytes) -> bytes:
    own = etree.fromstring(styles, etree.XMLParser(resolve_entities=False, no_network=True))
    sheet = etree.fromstring(_BARE)
    cells = sheet.find("{*}cellXfs")
    for cell in own.iterfind("{*}cellXfs/{*}xf"):
        etree.SubElement(cells, f"{{{_NAMES}}}xf", numFmtId=cell.get("numFmtId", "0"))
    if (formats := own.find("{*}numFmts")) is not None:
        sheet.insert(0, formats)
    return bytes(etree.tostring(sheet))


def _lines(book: Any) -> Iterator[str]:
    """Sheet by sheet, one line per row."""
    for title, rows in _sheets(book):
        yield f"Sheet {title}"
        yield from (" | ".join(cells) for _, cells in rows)


def _sheets(book: Any) -> Iterator[tuple[str, list[tuple[int, list[str]]]]]:
    """The sheets that are shown, each with its rows that are not empty, by number; of a formula, its last value."""
    seen = 0
    for sheet in book.worksheets:
        if sheet.sheet_state != "visible":
            continue
        rows = []
        for number, row in enumerate(sheet.iter_rows(), 1):
            seen += len(row)
            if seen > MAX_CELLS:
                raise Unreadable(f"more than {MAX_CELLS:,} cells")
            if any(cell.value is not None for cell in row):
                rows.append((number, [*map(_cell, row)]))
        yield sheet.title, rows


def _cell(cell: Any) -> str:
    """A cell as it is shown, as far as that changes its meaning: 12.5% and not 0.125, a day without a time."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, datetime) and value.time() == time.min:
        return value.date().isoformat()
    if isinstance(value, float) and "%" in (cell.number_format or ""):
        return f"{value * 100:.12g}%"
    return str(value)
