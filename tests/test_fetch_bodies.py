"""Bodies as they travel: their content codings, their limits, and their ends."""

import gzip
import sys
import zlib
from collections.abc import AsyncIterator

import aiohttp
import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.fetchers.bodies import receive
from adjudge.fetchers.failures import Failure

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TEXT = b"<p>The bridge was built in 1932 and repaired twice since then.</p>" * 40 + b"</html>\n"
LIMIT = 10 << 20


def bare(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


CODINGS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": bare,
    "br": brotli.compress,
    "zstd": zstd.compress,
}


async def pieces(data: bytes, size: int, *, cut: bool = False) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]
    if cut:
        raise aiohttp.ClientPayloadError("it ends here")


async def undone(
    data: bytes, encoding: str, *, size: int = 1000, limit: int = LIMIT, cut: bool = False
) -> bytes:
    return (await receive(pieces(data, size, cut=cut), encoding, limit, "text/html")).content


@given(
    data=st.binary(max_size=3000),
    names=st.lists(st.sampled_from([*CODINGS, "identity", "none", "utf-8", ""]), max_size=3),
    size=st.integers(1, 700),
)
async def test_codings_are_undone_and_unknown_ones_passed_over(
    data: bytes, names: list[str], size: int
) -> None:
    packed = data
    for name in names:
        packed = CODINGS.get(name, lambda same: same)(packed)
    plain = not any(name in CODINGS for name in names)
    if plain and packed.startswith(b"\x1f\x8b"):
        return
    assert (await receive(pieces(packed, size), ", ".join(names), LIMIT)).content == data


async def test_gzip_needs_no_label() -> None:
    assert await undone(gzip.compress(TEXT), "") == TEXT


@pytest.mark.parametrize("name", CODINGS)
async def test_sums_are_limited_at_every_coding(name: str) -> None:
    bomb = CODINGS[name](bytes(64 << 20))
    for encoding, body in ((name, bomb), (f"{name}, gzip", gzip.compress(bomb))):
        with pytest.raises(Failure) as found:
            await undone(body, encoding, limit=1 << 20)
        assert found.value.reason == "page_unsupported"


@pytest.mark.parametrize(
    ("data", "encoding", "whole"),
    [
        (gzip.compress(TEXT, mtime=0)[:-8], "gzip", True),
        (TEXT, "", True),
        (b"%PDF-1.7 and more\n%%EOF\n", "", True),
        (TEXT[:-12], "", False),
        (gzip.compress(TEXT, mtime=0)[:-20], "gzip", False),
        (b"plain text", "", False),
    ],
)
async def test_cut_body_is_whole_if_its_end_is_there(data: bytes, encoding: str, whole: bool) -> None:
    if whole:
        assert (await undone(data, encoding, cut=True)).startswith(data[:3] if not encoding else TEXT[:3])
    else:
        with pytest.raises((Failure, aiohttp.ClientPayloadError)):
            await undone(data, encoding, cut=True)


@pytest.mark.parametrize("name", CODINGS)
async def test_false_coding_is_a_failure_or_the_text(name: str) -> None:
    try:
        assert await undone(TEXT, name) in (TEXT, b"")
    except Failure as failure:
        assert failure.reason == "page_server_error"


async def test_unreadable_bytes_are_given_up_early() -> None:
    taken = 0

    async def video() -> AsyncIterator[bytes]:
        nonlocal taken
        for _ in range(1000):
            taken += 1
            yield bytes(range(256)) * 8

    with pytest.raises(Failure, match="not a text"):
        await receive(video(), "", LIMIT, "application/octet-stream")
    assert taken == 1
