"""Runs to view, and the viewer on them, for tests."""

import asyncio
import contextlib
import html
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qsl

import aiohttp
import msgspec
import pyarrow as pa
from selectolax.lexbor import LexborHTMLParser as HTMLParser

from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.config.run import RunConfig
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.viewer.app import FollowedRun, Shelf, Viewer
from adjudge.engine.viewer.data.query import Where, with_fields
from adjudge.engine.viewer.export import Names, export
from tests.examples import evaluated, shipped
from tests.mock_openai import Call, MockOpenAI, completion
from tests.worlds import lines

QUICKSTART = shipped("quickstart") / "adjudge.yaml"

TAGS = (
    '<script>alert("x")</script><img src=x onerror=alert(1)>" onfocus=alert(2) autofocus x="</textarea></pre>'
)
ODD = "\u202e desrever \u2066 \x07\x00\x1b[31m \ufffe zero\u200bwidth 👩\u200d👩\u200d👧 \U000e0041 é"
HUGE = "endless " * 40_000


async def quickstart(folder: Path, judge: object = "lexical", name: str = "run") -> Path:
    """The run folder of the shipped example, judged by `judge`."""
    if judge == "lexical":
        return await asyncio.to_thread(evaluated, "quickstart", folder, name)
    config = RunConfig.load(QUICKSTART, out=str(folder / name), store=str(folder / "store"), judge=judge)
    await evaluate_async(config)
    return folder / name


async def hostile(folder: Path) -> Path:
    """The run folder of hostile reports, pages, names and replies."""
    task, system = f"../../etc/passwd?a=1&b=%2e{TAGS}", f"{TAGS}{ODD}"
    urls = ["https://evil.example/a?x='\"><script>alert(3)</script>", "https://evil.example/big"]
    report = (
        f"# {TAGS}\n\n{ODD}\n\nThe tower is 42 metres high in all seasons of the year [1]. {TAGS} "
        f"[click me](javascript:alert(4)) The tower stands on nine pillars of grey stone [2].\n\n{HUGE}\n\n"
        f"## References\n1. One, {urls[0].replace(' ', '%20')}\n2. Two, {urls[1]}\n"
    )
    lines(folder / "tasks.jsonl", [{"id": task, "prompt": f"{TAGS}{ODD}", "domain": TAGS}])
    rows = [
        {"task_id": task, "system": system, "text": report},
        {"task_id": task, "system": "../..", "text": "It says nothing."},
    ]
    lines(folder / "reports.jsonl", rows)
    page = f"<html><title>&lt;script&gt;{ODD[:10]}</title><body><article><p>The tower is 42 metres high. "
    page += f"{html.escape(TAGS)} {html.escape(HUGE)}</p></article></body></html>"
    (folder / "pages").mkdir()
    (folder / "pages" / "a.html").write_text(page, encoding="utf-8")
    lines(
        folder / "pages" / "index.jsonl", [{"url": url, "file": "a.html", "status_code": 200} for url in urls]
    )
    config = {
        "tasks": "tasks.jsonl",
        "reports": ["reports.jsonl"],
        "protocols": [{"name": "fact", "extraction": "markers"}],
        "fetch": {"mode": "snapshot", "snapshot": "pages"},
        "store": "store",
        "out": "run",
    }

    async def lies(mock: MockOpenAI, call: Call) -> object:
        return None if call.is_probe else completion(f"{TAGS}{ODD}{'so ' * 50_000}")

    async with MockOpenAI(fault=lies) as mock:
        judge = {"backend": "openai", "url": mock.url, "model": TAGS, "retries": 0}
        path = folder / "adjudge.yaml"
        path.write_bytes(msgspec.yaml.encode({**config, "judge": judge}))
        await evaluate_async(RunConfig.load(path))
    return folder / "run"


class Reader:
    """Reads a viewer's pages."""

    def __init__(self, session: aiohttp.ClientSession, url: str, where: Where = with_fields) -> None:
        self.session = session
        self.url = url
        self._where = where

    def at(self, path: str) -> str:
        """The URL of the page that the viewer has at `path`."""
        name, _, query = path.partition("?")
        return self.url + self._where(name, dict(parse_qsl(query)))

    async def get(self, path: str, **options: object) -> tuple[int, str, "aiohttp.typedefs.LooseHeaders"]:
        """Status, body and headers of `path`, relative to the viewer."""
        async with self.session.get(self.url + path, allow_redirects=False, **options) as response:
            return response.status, await response.text(), response.headers

    async def page(self, path: str) -> HTMLParser:
        """An existing page."""
        status, body, _ = await self.get(path)
        assert status == 200, (path, body)
        return HTMLParser(body)

    async def crawl(self, most: int = 10_000, skip: str = "$^") -> AsyncIterator[tuple[str, str, object]]:
        """(path, body, headers) of the home page and every page it leads to, each once."""
        seen, waiting = set(), [""]
        while waiting and len(seen) < most:
            path = waiting.pop(0)
            if path in seen:
                continue
            seen.add(path)
            status, body, headers = await self.get(path)
            assert status == 200, (path, body)
            yield path, body, headers
            if headers["Content-Type"].startswith("text/html") and path.rpartition("/")[2] != "leaderboard":
                waiting += [link for link in links(path, body) if not re.search(skip, link)]


def links(path: str, body: str) -> list[str]:
    """The links of a page inside the viewer."""
    folder = "other/" if path.startswith("other/") else ""
    found = []
    for node in HTMLParser(body).css("a[href], link[href]"):
        target = node.attributes["href"] or ""
        if target.startswith(("http://", "https://", "data:", "#")):
            continue
        target = target.removeprefix("./")
        found.append(target.removeprefix("../") if target.startswith("../") else folder + target)
    return found


@contextlib.asynccontextmanager
async def viewing(run: Path, other: Path | None = None, labels: Path | None = None) -> AsyncIterator[Reader]:
    """A reader of the viewer on `run`."""
    async with reading(
        Viewer(FollowedRun(str(run), labels), None if other is None else FollowedRun(str(other)))
    ) as reader:
        yield reader


@contextlib.asynccontextmanager
async def viewing_folder(folder: Path) -> AsyncIterator[Reader]:
    """A reader of the viewer on the runs below `folder`."""
    async with reading(Viewer(Shelf(str(folder)))) as reader:
        yield reader


@contextlib.asynccontextmanager
async def reading(viewer: Viewer) -> AsyncIterator[Reader]:
    """A reader of `viewer` while it serves."""
    url = await viewer.start(0)
    try:
        async with aiohttp.ClientSession() as session:
            yield Reader(session, url)
    finally:
        await viewer.stop()


@contextlib.asynccontextmanager
async def exporting(run: Path, folder: Path, **options: bool) -> AsyncIterator[Reader]:
    """A reader of the pages of `run` exported into `folder`, under `python -m http.server`."""
    await asyncio.to_thread(export, str(run), str(folder / "site"), **options)
    serve = ("-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(folder / "site"))
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-u", *serve, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        assert server.stdout is not None
        said = (await server.stdout.readline()).decode()
        port = re.search(r"port (\d+)", said)
        assert port is not None, said
        async with aiohttp.ClientSession() as session:
            names = Names(RunRecord.read(run), options.get("sources", False))
            yield Reader(session, f"http://127.0.0.1:{port[1]}/", names)
    finally:
        server.terminate()
        await server.wait()


def unpacked(packed: bytes) -> bytes:
    """What an exported file or a part of it holds, packed as it is."""
    return pa.input_stream(pa.py_buffer(packed), compression="zstd").read()
