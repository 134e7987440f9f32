"""robots.txt (RFC 9309) for users who want it obeyed."""

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from protego import Protego

from adjudge.fetchers.failures import Failure
from adjudge.fetchers.flight import SingleFlight
from adjudge.fetchers.urls import NormalURL, join_url

_MANY_ORIGINS = 4096
MAX_RULES = 500 << 10
"""Bytes of a robots.txt that are read: what a crawler must read at least (RFC 9309, 2.5)."""
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
        return _rules(body.decode("utf-8-sig", "replace"))


def _rules(text: str) -> Protego:
    rules: Protego = Protego.parse(text)
    return rules
