"""Pages as WARC files, both ways: given away and read elsewhere, and archives that mean harm."""

import asyncio
import gzip
import io
import sys
import zlib
from pathlib import Path

import brotli
import msgspec
import pyarrow.parquet as pq
import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from adjudge.fetchers import warc_records
from adjudge.fetchers.limits import Limits
from adjudge.fetchers.page import Page
from adjudge.fetchers.snapshot import INDEX, SnapshotError, SnapshotFetcher
from adjudge.fetchers.warc import unpack_warc, write_warc
from adjudge.fetchers.warc_records import records
from tests.servers.base import Exchange, Server
from tests.snapshots import PAGES, SENTENCE, adjudge, config_of, page_of


async def pages_in(folder: Path) -> list[Page]:
    fetcher = SnapshotFetcher(folder, Limits(workers=1))
    try:
        return [page async for page in fetcher.pages()]
    finally:
        await fetcher.close()


async def unpacked(file: Path, folder: Path, **limits: int) -> list[Page]:
    await unpack_warc(file, folder, **limits)
    return await pages_in(folder)


async def test_pages_survive_a_web_archive_in_every_field(tmp_path: Path) -> None:
    hostile = page_of(
        "https://example.com/h",
        "T\r\nWARC-Type: response\r\n\r\nWARC/1.0\r\n\u2028",
        title="A\r\nWARC-Target-URI: https://evil.example/",
        final_url="https://example.com/h?\u2028",
    )
    pages = [*PAGES, hostile]
    write_warc(pages, tmp_path / "pages.warc.gz")
    assert await unpacked(tmp_path / "pages.warc.gz", tmp_path / "pages") == pages


def test_other_readers_find_the_texts_of_pages(tmp_path: Path) -> None:
    """No page can add a header or a record."""
    content = "T\r\nWARC-Type: response\r\n\r\nWARC/1.0\r\n\u2028"
    write_warc([page_of("https://a.example/x", content, title="a\r\nb: c")], tmp_path / "x.warc.gz")
    with (tmp_path / "x.warc.gz").open("rb") as file:
        found = [
            (one.rec_type, one.rec_headers.get_header("WARC-Target-URI"), one.content_stream().read())
            for one in ArchiveIterator(file, check_digests="raise")
        ]
    assert found[0] == ("conversion", "https://a.example/x", content.encode())
    assert [kind for kind, *_ in found] == ["conversion", "metadata"]


def scores(folder: Path) -> list[dict[str, object]]:
    return pq.read_table(folder / "run" / "scores.parquet").to_pylist()


def test_run_given_away_as_warc_has_the_same_scores_elsewhere(tmp_path: Path) -> None:
    """Read, redirected, gone and barred pages are the same without the network."""

    async def page(to: Exchange) -> None:
        await to.reply(f"<title>Bridge</title><p>{SENTENCE * 3}</p>".encode())

    async def moved(to: Exchange) -> None:
        await to.redirect("/page")

    async def barred(to: Exchange) -> None:
        await to.reply(b"", status="403 Forbidden")

    with Server(routes={"/page": page, "/moved": moved, "/barred": barred}) as server:
        urls = [server.url(path) for path in ("/page", "/moved", "/barred", "/gone")]
        here = config_of(tmp_path / "here", {"mode": "live", "allow": [server.address]}, *urls)
        first = adjudge(["evaluate", str(here)])
        assert (
            adjudge(["snapshot", str(tmp_path / "here/run"), "--out", str(tmp_path / "given"), "--warc"]) == 0
        )
    archive = tmp_path / "there.warc.gz"
    (tmp_path / "given/pages.warc.gz").rename(archive)
    assert adjudge(["snapshot", str(archive), "--out", str(tmp_path / "pages")]) == 0
    frozen = {"mode": "snapshot", "snapshot": str(tmp_path / "pages")}
    there = config_of(tmp_path / "there", frozen, *urls)
    assert adjudge(["evaluate", str(there)]) == first
    assert scores(tmp_path / "there") == scores(tmp_path / "here")
    assert any(row["value"] not in (None, 0.0) for row in scores(tmp_path / "here"))


def served(writer: WARCWriter, url: str, body: bytes, status: str = "200 OK", **headers: str) -> None:
    fields = [(name.replace("_", "-"), value) for name, value in headers.items()]
    http = StatusAndHeaders(status, fields, protocol="HTTP/1.1")
    writer.write_record(
        writer.create_warc_record(url, "response", payload=io.BytesIO(body), http_headers=http)
    )


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # warcio's writer forgets a file
@pytest.mark.parametrize("compressed", [True, False])
async def test_responses_of_any_archive_become_pages(tmp_path: Path, compressed: bool) -> None:
    html = f"<title>T</title><p>{SENTENCE * 3}</p>".encode()
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in (html[:50], html[50:])) + b"0\r\n\r\n"
    with (tmp_path / "a.warc").open("wb") as file:
        writer = WARCWriter(file, gzip=compressed)
        writer.write_record(writer.create_warcinfo_record("a.warc", {"software": "another"}))
        served(writer, "http://e.com/plain", html, Content_Type="text/html")
        served(writer, "http://e.com/plain", b"<p>later</p>", Content_Type="text/html")
        served(
            writer,
            "http://e.com/zipped",
            gzip.compress(html),
            Content_Encoding="gzip",
            Content_Type="text/html",
        )
        for coding, packed in (("br", brotli.compress(html)), ("deflate", zlib.compress(html))):
            kind = {"Content_Encoding": coding, "Content_Type": "text/html"}
            served(writer, f"http://e.com/{coding}", packed, **kind)
            whole = b"%x\r\n%s\r\n0\r\n\r\n" % (len(packed), packed)
            served(writer, f"http://e.com/{coding}-chunked", whole, Transfer_Encoding="chunked", **kind)
        served(writer, "http://e.com/chunked", chunks, Transfer_Encoding="chunked", Content_Type="text/html")
        served(writer, "http://e.com/moved", b"", "301 Moved", Location="/hop")
        served(writer, "http://e.com/hop", b"", "302 Found", Location="plain")
        served(writer, "http://e.com/loop", b"", "302 Found", Location="/loop2")
        served(writer, "http://e.com/loop2", b"", "302 Found", Location="/loop")
        served(writer, "http://e.com/gone", b"", "404 Not Found")
        served(writer, "http://e.com/large", b"x" * 20_000, Content_Type="text/html")
        served(writer, "http://e.com/bomb", gzip.compress(bytes(30_000)), Content_Encoding="gzip")
        served(writer, "dns:e.com", b"1.2.3.4")
        text = io.BytesIO(SENTENCE.encode())
        writer.write_record(
            writer.create_warc_record("http://e.com/text", "conversion", text, warc_content_type="text/plain")
        )
    found = {page.url: page for page in await unpacked(tmp_path / "a.warc", tmp_path / "p", max_bytes=15_000)}
    names = {url.removeprefix("http://e.com/"): page for url, page in found.items()}
    coded = ["br", "br-chunked", "deflate", "deflate-chunked"]
    others = ["bomb", "chunked", "gone", "hop", "large", "moved", "plain", "text", "zipped"]
    assert sorted(names) == sorted([*coded, *others])
    assert {names[name].text for name in (*coded, "plain", "zipped", "chunked", "moved", "hop")} == {
        names["plain"].text
    }
    assert "1932" in names["plain"].text and names["text"].text == SENTENCE
    assert names["moved"].final_url == "http://e.com/plain"
    assert names["gone"].reason == "page_gone"
    assert names["large"].reason == names["bomb"].reason == "page_unsupported"


def plain(*blocks: bytes, **headers: str) -> bytes:
    """Uncompressed records; a header of None is left out."""
    made = b""
    for number, block in enumerate(blocks):
        fields = {
            "WARC-Type": "conversion",
            "WARC-Target-URI": f"http://e.com/{number}",
            "Content-Type": "text/plain",
            "Content-Length": str(len(block)),
        } | {name.replace("_", "-"): value for name, value in headers.items()}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value != "left out")
        made += f"WARC/1.0\r\n{head}\r\n".encode() + block + b"\r\n\r\n"
    return made


WHOLE = gzip.compress(plain(b"a text")) + gzip.compress(plain(b"another text"))
HARMFUL = {
    "empty": b"",
    "no archive": b"PK\x03\x04 something else",
    "cut in a record": WHOLE[:-20],
    "cut in a header": WHOLE[: len(gzip.compress(plain(b"a text"))) + 12],
    "cut without compression": plain(b"a text")[:-8],
    "damaged": WHOLE[:60] + b"\xff\xff\xff" + WHOLE[63:],
    "too long a length": plain(b"a text", Content_Length="999999"),
    "too short a length": plain(b"a text\r\nand\r\nmore", Content_Length="2"),
    "negative length": plain(b"a text", Content_Length="-5"),
    "length in words": plain(b"a text", Content_Length="six"),
    "no length": plain(b"a text", Content_Length="left out"),
    "endless header": b"WARC/1.0\r\nWARC-Type: " + b"x" * 300_000,
    "endless headers": b"WARC/1.0\r\n" + b"A: b\r\n" * 200_000,
    "endless continuation": b"WARC/1.0\r\nA: b\r\n" + b" c\r\n" * 200_000,
    "endless HTTP headers": plain(
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200_000, WARC_Type="response", Content_Type="application/http"
    ),
    "bomb in a header": gzip.compress(b"WARC/1.0\r\nA: " + bytes(100_000_000)),
    "many bombs": b"".join([gzip.compress(plain(bytes(10_000_000)))] * 9),
    "one stream of many records": gzip.compress(plain(b"a text", b"another text")),
    "not a page's description": plain(b"{", WARC_Type="metadata", Content_Type="application/vnd.adjudge.page+json"),
    "deep description": plain(
        b"[" * 100_000, WARC_Type="metadata", Content_Type="application/vnd.adjudge.page+json"
    ),
    "page without its text": plain(
        b'{"url": "http://e.com/"}', WARC_Type="metadata", Content_Type="application/vnd.adjudge.page+json"
    ),
    "no target": plain(b"a text", WARC_Type="response", WARC_Target_URI="left out"),
}  # fmt: skip


@pytest.mark.parametrize("name", HARMFUL)
def test_harmful_archive_is_one_line_and_no_snapshot(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.warc.gz"
    file.write_bytes(HARMFUL[name])
    assert adjudge(["snapshot", str(file), "--out", str(tmp_path / "pages")]) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1 and "snapshot: " in said
    assert not (tmp_path / "pages" / INDEX).exists()


async def test_description_cannot_name_files_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "secret.html").write_text("secret")
    entry = {"url": "http://e.com/", "file": "../secret.html", "reason": "page_gone"}
    block = msgspec.json.encode(entry)
    content_type = "application/vnd.adjudge.page+json"
    (tmp_path / "x.warc").write_bytes(plain(block, WARC_Type="metadata", Content_Type=content_type))
    (page,) = await unpacked(tmp_path / "x.warc", tmp_path / "pages")
    assert page.reason == "page_gone" and page.text == ""


def test_file_in_place_of_a_snapshot_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.warc.gz"
    file.write_bytes(WHOLE)
    config = config_of(tmp_path / "run", {"mode": "snapshot", "snapshot": str(file)}, "http://e.com/")
    assert adjudge(["evaluate", str(config)]) == 2
    assert "run adjudge snapshot FILE --out DIR and pass DIR" in capsys.readouterr().err


def test_too_many_pages_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjudge.fetchers.warc.MAX_PAGES", 2)
    (tmp_path / "x.warc").write_bytes(plain(b"a", b"b", b"c", b"d"))
    with pytest.raises(SnapshotError, match="more than 2 pages"):
        asyncio.run(unpack_warc(tmp_path / "x.warc", tmp_path / "pages"))


def test_work_grows_with_the_number_of_records(tmp_path: Path) -> None:
    """Lines of Python for 250 to 2,000 records, in all that reading an archive runs."""

    def steps(count: int) -> int:
        file = tmp_path / f"{count}.warc"
        file.write_bytes(plain(*(b"a text" for _ in range(count))))
        total = 0

        def trace(_frame: object, event: str, _arg: object) -> object:
            nonlocal total
            total += event == "line"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)  # type: ignore[arg-type]
        try:
            asyncio.run(unpack_warc(file, tmp_path / str(count)))
        finally:
            sys.settrace(before)
        return total

    assert steps(2_000) <= 8 * steps(250) * 1.2


def test_long_block_is_not_kept_in_memory(tmp_path: Path) -> None:
    (tmp_path / "x.warc").write_bytes(plain(bytes(2_000_000), b"a text"))
    found = list(records(tmp_path / "x.warc", 1_000_000))
    assert [one.body for one in found] == [None, b"a text"]


@pytest.mark.parametrize("module", ["warcio.warcwriter", "warcio.archiveiterator"])
def test_missing_package_is_named(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.warc").write_bytes(plain(b"a text"))
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, warc_records.__name__)
    if module.endswith("archiveiterator"):
        assert adjudge(["snapshot", str(tmp_path / "x.warc"), "--out", str(tmp_path / "pages")]) == 2
        assert "warc: warcio is not installed; run pip install 'adjudge[warc]'" in capsys.readouterr().err
    else:
        with pytest.raises(ImportError):
            write_warc(PAGES, tmp_path / "pages.warc.gz")
