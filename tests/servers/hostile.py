"""Everything a server can do to a client that reads its pages."""

import asyncio
import ssl
import zlib
from pathlib import Path

from tests.servers.base import Exchange, Server

PROSE = "The committee found that the bridge had been built in 1932 and repaired twice since then. "
ARTICLE = (
    "<!DOCTYPE html><html><head><meta charset='utf-8'><title>A plain article</title>"
    "<meta name='description' content='What it says.'></head><body><article><h1>A plain article</h1>"
    + "".join(f"<p>In chapter {n}: {PROSE * 3}</p>" for n in range(8))
    + "</article></body></html>"
).encode()
SLOW_TO_READ = b"<div>" * 200 + b"<p>word" * 1_000_000


async def plain(to: Exchange) -> None:
    await to.reply(ARTICLE)


async def slow_drip(to: Exchange) -> None:
    await to.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n")
    while True:
        await to.send(b"x")
        await asyncio.sleep(0.05)


async def silent(to: Exchange) -> None:
    await asyncio.sleep(3600)


async def endless_body(to: Exchange) -> None:
    await to.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        await to.send(b"10000\r\n" + b"a" * 65536 + b"\r\n")


async def endless_headers(to: Exchange) -> None:
    await to.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await to.send(b"X-More: " + b"a" * 1000 + b"\r\n")


async def gzip_bomb(to: Exchange) -> None:
    """Four gigabytes of zeros in about four megabytes."""
    await to.send(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
        b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    packer, zeros = zlib.compressobj(9, wbits=31), bytes(1 << 20)
    for _ in range(4096):
        if piece := packer.compress(zeros):
            await to.send(b"%x\r\n%b\r\n" % (len(piece), piece))


async def broken_gzip(to: Exchange) -> None:
    await to.reply(b"\x1f\x8b\x08\x00 and then nothing that is gzip", "Content-Encoding: gzip")


async def gzip_cut_short(to: Exchange) -> None:
    await to.reply(zlib.compress(ARTICLE * 20, wbits=31)[:-40], "Content-Encoding: gzip")


async def falsely_brotli(to: Exchange) -> None:
    await to.reply(ARTICLE, "Content-Encoding: br")


async def loop(to: Exchange) -> None:
    await to.redirect("/loop")


async def longer_and_longer(to: Exchange) -> None:
    """Redirect any path that begins with /grow to a longer one; other paths do not exist."""
    if to.request.path.startswith("/grow"):
        await to.redirect(to.request.path + "a" * 3000)
    else:
        await to.reply(b"nothing here", status="404 Not Found")


async def redirect_to_nowhere(to: Exchange) -> None:
    await to.redirect("http://[not an address]/")


async def too_little(to: Exchange) -> None:
    await to.send(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n" + ARTICLE[:-20]
    )
    to.writer.close()


async def too_much(to: Exchange) -> None:
    """Send a body longer than its Content-Length at once: the rest looks like the start of another answer."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(ARTICLE)
    await to.send(head + ARTICLE + ARTICLE)
    to.writer.close()


async def wrong_charset(to: Exchange) -> None:
    text = (
        "<title>Мост</title><article>"
        + "<p>Мост построен в 1932 году и с тех пор дважды ремонтировался.</p>" * 9
    )
    await to.reply(text.encode("windows-1251"), content_type="text/html; charset=utf-8")


async def said_latin_is_utf8(to: Exchange) -> None:
    await to.reply(
        "<title>Brücke</title><p>Die Brücke wurde 1932 gebaut — für alle.</p>".encode(),
        content_type="text/html; charset=iso-8859-1",
    )


async def no_such_charset(to: Exchange) -> None:
    await to.reply(ARTICLE, content_type="text/html; charset=klingon-8")


async def single_line(to: Exchange) -> None:
    await to.reply(b"<html><body><p>" + b"word " * 2_000_000)


async def deeply_nested(to: Exchange) -> None:
    await to.reply(b"<div>" * 300_000 + b"deep down")


async def slow_to_read(to: Exchange) -> None:
    """Linear, but each of the words is far down, which takes the parser half a minute."""
    await to.reply(SLOW_TO_READ)


async def reset_mid_body(to: Exchange) -> None:
    await to.send(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n" + ARTICLE[:-20]
    )
    to.reset()


async def not_http(to: Exchange) -> None:
    await to.send(b"SSH-2.0-OpenSSH_9.9\r\n" * 3)
    to.writer.close()


async def busy_once(to: Exchange) -> None:
    if to.times == 1:
        await to.reply(b"slow down", "Retry-After: 1", status="429 Too Many Requests")
    else:
        await to.reply(ARTICLE)


async def busy_for_an_hour(to: Exchange) -> None:
    await to.reply(b"slow down", "Retry-After: 3600", status="429 Too Many Requests")


async def flapping(to: Exchange) -> None:
    if to.times < 3:
        await to.reply(b"oops", status="500 Internal Server Error")
    else:
        await to.reply(ARTICLE)


async def always_500(to: Exchange) -> None:
    await to.reply(b"oops", status="500 Internal Server Error")


async def forbidden(to: Exchange) -> None:
    await to.reply(b"are you human?", status="403 Forbidden")


async def too_many_requests(to: Exchange) -> None:
    await to.reply(b"slow down", status="429 Too Many Requests")


async def bot_check_by_header(to: Exchange) -> None:
    await to.reply(ARTICLE, "CF-Mitigated: challenge", status="503 Service Unavailable")


async def bot_check(to: Exchange) -> None:
    await to.reply(
        b"<title>Just a moment...</title><p>Checking that you are not a program.</p><script></script>"
    )


async def login_wall(to: Exchange) -> None:
    await to.reply(b"<title>Sign in to continue | The Daily Bridge</title><form><input type=password></form>")


async def about_logging_in(to: Exchange) -> None:
    """A page whose title looks like a wall's, and which has a text all the same."""
    await to.reply(b"<title>Log in</title><article>" + f"<p>{PROSE * 3}</p>".encode() * 4 + b"</article>")


async def latin_1_head(to: Exchange) -> None:
    """Bytes that are not UTF-8 in the reason phrase and in every header that is read."""
    status = 404 if to.request.path.endswith("gone") else 200
    head = b"HTTP/1.1 %d Gefunden f\xfcr alle\r\nContent-Length: %d\r\n" % (status, len(ARTICLE))
    await to.send(
        head + b"Content-Type: text/html; charset=\xe9\xff; t\xfc\r\nX-Greeting: \xfc\r\n\r\n" + ARTICLE
    )


async def gone(to: Exchange) -> None:
    await to.reply(b"it was here", status="410 Gone")


async def picture(to: Exchange) -> None:
    await to.send(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 1000000000\r\n\r\n")
    await asyncio.sleep(3600)


async def fake_pdf(to: Exchange) -> None:
    await to.reply(b"%PDF-1.7\nnot really", content_type="application/pdf")


async def entity_bomb(to: Exchange) -> None:
    lines = ["<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a0 'ha'>"]
    lines += [f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 10)]
    lines += ["<!ENTITY f SYSTEM 'file:///etc/passwd'>]><x>seen &a9; &f;</x>"]
    await to.reply("".join(lines).encode(), content_type="application/xml")


async def empty(to: Exchange) -> None:
    await to.reply(b"")


async def headers_in_ruins(to: Exchange) -> None:
    await to.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\nBad\xff Header\r\n\r\nhello")


ROUTES = {
    f"/{route.__name__.replace('_', '-')}": route
    for route in (
        *(plain, slow_drip, silent, endless_body, endless_headers, gzip_bomb, broken_gzip, gzip_cut_short),
        *(falsely_brotli, loop, redirect_to_nowhere, too_little, too_much, wrong_charset),
        *(said_latin_is_utf8, no_such_charset, single_line, deeply_nested, reset_mid_body, not_http),
        *(busy_once, flapping, always_500, forbidden, gone, picture, fake_pdf),
        *(too_many_requests, bot_check_by_header, bot_check, login_wall, about_logging_in, latin_1_head),
        *(entity_bomb, empty, headers_in_ruins),
    )
}


REDIRECTS = {
    "/to-private": "http://10.0.0.1/",
    "/to-loopback": "http://127.0.0.1:22/",
    "/to-metadata": "http://169.254.169.254/latest/meta-data/",
    "/to-file": "file:///etc/passwd",
    "/to-decimal": "http://2130706433/",
    "/to-credentials": "http://user:secret@example.com/",
}


def hostile_server() -> Server:
    """All of the above, not yet started."""
    routes = dict(ROUTES)
    for path, location in REDIRECTS.items():

        async def route(to: Exchange, location: str = location) -> None:
            await to.redirect(location)

        routes[path] = route
    return Server(routes=routes, otherwise=longer_and_longer)


def self_signed_server() -> Server:
    """A server of one ordinary page behind a self-signed certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(__file__).with_name("self_signed.pem"))
    return Server(routes={"/plain": plain}, tls=context)
