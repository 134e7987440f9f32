"""Which of a report's cited sources are ones that experts trust: by address, and by host (Rigorous Bench).

Citations that a system supplies apart from its text are put into the text before it is judged.
"""

from collections.abc import Iterable, Sequence

import msgspec

from adjudge.fetchers.urls import MalformedURL, split_url
from adjudge.scoring.contract.case import Citation
from adjudge.scoring.text.citation_marks import clean_url
from adjudge.scoring.text.citations import MAX_REFERENCES, parse, url_key
from adjudge.scoring.text.sentences import tidy

__all__ = ["LinkMatch", "address_of", "annotated", "cited_urls", "match_links", "match_substrings"]


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
    A leading "www." and a trailing slash make no difference unless kept. A text that is not a URL counts as an address
    that matches nothing.
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
    wanted, found = ({_lower(url) for url in urls} - {""} for urls in (trusted, cited))
    hosts = {_host(url) for url in wanted} - {""}
    return LinkMatch(
        trusted=len(wanted),
        cited=len(found),
        full=sum(any(url in other for other in found) for url in wanted),
        host=sum(any(host in url for host in hosts) for url in found),
    )


def _lower(url: str) -> str:
    return url.strip().lower().partition("#")[0].partition("?")[0]


def _host(url: str) -> str:
    return url.partition("//")[2].partition("/")[0]


def cited_urls(text: str, handed: tuple[Citation, ...] = ()) -> list[str]:
    """All URLs that a report cites, in its text, its reference lists or apart from both; each spelling once."""
    citations = parse(text, handed)
    found = [reference.url for reference in citations.references]
    found += [url for passage in citations.passages for _, url in passage.sources]
    found += [clean_url(citation.url) for citation in handed]
    return list(dict.fromkeys(url for url in found if url))


def address_of(url: str, keep_www: bool = False, keep_slash: bool = False) -> tuple[str, str]:
    """Host, and the address without query and fragment, by which URLs are compared."""
    try:
        parts = split_url(url)
    except MalformedURL:
        return "", url.partition("#")[0].partition("?")[0]
    host = parts.host if keep_www else parts.host.removeprefix("www.")
    path = parts.target.partition("?")[0]
    return host, f"{parts.scheme}://{host}:{parts.port}{path if keep_slash else path.rstrip('/')}"


MAX_TITLE = 200


def annotated(text: str, handed: tuple[Citation, ...]) -> str:
    """`text` with those of the citations in `handed` that it does not show itself.

    One with a position becomes a link there; the others, each URL once, in a list at the end, under their markers.
    """
    shown = {url_key(url) for url in cited_urls(text)} if handed else set()
    missing = [one for one in handed if one.url.strip() and url_key(one.url) not in shown][:MAX_REFERENCES]
    placed = sorted((one for one in missing if one.position is not None), key=_position)
    listed = {url_key(one.url): one for one in reversed(missing) if one.position is None}
    return _linked(text, placed) + _list(list(reversed(listed.values())))


def _position(citation: Citation) -> int:
    return citation.position or 0


def _linked(text: str, placed: Sequence[Citation]) -> str:
    parts, before = [], 0
    for one in placed:
        parts += [text[before : _position(one)], f" [{_title(one)}]({_address(one)})"]
        before = max(before, _position(one))
    return "".join([*parts, text[before:]])


def _list(listed: Sequence[Citation]) -> str:
    if not listed:
        return ""
    entries = [
        f"[{tidy(one.marker.strip('[]【】()')) or place}] {_address(one)} {_title(one)}"
        for place, one in enumerate(listed, 1)
    ]
    return "\n".join(["\n", "## References", "", *entries])


def _title(citation: Citation) -> str:
    """The title on one line; behind the URL in a list, because it may hold another."""
    return tidy(citation.title[:MAX_TITLE]).translate(str.maketrans("", "", "[]")) or "source"


def _address(citation: Citation) -> str:
    """The URL without white space: in a list, another line would be another source."""
    return "".join(citation.url.split())
