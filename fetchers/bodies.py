"""A body as it was meant: received within a byte limit, its content codings undone, its end told by itself.

Bodies are read piece by piece and checked against their limit at every piece, before and after each coding.
"""

import asyncio
import hashlib
import sys
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple, Protocol

import aiohttp
import brotli

from adjudge.fetchers.failures import Failure, LargeFile, TooLarge
from adjudge.fetchers.page import could_be_read, kind_of

if sys.version_info >= (3, 14):
    from compression.zstd import DecompressionParameter, ZstdDecompressor, ZstdError
else:
    from backports.zstd import DecompressionParameter, ZstdDecompressor, ZstdError

ACCEPT_ENCODING = "gzip, deflate, br, zstd"
_PIECE = 1 << 18
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_WINDOW = 23  # RFC 9659: 8 MB
_MOST_CODINGS = 3
_OPENING = 1024
_CUT_SHORT = Failure("page_server_error", "its content encoding is cut short", again=True)


class Body(NamedTuple):
    """A body after its content encoding was undone, and its SHA-256 in hex."""

    content: bytes
    sha256: str


async def receive(
    pieces: AsyncIterator[bytes],
    encoding: str,
    max_bytes: int,
    content_type: str | None = None,
    *,
    enough: int | None = None,
) -> Body:
    """All of a body. Raises Failure if it is larger than `max_bytes` before or after decoding, or broken.

    `encoding` is the Content-Encoding header. As in browsers, codings that do not exist are passed over, and gzip is
    undone without a label too. A body that breaks off is whole if it ends as documents of its kind do. With a
    `content_type`, a body that begins as nothing that can be read is given up there; a PDF beyond `max_bytes` is a
    LargeFile. Of a body longer than `enough` bytes, its first ones will do.
    """
    content = bytearray()
    coding: _Coding | None = None
    travelled, looked = 0, content_type is None
    try:
        async for piece in pieces:
            travelled += len(piece)
            if coding is None:
                coding = _Coding(encoding, piece, max_bytes)
            for decoded in coding.undo(piece):
                content += decoded
                if enough is not None and len(content) >= enough:
                    return _body(bytes(content[:enough]))
                if len(content) > max_bytes:
                    raise TooLarge(max_bytes)
                if not looked and len(content) >= _OPENING and content_type is not None:
                    looked = True
                    if not could_be_read(content_type, bytes(content[:_OPENING])):
                        raise Failure("page_unsupported", "its bytes are not a text")
                if len(decoded) >= _PIECE and coding.decodes:
                    await asyncio.sleep(0)  # one small piece may hold a thousand large ones
            if travelled > max_bytes:
                raise TooLarge(max_bytes)
        if coding is not None and not coding.complete:
            raise _CUT_SHORT
    except (aiohttp.ClientPayloadError, Failure) as error:
        if isinstance(error, TooLarge) and kind_of(content_type or "", bytes(content[:_OPENING])) == "pdf":
            raise LargeFile(error.reason, error.detail) from None
        cut = error is _CUT_SHORT or isinstance(error, aiohttp.ClientPayloadError)
        if not (cut and _ends_itself(content)):
            raise
    return _body(bytes(content))


def _body(content: bytes) -> Body:
    return Body(content, hashlib.sha256(content).hexdigest())


def _ends_itself(content: bytearray) -> bool:
    """Whether `content` ends with the mark that says that nothing follows."""
    end = bytes(content[-64:]).rstrip().lower()
    return end.endswith(b"</html>") or end.endswith(b"%%eof")


class _Decoder(Protocol):
    @property
    def complete(self) -> bool: ...

    def feed(self, data: bytes) -> tuple[bytes, bytes, bool]:
        """About 256 KB of what `data` holds, what of `data` is left, and whether there may be more."""
        ...


class _Coding:
    """The codings of a body, undone from the last to the first."""

    def __init__(self, encoding: str, opening: bytes, max_bytes: int) -> None:
        names = [name.strip().lower() for name in encoding.split(",")]
        made = [made for made in map(_decoder, reversed(names)) if made is not None]
        if len(made) > _MOST_CODINGS:
            raise Failure("page_unsupported", f"more than {_MOST_CODINGS} content encodings")
        if not made and opening.startswith(_GZIP):
            made = [_Inflate()]
        self._decoders = made
        self._produced = [0] * len(made)
        self._max_bytes = max_bytes

    @property
    def decodes(self) -> bool:
        return bool(self._decoders)

    @property
    def complete(self) -> bool:
        return all(decoder.complete for decoder in self._decoders)

    def undo(self, data: bytes, stage: int = 0) -> Iterator[bytes]:
        if stage == len(self._decoders):
            yield data
            return
        more = True
        while more:
            try:
                decoded, data, more = self._decoders[stage].feed(data)
            except (zlib.error, brotli.error, ZstdError) as error:
                raise Failure("page_server_error", f"its content encoding is corrupt: {error}") from None
            self._produced[stage] += len(decoded)
            if self._produced[stage] > self._max_bytes:
                raise TooLarge(self._max_bytes)
            yield from self.undo(decoded, stage + 1)


def _decoder(name: str) -> _Decoder | None:
    if name in ("gzip", "x-gzip", "deflate"):
        return _Inflate()
    if name == "br":
        return _Brotli()
    return _Zstd() if name == "zstd" else None


class _Inflate:
    """Gzip in any number of members, zlib, or the bare deflate that some servers send as "deflate"."""

    def __init__(self) -> None:
        self._stream: zlib._Decompress | None = None

    @property
    def complete(self) -> bool:
        return self._stream is None or self._stream.eof

    def feed(self, data: bytes) -> tuple[bytes, bytes, bool]:
        if self._stream is None or self._stream.eof:
            if not data or (self._stream and not data.startswith(b"\x1f")):
                return b"", b"", False  # nothing, or padding after the last member
            known = data[0] == 0x1F or data[0] & 0x0F == 8
            self._stream = zlib.decompressobj(zlib.MAX_WBITS | 32 if known else -zlib.MAX_WBITS)
        decoded = self._stream.decompress(data, _PIECE)
        rest = self._stream.unconsumed_tail or self._stream.unused_data
        return decoded, rest, bool(rest) or len(decoded) == _PIECE


class _Brotli:
    def __init__(self) -> None:
        self._stream = brotli.Decompressor()
        self._begun = False

    @property
    def complete(self) -> bool:
        return not self._begun or self._stream.is_finished()

    def feed(self, data: bytes) -> tuple[bytes, bytes, bool]:
        if self._stream.is_finished() or not (data or self._begun):
            return b"", b"", False
        self._begun = True
        decoded = self._stream.process(data, output_buffer_limit=_PIECE)
        return decoded, b"", bool(decoded) and not self._stream.is_finished()


class _Zstd:
    """Any number of frames."""

    def __init__(self) -> None:
        self._stream: ZstdDecompressor | None = None

    @property
    def complete(self) -> bool:
        return self._stream is None or self._stream.eof

    def feed(self, data: bytes) -> tuple[bytes, bytes, bool]:
        if self._stream is None or self._stream.eof:
            if not data or (self._stream and not data.startswith(_ZSTD)):
                return b"", b"", False
            self._stream = ZstdDecompressor(options={DecompressionParameter.window_log_max: _ZSTD_WINDOW})
        decoded = self._stream.decompress(data, _PIECE)
        if self._stream.eof:
            return decoded, self._stream.unused_data, bool(self._stream.unused_data)
        return decoded, b"", not self._stream.needs_input
