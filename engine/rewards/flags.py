"""What a rollout does to please a judge rather than a reader, each from 0 (not at all) to 1 (the most).

- `injection`: 1 if the text addresses the judge (`engine/rewards/injection.py`).
- `duplicate_citations`: the share of citations that repeat an earlier one: the same fact with the same page, where case
  and punctuation of the fact and query and fragment of the URL do not count.
- `citation_stuffing`: the share of citations beyond the third in one sentence.
- `length`: how far the text is from `free` to `max` characters.
"""

import re
from collections.abc import Callable, Collection, Mapping

from adjudge.engine.config.reward import Length
from adjudge.engine.rewards.injection import injections
from adjudge.scoring.contract.case import Citation
from adjudge.scoring.contract.protocol import MAX_REPORT_CHARS
from adjudge.scoring.text.citations import Triplet, cited
from adjudge.scoring.text.references import url_key

__all__ = ["FLAGS", "Flag", "citation_stuffing", "duplicate_citations", "flags_of", "injection", "length"]

SOURCES_A_SENTENCE = 3
_NO_WORD = re.compile(r"\W+")

Flag = Callable[[str, tuple[Citation, ...], Length], float]


def injection(text: str, handed: tuple[Citation, ...], limits: Length) -> float:
    """1 if the text addresses the judge, else 0."""
    return 1.0 if injections(text) else 0.0


def duplicate_citations(text: str, handed: tuple[Citation, ...], limits: Length) -> float:
    """The share of citations that repeat an earlier one; 0 without citations."""
    triplets = cited(text, handed).triplets
    return 1 - len({_content(triplet) for triplet in triplets}) / len(triplets) if triplets else 0.0


def citation_stuffing(text: str, handed: tuple[Citation, ...], limits: Length) -> float:
    """The share of citations beyond the third in one sentence; 0 without citations."""
    counts = [len(passage.sources) for passage in cited(text, handed).passages]
    total = sum(counts)
    return sum(max(0, count - SOURCES_A_SENTENCE) for count in counts) / total if total else 0.0


def length(text: str, handed: tuple[Citation, ...], limits: Length) -> float:
    """0 up to `limits.free` characters, 1 from `limits.max` on, and in proportion between."""
    over = len(text) - limits.free
    return min(max(over / max(limits.max - limits.free, 1), 0.0), 1.0)


FLAGS: Mapping[str, Flag] = {
    "injection": injection,
    "duplicate_citations": duplicate_citations,
    "citation_stuffing": citation_stuffing,
    "length": length,
}


def flags_of(
    text: str, handed: tuple[Citation, ...], limits: Length, wanted: Collection[str]
) -> dict[str, float]:
    """The `wanted` flags of a report, in the order of FLAGS; its length alone if it is too large to be read."""
    chosen = set(wanted)
    if len(text) > min(limits.max, MAX_REPORT_CHARS):
        chosen &= {"length"}
    return {name: flag(text, handed, limits) for name, flag in FLAGS.items() if name in chosen}


def _content(triplet: Triplet) -> tuple[str, str]:
    page = url_key(triplet.url).partition("#")[0].partition("?")[0].rstrip("/")
    return _NO_WORD.sub(" ", triplet.fact).strip().casefold(), page
