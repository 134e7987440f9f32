"""From HTML to the text that a reader looks for on the page. Slow and untrusted: runs in worker processes only.

Two readings are laid side by side. The body is what the page shows, less navigation, heads and feet. The article is
what trafilatura takes for it; it knows best where an article begins and ends, and drops much of what stands within:
figures, captions, fact boxes, times. So the main text runs from the first line of the body that is of the article to
the last one, with the short stretches between them. Where the article is a small part of the body, the page is none,
and the body is its main text: lists, threads, shops. A page that calls itself an article may be one above far more
comments.

Beside the main text, a browser shows more: heads and feet, boxes, buttons, comments. That is a second text, of lines
that the main text lacks. What leads to other pages (navigation), stands before the page (dialogs) or is not shown at
all is in neither.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree
from selectolax.lexbor import LexborHTMLParser, LexborNode

from adjudge.fetchers.process import Extractor
from adjudge.fetchers.raised import raised

MAX_FOR_TRAFILATURA = 1_000_000
"""Characters of a page. Some larger ones hold trafilatura for minutes, so that their body is their text."""

_AROUND = (
    *("nav", "button", "select", "[role=navigation]", "[role=contentinfo]", "[role=banner]", "[role=dialog]"),
    *("footer:not(article footer)", "header:not(article header):not(main header)"),
)
_BESIDE = "aside:not(article aside)"
# What a browser shows belongs to the page, but for this. What is hidden behind a tab or a heading has a role.
_NEVER_SHOWN = (
    *("nav", "select", "input", "textarea", "dialog:not([open])", "[role=navigation]", "[role=dialog]"),
    "[hidden]:not([role])",
    *(f'[style*="display:{space}none" i]:not([role])' for space in ("", " ")),
    *(f'[style*="visibility:{space}hidden" i]' for space in ("", " ")),
    *(f'[style*="{name}:{space}0" i]' for name in ("font-size", "opacity") for space in ("", " ")),
)
# Of the body; an article's main text is more. Those of pages that call themselves articles have comments below.
_ARTICLE, _CALLED_ARTICLE = 0.5, 0.1
_CALLS = re.compile(
    r"""<meta\s[^<>]{0,200}?(?:property=["']?og:type\b[^<>]{0,200}?content=["']?article\b"""
    r"""|content=["']?article["']?\s[^<>]{0,200}?property=["']?og:type\b)""",
    re.I,
)
# Characters of a body that may be no more than a line about cookies or scripts.
_SHORT = 2_000
# A line is of the main text if so many of its pairs of words are in it, and it has so many words.
_SAME, _ENOUGH = 0.7, 4
# Words between two lines of the article, and before and behind it. More are a page's own affairs: teasers, offers,
# comments. Pages that call themselves articles have less within.
_MOST_BETWEEN, _MOST_OUTSIDE = 100, 30
_MOST_WITHIN_CALLED, _MOST_OUTSIDE_CALLED = 25, 10

_WORD = re.compile(r"\w+")
_TO_PREPARE = re.compile(
    r"<(?:sup|template|math)\b|vertical-align:\s?super|display:\s?none|\shidden\b|<a\s[^<>]*href=.?#", re.I
)
_RAISED = 'sup, span[style*="vertical-align:super" i], span[style*="vertical-align: super" i]'
# Within a line: sort keys, labels for programs. Longer ones are shown on a click.
_UNSEEN = ", ".join(
    f"{tag}{way}:not([role])"
    for tag in ("span", "small", "b", "i", "em")
    for way in ("[hidden]", '[style*="display:none" i]', '[style*="display: none" i]')
)
_MOST_UNSEEN = 40
# Two elements of a line with nothing between them, of which each ends or begins with a word: styles set them apart.
_INLINE = r"(?:span|a|b|i|em|strong|small|label|time|data|u|bdi|abbr)"
_SIDE_BY_SIDE = re.compile(
    rf"(?<=\w\w)(?=(?:</{_INLINE}>){{1,9}}(?:<{_INLINE}(?:\s[^<>]{{0,2000}})?>){{1,9}}\w\w)", re.I
)
_NOTE_MARK = re.compile(r"[\[(]?(?:\d{1,3}|[a-z*\u2020\u2021])[\])]?")
_TIME = re.compile(r"</?time(?:\s[^<>]*)?>", re.I)
_BEFORE = 12


class Texts(NamedTuple):
    """The main text of a page, and the lines that a browser shows beside it. Both are "" if there are none."""

    main: str
    beside: str


def texts_of(source: str, extractor: Extractor) -> Texts:
    """The texts of the page `source`, which `excess` finds harmless."""
    source = _prepared(source)
    if extractor == "fast":
        source = _TIME.sub("", source)  # resiliparse takes what is in it for a byline
    page = HTMLTree.parse(source)
    body = _body(page)
    if extractor == "trafilatura" and len(source) <= MAX_FOR_TRAFILATURA:
        article = _trafilatura(source)
        is_called = _CALLS.search(source) is not None
        least = _CALLED_ARTICLE if is_called else _ARTICLE
        main = _stretch(body, article, is_called) if len(article) >= least * len(body) else body
    else:
        main = _fuller(_resiliparse(page, main_content=True), body)
    if not main:
        return Texts(_stated(source), "")
    return Texts(main, _others(_resiliparse(page, *_NEVER_SHOWN, form_fields=True), main))


def _others(shown: str, main: str) -> str:
    """The lines of `shown` that are not in `main`."""
    lines = shown.split("\n")
    shares = _shares(lines, main)
    return "\n".join(line for line, share in zip(lines, shares, strict=True) if share < _SAME)


def _prepared(source: str) -> str:
    """The page with raised text, formulas and marks of notes as a reader takes them, without what nobody sees."""
    source = _SIDE_BY_SIDE.sub(" ", source)
    if not _TO_PREPARE.search(source):
        return source
    page = LexborHTMLParser(source)
    inert = page.css("template:not([shadowrootmode]), math annotation, math annotation-xml")
    inert += [node for node in page.css(_UNSEEN) if 0 < len(node.text().strip()) <= _MOST_UNSEEN]
    formulas = page.css("math")
    marks = [node for node in page.css('a[href^="#"]:not([href="#"])') if _is_glued_mark(node)]
    lifted = page.css(_RAISED)
    if not (inert or formulas or marks or lifted):
        return source  # as it was written: trafilatura may read another spelling of it otherwise
    for node in inert:
        node.replace_with("")  # unlike `decompose`, it leaves what is within in memory
    for formula in formulas:
        formula.replace_with(f" {' '.join(formula.text(separator=' ').split())} ")
    for mark in marks:
        mark.replace_with(raised(_end_of(mark.prev), mark.text(), is_note=True))
    for node in lifted:
        parent = node.parent
        link = parent if parent is not None and parent.tag == "a" else None
        is_note = link is not None or node.css_first("a") is not None
        before = _end_of(node.prev or (link.prev if link is not None else None))
        node.replace_with(raised(before, node.text(), is_note=is_note))
    return page.html or ""


def _is_glued_mark(link: LexborNode) -> bool:
    """Whether `link` is a note's number right behind a word or a number, in no raised text."""
    text = link.text(strip=True)
    is_mark = _NOTE_MARK.fullmatch(text) is not None and link.css_first("sup") is None
    return is_mark and _end_of(link.prev)[-1:].isalnum() and (link.parent is None or link.parent.tag != "sup")


def _end_of(node: LexborNode | None) -> str:
    """The last characters of the text in `node`."""
    while node is not None and node.last_child is not None:
        node = node.last_child
    return (node.text(deep=False) or "")[-_BEFORE:] if node is not None else ""


def _body(page: HTMLTree) -> str:
    """What the page shows, without what stands around it; beside it too, or behind scripts, if most of it is there."""
    text = _resiliparse(page, *_AROUND, _BESIDE)
    if len(text) < _SHORT:
        text = _fuller(text, _resiliparse(page, *_AROUND))
        text = _fuller(text, _resiliparse(page, *_AROUND, noscript=True))
    return text or _resiliparse(page)


def _fuller(text: str, other: str) -> str:
    """`text`, unless most of `other` is not in it."""
    return other if len(other) > 2 * len(text) else text


def _resiliparse(page: HTMLTree | str, *skipped: str, **options: Any) -> str:
    """Its text; captions of figures come with what stands in for pictures, which is left out."""
    return str(extract_plain_text(page, alt_texts=True, skip_elements=["img", *skipped], **options)).strip()


def _trafilatura(source: str) -> str:
    import trafilatura  # half a second, and not needed by the fast extractor

    return trafilatura.extract(source) or ""


def _stretch(body: str, main: str, is_called: bool) -> str:
    """The lines of `body` from the first to the last that are in `main`, and lines of `main` that are not in them."""
    inside, outside = (
        (_MOST_WITHIN_CALLED, _MOST_OUTSIDE_CALLED) if is_called else (_MOST_BETWEEN, _MOST_OUTSIDE)
    )
    lines = body.split("\n")
    shares = _shares(lines, main)
    lengths = [len(line.split()) for line in lines]
    anchors = [at for at, share in enumerate(shares) if share >= _SAME and lengths[at] >= _ENOUGH]
    if not anchors:
        return main
    # What is close to either end is a byline or a correction.
    edges = [-1, *anchors, len(lines)]
    kept: list[str] = []
    for start, end in pairwise(edges):
        between = range(start + 1, end)
        new = sum(lengths[at] for at in between if shares[at] < 1)
        most = inside if start >= 0 and end < len(lines) else outside
        kept += [lines[at] for at in between if new <= most or shares[at] >= _SAME]
        kept += lines[end : end + 1]
    told = main.split("\n")
    left = [
        line for line, share in zip(told, _shares(told, "\n".join(kept)), strict=True) if share < _ARTICLE
    ]
    return "\n".join([*kept, *left])


def _shares(lines: Sequence[str], text: str) -> list[float]:
    """Of each line, the part that is in `text`, by its pairs of neighbouring words; 1 for a line without words."""
    whole = {line.strip() for line in text.split("\n")}
    words = _WORD.findall(text.lower())
    said, pairs = set(words), set(pairwise(words))

    def share(line: str) -> float:
        if line.strip() in whole:
            return 1.0
        own = _WORD.findall(line.lower())
        if len(own) < 2:
            return float(said.issuperset(own))
        return sum(map(pairs.__contains__, pairwise(own))) / (len(own) - 1)

    return [share(line) for line in lines]


_STATES = 'script[type="application/ld+json"], script#__NEXT_DATA__'
_SENTENCE = 5


def _stated(source: str) -> str:
    """What a page without text gives to programs: an article's body (schema.org), or sentences in Next.js's state."""
    found = []
    for script in LexborHTMLParser(source).css(_STATES):
        try:
            state = msgspec.json.decode(script.text().encode())
        except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
            continue
        is_linked = script.attributes.get("type") == "application/ld+json"
        found += [text for name, text in _texts(state) if name == "articleBody" or not is_linked]
    plain = (_resiliparse(text) for text in found)
    return "\n\n".join(text for text in plain if len(_WORD.findall(text)) >= _SENTENCE)


def _texts(state: Any) -> Iterator[tuple[str, str]]:
    """The texts in a decoded JSON document in their order, each with the name that it is under."""
    stack: list[tuple[str, Any]] = [("", state)]
    while stack:
        name, value = stack.pop()
        if isinstance(value, str):
            yield name, value
        elif isinstance(value, dict):
            stack += reversed(value.items())
        elif isinstance(value, list):
            stack += ((name, one) for one in reversed(value))
