"""Peers that read the same pages, in a separate environment (make peers); `benchmarks.peers` starts them.

    PEERS/bin/python -P benchmarks/peer_pages.py scrapy|loop IN_FLIGHT FILE

FILE holds one URL per line. On a line on standard input the program prints one JSON object and ends, because Scrapy can
start only once per process: the version, seconds, CPU seconds, the number of pages read, and each page's fields by URL.
Imports, one extraction and the start of Scrapy are not timed.
"""

import hashlib
import json
import sys
import time
from collections.abc import AsyncIterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import parsel
import trafilatura

Fields = dict[str, str]


class Clock:
    """Wall and CPU seconds since the last start."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        return {"seconds": time.perf_counter() - self._wall, "cpu": time.process_time() - self._cpu}


def fields(body: bytes) -> Fields:
    """What is kept of a page: the hash of its bytes, title and description from its head, and its main text."""
    source = body.decode()
    head = parsel.Selector(source[: source.find("<body")])
    return {
        "sha256": hashlib.sha256(body).hexdigest(),
        "title": head.css("title::text").get(""),
        "description": head.css("meta[name=description]::attr(content)").get(""),
        "text": trafilatura.extract(source) or "",
    }


def in_scrapy(urls: list[str], in_flight: int, clock: Clock) -> dict[str, Fields]:
    """A spider with trafilatura in its callback."""
    import scrapy
    from scrapy.crawler import CrawlerProcess

    found: dict[str, Fields] = {}

    class Reader(scrapy.Spider):  # type: ignore[misc]
        name = "reader"

        async def start(self) -> AsyncIterator[scrapy.Request]:
            clock.start()
            for url in urls:
                yield scrapy.Request(url, dont_filter=True)

        def parse(self, response: Any) -> None:
            found[response.url] = fields(response.body)

    process = CrawlerProcess(
        {
            "CONCURRENT_REQUESTS": in_flight,
            "CONCURRENT_REQUESTS_PER_DOMAIN": in_flight,
            "COOKIES_ENABLED": False,
            "DOWNLOAD_DELAY": 0,
            "LOG_ENABLED": False,
            "ROBOTSTXT_OBEY": False,
            "TELNETCONSOLE_ENABLED": False,
        }
    )
    process.crawl(Reader)
    process.start()
    return found


def in_a_loop(urls: list[str], in_flight: int, clock: Clock) -> dict[str, Fields]:
    """One page after the other, on one connection."""
    import requests

    clock.start()
    with requests.Session() as session:
        return {url: fields(session.get(url, timeout=60).content) for url in urls}


def main() -> None:
    name, in_flight, file = sys.argv[1:]
    read, package = {"scrapy": (in_scrapy, "scrapy"), "loop": (in_a_loop, "trafilatura")}[name]
    fields(b"<html><head></head><body><p>Now the extractor is loaded.</p></body></html>")
    sys.stdin.readline()
    clock = Clock()
    found = read(Path(file).read_text().split(), int(in_flight), clock)
    done = clock.read() | {"answered": len(found), "fields": found}
    print(json.dumps({"version": version(package), **done}))


if __name__ == "__main__":
    main()
