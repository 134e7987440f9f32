"""What a leaderboard says about itself and the systems on it: `board:` and `systems:` of a configuration."""

import base64
import datetime
import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from adjudge.engine.config.settings import ConfigError

__all__ = ["BoardConfig", "Colours", "SystemConfig", "with_logo"]

_Line = Annotated[str, msgspec.Meta(max_length=200)]
_Address = Annotated[str, msgspec.Meta(max_length=2_000)]

_MOST_BYTES = 200_000
_KINDS = {"png": b"\x89PNG\r\n", "jpeg": b"\xff\xd8\xff", "svg+xml": b"<svg", "webp": b"RIFF"}
_HEX = re.compile(r"#[0-9a-fA-F]{6}")
_LEGIBLE = 4.5  # WCAG's contrast for small text
_PAPER = {"light": "#ffffff", "dark": "#111417"}  # as base.css has it
_TINT = 0.12  # of the colour in the background of what is chosen


class Colours(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The colour of bars, ranks and links, legible on the page's background; each may be left out."""

    light: str = ""
    """On white, as `"#rrggbb"`."""
    dark: str = ""
    """On black, as `"#rrggbb"`."""

    def __post_init__(self) -> None:
        for scheme, paper in _PAPER.items():
            colour = getattr(self, scheme)
            if not colour:
                continue
            if not _HEX.fullmatch(colour):
                raise ValueError(
                    f'{scheme}: {colour[:20]!r} is not a colour; write it as "#0b5cad", in quotation marks'
                )
            own, back = _channels(colour), _channels(paper)
            tint = [_TINT * a + (1 - _TINT) * b for a, b in zip(own, back, strict=True)]
            found = _contrast(own, tint)
            if found < _LEGIBLE:
                raise ValueError(
                    f"{scheme}: {colour} has a contrast of {found:.1f} and needs {_LEGIBLE} to be legible; "
                    f"take a {'darker' if scheme == 'light' else 'lighter'} one"
                )

    @property
    def style(self) -> str:
        """The colours as CSS, "" for the page's own."""
        if not self.light and not self.dark:
            return ""
        light, dark = self.light or "#0b5cad", self.dark or "#7db8f5"
        share = f"{_TINT:.0%}"
        return (
            f":root {{ --accent: light-dark({light}, {dark}); "
            f"--accent-soft: color-mix(in srgb, var(--accent) {share}, var(--paper)); }}"
        )


def _channels(colour: str) -> list[float]:
    return [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]


def _contrast(a: list[float], b: list[float]) -> float:
    low, high = sorted((_luminance(a), _luminance(b)))
    return (high + 0.05) / (low + 0.05)


def _luminance(channels: list[float]) -> float:
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
    return sum(share * one for share, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


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
    link: _Address = ""
    """The address of a page about it, beginning with http:// or https://."""
    logo: Annotated[str, msgspec.Meta(max_length=2 * _MOST_BYTES)] = ""
    """A PNG, JPEG, WebP or SVG file of at most 200 kB; the page holds a copy."""
    colours: Colours = Colours()
    """The page's own colour in light and dark."""

    def __post_init__(self) -> None:
        _check(self.link)
        if self.logo and not self.logo.startswith(tuple(f"data:image/{kind};base64," for kind in _KINDS)):
            raise ValueError(
                "the logo must be the path of a PNG, JPEG, WebP or SVG file, or its data as data:image/..."
            )


class SystemConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is known of a system, for the leaderboard: who made it, and under which terms; all of it may be left out."""

    organisation: _Line = ""
    """Who made it."""
    weights: Literal["", "open", "closed"] = ""
    """Whether the weights of its models may be had."""
    licence: _Line = ""
    """The terms of its weights or its code."""
    date: datetime.date | None = None
    """When it came out; boards draw the score over it."""
    price: _Line = ""
    """What a report costs, in words."""
    notes: Annotated[str, msgspec.Meta(max_length=500)] = ""
    """What else a reader must know of it."""
    link: _Address = ""
    """The address of a page about it, beginning with http:// or https://."""

    def __post_init__(self) -> None:
        _check(self.link)


def _check(link: str) -> None:
    if link and not _leads_somewhere(link):
        raise ValueError("the link must be a whole address that begins with http:// or https://")


def _leads_somewhere(link: str) -> bool:
    try:
        parts = urlsplit(link)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def with_logo(raw: dict[str, Any], folder: Path) -> dict[str, Any]:
    """`raw` with the logo that it names, a path below `folder`, in the file's place. Raises ConfigError."""
    board = raw.get("board")
    logo = board.get("logo") if isinstance(board, dict) else None
    if not isinstance(board, dict) or not isinstance(logo, str) or not logo or logo.startswith("data:"):
        return raw
    file = folder / logo
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"board.logo: {file} cannot be read: {error.strerror}") from error
    if len(data) > _MOST_BYTES:
        raise ConfigError(f"board.logo: {file} is larger than {_MOST_BYTES // 1000} kB; make it smaller")
    kind = next((kind for kind, start in _KINDS.items() if start in data[:1_000]), "")
    if not kind:
        raise ConfigError(f"board.logo: {file} is not a PNG, JPEG, WebP or SVG file")
    return {**raw, "board": {**board, "logo": f"data:image/{kind};base64,{base64.b64encode(data).decode()}"}}
