"""Killed in the middle of many pages, the same command loses no written page and repeats none."""

import asyncio
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from adjudge.engine.commands.fetch import FetchRow, fetch_command, fetch_config
from adjudge.engine.errors import UsageError
from tests.nightly import quick_or_whole
from tests.servers.base import Exchange, Server
from tests.servers.hostile import plain

PAGES = quick_or_whole(1_500, 5_000)
COMMAND = """
import asyncio, sys
from adjudge.engine.commands.fetch import fetch_command, fetch_config
file, store, allow = sys.argv[1:]
config = fetch_config(allow=[allow], extractor="fast")
asyncio.run(fetch_command(file, store, config, lambda row: None))
"""


WITHHELD = PAGES * 3 // 5


async def page(to: Exchange) -> None:
    await to.reply(f"<title>{to.request.path}</title><p>This is page {to.request.path}.</p>".encode())


def written(store: Path) -> set[str]:
    """URLs of the pages in the parts on disk, as any Parquet reader sees them."""
    parts = (store / "pages").glob("*.parquet")
    return {url for part in parts for url in pq.read_table(part, columns=["url"])["url"].to_pylist()}


@pytest.mark.nightly
def test_killed_fetch_resumes(tmp_path: Path) -> None:
    """The server withholds the last two fifths of the pages until the kill, so that it comes in the middle."""
    store, file = tmp_path / "store", tmp_path / "urls.txt"
    killed = False

    async def withheld(to: Exchange) -> None:
        while not killed and int(to.request.path[1:]) >= WITHHELD:
            await asyncio.sleep(0.05)
        await page(to)

    with Server(otherwise=withheld) as server:
        urls = [server.url(f"/{n}") for n in range(PAGES)]
        file.write_text("\n".join(urls))
        command = [sys.executable, "-c", COMMAND, str(file), str(store), server.address]
        with subprocess.Popen(command) as process:
            while not written(store) and process.poll() is None:
                time.sleep(0.01)
            process.kill()
        killed = True
        kept, asked = written(store), len(server.log)
        assert 0 < len(kept) <= asked < PAGES and process.returncode < 0
        subprocess.run(command, check=True)
        times = Counter(server.paths())
    assert written(store) == set(urls)
    assert {times[path] for path in times if server.url(path) in kept} == {1}
    assert set(times) == {f"/{n}" for n in range(PAGES)}
    assert len(server.log) == asked + PAGES - len(kept)


async def rows_of(file: Path, store: Path, *allow: str) -> list[FetchRow]:
    rows: list[FetchRow] = []
    await fetch_command(file, str(store), fetch_config(allow=allow, extractor="fast"), rows.append)
    return rows


async def test_rows_in_the_files_order_with_equal_urls_fetched_once(tmp_path: Path) -> None:
    file = tmp_path / "urls.txt"
    with Server(routes={"/a": plain, "/b": plain}) as server:
        lines = [*map(server.url, ("/b", "/gone", "/a", "/b#x")), "", "  nonsense ", "\ud7ff"]
        file.write_text("\r\n".join(lines))
        rows = await rows_of(file, tmp_path / "store", server.address)
        asked = len(server.log)
        again = await rows_of(file, tmp_path / "store", server.address)
        assert asked == len(server.log) == 3
    assert [row.url for row in rows] == [line.strip() for line in lines if line]
    malformed = "citation_malformed"
    assert [row.reason for row in rows] == [None, "page_gone", None, None, malformed, malformed]
    assert rows[0].chars > 500 and rows[0].content_type == "text/html" and len(rows[0].sha256) == 64
    assert [undated(row) for row in rows] == [undated(row) for row in again]


def undated(row: FetchRow) -> FetchRow:
    return msgspec.structs.replace(row, seconds=0.0)


async def test_usage_errors_give_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"missing\.txt"):
        await rows_of(tmp_path / "missing.txt", tmp_path / "store")
    (tmp_path / "urls.txt").write_text("http://127.0.0.1/")
    with pytest.raises(UsageError, match=r"allow: 'not a host' .*; write HOST:PORT"):
        await rows_of(tmp_path / "urls.txt", tmp_path / "store", "not a host")
    with pytest.raises(UsageError, match="positive"):
        fetch_config(timeout=0)
    with pytest.raises(UsageError, match="max_bytes"):
        fetch_config(max_bytes=-1)


async def test_stored_block_is_fetched_again_once_allowed(tmp_path: Path) -> None:
    file = tmp_path / "urls.txt"

    async def reason(*allow: str) -> str | None:
        (row,) = await rows_of(file, tmp_path / "store", *allow)
        return row.reason

    with Server(routes={"/a": plain}) as server:
        file.write_text(server.url("/a"))
        assert await reason() == await reason("127.0.0.1:1") == "page_blocked"
        assert await reason(server.address) is None
        assert await reason(server.address) is None and await reason() is None
        assert len(server.log) == 1
