"""One spelling per URL, and MalformedURL for everything else."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.fetchers.urls import (
    MAX_URL,
    MalformedURL,
    join_url,
    normalise_url,
    page_key,
    page_parts,
    site_of,
    worker_of,
)


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("HTTP://ExAmple.COM", "http://example.com/"),
        ("http://example.com:80/", "http://example.com/"),
        ("https://example.com:443/", "https://example.com/"),
        ("https://example.com:80/", "https://example.com:80/"),
        ("http://example.com:/", "http://example.com/"),
        ("http://example.com:0080/", "http://example.com/"),
        ("http://example.com./a", "http://example.com/a"),
        ("https://example.com/a#part", "https://example.com/a"),
        ("https://example.com/a#:~:text=some%20words", "https://example.com/a"),
        ("https://example.com?q=1", "https://example.com/?q=1"),
        ("https://example.com/?b=2&a=1&b=1", "https://example.com/?b=2&a=1&b=1"),
        ("https://example.com/?", "https://example.com/?"),
        ("https://example.com/a/./b/../c", "https://example.com/a/c"),
        ("https://example.com/../../a", "https://example.com/a"),
        ("https://example.com/a/%2e%2E/b", "https://example.com/b"),
        ("https://example.com/a//b/", "https://example.com/a//b/"),
        ("https://example.com/%7euser/%e4%b8%ad", "https://example.com/~user/%E4%B8%AD"),
        ("https://example.com/中文?q=ü ö", "https://example.com/%E4%B8%AD%E6%96%87?q=%C3%BC%20%C3%B6"),
        ("https://example.com/100%", "https://example.com/100%25"),
        ("https://example.com/a%2Fb", "https://example.com/a%2Fb"),
        ("https://en.wikipedia.org/wiki/Bridge_(game)", "https://en.wikipedia.org/wiki/Bridge_(game)"),
        ("https://example.com/a[1]", "https://example.com/a%5B1%5D"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://BÜCHER.example/", "https://xn--bcher-kva.example/"),
        ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
        ("https://例え。テスト/", "https://xn--r8jz45g.xn--zckzah/"),
        ("https://ｅｘａｍｐｌｅ．ｃｏｍ/", "https://example.com/"),
        ("https://ex%61mple.com/", "https://example.com/"),
        ("https://r3---sn-x.example.com/", "https://r3---sn-x.example.com/"),
        ("https://under_score.example.com/", "https://under_score.example.com/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://0x7f.0.0.1/", "http://127.0.0.1/"),
        ("http://0177.1/", "http://127.0.0.1/"),
        ("http://[::FFFF:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
        ("http://[2001:DB8:0:0::1]:8080/", "http://[2001:db8::1]:8080/"),
        (" \thttps://example.com/a\n", "https://example.com/a"),
        ("https://exam\nple.com/a\tb", "https://example.com/ab"),
        ("https:\\\\example.com\\a", "https://example.com/a"),
        ("http://good.example\\@evil.example/", "http://good.example/@evil.example/"),
        ("http://user:pa%20ss@example.com/", "http://user:pa%20ss@example.com/"),
        ("http://a@b@example.com/", "http://a%40b@example.com/"),
    ],
)
def test_urls_have_one_normal_form(url: str, normal: str) -> None:
    assert normalise_url(url) == normal
    assert normalise_url(normal) == normal


@pytest.mark.parametrize(
    ("url", "leads_to"),
    [
        ("https://www.google.com/url?q=https://a.example/b&sa=D", "https://a.example/b"),
        (
            "https://google.de/url?sa=t&url=https%3A%2F%2Fa.example%2F%3Fc%3D1%26d%3D2&usg=A",
            "https://a.example/?c=1&d=2",
        ),
        (
            "https://www.google.co.uk/url?q=https%3A%2F%2Fwww.google.com%2Furl%3Fq%3Dhttp%3A%2F%2Fa.example",
            "http://a.example/",
        ),
        ("https://www.google.com/url?q=https://10.0.0.1/", "https://10.0.0.1/"),
        ("https://l.facebook.com/l.php?u=https%3A%2F%2Fa.example%2Fb&h=AT0", "https://a.example/b"),
        ("https://duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example%2Fb&rut=1", "https://a.example/b"),
        ("https://www.youtube.com/redirect?event=x&q=https%3A%2F%2Fa.example%2Fb", "https://a.example/b"),
        (
            "https://eur01.safelinks.protection.outlook.com/?url=https%3A%2F%2Fa.example%2Fb",
            "https://a.example/b",
        ),
        ("https://www.youtube.com/watch?v=1&q=https://a.example/", None),
        ("https://link.zhihu.com/?target=https%3A//a.example/b", "https://a.example/b"),
        ("https://vk.com/away.php?to=https%3A%2F%2Fa.example%2Fb&cc_key=", "https://a.example/b"),
        ("https://steamcommunity.com/linkfilter/?u=https%3A%2F%2Fa.example%2Fb", "https://a.example/b"),
        ("https://slack-redir.net/link?url=https%3A%2F%2Fa.example%2Fb", "https://a.example/b"),
        ("https://www.linkedin.com/safety/go?url=https%3A%2F%2Fa.example%2Fb&trk=x", "https://a.example/b"),
        ("https://t.umblr.com/redirect?z=https%3A%2F%2Fa.example%2Fb&t=x", "https://a.example/b"),
        ("https://href.li/?https://a.example/b?c=1&d=2", "https://a.example/b?c=1&d=2"),
        ("https://out.reddit.com/t3_a?url=https%3A%2F%2Fa.example%2Fb", "https://a.example/b"),
        ("https://www.bing.com/ck/a?!&&p=x&u=a1aHR0cHM6Ly9hLmV4YW1wbGUvYg&ntb=1", "https://a.example/b"),
        ("https://go.b.example/start?ref=https://a.example/", None),
        ("https://b.example/login?next=https://a.example/", None),
        ("https://b.example/out?u=https://a.example/&v=https://c.example/", None),
        ("https://b.example/go?to=https://b.example/c", None),
        ("https://link.b.example/article/10.1007/1?from=https://a.example/", None),
        ("https://translate.google.com/translate?sl=de&u=https://a.example/b", None),
        ("https://web.archive.org/web/2020/https://a.example/?u=https://b.example/", None),
        ("https://www.google.com/search?q=https://a.example/", None),
        ("https://www.google.com/url?q=a+word", None),
        ("https://www.google.com/url?q=file:///etc/passwd", None),
        ("https://google.evil.example/url?q=https://a.example/", None),
        ("https://a.example/url?q=https://b.example/", None),
        (
            "https://docs.google.com/viewer?url=https%3A%2F%2Fa.example%2Fb.pdf&embedded=true",
            "https://a.example/b.pdf",
        ),
        ("https://docs.google.com/gview?embedded=true&url=http://a.example/b.pdf", "http://a.example/b.pdf"),
        ("https://drive.google.com/viewerng/viewer?url=https://a.example/b", "https://a.example/b"),
        (
            "https://view.officeapps.live.com/op/view.aspx?src=https%3A%2F%2Fa.example%2Fb.docx&wdOrigin=BROWSELINK",
            "https://a.example/b.docx",
        ),
        (
            "https://mozilla.github.io/pdf.js/web/viewer.html?file=https://a.example/b.pdf",
            "https://a.example/b.pdf",
        ),
        ("https://a.example/web/viewer.html?file=%2Fb.pdf", "https://a.example/b.pdf"),
        ("https://a.example/js/web/viewer.html?file=../../b%20c.pdf#page=2", "https://a.example/b%20c.pdf"),
        ("https://a.example/web/viewer.html?file=", None),
        ("https://a.example/web/viewer.html?file=blob:1", None),
        ("https://www.google.com/url?q=/b", None),
        ("https://docs.google.com/document?url=https://a.example/", None),
        ("https:/a.example/b", "https://a.example/b"),
        ("http:///a.example", "http://a.example/"),
    ],
)
def test_notice_is_the_address_that_it_names(url: str, leads_to: str | None) -> None:
    assert normalise_url(url) == (leads_to or url)
    assert normalise_url(normalise_url(url)) == normalise_url(url)


def test_notices_within_notices_are_one_address_of_one_site() -> None:
    url = "https://a.example/b"
    while len(quote(url, safe="")) + 40 < MAX_URL:
        url = f"https://www.google.com/url?q={quote(url, safe='')}"
        assert normalise_url(url) == "https://a.example/b" and site_of(url) == "a.example"
        assert worker_of(url, 7) == worker_of("https://a.example/b", 7)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "   ",
        "example.com/a",
        "www.example.com",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/html,hi",
        "mailto:someone@example.com",
        "http://",
        "http:path",
        "http:///",
        "http://?q",
        "http://#",
        "http://.",
        "http://..",
        "http://.example.com/",
        "http://a..b/",
        "http://-a.example/",
        "http://a b.example/",
        "http://a%20b.example/",
        "http://%00/",
        "http://%ff/",
        "http://exa<mple.com/",
        "http://example.com:port/",
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://example.com:８０/",
        "http://example.com:80:80/",
        "http://1.2.3.4.5/",
        "http://256.1.1.1/",
        "http://1.2.3.256/",
        "http://4294967296/",
        "http://0x1ffffffff/",
        "http://09.1.1.1/",
        "http://example.1/",
        "http://[::1/",
        "http://::1/",
        "http://[fe80::1%25eth0]/",
        "http://[fe80::1%eth0]/",
        "http://[1.2.3.4]/",
        "http://[::g]/",
        f"http://{'a' * 64}.example/",
        f"http://{'a.' * 130}example/",
        f"http://example.com/{'a' * MAX_URL}",
        f"http://example.com/{'ä' * 2000}",
        "http://\udce4.example/",
        "http://example.com/\ud800",
        "http://a\u200db.example/",
        "http://xn\u00ad--/",
    ],
)
def test_malformed_urls_raise(url: str) -> None:
    with pytest.raises(MalformedURL):
        normalise_url(url)


SPICE = st.sampled_from(
    ["http://", "https://", "@", ":", "/", "\\", "[", "]", "%", "%2e", ".", "0x", "?", "#", "１", "。"]
)


@given(st.lists(st.one_of(st.text(max_size=8), SPICE), max_size=12).map("".join))
def test_normalising_is_idempotent_or_raises_malformed_url(rest: str) -> None:
    for url in (rest, f"http://{rest}", f"https://example.com/{rest}"):
        try:
            normal = normalise_url(url)
        except MalformedURL:
            continue
        assert normalise_url(normal) == normal
        assert normal.isascii() and "#" not in normal


@given(st.text(max_size=40))
def test_redirects_raise_only_malformed_url(location: str) -> None:
    try:
        target = join_url("https://example.com/a/b?c", location)
    except MalformedURL:
        return
    assert normalise_url(target) == target


def test_redirects_are_relative_to_where_they_come_from() -> None:
    assert join_url("https://example.com/a/b?c", "../d") == "https://example.com/d"
    assert join_url("https://example.com/a/b", "//other.example/x") == "https://other.example/x"
    assert join_url("https://example.com/a/b", "?q#f") == "https://example.com/a/b?q"


@given(st.text(max_size=30), st.integers(1, 64))
def test_every_url_has_a_worker(url: str, workers: int) -> None:
    assert 0 <= worker_of(url, workers) < workers


def test_site_has_one_worker() -> None:
    assert site_of("https://www.example.com/a") == site_of("http://EXAMPLE.com:8080/b") == "example.com"
    urls = [
        f"https://{sub}example.com:{port}/{n}"
        for n, sub, port in [(1, "", 443), (2, "www.", 80), (3, "", 99)]
    ]
    assert len({worker_of(url, 8) for url in urls}) == 1
    spread = {worker_of(f"https://host-{n}.example/", 8) for n in range(200)}
    assert spread == set(range(8))


ONE_PAGE = (
    "https://a.example/b_c?d=1&E=2",
    "http://a.example/b_c?d=1&E=2",
    "http://A.example:80/b%5Fc/?d=1&E=2#top",
    "https://a.example:443/x/../b_c?d=1&E=2#:~:text=some%20words",
    "https://a.example/b_c?utm_source=chatgpt.com&d=1&E=2&utm_medium=",
    "https://a.example/b_c?gclid=x&d=1&fbclid=y&E=2&UTM_CAMPAIGN=z",
    "https://www.google.com/url?q=https%3A%2F%2Fa.example%2Fb_c%3Fd%3D1%26E%3D2&sa=U",
)
OTHER_PAGES = (
    "https://a.example/b_c?d=1&e=2",
    "https://a.example/b_c?E=2&d=1",
    "https://a.example/B_C?d=1&E=2",
    "https://a.example/b_c?d=1&E=2&ref=x",
    "https://a.example:8443/b_c?d=1&E=2",
    "https://b.a.example/b_c?d=1&E=2",
    "https://www.a.example/b_c?d=1&E=2",
    "https://me@a.example/b_c?d=1&E=2",
    "https://a.example/b_c",
    "https://a.example/b_c?utm=1&d=1&E=2",
    "https://web.archive.org/web/2020/https://a.example/b_c?d=1&E=2",
)


def test_addresses_of_one_page_have_one_key() -> None:
    assert {page_key(url) for url in ONE_PAGE} == {"//a.example/b_c?d=1&E=2"}
    assert page_key("https://a.example/?utm_source=x") == page_key("http://a.example") == "//a.example"


def test_what_may_be_another_page_has_another_key() -> None:
    assert len({page_key(url) for url in (*OTHER_PAGES, ONE_PAGE[0])}) == len(OTHER_PAGES) + 1


def test_parts_keep_what_is_asked_for() -> None:
    assert page_parts("http://www.a.example:80/b/", keep_www=False)[1:] == ("", "a.example", 0, "/b")
    assert page_parts("http://www.a.example:81/b/?", keep_slash=True)[1:] == ("", "www.a.example", 81, "/b/")


_FIELDS = st.lists(st.sampled_from(["a=1", "utm_id=2", "b", "gclid=", "_ga=3", "=", "utm=4"]), max_size=5)


@given(
    st.sampled_from(["", "/", "/x", "/x/", "/%41/%2f", "/x//"]), _FIELDS, st.sampled_from(["http", "https"])
)
def test_key_of_a_key_is_the_key(path: str, fields: list[str], scheme: str) -> None:
    key = page_key(f"{scheme}://a.example{path}?{'&'.join(fields)}")
    assert page_key(f"https:{key}") == key
