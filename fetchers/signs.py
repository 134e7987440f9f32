"""What a page is that was received: content, or one of the things that servers send in its place.

One list of signs: headers, markup, script names, titles. A mark alone decides nothing, since services put theirs on
pages that they let through; it does on a page that says hardly anything beside it.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode

from adjudge.fetchers.failures import Failure
from adjudge.fetchers.notices import MOST, has_figures, is_plea, notice, without_offers, without_pleas
from adjudge.fetchers.page import PageReason
from adjudge.fetchers.process import Extraction, State
from adjudge.fetchers.stand_ins import stand_in

REASONS: dict[str, PageReason] = {
    "wall": "page_barred",
    "teaser": "page_barred",
    "missing": "page_gone",
    "empty": "page_empty",
    "failed": "page_server_error",
}

# Response headers by which services say that they answered with a challenge in place of the page; () is any value.
_CHALLENGES = {
    "cf-mitigated": ("challenge",),
    "x-amzn-waf-action": ("challenge", "captcha"),
    "sg-captcha": ("challenge",),
    "x-vercel-mitigated": ("challenge", "deny"),
    "x-kpsdk-ct": (),
}
# What only a service's own check holds, never a page that it let through.
_CHECKS = re.compile(
    r"_cf_chl_opt|/chl_page/|id=[\"']?anubis_challenge|window\.gokuprops|\.token\.awswaf\.com|captcha-delivery\.com"
    r"|_incapsula_resource\?[^\"'\s>]{0,300}incident_id|window\[[\"']bobcmn|/tspd/|acw_sc__v2|captchacharacters"
    r"|validatecaptcha|wappass\.baidu\.com|/secitptpage/|id=[\"']?px-captcha|stormcaster\.js|crawlprevention/governor"
    r"|kpsdk\.|sec-if-cpt-container|bm-verify|sucuri_cloudproxy|/\.well-known/ddos-guard/|slowaes\.decrypt"
    r"|anubis/api/pass-challenge|/account/unhuman|smartcaptcha\.yandexcloud|/checkcaptcha|tcaptcha\.js|perfdrive\.com|x-kpsdk",
    re.I,
)
_ASKED_TO_LOG_IN = re.compile(r'"(need_?login|login_?required|captcha_?required)"\s*:\s*true', re.I)
_BOXES = (
    ".g-recaptcha, .h-captcha, .cf-turnstile, .frc-captcha, .smart-captcha, .geetest_captcha, #captcha, #captcha-form, "
    "input[name=SAMLRequest], input[name=SAMLResponse]"
)
# What elements of a check are called, whoever made it.
_CHECK_ELEMENT = re.compile(r"<([a-z-]{0,30}(?:captcha|altcha)[a-z-]{0,30})[\s>]", re.I)
_CHECK_PLACES = "[data-sitekey], img[src*=captcha i], " + ", ".join(
    f"[{name}*={word} i]" for name in ("class", "id", "name") for word in ("captcha", "geetest")
)
# Where a page asks for something else than a person at its door: a reader's address, a search, a comment.
_ASKS_ELSE = "textarea, input[type=email], input[type=search]"
_NOT_SHOWN = frozenset(("body", "html", "head", "script", "style", "link", "meta", "noscript"))
_AROUND = ("header", "footer", "aside", "nav")
# Of the login of a reader's institution.
_INSTITUTION = "input[name=entityID i], " + ", ".join(
    f"form[action*={word} i]" for word in ("shibboleth", "openathens", "saml", "adfs", "wayf")
)
_CONSENT = re.compile(r"consent|privacy-?gate|cookie-?wall", re.I)
_CONSENT_SERVICE = re.compile(r"(?:https?:)?//consent\.", re.I)
# What services of consent put over a page, whatever it is.
_OVERLAYS = (
    "#didomi-host, #onetrust-consent-sdk, #usercentrics-root, #CybotCookiebotDialog, #qc-cmp2-container, "
    ".fc-consent-root, .cmpbox, [id^=sp_message_container]"
)
_COSTS = re.compile(r'"isAccessibleForFree"\s*:\s*"?false', re.I)
_COSTS_TOO = (
    "[itemprop=isAccessibleForFree i][content=false i], "
    'meta[property="article:content_tier" i][content=locked i], meta[name="article:content_tier" i][content=locked i]'
)
_SOLD_PART = re.compile(r'"cssSelector"\s*:\s*"([.#][\w-]{1,100})"', re.A)
_CLASS_OR_ID = re.compile(r"[.#][a-z_-][\w-]{0,99}", re.A | re.I)

# Characters. A page with a longer text is content; one with less says no more than "prove that you are human".
_MOST = 6_000
_HARDLY_ANY = 600
# Prose beside forms, links and headings: two sentences.
_TWO_SENTENCES = 160
_A_WORD = 40
_STUB = 4_096
_AT_ONCE = 10.0
_MOST_NAMED = 1_000
# A frame that nobody sees, and an address that is none of a page.
_UNSEEN = re.compile(
    r"display:\s?none|visibility:\s?hidden|\b(?:width|height):\s?[01](?:px)?(?![\w.%])", re.I
)
_NO_SIZE = re.compile(r"\s?[01](?:px)?\s?")
_NO_PAGE = re.compile(r"(?:about|blob|data|javascript):", re.I)
_MEDIA = ("image/", "audio/", "video/", "application/x-shockwave")
_REFRESH = re.compile(r"\s*([0-9.]{0,9})\s*[;,\s]\s*(?:url\s*=\s*)?([\"']?)(.{1,2000})", re.I | re.S)
_MOVE = re.compile(
    r"location(?:\.href)?\s{0,9}=\s{0,9}[\"'`]([^\"'`<>\s]{1,2000})[\"'`]"
    r"|location\.(?:replace|assign)\s{0,9}\(\s{0,9}[\"'`]([^\"'`<>\s]{1,2000})[\"'`]"
)
# All that a page says that is about to send its reader on.
_ON_THE_WAY = re.compile(
    r"redirect|(?:has|have|been|was|page|site) moved|click here|please wait|one moment|weitergeleitet"
    r"|weiterleitung|redirig|redirecion"
    r"|перенаправл|リダイレクト|跳转|跳轉",
    re.I,
)


def bar_of_headers(headers: Mapping[str, str]) -> str | None:
    """The bot check that the headers of a response announce, or None."""
    for name, values in _CHALLENGES.items():
        value = headers.get(name, "").strip().lower()
        if value and (value in values or not values):
            return f"a bot check ({name})"
    return None


def failure_of(found: Extraction) -> Failure | None:
    """Why `found` is nothing to judge by; None if it is content."""
    return Failure(REASONS[found.state], found.sign) if found.state != "content" else None


def refreshes_to(content: str) -> str:
    """Where a Refresh header or element leads at once; "" if it reloads the page, or does so later."""
    match = _REFRESH.match(content)
    if match is None:
        return ""
    try:
        late = float(match[1] or 0) > _AT_ONCE
    except ValueError:
        return ""
    target = match[3].split(match[2], 1)[0] if match[2] else match[3]
    return "" if late else target.strip()


def told(found: Extraction, source: str) -> Extraction:
    """`found` with its state and where it leads. `source` is the HTML it was extracted from, "" for other kinds."""
    if len(found.text) > _MOST:
        return found
    shape = _shape(source) if source else None
    state, sign = _state(found, source, shape)
    passes = shape is not None and (state in ("content", "empty") or shape.is_stub)
    return msgspec.structs.replace(
        found, state=state, sign=sign, onward=shape.onward if shape is not None and passes else ""
    )


class _Shape(NamedTuple):
    """What `_state` asks of a page's markup."""

    heading: str
    scripts: bool
    passable: bool
    """Whether a script, a form or a reload could let the reader pass."""
    box: bool
    institution: bool
    """Whether a reader's institution is asked for."""
    password: bool
    consent: bool
    consent_service: bool
    """Whether the request is that of a service on a host of its own."""
    overlaid: bool
    costs: bool
    sold: int | None
    """Characters in the parts that the page names as sold; None if it names none."""
    shown: str
    """Text of the body without navigation, links and forms."""
    prose: str
    """What of it is outside headings."""
    onward: str
    is_stub: bool
    """Whether the page says no more than that it sends its reader on."""
    framed: bool
    """Whether hardly anything stands beside the one frame of the page."""


def _state(found: Extraction, source: str, shape: _Shape | None) -> tuple[State, str]:
    text = found.text.strip()
    if len(text) <= _HARDLY_ANY and _ASKED_TO_LOG_IN.search(text):
        return "wall", "a login is asked for"
    if shape is not None:
        if (
            len(text) <= _HARDLY_ANY
            and (check := _CHECKS.search(source)) is not None
            and check[0] not in text
        ):
            return "wall", f"a bot check: {check[0][:60]}"
        if wall := _wall(len(text), shape):
            return "wall", wall
        if said := notice(found.title, shape.heading, text, passable=shape.passable):
            return said
        shown, enough = (len(text), _HARDLY_ANY) if shape.sold is None else (shape.sold, _TWO_SENTENCES)
        if shape.costs and shown < enough:
            return "teaser", "only the beginning is shown to those who do not pay"
        if _is_shell(text, shape):
            return "empty", "its text needs a browser"
        if placed := stand_in(found.title, shape.heading, text, shape.shown, source):
            return placed
        if shape.framed:
            return "empty", "another page, in a frame, is all there is"
    if not any(map(str.isalnum, text)):
        return "empty", "no text in it"
    return "content", ""


def _wall(length: int, shape: _Shape) -> str:
    """The form or the box beside which hardly anything is said, and no figure. `length` is that of all text."""
    if shape.consent_service and len(shape.prose) <= _HARDLY_ANY:
        return "a request for consent is all there is"
    if shape.overlaid and not shape.shown:
        return "a request for consent is all there is"
    if len(shape.prose) > _TWO_SENTENCES:
        return ""
    if shape.institution and not has_figures(without_offers(shape.prose)):
        return "a login: the form for institutions is all there is"
    if shape.consent and not has_figures(without_offers(shape.prose)):
        return "a request for consent is all there is"
    if has_figures(shape.prose):
        return ""
    if length > MOST:  # what is for those without scripts is text too
        return ""
    if shape.box:
        return "a bot check or a login: its form is all there is"
    return "a login: its form is all there is" if shape.password else ""


def _is_shell(text: str, shape: _Shape) -> bool:
    """Whether all that the page shows, or says to those without scripts, is a plea to wait or for scripts."""
    if not shape.scripts or len(text) > _HARDLY_ANY or (len(text) >= _TWO_SENTENCES and not is_plea(text)):
        return False
    return _is_hardly_any(without_pleas(shape.shown))


def _is_hardly_any(text: str) -> bool:
    """Whether `text` has no figure and no more than a word or two."""
    return _width(text) < _A_WORD and not any(map(str.isdigit, text))


def _width(text: str) -> int:
    """Letters of `text`, of which a Chinese, Japanese or Korean one says as much as three others."""
    return sum(3 if letter > "\u2e7f" else 1 for letter in text)


def _shape(source: str) -> _Shape:
    page = LexborHTMLParser(source)
    actions = [form.attributes.get("action") or "" for form in page.css("form[action]")]
    heading = page.css_first("h1") or page.css_first("h2") or page.css_first("h3")
    refresh, in_noscript = _refresh(page)
    scripts = page.css_first("script") is not None
    passable = scripts or bool(refresh) or page.css_first("form, noscript") is not None
    box = (page.css_first(_BOXES) is not None and page.css_first("textarea") is None) or _holds_check(
        page, source
    )
    institution = any(map(_is_own, page.css(_INSTITUTION)))
    password = _asks_for_password(page, heading)
    costs = _COSTS.search(source) is not None or page.css_first(_COSTS_TOO) is not None
    marked = [node.attributes.get("content") or "" for node in page.css("[itemprop=cssSelector i]")]
    names = [*_SOLD_PART.findall(source), *filter(_CLASS_OR_ID.fullmatch, marked)][:9]
    sold = sum(len(node.text(strip=True)) for name in names for node in page.css(name)) if names else None
    title = " ".join(heading.text(separator=" ").split()) if heading is not None else ""
    stub = _script_target(page) if len(source) <= _STUB else ""
    frames = _frames(page)
    overlays = page.css(_OVERLAYS)
    for overlay in overlays:
        overlay.decompose()
    page.strip_tags(["script", "style", "template", "noscript", "nav", "header", "footer", "form", "button"])
    with_links = _text(page)
    page.strip_tags(["a"])
    shown = _text(page)
    page.strip_tags(["h1", "h2", "h3", "h4", "h5", "h6"])
    on_the_way = not shown or (len(shown) <= _TWO_SENTENCES and _ON_THE_WAY.search(shown) is not None)
    onward = "" if in_noscript else refresh
    if on_the_way:
        onward = refresh or stub
    prose = _text(page)
    framed = len(frames) == 1 and len(with_links) <= _TWO_SENTENCES and _is_hardly_any(prose)
    return _Shape(
        title,
        scripts,
        passable,
        box,
        institution,
        password,
        any(map(_CONSENT.search, actions)),
        any(map(_CONSENT_SERVICE.match, actions)),
        bool(overlays),
        costs,
        sold,
        shown,
        prose,
        onward or (frames[0] if framed else ""),
        on_the_way and bool(stub),
        framed,
    )


def _frames(page: LexborHTMLParser) -> list[str]:
    """The pages and documents that `page` shows in frames. What it says to browsers without frames is taken out."""
    nodes = page.css("body iframe, body embed, body object")
    found = [address for node in nodes if _is_seen(node) and (address := _address(node))]
    for node in nodes:
        node.replace_with("")  # unlike `decompose`, it leaves what is within in memory
    return list(dict.fromkeys(found))


def _is_seen(frame: LexborNode) -> bool:
    sizes = [frame.attributes.get(name) or "" for name in ("width", "height")]
    return not (
        "hidden" in frame.attributes
        or _UNSEEN.search(frame.attributes.get("style") or "")
        or any(map(_NO_SIZE.fullmatch, sizes))
        or _inside(frame, "noscript")
        or _inside(frame, "object")
    )


def _address(frame: LexborNode) -> str:
    """Where the text in `frame` is from; "" if it shows none."""
    address = (frame.attributes.get("data" if frame.tag == "object" else "src") or "").strip()
    is_media = (frame.attributes.get("type") or "").startswith(_MEDIA)
    return "" if is_media or _NO_PAGE.match(address) else address


def _asks_for_password(page: LexborHTMLParser, heading: LexborNode | None) -> bool:
    """Whether a field for a password stands under the page's heading. One above it belongs to every page of a site."""
    field = "input[type=password]"
    found = page.css(f"{field}, {heading.tag}" if heading is not None else field)
    return any(node.tag == "input" for node in found[0 if heading is None else 1 :])


def _holds_check(page: LexborHTMLParser, source: str) -> bool:
    """Whether an element of a bot check is among the page's own, and the page asks for nothing else."""
    if page.css_first(_ASKS_ELSE) is not None:
        return False
    names = list(dict.fromkeys(map(str.lower, _CHECK_ELEMENT.findall(source))))[:9]
    return any(
        node.tag not in _NOT_SHOWN
        and node.attributes.get("type") != "hidden"
        and "badge" not in (node.attributes.get("class") or "")
        and _is_own(node)
        for node in page.css(", ".join([_CHECK_PLACES, *names]))[:_MOST_NAMED]
    )


def _is_own(node: LexborNode) -> bool:
    """Whether `node` is a part of its page, and not of what stands around each of a site's."""
    return not any(_inside(node, tag) for tag in _AROUND)


def _text(page: LexborHTMLParser) -> str:
    body = page.body
    return " ".join(body.text(separator=" ").split()) if body is not None else ""


def _refresh(page: LexborHTMLParser) -> tuple[str, bool]:
    """Where the page's refresh leads, and whether it is for those without scripts."""
    for meta in page.css("meta[http-equiv]")[:50]:
        if (meta.attributes.get("http-equiv") or "").strip().lower() == "refresh":
            target = refreshes_to(meta.attributes.get("content") or "")
            if target:
                return target, _inside(meta, "noscript")
    return "", False


def _inside(node: LexborNode, tag: str) -> bool:
    above = node.parent
    while above is not None:
        if above.tag == tag:
            return True
        above = above.parent
    return False


def _script_target(page: LexborHTMLParser) -> str:
    """The one address that the scripts of a stub lead to."""
    scripts = " ".join(node.text() for node in page.css("script"))
    targets = {first or second for first, second in _MOVE.findall(scripts)}
    return targets.pop().replace("\\/", "/") if len(targets) == 1 else ""
