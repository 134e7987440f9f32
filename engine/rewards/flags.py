"""What a rollout does to please a judge rather than a reader, as flags from 0 (not at all) to 1 (fully).

`injection` is 1 if the text addresses the judge; `hidden` is the share of it that no reader sees, `echo` the share that
is its task and criteria, `repetition` the share that it has said before; `page_echo` is the share of the pages it
brings that say little but what the text says; `duplicate_citations` and `citation_stuffing` are shares of citations
(`scoring/text/integrity.py`, which leaderboards count with too); `length` is how far the text is from `free` to `max`
characters.
"""

from collections.abc import Callable, Collection, Mapping

import msgspec

from adjudge.engine.config.reward import Length
from adjudge.scoring.contract.case import Citation
from adjudge.scoring.contract.protocol import MAX_REPORT_CHARS
from adjudge.scoring.text.citations import cited
from adjudge.scoring.text.integrity import duplicates, echoed, echoing, injections, repeated, stuffed
from adjudge.scoring.text.seen import seen

__all__ = ["ALWAYS", "FLAGS", "UNCLEAR", "Said", "flags_of"]

UNCLEAR = "unclear_turns"
"""1 for a rollout whose text does not show what in it is the report: thoughts or tool results may be paid."""


class Said(msgspec.Struct, frozen=True):
    """A report as it was written, what it was `asked` (task and criteria), its citations and the texts of its pages."""

    text: str
    handed: tuple[Citation, ...] = ()
    asked: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()


Flag = Callable[[Said, Length], float]


def injection(said: Said, limits: Length) -> float:
    """1 if the text addresses the judge, else 0."""
    return 1.0 if injections(said.text) else 0.0


def hidden(said: Said, limits: Length) -> float:
    """The share of the text that a reader does not see."""
    found = seen(said.text).hidden
    return found / len("".join(said.text.split())) if found else 0.0


def echo(said: Said, limits: Length) -> float:
    """The share of the text that its task and criteria say."""
    return echoed(said.text, said.asked)


def repetition(said: Said, limits: Length) -> float:
    """The share of the text that it has said before."""
    return repeated(said.text)


def page_echo(said: Said, limits: Length) -> float:
    """The share of the pages that say little but what the text says; 0 without pages."""
    return echoing(said.pages, said.text)


def duplicate_citations(said: Said, limits: Length) -> float:
    """The share of citations that repeat an earlier one; 0 without citations."""
    return duplicates(cited(said.text, said.handed).triplets)


def citation_stuffing(said: Said, limits: Length) -> float:
    """The share of citations beyond the third in one sentence; 0 without citations."""
    return stuffed(cited(said.text, said.handed).passages)


def length(said: Said, limits: Length) -> float:
    """0 up to `limits.free` characters, 1 from `limits.max` on, and in proportion between."""
    over = len(said.text) - limits.free
    return min(max(over / max(limits.max - limits.free, 1), 0.0), 1.0)


FLAGS: Mapping[str, Flag] = {
    "injection": injection,
    "hidden": hidden,
    "echo": echo,
    "repetition": repetition,
    "page_echo": page_echo,
    "duplicate_citations": duplicate_citations,
    "citation_stuffing": citation_stuffing,
    "length": length,
}

ALWAYS = frozenset({"injection", "hidden", "echo", "repetition", "page_echo"})
"""The flags of every rollout; the others are looked for where they have a penalty."""


def flags_of(said: Said, limits: Length, wanted: Collection[str]) -> dict[str, float]:
    """The `wanted` flags of a report, in the order of FLAGS; its length alone if it is too large to be read."""
    chosen = set(wanted)
    if len(said.text) > min(limits.max, MAX_REPORT_CHARS):
        chosen &= {"length"}
    return {name: flag(said, limits) for name, flag in FLAGS.items() if name in chosen}
