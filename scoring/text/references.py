"""The reference lists of a report, and what a mark in its text points to."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from adjudge.fetchers.urls import MalformedURL, normalise_url
from adjudge.scoring.contract.case import Citation
from adjudge.scoring.text.blocks import Line, entry, unquoted
from adjudge.scoring.text.citation_marks import MAX_PIECE, Mark, clean_url, label, pieces

__all__ = ["MAX_REFERENCES", "Reference", "Sources", "references_in", "url_key"]

MAX_REFERENCES = 5_000

_WWW = re.compile(r"(?<![\w/.])www\.[\w-]{1,63}\.[^\s<>\"]{1,2000}", re.IGNORECASE)


class Reference(msgspec.Struct, frozen=True):
    """An entry of a reference list. `index` is its number (its place, if the label is a word), `line` where it stands.

    `url` is "" for an entry that gives none.
    """

    label: str
    index: int
    title: str
    url: str
    line: int


def url_key(url: str) -> str:
    """What URLs are grouped by: the normal form, or a malformed URL as it stands."""
    cleaned = clean_url(url)
    try:
        return normalise_url(cleaned)
    except MalformedURL:
        return cleaned


def references_in(found: Iterable[Line]) -> Iterator[Reference]:
    """The entries of all reference lists among a report's lines. A URL on the line below its entry belongs to it."""
    place = 0
    pending: Reference | None = None
    for number, line in enumerate(found):
        if line.kind != "reference" or line.level:
            place = 0 if line.kind == "heading" or line.level else place
            continue
        raw = unquoted(line.raw)[:MAX_PIECE]
        item = entry(raw)
        title, url = _address(item.rest if item else raw)
        if pending and (item is None or not item.label) and url:
            yield msgspec.structs.replace(pending, url=url)
            pending = None
        elif item and (item.label or url):
            if pending:
                yield pending
            place += 1
            name = label(item.label or str(place))
            made = Reference(name, number_of(name, place), title, url, number)
            pending = None if url else made
            if url:
                yield made
    if pending:
        yield pending


def number_of(name: str, place: int) -> int:
    """The number that a label is; its `place` for a word, and for a number of more digits than any list has."""
    return int(name) if name.isdecimal() and len(name) < 10 else place


def _address(text: str) -> tuple[str, str]:
    """Title and URL of a reference; a link rather than the work's name in a register (arXiv, DOI)."""
    found = list(pieces(text, ()))
    named = [piece for piece in found if isinstance(piece, Mark) and piece.url]
    linked = [mark for mark in named if not mark.raw.lower().startswith(("arx", "doi"))]
    url = next((mark.url for mark in (*linked, *named)), "")
    title = [piece.title if isinstance(piece, Mark) else piece for piece in found]
    www = None if url else _WWW.search(text)
    if www:
        url = f"https://{clean_url(www[0])}"
    return "".join(title).strip(" \t*_.:：,|-–—()[]<>"), url


class Sources:
    """What a mark on a given line points to. Lists may restart their numbers: the next definition below counts."""

    def __init__(self, references: Sequence[Reference], handed: Sequence[Citation]) -> None:
        self._defined: defaultdict[str, list[Reference]] = defaultdict(list)
        self._listed: dict[str, int] = {}
        self._keys: dict[str, str] = {}
        for reference in references:
            if reference.url:
                self._defined[reference.label].append(reference)
                self._listed.setdefault(self._key(reference.url), reference.index)
        for place, citation in enumerate(handed, 1):
            name = label(citation.marker.strip("[]【】()^ ") or str(place))
            if name not in self._defined:
                index = number_of(name, place)
                self._defined[name].append(Reference(name, index, citation.title, citation.url, 0))
        self.known = frozenset(self._defined)

    def of(self, marks: Iterable[Mark], line: int) -> dict[str, tuple[int, str]]:
        """(ref_idx, url) of all marks by the URL's key, each URL once."""
        found: dict[str, tuple[int, str]] = {}
        looked_up: set[str] = set()
        for mark in marks:
            if mark.url:
                key = url_key(mark.url)
                numbered = mark.labels and mark.labels[0].isdecimal()
                found.setdefault(
                    key, (int(mark.labels[0]) if numbered else self._listed.get(key, 0), mark.url)
                )
                continue
            for name in mark.labels:
                if name not in looked_up and name in self._defined:
                    looked_up.add(name)
                    reference = self._below(name, line)
                    found.setdefault(self._key(reference.url), (reference.index, reference.url))
        return found

    def _key(self, url: str) -> str:
        """`url_key` of a reference, which many marks may point to."""
        key = self._keys.get(url)
        if key is None:
            key = self._keys[url] = url_key(url)
        return key

    def _below(self, name: str, line: int) -> Reference:
        defined = self._defined[name]
        below = bisect_left(defined, line, key=lambda reference: reference.line)
        return defined[min(below, len(defined) - 1)]
