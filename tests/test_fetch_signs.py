"""States of pages by their signs: each beside a page that bears the same sign and is content."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.fetchers.extract import extract
from adjudge.fetchers.signs import bar_of_headers, refreshes_to, told

PROSE = "".join(
    f"<p>The {n}th arch was built in {1880 + n} of red stone, and repaired twice since.</p>" for n in range(5)
)
COSTS = '<script type="application/ld+json">{"isAccessibleForFree": false, "cssSelector": ".sold"}</script>'
COSTS_TOO = "<meta itemprop=isAccessibleForFree content=False><meta itemprop=cssSelector content=.sold>"
OLD = (
    "Your browser is out of date. Please use a current version of Chrome or Firefox.",
    "This browser is not supported. Please switch to a modern browser.",
    "Ihr Browser ist veraltet. Bitte verwenden Sie eine aktuelle Version von Firefox.",
    "Dieser Browser wird nicht mehr unterstützt.",
    "Votre navigateur est obsolète. Veuillez utiliser un autre navigateur.",
    "Su navegador no es compatible. Actualice su navegador.",
    "O seu navegador está desatualizado.",
    "Il tuo browser non è supportato. Usa una versione recente.",
    "Uw browser is verouderd. Gebruik een andere browser.",
    "Twoja przeglądarka jest przestarzała.",
    "Ваш браузер устарел. Пожалуйста, обновите ваш браузер.",
    "您的浏览器版本过低，请升级浏览器。",
    "お使いのブラウザはサポートされていません。",
    "이 브라우저는 지원되지 않습니다.",
)
CHECKS = (
    "<altcha-widget challengeurl=/c></altcha-widget>",
    "<x-captcha></x-captcha>",
    "<img src=/kcaptcha/index.php><input name=keystring>",
    "<input name=captcha_code>",
    "<div id=captcha-box></div>",
    "<div class=geetest_holder></div>",
    "<div data-sitekey=a1></div>",
)
LOGINS = (
    "<form action=/Shibboleth.sso/Login><input name=org></form>",
    "<form action=https://login.openathens.example/auth><input name=org></form>",
    "<form action=/go><input name=entityID></form>",
)

CASES = [
    ("wall", "<title>Just a moment...</title><p>Checking.</p><script src=/a.js></script>"),
    ("content", "<title>Just a moment...</title><p>The song was printed in 1911 and sold 5,310 copies.</p>"),
    ("content", f"<title>Just a moment...</title>{PROSE * 2}<script src=/a.js></script>"),
    ("wall", "<title>Attention Required! | Cloudflare</title><p>You are blocked."),
    ("wall", "<title>Log in | The Daily Bridge</title><form>Name <input></form><p>Forgotten?"),
    ("content", "<title>Sign in the window</title><p>A short story.<form></form>"),
    ("wall", "<title>x</title><p>Un momento</p><script>window._cf_chl_opt={}</script>"),
    ("content", f"<p>x</p>{PROSE}<script src=/cdn-cgi/challenge-platform/scripts/jsd/main.js></script>"),
    ("wall", "<h1>Access</h1><form><div class=g-recaptcha></div></form>"),
    ("content", f"{PROSE}<form><div class=g-recaptcha></div></form>"),
    ("wall", "<h1>Espace</h1><form><input type=password>Mot de passe</form>"),
    ("content", f"<form><input type=password>Log in</form>{PROSE}"),
    ("wall", f"<form action=/v2/collectConsent>{PROSE * 4}</form>"),
    ("content", f"<form action=/consent>We use cookies</form>{PROSE}"),
    ("wall", "<body onload=go()><form><input name=SAMLRequest value=a><p>Continue</form>"),
    ("missing", "<title>Page not found - The Bridge</title><h1>Page not found</h1><p>Try the start page."),
    ("missing", "<title>404 - 页面不存在</title><h1>404</h1><p>抱歉"),
    ("content", "<title>404 - A car</title><h1>The car of 1969</h1><p>It was built until 1975."),
    ("content", f"<title>Page not found</title><h1>Page not found</h1>{PROSE}{PROSE}"),
    ("teaser", f"{COSTS}<p>The bridge was built in 1932.</p><div class=sold></div>"),
    ("content", f"{COSTS}<p>The bridge was built in 1932.</p><div class=sold>{PROSE}</div>"),
    ("teaser", f"{COSTS_TOO}<p>The bridge was built in 1932.</p><div class=sold></div>"),
    ("content", f"{COSTS_TOO}<p>The bridge was built in 1932.</p><div class=sold>{PROSE}</div>"),
    ("teaser", "<meta itemprop=isAccessibleForFree content=False><p>The bridge was built in 1932."),
    ("content", "<meta itemprop=isAccessibleForFree content=True><p>The bridge was built in 1932."),
    ("teaser", "<meta property=article:content_tier content=locked><p>The bridge was built in 1932."),
    ("content", f"<meta property=article:content_tier content=locked>{PROSE * 2}"),
    ("content", "<meta property=article:content_tier content=metered><p>The bridge was built in 1932."),
    ("empty", "<title>A bridge</title><div id=root></div><script src=/m.js></script>"),
    ("empty", "<div id=root>Loading…</div><script src=/m.js></script>"),
    (
        "empty",
        "<noscript>This app needs JavaScript.</noscript><div id=root></div><script src=/m.js></script>",
    ),
    ("content", f"<noscript>{PROSE}</noscript><div id=root></div><script src=/m.js></script>"),
    (
        "empty",
        "<body><noscript><h1>JavaScript is not available.</h1><p>We have detected that JavaScript is disabled in this "
        "browser. Please "
        "enable it to continue using this site. You can see a list of browsers in our help, if you like."
        "<p>Terms, privacy and cookies</noscript><div id=root></div><script src=/m.js></script>",
    ),
    ("wall", f"<div id=didomi-host><p>{'We store and use cookies. ' * 9}</div><div id=root></div>"),
    ("content", f"<div id=didomi-host>We use cookies</div>{PROSE}"),
    ("wall", f"<form action=https://consent.google.com/save>Accept</form><p>{'We use cookies. ' * 20}"),
    ("content", "<h1>Contact</h1><p>Ferry Lane 12<form><div class=g-recaptcha></div></form>"),
    (
        "content",
        f"<noscript>{PROSE * 4}</noscript><form><input type=password></form><script src=/m.js></script>",
    ),
    ("content", "<p>The page sets <code>window._cf_chl_opt</code> first.</p>"),
    ("missing", "<h2>404 Page Not Found</h2><p>The page you requested was not found."),
    ("failed", "<h1>Internal Server Error</h1><p>The server encountered an internal error."),
    ("empty", "<title>A bridge</title><body></body>"),
    ("empty", "<h1>Timetable</h1><iframe src=/new></iframe>"),
    ("content", "<h1>Timetable</h1><iframe src=/new width=1 height=1></iframe>"),
    *(
        ("wall", f"<h1>A moment</h1><form>{box}<button>Go on</button></form><p>Type what you see.")
        for box in CHECKS
    ),
    *(("content", f"<h1>Arches</h1>{PROSE}<form>{box}<input name=comment></form>") for box in CHECKS),
    *(("content", f"<h1>Arches</h1><p>A book.<footer><form>{box}</form></footer>") for box in CHECKS),
    *(("content", f"<h1>Arches</h1><p>A book.<form><input type=email>{box}</form>") for box in CHECKS),
    (
        "content",
        "<body class=has-captcha><script id=recaptcha-js></script><div class=grecaptcha-badge></div>"
        "<p>A book of the county, which nobody has opened since the fire.",
    ),
    *(
        ("wall", f"<h1>Access</h1><p>Choose where you study.<p>Or pay 39.95 dollars.{form}")
        for form in LOGINS
    ),
    *(("content", f"<header>{form}</header><h1>Arches</h1><p>A book.") for form in LOGINS),
    *(("content", f"<h1>Arches</h1>{PROSE}{form}") for form in LOGINS),
    *(("empty", f"<div id=app></div><p>{plea}</p><script src=/m.js></script>") for plea in OLD),
    *(("content", f"<p>{plea}</p>{PROSE}<script src=/m.js></script>") for plea in OLD),
    ("content", "<p>Arches: 19</p><script src=/m.js></script>"),
]


@pytest.mark.parametrize(("state", "source"), CASES)
def test_state_is_told_by_signs(state: str, source: str) -> None:
    found = told(extract(source.encode(), "text/html", "trafilatura"), source)
    assert found.state == state, (found.sign, found.text)
    assert (state == "content") == (found.sign == "")


def test_other_kinds_are_empty_or_walls_too() -> None:
    for body, state in (
        (b"", "empty"),
        (b'{"error": {"need_login": true}}', "wall"),
        (b'{"arches": 19}', "content"),
    ):
        assert told(extract(body, "application/json", "fast"), "").state == state


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0;url=/new", "/new"),
        ("0; URL='/new'", "/new"),
        ('5 , "/new" and more', "/new"),
        ("0;/new", "/new"),
        ("300", ""),
        ("0", ""),
        ("300;url=/new", ""),
        ("1.2.3;url=/new", ""),
        ("", ""),
    ],
)
def test_refresh_leads_on_only_at_once(content: str, target: str) -> None:
    assert refreshes_to(content) == target


@given(st.text())
def test_any_refresh_is_read(content: str) -> None:
    assert isinstance(refreshes_to(content), str)


@pytest.mark.parametrize(
    ("headers", "barred"),
    [
        ({"cf-mitigated": "challenge"}, True),
        ({"x-amzn-waf-action": "CAPTCHA"}, True),
        ({"x-vercel-mitigated": "challenge"}, True),
        ({"x-kpsdk-ct": "0a1b"}, True),
        ({"cf-mitigated": "no"}, False),
    ],
)
def test_challenges_are_told_by_their_headers(headers: dict[str, str], barred: bool) -> None:
    assert (bar_of_headers(headers) is not None) == barred


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (
            "<p>Redirecting you to the new address…</p><script>window.location.replace('/new')</script>",
            "/new",
        ),
        ("<h1>Redirecting…</h1><a href=/new>Click here</a><script>location=`/new`</script>", "/new"),
        ("<p>Please wait.</p><script>setTimeout(function(){location.assign('/new')})</script>", "/new"),
        ("<object data=/new></object>", "/new"),
        (
            "<object data=/new><p>This browser cannot show the file. <a href=/new>Download it</a>.</object>",
            "/new",
        ),
        ("<h1>Timetable</h1><iframe src=/new>Your browser does not support frames.</iframe>", "/new"),
        ("<div><a href=/>Home</a> &gt; Timetable</div><iframe src=/new></iframe>", "/new"),
        ("<iframe src=/new></iframe><iframe src=//t.example width=0 height=0></iframe>", "/new"),
        ("<iframe src=/new></iframe><iframe src=//t.example style='display:none'></iframe>", "/new"),
        ("<h1>A</h1><iframe src=/new></iframe><iframe src=/other></iframe>", ""),
        ("<h1>Arches</h1><p>There are 19.</p><iframe src=/new></iframe>", ""),
        (f"<h1>Arches</h1>{PROSE}<iframe src=/new></iframe>", ""),
        (f"<ul>{'<li><a href=/a>A book of the county</a>' * 20}</ul><iframe src=/new></iframe>", ""),
        (f"{PROSE}<script>function go() {{ location.href = '/new' }}</script>", ""),
        ("<p>The bridge was built in 1932.</p><script>b.onclick = () => location.href = '/new'</script>", ""),
    ],
)
def test_stubs_lead_where_their_script_goes(source: str, target: str) -> None:
    assert told(extract(source.encode(), "text/html", "trafilatura"), source).onward == target
