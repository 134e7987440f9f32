"""Which source a citation in DR3-Eval's standard form names, and where in it, by the rules of the published code.

A citation is a judge's, so all readings are linear in it. The code takes the first file of a folder whose name is the
same, in whatever order the folder lists them; here it is the first by name. Its own files (the corpus, the list of
supportive pages) do not count as sources here.
"""

import re
from collections.abc import Sequence
from itertools import chain
from typing import Literal

import msgspec

from adjudge.scoring.dr3_eval.code_titles import MAX_NAMES, Title, same_title

__all__ = ["Place", "found_sources", "place_of", "source_key"]

_LONG_CONTEXT = re.compile(r'long_context:\s*"([^"]+)"')
_DOCUMENT = re.compile(r"(?:[Dd]oc|文档):\s*([^,\]]+)")
_PAGE_NUMBER = re.compile(r"RAG-(\d+)")
_KINDS = (
    (("图片:", "Image:"), re.compile(r"(?:图片|[Ii]mage):\s*([^,\]]+)"), "image"),
    (("视频:", "video:"), re.compile(r"(?:视频|[Vv]ideo):\s*([^,\]]+)"), "video"),
    (("音频:", "audio:"), re.compile(r"(?:音频|[Aa]udio):\s*([^,\]]+)"), "audio"),
)
_RUN = re.compile(r"[^\[\],\s]+")
_SUFFIXES = (
    (re.compile(r"\.(?:pdf|md|docx?|txt)", re.IGNORECASE), "doc"),
    (re.compile(r"\.(?:jpg|jpeg|png|gif|webp)", re.IGNORECASE), "image"),
    (re.compile(r"\.(?:mp4|webm|mov|avi)", re.IGNORECASE), "video"),
    (re.compile(r"\.(?:mp3|wav|m4a|aac|ogg|flac|wma)", re.IGNORECASE), "audio"),
)
_PAGES = re.compile(r"Page\s*(\d+)(?:\s*-\s*(\d+))?", re.IGNORECASE)
_CHUNKS = re.compile(r"chunk\s*(\d+)(?:\s*-\s*(\d+))?", re.IGNORECASE)

_MEDIA = {
    "image": (".jpg", ".jpeg", ".png", ".gif", ".webp"),
    "video": (".mp4", ".webm", ".mov", ".avi"),
    "audio": (".mp3", ".wav", ".m4a", ".aac", ".ogg", ".flac", ".wma"),
}


class Place(msgspec.Struct, frozen=True):
    """The pages of a file, or the chunks of a page of the corpus, that a citation points to."""

    unit: Literal["page", "chunk"]
    first: int
    last: int


def source_key(text: str) -> tuple[str, str]:
    """The kind and name of the source that the citation `text` names; claims with equal ones are verified together."""
    if "long_context:" in text:
        found = _LONG_CONTEXT.search(text)
        if found:
            return "long_context", found[1]
    elif "Doc:" in text or "文档:" in text or "doc:" in text.lower():
        found = _DOCUMENT.search(text)
        if found:
            return "doc", found[1].strip()
    elif "RAG-" in text:
        found = _PAGE_NUMBER.search(text)
        if found:
            return "rag", found[1]
    else:
        for (chinese, english), pattern, kind in _KINDS:
            if chinese in text or english in text.lower():  # never so for pictures, by a slip of the code
                found = pattern.search(text)
                if found:
                    return kind, found[1].strip()
                break
    return _by_suffix(text) or ("unknown", text[:30])


def _by_suffix(text: str) -> tuple[str, str] | None:
    """The first word of the citation that has the suffix of a file, of documents first."""
    for pattern, kind in _SUFFIXES:
        for run in _RUN.finditer(text):
            ends = [found.end() for found in pattern.finditer(run[0]) if found.start()]
            if ends:
                return kind, run[0][: ends[-1]]
    return None


def place_of(text: str) -> Place | None:
    """The pages or chunks that the citation `text` gives. Raises ValueError for a number of too many digits."""
    unit: Literal["page", "chunk"] = "chunk" if "long_context:" in text else "page"
    if unit == "page" and not ("Doc:" in text or "文档:" in text or "doc:" in text.lower()):
        return None
    found = (_CHUNKS if unit == "chunk" else _PAGES).search(text)
    if found is None:
        return None
    first = int(found[1])
    return Place(unit, first, int(found[2]) if found[2] else first) if first else None


def found_sources(
    keys: list[tuple[str, str]], files: list[str], pages: list[str], blank: list[int]
) -> list[int | None]:
    """For each key the place of its source among `files` and then `pages`; None if there is none.

    `files` are names, `pages` titles in the corpus's order, `blank` the places in `pages` of those without text, which
    the code takes for missing. Of the keys, the first `MAX_NAMES` are looked up.
    """
    names, titles = [Title(name) for name in files], [Title(title) for title in pages]
    found: list[int | None] = []
    for kind, name in keys[:MAX_NAMES]:
        page = _page(kind, name, titles)
        place = None if page is None or page in blank else len(names) + page
        file = _file(kind, Title(name), names)
        found.append(place if file is None else file)
    return found + [None] * (len(keys) - len(found))


def _file(kind: str, wanted: Title, names: Sequence[Title]) -> int | None:
    suffixes = _MEDIA.get(kind, ("",) if kind == "doc" else ())
    return next(
        (
            place
            for place, name in enumerate(names)
            if name.text.lower().endswith(suffixes) and same_title(wanted, name)
        ),
        None,
    )


def _page(kind: str, name: str, titles: Sequence[Title]) -> int | None:
    """The page of this number or title, else the first whose title is the same to the code."""
    if kind == "rag":
        place = int(name) - 1 if len(name) < 10 else -1
        return place if 0 <= place < len(titles) else None
    if kind not in ("doc", "long_context"):
        return None
    wanted = Title(name)
    equal = (place for place, title in enumerate(titles) if title.plain == wanted.plain)
    alike = (place for place, title in enumerate(titles) if same_title(wanted, title))
    return next(chain(equal, alike), None)
