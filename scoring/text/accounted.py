"""What became of everything in a report that cites: marks, entries of reference lists, addresses and statements."""

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from adjudge.judges.plural import plural
from adjudge.scoring.contract.case import Citation
from adjudge.scoring.text.citation_marks import ADDRESS_END, SCHEME, clean_url, exact_url
from adjudge.scoring.text.citations import Citations, cited, url_key
from adjudge.scoring.text.markup import plain
from adjudge.scoring.text.signs import found_at

__all__ = [
    "LOUD",
    "Account",
    "CitedPair",
    "account",
    "addresses",
    "lost_by",
    "read_citations",
    "said_of_lost",
]

LOUD = 0.1
"""The share of marks and addresses without a pair above which it is said."""
_EXAMPLES = 5

# An address wherever it stands, found without what the reader of citations knows. It ends before a link's target.
_END = rf"(?:{ADDRESS_END}|\]\()"
_ADDRESS = re.compile(rf"{SCHEME}(?!{_END}).+?(?={_END})")
_ADDRESS_SIGN = re.compile(r"[hHwW](?=[tTwW]{2})")
_MAX_ADDRESSES = 20_000


class CitedPair(msgspec.Struct, frozen=True):
    """A statement and one address that it cites, as FACT takes it from the marks."""

    statement: str
    url: str


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """A report's citation `marks`, how many of them lead to an address (`resolved`), its distinct `urls` and `pairs`.

    `unresolved` are the marks that lead nowhere, as written; `entries_unused` the entries of reference lists and of
    what came apart from the text, and `urls_unused` all addresses, that no statement cites. `complete` unless the
    report has more than is read.
    """

    marks: int
    resolved: int
    urls: int
    pairs: tuple[CitedPair, ...]
    unresolved: tuple[str, ...]
    entries_unused: tuple[str, ...]
    urls_unused: tuple[str, ...]
    complete: bool = True

    @property
    def lost(self) -> int:
        """Marks that lead nowhere, and addresses that no statement cites."""
        return len(self.unresolved) + len(self.urls_unused)

    @property
    def of(self) -> int:
        """All marks, and the addresses that no statement cites: what `lost` is a part of."""
        return self.marks + len(self.urls_unused)


def said_of_lost(every: Sequence[Account]) -> Iterator[str]:
    """What leads to no pair of a statement and a page, with examples, if it is more than a tenth."""
    lost, of = sum(one.lost for one in every), sum(one.of for one in every)
    if lost <= LOUD * of:
        return
    yield f"{lost / of:.0%} of marks and addresses lead to no pair of a statement and a page"
    marks = [mark for one in every for mark in one.unresolved]
    urls = [url for one in every for url in one.urls_unused]
    if marks:
        yield f"{plural(len(marks), 'mark leads', 'marks lead')} nowhere: {_examples(marks)}"
    if urls and not any(one.marks for one in every):
        yield f"sources are listed, but no mark in the text cites them: {_examples(urls)}"
    elif urls:
        yield f"no statement cites {plural(len(urls), 'address', 'addresses')}: {_examples(urls)}"


def lost_by(systems: Mapping[str, Sequence[Account]]) -> Iterator[str]:
    """Lines on each system of which more than a tenth is lost, the first with its name, the others indented.

    A single line where nothing is cited at all.
    """
    if systems and not any(one.marks or one.urls or one.pairs for every in systems.values() for one in every):
        yield "no report has a citation mark or an address"
    for name, every in systems.items():
        for place, line in enumerate(said_of_lost(every)):
            yield f"  {line}" if place else f"{name}: {line}"


def _examples(every: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(every[:_EXAMPLES])) + (" ..." if len(every) > _EXAMPLES else "")


def read_citations(text: str, handed: tuple[Citation, ...] = ()) -> tuple[Citations, Account]:
    """The citations of the Markdown report `text` that have a source (`cited`), and its account, in one reading."""
    return cited(text, handed), account(text, handed)


def account(text: str, handed: tuple[Citation, ...] = ()) -> Account:
    """The account of the Markdown report `text`; `handed` are citations that came separately. Linear time."""
    found = cited(text, handed)
    pairs = {(one.fact, url_key(one.url)): CitedPair(one.fact, one.url) for one in found.triplets}
    used = {key for _, key in pairs}
    listed = [(one.label, one.url) for one in found.references]
    listed += [(one.marker.strip("[]") or str(place), one.url) for place, one in enumerate(handed, 1)]
    urls = {url_key(url): url for _, url in listed if url}
    urls |= {url_key(one.url): one.url for one in found.triplets}
    urls |= addresses(plain(text.encode("utf-8", "replace").decode()))
    return Account(
        marks=found.marks,
        resolved=found.marks - len(found.unresolved),
        urls=len(urls),
        pairs=tuple(pairs.values()),
        unresolved=found.unresolved,
        entries_unused=tuple(f"[{name}] {url}" for name, url in listed if url and url_key(url) not in used),
        urls_unused=tuple(url for key, url in urls.items() if key not in used),
        complete=found.complete,
    )


def addresses(text: str) -> dict[str, str]:
    """Every address in plain Markdown (the first 20,000), by its key, whatever it is there for. Linear time."""
    found: dict[str, str] = {}
    if "://" not in text and "www." not in text.lower():  # quickly, which a search is not
        return found
    for match in found_at(_ADDRESS_SIGN, _ADDRESS, text):
        address = match[0][: _closed(match[0])]
        before = text[max(match.start() - 3, 0) : match.start()]
        url = exact_url(address) if before.endswith(("](", "](<")) else clean_url(address)
        url = url if "://" in url else f"https://{url}"
        found.setdefault(url_key(url), url)
        if len(found) >= _MAX_ADDRESSES:
            break
    return found


def _closed(address: str) -> int:
    """Where an address ends that stands in parentheses: at the first that closes none of its own."""
    if ")" not in address:
        return len(address)
    opened = 0
    for place, sign in enumerate(address):
        opened += (sign == "(") - (sign == ")")
        if opened < 0:
            return place
    return len(address)
