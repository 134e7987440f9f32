"""Politeness: which request to a site may be sent, and when; robots.txt (RFC 9309) for users who want it obeyed."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from protego import Protego

from adjudge.fetchers.failures import Failure
from adjudge.fetchers.flight import SingleFlight
from adjudge.fetchers.limits import Limits
from adjudge.fetchers.urls import NormalURL, join_url

_MANY_SITES = 4096
_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")


class Turn:
    """The right to send one request to a site."""

    def __init__(self, site: "_Site", delay: float, longest_wait: float) -> None:
        self._site = site
        self._delay = delay
        self._longest_wait = longest_wait
        self._sent = False

    def sent(self) -> None:
        """The request is on its way: the delay until the site's next one begins now."""
        self._site.next_at = asyncio.get_running_loop().time() + self._delay
        self.over()

    def over(self) -> None:
        """Nothing was sent, or `sent` has been called: the next in line may begin to wait."""
        if not self._sent:
            self._sent = True
            self._site.line.release()

    def come_back(self, seconds: float) -> None:
        """Send the site no request for `seconds`. If that is too long, its requests fail for the longest wait."""
        until = asyncio.get_running_loop().time() + min(seconds, self._longest_wait)
        if seconds > self._longest_wait:
            self._site.asked_for = seconds
            self._site.closed_until = max(self._site.closed_until, until)
        else:
            self._site.resting_until = max(self._site.resting_until, until)


class Turns:
    """Gives out turns so that no site sees more than `per_host` at once or two within `delay`."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._sites: dict[str, _Site] = {}

    @asynccontextmanager
    async def turn(self, name: str, delay: float = 0.0) -> AsyncIterator[Turn]:
        """A turn at the site `name` for as long as the block lasts. A longer `delay` overrides the limit's.

        Raises Failure for `retry_after` seconds after the site asked for a longer wait than that.
        """
        site = self._site(name)
        site.users += 1
        try:
            async with site.slots:
                turn = await self._in_line(site, max(delay, self._limits.delay))
                try:
                    yield turn
                finally:
                    turn.over()
        finally:
            site.users -= 1

    async def _in_line(self, site: "_Site", delay: float) -> Turn:
        clock = asyncio.get_running_loop().time
        await site.line.acquire()
        try:
            while True:
                now = clock()
                if now < site.closed_until:
                    raise Failure(
                        "page_server_error",
                        f"the site accepts no requests for {site.asked_for:.0f} s (Retry-After)",
                    )
                start = max(site.next_at, site.resting_until)
                if now >= start:
                    break
                await asyncio.sleep(start - now)
        except BaseException:
            site.line.release()
            raise
        turn = Turn(site, delay, self._limits.retry_after)
        if not delay:
            turn.over()
        return turn

    def _site(self, name: str) -> "_Site":
        if name not in self._sites and len(self._sites) >= _MANY_SITES:
            now = asyncio.get_running_loop().time()
            self._sites = {key: site for key, site in self._sites.items() if site.busy(now)}
        return self._sites.setdefault(name, _Site(self._limits.per_host))


class _Site:
    def __init__(self, per_host: int) -> None:
        self.slots = asyncio.Semaphore(per_host)
        self.line = asyncio.Lock()
        self.next_at = 0.0
        self.resting_until = 0.0
        self.closed_until = 0.0
        self.asked_for = 0.0
        self.users = 0

    def busy(self, now: float) -> bool:
        return self.users > 0 or now < max(self.next_at, self.resting_until, self.closed_until)


def retry_after(value: str | None, now: float) -> float | None:
    """Seconds to wait by a Retry-After header (RFC 9110, 10.2.3), given in seconds or as an HTTP date.

    None if it says neither. `now` is in seconds since the epoch. A date in the past is 0, one without a zone is UTC;
    a number of seconds is at most 1e9.
    """
    if value is None:
        return None
    text = value.strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), 1e9)
    try:
        until = parsedate_to_datetime(text)
        if until.tzinfo is None:
            until = until.replace(tzinfo=UTC)
        return max(0.0, until.timestamp() - now)
    except (TypeError, ValueError, OverflowError, IndexError):
        return None


_MANY_ORIGINS = 4096
_MAX_BYTES = 500 << 10  # RFC 9309 2.5: what a crawler must read at least
_MAX_DELAY = 10.0


class Robots:
    """Rules by origin, each file read once through `download`, which gives a URL's body or raises Failure."""

    def __init__(self, download: Callable[[NormalURL], Awaitable[bytes]], agent: str) -> None:
        self._download = download
        self._agent = agent
        self._rules: dict[str, Protego] = {}
        self._flight: SingleFlight[str, Protego] = SingleFlight()

    async def delay(self, url: NormalURL) -> float:
        """Seconds that the site wants between requests. Raises Failure if it disallows `url`."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        rules = self._rules.get(origin)
        if rules is None:
            rules = await self._flight.do(origin, lambda: self._read(join_url(url, "/robots.txt")))
            while len(self._rules) >= _MANY_ORIGINS:
                del self._rules[next(iter(self._rules))]
            self._rules[origin] = rules
        if not rules.can_fetch(url, self._agent):
            raise Failure("page_barred", "robots.txt disallows it")
        return min(rules.crawl_delay(self._agent) or 0.0, _MAX_DELAY)

    async def close(self) -> None:
        """Cancel what is being read."""
        await self._flight.close()

    async def _read(self, address: NormalURL) -> Protego:
        try:
            body = await self._download(address)
        except Failure as failure:
            if failure.again or failure.reason == "page_timeout":
                raise  # an unreachable robots.txt disallows everything (RFC 9309 2.3.1.4)
            return _rules("")
        return _rules(body[:_MAX_BYTES].decode("utf-8", "replace"))


def _rules(text: str) -> Protego:
    rules: Protego = Protego.parse(text)
    return rules
