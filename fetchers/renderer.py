"""Pages as a browser shows them after their scripts have run: a headless Chromium, one window without a past a page.

Chromium's own sandbox stays on. All it can reach is a proxy of ours (`proxy.py`), another one for every page, which
connects through the guard: redirects, frames, scripts, sockets and whatever else a page asks for go the same way.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from adjudge.fetchers.downloader import Download
from adjudge.fetchers.failures import Failure, TooLarge
from adjudge.fetchers.guard import Guard
from adjudge.fetchers.limits import Limits, Timeouts
from adjudge.fetchers.page import media_type
from adjudge.fetchers.process import ENVIRONMENT, PoolError
from adjudge.fetchers.proxy import GuardedProxy

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page, Playwright, Request, Response

__all__ = ["NoBrowser", "NotRendered", "Renderer", "chromium"]

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_PAGES = ("text/html", "application/xhtml+xml")
_BODIES = 4  # times `max_bytes`: what a page may load with its scripts, styles and data together
_QUIET = 5.0  # seconds that a loaded page is given to stop asking for more
_ANSWERS = 10.0  # seconds in which its scripts must let us have its text
# No traffic but through the proxy: no names looked up, no QUIC, no WebRTC beside it, no services of the browser's own.
_FLAGS = (
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-gpu",
    "--blink-settings=imagesEnabled=false",
    "--js-flags=--max-old-space-size=512",
)
# Its own world: what a page's scripts make of the DOM's methods does not matter there.
_HTML = """(() => {
    const root = document.documentElement?.cloneNode(true);
    root?.querySelectorAll("noscript").forEach((node) => node.remove());
    const html = root?.outerHTML ?? "";
    return html.length > %d ? null : html;
})()"""


class NoBrowser(RuntimeError):
    """Chromium, or Playwright to drive it, is not installed; the message says how to get it."""


class NotRendered(Exception):
    """What is at the URL is a file, which a browser would save or hand to a viewer."""


def chromium() -> str:
    """The path of the Chromium there is. Raises NoBrowser."""
    try:
        import playwright.async_api  # noqa: F401  # an optional part
    except ImportError as error:
        raise NoBrowser("playwright is not installed; run pip install 'adjudge[render]'") from error
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        raise NoBrowser("there is no Chromium; install it (Debian: apt install chromium)")
    return found


class Renderer:
    """A `Downloader`. One Chromium, started by the first page, and after a crash by the next one.

    `agent` is added to the browser's own user agent. As many pages run at once as `limits` has extraction processes.
    """

    version = "1"

    def __init__(self, guard: Guard, limits: Limits, timeouts: Timeouts, agent: str) -> None:
        self._guard = guard
        self._timeouts = timeouts
        self._max_bytes = limits.max_bytes
        self._agent = agent
        self._slots = asyncio.Semaphore(limits.processes("trafilatura"))
        self._starting = asyncio.Lock()
        self._driver: Playwright | None = None
        self._browser: Browser | None = None
        self._home: TemporaryDirectory[str] | None = None
        self._pages: set[asyncio.Task[Any]] = set()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """The right to render one page, in a browser that runs. Raises PoolError if none starts."""
        async with self._slots:
            async with self._starting:
                if self._browser is None or not self._browser.is_connected():
                    await self._start()
            yield

    async def download(self, url: str) -> Download:
        """The page at `url` after its scripts have run, as HTML. Raises Failure, NotRendered."""
        from playwright.async_api import Error

        browser, task = self._browser, asyncio.current_task()
        assert browser is not None and task is not None, "a page is rendered in its slot"
        self._pages.add(task)
        task.add_done_callback(self._pages.discard)
        async with GuardedProxy(self._guard, self._timeouts, _BODIES * self._max_bytes) as proxy:
            major = browser.version.partition(".")[0]
            context = await browser.new_context(
                proxy={"server": proxy.url},
                user_agent=f"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
                f"Chrome/{major}.0.0.0 Safari/537.36 {self._agent}",
                accept_downloads=False,
                service_workers="block",
                locale="en-US",
            )
            try:
                return await _Window(context, proxy, self._max_bytes).visit(url)
            finally:
                with suppress(Error):  # the browser has ended
                    await context.close()

    async def close(self) -> None:
        """End the browser."""
        async with self._starting:
            await self._stop()
        await asyncio.gather(*self._pages, return_exceptions=True)

    async def _start(self) -> None:
        from playwright.async_api import Error, async_playwright

        await self._stop()
        self._home = TemporaryDirectory(prefix="adjudge-chromium-")
        kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
        self._driver = await async_playwright().start()
        try:
            self._browser = await self._driver.chromium.launch(
                executable_path=chromium(),
                chromium_sandbox=True,
                args=list(_FLAGS),
                ignore_default_args=["--disable-popup-blocking"],
                env={**kept, "HOME": self._home.name},
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except Error as error:
            await self._stop()
            raise PoolError(_why_not(str(error))) from error

    async def _stop(self) -> None:
        browser, self._browser = self._browser, None
        driver, self._driver = self._driver, None
        home, self._home = self._home, None
        if browser is not None:
            await browser.close()
        if driver is not None:
            await driver.stop()
        if home is not None:
            await asyncio.to_thread(home.cleanup)


def _why_not(said: str) -> str:
    line = (
        next((one.strip() for one in said.splitlines() if "sandbox" in one.lower()), "")
        or said.splitlines()[0]
    )
    return (
        f"fetch: render: Chromium does not start: {line[:300]}; its sandbox needs a user other than root and user "
        "namespaces (docs/guide.md, A browser for pages)"
    )


class _Window:
    """A browser window for one page."""

    def __init__(self, context: "BrowserContext", proxy: GuardedProxy, max_bytes: int) -> None:
        self._context = context
        self._proxy = proxy
        self._max_bytes = max_bytes
        self._page: Page | None = None
        self._last: Response | None = None
        self._lost = ""
        self._crashed = False
        self._closing: set[asyncio.Task[None]] = set()

    async def visit(self, url: str) -> Download:
        """What `url` shows. Raises Failure, NotRendered."""
        from playwright.async_api import Error
        from playwright.async_api import TimeoutError as NotYet

        page = self._page = await self._context.new_page()
        self._context.on("page", self._popped_up)
        page.on("response", self._answered)
        page.on("requestfailed", self._failed)
        page.on("crash", self._crash)
        try:
            await page.goto(url, wait_until="domcontentloaded", timeout=0)
            self._check_kind()
            with suppress(NotYet):  # it goes on asking: what it shows by now is the page
                await page.wait_for_load_state("networkidle", timeout=_QUIET * 1000)
            html = await self._html(page)
        except Error as error:
            raise self._failure(url, error.message) from error
        self._check_kind()
        if not page.url.startswith(("http://", "https://")):
            raise self._failure(self._lost or url, f"leads to {page.url[:100]}")
        if html is None:
            raise TooLarge(self._max_bytes)
        return Download(
            body=("<!DOCTYPE html>\n" + html).encode("utf-8", "replace"),
            status_code=self._last.status if self._last is not None else 200,
            final_url=page.url,
        )

    async def _html(self, page: "Page") -> str | None:
        """The document as it is now; None if it is longer than a page may be. Raises Failure."""
        try:
            async with asyncio.timeout(_ANSWERS):
                session = await self._context.new_cdp_session(page)
                frame = (await session.send("Page.getFrameTree"))["frameTree"]["frame"]["id"]
                world = await session.send("Page.createIsolatedWorld", {"frameId": frame})
                asked = {"expression": _HTML % self._max_bytes, "returnByValue": True}
                told = await session.send(
                    "Runtime.evaluate", {**asked, "contextId": world["executionContextId"]}
                )
        except TimeoutError:
            raise Failure("page_timeout", "its scripts keep the browser busy") from None
        html = told["result"].get("value")
        return html if isinstance(html, str) else None

    def _check_kind(self) -> None:
        if self._last is None:
            return
        kind = media_type(self._last.headers.get("content-type", ""))
        if kind and kind not in _PAGES and self._last.status < 400:
            raise NotRendered

    def _failure(self, url: str, said: str) -> Exception:
        if self._crashed:
            return Failure("page_unsupported", "it kills the browser")
        if "Download is starting" in said or "ERR_ABORTED" in said:
            return NotRendered()
        browser = self._context.browser
        if browser is None or not browser.is_connected():
            return ConnectionError("the browser ended")
        found = self._proxy.failure(self._lost or url)
        if found is not None:
            return found
        return Failure("page_server_error", said.splitlines()[0][:200], again="ERR_EMPTY_RESPONSE" in said)

    def _is_journey(self, request: "Request") -> bool:
        page = self._page
        return page is not None and request.is_navigation_request() and request.frame == page.main_frame

    def _answered(self, response: "Response") -> None:
        if self._is_journey(response.request):
            self._last, self._lost = response, ""

    def _failed(self, request: "Request") -> None:
        if self._is_journey(request):
            self._lost = request.url

    def _crash(self, _page: "Page") -> None:
        self._crashed = True

    def _popped_up(self, other: "Page") -> None:
        task = asyncio.create_task(_closed(other))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _closed(page: "Page") -> None:
    from playwright.async_api import Error

    with suppress(Error):  # it has gone already
        await page.close()
