"""A document as the Markdown that its author would have written: headings, lists, tables, links and footnotes are kept.

A page cleaner would be the wrong tool: in a report nothing is beside the point, and a list of sources least of all.
"""

import io
import itertools
import re
from bisect import bisect
from typing import TYPE_CHECKING
from xml.parsers.expat import ExpatError

from adjudge.engine.formats.documents import DocumentError, MissingReader
from adjudge.engine.formats.input_files import MAX_FILE_BYTES, InputFile, Unopened
from adjudge.engine.formats.word_fields import with_plain_links
from adjudge.fetchers.extract import decode, excess, extract
from adjudge.fetchers.office import BROKEN, check_size
from adjudge.fetchers.process import Unreadable
from adjudge.fetchers.urls import storable

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

__all__ = ["read_report"]

_UNSEEN = ("script", "style", "noscript", "template", "head", "img", "svg", "iframe")
_HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
_SIGN = r"\s{0,3}(?:\d{1,4}|[a-z]|[†‡§¶]{1,2})"  # of a note
_RAISED = re.compile(rf"{_SIGN}(?:\s{{0,3}},{_SIGN}){{0,20}}\s{{0,3}}")
_BACK = frozenset("↩↑^⏎\ufe0e\ufe0f \n")
_STYLES = """
p[style-name='Title'] => h1:fresh
p[style-name='Subtitle'] => h2:fresh
p[style-name='List Bullet'] => ul > li:fresh
p[style-name='List Bullet 2'] => ul|ol > li > ul > li:fresh
p[style-name='List Bullet 3'] => ul|ol > li > ul|ol > li > ul > li:fresh
p[style-name='List Number'] => ol > li:fresh
p[style-name='List Number 2'] => ul|ol > li > ol > li:fresh
p[style-name='List Number 3'] => ul|ol > li > ul|ol > li > ol > li:fresh
p[style-name='Quote'] => blockquote > p:fresh
p[style-name='Intense Quote'] => blockquote > p:fresh
"""
_LABEL = 20  # characters of a note's mark, at most
_NOTES = ("li", "p", "div", "aside", "dd", "td")  # what may be a note
_BLOCKS = (*_NOTES, "dt", "th", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article", "body")


def read_report(file: InputFile) -> str:
    """The report in a document, as Markdown. Raises DocumentError."""
    try:
        body = file.read(MAX_FILE_BYTES)
        if file.suffix == ".docx":
            return _marked_down(_html_of_word(body))
        if file.suffix in (".html", ".htm"):
            return _marked_down(decode(body, ""))
        if file.suffix == ".pdf":
            from adjudge.engine.formats.pdf_reports import (
                markdown_of,
            )  # few reports are, and PDFium takes time

            return storable(markdown_of(body)).strip()
        return extract(body, "text/plain", "trafilatura").text
    except ImportError as error:
        raise MissingReader(
            f"{file}: needs {error.name}; install it with: pip install 'adjudge[files]'"
        ) from error
    except (Unopened, Unreadable, RecursionError) as error:
        raise DocumentError(str(error)) from error


def _html_of_word(body: bytes) -> str:
    import mammoth  # optional

    try:
        check_size(body)
        no_pictures = mammoth.images.img_element(lambda image: {})
        return str(
            mammoth.convert_to_html(
                io.BytesIO(with_plain_links(body)), style_map=_STYLES, convert_image=no_pictures
            ).value
        )
    except (*BROKEN, ExpatError) as error:
        raise DocumentError(f"cannot be opened: {error}") from error


def _marked_down(html: str) -> str:
    """`html` as Markdown. Raises Unreadable for a shape that would take more than linear time."""
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    if problem := excess(html):
        raise Unreadable(problem)
    soup = BeautifulSoup(html, "lxml")
    for element in soup.find_all(_UNSEEN):
        element.decompose()
    for element in soup.find_all(_is_hidden):
        if not element.decomposed:
            element.decompose()
    _mark_footnotes(soup)
    for raised in soup.find_all("sup"):
        if _RAISED.fullmatch(numbers := raised.get_text()):
            raised.replace_with(f"<sup>{numbers}</sup>")
    converter = MarkdownConverter(
        heading_style="ATX", bullets="-", escape_misc=False, table_infer_header=True
    )
    text = converter.convert_soup(soup)
    return storable(re.sub(r"\n{3,}", "\n\n", text)).strip()


def _is_hidden(element: "Tag") -> bool:
    return element.has_attr("hidden") or bool(_HIDING.search(str(element.get("style") or "")))


def _mark_footnotes(soup: "BeautifulSoup") -> None:
    """Write links to a note as its mark, `[^1]`, and the note as its definition, without the way back.

    Chapters that were joined to one page repeat names: a link is to the next place of its name, else to the last one.
    """
    order = {id(one): place for place, one in enumerate(soup.find_all(True))}
    named: dict[str, list[Tag]] = {}
    for one in soup.find_all(lambda tag: tag.has_attr("id") or (tag.name == "a" and tag.has_attr("name"))):
        for name in {str(one[key]) for key in ("id", "name") if one.has_attr(key)}:
            named.setdefault(name, []).append(one)
    notes: dict[int, tuple[Tag, str]] = {}
    for link in soup.find_all("a", href=re.compile("^#.")):
        places, label = named.get(str(link["href"])[1:], []), link.get_text().strip().strip("[]")
        if not places:
            continue
        place = bisect(places, order[id(link)], key=lambda one: order[id(one)])
        at = places[min(place, len(places) - 1)]
        note = _begun_by(at) if at.name == "a" and order[id(at)] > order[id(link)] else at
        if note is None or note.name not in _NOTES:
            continue
        if not label.isalnum() or len(label) > _LABEL or any(one is note for one in link.parents):
            continue
        notes[id(note)] = (note, label)
        (link.parent if link.parent is not None and link.parent.name == "sup" else link).replace_with(
            f"[^{label}]"
        )
    for note, label in notes.values():
        for back in note.find_all("a", href=re.compile("^#")):
            if set(back.get_text()) <= _BACK:
                back.decompose()
            elif back.get_text().strip().strip("[]") == label:
                _drop_label(back, label)
        text = note.find("p") or note
        text.insert(0, f"[^{label}]: ")
        if note.name == "li":
            note.name = "div"
            if note.parent is not None and note.parent.name in ("ol", "ul"):
                note.parent.name = "div"


def _begun_by(anchor: "Tag") -> "Tag | None":
    """The block whose text begins at `anchor`."""
    block = anchor.find_parent(_BLOCKS)
    for one in itertools.islice(block.descendants if block else (), _LABEL):
        if one is anchor:
            return block
        if isinstance(one, str) and one.strip():
            break
    return None


def _drop_label(back: "Tag", label: str) -> None:
    """Remove the way back that is a note's own label, with its brackets and the full stop after it."""
    from bs4.element import NavigableString

    while (around := back.parent) is not None and len(around.contents) <= len("[1]"):
        if around.get_text().strip() not in (label, f"[{label}]"):
            break
        back = around
    after = back.next_sibling
    if isinstance(after, NavigableString):
        after.replace_with(after.lstrip(".) \xa0"))
    back.decompose()
