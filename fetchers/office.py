"""From a Word, PowerPoint or Excel file to its text. Slow and untrusted; the libraries are of the extra `files`.

Such a file is a ZIP archive of XML (ECMA-376), whose unpacked size is checked before it is opened.
"""

import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from datetime import datetime, time
from typing import TYPE_CHECKING, Any, Literal

from adjudge.fetchers.process import Extraction, Unreadable
from adjudge.fetchers.raised import raised

if TYPE_CHECKING:
    from docx.document import Document

MAX_UNPACKED_BYTES = 500_000_000
MAX_CELLS = 200_000

Office = Literal["word", "powerpoint", "excel"]

_FOLDERS: dict[str, Office] = {"word/": "word", "ppt/": "powerpoint", "xl/": "excel"}
# What the three libraries raise for a broken archive or broken XML (whose errors are SyntaxErrors).
_BROKEN = (
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
    except _BROKEN:
        return None
    if "[Content_Types].xml" not in names:
        return None
    return next(
        (kind for name in names for folder, kind in _FOLDERS.items() if name.startswith(folder)), None
    )


def read_office(body: bytes, kind: Office) -> Extraction:
    """Title and text of the file `body`, which `kind` says to open as. Raises Unreadable, of which MissingLibrary."""
    readers: dict[Office, Callable[[bytes], Extraction]] = {
        "word": _word,
        "powerpoint": _powerpoint,
        "excel": _excel,
    }
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > MAX_UNPACKED_BYTES:
            raise Unreadable(f"larger than {MAX_UNPACKED_BYTES:,} bytes unpacked")
        found = readers[kind](body)
    except ImportError as error:
        raise MissingLibrary(f"needs {error.name}; install it with: pip install 'adjudge[files]'") from error
    except Unreadable:
        raise
    except _BROKEN as error:
        raise Unreadable(f"cannot be opened: {error}") from error
    if not found.text.strip():
        raise Unreadable("has no text")
    return found


def _extraction(properties: Any, lines: Iterator[str]) -> Extraction:
    """With what a file's core properties say of it."""
    return Extraction(properties.title or "", properties.subject or "", "\n".join(lines).strip())


def _word(body: bytes) -> Extraction:
    import docx  # optional

    document = docx.Document(io.BytesIO(body))
    return _extraction(document.core_properties, _word_lines(document))


def _word_lines(document: "Document") -> Iterator[str]:
    """Paragraphs and tables in their order."""
    from docx.table import Table

    for block in document.iter_inner_content():
        if isinstance(block, Table):
            for row in block.rows:
                cells = {
                    id(cell._tc): cell for cell in row.cells
                }  # a merged cell is given for each of its places
                yield " | ".join(cell.text.strip() for cell in cells.values())
        else:
            yield _paragraph(block)


def _paragraph(paragraph: Any) -> str:
    from docx.text.run import Run

    text = ""
    for part in paragraph.iter_inner_content():
        is_raised = isinstance(part, Run) and part.font.superscript
        text += raised(text[-9:], part.text) if is_raised else part.text
    return text


def _powerpoint(body: bytes) -> Extraction:
    import pptx  # optional

    slides = pptx.Presentation(io.BytesIO(body))
    return _extraction(slides.core_properties, _slides(slides.slides))


def _slides(slides: Any) -> Iterator[str]:
    """Slide by slide: text, tables, and the speaker's notes."""
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


def _excel(body: bytes) -> Extraction:
    import openpyxl  # optional

    book = openpyxl.load_workbook(io.BytesIO(body), read_only=True, data_only=True)
    return _extraction(book.properties, _sheets(book))


def _sheets(book: Any) -> Iterator[str]:
    """Sheet by sheet, one line per row; of a formula, its last value."""
    cells = 0
    for sheet in book.worksheets:
        yield f"Sheet {sheet.title}"
        for row in sheet.iter_rows():
            cells += len(row)
            if cells > MAX_CELLS:
                raise Unreadable(f"more than {MAX_CELLS:,} cells")
            if any(cell.value is not None for cell in row):
                yield " | ".join(map(_cell, row))


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
