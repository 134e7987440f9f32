"""Files of a task as sources: the text of text, Markdown, HTML, PDF, Word, PowerPoint, Excel and CSV files.

Images, audio and video are kept as files, for judges that accept them. Only format readers open files, and only inside
the data set's folder: no path in a report can lead to one.
"""

import base64
from pathlib import Path

from adjudge.engine.formats.input_files import MAX_FILE_BYTES
from adjudge.fetchers.extract import extract
from adjudge.fetchers.office import MissingLibrary, Office, read_office
from adjudge.fetchers.process import Unreadable
from adjudge.judges import Media
from adjudge.scoring.dr3_eval.sandbox import Source

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
_OFFICE: dict[str, Office] = {".docx": "word", ".pptx": "powerpoint", ".xlsx": "excel"}
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

READABLE = frozenset(_TYPES) | frozenset(_OFFICE) | frozenset(_MEDIA)
"""The suffixes of files that can be read."""


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
        try:
            return Source(name=file.name, text=read_office(body, _OFFICE[suffix]).text)
        except MissingLibrary as error:
            raise MissingReader(f"{file}: {error}") from error
        except Unreadable as error:
            raise DocumentError(f"{file}: {error}") from error
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
