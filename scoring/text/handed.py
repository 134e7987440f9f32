"""Citations that a system hands over apart from its report's text, put into it where they are cited."""

import re
from collections.abc import Sequence

from adjudge.scoring.contract.case import Citation

__all__ = ["placed"]

_MAX_PLACED = 5_000
_NEAR = 400  # characters in front of a place, beside the address itself, within which a link already stands
_BLANKS = 200  # in front of a place, at most, that it goes back over
_LONGEST = 2_000  # of an address
_ADDRESS = re.compile(rf"[^\s|]{{0,{_LONGEST}}}+")
_WORD = re.compile(r"\w{0,100}+")
_SIGNS = re.compile(r"[()\[\]\\]")


def placed(text: str, handed: Sequence[Citation]) -> str:
    """`text` with a link of no words for each citation that says where it stands, unless one to it stands there.

    A place within a word or an address is its end, and one behind blanks is in front of them. Linear in the text and in
    `handed`, of which 5,000 are read.
    """
    found = sorted(
        (one.position, number) for number, one in enumerate(handed[:_MAX_PLACED]) if one.position is not None
    )
    parts, before = list[str](), 0
    for position, number in found:
        url = "".join(handed[number].url.split())
        at = max(before, _place(text, min(position, len(text))))
        if 0 < len(url) <= _LONGEST and url not in text[max(0, at - _NEAR - len(url)) : at + 2]:
            parts += [text[before:at], f" []({_SIGNS.sub(_escaped, url)})"]
            before = at
    return "".join([*parts, text[before:]]) if parts else text


def _escaped(sign: re.Match[str]) -> str:
    return f"\\{sign[0]}"


def _place(text: str, at: int) -> int:
    word = text[max(0, at - _LONGEST) : at].rsplit(None, 1)[-1:] if at and not text[at - 1].isspace() else []
    if not word:
        blanks = text[max(0, at - _BLANKS) : at]
        return at - len(blanks) + len(blanks.rstrip())
    rest = _ADDRESS.match(text, at) if "://" in word[0] else _WORD.match(text, at)
    return rest.end() if rest and (word[0][-1].isalnum() or "://" in word[0]) else at
