"""How a report cites a closed world of sources, and which sources those are (DR3-Eval).

Forms, beside all those of `scoring.text.citations`, in brackets or in parentheses: `[Doc: plan.pdf, Page 2]`,
`[plan.pdf, Section 7]`, `[Image: chart.png]`, `[long_context: "A title", chunk 1-3]` with the title perhaps cut short,
`[source: "notes.md"]`, `[document_reader: notes.md, section 2]`, `[source_1: notes.md]`, `[video.mp4, 00:15:30]`,
`[RAG-1, RAG-2]` for pages of the corpus by number, and the markers of citations supplied with the report.

Every source gets an address, brackets become addresses, and the citation parser does the rest. Time is linear in the
report for a given set of sources: of the names that a report calls sources by, `MAX_NAMES` are looked up leniently.
"""

import hashlib
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from html import unescape
from urllib.parse import unquote

import msgspec

from adjudge.judges.lexical import terms
from adjudge.scoring.contract.case import Citation
from adjudge.scoring.text.citation_marks import clean_url
from adjudge.scoring.text.citations import Passage, parse, url_key

MAX_NAMES = 1_000

_BRACKET = re.compile(r"[\[【]([^\[\]【】\n]{1,300})[\]】](?!\()")
# A title may hold brackets of its own.
_NESTED = re.compile(
    r"\[((?:[^\[\]【】\n]{0,100}(?:\[[^\[\]【】\n]{0,100}\]|【[^\[\]【】\n]{0,100}】)){1,5}[^\[\]【】\n]{0,100})\](?!\()"
)
_PARENTHESIS = re.compile(r"(?<!\])[(（]([^()（）\n]{1,300})[)）]")
_LINK = re.compile(r"(?<!!)\[([^\[\]\n]{1,300})\]\(([^()\s]{1,2000})\)")
_KIND = re.compile(
    r"\s*(?:docs?|document|file|image|img|figure|video|audio|table|sheet|slides?|pdf|long[_ ]context|source|web|page"
    r"|url|rag|文档|文件|图片|图像|视频|音频|表格|网页|来源)\s*[:：]\s*",
    re.IGNORECASE,
)
_TOOL = re.compile(r"\s*[^\W\d][\w.-]{0,60}\s?[:：]\s*")  # `document_reader:`, `source_1:`
_PLACE = re.compile(
    r"[,，;；]\s*(?:pages?|pp?\.?|chunks?|sheets?|slides?|sections?|lines?|paragraphs?|第|\d{1,2}:\d\d)"
    r"\s*[^,，;；]{0,60}$",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"'“‘「《]([^\"“”「」《》]{1,290}?)[\"'”’」》]\s*(?:[,，;；]|$)")
_RAG = re.compile(r"\s*RAG[-_ ]?(\d{1,6})\s*", re.IGNORECASE)
_SEVERAL = re.compile("[;；,，、]")
_QUOTES = "\"'“”‘’《》「」 "
_ELLIPSIS = ("...", "…")
_SUFFIXES = frozenset(
    "pdf doc docx ppt pptx xls xlsx csv tsv txt md markdown json jsonl htm html xml "
    "jpg jpeg png gif webp mp4 webm mov avi mp3 wav m4a aac ogg flac wma".split()
)
_SHORTEST = 4
_SHORTENED = 8
_TOKENS_SHARED = 0.6


class Label(msgspec.Struct, frozen=True):
    """The names of a source; `paged` marks a page of the corpus."""

    name: str
    title: str
    url: str
    paged: bool


class Cites(msgspec.Struct, frozen=True):
    """A source that a sentence cites: its place among the sources, or None with the name of one that is not there.

    `lenient` is its place by the published code's permissive matching.
    """

    place: int | None
    lenient: int | None
    name: str = ""


class Cited(msgspec.Struct, frozen=True):
    """A report's citations: its cited sentences with their sources, and the positions of all cited sources."""

    claims: tuple[tuple[str, tuple[Cites, ...]], ...]
    sources: frozenset[int]


def read_cited(text: str, citations: tuple[Citation, ...], labels: tuple[Label, ...]) -> Cited:
    """The sources with `labels` that a report of this `text` cites, with the `citations` supplied separately."""
    return _Reader(text, citations, Labels(labels)).cited()


class Labels:
    """The labels of sources, to find a source by; a place is an index into them."""

    def __init__(self, labels: Sequence[Label]) -> None:
        self.labels = tuple(labels)

    def find(self, text: str) -> int | None:
        """The place of the source that `text` names: by URL, by file name, or by title in letters and digits only."""
        if not text.strip():
            return None
        found = self._by_url.get(url_key(clean_url(text)))
        if found is None and "://" not in text.replace("file://", ""):
            found = self._by_name.get(_file_name(text))
        return self._by_title.get(_normal(text)) if found is None else found

    def shortened(self, text: str) -> int | None:
        """The place of the only source whose title or name begins with `text`; None if it is too short to tell."""
        bare = text.strip(_QUOTES)
        cut = bare.endswith(_ELLIPSIS)
        wanted = _normal(bare.rstrip(".… ")) if cut else _normal(bare)
        if len(wanted) < (_SHORTEST if cut else _SHORTENED):
            return None
        first = bisect_left(self._sorted, (wanted, -1))
        found = {place for title, place in self._sorted[first : first + 2] if title.startswith(wanted)}
        return found.pop() if len(found) == 1 else None

    def page(self, number: int) -> int | None:
        """The place of the corpus's page `number`, from 1."""
        return self._pages[number - 1] if 0 < number <= len(self._pages) else None

    def leniently(self, name: str) -> list[int]:
        """The places of all sources that `name` is leniently equal to, in their order."""
        called, words = _normal(name), set(terms(name))
        return [
            place
            for place, known in enumerate(self._lenient)
            if any(_alike(called, words, *one) for one in known)
        ]

    @cached_property
    def _by_url(self) -> dict[str, int]:
        return {url_key(label.url): place for place, label in self._backwards() if label.url}

    @cached_property
    def _by_name(self) -> dict[str, int]:
        return {_file_name(label.name): place for place, label in self._backwards() if label.name}

    @cached_property
    def _by_title(self) -> dict[str, int]:
        return {_normal(label.title): place for place, label in self._backwards() if _normal(label.title)}

    @cached_property
    def _sorted(self) -> list[tuple[str, int]]:
        named = ((label.title or label.name, place) for place, label in enumerate(self.labels))
        return sorted((_normal(name), place) for name, place in named)

    @cached_property
    def _pages(self) -> list[int]:
        return [place for place, label in enumerate(self.labels) if label.paged]

    @cached_property
    def _lenient(self) -> list[list[tuple[str, set[str]]]]:
        return [
            [(_normal(text), set(terms(text))) for text in (label.name, label.title) if text]
            for label in self.labels
        ]

    def _backwards(self) -> Iterator[tuple[int, Label]]:
        """Places and labels, last first, so that of equal names the first source keeps its own."""
        return ((place, self.labels[place]) for place in reversed(range(len(self.labels))))


class _Named(msgspec.Struct, frozen=True):
    """A report's name for a source that was not found, and the address it gives."""

    name: str
    url: str = ""


class _Reader:
    """Reads what one report cites. Sources get addresses on a host that hangs on all of it, so it cannot name them."""

    def __init__(self, text: str, citations: tuple[Citation, ...], labels: Labels) -> None:
        self._text = text
        self._citations = citations
        self._labels = labels
        self._find = labels.find
        whole = msgspec.json.encode((text, citations))
        self._host = f"https://{hashlib.blake2b(whole, digest_size=16).hexdigest()}.invalid/"
        self._unknown: dict[_Named, int] = {}
        self._matches: dict[str, list[int]] = {}
        self._brackets: dict[tuple[str, bool], list[str]] = {}

    def cited(self) -> Cited:
        """The result of `read_cited`."""
        find = self._find
        text = _NESTED.sub(self._bracket, _LINK.sub(self._link, self._text))
        text = _BRACKET.sub(self._bracket, text)
        text = _PARENTHESIS.sub(self._parenthesis, text)
        found = parse(text)
        listed = found.references
        handed = [Citation(url=citation.url, marker=citation.marker) for citation in self._citations]
        for reference in listed:
            place = find(reference.title)
            if place is not None and self._place(reference.url) is None:
                handed.append(Citation(url=self._address(place), marker=reference.label))
        titles = {url_key(reference.url): reference.title for reference in listed if reference.url}
        titles |= {url_key(citation.url): citation.title for citation in self._citations if citation.title}

        unknown = list(self._unknown)
        whole = parse(text, tuple(handed)) if handed else found
        claims = tuple(
            (passage.fact, tuple(dict.fromkeys(self._cites(passage, titles, unknown))))
            for passage in whole.passages
            if passage.sources
        )
        sources = {one.place for _, cites in claims for one in cites}
        sources |= {self._place(url) for url in whole.addresses}
        sources |= {self._place(reference.url) for reference in listed}
        sources |= {find(reference.title) for reference in listed}
        sources |= {self._place(citation.url) for citation in self._citations}
        sources |= {find(citation.title) for citation in self._citations}
        return Cited(claims, frozenset(place for place in sources if place is not None))

    def _cites(self, passage: Passage, titles: dict[str, str], unknown: Sequence[_Named]) -> Iterator[Cites]:
        for _, url in passage.sources:
            place, number = self._place(url), self._number(url)
            named = unknown[number] if number is not None and number < len(unknown) else _Named("", url)
            if place is None and not named.url.startswith(self._host):
                title = titles.get(url_key(named.url), "") if named.url else ""
                place = self._find(title)
                named = _Named(named.name or title, named.url)
            if place is not None:
                yield Cites(place, place)
            else:
                found = self._leniently(named.name)
                yield Cites(None, found[0] if found else None, named.name or named.url)

    def _leniently(self, name: str) -> list[int]:
        if name not in self._matches:
            self._matches[name] = self._labels.leniently(name) if len(self._matches) < MAX_NAMES else []
        return self._matches[name]

    def _address(self, place: int | None, named: _Named | None = None) -> str:
        if place is not None:
            return f"{self._host}{place}"
        number = self._unknown.setdefault(named or _Named(""), len(self._unknown))
        return f"{self._host}none-{number}"

    def _place(self, url: str) -> int | None:
        if url.startswith(self._host):
            place = url.removeprefix(self._host)
            return int(place) if place.isdecimal() else None
        return self._find(url)

    def _number(self, url: str) -> int | None:
        """The unknown source behind one of our addresses."""
        number = url.removeprefix(f"{self._host}none-")
        return int(number) if number != url and number.isdecimal() else None

    def _bracket(self, match: re.Match[str]) -> str:
        """A bracket that names sources as their addresses."""
        inner = match[1].strip()
        citation = self._marked.get(inner.lower())
        if citation is not None and not inner.isdecimal():
            place = self._place(citation.url)
            place = self._find(citation.title) if place is None else place
            return f"{self._address(place, _Named(citation.title, citation.url))} "
        found = self._named(inner, bare=True)
        return f"{' '.join(found)} " if found else match[0]

    def _parenthesis(self, match: re.Match[str]) -> str:
        """Parentheses that name sources as if they were brackets; a title alone in parentheses is ordinary text."""
        if "://" in match[1]:
            return match[0]
        found = self._named(match[1], bare=False)
        return f"{' '.join(found)} " if found else match[0]

    def _named(self, inner: str, bare: bool) -> list[str]:
        """The addresses of the sources in a bracket; `bare` allows a title without its kind. Empty if it is none.

        Reports repeat their brackets: the first ones are looked up once.
        """
        found = self._brackets.get((inner, bare))
        if found is None:
            found = self._looked_up(inner, bare)
            if len(self._brackets) < MAX_NAMES:
                self._brackets[inner, bare] = found
        return found

    def _looked_up(self, inner: str, bare: bool) -> list[str]:
        if not _SEVERAL.search(inner):
            whole = self._one(inner, bare)
            return [] if whole is None else [whole]
        several = [self._one(part, bare) for part in re.split("[;；]", inner) if part.strip()]
        if several and None not in several and self._find(inner) is None:
            return [one for one in several if one is not None]
        whole = self._one(inner, bare)
        if whole is not None:
            return [whole]
        parts = [self._one(part, bare) for part in _SEVERAL.split(inner) if part.strip()]
        return [one for one in parts if one is not None] if len(parts) > 1 else []

    def _one(self, text: str, bare: bool) -> str | None:
        """The address of the source that `text` names; None if it names none."""
        page = _RAG.fullmatch(text)
        if page:
            return self._known(self._labels.page(int(page[1])), text.strip())
        kind = _KIND.match(text)
        tool = kind or _TOOL.match(text)
        rest = text[tool.end() :] if tool else text
        quoted = _QUOTED.match(rest)
        names = [quoted[1]] if quoted else [_PLACE.sub("", rest), re.split("[,，]", rest, maxsplit=1)[0]]
        names = [name.strip(_QUOTES) for name in names]
        filed = [name for name in names if name.rpartition(".")[2].lower() in _SUFFIXES and "." in name]
        if not (bare or tool or filed):
            return None
        called = dict.fromkeys([text, *names])
        found = next((place for name in called if (place := self._find(name)) is not None), None)
        if found is None and (kind or names[0].endswith(_ELLIPSIS)):
            found = next((place for n in names if (place := self._labels.shortened(n)) is not None), None)
        if found is None and not kind and not filed:
            return None
        return self._known(found, (filed or names)[0])

    def _known(self, place: int | None, name: str) -> str:
        return self._address(place, _Named(name))

    def _link(self, match: re.Match[str]) -> str:
        """A link as the address of its source, where it names one."""
        place = self._place(match[2])
        place = self._find(match[1]) if place is None else place
        if place is None and not match[2].lower().startswith(("http://", "https://")):
            return match[0]
        return f"[{match[1]}]({self._address(place, _Named(match[1], match[2]))})"

    @cached_property
    def _marked(self) -> dict[str, Citation]:
        """Citations that were handed over, by their markers."""
        return {
            citation.marker.strip("[]【】 ").lower(): citation
            for citation in self._citations
            if citation.marker
        }


def leniently_equal(one: str, other: str) -> bool:
    """Whether two names contain one another, or share 60% of the words of the one that has more (DR3-Eval's code)."""
    return _alike(_normal(one), set(terms(one)), _normal(other), set(terms(other)))


def _alike(first: str, words: set[str], second: str, others: set[str]) -> bool:
    if min(len(first), len(second)) < _SHORTEST:
        return first == second != ""
    if first in second or second in first:
        return True
    shared = len(words & others)
    return bool(words and others) and shared >= _TOKENS_SHARED * max(len(words), len(others))


def _file_name(text: str) -> str:
    return unquote(text.strip().replace("\\", "/").rpartition("/")[2]).casefold()


def _normal(text: str) -> str:
    """Lower case, letters and digits only, entities as what they stand for."""
    text = unescape(text[:1000]).casefold()
    return "".join(character for character in text if character.isalnum())
