"""Names of systems for small places: shared beginnings dropped, cut in the middle, and no two that look equal."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

__all__ = ["labels", "visible"]

_PARTS = re.compile(r"[-_/:. ]")  # where a beginning that all names share may end
_SPACES = re.compile(r"^ | $|(?<= ) ")
_JOINERS = "\u200c\u200d"  # which belong to scripts and emoji
_SHORTEST = 8
_ROUNDS = 3  # in which a label that looks like another one may grow to twice its length
_LONGEST = 300


def visible(name: str) -> str:
    """`name` in one line, with what nobody sees shown: control and formatting characters, and spaces that collapse."""
    shown = "".join(_shown(character) for character in name[:_LONGEST])
    more = f"… ({len(name):,} characters)" if len(name) > _LONGEST else ""
    return _SPACES.sub("␣", shown) + more


def labels(names: Sequence[str], letters: int) -> dict[str, str]:
    """Every different one of `names` with its label, of about so many `letters` where that tells them apart.

    Names are dropped what all of them begin with, then cut in the middle. Labels that still look equal grow, and in the
    end are numbered.
    """
    full = {name: visible(name) for name in dict.fromkeys(names)}
    start = _shared(full.values()) if any(len(one) > letters for one in full.values()) else 0
    rest = {name: f"…{one[start:]}" if start else one for name, one in full.items()}
    found = {name: _cut(one, letters) for name, one in rest.items()}
    for round_ in range(1, _ROUNDS + 1):
        alike = _alike(found)
        if not alike:
            return found
        found |= {name: _cut(rest[name], letters * 2**round_) for name in alike}
    seen: dict[str, int] = {}
    for name in sorted(_alike(found)):
        number = seen[_look(found[name])] = seen.get(_look(found[name]), 0) + 1
        found[name] = f"{found[name]} (no. {number})"
    return found


def _shown(character: str) -> str:
    kind = unicodedata.category(character)
    if kind in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") and character not in _JOINERS:
        return f"‹{ord(character):X}›"
    return " " if kind == "Zs" and character != " " else character


def _shared(shown: Iterable[str]) -> int:
    """The length of what all of `shown` begin with, up to a place where names are divided; each keeps something."""
    first, last = min(shown := [*shown]), max(shown)
    if first == last:
        return 0
    same = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    ends = [found.end() for found in _PARTS.finditer(first[:same]) if found.end() < min(map(len, shown))]
    return ends[-1] if ends else 0


def _cut(name: str, letters: int) -> str:
    """`name`, with its middle left out if it is longer than `letters`. Ends tell versions apart and keep more."""
    most = max(letters, _SHORTEST)
    if len(name) <= most:
        return name
    head = (most - 1) * 2 // 5
    return f"{name[:head]}…{name[len(name) - (most - 1 - head) :]}"


def _alike(found: dict[str, str]) -> list[str]:
    """The names whose labels look like another's."""
    by_look: dict[str, list[str]] = {}
    for name, label in found.items():
        by_look.setdefault(_look(label), []).append(name)
    return [name for names in by_look.values() if len(names) > 1 for name in names]


def _look(label: str) -> str:
    """What labels that look equal have in common; letters of other scripts count as the Latin ones they look like."""
    return unicodedata.normalize("NFKC", label).translate(_DOUBLES)


_CYRILLIC = str.maketrans("АВЕКМНОРСТХаеорсухіјѕ", "ABEKMHOPCTXaeopcyxijs")
_GREEK = str.maketrans("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο", "ABEZHIKMNOPTYXo")
_DOUBLES = _CYRILLIC | _GREEK
