"""The leaderboard as one self-contained HTML page that opens from disk and loads nothing from the network.

Tables are part of the HTML, so they can be read without the script, which sorts, filters and draws figures. Long
tables that repeat a figure (pairs, rank shares) are made from its data when they are opened.
"""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from adjudge.engine.leaderboard.board import FLAGGED_BELOW, Grouping, Leaderboard, MetricBoard, Standing
from adjudge.engine.leaderboard.detail import AXES, Detail
from adjudge.engine.records.provenance import Provenance
from adjudge.engine.rendering.cells import Cell, Table
from adjudge.engine.rendering.markup import Markup, join, tag
from adjudge.engine.rendering.sections import Section, sections_of

__all__ = ["SCRIPTS", "asset", "leaderboard_page", "page_policy"]

SCRIPTS = ("base.js", "d3-7.9.2.min.js", "plot-0.6.17.min.js", "leaderboard.js")
_DRAWN = frozenset({"pairs", "ranks"})  # tables that the script draws
_OPEN = frozenset({"people", "published", "resolved", "unscored", "noise"})
_FEW = 15  # systems whose pairs fit half the page's width
_FEW_GROUPS = 3  # whose figure fits half the page's width
_FIGURES = (
    ("scores", "Scores with intervals"),
    ("ranks", "Rank distribution"),
    ("pairs", "Pairwise significance"),
    ("seconds", "Score against seconds"),
    ("cost", "Score against cost"),
    ("tokens", "Score against tokens"),
    ("tokens_written", "Score against tokens written"),
)


def leaderboard_page(board: Leaderboard) -> str:
    """The page of `board`."""
    sections = sections_of(board)
    body = join(
        tag("a", "Skip to the tables", href="#main", class_="skip"),
        _header(board, sections),
        tag(
            "main",
            *(tag("p", note, class_="note") for note in board.notes),
            *(_section(number, section, board.groupings) for number, section in enumerate(sections)),
            _sources(board),
            id="main",
            tabindex="-1",
        ),
        tag("div", id="tip", role="status", class_="visually-hidden"),
        _data([_drawn(section.head, board.groupings) for section in sections]),
        *(Markup(f"<script>{asset(name)}</script>") for name in SCRIPTS[1:]),
    )
    head = join(
        Markup('<meta charset="utf-8">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("meta", http_equiv="Content-Security-Policy", content=page_policy()),
        tag("title", "adjudge leaderboard"),
        Markup(f"<style>{asset('base.css')}{asset('leaderboard.css')}</style>"),
        Markup(f"<script>{asset('base.js')}</script>"),
    )
    return f"<!doctype html>\n{tag('html', tag('head', head), tag('body', body), lang='en')}\n"


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


def _header(board: Leaderboard, sections: list[Section]) -> Markup:
    links = [
        tag("li", tag("a", section.title, href=f"#p{number}")) for number, section in enumerate(sections)
    ]
    links.append(tag("li", tag("a", "How it was made", href="#made")))
    runs = ", ".join(board.runs)
    return tag(
        "header",
        tag("h1", "Leaderboard"),
        tag("p", f"{'Run' if len(board.runs) == 1 else 'Runs'} {runs}", class_="quiet"),
        tag("nav", tag("ul", *links), aria_label="Sections"),
        tag(
            "div",
            tag("label", "Filter systems", for_="filter"),
            tag("input", id="filter", type="search", autocomplete="off", spellcheck="false"),
            tag("button", "Dark or light", id="theme", type="button"),
            tag("span", id="found", role="status", class_="quiet"),
            class_="controls",
        ),
    )


def _section(number: int, section: Section, groupings: Sequence[Grouping]) -> Markup:
    by_kind = [table for table in section.tables if table.kind not in _DRAWN]
    ranking = [_table(table, f"p{number}t0") for table in by_kind[:1]]
    others = [_details(table, f"p{number}t{place}") for place, table in enumerate(by_kind[1:], 1)]
    crowded = len(section.head.standings) > _FEW
    figures = [
        tag(
            "figure",
            tag("figcaption", title),
            tag("div", class_="plot", data_figure=kind, data_section=number),
            tag("details", tag("summary", f"{title} as a table"), data_table=kind, data_section=number)
            if kind in _DRAWN
            else None,
            class_="wide" if kind == "pairs" and crowded else None,
        )
        for kind, title in _FIGURES
        if _has(section.head.detail, kind)
    ]
    figures += [
        tag(
            "figure",
            tag("figcaption", f"By {attribute}"),
            tag("div", class_="plot", data_by=attribute, data_section=number),
            class_="wide"
            if len({name for of, name, *_ in groups if of == attribute}) > _FEW_GROUPS
            else None,
        )
        for groups in [_grouped(section.head, groupings)]
        for attribute in dict.fromkeys(of for of, *_ in groups)
    ]
    return tag(
        "section",
        tag("h2", section.title, id=f"p{number}-title"),
        tag("p", section.lead),
        _stability(section.head),
        *ranking,
        tag("div", *figures, class_="figures"),
        *others,
        id=f"p{number}",
        aria_labelledby=f"p{number}-title",
    )


def _stability(head: MetricBoard) -> Markup | None:
    if head.tau.mean is None or head.rho.mean is None:
        return None
    return tag(
        "p",
        f"When tasks are resampled, the ranking agrees with this one at Kendall's tau {head.tau.mean:.2f} "
        f"({head.tau.low:.2f} to {head.tau.high:.2f}) and Spearman's rho {head.rho.mean:.2f} "
        f"({head.rho.low:.2f} to {head.rho.high:.2f}).",
        class_="quiet",
    )


def _has(detail: Detail | None, kind: str) -> bool:
    if detail is None:
        return kind == "scores"
    if kind in AXES:
        return any(frontier.axis == kind for frontier in detail.frontiers)
    return kind == "scores" or bool(detail.pairs)


def _details(table: Table, name: str) -> Markup:
    return tag(
        "details",
        tag("summary", table.title),
        tag("p", table.note, class_="quiet") if table.note else None,
        _table(table, name) if table.rows else None,
        open=table.kind in _OPEN,
    )


def _table(table: Table, name: str) -> Markup:
    at = table.columns.index("system") if "system" in table.columns else 0
    numeric = {place for row in table.rows for place, cell in enumerate(row) if cell.sort is not None}
    classes = [
        "who" if place == at else "n" if place in numeric else None for place in range(len(table.columns))
    ]
    head = [
        tag("th", tag("button", column, type="button"), scope="col", class_=class_)
        for column, class_ in zip(table.columns, classes, strict=True)
    ]
    rows = [tag("tr", *map(_cell, row, classes), data_system=row[at].text) for row in table.rows]
    return _scrolling(
        table.title,
        tag("caption", table.title, class_="visually-hidden"),
        tag("thead", tag("tr", *head)),
        tag("tbody", *rows),
        id=name,
        class_=table.kind,
    )


def _scrolling(title: str, *parts: Markup, **attributes: str) -> Markup:
    """A table that may be wider than the window."""
    table = tag("table", *parts, **attributes)
    return tag("div", table, class_="scroll", role="region", tabindex="0", aria_label=title)


def _cell(cell: Cell, class_: str | None) -> Markup:
    if class_ == "who":
        return tag("th", cell.text, scope="row")
    sort = None if cell.sort is None else f"{cell.sort:.7g}"
    return tag("td", cell.text, data_v=sort, data_metric=cell.metric or None, class_=class_)


def _sources(board: Leaderboard) -> Markup:
    method = (
        "Values are means over all selected tasks, and the order of ranks is theirs: what is unscored or was not "
        "submitted counts as the worst it could be until it is there, and the bounds say what the mean could become. "
        f"Intervals are percentile intervals of {board.resamples:,} resamples of tasks at {board.confidence:.0%}, the "
        f"same tasks for all systems, seed {board.seed}. Rank 1 is best; equals share the mean of their ranks; the "
        "interval of a rank spans the bounds. A tier holds the systems that cannot be told from its best one. Systems "
        f"with less than {FLAGGED_BELOW:.0%} scored are listed without a rank."
    )
    return tag(
        "section",
        tag("h2", "How it was made", id="made-title"),
        tag("p", method),
        *map(_source, board.sources),
        tag(
            "p",
            "To see the evidence behind a number, open this page with ",
            tag("code", "adjudge view RUN"),
            ": every value then links to its reports, questions, answers and pages.",
            id="from-disk",
        ),
        id="made",
        aria_labelledby="made-title",
    )


def _source(source: Provenance) -> Markup:
    options = "; ".join(
        ", ".join([str(one.get("name")), *(f"{key}: {value}" for key, value in one.items() if key != "name")])
        for one in source.protocols
    )
    facts = {
        "Command": tag("code", source.command),
        "Judge": "; ".join(judge.line for judge in source.judges_used),
        "Protocols": options,
        "Seed, repeats": f"{source.seed}, {source.repeats}",
        "Began": f"{source.began}, took {source.seconds:,.0f} s",
        "Input": f"{source.systems} systems, {source.tasks} tasks, {source.rejected} lines left out",
        "Judgments": f"{source.from_judge:,} asked, {source.from_store:,} from the store",
        "Versions": ", ".join(f"{name} {of}" for name, of in source.versions.items()),
    }
    prompts = [
        tag("tr", tag("th", name, scope="row"), tag("td", tag("code", digest)))
        for name, digest in source.prompts.items()
    ]
    return join(
        tag("h3", f"Run {source.run}"),
        tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items())),
        tag(
            "details",
            tag("summary", f"Prompts and their hashes ({len(prompts)})"),
            _scrolling(
                f"Prompts of run {source.run}",
                tag("thead", tag("tr", tag("th", "file", scope="col"), tag("th", "hash", scope="col"))),
                tag("tbody", *prompts),
            ),
        ),
    )


def _data(found: list[dict[str, Any]]) -> Markup:
    """Data for the script, which can hold no end of a script element."""
    text = msgspec.json.encode(found).decode("utf-8", "replace").replace("<", "\\u003c")
    return Markup(f'<script type="application/json" id="data">{text}</script>')


def _drawn(head: MetricBoard, groupings: Sequence[Grouping]) -> dict[str, Any]:
    """What the figures of a section show, systems by their place."""
    place = {row.system: number for number, row in enumerate(head.standings)}
    detail = head.detail or Detail(ranks=(), pairs=(), frontiers=(), noise=None)
    return {
        "protocol": head.protocol,
        "metric": head.metric,
        "scale": head.scale,
        "lower": head.lower_is_better,
        "systems": [
            [row.system, *map(_short, (row.value, row.low, row.high)), row.tier, *_bounds(row)]
            for row in head.standings
        ],
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
            for attribute, name, row in _grouped(head, groupings)
        ],
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


def _bounds(row: Standing) -> list[float | None]:
    """What the value could become; nothing where it is final."""
    return [_short(row.bound_low), _short(row.bound_high)] if row.open else []


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
