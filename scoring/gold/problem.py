"""What is wrong with an item of gold, and what to do about it."""

from typing import Literal

import msgspec

from adjudge.scoring.contract.gold import GoldItem

__all__ = ["FIXES", "Kind", "Problem"]

Kind = Literal[
    "quote_missing",
    "unsupported",
    "contradicted",
    "mislabelled",
    "duplicate",
    "met_by_nothing",
    "vague",
    "compound",
    "weights",
    "common_keyword",
    "conflicting_keyword",
    "no_separation",
    "inverted",
]

FIXES: dict[Kind, str] = {
    "quote_missing": "copy the passage from the source, or remove the item",
    "unsupported": "remove the item, or add the source that holds it",
    "contradicted": "correct the item by the source",
    "mislabelled": "correct the label, or the statement",
    "duplicate": "keep one of the two",
    "met_by_nothing": "ask for something that a report must say, or make it a penalty for what it must not",
    "vague": "name what is to be found in the report",
    "compound": "make an item of each part",
    "weights": "change the weights so that they sum to 1",
    "common_keyword": "choose a word that only reports on this task use",
    "conflicting_keyword": "keep the keyword on one side",
    "no_separation": "remove the item, or make it harder or easier",
    "inverted": "check what the item rewards; remove it, or make it a penalty",
}
"""What to do about each kind of problem."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A problem of one item, or of a whole `part` if `item` is empty: its kind, and why it is thought to be one."""

    part: str
    item: str
    kind: Kind
    why: str

    @classmethod
    def of(cls, item: GoldItem, kind: Kind, why: str) -> "Problem":
        """A problem of `item`."""
        return cls(part=item.part, item=item.item, kind=kind, why=why)

    @property
    def fix(self) -> str:
        """What to do about it."""
        return FIXES[self.kind]
