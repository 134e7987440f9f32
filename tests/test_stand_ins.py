"""Notices told by how their pages are made, in words that no list has, beside small pages that are content."""

import time

import pytest

from adjudge.fetchers.extract import extract
from adjudge.fetchers.process import Extraction
from adjudge.fetchers.signs import told

NAV = "<header><nav><a href=/news>News</a><a href=/about>About</a></nav></header>"
DESCRIBED = "<meta name=description content='News of the valley'>"
UNINDEXED = "<meta name=robots content='noindex, follow'>"
SCRIPT = "<script src=/a.js></script>"

NOTICES = [
    # a template's name
    ("missing", f"<title>Talpost</title>{DESCRIBED}{NAV}<main class='c-error c-error--404'><h1>Hoppla!</h1>"
     "<p>Was Sie lesen wollten, ist fort.</p><a href=/>Zur Startseite</a></main>"),
    ("missing", "<title>Ľutujeme</title><main class=error404><h1>Ľutujeme</h1><p>Takýto text tu nemáme."),
    ("missing", "<title>이런</title><div id=page-not-found><h1>이런!</h1><p>찾으시는 글이 없어요."),
    ("wall", "<title>Sorry</title><div class=access-denied><h1>Sorry</h1><p>Our gatekeeper sent you away."),
    ("wall", f"<title>Ihre Wahl</title><div class=consent-wall><h1>Ihre Wahl</h1>"
     f"<p>Mit Anzeigen gratis, ohne sie gegen Geld.{SCRIPT}"),
    ("teaser", f"<title>La tassa</title>{DESCRIBED}{NAV}<h1>La tassa</h1><div id=paywall><p>Per leggere tutto, paga."),
    ("failed", "<title>Even geduld</title><body class=maintenance-mode><h1>Even geduld</h1><p>We verven de muren."),
    # a status for a title
    ("missing", "<title>Грешка 404</title><h1>Няма такова нещо</h1><p>Опитайте пак утре."),
    ("missing", "<title>404 | Dalposten</title><h1>Beklager</h1><p>Vi har lett overalt uten hell."),
    ("failed", "<title>503 Serviço indisponível</title><h1>Volte mais tarde</h1><p>A casa está em obras."),
    ("wall", "<title>429</title><h1>Whoa</h1><p>Take a short rest and come back."),
    # links that lead nowhere, orders to robots, scripts that try again
    ("empty", f"<title>Hups</title>{UNINDEXED}<h1>Hups</h1><p>Täällä ei ole mitään nähtävää.{SCRIPT}"),
    ("empty", "<title>Hold on</title><h1>Hold on</h1><p>Somebody is looking at you, and it takes a moment until you are"
     " let in.<script>setTimeout(() => location.reload(), 4000)</script>"),
    ("empty", f"<title>Tal</title><div id=app>Ein wenig Geduld, die Teile werden zusammengesetzt…</div>{SCRIPT}"),
]  # fmt: skip
PAGES = [
    f"<title>Rain</title>{SCRIPT}<h1>Rain</h1><p>The rain came down on the slate roofs, and nobody heard it.",
    f"<title>Mayor resigns</title>{UNINDEXED}{DESCRIBED}{NAV}<h1>Mayor resigns</h1><p>She gave the council no reason.",
    f"<title>Cookies | Help</title>{DESCRIBED}{NAV}<h1>Cookies</h1><p>Small files that your browser keeps for a site.",
    "<title>404 (song)</title><article><h1>404</h1><p>A song by the band Orrin, from the album Lost Pages.</article>",
    "<title>500 lamps</title><h1>500 lamps</h1><p>A film on those who light the streets of Orrin.",
    "<title>Soft 404 - Terms</title><h1>Soft 404</h1><p>A page that is missing, whatever its server says."
    f"<a href=/terms>All terms</a>{DESCRIBED}",
    "<title>Bridges</title><h1>Bridges</h1><p>All our articles.<a href=/1>Tarn</a><a href=/2>Orrin</a>"
    + UNINDEXED,
    "<title>Swim</title><main class=challenge><h1>Swim</h1><p>From the mill to the weir, against the stream.</main>",
    "<title>Salt</title><div class='post-404 page-id-404'><h1>Salt</h1><p>The tax on it was hated most.</div>",
    "<title>Error page</title><main class=error-page><h1>Error page</h1><p>The page of 1994 sold 5,310 copies.</main>",
    # a field or a box that belongs to every page of its site
    "<title>Wool</title><form><input type=password></form><h1>Wool</h1><p>Soft wool of valley sheep, spun by hand.",
    "<title>Contact</title><h1>Contact</h1><p>Write to us<form><textarea></textarea><div class=h-captcha></div></form>",
    # a page of a sentence on what the web is made of
    "<title>Notes</title><p>The court had the profile removed from the site, and the content of its pages deleted.",
    f"<title>Passwörter</title><p>Der Inhalt des Artikels ist, dass Konten und Passwörter gestohlen wurden.{SCRIPT}",
    # a sentence in few letters
    f"<title>橋</title>{DESCRIBED}{NAV}<h1>橋</h1><p>谷に架かる石の橋で、村の人が建てた。{SCRIPT}",
]


def _told(source: str) -> Extraction:
    return told(extract(source.encode(), "text/html", "trafilatura"), source)


@pytest.mark.parametrize(("state", "source"), NOTICES)
def test_notices_are_told_by_how_they_are_made(state: str, source: str) -> None:
    found = _told(source)
    assert found.state == state, (found.sign, found.text)


@pytest.mark.parametrize("source", PAGES)
def test_small_pages_are_content(source: str) -> None:
    found = _told(source)
    assert found.state == "content", (found.sign, found.text)


def test_a_login_stands_below_its_heading() -> None:
    assert _told("<title>Area</title><h1>Area</h1><form><input type=password></form>").state == "wall"


@pytest.mark.parametrize(
    "filling",
    [
        "<i class='error error_ 40 not'></i>" * 13_000,
        f"<i class='{'error-' * 80_000}'></i>",
        "<a href=https://a.example/></a>" * 16_000,
        f"<a href='{'/' * 500_000}'></a>",
        f"<script>{'document.cookie ' * 30_000}</script>",
        "<meta name=robots content=index>" * 15_000,
    ],
)
def test_time_grows_no_faster_than_a_page(filling: str) -> None:
    source = f"<title>Oops</title><h1>Oops</h1><p>Nothing to see.{filling}"
    found = Extraction("Oops", "", "Oops Nothing to see.")
    started = time.process_time()
    told(found, source)
    assert time.process_time() - started < 2
