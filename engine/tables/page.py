"""The leaderboard as one self-contained HTML page that opens from disk and loads nothing from the network.

Tables are part of the HTML, so they can be read without the scripts, which sort, filter, choose columns and draw
figures. Long tables that repeat a figure (pairs, rank shares) are made from its data when they are opened.

All pages, the viewer's too, are made from jinja2 templates, which lie beside the module that fills them. Every value is
escaped unless it is `Markup` already, and a name that a template uses and nobody gave is an error. All can call
`plural`.
"""

import base64
import hashlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.util import cache_from_source
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
from jinja2 import ChoiceLoader, Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from adjudge.engine.runs.board import (
    AXES,
    FLAGGED_BELOW,
    Detail,
    Grouping,
    Leaderboard,
    MetricBoard,
    Standing,
)
from adjudge.engine.tables.sections import (
    Section,
    answers_table,
    lengths_table,
    overrides_table,
    sections_of,
    systems_table,
    unread_table,
)
from adjudge.engine.tables.standings import rankings, summary
from adjudge.engine.tables.table import Column, Table, labels
from adjudge.judges.plural import plural


def render(template: str, package: str = "adjudge.engine.tables", **values: object) -> str:
    """The text of `template`, a file in the folder of `package` or of `adjudge.engine.tables`, with `values`.

    Lone surrogates become question marks: they have no encoding, so they could not be written or sent.
    """
    text = _templates(package).get_template(template).render(values)
    return text.encode("utf-8", "replace").decode()


class _Compiled(FileSystemBytecodeCache):
    """Compiled templates, kept on disk: compiling them takes several times as long as filling them.

    Where they cannot be written, nothing is kept.
    """

    @classmethod
    def beside(cls, module: str) -> "_Compiled":
        """In the folder of the bytecode of the file `module`, by the version of jinja2."""
        return cls(str(Path(cache_from_source(module)).parent), f"jinja-{version('jinja2')}-%s.cache")

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().dump_bytecode(bucket)


@cache
def _templates(package: str) -> Environment:
    shared = "adjudge.engine.tables"
    packages = dict.fromkeys([package, shared])
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name, "") for name in packages]),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=None if sys.dont_write_bytecode else _Compiled.beside(__file__),
    )
    environment.globals["plural"] = plural
    return environment


Kind = Literal["tasks", "spent", "dates", "pairs", "ranks", "group", "agreement"]

_PLOTS = ("spent", "dates", "agreement")  # of one height, whatever is drawn
_SHAPES = (*_PLOTS, "tasks", "ranks", "group", "pairs")  # the next by their systems, the last square
_FEW = 15  # systems whose pairs fit half the page's width
_FEW_GROUPS = 3  # whose figure fits half the page's width
_FEW_TASKS = 30
_WIDE, _NARROW = 28, 16  # letters of a system's name beside a figure
MOST_LINKS = 20_000
"""The most links from single cells of a figure."""


class Links(Protocol):
    """The addresses of the evidence behind a leaderboard's figures; "" for nowhere."""

    def system(self, system: str, protocol: str, metric: str) -> str:
        """Where a system's values of a metric are."""
        ...

    def report(self, system: str, task: str, protocol: str) -> str:
        """Where the evidence of a report is."""
        ...


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure; `of` is the attribute of one by groups, `chosen` what can be chosen of it, `note` how to read it."""

    kind: Kind
    title: str
    wide: bool = False
    of: str = ""
    chosen: tuple[tuple[str, str], ...] = ()
    note: str = ""


def figures_of(head: MetricBoard, board: Leaderboard) -> tuple[Figure, ...]:
    """The figures that there are numbers for, in the order of the page: those of equal height beside each other.

    One that would have nothing beside it is as wide as the page.
    """
    found = sorted(_figures(head, board), key=lambda figure: _SHAPES.index(figure.kind))
    for plots in (True, False):
        half = [
            place
            for place, figure in enumerate(found)
            if not figure.wide and (figure.kind in _PLOTS) is plots
        ]
        if len(half) % 2:
            found[half[-1]] = msgspec.structs.replace(found[half[-1]], wide=True)
    return tuple(found)


def _figures(head: MetricBoard, board: Leaderboard) -> Iterator[Figure]:
    detail, groupings = head.detail, board.groupings
    if detail is not None and len(detail.tasks) > 1:
        orders = [("task", "in order"), ("mean", "hardest first")]
        orders += [(f"by.{one.attribute}", f"by {one.attribute}") for one in groupings]
        yield Figure(
            kind="tasks",
            title=f"{head.metric} of each system on each task",
            wide=len(detail.tasks) > _FEW_TASKS,
            chosen=tuple(orders),
            note="Crossed out: not scored. Arrow keys move from report to report.",
        )
    if detail is not None and detail.frontiers:
        axes = [
            axis for axis in ("cost", "words", *AXES) if any(one.axis == axis for one in detail.frontiers)
        ]
        yield Figure(
            kind="spent",
            title=f"{head.metric} against resources per report",
            chosen=tuple((axis, axis.replace("_", " ")) for axis in dict.fromkeys(axes)),
            note="Diamonds are on the frontier: no other system scores as much for less.",
        )
    if detail is not None and detail.ranks:
        yield Figure(
            kind="ranks",
            title="Rank distribution",
            note="The darker, the larger the share of resamples with this rank.",
        )
    if len({date for _, date in _dates(head, board)}) > 1:
        yield Figure(
            kind="dates",
            title=f"{head.metric} over time",
            note="By the date on which each system came out. Thick: interval over resampled tasks.",
        )
    if detail is not None and detail.pairs:
        yield Figure(
            kind="pairs",
            title="Significance of differences",
            wide=len(head.standings) > _FEW,
            note="A row's system minus a column's, told apart where p is at most 0.05 after Holm's correction.",
        )
    groups = {(of, name) for of, name, _ in _grouped(head, groupings)}
    for attribute in dict.fromkeys(one.attribute for one in groupings):
        names = [name for of, name in groups if of == attribute]
        if not names:
            continue
        yield Figure(kind="group", title=f"By {attribute}", of=attribute, wide=len(names) > _FEW_GROUPS)
    agreeing = [("people", "people"), ("published", "published figures")]
    has = [one for one in agreeing if any(_agreeing(head, one[0]))]
    if has:
        yield Figure(
            kind="agreement",
            title="The judge against others",
            chosen=tuple(has),
            note="A dot a system; on the dashed line both agree.",
        )


def drawn(head: MetricBoard, board: Leaderboard, links: Links | None) -> dict[str, Any]:
    """The numbers of a section's figures, systems by their place."""
    systems = [row.system for row in head.standings]
    place = {name: number for number, name in enumerate(systems)}
    detail = head.detail or Detail(ranks=(), pairs=(), frontiers=(), noise=None)
    wide, narrow = labels(systems, _WIDE), labels(systems, _NARROW)
    return {
        "protocol": head.protocol,
        "metric": head.metric,
        "scale": head.scale,
        "lower": head.lower_is_better,
        "systems": [[row.system, *map(_short, (row.value, row.low, row.high))] for row in head.standings],
        "labels": [[wide[name], narrow[name]] for name in systems],
        "tasks": list(detail.tasks),
        "values": [list(detail.by_task.get(name, ())) for name in systems],
        "attributes": {
            one.attribute: [board.tasks.get(task, {}).get(one.attribute, "") for task in detail.tasks]
            for one in board.groupings
        },
        "links": _links(systems, detail.tasks, head.protocol, links),
        "ranks": [[place[one.system], one.rank, _short(one.share)] for one in detail.ranks],
        "pairs": [
            [
                place[pair.a],
                place[pair.b],
                *map(_short, (pair.difference, pair.low, pair.high, pair.p, pair.holm)),
                pair.n_used,
            ]
            for pair in detail.pairs
        ],
        "groups": [
            [attribute, name, place[row.system], _short(row.value), row.n_scored]
            for attribute, name, row in _grouped(head, board.groupings)
        ],
        "dates": _dates(head, board),
        "agreement": {kind: list(_agreeing(head, kind)) for kind in ("people", "published")},
        "frontiers": {
            frontier.axis: [
                [place[system], _short(spent), _short(score), on]
                for system, spent, score, on in zip(
                    frontier.systems, frontier.spent, frontier.scores, frontier.on_frontier, strict=True
                )
            ]
            for frontier in detail.frontiers
        },
    }


def _dates(head: MetricBoard, board: Leaderboard) -> list[tuple[int, str]]:
    """(place, date) of every system with a value whose date is known."""
    described = ((number, row, board.systems.get(row.system)) for number, row in enumerate(head.standings))
    return [
        (number, one.date.isoformat())
        for number, row, one in described
        if one is not None and one.date is not None and row.value is not None
    ]


def _links(
    systems: Sequence[str], tasks: Sequence[str], protocol: str, links: Links | None
) -> list[list[str]]:
    """The address of every report's evidence; none if nobody has them or there are too many."""
    if links is None or len(systems) * len(tasks) > MOST_LINKS:
        return []
    return [[links.report(system, task, protocol) for task in tasks] for system in systems]


def _agreeing(head: MetricBoard, kind: str) -> Iterator[list[float | None]]:
    """[place, here, elsewhere, low, high] of every system with both figures."""
    for number, row in enumerate(head.standings):
        if row.value is None:
            continue
        if kind == "published" and (theirs := head.published.get(row.system)) is not None:
            yield [number, _short(row.value), _short(theirs / head.scale), None, None]
        if kind == "people" and row.corrected is not None and row.corrected.people is not None:
            found = row.corrected
            yield [number, *map(_short, (row.value, found.people, found.people_low, found.people_high))]


def _grouped(head: MetricBoard, groupings: Sequence[Grouping]) -> list[tuple[str, str, Standing]]:
    """Every system's standing in every group, with the attribute and the group's name."""
    return [
        (grouping.attribute, group.name or "none", row)
        for grouping in groupings
        for group in grouping.groups
        for metric in group.metrics
        if (metric.protocol, metric.metric) == (head.protocol, head.metric)
        for row in metric.standings
    ]


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


SCRIPTS = ("base.js", "d3-7.9.2.min.js", "plot-0.6.17.min.js", "leaderboard.js", "figures.js")
_DRAWN = ("pairs", "ranks")  # tables that the script draws
_OPEN = ("resolved",)
_IN_STANDINGS = ("standings", "metric")
_NAME, _SHORT = 120, 40  # letters of a system's name in the standings, and in a narrow window
# The standings' columns in the page's order, and those that are hidden until a reader chooses them.
_ORDER = (
    "rank",
    "system",
    "value",
    "as published",
    "corrected",
    "corrected interval",
    "edited",
    "published",
    "beside",
)
_HIDDEN = (
    "corrected interval",
    "rank interval",
    "deviation",
    "interval",
    "bounds",
    "scored",
    "unscored",
    "integrity",
)


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """The section of one ranking: its standings, its figures, and the tables behind them."""

    key: str
    title: str
    head: MetricBoard
    standings: Table
    names: dict[str, tuple[str, str]]
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]


def leaderboard_page(board: Leaderboard, links: Links | None = None) -> str:
    """The page of `board`, whose figures lead to their evidence where `links` has its addresses."""
    parts = [_part(f"p{number}", section, board) for number, section in enumerate(sections_of(board))]
    everything = summary(rankings(board.metrics))
    return render(
        "leaderboard.html.jinja",
        board=board,
        title=title_of(board),
        links=links,
        policy=page_policy(),
        style=Markup(asset("base.css") + asset("leaderboard.css") + board.about.colours.style),
        scripts=[Markup(asset(name)) for name in SCRIPTS],
        data=_data([drawn(part.head, board, links) for part in parts]),
        summary=everything,
        summary_names=None if everything is None else _names(everything),
        parts=parts,
        answers=answers_table(board),
        unread=unread_table(board),
        lengths=lengths_table(board),
        systems=systems_table(board),
        overrides=overrides_table(board),
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
    return files("adjudge.engine.tables").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def page_policy() -> str:
    """The page's content security policy: its own scripts by their hashes, inline styles and images, no network."""
    hashes = " ".join(f"'sha256-{_hash(asset(name))}'" for name in SCRIPTS)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _part(key: str, section: Section, board: Leaderboard) -> _Part:
    standings = _arranged(section.tables[0], section.title, board.confidence)
    return _Part(
        key=key,
        title=section.title,
        head=section.head,
        standings=standings,
        names=_names(standings),
        figures=figures_of(section.head, board),
        tables=tuple(
            _by_group(table) if table.kind == "groups" else table
            for table in section.tables
            if table.kind not in _IN_STANDINGS
        ),
    )


def _by_group(table: Table) -> Table:
    """Standings by group without what their pills and the standings of all tasks say, and columns that say nothing."""
    found = table.without("tier", "integrity")
    kinds = [column.kind for column in found.columns]
    unscored = any(row[kinds.index("unscored")].text != "-" for row in found.rows)
    return found.arranged(
        [
            at
            for at, kind in enumerate(kinds)
            if (unscored or kind != "scored") and any(row[at].text != "-" for row in found.rows)
        ]
    )


def _arranged(table: Table, section: str, confidence: float) -> Table:
    """The standings as the page has them, a block for each tier.

    The score's bar has a column of its own, and the figures behind it come last. A column that says nothing is hidden.
    """
    tier = [column.kind for column in table.columns].index("tier")
    tiers = [tuple(rows) for _, rows in groupby(table.rows, key=lambda row: row[tier].text)]
    without = msgspec.structs.replace(table, blocks=tuple(tiers)).without("tier")
    kinds = [column.kind for column in without.columns]
    order = [*_ORDER, *(kind for kind in kinds if kind not in _ORDER)]
    places = sorted(range(len(kinds)), key=lambda place: order.index(kinds[place]))
    value = places.index(kinds.index("value"))
    found = without.arranged([*places[: value + 1], *places[value:]])
    columns = [
        msgspec.structs.replace(
            one,
            shown=one.shown and one.kind not in _HIDDEN and any(row[at].text != "-" for row in found.rows),
            axis=(),
        )
        for at, one in enumerate(found.columns)
    ]
    columns[value + 1] = Column(
        f"{confidence:.0%} interval",
        "bar",
        words=True,
        tip="The score's interval over resampled tasks; the thin line is what it could become once all is scored.",
        best=columns[value].best,
        axis=found.columns[value].axis,
    )
    return msgspec.structs.replace(found, title=f"{table.title}, {section}", columns=tuple(columns))


def _names(table: Table) -> dict[str, tuple[str, str]]:
    """The names of a table's systems, and short ones for a narrow window."""
    systems = [row[table.head].text for row in table.rows]
    long, short = labels(systems, _NAME), labels(systems, _SHORT)
    return {name: (long[name], short[name]) for name in systems}


def _data(found: list[dict[str, object]]) -> Markup:
    """Data for the script, which can hold no end of a script element."""
    return Markup(msgspec.json.encode(found).decode("utf-8", "replace").replace("<", "\\u003c"))
