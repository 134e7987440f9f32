"""How long a report is: words, tokens and the addresses that it cites (DeepResearch Bench, Table 9)."""

from adjudge.scoring.contract.case import Citation
from adjudge.scoring.contract.scorecard import Length
from adjudge.scoring.text.accounted import addresses
from adjudge.scoring.text.citations import url_key
from adjudge.scoring.text.integrity import prose_words
from adjudge.scoring.text.markup import plain

__all__ = ["estimate_tokens", "length_of"]


def length_of(text: str, handed: tuple[Citation, ...]) -> Length:
    """The length of the report `text`, whose citations may be `handed` over apart from it. Linear time."""
    cited = {*addresses(plain(text)), *(url_key(one.url) for one in handed if one.url)}
    return Length(words=len(prose_words(text)), tokens=estimate_tokens(text), citations=len(cited))


def estimate_tokens(text: str) -> int:
    """Roughly how many tokens `text` has: one per four ASCII characters, two per three others."""
    ascii_chars = len(text.encode("ascii", "ignore"))
    return round(ascii_chars / 4 + (len(text) - ascii_chars) / 1.5)
