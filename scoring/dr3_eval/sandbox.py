"""A closed world of sources: the files a user handed over, the pages of a corpus, and how a report cites them.

Reports cite them by URL, by file name or by title, in all the forms of `scoring.text.citations` and in brackets:
`[Doc: plan.pdf, Page 2]`, `[Image: chart.png]`, `[long_context: "A title", chunk 1]`, `[RAG-2]` with a citation of
that marker handed over. Every source gets its own address, brackets become addresses, and the citation parser
does the rest.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Literal
from urllib.parse import unquote

import msgspec

from adjudge.judges import Context, Media
from adjudge.judges.lexical import terms
from adjudge.scoring.contract.case import Citation, Report
from adjudge.scoring.text.citations import Passage, parse
from adjudge.scoring.text.references import url_key

__all__ = ["Cited", "Role", "Sandbox", "Source", "leniently_equal"]

Role = Literal["user_file", "supportive", "distractor", "noise", "unlabelled"]

_BRACKET = re.compile(r"[\[【]([^\[\]【】\n]{1,300})[\]】](?!\()")
_LINK = re.compile(r"(?<!!)\[([^\[\]\n]{1,300})\]\(([^()\s]{1,2000})\)")
_KIND = re.compile(
    r"\s*(?:docs?|document|file|image|img|figure|video|audio|table|sheet|slides?|pdf|long[_ ]context|web|page|url|rag"
    r"|文档|文件|图片|图像|视频|音频|表格|网页)\s*[:：]\s*",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"[,，;；]\s*(?:pages?|pp?\.?|chunks?|sheets?|slides?|sections?|lines?|paragraphs?|第)\s*[^,，;；]{0,60}$",
    re.IGNORECASE,
)
_QUOTES = "\"'“”‘’《》「」 "
_SHORTEST = 4
_TOKENS_SHARED = 0.6


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A user's file or a page of the corpus: its text, or what a judge must look at or listen to."""

    name: str = ""
    title: str = ""
    url: str = ""
    text: str = ""
    media: Media | None = None
    role: Role = "user_file"

    @property
    def label(self) -> str:
        """The name shown to people and judges."""
        return self.name or self.title or self.url

    @property
    def required(self) -> bool:
        """Whether a good report cites it: user files and supportive pages."""
        return self.role in ("user_file", "supportive")

    def context(self, limit: int | None = None) -> Context:
        """The source as judges are shown it: its name, its text up to `limit` characters, its picture or sound."""
        media = () if self.media is None else (self.media,)
        return Context.of(*media, name=self.label, source=self.text[:limit])


class Cited(msgspec.Struct, frozen=True):
    """What a report cites.

    `claims` are its cited sentences with the places of their sources (None: not in the sandbox), `uncited` its other
    sentences, `sources` the places of all that it cites anywhere, `names` what it calls them.
    """

    claims: tuple[tuple[str, tuple[int | None, ...]], ...]
    uncited: tuple[str, ...]
    sources: frozenset[int]
    names: tuple[str, ...]


class Sandbox:
    """The sources of one task, by their places in `sources`."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = tuple(sources)

    def find(self, text: str) -> int | None:
        """The place of the source that `text` names: by URL, by file name, or by title in letters and digits only."""
        if not text.strip():
            return None
        found = self._by_url.get(url_key(text))
        if found is None and "://" not in text.replace("file://", ""):
            found = self._by_name.get(_file_name(text))
        return self._by_title.get(_normal(text)) if found is None else found

    def cited(self, report: Report) -> Cited:
        """What `report` cites of the sandbox, and what it says without a citation."""
        return _Reader(self, report).cited()

    def coverage(self, cited: Cited, lenient: bool = False) -> float | None:
        """Required sources that are cited over all required ones (DR3-Eval, citation coverage); None if there are none.

        `lenient` also takes names that contain one another or share 60% of their words, as the published code does.
        """
        required = [place for place, source in enumerate(self.sources) if source.required]
        if not required:
            return None
        found = [
            place in cited.sources or (lenient and self._named(self.sources[place], cited.names))
            for place in required
        ]
        return sum(found) / len(required)

    def _named(self, source: Source, names: Iterable[str]) -> bool:
        called = [text for text in (source.name, source.title) if text]
        return any(leniently_equal(text, name) for text in called for name in names)

    @cached_property
    def _by_url(self) -> dict[str, int]:
        return {url_key(source.url): place for place, source in self._backwards() if source.url}

    @cached_property
    def _by_name(self) -> dict[str, int]:
        return {_file_name(source.name): place for place, source in self._backwards() if source.name}

    @cached_property
    def _by_title(self) -> dict[str, int]:
        return {_normal(source.title): place for place, source in self._backwards() if _normal(source.title)}

    def _backwards(self) -> Iterator[tuple[int, Source]]:
        """Places and sources, last first, so that of equal names the first source keeps its own."""
        return ((place, self.sources[place]) for place in reversed(range(len(self.sources))))


class _Reader:
    """Reads what one report cites. Sources get addresses on a host that hangs on all of it, so it cannot name them."""

    def __init__(self, sandbox: Sandbox, report: Report) -> None:
        self._find = sandbox.find
        self._report = report
        whole = msgspec.json.encode((report.text, report.citations))
        self._host = f"https://{hashlib.blake2b(whole, digest_size=16).hexdigest()}.invalid/"
        self._names: list[str] = []

    def cited(self) -> Cited:
        """What `Sandbox.cited` returns."""
        report, find = self._report, self._find
        text = _BRACKET.sub(self._bracket, _LINK.sub(self._link, report.text))
        listed = parse(text).references
        handed = [Citation(url=citation.url, marker=citation.marker) for citation in report.citations]
        for reference in listed:
            place = find(reference.title)
            if place is not None and self._place(reference.url) is None:
                handed.append(Citation(url=self._address(place), marker=reference.label))
        titles = {url_key(reference.url): reference.title for reference in listed if reference.url}
        titles |= {url_key(citation.url): citation.title for citation in report.citations if citation.title}
        names = [*self._names, *titles.values(), *(reference.title for reference in listed)]

        passages = parse(text, tuple(handed)).passages
        claims = tuple(
            (passage.fact, tuple(dict.fromkeys(self._places(passage, titles))))
            for passage in passages
            if passage.sources
        )
        sources = {place for _, places in claims for place in places}
        sources |= {self._place(reference.url) for reference in listed}
        sources |= {find(reference.title) for reference in listed}
        sources |= {self._place(citation.url) for citation in report.citations}
        sources |= {find(citation.title) for citation in report.citations}
        return Cited(
            claims=claims,
            uncited=tuple(passage.fact for passage in passages if not passage.sources),
            sources=frozenset(place for place in sources if place is not None),
            names=tuple(dict.fromkeys(name for name in names if name.strip())),
        )

    def _places(self, passage: Passage, titles: dict[str, str]) -> Iterator[int | None]:
        for _, url in passage.sources:
            place = self._place(url)
            yield self._find(titles.get(url_key(url), "")) if place is None else place

    def _address(self, place: int | None) -> str:
        return f"{self._host}{'none' if place is None else place}"

    def _place(self, url: str) -> int | None:
        if url.startswith(self._host):
            place = url.removeprefix(self._host)
            return int(place) if place.isdecimal() else None
        return self._find(url)

    def _bracket(self, match: re.Match[str]) -> str:
        """A bracket that names a source as that source's address; what it names goes to the names."""
        inner = match[1].strip()
        citation = self._marked.get(inner.lower())
        if citation is not None and not inner.isdecimal():
            place = self._place(citation.url)
            return f"{self._address(self._find(citation.title) if place is None else place)} "
        kind = _KIND.match(inner)
        named = _PLACE.sub("", inner[kind.end() :] if kind else inner).strip(_QUOTES)
        place = self._find(named)
        if place is None and not kind:
            return match[0]
        self._names.append(named)
        return f"{self._address(place)} "

    def _link(self, match: re.Match[str]) -> str:
        """A link that names a source, to that source's address; its text goes to the names."""
        self._names.append(match[1])
        place = self._place(match[2])
        place = self._find(match[1]) if place is None else place
        return match[0] if place is None else f"[{match[1]}]({self._address(place)})"

    @cached_property
    def _marked(self) -> dict[str, Citation]:
        """Citations that were handed over, by their markers."""
        return {
            citation.marker.strip("[]【】 ").lower(): citation
            for citation in self._report.citations
            if citation.marker
        }


def leniently_equal(one: str, other: str) -> bool:
    """Whether two names contain one another, or share 60% of the words of the one that has more (DR3-Eval's code)."""
    first, second = _normal(one), _normal(other)
    if min(len(first), len(second)) < _SHORTEST:
        return first == second != ""
    if first in second or second in first:
        return True
    words, others = set(terms(one)), set(terms(other))
    return bool(words and others) and len(words & others) >= _TOKENS_SHARED * max(len(words), len(others))


def _file_name(text: str) -> str:
    return unquote(text.strip().replace("\\", "/").rpartition("/")[2]).casefold()


def _normal(text: str) -> str:
    """Lower case, letters and digits only."""
    return "".join(character for character in text[:1000].casefold() if character.isalnum())
