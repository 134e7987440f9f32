"""From a body to title, description and text. Slow and untrusted: runs in worker processes only.

Decodes bytes whatever the server claims about them, and refuses HTML of harmful shape: parsers take quadratic time in a
page's nesting depth and in a tag's number of attributes.
"""

import codecs
import re
from functools import lru_cache

from lxml import etree
from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5
from selectolax.lexbor import LexborHTMLParser

from adjudge.fetchers.html import texts_of
from adjudge.fetchers.office import office_kind, read_office
from adjudge.fetchers.page import kind_of, media_type
from adjudge.fetchers.process import Extraction, Extractor, Unreadable
from adjudge.fetchers.urls import storable

_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_IN_HEADER = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.I | re.A)
_IN_BODY = re.compile(rb"<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.I)
# Encodings whose bytes also pass for UTF-8, so that only the declaration can tell them apart.
_ASCII_ALIKE = ("iso2022", "utf_16", "hz")
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
_SAMPLE = 16 << 10
_OF_THE_WEB = (
    *("cp949", "cp932", "euc_jp", "gb18030", "big5", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254"),
    *("cp1255", "cp1256", "cp1257", "cp874", "koi8_r"),
)


def decode(body: bytes, content_type: str) -> str:
    """The text of `body`; undecodable bytes become U+FFFD.

    In this order: byte order mark; UTF-8 if every byte fits it, since other encodings hardly ever do by
    chance; the header's charset; the document's own (first 4,096 bytes); UTF-8 if most of what is beyond ASCII fits
    it; what the bytes look like.
    """
    for mark, encoding in _BOMS:
        if body.startswith(mark):
            return body.decode(encoding, "replace")
    labels = [match[1] for match in [_IN_HEADER.search(content_type)] if match]
    labels += [match[1].decode() for match in [_IN_BODY.search(body[:4096])] if match]
    declared = [name for name in map(_python_name, labels) if name]
    if not any(encoding.startswith(_ASCII_ALIKE) for encoding in declared):
        declared.insert(0, "utf-8")
    for encoding in declared:
        try:
            return body.decode(encoding)
        except UnicodeError:
            continue
    text = body.decode("utf-8", "replace")
    if 2 * text.count("\ufffd") <= len(text) - len(text.encode("ascii", "ignore")):
        return text
    guessed = _python_name(detect_encoding(body)) or "utf-8"
    return body.decode(_second_guess(body) or guessed if guessed == "utf-8" else guessed, "replace")


def _second_guess(body: bytes) -> str | None:
    """What the first 16 KB from the first byte beyond ASCII look like, of the encodings of the web."""
    from charset_normalizer import from_bytes  # hardly any page needs it

    found = _BEYOND_ASCII.search(body)
    sample = body[found.start() : found.start() + _SAMPLE] if found else b""
    best = from_bytes(sample, cp_isolation=list(_OF_THE_WEB)).best()
    return best.encoding if best is not None else None


def _python_name(label: str | None) -> str | None:
    """Python's name for a label of the web, in which latin-1 means windows-1252; None if it is unknown."""
    mapped = map_encoding_to_html5(label, fallback_utf8=False) if label else None
    try:
        return codecs.lookup(mapped).name if mapped else None
    except LookupError:
        return None


MAX_DEPTH = 255
"""libxml2's own limit: it reads nothing beyond, so that trafilatura would not see the rest of the page."""
MAX_ATTRIBUTES = 1_000

# Below these a page is read in a fraction of a second, whatever its shape, and most pages need not be looked at.
_FEW_TAGS = 2_000
_SHORT = 50_000

# Of a tag, in the HTML standard's reading: a quote opens a value only right behind "=", and not every value has one.
_VALUE = r"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^\s>]*+)"""
_ATTRIBUTE = rf"[\s/]*+[^\s/>][^\s/>=]*+(?:\s*+=\s*+{_VALUE})?"
# Each tag is taken whole: a search that began anew at every "<" within it would take time by the square of its length.
_TAG = re.compile(rf"<[a-zA-Z][^\s/>]*+(?>{_ATTRIBUTE}){{0,{MAX_ATTRIBUTES}}}(?P<more>{_ATTRIBUTE})?")


def excess(page: str) -> str:
    """The feature that keeps `page` from being parsed in linear time; "" if none. Takes linear time itself."""
    if len(page) > _SHORT and any(tag["more"] for tag in _TAG.finditer(page)):
        return f"a tag with more than {MAX_ATTRIBUTES:,} attributes"
    if page.count("<") - page.count("</") > _FEW_TAGS and _is_too_deep(page):
        return f"elements nested more than {MAX_DEPTH} deep"
    return ""


@lru_cache(maxsize=1)
def markup(body: bytes, content_type: str) -> str:
    """The HTML in `body` as parsers take it in linear time. Raises Unreadable if they do not.

    Programs in it are left out where it would not be: `a<b` in one is no tag, but only parsers know where one ends.
    """
    source = decode(body, content_type)
    if problem := excess(source):
        rest = _without_programs(source)
        if rest == source or (problem := excess(rest)):
            raise Unreadable(problem)
        return rest
    return source


_PROGRAM = re.compile(r"<script(?=[\s>])(?![^>]{0,500}json)[^>]{0,500}>", re.I)
_PROGRAM_END = re.compile(r"</script", re.I)


def _without_programs(page: str) -> str:
    kept, at = [], 0
    while (opening := _PROGRAM.search(page, at)) and (closing := _PROGRAM_END.search(page, opening.end())):
        kept.append(page[at : opening.end()])
        at = closing.start()
    return "".join((*kept, page[at:]))


def _is_too_deep(page: str) -> bool:
    """Whether libxml2 gives up for depth, which it does where the limit is passed."""
    parser = etree.HTMLParser()
    etree.fromstring(page, parser)
    return any("Excessive depth" in error.message for error in parser.error_log)


MAX_TITLE = 1_000
MAX_DESCRIPTION = 4_000
_HEAD_END = re.compile(r"</head|<body", re.I)
_MAX_HEAD = 200_000
_TITLES = ("og:title", "twitter:title", "dc.title", "citation_title")
_DESCRIPTIONS = ("description", "og:description", "twitter:description", "dc.description")


def extract(body: bytes, content_type: str, extractor: Extractor) -> Extraction:
    """Title, description and texts of `body`, whose Content-Type header is given. Raises Unreadable.

    A page without words is read, its text empty; a PDF without them is unreadable, and so is HTML whose shape would
    take parsers more than linear time (`fetchers/extract.py`).
    """
    office = office_kind(body)
    kind = kind_of(content_type, body)
    if office is not None:
        found = read_office(body, office)
    elif kind == "html":
        found = _html(markup(body, content_type), extractor)
    elif kind == "pdf":
        from adjudge.fetchers.pdf import read_pdf  # most pages are none

        found = read_pdf(body)
    elif kind == "xml":
        found = Extraction("", "", _xml(body))
    elif kind == "text":
        text = decode(body, content_type)
        found = Extraction("", "", _unescaped(text) if "json" in media_type(content_type) else text)
    else:
        raise Unreadable("not HTML, PDF, XML, plain text or an Office file")
    title, description = _line(found.title)[:MAX_TITLE], _line(found.description)[:MAX_DESCRIPTION]
    text, beside = storable(found.text).strip(), storable(found.beside).strip()
    return Extraction(title, description, text, beside=beside)


_ESCAPES = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_MEANT = {"b": " ", "f": " ", "n": "\n", "r": "\n", "t": " "}


def _unescaped(text: str) -> str:
    """JSON as it reads: its strings without escapes."""
    said = _ESCAPES.sub(lambda one: chr(int(one[1], 16)) if one[1] else _MEANT.get(one[2], one[2]), text)
    return said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _html(source: str, extractor: Extractor) -> Extraction:
    title, description = _head(source)
    main, beside = texts_of(source, extractor)
    return Extraction(title, description, main, beside=beside)


def _head(source: str) -> tuple[str, str]:
    """Title and description from the document's head alone, which is far cheaper than from all of it."""
    end = _HEAD_END.search(source, 0, _MAX_HEAD)
    head = LexborHTMLParser(source[: end.start() if end else _MAX_HEAD // 10])
    metas: dict[str, str] = {}
    for meta in head.css("meta"):
        name = (meta.attributes.get("name") or meta.attributes.get("property") or "").lower()
        metas.setdefault(name, meta.attributes.get("content") or "")
    node = head.css_first("title")
    titles = [node.text() if node else "", *(metas.get(name, "") for name in _TITLES)]
    descriptions = [metas.get(name, "") for name in _DESCRIPTIONS]
    return next(filter(str.strip, titles), ""), next(filter(str.strip, descriptions), "")


def _xml(body: bytes) -> str:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, recover=True)
    try:
        root = etree.fromstring(body, parser)
    except etree.XMLSyntaxError as error:
        raise Unreadable(f"XML that does not parse: {error}") from None
    if root is None:
        raise Unreadable("XML without an element")
    return "\n".join(filter(None, (piece.strip() for piece in root.itertext(with_tail=True))))


def _line(text: str) -> str:
    return " ".join(storable(text).split())
