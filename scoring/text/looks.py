"""What is looked at in every report, whatever the protocol, in one go: a call beside the event loop has its price.

Signs of what pleases a judge; and how long the report is: words, tokens and the addresses that it cites (DeepResearch
Bench, Table 9).
"""

import msgspec

from adjudge.scoring.contract.case import Citation
from adjudge.scoring.contract.scorecard import Length
from adjudge.scoring.text.accounted import addresses
from adjudge.scoring.text.citations import url_key
from adjudge.scoring.text.integrity import prose_words, signs_in
from adjudge.scoring.text.markup import plain

__all__ = ["Looks", "estimate_tokens", "length_of", "looks_of"]


class Looks(msgspec.Struct, frozen=True):
    """The `signs` in a report of what pleases a judge, and its `length`; none of a report that cannot be read."""

    signs: dict[str, float] = {}
    length: Length | None = None


def looks_of(text: str, asked: tuple[str, ...], handed: tuple[Citation, ...]) -> Looks:
    """Of the report `text`, what it was `asked`, and the citations `handed` over apart from it."""
    return Looks(signs_in(text, asked), length_of(text, handed))


def length_of(text: str, handed: tuple[Citation, ...]) -> Length:
    """The length of the report `text`, whose citations may be `handed` over apart from it. Linear time."""
    cited = {*addresses(plain(text)), *(url_key(one.url) for one in handed if one.url)}
    return Length(words=len(prose_words(text)), tokens=estimate_tokens(text), citations=len(cited))


def estimate_tokens(text: str) -> int:
    """Roughly how many tokens `text` has: one per four ASCII characters, two per three others."""
    ascii_chars = len(text.encode("ascii", "ignore"))
    return round(ascii_chars / 4 + (len(text) - ascii_chars) / 1.5)
