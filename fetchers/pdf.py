"""From a PDF to title, description and text, as PDFium reads it. Slow and untrusted: runs in worker processes only.

PDFium's text runs a raised number into the one before it, and marks where a line's end divides a word by U+0002, or by
U+FFFE. Of its two readings of a page, one leaves out what stands outside of it, and where lines run up or down also
their ends; the other lacks letters beyond U+FFFF.
"""

import io
import re
from collections.abc import Iterator
from contextlib import suppress

import pypdfium2
from pypdfium2 import raw

from adjudge.fetchers.process import Extraction, Unreadable

_DIVIDED = re.compile(r"(\w?)\x02(?:\r\n)?(\w?)")
# The catalog's key for how a portfolio shows its files.
_COLLECTION = re.compile(rb"/Collection\s{0,9}(?:<<|\d{1,9}\s{1,9}\d{1,5}\s{1,9}R\b)")
_BLANK = re.compile(r"[\s\x02]+")
_AFTER_A_WORD = re.compile(r"(?<=[^\W_]|[)\]])[\d+\u2212-]")
# A raised sign's foot is above that of the one before by so much of its height, and it is so much smaller.
_RAISED, _SMALLER = 0.15, 0.9
_CONTEXT = 12


def read_pdf(body: bytes) -> Extraction:
    """Title, subject and the text of all pages. Raises Unreadable."""
    try:
        document = pypdfium2.PdfDocument(io.BytesIO(body))
    except pypdfium2.PdfiumError as error:
        raise Unreadable(f"a PDF that does not open: {error}") from None
    with document:
        if document.get_formtype() == raw.FORMTYPE_XFA_FULL:
            raise Unreadable("a form that only some programs show (XFA)")
        metadata = document.get_metadata_dict()
        text = "\n\n".join(_documents(document, body))
    if not text.strip():  # scanned: what it says is not known
        raise Unreadable("no text in it")
    return Extraction(metadata.get("Title", ""), metadata.get("Subject", ""), text)


def _documents(document: pypdfium2.PdfDocument, body: bytes) -> Iterator[str]:
    """The pages; of a portfolio, whose own page asks for another program, those of the PDFs in it."""
    is_portfolio = document.count_attachments() > 0 and _COLLECTION.search(body) is not None
    if not is_portfolio:
        yield from _pages(document)
        if document.get_pagemode() != raw.PAGEMODE_USEATTACHMENTS:  # else its catalog may be compressed
            return
    for index in range(document.count_attachments()):
        try:
            data = bytes(document.get_attachment(index).get_data())
            embedded = pypdfium2.PdfDocument(io.BytesIO(data))
        except pypdfium2.PdfiumError:
            continue  # no PDF, or a broken one
        with embedded:
            yield from _pages(embedded)


def _pages(document: pypdfium2.PdfDocument) -> Iterator[str]:
    is_form = document.get_formtype() == raw.FORMTYPE_ACRO_FORM
    if is_form:
        with suppress(pypdfium2.PdfiumError):
            document.init_forms()  # draws fields, if called before the first look at a page
    for index in range(len(document)):
        try:
            if is_form:
                # What is filled in is no text of the page before.
                raw.FPDFPage_Flatten(document[index], raw.FLAT_NORMALDISPLAY)
            page = document[index].get_textpage()
            text = _with_powers(page, _shown(page))
        except pypdfium2.PdfiumError:
            continue  # one broken page of many
        yield _DIVIDED.sub(_joined, text).replace("\r\n", "\n")


def _shown(page: pypdfium2.PdfTextPage) -> str:
    """What stands on the page, in lines."""
    bounded, whole = page.get_text_bounded(), _whole(page)
    return whole if _BLANK.sub("", whole) == _BLANK.sub("", bounded) else bounded


def _whole(page: pypdfium2.PdfTextPage) -> str:
    return str(page.get_text_range()).replace("\ufffe", "\x02")


def _joined(divided: re.Match[str]) -> str:
    """The two halves of a word; between numbers and names the line's end divides nothing, so the hyphen stays."""
    before, behind = divided.groups()
    apart = before and behind and not (before.isalpha() and behind.islower())
    return before + ("-" if apart else "") + behind


def _with_powers(page: pypdfium2.PdfTextPage, text: str) -> str:
    """`text` with a ^ before each raised number that follows a word or a number."""
    whole = _whole(page)
    pieces, done = [], 0
    for found in _AFTER_A_WORD.finditer(whole):
        index = raw.FPDFText_GetCharIndexFromTextIndex(page, found.start())
        if index < 1 or not _is_raised(page, index):
            continue
        context = whole[max(0, found.start() - _CONTEXT) : found.start() + 1]
        start = text.find(context.rpartition("\n")[2], done)
        if start >= 0:  # else it stands outside of the page
            end = start + len(context.rpartition("\n")[2]) - 1
            pieces += [text[done:end], "^"]
            done = end
    return "".join(pieces) + text[done:]


def _is_raised(page: pypdfium2.PdfTextPage, index: int) -> bool:
    """Whether the character at `index` is smaller than the one before it, and stands higher."""
    (low, top), (raised, raised_top) = _extent(page, index - 1), _extent(page, index)
    height = top - low
    return raised_top - raised < _SMALLER * height and raised - low > _RAISED * height


def _extent(page: pypdfium2.PdfTextPage, index: int) -> tuple[float, float]:
    """Foot and top of a character's line, in points."""
    box = raw.FS_RECTF()
    raw.FPDFText_GetLooseCharBox(page, index, box)
    return box.bottom, box.top
