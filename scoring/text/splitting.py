"""Long texts in pieces that are read one after the other, so that none needs more memory than a piece takes."""

import re
import unicodedata
from collections.abc import Iterator
from io import StringIO

__all__ = ["compatible", "cut", "split"]

_NORMALISED = 1_000  # characters at once
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]")


def split(text: str, size: int) -> Iterator[str]:
    """`text` in pieces of at most `size` characters, cut at line ends, else sentence ends, else anywhere."""
    start = 0
    while len(text) - start > size:
        window = text[start : start + size]
        end = max(window.rfind("\n", size // 2), 0) or _last_end(window, size // 2) or size
        yield window[:end]
        start += end
    if start < len(text):
        yield text[start:] if start else text


def cut(text: str, size: int) -> list[str]:
    """The pieces of `split`, without a last one that is blank; at least one."""
    found = list(split(text, size)) or [text]
    return found[:-1] if len(found) > 1 and not found[-1].strip() else found


def compatible(text: str) -> str:
    """`text` in Unicode's compatibility form (NFKC), and cut off where it grows to twice its length.

    By pieces: sorting a run of combining marks takes the square of its length. One character may become eighteen.
    """
    if text.isascii():
        return text
    found = StringIO()
    for piece in split(text, _NORMALISED):
        found.write(unicodedata.normalize("NFKC", piece))
        if found.tell() > 2 * len(text) + _NORMALISED:
            break
    return found.getvalue()


def _last_end(window: str, start: int) -> int:
    return max((match.end() for match in _SENTENCE_END.finditer(window, start)), default=0)
