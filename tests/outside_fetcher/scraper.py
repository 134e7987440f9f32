"""A downloader from outside the package: asks a scraping service, which renders pages, for each URL."""

from functools import cached_property

import aiohttp
import msgspec

from adjudge.fetchers.downloader import Download


class Scraper(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """`service` is the address of the scraping service; `wait` is how many seconds it lets a page's scripts run."""

    service: str
    wait: float = 0.0

    @property
    def version(self) -> str:
        return "1"

    @cached_property
    def session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession()

    async def download(self, url: str) -> Download:
        asked = {"url": url, "wait": str(self.wait)}
        async with self.session.get(self.service, params=asked) as reply:
            reply.raise_for_status()  # the service's failure, not the page's
            return Download(
                body=await reply.read(),
                content_type=reply.headers.get("X-Page-Type", "text/html"),
                status_code=int(reply.headers.get("X-Page-Status", "200")),
                final_url=reply.headers.get("X-Page-URL", ""),
            )

    async def close(self) -> None:
        if "session" in self.__dict__:
            await self.session.close()
