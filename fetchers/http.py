"""Live pages: one connection pool, bounded, polite and guarded, with extraction in other processes.

A page may also come from an external downloader: the guard checks before and after it, and its errors become failures.
"""

import asyncio
import hashlib
import re
import socket
from collections.abc import Iterable
from contextlib import AsyncExitStack
from importlib.metadata import version
from time import time
from types import SimpleNamespace
from typing import Literal, NamedTuple

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver
from yarl import URL

from adjudge.fetchers.bodies import ACCEPT_ENCODING, Body, receive
from adjudge.fetchers.boundary import boundary
from adjudge.fetchers.downloader import Download, Downloader
from adjudge.fetchers.failures import Failure, LargeFile, TooLarge, status_failure
from adjudge.fetchers.flight import SingleFlight, forgotten
from adjudge.fetchers.guard import PUBLIC_PORTS, Blocked, Guard, Others, Resolve
from adjudge.fetchers.heads import LARGEST_HEAD, Connector
from adjudge.fetchers.limits import DEFAULT_LIMITS, DEFAULT_TIMEOUTS, PATIENCE_S, Limits, Timeouts
from adjudge.fetchers.pace import Attempts, Turn, Turns
from adjudge.fetchers.page import Fetcher, Page, PageReason, failed, kind_of, may_be_read, media_type
from adjudge.fetchers.pool import ExtractorPool
from adjudge.fetchers.process import Budget, Extraction, Extractor
from adjudge.fetchers.renderer import NotRendered, Renderer
from adjudge.fetchers.robots import MAX_RULES, Robots
from adjudge.fetchers.signs import bar_of_headers, failure_of, refreshes_to
from adjudge.fetchers.urls import (
    MalformedURL,
    NormalURL,
    join_url,
    normalise_url,
    site_of,
    split_url,
    storable,
)
from adjudge.fetchers.waits import wait_advised, wait_asked


async def download(downloader: Downloader, url: NormalURL, guard: Guard) -> tuple[NormalURL, Download]:
    """Where `url` ended, and what was there. Raises Failure.

    Both URLs pass the `guard`, and their names must resolve to public addresses here; what lies between them, and what
    the downloader itself connects to, is out of its sight.
    """
    with boundary():
        await _resolved(url, guard)
    found = await _called(downloader, url)
    try:
        final = normalise_url(found.final_url or url)
        guard.check(final)
    except MalformedURL as error:
        raise _broken(f"its final URL {error}") from error
    except Blocked as error:
        raise Failure("page_blocked", str(error)) from error
    if final != url:
        with boundary():
            await _resolved(final, guard)
    return final, found


async def _resolved(url: NormalURL, guard: Guard) -> None:
    """Raise Blocked or the resolver's error unless the host of `url` is public, or allowed."""
    parts = split_url(url)
    resolver: AbstractResolver = guard.resolver
    await resolver.resolve(parts.host, parts.port, socket.AF_UNSPEC)


async def _called(downloader: Downloader, url: NormalURL) -> Download:
    async def call() -> object:
        return await downloader.download(url)

    task = asyncio.create_task(call())
    try:
        # Unlike awaiting the task, this ends at once when time is up, whatever the downloader does about it.
        await asyncio.wait({task})
    finally:
        task.cancel()
        task.add_done_callback(forgotten)
    if task.cancelled():
        raise _broken("it was cancelled")
    if (error := task.exception()) is not None:
        if isinstance(error, Failure | NotRendered):  # our own one knows whose fault it is
            raise error
        raise _broken(f"{type(error).__name__}: {error}") from error
    found = task.result()
    if not isinstance(found, Download):
        raise _broken(f"it returned {type(found).__name__} instead of Download")
    try:
        found = msgspec.convert(msgspec.structs.asdict(found), Download, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise _broken(str(error)) from error
    content_type = storable(found.content_type)[:300]
    return msgspec.structs.replace(found, content_type=content_type, final_url=storable(found.final_url))


def _broken(why: str) -> Failure:
    return Failure("network_unavailable", f"the downloader failed: {why}", again=True)


_ALWAYS_THERE = normalise_url("http://example.com/")
_REDIRECTS = (301, 302, 303, 307, 308)
_SCHEME = re.compile(r"\s*([a-z][a-z0-9+.-]*):", re.I)
_BUFFER = 64 << 10
_MAX_HEADERS = 2_000
_MAX_COOKIES = 8 << 10
_LARGE_FILES = 2  # at once, so that memory stays bounded
# aiohttp may leave a read timer running on a connection that waits for reuse: it must not have fired by then.
_KEEP_ALIVE = 4.0
_KEEP_ALIVE_OF_READ = 0.5


class Fetched(NamedTuple):
    """A page, the body it was read from and that body's Content-Type header; empty if it did not arrive."""

    page: Page
    body: bytes = b""
    content_type: str = ""


class HttpFetcher(Fetcher):
    """Reads live URLs. Cheap to make; processes and connections begin with the first page.

    `allow` and `ports`: see `Guard`. `contact` (a URL or an email address) is sent in the user agent, so
    that a site's owner can complain. `robots` obeys robots.txt. `resolve` replaces the system's resolver.
    `downloader` gets pages in place of our own HTTP client, which still reads robots.txt. `render`: a browser gets
    "always" every page, or once more what is "empty" without one; files are read without it. `patience_s`: how long a
    site that wants fewer requests is waited for.
    """

    def __init__(
        self,
        limits: Limits = DEFAULT_LIMITS,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        *,
        extractor: Extractor = "trafilatura",
        allow: Iterable[str] = (),
        ports: Iterable[int] = PUBLIC_PORTS,
        contact: str = "",
        robots: bool = False,
        resolve: Resolve | None = None,
        downloader: Downloader | None = None,
        render: Literal["never", "empty", "always"] = "never",
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._downloader = downloader
        self._render = render
        self._limits = limits
        self._timeouts = timeouts
        self._agent = f"adjudge/{version('adjudge')}" + (f" (+{contact})" if contact else "")
        self._guard = Guard(allow, ports=ports, resolve=resolve)
        self._renderer = Renderer(self._guard, limits, timeouts, self._agent) if render != "never" else None
        self._turns = Turns(limits, patience_s)
        self._patience = patience_s
        self._slots = asyncio.Semaphore(limits.in_flight)
        self._large = asyncio.Semaphore(_LARGE_FILES)
        self._pool = ExtractorPool(limits.processes(extractor), extractor=extractor, seconds=timeouts.extract)
        self._robots = Robots(self._robots_file, "adjudge") if robots else None
        self._flight: SingleFlight[NormalURL, Fetched] = SingleFlight()
        self._others = Others(self._web_answers)
        self._session: aiohttp.ClientSession | None = None

    async def page(self, address: NormalURL) -> Page:
        """The page at `address`, or the reason it cannot be read. Raises only PoolError (no worker starts)."""
        return (await self.fetch(address)).page

    async def fetch(self, address: NormalURL) -> Fetched:
        """`page`, with the body beside the page."""
        return await self._flight.do(address, lambda: self._fetch(address))

    async def close(self) -> None:
        """Cancel what runs, close connections, end the worker processes."""
        await self._flight.close()
        await self._others.close()
        if self._robots is not None:
            await self._robots.close()
        if self._session is not None:
            await self._session.close()
        if self._downloader is not None:
            await self._downloader.close()
        if self._renderer is not None:
            await self._renderer.close()
        await self._pool.close()

    async def _fetch(self, url: NormalURL) -> Fetched:
        budget, in_browser = Budget(self._timeouts.total), self._render == "always"
        journey = _Journey(url, budget, self._limits.max_bytes, in_browser=in_browser)
        document: _Document | None = None
        try:
            while True:
                async with AsyncExitStack() as held:
                    document = await self._follow(journey, held)
                    found = await self._pool.extract(document.body.content, document.content_type)
                if document.rendered:
                    break
                onward = refreshes_to(document.refresh) or found.onward
                target = _target(document.url, onward) if onward else document.url
                if target == document.url:
                    if self._render != "empty" or not _is_shell(document, found):
                        break
                    journey.in_browser = True
                journey.url, document = target, None
            if (failure := failure_of(found)) is not None:
                raise failure
        except Failure as failure:
            if document is None:
                reason = await self._blamed(failure, journey.url)
                return Fetched(failed(url, reason, failure.detail, final_url=journey.url, fetched_at=time()))
            return Fetched(_unread(url, document, failure), document.body.content, document.content_type)
        return Fetched(_read(url, document, found), document.body.content, document.content_type)

    async def _blamed(self, failure: Failure, url: NormalURL) -> PageReason:
        """The failure's reason; network_unavailable if the site itself did not answer, and no other host does."""
        if failure.answered or failure.reason not in ("page_timeout", "page_server_error"):
            return failure.reason
        works = await self._others.work(site_of(url), public=self._public(url))
        return failure.reason if works else "network_unavailable"

    def _public(self, url: NormalURL) -> bool:
        parts = split_url(url)
        return not self._guard.allows(parts.host, parts.port)

    async def _web_answers(self) -> bool:
        """Whether a public site that hardly ever fails answers."""
        try:
            if self._downloader is not None:
                with boundary():
                    async with asyncio.timeout(self._timeouts.total):
                        return (await download(self._downloader, _ALWAYS_THERE, self._guard))[
                            1
                        ].status_code < 500
            with boundary():
                async with (
                    asyncio.timeout(self._timeouts.connect + self._timeouts.read),
                    self._open().head(URL(_ALWAYS_THERE), allow_redirects=False) as response,
                ):
                    return response.status < 500
        except Failure:
            return False

    async def _follow(self, journey: "_Journey", held: AsyncExitStack, *, robots: bool = True) -> "_Document":
        """Where the redirects lead. Raises Failure; `journey.url` is then the last URL that was tried."""
        while journey.hops <= self._limits.redirects:
            journey.hops += 1
            try:
                self._guard.check(journey.url)
            except Blocked as error:
                raise Failure("page_blocked", str(error)) from None
            delay = await self._robots.delay(journey.url) if robots and self._robots is not None else 0.0
            answer = await self._ask_again(journey, delay, held)
            if isinstance(answer, _Document):
                return answer
            journey.url = answer
        raise Failure("page_server_error", f"more than {self._limits.redirects} redirects")

    async def _ask_again(
        self, journey: "_Journey", delay: float, held: AsyncExitStack
    ) -> "_Document | NormalURL":
        """`_ask` until it succeeds or another attempt cannot help; for a large file, once more in its turn."""
        attempts = Attempts(self._limits, self._patience)
        while True:
            try:
                return await self._ask(journey, delay, held, attempts.refusals)
            except LargeFile:
                most = self._limits.most("pdf")
                if journey.max_bytes >= most:
                    raise
                await held.enter_async_context(self._large)
                journey.max_bytes = most
            except Failure as failure:
                await asyncio.sleep(attempts.wait_after(failure))

    async def _ask(
        self, journey: "_Journey", delay: float, held: AsyncExitStack, refusals: int
    ) -> "_Document | NormalURL":
        """One request in its turn: the document, or the URL it redirects to.

        A document keeps its place among those in flight (in `held`) until it has been read, so that bodies
        cannot pile up in front of the workers.
        """
        async with (
            self._turns.turn(site_of(journey.url), delay, refusals=refusals) as turn,
            AsyncExitStack() as slot,
        ):
            await slot.enter_async_context(self._slots)
            if self._renderer is not None and journey.in_browser:
                await slot.enter_async_context(self._renderer.slot())
            with turn.outcome(), boundary():
                async with journey.budget:
                    answer = await self._get(journey, turn)
            if isinstance(answer, _Document):
                held.push_async_exit(slot.pop_all())
            return answer

    async def _get(self, journey: "_Journey", turn: Turn) -> "_Document | NormalURL":
        downloader = self._renderer if journey.in_browser else self._downloader
        if downloader is None or journey.rules:
            return await self._request(journey, turn)
        turn.sent()
        try:
            final, found = await download(downloader, journey.url, self._guard)
        except NotRendered:
            journey.in_browser = False
            return await self._request(journey, turn)
        if found.status_code < 500:
            self._others.worked(site_of(journey.url), public=self._public(journey.url))
        failure = status_failure(found.status_code, "")
        if failure is not None:
            raise failure
        most = self._limits.most(kind_of(found.content_type, found.body))
        self._check_body(found.content_type, len(found.body), most)
        body = Body(found.body, hashlib.sha256(found.body).hexdigest())
        return _Document(final, found.content_type, body, rendered=journey.in_browser)

    async def _request(self, journey: "_Journey", turn: Turn) -> "_Document | NormalURL":
        url = journey.url
        async with self._open().get(
            URL(url, encoded=True),
            allow_redirects=False,
            trace_request_ctx=turn,
            headers=journey.cookies(url),
        ) as response:
            journey.keep(response)
            if response.status in _REDIRECTS and "Location" in response.headers:
                return _target(url, storable(response.headers["Location"]))
            turn.advised(wait_advised(response.headers, time()))
            if response.status < 500:
                self._others.worked(site_of(url), public=self._public(url))
            bar = bar_of_headers(response.headers)
            if bar is not None:
                raise Failure("page_barred", bar)
            failure = status_failure(
                response.status,
                storable(response.reason or ""),
                wait_asked(response.headers, time()),
                # Only to a public site without TLS may something on the way answer in its place.
                direct=url.startswith("https:") or not self._public(url),
            )
            if failure is not None:
                raise failure
            return await self._receive(journey, response)

    async def _receive(self, journey: "_Journey", response: aiohttp.ClientResponse) -> "_Document":
        content_type = storable(response.headers.get("Content-Type", ""))[:300]
        if not journey.rules:
            size = response.content_length or 0
            self._check_body(content_type, size, self._limits.most("pdf"))
            if size > journey.max_bytes and "pdf" in media_type(content_type):
                raise LargeFile("page_unsupported", f"larger than {journey.max_bytes:,} bytes")
        body = await receive(
            response.content.iter_any(),
            ",".join(response.headers.getall("Content-Encoding", ())),
            journey.max_bytes,
            None if journey.rules else content_type,
            enough=MAX_RULES if journey.rules else None,
        )
        return _Document(journey.url, content_type, body, storable(response.headers.get("Refresh", "")))

    def _check_body(self, content_type: str, size: int, most: int) -> None:
        if not may_be_read(content_type):
            raise Failure("page_unsupported", f"content type {media_type(content_type) or 'unknown'}")
        if size > most:
            raise TooLarge(most)

    async def _robots_file(self, url: NormalURL) -> bytes:
        async with AsyncExitStack() as held:
            journey = _Journey(url, Budget(self._timeouts.total), self._limits.max_bytes, rules=True)
            return (await self._follow(journey, held, robots=False)).body.content

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            sent = aiohttp.TraceConfig()
            sent.on_request_headers_sent.append(_sent)
            self._session = aiohttp.ClientSession(
                connector=Connector(
                    limit=self._limits.in_flight,
                    keepalive_timeout=min(_KEEP_ALIVE, _KEEP_ALIVE_OF_READ * self._timeouts.read),
                    resolver=self._guard.resolver,
                    ttl_dns_cache=300,
                    socket_factory=self._guard.socket,
                ),
                headers={
                    "User-Agent": self._agent,
                    "Accept": "text/html,application/xhtml+xml,application/pdf;q=0.9,*/*;q=0.8",
                    "Accept-Encoding": ACCEPT_ENCODING,
                },
                timeout=aiohttp.ClientTimeout(
                    total=None, connect=self._timeouts.connect, sock_read=self._timeouts.read
                ),
                auto_decompress=False,  # `receive` does it within the byte limit
                cookie_jar=aiohttp.DummyCookieJar(),  # a page must not depend on which came before
                read_bufsize=_BUFFER,
                max_line_size=LARGEST_HEAD,
                max_field_size=LARGEST_HEAD,
                max_headers=_MAX_HEADERS,
                trace_configs=[sent],
            )
        return self._session


class _Journey:
    """A page being fetched: its current URL, the time it has left, and how large its body may be.

    `rules`: it is a robots.txt, of whatever type, which takes no downloader. `in_browser`: the page is to be rendered.
    """

    def __init__(
        self, url: NormalURL, budget: Budget, max_bytes: int, *, rules: bool = False, in_browser: bool = False
    ) -> None:
        self.url = url
        self.budget = budget
        self.max_bytes = max_bytes
        self.rules = rules
        self.in_browser = in_browser
        self.hops = 0
        self._jar: aiohttp.CookieJar | None = None

    def keep(self, response: aiohttp.ClientResponse) -> None:
        """Keep the cookies of `response` for the rest of the journey, which begins without any."""
        if response.cookies:
            self._jar = self._jar or aiohttp.CookieJar(unsafe=True)
            self._jar.update_cookies(response.cookies, response.url)

    def cookies(self, url: NormalURL) -> dict[str, str]:
        """The Cookie header for `url`, if it has one, at most 8 KB."""
        if self._jar is None:
            return {}
        found = self._jar.filter_cookies(URL(url, encoded=True)).values()
        sent, size = [], 0
        for cookie in found:
            size += len(cookie.key) + len(cookie.coded_value) + 3
            if size > _MAX_COOKIES:
                break
            sent.append(f"{cookie.key}={cookie.coded_value}")
        return {"Cookie": "; ".join(sent)} if sent else {}


class _Document(NamedTuple):
    url: NormalURL
    content_type: str
    body: Body
    refresh: str = ""
    """Its Refresh header."""
    rendered: bool = False


def _is_shell(document: _Document, found: Extraction) -> bool:
    """Whether a browser may show more of it: HTML without a text."""
    return found.state == "empty" and kind_of(document.content_type, document.body.content) == "html"


def _unread(url: NormalURL, document: _Document, failure: Failure) -> Page:
    return failed(
        url,
        failure.reason,
        failure.detail,
        final_url=document.url,
        fetched_at=time(),
        content_type=media_type(document.content_type),
        sha256=document.body.sha256,
    )


def _read(url: NormalURL, document: _Document, found: Extraction) -> Page:
    return Page(
        url=url,
        final_url=document.url,
        status="read",
        reason=None,
        fetched_at=time(),
        content_type=media_type(document.content_type),
        sha256=document.body.sha256,
        title=found.title,
        description=found.description,
        text=found.text,
        beside=found.beside,
        detail="rendered in a browser" if document.rendered else "",
        size=len(document.body.content),
    )


def _target(url: NormalURL, location: str) -> NormalURL:
    scheme = _SCHEME.match(location)
    if scheme and scheme[1].lower() not in ("http", "https"):
        raise Failure("page_blocked", f"redirects to {scheme[0][:40]}")
    try:
        return join_url(url, location)
    except MalformedURL as error:
        raise Failure("page_server_error", f"redirects to a URL that {error}") from None


async def _sent(_session: aiohttp.ClientSession, context: SimpleNamespace, _params: object) -> None:
    turn: Turn | None = context.trace_request_ctx
    if turn is not None:
        turn.sent()
