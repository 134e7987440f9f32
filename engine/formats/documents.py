"""Files of a task as sources: the text of text, Markdown, HTML, PDF, Word, PowerPoint, Excel and CSV files.

Images, audio and video are kept as files, for judges that accept them. Only format readers open files, and only inside
the data set's folder: no path in a report can lead to one.
"""

import base64
import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from adjudge.fetchers.extract import extract
from adjudge.fetchers.process import Unreadable
from adjudge.judges import Media
from adjudge.scoring.dr3_eval.sandbox import Source

MAX_FILE_BYTES = 50_000_000
MAX_UNPACKED_BYTES = 500_000_000
MAX_CELLS = 200_000

_TYPES = {
    ".txt": "text/plain",
    ".md": "text/plain",
    ".markdown": "text/plain",
    ".csv": "text/plain",
    ".tsv": "text/plain",
    ".json": "text/plain",
    ".jsonl": "text/plain",
    ".html": "text/html",
    ".htm": "text/html",
    ".xml": "text/xml",
    ".pdf": "application/pdf",
}
_OFFICE = frozenset({".docx", ".pptx", ".xlsx"})
_MEDIA = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".mp3": "audio/mp3",
    ".wav": "audio/wav",
    ".flac": "audio/flac",
    ".ogg": "audio/ogg",
    ".m4a": "audio/m4a",
    ".mp4": "video/mp4",
    ".webm": "video/webm",
    ".mov": "video/quicktime",
    ".avi": "video/x-msvideo",
}

READABLE = frozenset(_TYPES) | _OFFICE | frozenset(_MEDIA)
"""The suffixes of files that can be read."""

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


class DocumentError(ValueError):
    """A file that cannot be read: its name, and why."""


class MissingReader(DocumentError):
    """A file whose library, of the optional extra `files`, is not installed."""


def read_source(file: Path) -> Source:
    """The user's file `file` as a source under its name. Raises DocumentError."""
    suffix = file.suffix.lower()
    try:
        size = file.stat().st_size
        body = file.read_bytes() if size <= MAX_FILE_BYTES else b""
    except OSError as error:
        raise DocumentError(f"{file}: cannot be read: {error.strerror}") from error
    if size > MAX_FILE_BYTES:
        raise DocumentError(f"{file}: larger than {MAX_FILE_BYTES} bytes")
    if suffix in _MEDIA:
        media = Media(file.name, _MEDIA[suffix], base64.b64encode(body).decode())
        return Source(name=file.name, media=media)
    if suffix in _OFFICE:
        return Source(name=file.name, text=_office(file, body))
    if suffix not in _TYPES:
        raise DocumentError(f"{file}: unsupported file type")
    try:
        text = extract(body, _TYPES[suffix], "trafilatura").text
        around = _around(body) if _TYPES[suffix] == "text/plain" else ("", "")
        return Source(name=file.name, text=text, around=around)
    except Unreadable as error:
        raise DocumentError(f"{file}: {error}") from error


def _around(body: bytes) -> tuple[str, str]:
    """The white space before and behind the text in a text file's `body`."""
    text = body.decode("utf-8", "ignore")
    return text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]


def _office(file: Path, body: bytes) -> str:
    """The text of an Office file: a ZIP archive of XML, whose unpacked size is checked before it is opened."""
    readers = {".docx": _word, ".pptx": _powerpoint, ".xlsx": _excel}
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > MAX_UNPACKED_BYTES:
            raise ValueError(f"larger than {MAX_UNPACKED_BYTES} bytes unpacked")
        text = "\n".join(readers[file.suffix.lower()](body)).strip()
    except ImportError as error:
        raise MissingReader(
            f"{file}: needs {error.name}; install it with: pip install 'adjudge[files]'"
        ) from error
    except _BROKEN as error:
        raise DocumentError(f"{file}: cannot be opened: {error}") from error
    if not text:
        raise DocumentError(f"{file}: has no text")
    return text


def _word(body: bytes) -> Iterator[str]:
    """Paragraphs and tables in their order."""
    import docx  # optional
    from docx.table import Table

    for block in docx.Document(io.BytesIO(body)).iter_inner_content():
        if isinstance(block, Table):
            for row in block.rows:
                yield " | ".join(cell.text.strip() for cell in row.cells)
        else:
            yield block.text


def _powerpoint(body: bytes) -> Iterator[str]:
    """Slide by slide: text, tables, and the speaker's notes."""
    import pptx  # optional

    for number, slide in enumerate(pptx.Presentation(io.BytesIO(body)).slides, 1):
        yield f"Slide {number}"
        for shape in slide.shapes:
            if shape.has_text_frame:
                yield shape.text_frame.text
            if shape.has_table:
                for row in shape.table.rows:
                    yield " | ".join(cell.text.strip() for cell in row.cells)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            yield slide.notes_slide.notes_text_frame.text


def _excel(body: bytes) -> Iterator[str]:
    """Sheet by sheet, one line per row; of a formula, its last value."""
    import openpyxl  # optional

    book = openpyxl.load_workbook(io.BytesIO(body), read_only=True, data_only=True)
    cells = 0
    for sheet in book.worksheets:
        yield f"Sheet {sheet.title}"
        for row in sheet.iter_rows(values_only=True):
            cells += len(row)
            if cells > MAX_CELLS:
                raise ValueError(f"more than {MAX_CELLS} cells")
            if any(value is not None for value in row):
                yield " | ".join("" if value is None else str(value) for value in row)
