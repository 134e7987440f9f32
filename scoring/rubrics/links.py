"""The sources that a report cites: those that experts trust, and those that its task blocks.

Trusted sources are compared by address and by host, after citations that a system hands over apart from its text were
put into the text (Rigorous Bench). Blocked ones are found by URL or by title (DeepResearch Bench II).
"""

import re
from collections.abc import Iterable

import msgspec

from adjudge.fetchers.urls import MalformedURL, page_parts
from adjudge.scoring.contract.case import Citation
from adjudge.scoring.text.citation_marks import compatible, exact_url
from adjudge.scoring.text.citations import MAX_REFERENCES, parse, url_key
from adjudge.scoring.text.sentences import tidy


class LinkMatch(msgspec.Struct, frozen=True):
    """Counts of different addresses.

    Trusted ones (S), cited ones (T), cited ones that are trusted (`full`), and cited ones on a host that a trusted one
    is on (`host`, those of `full` included).
    """

    trusted: int
    cited: int
    full: int
    host: int


def match_links(
    cited: Iterable[str], trusted: Iterable[str], keep_www: bool = False, keep_slash: bool = False
) -> LinkMatch:
    """Compare addresses without query and fragment (Rigorous Bench).
    http or https makes no difference, nor do a leading "www." and a trailing slash unless kept. A text that is not a
    URL counts as an address that matches nothing.
    """
    wanted = {address_of(url, keep_www, keep_slash) for url in trusted}
    found = {address_of(url, keep_www, keep_slash) for url in cited}
    hosts = {host for host, _ in wanted} - {""}
    return LinkMatch(
        trusted=len(wanted),
        cited=len(found),
        full=len(found & wanted),
        host=sum(host in hosts for host, _ in found),
    )


def match_substrings(cited: Iterable[str], trusted: Iterable[str]) -> LinkMatch:
    """Compare as the code of Rigorous Bench does: whole URLs in lower case, without query and fragment, by substring.

    A trusted URL is cited if a cited one contains it, and a cited one is on a trusted host if it contains that host.
    """
    wanted, found = (
        {url.strip().lower().partition("#")[0].partition("?")[0] for url in urls} - {""}
        for urls in (trusted, cited)
    )
    hosts = {url.partition("//")[2].partition("/")[0] for url in wanted} - {""}
    return LinkMatch(
        trusted=len(wanted),
        cited=len(found),
        full=sum(any(url in other for other in found) for url in wanted),
        host=sum(any(host in url for host in hosts) for url in found),
    )


def cited_urls(text: str, handed: tuple[Citation, ...] = ()) -> list[str]:
    """All URLs that a report cites, in its text, its reference lists or apart from both; each spelling once."""
    citations = parse(text, handed)
    found = [reference.url for reference in citations.references]
    found += [url for passage in citations.passages for _, url in passage.sources]
    found += [exact_url(citation.url) for citation in handed]
    return list(dict.fromkeys(url for url in found if url))


def address_of(url: str, keep_www: bool = False, keep_slash: bool = False) -> tuple[str, str]:
    """Host, and the address without scheme, query and fragment, by which URLs are compared.

    http and https at their own ports name one page.
    """
    try:
        parts = page_parts(url, keep_www=keep_www, keep_slash=keep_slash)
    except MalformedURL:
        return "", url.partition("#")[0].partition("?")[0]
    port = f":{parts.port}" if parts.port else ""
    return parts.host, f"//{parts.host}{port}{parts.target.partition('?')[0]}"


MAX_TITLE = 200


def annotated(text: str, handed: tuple[Citation, ...]) -> str:
    """`text` with those of the citations in `handed` that it does not show itself.

    One with a position becomes a link there; the others, each URL once, in a list at the end, under their markers.
    """
    shown = {url_key(url) for url in cited_urls(text)} if handed else set()
    missing = [one for one in handed if one.url.strip() and url_key(one.url) not in shown][:MAX_REFERENCES]
    parts, before = [], 0
    placed = [(one.position, one) for one in missing if one.position is not None]
    for position, one in sorted(placed, key=lambda pair: pair[0]):
        parts += [text[before:position], f" [{_title(one)}]({_address(one)})"]
        before = max(before, position)
    parts.append(text[before:])
    listed = {url_key(one.url): one for one in reversed(missing) if one.position is None}
    if listed:
        parts.append("\n\n## References\n")
    for place, one in enumerate(reversed(listed.values()), 1):
        name = tidy(one.marker.strip("[]【】()")) or place
        parts.append(f"\n[{name}] {_address(one)} {_title(one)}")
    return "".join(parts)


def _title(citation: Citation) -> str:
    """The title on one line; behind the URL in a list, because it may hold another."""
    return tidy(citation.title[:MAX_TITLE]).translate(str.maketrans("", "", "[]")) or "source"


def _address(citation: Citation) -> str:
    """The URL without white space: in a list, another line would be another source."""
    return "".join(citation.url.split())


_WORD = re.compile(r"[^\W_]{1,200}")
_TITLE_CHARS = 20  # a shorter title may stand in a sentence by chance
_QUOTE_CHARS = 15  # a shorter quotation may be in any sentence
_SENTENCE = re.compile(r"[.!?。！？\n]")


class Blocked(msgspec.Struct, frozen=True):
    """A source that reports must not rest on."""

    title: str | None = None
    authors: str | tuple[str, ...] | None = None
    urls: str | tuple[str, ...] | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """The URLs."""
        return _several(self.urls)

    @property
    def names(self) -> tuple[str, ...]:
        """The authors."""
        return _several(self.authors)

    def described(self) -> str:
        """The source for a judge, a line per part; empty if nothing is blocked."""
        parts = (
            ("title", self.title),
            ("authors", ", ".join(self.names)),
            ("URLs", " ".join(self.addresses)),
        )
        return "\n".join(f"{name}: {said}" for name, said in parts if said)


class Traces(msgspec.Struct, frozen=True):
    """What a report shows of a blocked source: whether anything, and the words of the sentences that cite it."""

    any: bool = False
    cited: str = ""

    def hold(self, quote: str) -> bool:
        """Whether a sentence of `quote` is one that cites the blocked source."""
        if not self.cited:
            return False
        found = (_words(part) for part in _SENTENCE.split(quote))
        return any(part in self.cited for part in found if len(part) >= _QUOTE_CHARS)


def traces(text: str, handed: tuple[Citation, ...], blocked: Blocked) -> Traces:
    """The traces of `blocked` in a report; `handed` are citations apart from its text.

    A sentence cites it with a link or mark that leads to one of its URLs, or to a reference that has its title, or by
    the title itself. An author's name alone makes a trace, but no citation: that is for the judge to decide.
    """
    title = _words(blocked.title or "")
    is_telling = len(title) >= _TITLE_CHARS
    citations = parse(text, handed)
    barred = {_place(url) for url in blocked.addresses if url.strip()}
    barred |= {
        _place(one.url)
        for one in citations.references
        if is_telling and one.url and title in _words(one.title)
    }
    barred |= {_place(one.url) for one in handed if is_telling and title in _words(one.title)}
    cited = []
    for one in citations.passages:
        words = _words(one.raw)
        by_url = any(_place(url) in barred for _, url in one.sources if url)
        if by_url or (is_telling and title in words):
            cited.append(f"{words}\n{_words(one.fact)}")
    linked = bool(barred) and any(_place(url) in barred for url in _urls(text, handed))
    return Traces(bool(cited) or linked or _named(text, title, blocked.names), "\n".join(cited))


def _named(text: str, title: str, names: tuple[str, ...]) -> bool:
    """Whether `text` has the words of the title, or a word of an author's name."""
    whole = f" {_words(text)} "
    spelt = {
        word for name in names for word in _words(name).split() if len(word) >= (3 if word.isascii() else 2)
    }
    alone = (f" {word} " if word.isascii() else word for word in spelt)
    return (bool(title) and title in whole) or any(word in whole for word in alone)


def _urls(text: str, handed: tuple[Citation, ...]) -> list[str]:
    found = parse(text, handed)
    urls = [one.url for one in found.references if one.url] + [one.url for one in handed]
    return urls + [url for one in found.passages for _, url in one.sources if url]


def _place(url: str) -> str:
    """Host and path of a URL, whatever its port."""
    host, address = address_of(url)
    return f"{host}/{address.removeprefix('//').partition('/')[2]}" if host else address


def _words(text: str) -> str:
    """The words of `text` in lower case, one space between them."""
    return " ".join(_WORD.findall(compatible(text).casefold()))


def _several(said: str | tuple[str, ...] | None) -> tuple[str, ...]:
    if not said:
        return ()
    return (said,) if isinstance(said, str) else tuple(one for one in said if one.strip())
