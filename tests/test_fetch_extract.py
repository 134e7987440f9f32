"""From bytes to text, in this process and in workers."""

import asyncio
import os
import platform
import resource
import signal
from pathlib import Path

import pytest

from adjudge.fetchers.extract import MAX_ATTRIBUTES, MAX_DEPTH, decode, excess, extract
from adjudge.fetchers.failures import Failure
from adjudge.fetchers.page import could_be_read, kind_of, may_be_read, media_type
from adjudge.fetchers.pool import ExtractorPool
from adjudge.fetchers.process import Extractor, Unreadable
from benchmarks.pages import documents
from tests.html_shapes import SHAPES, shaped
from tests.nightly import quick_or_whole
from tests.processes import worker_processes
from tests.servers.hostile import ARTICLE, PROSE, SLOW_TO_READ

HTML = "text/html; charset=utf-8"
REFUSED = {
    "nested <": "elements nested more than 255 deep",
    "nested in": "elements nested more than 255 deep",
    "nested tables": "elements nested more than 255 deep",
    "nested lists": "elements nested more than 255 deep",
    "reopened": "elements nested more than 255 deep",
    "attributes": "a tag with more than 1,000 attributes",
    "quotes": "a tag with more than 1,000 attributes",
}
"""Parts of the names of shapes that are refused, and the reason."""


def pdf(text: str, title: str) -> bytes:
    """A PDF of one page with `text` on it."""
    drawing = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(drawing), drawing),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Title (%b) >>" % title.encode(),
    ]
    body, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return body + (
        b"xref\n0 %d\n0000000000 65535 f \n%btrailer\n<< /Size %d /Root 1 0 R /Info 6 0 R >>\nstartxref\n%d\n%%%%EOF"
        % (len(objects) + 1, table, len(objects) + 1, len(body))
    )


@pytest.mark.parametrize("extractor", ["trafilatura", "fast"])
def test_article_is_extracted_without_its_surroundings(extractor: Extractor) -> None:
    for document in documents(8):
        found = extract(document.body, HTML, extractor)
        assert found.title == f"{document.title} | The Daily Sample" and found.description.endswith(".")
        assert document.title in found.text
        assert "window.q" not in found.text and "margin:" not in found.text and "schema.org" not in found.text
        assert len(found.text) < len(document.body) / 2


@pytest.mark.parametrize("extractor", ["trafilatura", "fast"])
def test_short_text_is_kept(extractor: Extractor) -> None:
    assert extract(b"<p>Only this.", HTML, extractor).text == "Only this."
    links = b"<ul>" + b"".join(b"<li><a href=/%d>Item %d</a></li>" % (n, n) for n in range(5)) + b"</ul>"
    assert "Item 3" in extract(links, HTML, extractor).text


@pytest.mark.parametrize(
    "head", [b"", b"<title>\n A  title </title>", b"<meta property='og:title' content='A title'>"]
)
def test_titles_are_found(head: bytes) -> None:
    body = b"<html><head>" + head + b"</head><body><svg><title>Icon</title></svg><p>Text.</p></body></html>"
    assert extract(body, HTML, "fast").title == ("A title" if head else "")


def test_title_is_bounded_and_storable() -> None:
    found = extract(b"<title>" + b"x" * 9000 + b"</title><p>&#xD800; and &#0; text", HTML, "fast")
    assert len(found.title) == 1000 and found.text.encode()


def test_pdf_is_extracted() -> None:
    found = extract(pdf("The bridge was built in 1932.", "A report"), "application/pdf", "trafilatura")
    assert (found.title, found.text) == ("A report", "The bridge was built in 1932.")
    assert extract(pdf("Mislabelled", ""), "text/html", "trafilatura").text == "Mislabelled"


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (b'{"a": [1, 2]}', "application/json", '{"a": [1, 2]}'),
        (b"plain\ntext", "text/plain", "plain\ntext"),
        (b"a,b\n1,2", "text/csv", "a,b\n1,2"),
        (
            b"<?xml version='1.0'?><r><a>one</a> <b>two &amp; three</b></r>",
            "application/xml",
            "one\ntwo & three",
        ),
        (b"<rss><item><title>News</title></item></rss>", "application/rss+xml", "News"),
        (b"<!doctype html><p>Unlabelled", "", "Unlabelled"),
        (b"<html><p>Octets", "application/octet-stream", "Octets"),
        (b"just text", "", "just text"),
    ],
)
def test_other_text_kinds_are_extracted(body: bytes, content_type: str, text: str) -> None:
    assert extract(body, content_type, "trafilatura").text == text


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"\x00\x01\x02", ""),
        (b"\xff\xfe\xfd", "application/octet-stream"),
        (b"PK\x03\x04", "application/zip"),
        (b"GIF89a", "image/gif"),
        (b"<svg/>", "image/svg+xml"),
        (b"%PDF-1.7 broken", "application/pdf"),
        (b"not xml", "application/xml"),
    ],
)
def test_unreadable_bodies_raise(body: bytes, content_type: str) -> None:
    with pytest.raises(Unreadable):
        extract(body, content_type, "trafilatura")


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", HTML),
        (b"<html><body><script>x()</script></body></html>", HTML),
        (b"<r/>", "text/xml"),
        (b"   ", "text/plain"),
    ],
)
def test_page_without_words_is_read_as_empty(body: bytes, content_type: str) -> None:
    assert extract(body, content_type, "trafilatura").text == ""


@pytest.mark.parametrize(
    ("text", "encoding", "content_type", "before"),
    [
        ("Brücke", "utf-8", "text/html", ""),
        ("Brücke", "utf-8-sig", "text/html; charset=latin-1", ""),
        ("Brücke", "utf-16", "text/html", ""),
        ("Brücke", "latin-1", "text/html; charset=ISO-8859-1", ""),
        ("„Brücke“", "windows-1252", "text/html; charset=iso-8859-1", ""),
        ("Мост построен", "koi8-r", 'text/html; charset="KOI8-R"', ""),
        ("Мост построен", "windows-1251", "text/html", '<meta charset="windows-1251">'),
        (
            "Мост",
            "windows-1251",
            "text/html",
            "<meta http-equiv=x content='text/html; charset=windows-1251'>",
        ),
        ("橋は1932年に", "shift_jis", "text/html", "<meta charset=shift_jis>"),
        ("橋は1932年に", "iso-2022-jp", "text/html; charset=iso-2022-jp", ""),
        ("桥建于1932年", "gb18030", "text/html", "<meta charset=gb2312>"),
        ("다리는 1932년", "euc-kr", "text/html; charset=euc-kr", ""),
        ("桥建于1932年", "utf-8", "text/html; charset=gb2312", "<meta charset=gb2312>"),
    ],
)
def test_charsets_are_decoded(text: str, encoding: str, content_type: str, before: str) -> None:
    assert decode((before + text).encode(encoding), content_type) == before + text


def test_missing_charset_is_guessed() -> None:
    text = "Мост через реку построен в 1932 году и с тех пор дважды ремонтировался. " * 3
    assert decode(text.encode("windows-1251"), "text/html; charset=utf-8") == text
    assert decode(text.encode("windows-1251"), "text/html; charset=none-such") == text


@pytest.mark.parametrize("encoding", ["euc-kr", "cp949"])
def test_missing_korean_charset_is_guessed(encoding: str) -> None:
    text = "은하천 다리는 1958년에 완공되었고 길이는 412미터이다. 공사비는 모두 3억 6천만 원이 들었다. "
    page = (
        f"<html><head><script>{'var counter = 1;' * 2_000}</script></head><body><p>{text}</p></body></html>"
    )
    assert text in decode(page.encode(encoding), "text/html")
    assert text in decode(page.encode(encoding), "text/html; charset=utf-8")


def test_stray_bytes_leave_a_page_in_utf_8() -> None:
    page = "Le phare fut allumé en 1871. La tour mesure 48 mètres.".encode() + b" caf\xe9."
    assert "allumé en 1871. La tour mesure 48 mètres. caf\ufffd." in decode(page, "text/html")
    assert "\ufffd" in decode(bytes(range(128, 256)) * 2_000, "text/html")


def test_media_types_are_recognised() -> None:
    assert media_type(" Text/HTML ; charset=x") == "text/html" and media_type("nonsense") == ""
    assert may_be_read("") and may_be_read("application/ld+json") and not may_be_read("video/mp4")
    assert kind_of("application/xhtml+xml", b"") == "html" and kind_of("application/atom+xml", b"") == "xml"


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
NOISE = bytes(range(256)) * 8


@pytest.mark.parametrize(
    ("label", "body", "kind"),
    [
        *(
            (label, b"%PDF-1.7", "pdf")
            for label in ("image/pdf", "*/*", "application/force-download", "text/html", "a")
        ),
        ("application/pdf, application/octet-stream", b"%PDF-1.4", "pdf"),
        ("application/pdf", b"<!doctype html><p>The file is gone.", "html"),
        ("application/pdf", b"<br />Notice: line 3\n%PDF-1.7\n", "pdf"),
        ("application/pdf", NOISE, None),
        ("application/octetstream", b"\n<HTML lang=en>", "html"),
        ("unknown/unknown", b"<p>A word.", "html"),
        ("application/x-php", b"<b>", "html"),
        ("application/x-php", b"<bold", "text"),
        ("application/x-javascript", b'{"said": 1}', "text"),
        ("application/octet-stream", "Ein Gruß".encode("latin-1"), "text"),
        ("application/octet-stream", NOISE, None),
        ("application/xml", b"<!doctype html><p>", "html"),
        ("application/rss+xml", b"<!-- a comment --><rss/>", "xml"),
        *((label, PNG, None) for label in ("text/html", "text/plain", "image/png", "")),
        *((label, b"PK\x03\x04\x14\0\0\0", None) for label in ("text/html", "application/zip")),
        ("text/html", NOISE, None),
        ("text/html", b"A few very old \x01 marks. " * 9, "html"),
        ("text/html; charset=utf-16", "水の上の橋".encode("utf-16-le"), "html"),
    ],
)
def test_bytes_say_what_a_body_is(label: str, body: bytes, kind: str | None) -> None:
    assert kind_of(label, body) == kind
    assert kind is None or (may_be_read(label) and could_be_read(label, body[:1024]))


async def test_workers_give_the_same_text_as_this_process() -> None:
    pool = ExtractorPool(2, extractor="trafilatura", seconds=20)
    sample = [document.body for document in documents(12)]
    found = await asyncio.gather(*(pool.extract(body, HTML) for body in sample))
    await pool.close()
    assert found == [extract(body, HTML, "trafilatura") for body in sample]


async def test_crash_is_typed_and_the_worker_replaced() -> None:
    """More elements than the address space holds end the process from inside."""
    pool = ExtractorPool(1, extractor="fast", seconds=20, address_space=600 << 20)
    with pytest.raises(Failure) as caught:
        await pool.extract(b"<a>" * 5_000_000, HTML)
    assert caught.value.reason == "page_unsupported"
    found = await pool.extract(ARTICLE, HTML)
    await pool.close()
    assert PROSE.split(".", maxsplit=1)[0] in found.text


@pytest.mark.nightly
@pytest.mark.parametrize("extractor", ["trafilatura", "fast"])
async def test_hostile_shapes_are_read_or_refused_by_name(extractor: Extractor) -> None:
    """So many elements or attributes of each shape, all by one worker, which neither dies nor runs out of time."""
    many = quick_or_whole(20_000, 60_000)
    pool = ExtractorPool(1, extractor=extractor, seconds=20)
    await pool.extract(ARTICLE, HTML)
    workers = worker_processes()
    for name, shape in SHAPES.items():
        refused = next((why for part, why in REFUSED.items() if part in name), None)
        if refused is None:
            await pool.extract(shaped(shape, many), HTML)
            continue
        with pytest.raises(Failure) as caught:
            await pool.extract(shaped(shape, many), HTML)
        assert (caught.value.reason, caught.value.detail) == ("page_unsupported", refused), name
    assert worker_processes() == workers
    await pool.close()


@pytest.mark.parametrize("extractor", ["trafilatura", "fast"])
def test_pages_within_the_shape_limits_are_read(extractor: Extractor) -> None:
    deep = "<div>" * (MAX_DEPTH - 5) + f"<p>{PROSE}</p>" + "<br>" * 3_000
    wide = (
        "<p " + " ".join(f"a{n}='>'" for n in range(MAX_ATTRIBUTES)) + f">{PROSE}" + "<!-- long -->" * 5_000
    )
    for page in (deep, wide):
        assert PROSE[:40] in extract(page.encode(), HTML, extractor).text


@pytest.mark.parametrize(
    "page",
    [
        "<p " + "a='>' " * 9_000 + ">",
        "<p " + "/a= b" * 12_000,
        '<p a=b="c ' + "=d\t" * 20_000,
        "<p " + "<p " * 20_000,
    ],
)
def test_attributes_are_counted_as_a_browser_reads_them(page: str) -> None:
    assert excess(page) == REFUSED["attributes"]
    assert excess(page.replace("<p ", "< p ")) == ""


def test_tags_begin_where_a_browser_begins_them() -> None:
    many = "<p " + "a " * (MAX_ATTRIBUTES + 1) + ">"
    filler = "word " * 20_000
    assert excess(f"{filler}<div<div {many}") == REFUSED["attributes"]
    assert excess(f"{filler}<p title='{many}'>") == ""


@pytest.mark.parametrize("extractor", ["trafilatura", "fast"])
def test_comparison_in_a_program_is_no_tag(extractor: Extractor) -> None:
    program = "<script>for(s=0;s<n;s++){" + "a = b; " * 20_000 + "}</script>"
    page = f"<h1>A title</h1>{program}<p>{PROSE}</p>{program}"
    assert excess(page) == REFUSED["attributes"]
    assert PROSE[:40] in extract(page.encode(), HTML, extractor).text


@pytest.mark.parametrize(
    "before", ["", "<script>", "<svg><script>", "<script></script>", "<script>a<b</script>"]
)
def test_tag_beside_programs_is_counted(before: str) -> None:
    page = f"{before}<p {'a ' * 40_000}>{PROSE}"
    with pytest.raises(Unreadable, match=REFUSED["attributes"]):
        extract(page.encode(), HTML, "fast")


async def test_worker_killed_between_pages_is_replaced() -> None:
    pool = ExtractorPool(1, extractor="fast", seconds=20)
    await pool.extract(ARTICLE, HTML)
    (worker,) = worker_processes()
    os.kill(worker, signal.SIGKILL)
    assert (await pool.extract(ARTICLE, HTML)).title == "A plain article"
    await pool.close()
    assert worker_processes() == []


async def test_worker_is_not_charged_for_the_memory_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    held = bytearray(400 << 20)
    held[:: resource.getpagesize()] = b"x" * len(held[:: resource.getpagesize()])
    monkeypatch.setattr("adjudge.fetchers.process.RETIRE_AT", 300 << 20)
    pool = ExtractorPool(1, extractor="fast", seconds=20)
    await pool.extract(ARTICLE, HTML)
    before = worker_processes()
    await pool.extract(ARTICLE, HTML)
    assert worker_processes() == before and len(before) == 1
    await pool.close()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="about glibc's allocator")
async def test_worker_keeps_its_memory_for_the_next_page() -> None:
    """A worker that gave its memory back in between would fault in about 70 pages of memory per document."""
    pool = ExtractorPool(1, extractor="fast", seconds=20)
    sample = [document.body for document in documents(150)]
    faults: list[int] = []
    for _ in range(3):
        for body in sample:
            await pool.extract(body, HTML)
        (worker,) = worker_processes()
        faults.append(_minor_faults(worker))
    await pool.close()
    assert faults[2] - faults[1] < 10 * len(sample)


def _minor_faults(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7])


async def test_cancelled_reader_frees_the_worker() -> None:
    pool = ExtractorPool(1, extractor="fast", seconds=60)
    hung = asyncio.create_task(pool.extract(SLOW_TO_READ, HTML))
    await asyncio.sleep(0.5)
    hung.cancel()
    assert (await pool.extract(ARTICLE, HTML)).title == "A plain article"
    assert hung.cancelled()
    await pool.close()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (r'{"a": "Br\u00fccke\nvon \"1887\""}', '{"a": "Brücke\nvon "1887""}'),
        (r'"\ud83d\ude82 \\u0041"', '"\U0001f682 \\u0041"'),
        (r'"\ud83d"', '"\ufffd"'),
        ("[1, 2", "[1, 2"),
    ],
)
def test_json_is_read_without_escapes(source: str, said: str) -> None:
    assert extract(source.encode(), "application/json", "fast").text == said
    assert extract(source.encode(), "text/plain", "fast").text == source


def test_a_word_processor_s_markup_is_no_text() -> None:
    for label in ("application/rtf", "text/plain", ""):
        with pytest.raises(Unreadable):
            extract(rb"{\rtf1\ansi The house was sold.}", label, "fast")
