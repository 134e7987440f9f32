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
from collections.abc import Container, Iterator, Sequence
from functools import cache
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
    r"<(?:sup|template|math|svg)\b|vertical-align:\s?(?:super|text-top|top|\.?\d)|\btop:\s?-|display:\s?none|\shidden\b"
    r"|<a\s[^<>]*href=.?#|\s(?:readonly|disabled)\b",
    re.I,
)
_INLINE_TAGS = frozenset(
    "a abbr b bdi cite code data em font i ins label mark nobr q s small span strong sub sup time u var "
    "-text -comment".split()
)
_STYLED = "span[style], font[style], small[style], b[style], i[style], em[style], a[style]"
_LIFTED = re.compile(r"vertical-align:\s?(?:super|text-top|top|0?\.?[1-9])", re.I)
_MOVED_UP = re.compile(r"(?:^|[;\s])top:\s?-", re.I)
_SMALL_FONT = re.compile(
    r"font-size:\s?(?:0?\.\d|\d\d?(?:\.\d{1,9})?%|(?:\d|1[0-2])(?:\.\d{1,9})?p[xt]|smaller|small|x)", re.I
)
# Between the two numbers of a fraction.
_SOLIDUS = "\u2044"
# Of a drawing, what says what it is to programs, and what it only keeps ready.
_OF_DRAWINGS = "svg title, svg desc, svg metadata, svg defs"
_LABELS = "svg text, svg tspan[x], svg tspan[y], svg tspan[dx], svg tspan[dy]"
# Of a form that nobody fills in, since its fields are what the page says.
_FIELDS = ", ".join(
    f"{tag}[{state}]" for tag in ("input[value]", "textarea", "select") for state in ("readonly", "disabled")
)
_NO_WORDS = frozenset(("hidden", "password", "checkbox", "radio", "submit", "button", "reset", "image"))
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
    # It begins with what few places have, for speed.
    rf"</(?<=\w\w</){_INLINE}>(?:</{_INLINE}>){{0,8}}(?:<{_INLINE}(?:\s[^<>]{{0,2000}})?>){{1,9}}(?=\w\w)",
    re.I,
)
_NOTE_MARK = re.compile(r"[\[(]?(?:\d{1,3}|[a-z*\u2020\u2021])[\])]?")
_TIME = re.compile(r"</?time(?:\s[^<>]*)?>", re.I)
_BEFORE = 12
_MOST_STEPS, _MOST_RAISED = 9, 20


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
    """The page with raised text, formulas, fields and marks of notes as a reader takes them, without what nobody sees.

    It comes as it was written if it has none of them: trafilatura may read another spelling otherwise.
    """
    source = _SIDE_BY_SIDE.sub(r" \g<0>", source)
    if not _TO_PREPARE.search(source):
        return source
    page = LexborHTMLParser(source)
    inert = page.css(f"template:not([shadowrootmode]), math annotation, math annotation-xml, {_OF_DRAWINGS}")
    inert += [node for node in page.css(_UNSEEN) if 0 < len(node.text().strip()) <= _MOST_UNSEEN]
    formulas = page.css("math")
    unseen = {node.mem_id for node in inert}
    inert += [twin for formula in formulas for twin in _twins(formula, unseen)]
    marks = [node for node in page.css('a[href^="#"]:not([href="#"])') if _is_glued_mark(node)]
    lifted = page.css("sup") + [node for node in page.css(_STYLED) if _is_lifted(node)]
    labels = page.css(_LABELS)
    fields = [node for node in page.css(_FIELDS) if node.attributes.get("type") not in _NO_WORDS]
    if not (inert or formulas or marks or lifted or labels or fields):
        return source
    for node in inert:
        node.replace_with("")  # unlike `decompose`, it leaves what is within in memory
    for formula in formulas:
        formula.replace_with(f" {' '.join(formula.text(separator=' ').split())} ")
    for mark in marks:
        mark.replace_with(raised(_end_of(mark.prev), mark.text(), is_note=True))
    for node in lifted:
        node.replace_with(_as_raised(node))
    for label in labels:
        label.insert_before(" ")
        label.insert_after(" ")
    for field in fields:
        field.replace_with(f" {_value(field)} ")
    for label in page.css("label") if fields else ():
        label.insert_before(" ")
        label.unwrap()  # extractors take it for a part of what is filled in
    return page.html or ""


def _twins(formula: LexborNode, unseen: Container[int]) -> list[LexborNode]:
    """What draws `formula` for the eye alone, beside what holds it for programs."""
    holder = formula.parent
    if holder is None or holder.mem_id in unseen:
        return []
    beside = (holder.prev, holder.next)
    return [node for node in beside if node is not None and node.attributes.get("aria-hidden") == "true"]


def _is_lifted(node: LexborNode) -> bool:
    """Whether a style makes a raised text of `node`."""
    style = node.attributes.get("style") or ""
    is_lifted = _LIFTED.search(style) or (_MOVED_UP.search(style) and _SMALL_FONT.search(style))
    return is_lifted is not None and len(node.text().strip()) <= _MOST_RAISED


def _as_raised(node: LexborNode) -> str:
    """The text of the raised `node` as it is written in its line."""
    text = node.text()
    is_note = node.tag == "a" or node.css_first("a") is not None
    before, at = "", node
    for _ in range(_MOST_STEPS):  # out of what holds nothing before it, over what is empty
        if at.prev is not None:
            at = at.prev
            before = _end_of(at)
        elif at.parent is not None and at.parent.tag in _INLINE_TAGS:
            at = at.parent
            is_note = is_note or at.tag == "a"
        else:
            break
        if before or at.tag not in _INLINE_TAGS:
            break
    if _is_numerator(node):
        return f" {text}" if before[-1:].isdigit() else text
    return raised(before, text, is_note=is_note)


def _is_numerator(node: LexborNode) -> bool:
    """Whether a fraction's bar and what it divides by follow."""
    bar = node.next
    said = (bar.text() or "").strip() if bar is not None else ""
    if said.startswith(_SOLIDUS):
        return True
    return said == "/" and bar is not None and bar.next is not None and bar.next.tag == "sub"


def _value(field: LexborNode) -> str:
    """What a field shows."""
    if field.tag == "input":
        return field.attributes.get("value") or ""
    chosen = field.css_first("option[selected]") or field.css_first("option")
    return (chosen or field).text()


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

    return trafilatura.extract(source, options=_options()) or ""


@cache
def _options() -> Any:
    """What it would else read from its configuration for every page, in a thirtieth of its time."""
    from trafilatura.settings import Extractor as Options

    return Options()


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
    if "<script" not in source.lower():
        return ""
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
