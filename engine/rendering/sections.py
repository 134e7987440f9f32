"""A leaderboard as tables of text, the same for its page and for Markdown."""

from collections.abc import Sequence

import msgspec

from adjudge.engine.leaderboard.board import Leaderboard, MetricBoard
from adjudge.engine.leaderboard.correction import Corrected
from adjudge.engine.records.resolution import Resolution
from adjudge.engine.rendering.cells import Cell, Table, number, score, span
from adjudge.engine.rendering.detail_tables import detail_tables
from adjudge.engine.rendering.standings import published, ranked_metrics, standings

__all__ = ["Section", "sections_of"]


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One protocol: the metric it is ranked by, and its tables, the ranking first."""

    protocol: str
    head: MetricBoard
    lead: str
    tables: tuple[Table, ...]


def sections_of(board: Leaderboard) -> list[Section]:
    """A section for each protocol."""
    found = []
    for head, others in ranked_metrics(board):
        metrics = [head, *others]
        lead = (
            f"Judge {head.judge}. {head.basis[0].upper()}{head.basis[1:]}"
            f"{', lower is better' if head.lower_is_better else ''}. "
            f"Intervals at {board.confidence:.0%} from {board.resamples:,} resamples of tasks."
        )
        rated = [metric for metric in metrics if metric.corrected_differences]
        tables = [_ranking(head, others)]
        tables += [
            table for metric in rated for table in (_corrected_means(metric), _corrected_differences(metric))
        ]
        tables += [_resolved(one, metrics) for one in board.stopped if one.protocol == head.protocol]
        tables += [*detail_tables(head, board), *map(_metric, others)]
        tables += [_published(metric) for metric in metrics if metric.published]
        found.append(Section(protocol=head.protocol, head=head, lead=lead, tables=tuple(tables)))
    return found


def _ranking(head: MetricBoard, others: Sequence[MetricBoard]) -> Table:
    found = standings(head, others)
    return Table(
        kind="standings",
        title=f"Ranking by {head.metric}",
        note="",
        columns=tuple(column.name for column in found.columns),
        rows=found.rows,
    )


def _metric(metric: MetricBoard) -> Table:
    direction = "Lower is better. " if metric.lower_is_better else ""
    found = standings(metric).only(
        "rank", "rank interval", "system", "value", "interval", "bounds", "tier", "scored", "unscored"
    )
    return Table(
        kind="metric",
        title=metric.metric,
        note=f"{direction}{metric.basis[0].upper()}{metric.basis[1:]}.",
        columns=tuple(column.name for column in found.columns),
        rows=found.rows,
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
        note="Prediction-powered (PPI++): an estimate of people's mean over all tasks, from the judge's scores of all "
        "tasks and people's of some, which must be drawn at random. A weight of 0 leaves the judge out.",
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
        columns=("system", "minus", "judge's", "judge's interval", *_CORRECTED),
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
        columns=("system", "minus", "difference", "interval", "ahead", "after tasks", "scored for both"),
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
                published(metric, name),
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
