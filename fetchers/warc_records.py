"""The records of a WARC file, with limits: its headers, lengths and compression are untrusted."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from warcio.archiveiterator import WARCIterator
from warcio.bufferedreaders import ChunkedDataReader, DecompressingBufferedReader
from warcio.exceptions import ArchiveLoadFailed
from warcio.statusandheaders import StatusAndHeadersParser

from adjudge.fetchers.snapshot import SnapshotError
from adjudge.fetchers.urls import storable

_MAX_LINE = 64 << 10
_MAX_HEADERS = 256 << 10
# Web pages compress to a tenth; a file that grows beyond this is made to fill memory or disk.
_MAX_GROWTH = 200
_GROWTH_ALLOWED = 64 << 20
_PIECE = 64 << 10


class WarcError(SnapshotError):
    """The WARC file cannot be read; the message names the file, the record and the fault."""


class Record(NamedTuple):
    """One record: its named fields, and its block without HTTP headers and chunks. None: longer than allowed."""

    kind: str
    uri: str
    date: str
    identity: str
    refers_to: str
    content_type: str
    """Of the block; for a response the header of the page."""
    status: int
    """Of a response; 0 for other records, and where it is not a number."""
    location: str
    encoding: str
    body: bytes | None


def records(path: Path, max_bytes: int) -> Iterator[Record]:
    """Yield the records of the file `path`, in order. Raises WarcError and OSError.

    Reads at most 200 times as many bytes as the file has (and 64 MB); each block is read up to `max_bytes` only.
    """
    number = 1  # of the record being read
    with path.open("rb") as file:
        found = _Records(file, _GROWTH_ALLOWED + _MAX_GROWTH * path.stat().st_size)
        try:
            for raw in found:
                found.check()
                yield _record(raw, max_bytes)
                _to_the_end(raw.raw_stream)
                number += 1
            found.check()
        except (ArchiveLoadFailed, EOFError, ValueError, zlib.error) as error:
            why = "".join(char if char.isprintable() else " " for char in str(error)[:300]).strip()
            raise WarcError(f"{path}: record {number}: {why or 'is cut short'}") from error


class _Bounded(DecompressingBufferedReader):  # type: ignore[misc]  # untyped
    """Reads lines, headers and compressed blocks up to their limits, and says where the file is cut short."""

    def __init__(self, file: BinaryIO, limit: int) -> None:
        self._fed = False
        self._limit = limit
        self._headers = 0
        super().__init__(file)

    def begin_record(self) -> None:
        self._headers = 0

    def readline(self, length: int | None = None) -> bytes:
        wanted = _MAX_LINE if length is None else min(length, _MAX_LINE)
        line: bytes = super().readline(wanted)
        self._headers += len(line)
        if len(line) == _MAX_LINE or self._headers > _MAX_HEADERS:
            raise ValueError(f"headers longer than {_MAX_HEADERS >> 10} KB")
        return line

    def _process_read(self, data: bytes) -> None:
        if not data and self._fed and self.decompressor is not None and not self.decompressor.eof:
            raise ValueError("the compressed data is cut short")
        super()._process_read(data)
        if self.num_read > self._limit:
            raise ValueError(f"more than {_MAX_GROWTH} times as long as the file, once decompressed")

    def _init_decomp(self, decomp_type: str | None) -> None:
        self._fed = False
        super()._init_decomp(decomp_type)

    def _decompress(self, data: bytes) -> bytes:
        self._fed = True
        # What begins otherwise than gzip is not compressed; later errors are damage.
        if self.decompressor is None or self.num_block_read == 0:
            return bytes(super()._decompress(data))
        return bytes(self.decompressor.decompress(data))


class _Records(WARCIterator):  # type: ignore[misc]  # untyped
    INC_RECORD = ""  # `check` reports it instead of standard error

    def __init__(self, file: BinaryIO, limit: int) -> None:
        super().__init__(file, no_record_parse=True)
        self.reader = _Bounded(file, limit)

    def check(self) -> None:
        """Raise ValueError if the record before did not end where its length says."""
        if self.err_count:
            raise ValueError("does not begin where the one before ends; a Content-Length is wrong")
        if self.reader is not None:
            self.reader.begin_record()


def _record(raw: Any, max_bytes: int) -> Record:
    headers = raw.rec_headers
    stream = raw.raw_stream
    if headers.get_header("Content-Length") is None or not hasattr(stream, "limit"):
        raise ValueError("has no valid Content-Length")
    kind, uri = str(raw.rec_type or ""), str(headers.get_header("WARC-Target-URI") or "")
    http = None
    if kind == "response" and uri.lower().startswith(("http:", "https:")) and stream.limit:
        http = StatusAndHeadersParser(["HTTP/"], verify=False).parse(stream)
    chunked = http is not None and (http.get_header("Transfer-Encoding") or "").lower() == "chunked"
    body = None
    if stream.limit <= max_bytes:
        body = (ChunkedDataReader(stream) if chunked else stream).read(max_bytes)
    status = http.get_statuscode() if http is not None else ""
    return Record(
        kind=kind,
        uri=uri,
        date=str(headers.get_header("WARC-Date") or ""),
        identity=str(headers.get_header("WARC-Record-ID") or ""),
        refers_to=str(headers.get_header("WARC-Refers-To") or ""),
        content_type=_header(http, "Content-Type") if http is not None else str(raw.content_type or ""),
        status=int(status) if status.isascii() and status.isdigit() and len(status) == 3 else 0,
        location=_header(http, "Location"),
        encoding=_header(http, "Content-Encoding"),
        body=body,
    )


def _header(http: Any, name: str) -> str:
    return storable(str(http.get_header(name) or "")) if http is not None else ""


def _to_the_end(stream: Any) -> None:
    while stream.read(_PIECE):
        pass
    if stream.limit:
        raise ValueError("is cut short; its Content-Length is wrong, or the end of the file is missing")
