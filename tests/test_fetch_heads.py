"""Heads of responses that browsers take and strict parsers do not."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.fetchers.heads import as_meant
from adjudge.fetchers.http import HttpFetcher
from adjudge.fetchers.limits import Limits
from tests.servers.base import Exchange, Server
from tests.servers.hostile import ARTICLE

LENGTH = f"Content-Length: {len(ARTICLE)}"
CHUNKS = b"%x\r\n%b\r\n0\r\n\r\n" % (len(ARTICLE), ARTICLE)
READ = {
    "without a colon": ([LENGTH, "X-Frame-Options SAMEORIGIN"], ARTICLE),
    "a name with spaces": ([LENGTH, "X Frame: 1", "X-Late : 2"], ARTICLE),
    "no name": ([LENGTH, ": nothing"], ARTICLE),
    "a space before the colon": ([f"Content-Length : {len(ARTICLE)}"], ARTICLE),
    "a length twice": ([LENGTH, LENGTH.lower()], ARTICLE),
    "a length twice in one line": ([f"{LENGTH}, {len(ARTICLE)}"], ARTICLE),
    "a coding that is none": ([LENGTH, "Transfer-Encoding: identity"], ARTICLE),
    "chunks and a length": (["Content-Length: 5", "Transfer-Encoding: chunked"], CHUNKS),
    "chunks twice": (["Transfer-Encoding: chunked", "Transfer-Encoding: Chunked"], CHUNKS),
    "a line that goes on": ([LENGTH, "X-Long: one\r\n two", "X-Odd\r\n : three"], ARTICLE),
    "a line that breaks off": ([LENGTH, "X-Odd: one\rX-More: two"], ARTICLE),
    "a very long line": ([LENGTH, f"X-Long: {'a' * 100_000}"], ARTICLE),
    "an early hint": (["Link: </a.css>", "Odd", "", "HTTP/1.1 200 OK", "Odd", LENGTH], ARTICLE),
}


@pytest.mark.parametrize("lines, body", READ.values(), ids=READ)
async def test_odd_heads_are_read(lines: list[str], body: bytes) -> None:
    status = "103 Early Hints" if "Link: </a.css>" in lines else "200 OK"

    async def odd(to: Exchange) -> None:
        head = "\r\n".join((f"HTTP/1.1 {status}", *lines, "", "")).encode()
        for piece in (head[:30], head[30:-3], head[-3:-1], head[-1:] + body[:9], body[9:]):
            await to.send(piece)

    with Server(otherwise=odd) as server:
        fetcher = HttpFetcher(Limits(workers=1), allow=[server.address])
        try:
            pages = [await fetcher.read(server.url(path)) for path in ("/a", "/b")]
        finally:
            await fetcher.close()
    assert [page.title for page in pages] == ["A plain article"] * 2, pages[0].detail


@pytest.mark.parametrize("status", ["\r\nHTTP/1.1 200 OK", "http/1.1 200 OK", "HTTP/1.1  200 OK"])
async def test_odd_status_lines_are_read(status: str) -> None:
    async def odd(to: Exchange) -> None:
        for piece in (status[:1], status[1:], f"\r\n{LENGTH}\r\n\r\n", ARTICLE.decode()):
            await to.send(piece.encode())

    with Server(otherwise=odd) as server:
        fetcher = HttpFetcher(Limits(workers=1), allow=[server.address])
        try:
            page = await fetcher.read(server.url("/a"))
        finally:
            await fetcher.close()
    assert page.title == "A plain article", page.detail


@pytest.mark.parametrize("length", ["abc", "-1", "+5", ""])
def test_lengths_that_are_no_numbers_are_none(length: str) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nX: y\r\n\r\n".encode()
    assert as_meant(head) == b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n"


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_lengths_that_differ_stay_in_doubt(end: str) -> None:
    head = end.join(("HTTP/1.1 200 OK", "Content-Length: 5", "Content-Length: 7", "", "")).encode()
    assert as_meant(head) is head


LINES = st.text(alphabet="AZcl-:, \t\r579\x00é", max_size=20)
KNOWN = st.sampled_from(["Content-Length: 5", "content-length:7", "Transfer-Encoding: chunked", "X: y"])


@given(st.lists(LINES.map(str.strip) | KNOWN, max_size=9))
def test_what_is_meant_stays_what_it_is(lines: list[str]) -> None:
    lines = [line for line in lines if line]
    head = "\r\n".join(("HTTP/1.1 200 OK", *lines, "", "")).encode()
    meant = as_meant(head)
    assert as_meant(meant) == meant and meant.startswith(b"HTTP/1.1 200 OK\r\n")
    assert re.findall(rb"(?m)^X: y\r$", meant) == re.findall(rb"(?m)^X: y\r$", head)
    assert not (b"chunked" in meant and b"ontent-" in meant.replace(b"\x00", b"") and b"ength: 5" in meant)
