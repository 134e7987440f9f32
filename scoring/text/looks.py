"""What is looked at in every report, whatever the protocol, in one go: a call beside the event loop has its price."""

import msgspec

from adjudge.scoring.contract.case import Citation
from adjudge.scoring.contract.scorecard import Length
from adjudge.scoring.text.integrity import signs_in
from adjudge.scoring.text.length import length_of

__all__ = ["Looks", "looks_of"]


class Looks(msgspec.Struct, frozen=True):
    """The `signs` in a report of what pleases a judge, and its `length`; none of a report that cannot be read."""

    signs: dict[str, float] = {}
    length: Length | None = None


def looks_of(text: str, asked: tuple[str, ...], handed: tuple[Citation, ...]) -> Looks:
    """Of the report `text`, what it was `asked`, and the citations `handed` over apart from it."""
    return Looks(signs_in(text, asked), length_of(text, handed))
