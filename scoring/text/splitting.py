"""Long texts in pieces that are read one after the other, so that none needs more memory than a piece takes."""

import re
from collections.abc import Iterator

__all__ = ["cut", "split"]

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


def _last_end(window: str, start: int) -> int:
    return max((match.end() for match in _SENTENCE_END.finditer(window, start)), default=0)
