"""A page's text has what a reader sees on it: figures as they are read, and what stands within an article."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.fetchers.extract import extract
from adjudge.fetchers.html import MAX_FOR_TRAFILATURA
from adjudge.fetchers.process import Extractor
from adjudge.fetchers.raised import raised

HTML = "text/html; charset=utf-8"
BEFORE = "".join(
    f"<p>The office measures the river at noon and writes level {n} into its yearly book.</p>"
    for n in range(9)
)
BEHIND = "".join(
    f"<p>Readers may look into book {n} on the first floor, where a clerk hands out gloves.</p>"
    for n in range(9)
)
EXTRACTORS: tuple[Extractor, ...] = ("trafilatura", "fast")


def article(within: str, at_the_end: str = "") -> bytes:
    page = "<html><head><title>Book</title></head><body><nav><a href=/>Home page</a></nav><main><article><h1>Book</h1>"
    page += f"{BEFORE}{within}{BEHIND}{at_the_end}</article></main><footer>All rights reserved</footer></body></html>"
    return page.encode()


def text(body: bytes, extractor: Extractor = "trafilatura") -> str:
    return " ".join(extract(body, HTML, extractor).text.split())


@pytest.mark.parametrize("extractor", EXTRACTORS)
@pytest.mark.parametrize(
    ("markup", "said"),
    [
        ("held 10<sup>6</sup> crystals", "held 10^6 crystals"),
        ("held <b>10</b><sup>&minus;6</sup> of it", "held 10^\u22126 of it"),
        ("grows as 2<sup>n</sup> does", "grows as 2^n does"),
        ("grows as 2<sup>n+1</sup> does", "grows as 2^(n+1) does"),
        ("covers 480 m<sup>2</sup> now", "covers 480 m^2 now"),
        ("tonnes of CO<sub>2</sub> and", "tonnes of CO2 and"),
        ("the 1<sup>st</sup> train", "the 1st train"),
        ("au XIX<sup>e</sup> si\u00e8cle", "au XIXe si\u00e8cle"),
        ("about 85<sup>12</sup> percent", "about 85^12 percent"),
        ("of 1,200<sup><a href=#n>3</a></sup> readers", "of 1,200[3] readers"),
        ("of 1,200<a href=#n><sup>3</sup></a> readers", "of 1,200[3] readers"),
        ("of 1,200<sup><a href=#n>[3]</a></sup> readers", "of 1,200[3] readers"),
        ("of 71,300<a href=#n1>1</a> readers", "of 71,300[1] readers"),
        ("of 3.2 × 10<span style='vertical-align: super'>8</span> cells", "of 3.2 × 10^8 cells"),
        ("of 4<span style='display: none'>0004</span>.7 million", "of 4.7 million"),
        ("of 4<span hidden>0004</span>.7 million", "of 4.7 million"),
        ("in <b>super</b><i>s</i>, <b>5</b><b>3</b>10 of them", "in supers, 5310 of them"),
        ("costs <span>$11<sup>99</sup></span> a month", "costs $11.99 a month"),
        ("on <time datetime=1932-05-03>3 May 1932</time> it met", "on 3 May 1932 it met"),
        ("makes <output>412</output> in all", "makes 412 in all"),
        ("held 10<span class=x><sup>6</sup></span> and 3 m<b><sup>2</sup></b>", "held 10^6 and 3 m^2"),
        ("held 10<!-- --><sup>6</sup> of 10<i></i><sup>7</sup>", "held 10^6 of 10^7"),
        ("held 10<span style='position:relative;top:-0.5em;font-size:70%'>6</span> of it", "held 10^6 of it"),
        ("held 10<span style='vertical-align: top; font-size: 0.7em'>6</span> of it", "held 10^6 of it"),
        ("held 10<font size=-2 style='vertical-align:text-top'>6</font> of it", "held 10^6 of it"),
        ("held 10<SPAN STYLE='VERTICAL-ALIGN:0.4em'>6</SPAN> of it", "held 10^6 of it"),
        ("held 10<span style='vertical-align:-2px'>6</span> of it", "held 106 of it"),
        ("held 10<span style='position:relative;top:-1px'>6</span> of it", "held 106 of it"),
        ("is 2<sup>3</sup>&frasl;<sub>4</sub> inches", "is 2 3\u20444 inches"),
        ("is 17<span><sup>1</sup>/<sub>2</sub></span> inches", "is 17 1/2 inches"),
        ("reads <a href=/u>10<sup>6</sup> cells</a> there", "reads 10^6 cells there"),
        (
            "as <span><span><math><mn>10</mn><mn>5</mn></math></span><span aria-hidden=true>105</span></span> says",
            "as 10 5 says",
        ),
        (
            "as <x-a><nobr aria-hidden=true>105</nobr><x-b><math><mn>10</mn><mn>5</mn></math></x-b></x-a> says",
            "as 10 5 says",
        ),
        ("as <math><mi>y</mi><mo>=</mo><mn>43</mn><mi>x</mi></math> says", "as y = 43 x says"),
    ],
)
def test_figures_are_read_as_they_are_seen(markup: str, said: str, extractor: Extractor) -> None:
    assert said in text(article(f"<p>The yearly book {markup}, and nobody knows why it does.</p>"), extractor)


@given(st.text(max_size=30), st.text(max_size=30), st.booleans())
def test_raised_text_keeps_its_words(before: str, said: str, is_note: bool) -> None:
    assert said.strip() in raised(before, said, is_note=is_note)


@pytest.mark.parametrize(
    ("markup", "said"),
    [
        ("<div><span class=k>Weight</span><span class=v>27.5 kg</span></div>", ["Weight 27.5 kg"]),
        ("<div><a href=u>ida</a><span>Posts: 4</span></div>", ["ida Posts: 4"]),
        ("<figure><img src=c.png><figcaption>Figure 2: 38 trains</figcaption></figure>", ["Figure 2: 38 trains"]),
        ("<aside><h3>In figures</h3><ul><li>Arches: 19<li>Height: 43 m</ul></aside>", ["Arches: 19", "Height: 43 m"]),
        ("<div class=stats><div><span>71,300</span> <span>books a year</span></div></div>", ["71,300 books a year"]),
        ("<dl><dt>Opened<dd>1887<dt>Arches<dd>nineteen</dl>", ["Opened 1887", "Arches nineteen"]),
        ("<x-figure><x-value>38 trains</x-value> <x-label>a day</x-label></x-figure>", ["38 trains a day"]),
        ("<table><caption>Trains</caption><tr><td>2016<td>38<tr><td>2022<td>57</table>", ["2016 38", "2022 57"]),
        ("<ul><li><time>1881</time><div><p>First stone</p></div></ul>", ["1881 First stone"]),
        (
            "<svg><title>chart</title><g><text>Herring</text><text>5,412 t</text></g><text>Ma<tspan>ck</tspan>erel"
            "<tspan x=9>2,087 t</tspan></text><text>Cod</text></svg>",
            ["Herring 5,412 t Mackerel 2,087 t Cod"],
        ),
        (
            "<form><label>Depth</label><input readonly value='14.5 metres'><label>Bottom</label><select disabled>"
            "<option>sand<option selected>gravel</select><label>Note<textarea readonly>None</textarea></label></form>",
            ["Depth 14.5 metres Bottom gravel Note None"],
        ),
        ("<div class=author-bio><h4>About</h4><p>Keeper since 1999.</p></div>", ["Keeper since 1999."]),
        ("<details><summary>How high?</summary><p>It is 43 metres.</p></details>", ["How high?", "It is 43 metres."]),
    ],
)  # fmt: skip
def test_what_stands_within_an_article_is_kept(markup: str, said: list[str]) -> None:
    found = text(article(markup))
    assert [one for one in said if one not in found] == []
    assert "Home page" not in found and "rights reserved" not in found


@pytest.mark.parametrize(
    "called",
    [
        '<meta property="og:type" content="article">',
        "<meta content=article property=og:type>",
        "<meta data-rh='true' property='og:type' content='Article' />",
    ],
)
def test_article_above_many_comments_is_read_without_them(called: str) -> None:
    said = (" ".join(f"word{n}of{m}" for m in range(12)) for n in range(40))
    comments = "".join(f"<div class=comment><b>A reader</b><p>{one}</p></div>" for one in said)
    page = (
        f"<html><head>{called}</head><body><article><h1>Book</h1>{BEFORE}</article>{comments}</body></html>"
    )
    assert "level 8" in text(page.encode()) and "word9of9" not in text(page.encode())
    other = page.replace("article>", "div>").replace(called, "<meta property=og:type content=website>")
    assert "word9of9" in text(other.encode())


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_what_is_shown_beside_the_main_text_is_kept(extractor: Extractor) -> None:
    around = (
        "<header><p>The office is closed on 9 May.</p></header>",
        "<aside><p>In figures: 1,204 books stand here.</p></aside>",
        "<form><button>How do I join the library?</button><input type=hidden value=token7></form>",
        "<footer><p>Founded by the county in 1887.</p></footer>",
    )
    never = (
        "<nav><a href=/><p>Other towns have 77 books.</p></a></nav>",
        "<p hidden>Hidden: 78 books.</p><p style='color:red; display: none'>Unseen: 79 books.</p>",
        "<p style='font-size:0'>Tiny: 80 books.</p><template><p>Inert: 81 books.</p></template>",
        "<div role=dialog><p>We use 82 cookies.</p></div>",
    )
    page = article("").decode().replace("<body>", "<body>" + "".join((*around, *never)))
    found = extract(page.encode(), HTML, extractor)
    beside = " ".join(found.beside.split())
    for said in ("closed on 9 May", "1,204 books", "How do I join the library?", "county in 1887"):
        assert said in found.text or said in beside
    assert "1,204 books" in beside
    assert not [n for n in (77, 78, 79, 80, 81, 82) if str(n) in beside] and "token7" not in beside
    assert "level 3" in found.text and "level 3" not in beside


def test_panels_that_are_shown_on_a_click_are_kept() -> None:
    tabs = (
        "<div role=tabpanel hidden style='display:none'><p>After 900 cycles they kept 83.5 percent.</p></div>"
    )
    found = extract(article(tabs), HTML, "trafilatura")
    assert "83.5 percent" in f"{found.text} {found.beside}"


def test_correction_at_the_end_is_kept() -> None:
    assert "not in May" in text(
        article("", "<footer><p>Correction: it ended in June, not in May.</p></footer>")
    )


def test_formulas_that_only_the_eye_is_shown_are_read() -> None:
    formula = "<span hidden><math><mi>y</mi></math></span><span aria-hidden=true>y = 4</span>"
    assert "It says y = 4 here." in text(article(f"<p>It says <span>{formula}</span> here.</p>"))


def test_what_drawings_say_to_programs_is_no_text() -> None:
    kept = "<metadata>Made by a tool</metadata><defs><text>Glyph</text></defs><desc>A bar</desc><title>Icon</title>"
    found = extract(article(f"<svg>{kept}<text>North pier</text></svg>"), HTML, "trafilatura")
    assert "North pier" in found.text
    assert not [one for one in ("tool", "Glyph", "A bar", "Icon") if one in f"{found.text} {found.beside}"]


def test_inert_templates_are_no_text() -> None:
    found = text(article("<template><p>never shown row</p></template>"))
    assert "never shown" not in found
    shown = article(
        "<fact-box><template shadowrootmode=open><p>It kept 83.5 percent.</p></template></fact-box>"
    )
    assert "It kept 83.5 percent." in text(shown)


def test_long_stretches_between_are_the_page_s_own() -> None:
    offers = "".join(f"<div><a href=/{n}>Offer number {n} of this week</a></div>" for n in range(40))
    found = text(article(f"<div>{offers}</div>"))
    assert "Offer number 7" not in found and "level 3" in found and "book 8" in found


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_pages_without_an_article_are_read_whole(extractor: Extractor) -> None:
    cards = "".join(
        f"<div><a href=/{n}><h3>Bridge {n}</h3><span>Oak, {1700 + n}</span></a></div>" for n in range(30)
    )
    body = f"<body><nav><a href=/>Home page</a></nav><p>Our bridges.</p><section>{cards}</section></body>".encode()
    found = text(body, extractor)
    assert all(f"Bridge {n} Oak, {1700 + n}" in found for n in range(30)) and "Home page" not in found


def test_text_beside_a_line_about_cookies_is_the_page() -> None:
    body = f"<body><div><p>We use cookies here.</p></div><aside>{BEFORE}</aside></body>".encode()
    assert "level 8" in text(body)
    assert "level 8" in text(f"<body><div>Loading</div><noscript>{BEFORE}</noscript></body>".encode())


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_text_given_to_programs_is_read_where_the_page_has_none(extractor: Extractor) -> None:
    said = "The trial followed 1,128 batteries."
    linked = json.dumps(
        {"@graph": [{"@type": "Article", "articleBody": said, "headline": "Not to be read here at all"}]}
    )
    state = json.dumps({"props": {"post": {"slug": "a-trial", "content": f"<p>{said}</p>"}}})
    for script in (
        f'<script type="application/ld+json">{linked}',
        f'<script id="__NEXT_DATA__" type="application/json">{state}',
    ):
        assert text(f"<body><div id=root></div>{script}</script></body>".encode(), extractor) == said
        assert text(f"<body><p>Another text.</p>{script}</script></body>".encode(), "fast") == "Another text."
    assert (
        text(b'<body><script type="application/ld+json">{"articleBody": ' + b"[" * 90_000 + b"</script>")
        == ""
    )


def test_large_pages_are_read_in_seconds() -> None:
    row = "<div><table><tr><td><span>Item {0}</span><td>{0}.5</table><p>House {0} gave {0} tonnes of salt.</p></div>"
    body = "".join(row.format(n) for n in range(25_000)).encode()
    assert len(body) > MAX_FOR_TRAFILATURA
    started = time.process_time()
    assert "House 24999 gave 24999 tonnes" in text(body)
    assert time.process_time() - started < 10


def test_what_is_within_unseen_text_is_unseen_too() -> None:
    hidden = "<span hidden>a<span hidden>b<sup>2</sup><a href=#n1>1</a><math><mn>3</mn></math></span></span>"
    nested = f"<template><template>c</template>{hidden}</template>"
    found = text(
        article(f"<p>The yearly book has 40{hidden * 50} pages, and nobody{nested * 50} knows why.</p>")
    )
    assert "has 40 pages, and nobody knows why." in found
