"""The parts of a long text that are most likely about a statement: BM25 over pieces of equal length."""

import math
from collections import Counter

from adjudge.judges.lexical import terms
from adjudge.judges.remembering import remembered

_KEPT_CHARS = 2_000_000  # of the texts whose chunks are kept
_K1, _B = 1.5, 0.75
BETWEEN = "\n[...]\n"
"""What stands between chunks that do not follow each other."""


def relevant_chunks(text: str, query: str, count: int = 5, size: int = 500) -> str:
    """The `count` chunks of `size` characters that fit `query` best, in the order of the text (DR3-Eval: 5 of 500).

    A text of at most `count` chunks is returned whole; of equally good chunks the earlier comes first.
    """
    if len(text) <= count * size:
        return text
    index = _index(text, size)
    wanted = set(terms(query))
    best = sorted(range(len(index.chunks)), key=lambda place: (-index.score(place, wanted), place))[:count]
    return BETWEEN.join(index.chunks[place] for place in sorted(best))


def chunks_for(text: str, queries: tuple[str, ...]) -> tuple[str, ...]:
    """`relevant_chunks` of `text` for each of `queries`."""
    return tuple(relevant_chunks(text, query) for query in queries)


class _Index:
    """Chunks of a text with the counts of their terms."""

    def __init__(self, text: str, size: int) -> None:
        self.chunks = [text[start : start + size] for start in range(0, len(text), size)]
        self._counts = [Counter(terms(chunk)) for chunk in self.chunks]
        self._lengths = [counts.total() for counts in self._counts]
        self._mean = sum(self._lengths) / len(self._lengths) if self.chunks else 0.0
        self._holding = Counter(term for counts in self._counts for term in counts)

    def score(self, place: int, wanted: set[str]) -> float:
        """BM25 of one chunk; rounded, so that the order does not depend on the order of summing."""
        counts, relative = self._counts[place], self._lengths[place] / (self._mean or 1.0)
        norm = _K1 * (1 - _B + _B * relative)
        total = len(self.chunks)
        return round(
            math.fsum(
                math.log(1 + (total - self._holding[term] + 0.5) / (self._holding[term] + 0.5))
                * counts[term]
                * (_K1 + 1)
                / (counts[term] + norm)
                for term in counts.keys() & wanted
            ),
            9,
        )


@remembered(_KEPT_CHARS)
def _index(text: str, size: int) -> _Index:
    return _Index(text, size)
