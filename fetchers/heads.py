"""Heads of responses as browsers take them: what is wrong with their lines, and how long the body is.

aiohttp's parser refuses a response for one odd line. Browsers leave the line out, and where the head says twice how
long the body is they follow RFC 9112, 6.3: chunks before a length, and equal lengths are one; what is no number is no
length. Lengths that differ are refused here as there.
"""

import asyncio
import re
from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

LARGEST_HEAD = 256 << 10
"""Bytes; more than browsers take."""
_END = re.compile(rb"\n\r?\n")
_LINE_END = re.compile(
    rb"\n(?![ \t])"
)  # what follows in a line that begins with a space belongs to the one before
_STATUS = re.compile(rb"HTTP/(\d\.\d)[ \t]+(\d{3}\b.*)", re.I | re.S)
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_STRAY = re.compile(rb"\r(?!\Z)")
_BEGINNING = b"HTTP/"
_INTERIM = re.compile(rb"HTTP/1\.[01] 1(?!01)")


class Connector(aiohttp.TCPConnector):
    """Connections whose responses are read as browsers read them. Options as in aiohttp's."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._factory = partial(_handler, loop=asyncio.get_running_loop())


def _handler(loop: asyncio.AbstractEventLoop) -> ResponseHandler:
    return _Handler(loop)


class _Handler(ResponseHandler):
    """Holds the head of a response until it is there, and hands on what it means."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._held: bytearray | None = None  # None: what arrives is no head

    def set_response_params(self, **options: Any) -> None:
        self._held = bytearray()
        super().set_response_params(**options)

    def data_received(self, data: bytes) -> None:
        while self._held is not None:
            if not self._held and not (data := data.lstrip(b"\r\n")):
                self.start_timeout()
                return
            searched = max(0, len(self._held) - 3)
            self._held += data
            end = _END.search(self._held, searched)
            if end is not None:
                head, data = bytes(self._held[: end.end()]), bytes(self._held[end.end() :])
                self._held = bytearray() if _INTERIM.match(head) else None
                self._hand_on(head)
                if not data:
                    return
            elif len(self._held) > LARGEST_HEAD or not _BEGINNING.startswith(
                self._held[: len(_BEGINNING)].upper()
            ):
                data, self._held = bytes(self._held), None
            else:
                self.start_timeout()
                return
        super().data_received(data)  # nothing at all resumes a parser that paused

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._held:
            super().data_received(bytes(self._held))
        super().connection_lost(exc)

    def _hand_on(self, head: bytes) -> None:
        meant = as_meant(head)
        super().data_received(meant)
        if meant is not head:
            self.force_close()  # where a head is in doubt, so is what follows the body


def as_meant(head: bytes) -> bytes:
    """The `head` of a response, to its empty line, without what browsers pass over; itself if there is nothing."""
    status, *lines, empty, _ = _LINE_END.split(head)
    status = _STATUS.sub(rb"HTTP/\1 \2", status)
    fields = []
    for line in lines:
        name, colon, value = line.partition(b":")
        name = name.rstrip(b" \t")
        if colon and _NAME.fullmatch(name):
            fields.append((name.lower(), name + colon + _STRAY.sub(b" ", value)))
    meant = b"\n".join((status, *(line for _, line in _one_length(fields)), empty, b""))
    return head if meant == head else meant


def _one_length(fields: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The fields, with one that says how long the body is."""
    codings = _values(fields, b"transfer-encoding")
    if b"chunked" in codings:
        if set(codings) <= {b"chunked", b"identity"}:
            fields = _only(fields, b"transfer-encoding", b"Transfer-Encoding: chunked\r")
        return _only(fields, b"content-length", None)
    lengths = _values(fields, b"content-length")
    if lengths and not any(map(bytes.isdigit, lengths)):
        fields = _only(fields, b"content-length", None)
    elif len(set(lengths)) == 1:
        fields = _only(fields, b"content-length", b"Content-Length: %b\r" % lengths[0])
    return _only(fields, b"transfer-encoding", None)


def _values(fields: list[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    found = (line.partition(b":")[2].split(b",") for field, line in fields if field == name)
    return [value.strip().lower() for values in found for value in values]


def _only(fields: list[tuple[bytes, bytes]], name: bytes, line: bytes | None) -> list[tuple[bytes, bytes]]:
    """The fields with `line` in place of those called `name`, if there are several or they are to go."""
    there = [at for at, (field, _) in enumerate(fields) if field == name]
    if not there or (line is not None and len(there) == 1 and len(_values(fields, name)) == 1):
        return fields
    rest = [field for at, field in enumerate(fields) if at not in there[1:]]
    rest[there[0] : there[0] + 1] = [] if line is None else [(name, line)]
    return rest
