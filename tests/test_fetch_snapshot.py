"""Frozen pages: equal every time, never outside their folder, and back again as they were."""

import asyncio
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.fetchers.limits import Limits
from adjudge.fetchers.page import Page
from adjudge.fetchers.snapshot import (
    Entry,
    SnapshotError,
    SnapshotFetcher,
    _opener,
    render,
    unrender,
    write_pages,
)
from adjudge.fetchers.urls import normalise_url
from tests.servers.base import Server
from tests.servers.hostile import ARTICLE
from tests.snapshots import PAGES, page_of

ONE = Limits(workers=1)


def folder_of(root: Path, *entries: dict[str, object], **files: bytes) -> Path:
    for name, body in files.items():
        (root / name.replace("__", ".")).write_bytes(body)
    (root / "index.jsonl").write_bytes(b"\n".join(msgspec.json.encode(entry) for entry in entries))
    return root


async def pages_of(folder: Path) -> list[Page]:
    fetcher = SnapshotFetcher(folder, ONE)
    try:
        return [page async for page in fetcher.pages()]
    finally:
        await fetcher.close()


async def test_pages_are_read_from_the_folder(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path,
        {
            "url": "HTTPS://Example.com",
            "file": "a.html",
            "content_type": "text/html; charset=utf-8",
            "status_code": 200,
        },
        {
            "url": "https://example.com/moved",
            "file": "a.html",
            "final_url": "https://example.com/",
            "title": "Its own",
        },
        {"url": "https://example.com/notes", "file": "notes.txt", "fetched_at": 1.5e9},
        {"url": "https://example.com/gone", "status_code": 404},
        {"url": "https://example.com/sick", "status_code": 503},
        {"url": "https://example.com/late", "reason": "page_timeout", "detail": "it was late"},
        a__html=ARTICLE,
        notes__txt="Prosa für alle.\n".encode(),
    )
    home, moved, notes, gone, sick, late = await pages_of(folder)
    assert home.url == "https://example.com/" and home.title == "A plain article" and "1932" in home.text
    assert home.description == "What it says." and home.content_type == "text/html" and len(home.sha256) == 64
    assert moved.final_url == "https://example.com/" and moved.title == "Its own" and moved.text == home.text
    assert (notes.text, notes.content_type, notes.fetched_at) == ("Prosa für alle.", "text/plain", 1.5e9)
    assert [page.reason for page in (gone, sick, late)] == ["page_gone", "page_server_error", "page_timeout"]
    assert late.detail == "it was late" and late.status == "failed"


async def test_page_outside_the_snapshot_is_not_fetched(tmp_path: Path) -> None:
    with Server() as server:
        fetcher = SnapshotFetcher(
            folder_of(tmp_path, {"url": "https://example.com/", "status_code": 410}), ONE
        )
        assert (await fetcher.read(server.url())).reason == "page_not_in_snapshot"
        assert (await fetcher.read("no url")).reason == "citation_malformed"
        assert (await fetcher.read("http://www.example.com/")).reason == "page_not_in_snapshot"
        await fetcher.close()
    assert server.connections == 0


async def test_page_is_found_under_every_address_of_it(tmp_path: Path) -> None:
    listed = ({"url": f"https://example.com/{name}", "file": f"{name[0]}.txt"} for name in ("a", "b?c=1"))
    own = {"url": "http://example.com/a", "file": "own.txt"}
    files = {"a__txt": b"The first.", "b__txt": b"The second.", "own__txt": b"Its own."}
    fetcher = SnapshotFetcher(folder_of(tmp_path, *listed, own, **files), ONE)
    for asked, final, text in (
        ("http://example.com/a", "http://example.com/a", "Its own."),
        ("https://example.com/a/", "https://example.com/a", "The first."),
        ("http://example.com:80/b/?utm_source=x&c=1#d", "https://example.com/b?c=1", "The second."),
    ):
        page = await fetcher.read(asked)
        assert (page.url, page.final_url, page.text) == (normalise_url(asked), final, text)
    assert (await fetcher.read("https://example.com/b?c=2")).reason == "page_not_in_snapshot"
    await fetcher.close()


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"file": "a.html"}',
        '{"url": "https://e.com/", "file": "a.html", "colour": "red"}',
        '{"url": "nonsense", "file": "a.html"}',
        '{"url": "https://e.com/"}',
        '{"url": "https://e.com/", "status_code": 200}',
        '{"url": "https://e.com/", "file": "missing.html"}',
        '{"url": "https://e.com/", "file": "../outside.html"}',
        '{"url": "https://e.com/", "file": "/etc/passwd"}',
        '{"url": "https://e.com/", "file": "link.html"}',
        '{"url": "https://e.com/", "file": "inner/../../outside.html"}',
        '{"url": "https://e.com/", "file": "."}',
        '{"url": "https://e.com/", "file": "a.html", "reason": "bad_luck"}',
        '{"url": "", "file": "a.html"}',
        '{"url": "https://ok.com/", "file": "outside.html"}',
        '{"url": "https://ok.com/", "file": "a.html", "title": "Another"}',
        "[" * 100_000,
    ],
)
def test_bad_line_is_rejected_with_its_line_number(line: str, tmp_path: Path) -> None:
    (tmp_path / "outside.html").write_text("secret")
    folder = tmp_path / "snapshot"
    folder.mkdir()
    (folder / "a.html").write_bytes(ARTICLE)
    (folder / "link.html").symlink_to(tmp_path / "outside.html")
    good = '{"url": "https://ok.com/", "file": "a.html"}'
    (folder / "index.jsonl").write_text(f"{good}\n{good}\n\n{line}\n")
    fetcher = SnapshotFetcher(folder, ONE)
    assert fetcher.urls == ["https://ok.com/"]
    assert [(found.file, found.line) for found in fetcher.rejected] == [(str(folder / "index.jsonl"), 4)]
    (folder / "index.jsonl").write_text(line)
    if "ok.com" not in line:
        with pytest.raises(SnapshotError, match=r"index\.jsonl:1: "):
            SnapshotFetcher(folder, ONE)


@pytest.mark.parametrize("swapped", ["file", "folder", "gone", "pipe", "directory"])
async def test_file_swapped_in_mid_run_is_one_missing_page(swapped: str, tmp_path: Path) -> None:
    folder = tmp_path / "snapshot"
    (folder / "inner").mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "b.html").write_text("<p>secret</p>")
    (folder / "inner" / "b.html").write_bytes(ARTICLE)
    folder_of(
        folder,
        {"url": "https://e.com/a", "file": "a.html"},
        {"url": "https://e.com/b", "file": "inner/b.html"},
        a__html=ARTICLE,
    )
    fetcher = SnapshotFetcher(folder, ONE)
    victim = folder / "inner" / "b.html"
    victim.unlink()
    if swapped == "file":
        victim.symlink_to(elsewhere / "b.html")
    elif swapped == "folder":
        victim.parent.rmdir()
        victim.parent.symlink_to(elsewhere)
    elif swapped == "pipe":
        os.mkfifo(victim)
    elif swapped == "directory":
        victim.mkdir()
    async with asyncio.timeout(60):
        pages = [page async for page in fetcher.pages()]
    await fetcher.close()
    assert [page.reason for page in pages] == [None, "snapshot_damaged"]
    assert pages[1].text == "" and str(tmp_path) not in pages[1].detail


def test_folder_without_an_index_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match=r"index\.jsonl"):
        SnapshotFetcher(tmp_path, ONE)


async def test_pages_are_read_back_from_html_files(tmp_path: Path) -> None:
    malformed = page_of("nonsense", status="failed", reason="citation_malformed", text="")
    write_pages([*PAGES, malformed], tmp_path)
    assert await pages_of(tmp_path) == PAGES
    assert len(list(tmp_path.glob("*.html"))) == 4


@given(st.text(), st.text())
def test_rendered_texts_round_trip(text: str, beside: str) -> None:
    assert unrender(render(text, beside)) == (text, beside)


def test_link_that_appears_after_the_check_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.html").write_text("secret")
    folder = tmp_path / "snapshot"
    folder.mkdir()
    (folder / "a.html").symlink_to(tmp_path / "secret.html")
    (folder / "inner").symlink_to(tmp_path)
    for path in (folder / "a.html", folder / "inner" / "secret.html"):
        opener = _opener(folder)
        with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
            opener(str(path), os.O_RDONLY)


async def test_oversized_file_is_not_read(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"url": "https://e.com/", "file": "a.html"}, a__html=ARTICLE)
    fetcher = SnapshotFetcher(folder, Limits(workers=1, max_bytes=len(ARTICLE) - 1))
    pages = await asyncio.gather(*(fetcher.read("https://e.com/") for _ in range(3)))
    await fetcher.close()
    assert {page.reason for page in pages} == {"page_unsupported"}


def test_entry_is_written_without_unset_fields() -> None:
    assert (
        msgspec.json.encode(Entry(url="https://e.com/", file="a.html"))
        == b'{"url":"https://e.com/","file":"a.html"}'
    )
