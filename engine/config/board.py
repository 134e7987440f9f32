"""What a leaderboard says about itself: `board:` in the configuration."""

import datetime
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

__all__ = ["BoardConfig"]

_Line = Annotated[str, msgspec.Meta(max_length=200)]


class BoardConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands at the head of a leaderboard; all of it may be left out."""

    title: _Line = ""
    """Its title; without one, what was evaluated."""
    description: Annotated[str, msgspec.Meta(max_length=2_000)] = ""
    """A few sentences about it, also for previews of a link to it."""
    author: _Line = ""
    """Who publishes it."""
    date: datetime.date | None = None
    """When it was made, as its publisher dates it."""
    link: Annotated[str, msgspec.Meta(max_length=2_000)] = ""
    """The address of a page about it, beginning with http:// or https://."""

    def __post_init__(self) -> None:
        if self.link and not _leads_somewhere(self.link):
            raise ValueError("the link must be a whole address that begins with http:// or https://")


def _leads_somewhere(link: str) -> bool:
    try:
        parts = urlsplit(link)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False
