"""References of the scientific literature, and whether two of them are the same work (Dr.Mi-Bench, 3.2 and A.17).

The paper's section 3.2 compares DOIs; its appendix A.17 the first 20 characters of the normalised title. Both are
here, and `combined` (ours): the DOI where both have one, else the title.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from adjudge.scoring.kernels.matching import match_claims as kernel

__all__ = ["Found", "Reference", "Rule", "doi_of", "find_references", "title20"]

Rule = Literal["doi", "title20", "combined"]

MAX_PREDICTED = 2_000
"""How many predicted references are looked up; those beyond count as wrong."""

_DOI = re.compile(r"10\.\d{4,9}/[^\s\"'<>?#{}|\\^`]{1,300}", re.IGNORECASE)
_ARXIV = re.compile(
    r"arxiv(?:\.org/(?:abs|pdf|html)/|:\s?)(\d{4}\.\d{4,5}|[a-z-]{2,20}/\d{7})", re.IGNORECASE
)
_TRAILING = ".,;:)]}*_"


class Reference(msgspec.Struct, frozen=True):
    """A work by its title and its DOI, one of which may be empty."""

    title: str = ""
    doi: str = ""


class Found(msgspec.Struct, frozen=True):
    """How many distinct works are predicted, how many are gold, and how many are both."""

    predicted: int
    gold: int
    both: int


def doi_of(text: str) -> str:
    """The first DOI in a DOI, an address or an entry of a reference list, in lower case; "" if there is none.

    An arXiv number counts as the DOI that arXiv registers for it, without the version.
    """
    text = text[:4_000]
    doi = _DOI.search(text)
    if doi:
        return doi.group().rstrip(_TRAILING).lower()
    arxiv = _ARXIV.search(text)
    return f"10.48550/arxiv.{arxiv.group(1).lower()}" if arxiv else ""


def title20(title: str) -> str:
    """The first 20 characters of a title in lower case, letters and digits only."""
    return "".join(character for character in title[:400].lower() if character.isalnum())[:20]


def find_references(predicted: Iterable[Reference], gold: Iterable[Reference], rule: Rule) -> Found:
    """How many of the works in `gold` are found, one-to-one, each side counting a work once.

    A reference that `rule` cannot tell (no DOI, no title) is found by nothing and stays in its count.
    """
    distinct, wanted = _distinct(predicted, rule), _distinct(gold, rule)
    edges = [[float(_same(one, other, rule)) for other in wanted] for one in distinct[:MAX_PREDICTED]]
    if not edges or not wanted:
        return Found(len(distinct), len(wanted), 0)
    both = kernel.match_cardinality(kernel.ClaimPairs.from_matrices([edges])).count[0]
    return Found(len(distinct), len(wanted), int(both))


def _distinct(references: Iterable[Reference], rule: Rule) -> Sequence[Reference]:
    """Each work once; DOIs and titles normalised."""
    found: dict[tuple[str, str] | int, Reference] = {}
    for place, reference in enumerate(references):
        normal = Reference(title20(reference.title), doi_of(reference.doi))
        doi, title = (normal.doi if rule != "title20" else ""), (normal.title if rule != "doi" else "")
        key = ("doi", doi) if doi else ("title", title) if title else place
        found.setdefault(key, normal)
    return list(found.values())


def _same(one: Reference, other: Reference, rule: Rule) -> bool:
    if rule == "doi" or (rule == "combined" and one.doi and other.doi):
        return bool(one.doi) and one.doi == other.doi
    return bool(one.title) and one.title == other.title
