"""A leaderboard as tables of text, the same for its page and for Markdown."""

from collections.abc import Sequence

import msgspec

from adjudge.engine.leaderboard.board import Leaderboard, MetricBoard, Standing
from adjudge.engine.leaderboard.correction import Corrected
from adjudge.engine.records.resolution import Resolution
from adjudge.engine.rendering.cells import Cell, Table, number, score, span
from adjudge.engine.rendering.detail_tables import detail_tables

__all__ = ["Section", "sections_of"]


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
            f"{', lower is better,' if head.lower_is_better else ''} on {head.ranked_on}. "
            f"Intervals at {board.confidence:.0%} from {board.resamples:,} resamples of tasks."
        )
        others = [metric for metric in metrics if metric is not head]
        rated = [metric for metric in metrics if metric.corrected_differences]
        tables = [_standings(head, others)]
        tables += [
            table for metric in rated for table in (_corrected_means(metric), _corrected_differences(metric))
        ]
        tables += [_resolved(one, metrics) for one in board.stopped if one.protocol == protocol]
        tables += [*detail_tables(head, board), *map(_metric, others)]
        tables += [_published(metric) for metric in metrics if metric.published]
        found.append(Section(protocol=protocol, head=head, lead=lead, tables=tuple(tables)))
    return found


def _standings(head: MetricBoard, others: Sequence[MetricBoard]) -> Table:
    shown = [metric for metric in others if metric.shown]
    by_system = {metric.metric: {row.system: row for row in metric.standings} for metric in shown}
    published = ("published",) if head.published else ()
    corrected = ("corrected by people", "corrected interval") if head.corrected_differences else ()
    rows = []
    for row in head.standings:
        figures = [score(by_system[metric.metric].get(row.system), metric) for metric in shown]
        others_figure = [_published_cell(head, row.system)] if published else []
        people = _corrected(row.corrected, head.scale)[:2] if corrected else ()
        rows.append(
            (
                *_ranked(row),
                score(row, head),
                span(row.low, row.high, head.scale),
                *people,
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
        columns=(
            *_RANKED,
            head.metric,
            "interval",
            *corrected,
            "tier",
            *published,
            *names,
            "scored",
            "unscored",
        ),
        rows=tuple(rows),
    )


_RANKED = ("rank", "rank interval", "system")


def _ranked(row: Standing) -> tuple[Cell, Cell, Cell]:
    places = "-" if row.rank_low is None else f"{row.rank_low:g} to {row.rank_high:g}"
    rank = "-" if row.rank is None else f"{row.rank:g}"
    return Cell(rank, row.rank), Cell(places, row.rank_low), Cell(row.system)


def _coverage(row: Standing) -> tuple[Cell, Cell]:
    reasons = ", ".join(f"{count} {reason}" for reason, count in row.unscored.items())
    flag = " (under 95 %)" if row.flagged else ""
    return Cell(f"{row.n_scored}/{row.n_total}{flag}", row.coverage), Cell(reasons or "-")


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
                score(row, metric),
                span(row.low, row.high, metric.scale),
                Cell(str(row.tier or "-"), row.tier),
                *_coverage(row),
            )
            for row in metric.standings
        ),
    )


def _corrected(found: Corrected | None, scale: float) -> tuple[Cell, ...]:
    """Corrected and people's own figure with their intervals, labelled tasks and the judge's weight."""
    if found is None:
        return (Cell("-"),) * 6
    return (
        Cell(number(found.value, scale), found.value),
        span(found.low, found.high, scale),
        Cell(number(found.people, scale), found.people),
        span(found.people_low, found.people_high, scale),
        Cell(f"{found.n_labelled} of {found.n_labelled + found.n_unlabelled}", found.n_labelled),
        Cell(number(found.power), found.power),
    )


_CORRECTED = (
    "corrected",
    "corrected interval",
    "people alone",
    "people's interval",
    "labelled",
    "judge's weight",
)


def _corrected_means(metric: MetricBoard) -> Table:
    return Table(
        kind="people",
        title=f"{metric.metric} corrected by people's scores",
        note="Prediction-powered (PPI++): what people's mean over all tasks would be, from the judge's scores of all "
        "and people's of some, which must be drawn at random. A weight of 0 leaves the judge out.",
        columns=("system", metric.metric, "interval", *_CORRECTED),
        rows=tuple(
            (
                Cell(row.system),
                score(row, metric),
                span(row.low, row.high, metric.scale),
                *_corrected(row.corrected, metric.scale),
            )
            for row in metric.standings
        ),
    )


def _corrected_differences(metric: MetricBoard) -> Table:
    return Table(
        kind="people",
        title=f"Differences of {metric.metric} corrected by people's scores",
        note="The judge's own differences with Student's interval, and the corrected ones.",
        columns=("system", "less", "judge's", "judge's interval", *_CORRECTED),
        rows=tuple(
            (
                Cell(pair.a),
                Cell(pair.b),
                Cell(number(pair.raw, metric.scale), pair.raw),
                span(pair.raw_low, pair.raw_high, metric.scale),
                *_corrected(pair.corrected, metric.scale),
            )
            for pair in metric.corrected_differences
        ),
    )


def _resolved(found: Resolution, metrics: Sequence[MetricBoard]) -> Table:
    scale = next((metric.scale for metric in metrics if metric.metric == found.metric), 1.0)
    return Table(
        kind="resolved",
        title=f"Comparisons by {found.metric}, and when they were resolved",
        note=f"{found.note[0].upper()}{found.note[1:]}.",
        columns=("system", "less", "difference", "interval", "ahead", "after tasks", "scored for both"),
        rows=tuple(
            (
                Cell(pair.a),
                Cell(pair.b),
                Cell(number(pair.difference, scale), pair.difference),
                span(pair.low, pair.high, scale),
                Cell(pair.ahead or "open"),
                Cell(str(pair.resolved_at or "-"), pair.resolved_at),
                Cell(str(pair.n_used), pair.n_used),
            )
            for pair in found.pairs
        ),
    )


def _published(metric: MetricBoard) -> Table:
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
                Cell("-") if row is None else score(row, metric),
                _published_cell(metric, name),
                Cell(number(difference), difference),
            )
        )
    return Table(
        kind="published",
        title=f"{metric.metric} beside published figures",
        note="" if metric.published_agreement is None else f"{metric.published_agreement.line}.",
        columns=("system", "here", "published", "difference"),
        rows=tuple(rows),
    )


def _published_cell(metric: MetricBoard, system: str) -> Cell:
    value = metric.published.get(system)
    return Cell(number(value), value)
