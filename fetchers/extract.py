"""From a body to title, description and text. Slow and not to be trusted: runs in worker processes only."""

import io
import re

from lxml import etree
from resiliparse.extract.html2text import extract_plain_text
from selectolax.lexbor import LexborHTMLParser

from adjudge.fetchers.charset import decode
from adjudge.fetchers.frames import Extraction, Extractor
from adjudge.fetchers.media import kind_of
from adjudge.fetchers.shape import excess
from adjudge.fetchers.storable import storable

__all__ = ["MAX_DESCRIPTION", "MAX_TITLE", "Unreadable", "extract"]

MAX_TITLE = 1_000
MAX_DESCRIPTION = 4_000
_HEAD_END = re.compile(r"</head|<body", re.I)
_MAX_HEAD = 200_000
_TITLES = ("og:title", "twitter:title", "dc.title", "citation_title")
_DESCRIPTIONS = ("description", "og:description", "twitter:description", "dc.description")


class Unreadable(ValueError):
    """The body is not a text we can read; the message says why."""


def extract(body: bytes, content_type: str, extractor: Extractor) -> Extraction:
    """Title, description and main text of `body`, whose Content-Type header is given. Raises Unreadable.

    A page without words is read, its text empty; a PDF without them is unreadable, and so is HTML whose shape would
    take parsers more than linear time (`fetchers/shape.py`).
    HTML goes through trafilatura; through resiliparse if `extractor` is "fast" or trafilatura finds nothing.
    """
    kind = kind_of(content_type, body)
    if kind == "html":
        found = _html(decode(body, content_type), extractor)
    elif kind == "pdf":
        found = _pdf(body)
    elif kind == "xml":
        found = Extraction("", "", _xml(body))
    elif kind == "text":
        found = Extraction("", "", decode(body, content_type))
    else:
        raise Unreadable("not HTML, PDF, XML or plain text")
    text = storable(found.text).strip()
    if not text and kind == "pdf":  # scanned: what it says is not known
        raise Unreadable("no text in it")
    return Extraction(_line(found.title)[:MAX_TITLE], _line(found.description)[:MAX_DESCRIPTION], text)


def _html(source: str, extractor: Extractor) -> Extraction:
    if problem := excess(source):
        raise Unreadable(problem)
    title, description = _head(source)
    text = _trafilatura(source) if extractor == "trafilatura" else ""
    text = text or _resiliparse(source, main_content=True) or _resiliparse(source, main_content=False)
    return Extraction(title, description, text)


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


def _trafilatura(source: str) -> str:
    import trafilatura  # half a second, and not needed by the fast extractor

    return trafilatura.extract(source) or ""


def _resiliparse(source: str, *, main_content: bool) -> str:
    return str(extract_plain_text(source, main_content=main_content, alt_texts=False)).strip()


def _pdf(body: bytes) -> Extraction:
    import pypdfium2  # most pages are not PDFs

    try:
        document = pypdfium2.PdfDocument(io.BytesIO(body))
    except pypdfium2.PdfiumError as error:
        raise Unreadable(f"a PDF that does not open: {error}") from None
    with document:
        metadata = document.get_metadata_dict()
        texts = []
        for index in range(len(document)):
            try:
                texts.append(document[index].get_textpage().get_text_bounded())
            except pypdfium2.PdfiumError:
                continue  # one broken page of many
    return Extraction(
        metadata.get("Title", ""), metadata.get("Subject", ""), "\n\n".join(texts).replace("\r\n", "\n")
    )


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
