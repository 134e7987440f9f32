"""The leaderboard as one self-contained HTML page that opens from disk and loads nothing from the network.

Tables are part of the HTML, so they can be read without the scripts, which sort, filter, choose columns and draw
figures. Long tables that repeat a figure (pairs, rank shares) are made from its data when they are opened.
"""

import base64
import hashlib
from functools import cache
from importlib.resources import files

import msgspec
from markupsafe import Markup

from adjudge.engine.leaderboard.board import FLAGGED_BELOW, Leaderboard, MetricBoard
from adjudge.engine.rendering.cells import Table
from adjudge.engine.rendering.figures import Figure, Links, drawn, figures_of
from adjudge.engine.rendering.headline import Headline, headline
from adjudge.engine.rendering.sections import Section, sections_of
from adjudge.engine.rendering.standings import Ranking, rankings
from adjudge.engine.rendering.summary import summary
from adjudge.engine.rendering.templates import render

__all__ = ["SCRIPTS", "asset", "leaderboard_page", "page_policy", "title_of"]

SCRIPTS = ("base.js", "d3-7.9.2.min.js", "plot-0.6.17.min.js", "leaderboard.js", "figures.js")
_DRAWN = ("pairs", "ranks")  # tables that the script draws
_OPEN = ("resolved",)
_IN_HEADLINE = ("standings", "metric")


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """The section of one ranking: its opening table, its figures, and the tables behind them."""

    key: str
    title: str
    head: MetricBoard
    headline: Headline
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]


def leaderboard_page(board: Leaderboard, links: Links | None = None) -> str:
    """The page of `board`, whose figures lead to their evidence where `links` has its addresses."""
    found = rankings(board.metrics)
    parts = [
        _part(f"p{number}", ranking, section, board)
        for number, (ranking, section) in enumerate(zip(found, sections_of(board), strict=True))
    ]
    return render(
        "leaderboard.html.jinja",
        board=board,
        title=title_of(board),
        links=links,
        policy=page_policy(),
        style=Markup(asset("base.css") + asset("leaderboard.css")),
        scripts=[Markup(asset(name)) for name in SCRIPTS],
        data=_data([drawn(part.head, board, links) for part in parts]),
        summary=summary(found),
        parts=parts,
        drawn=_DRAWN,
        opened=_OPEN,
        flagged_below=FLAGGED_BELOW,
    )


def title_of(board: Leaderboard) -> str:
    """The title that the configuration gives, else what was evaluated."""
    if board.about.title:
        return board.about.title
    protocols = ", ".join(dict.fromkeys(one.protocol for one in board.metrics))
    formats = ", ".join(
        dict.fromkeys(one.format for one in board.sources if one.format not in ("", "adjudge"))
    )
    return f"{formats}: {protocols}" if formats else protocols or "Leaderboard"


@cache
def asset(name: str) -> str:
    """The text of a file in `assets/`."""
    return files("adjudge.engine.rendering").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def page_policy() -> str:
    """The page's content security policy: its own scripts by their hashes, inline styles, no network."""
    hashes = " ".join(f"'sha256-{_hash(asset(name))}'" for name in SCRIPTS)
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _part(key: str, ranking: Ranking, section: Section, board: Leaderboard) -> _Part:
    return _Part(
        key=key,
        title=section.title,
        head=section.head,
        headline=headline(ranking, board),
        figures=figures_of(section.head, board.groupings),
        tables=tuple(table for table in section.tables if table.kind not in _IN_HEADLINE),
    )


def _data(found: list[dict[str, object]]) -> Markup:
    """Data for the script, which can hold no end of a script element."""
    return Markup(msgspec.json.encode(found).decode("utf-8", "replace").replace("<", "\\u003c"))
