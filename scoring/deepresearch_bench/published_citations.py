"""FACT's replies as its own code reads them: citations, statements without repeats, and verdicts, out of JSON.

Fences are cut wherever they stand, and the rest must be JSON. The rules are the reference code's, for
`call: published` alone; where a reply would end the code with an error, it is not readable here.
"""

import json
from collections.abc import Iterable, Iterator

import msgspec

from adjudge.judges.published import UnreadableReply

__all__ = [
    "Cited",
    "cited_in",
    "kept_in",
    "numbered_lines",
    "verdicts_in",
    "without_fragments",
    "without_links",
]

_READINGS = 3  # of one reply: each undoes one more layer of escapes
_FRAGMENT = "#:~:text="
_ESCAPED = (">", "<", "+", "~")


class Cited(msgspec.Struct, frozen=True):
    """A statement and the URL that it cites, as the judge wrote it."""

    fact: str
    url: str


def cited_in(text: str) -> list[Cited]:
    """The citations in a reply; none if it is an empty value. Raises UnreadableReply. Linear."""
    for _ in range(_READINGS):
        if not text:
            break
        text = _unfenced(text)
        for char in _ESCAPED:
            text = text.replace(f"\\{char}", char)
        try:
            return [_cited(one) for one in json.loads(text)]
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    raise UnreadableReply("no list of citations")


def _cited(one: dict[str, object]) -> Cited:
    """Raises TypeError or KeyError for what is not a citation."""
    fact, url = one["fact"], one["url"]
    if not isinstance(fact, str) or isinstance(url, dict | list):
        raise TypeError("not a citation")
    return Cited(without_links(fact), url if isinstance(url, str) else json.dumps(url))


def kept_in(text: str, size: int) -> tuple[int, ...] | None:
    """Which of `size` statements a reply keeps, from 0; all if it lists none, too many or others; None if not JSON."""
    try:
        found = json.loads(_unfenced(text))
    except (ValueError, RecursionError):
        return None
    usable = isinstance(found, list) and 0 < len(found) <= size
    if usable and all(isinstance(place, int) and 1 <= place <= size for place in found):
        return tuple(place - 1 for place in found)
    return tuple(range(size))


def verdicts_in(text: str, size: int) -> tuple[str | None, ...]:
    """One verdict for each of `size` statements: `supported`, `unknown`, else `unsupported`; None if one is not said.

    In the order of the statements, if the reply numbers each once; else in the reply's. Raises UnreadableReply.
    """
    try:
        found = json.loads(_unfenced(text))
        places = [one["idx"] - 1 for one in found]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UnreadableReply("no list of numbered verdicts") from error
    if len(places) != size:
        raise UnreadableReply(f"{len(places)} verdicts for {size} statements")
    said = [_verdict(one) for one in found]
    if sorted(places) == list(range(size)):
        return tuple(verdict for _, verdict in sorted(zip(places, said, strict=True), key=lambda one: one[0]))
    return tuple(said)


def _verdict(one: dict[str, object]) -> str | None:
    if "result" not in one:
        return None
    result = one["result"]
    return str(result) if result in ("supported", "unknown") else "unsupported"


def numbered_lines(statements: Iterable[str]) -> str:
    """The statements as the code lists them: numbered from 1, one below the other."""
    return "\n".join(f"{number}. {statement}" for number, statement in enumerate(statements, 1))


def without_links(text: str) -> str:
    """`text` with `[title]` for each `[title](url)`. Linear."""
    return "".join(before if url is None else f"{before}[{title}]" for before, title, url in _links(text))


def without_fragments(text: str) -> str:
    """`text` with what a browser is to mark (`#:~:text=`) cut off the URL of each `[title](url)`. Linear."""
    return "".join(
        before if url is None else f"{before}[{title}]({url.partition(_FRAGMENT)[0]})"
        for before, title, url in _links(text)
    )


def _links(text: str) -> Iterator[tuple[str, str, str | None]]:
    """The text before each `[title](url)`, its title and its URL; at the end, the rest and None."""
    taken = place = 0
    while (opened := text.find("[", place)) >= 0 and (closed := text.find("]", opened + 1)) >= 0:
        place = max(closed, opened + 1)
        if closed == opened + 1 or text[closed + 1 : closed + 2] != "(":
            continue
        end = text.find(")", closed + 2)
        if end < 0:
            break
        if end > closed + 2:
            yield text[taken:opened], text[opened + 1 : closed], text[closed + 2 : end]
            taken = place = end + 1
    yield text[taken:], "", None


def _unfenced(text: str) -> str:
    return text.replace("```json", "").replace("```", "")
