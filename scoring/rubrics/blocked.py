"""Where a report rests on a source that its task blocks: which sentences cite it, by URL or by title (DRB II)."""

import re

import msgspec

from adjudge.scoring.contract.case import Citation
from adjudge.scoring.rubrics.trusted_links import address_of
from adjudge.scoring.text.citations import parse
from adjudge.scoring.text.splitting import compatible

__all__ = ["Blocked", "Traces", "traces"]

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
    spelt = {word for name in names for word in _words(name).split() if len(word) >= _name_chars(word)}
    alone = (f" {word} " if word.isascii() else word for word in spelt)
    return (bool(title) and title in whole) or any(word in whole for word in alone)


def _name_chars(word: str) -> int:
    return 3 if word.isascii() else 2


def _urls(text: str, handed: tuple[Citation, ...]) -> list[str]:
    found = parse(text, handed)
    urls = [one.url for one in found.references if one.url] + [one.url for one in handed]
    return urls + [url for one in found.passages for _, url in one.sources if url]


def _place(url: str) -> str:
    """Host and path of a URL, whether its scheme is http or https."""
    host, address = address_of(url)
    return f"{host}/{address.partition('://')[2].partition('/')[2]}" if host else address


def _words(text: str) -> str:
    """The words of `text` in lower case, one space between them."""
    return " ".join(_WORD.findall(compatible(text).casefold()))


def _several(said: str | tuple[str, ...] | None) -> tuple[str, ...]:
    if not said:
        return ()
    return (said,) if isinstance(said, str) else tuple(one for one in said if one.strip())
