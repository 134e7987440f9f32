"""The passages of a long source that DR3-Eval's code shows its judge: BM25 over pieces, words by a Chinese segmenter.

The segmenter (jieba) and the ranking (rank_bm25) are the code's own: the optional extra `dr3`.
"""

import tempfile
import warnings
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

__all__ = ["LONG_SOURCE", "best_passages", "missing_library"]

LONG_SOURCE = 20_000  # characters
PASSAGE_CHARS = 500
COUNT = 5


def missing_library() -> str | None:
    """The library that `best_passages` lacks, if any."""
    return next((name for name in ("jieba", "rank_bm25") if find_spec(name) is None), None)


def best_passages(text: str, query: str) -> list[tuple[int, str]]:
    """The five best pieces of `text` for `query` in its order, numbered from 1 among those that are not blank.

    Linear in the text, for a given query.
    """
    passages = [text[start : start + PASSAGE_CHARS] for start in range(0, len(text), PASSAGE_CHARS)]
    passages = [passage for passage in passages if passage.strip()]
    if not passages:
        return []
    cut = _segmenter().cut
    scores = _ranking()([list(cut(passage)) for passage in passages]).get_scores(list(cut(query)))
    best = sorted(range(len(passages)), key=lambda place: scores[place], reverse=True)[:COUNT]
    return [(place + 1, passages[place]) for place in sorted(best)]


def _ranking() -> Any:
    from rank_bm25 import BM25Okapi  # optional

    return BM25Okapi


@lru_cache(maxsize=1)
def _segmenter() -> Any:
    """A segmenter that leaves nothing behind: it would keep its dictionary in a shared folder for the next process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own sources and imports
        import jieba  # optional

    jieba.setLogLevel("ERROR")
    made = jieba.Tokenizer()
    with tempfile.TemporaryDirectory() as folder:
        made.tmp_dir = folder
        made.initialize()
    return made
