"""A leaderboard as tables of text, the same for its page and for Markdown."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
from adjudge.engine.detail import Detail
from adjudge.engine.leaderboard import Leaderboard, MetricBoard, Standing
from adjudge.scoring.reasons import CAUSES

__all__ = ["Cell", "Section", "Table", "leaderboard_markdown", "markdown_table", "sections_of"]

Kind = Literal["standings", "metric", "groups", "ranks", "pairs", "cost", "unscored", "noise", "published"]

_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#~])")
_SPACES = re.compile(r"\s+")
_CAUSES: dict[str, str] = {str(reason): cause for reason, cause in CAUSES.items()}


class Cell(msgspec.Struct, frozen=True):
    """Text, what it is sorted by where that is a number, and the metric whose value it is, if it is one."""

    text: str
    sort: float | None = None
    metric: str = ""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table. The column called `system` names rows."""

    kind: Kind
    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One protocol: what was ranked by, and its tables, the ranking first."""

    protocol: str
    head: MetricBoard
    lead: str
    tables: tuple[Table, ...]


def sections_of(board: Leaderboard) -> list[Section]:
    """A section for each protocol."""
    found = []
    for protocol in dict.fromkeys(metric.protocol for metric in board.metrics):
        metrics = [metric for metric in board.metrics if metric.protocol == protocol]
        head = next((metric for metric in metrics if metric.headline), metrics[0])
        lead = (
            f"Judge {head.judge}. Ranked by {head.metric}"
            f"{', lower is better,' if head.lower_is_better else ''} on the {head.n_common} of {head.n_tasks} tasks "
            f"that are scored for all. Intervals at {board.confidence:.0%} from {board.resamples:,} resamples of tasks."
        )
        others = [metric for metric in metrics if metric is not head]
        tables = [_standings(head, others), *_detailed(head, board), *map(_metric, others)]
        tables += [_published(metric) for metric in metrics if metric.published]
        found.append(Section(protocol=protocol, head=head, lead=lead, tables=tuple(tables)))
    return found


def leaderboard_markdown(board: Leaderboard) -> str:
    """Every table of the leaderboard as Markdown, with its notes and how it was made."""
    lines = ["# Leaderboard", ""]
    lines += [f"- {_escaped(note)}" for note in board.notes]
    for section in sections_of(board):
        lines += ["", f"## {_escaped(section.protocol)}", "", _escaped(section.lead)]
        for table in section.tables:
            lines += ["", f"### {_escaped(table.title)}", ""]
            lines += [_escaped(table.note), ""] if table.note else []
            lines.append(markdown_table(table.columns, [[cell.text for cell in row] for row in table.rows]))
    lines += ["", "## How it was made", ""]
    for source in board.sources:
        prompts = ", ".join(f"{name} {digest}" for name, digest in source.prompts.items())
        lines += [
            f"- Run {_escaped(source.run)}, {source.began}: `{_coded(source.command)}`",
            f"  - judge {_escaped(source.judge)} ({_escaped(source.fingerprint)}; {_escaped(source.sampling)})",
            f"  - repeats {source.repeats}, seed {source.seed}",
            f"  - versions {_escaped(', '.join(f'{name} {of}' for name, of in source.versions.items()))}",
            f"  - prompts {_escaped(prompts)}",
        ]
    return "\n".join(lines) + "\n"


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as Markdown has it, its text escaped."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(
        "| " + " | ".join(cell if at == 1 else _escaped(cell) for cell in line) + " |"
        for at, line in enumerate(lines)
    )


def _escaped(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", _SPACES.sub(" ", text))


def _coded(text: str) -> str:
    return _SPACES.sub(" ", text).replace("`", "'")


def _standings(head: MetricBoard, others: Sequence[MetricBoard]) -> Table:
    shown = [metric for metric in others if metric.shown]
    by_system = {metric.metric: {row.system: row for row in metric.standings} for metric in shown}
    published = ("published",) if head.published else ()
    rows = []
    for row in head.standings:
        figures = [_value(by_system[metric.metric].get(row.system), metric) for metric in shown]
        others_figure = [_published_cell(head, row.system)] if published else []
        rows.append(
            (
                *_ranked(row),
                _value(row, head),
                _interval(row, head),
                Cell(str(row.tier or "-"), row.tier),
                *others_figure,
                *figures,
                *_coverage(row),
            )
        )
    names = [metric.metric for metric in shown]
    return Table(
        kind="standings",
        title=f"Ranking by {head.metric}",
        note="",
        columns=(*_RANKED, head.metric, "interval", "tier", *published, *names, "scored", "unscored"),
        rows=tuple(rows),
    )


_RANKED = ("rank", "rank interval", "system")


def _ranked(row: Standing) -> tuple[Cell, Cell, Cell]:
    span = "-" if row.rank_low is None else f"{row.rank_low:g} to {row.rank_high:g}"
    rank = "-" if row.rank is None else f"{row.rank:g}"
    return Cell(rank, row.rank), Cell(span, row.rank_low), Cell(row.system)


def _coverage(row: Standing) -> tuple[Cell, Cell]:
    reasons = ", ".join(f"{count} {reason}" for reason, count in row.unscored.items())
    flag = " (under 95 %)" if row.flagged else ""
    return Cell(f"{row.n_scored}/{row.n_total}{flag}", row.coverage), Cell(reasons or "-")


def _value(row: Standing | None, metric: MetricBoard) -> Cell:
    if row is None or row.value is None:
        return Cell("-")
    return Cell(_number(row.value, metric.scale), row.value, metric.metric)


def _interval(row: Standing, metric: MetricBoard) -> Cell:
    return _span(row.low, row.high, metric.scale)


def _span(low: float | None, high: float | None, scale: float) -> Cell:
    if low is None or high is None:
        return Cell("-")
    return Cell(f"{_number(low, scale)} to {_number(high, scale)}", low)


def _number(value: float | None, scale: float = 1.0) -> str:
    return "-" if value is None else f"{value * scale:.2f}"


def _metric(metric: MetricBoard) -> Table:
    direction = "Lower is better. " if metric.lower_is_better else ""
    return Table(
        kind="metric",
        title=metric.metric,
        note=f"{direction}Ranked on {metric.n_common} of {metric.n_tasks} tasks.",
        columns=(*_RANKED, metric.metric, "interval", "tier", "scored", "unscored"),
        rows=tuple(
            (
                *_ranked(row),
                _value(row, metric),
                _interval(row, metric),
                Cell(str(row.tier or "-"), row.tier),
                *_coverage(row),
            )
            for row in metric.standings
        ),
    )


def _detailed(head: MetricBoard, board: Leaderboard) -> list[Table]:
    detail = head.detail
    if detail is None:
        return []
    tables = [_ranks(detail), _pairs(detail, head.scale), *_groups(head, detail)]
    tables += _cost(head, board, detail)
    tables.append(_unscored(head))
    tables += [_noise(detail, head.scale, board)]
    return [table for table in tables if table.rows or table.note]


def _ranks(detail: Detail) -> Table:
    return Table(
        kind="ranks",
        title="Rank distribution",
        note="In what share of the resamples each system has each rank.",
        columns=("system", "rank", "share"),
        rows=tuple(
            (
                Cell(one.system),
                Cell(f"{one.rank:g}", one.rank),
                Cell(f"{one.share:.1%}", one.share),
            )
            for one in detail.ranks
        ),
    )


def _pairs(detail: Detail, scale: float) -> Table:
    return Table(
        kind="pairs",
        title="Pairwise differences",
        note="On the tasks scored for all; paired t tests, corrected by Holm for the number of pairs.",
        columns=("system", "less", "difference", "interval", "p", "Holm p", "tasks"),
        rows=tuple(
            (
                Cell(pair.a),
                Cell(pair.b),
                Cell(_number(pair.difference, scale), pair.difference),
                _span(pair.low, pair.high, scale),
                *(Cell("-" if p is None else f"{p:.3g}", p) for p in (pair.p, pair.holm)),
                Cell(str(pair.n_used), pair.n_used),
            )
            for pair in detail.pairs
        ),
    )


def _groups(head: MetricBoard, detail: Detail) -> list[Table]:
    tables = []
    for kind in dict.fromkeys(group.kind for group in detail.groups):
        groups = [group for group in detail.groups if group.kind == kind]
        means = [{mean.system: mean for mean in group.means} for group in groups]
        rows = []
        for row in head.standings:
            cells = [Cell(row.system)]
            for group in means:
                mean = group[row.system]
                span = "" if mean.low is None else f" [{_span(mean.low, mean.high, head.scale).text}]"
                cells.append(Cell(f"{_number(mean.value, head.scale)}{span}", mean.value))
            rows.append(tuple(cells))
        tables.append(
            Table(
                kind="groups",
                title=f"{head.metric} by {kind}",
                note="Means over each system's own scored tasks, with Student's interval.",
                columns=(
                    "system",
                    *(f"{group.name or 'none'} ({group.n_tasks} tasks)" for group in groups),
                ),
                rows=tuple(rows),
            )
        )
    return tables


def _cost(head: MetricBoard, board: Leaderboard, detail: Detail) -> list[Table]:
    axes = [frontier.axis for frontier in detail.frontiers]
    if not axes:
        return []
    on = {
        (frontier.axis, system)
        for frontier in detail.frontiers
        for system, flag in zip(frontier.systems, frontier.on_frontier, strict=True)
        if flag
    }
    rows = []
    for row in head.standings:
        spent = board.spent.get(row.system)
        figures: list[float | None] = [None if spent is None else getattr(spent, axis) for axis in axes]
        best = ", ".join(axis for axis in axes if (axis, row.system) in on)
        cells = [Cell("-" if value is None else f"{value:,.6g}", value) for value in figures]
        rows.append((Cell(row.system), _value(row, head), *cells, Cell(best or "-")))
    return [
        Table(
            kind="cost",
            title="Score against what a report took",
            note="Means a report, as systems state them. On the frontier: none scores as much for less.",
            columns=("system", head.metric, *axes, "on the frontier of"),
            rows=tuple(rows),
        )
    ]


def _unscored(head: MetricBoard) -> Table:
    rows = [
        (Cell(row.system), Cell(reason), Cell(_CAUSES.get(reason, "-")), Cell(str(count), count))
        for row in head.standings
        for reason, count in row.unscored.items()
    ]
    note = f"Scores of {head.metric} that are missing; none counts as 0."
    return Table(
        kind="unscored",
        title="What was unscored, and why",
        note=note if rows else "Nothing was left unscored.",
        columns=("system", "reason", "cause", "scores"),
        rows=tuple(rows),
    )


def _noise(detail: Detail, scale: float, board: Leaderboard) -> Table:
    noise = detail.noise
    repeats = max((source.repeats for source in board.sources), default=1)
    if noise is None:
        note = (
            "Not measured: the judge answered once. Run with --repeats 2 or more to see its own scatter."
            if repeats == 1
            else "Too few scores to tell."
        )
        return Table(kind="noise", title="Judge noise", note=note, columns=("component", "share"), rows=())
    scatter = (
        "cannot be told apart from the rest"
        if noise.repeat_sd is None
        else f"is {_number(noise.repeat_sd, scale)} (standard deviation)"
    )
    return Table(
        kind="noise",
        title="Judge noise",
        note=f"The judge's own scatter between repeats {scatter}, from {noise.n_used:,} scores of {repeats} repeats.",
        columns=("component", "share"),
        rows=tuple(
            (Cell(name.replace("_", " x ")), Cell("-" if share is None else f"{share:.1%}", share))
            for name, share in noise.shares.items()
        ),
    )


def _published(metric: MetricBoard) -> Table:
    found = metric.published_agreement
    figures = (
        []
        if found is None
        else [("Kendall's tau", found.tau), ("Spearman's rho", found.rho), ("Pearson's r", found.pearson)]
    )
    agreement = ", ".join(f"{name} {_number(value)}" for name, value in figures)
    own = {row.system: row for row in metric.standings}
    names = [*own, *sorted(metric.published.keys() - own.keys())]
    rows = []
    for name in names:
        row = own.get(name)
        value = None if row is None or row.value is None else row.value * metric.scale
        theirs = metric.published.get(name)
        difference = None if value is None or theirs is None else value - theirs
        rows.append(
            (
                Cell(name),
                Cell("-") if row is None else _value(row, metric),
                _published_cell(metric, name),
                Cell(_number(difference), difference),
            )
        )
    return Table(
        kind="published",
        title=f"{metric.metric} beside published figures",
        note=f"{found.n if found else 0} systems in both. {agreement}",
        columns=("system", "here", "published", "difference"),
        rows=tuple(rows),
    )


def _published_cell(metric: MetricBoard, system: str) -> Cell:
    value = metric.published.get(system)
    return Cell(_number(value), value)
