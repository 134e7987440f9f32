"""A leaderboard as tables of text, the same for its page and for Markdown."""

from collections.abc import Iterator, Sequence

import msgspec

from adjudge.engine.leaderboard.board import Leaderboard, MetricBoard
from adjudge.engine.leaderboard.corrected import Corrected
from adjudge.engine.records.resolution import Resolution
from adjudge.engine.rendering.cells import Cell, Kind, Table, score, span
from adjudge.engine.rendering.detail_tables import detail_tables
from adjudge.engine.rendering.numbers import number
from adjudge.engine.rendering.standings import Ranking, Standings, by_group, published, rankings, standings

__all__ = ["Section", "sections_of"]


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One table of a protocol: the metric it is ranked by, and all tables about it, the ranking first."""

    title: str
    head: MetricBoard
    lead: str
    tables: tuple[Table, ...]


def sections_of(board: Leaderboard) -> list[Section]:
    """A section for each table of each protocol."""
    return [_section(ranking, board) for ranking in rankings(board.metrics)]


def _section(ranking: Ranking, board: Leaderboard) -> Section:
    head = ranking.head
    lead = (
        f"Judge {head.judge}. {head.basis[0].upper()}{head.basis[1:]}"
        f"{', lower is better' if head.lower_is_better else ''}. "
        f"Intervals at {board.confidence:.0%} from {board.resamples:,} resamples of tasks."
    )
    tables = [_table("standings", f"Ranking by {head.metric}", "", standings(ranking))]
    for metric in ranking.metrics:
        if metric.corrected_differences:
            tables += [_corrected_means(metric), _corrected_differences(metric)]
    tables += [_resolved(one, ranking.metrics) for one in board.stopped if one.protocol == head.protocol]
    tables += [*_groups(ranking, board), *detail_tables(head, board)]
    tables += [_metric(metric) for metric in ranking.metrics if metric is not head]
    tables += [_published(metric) for metric in ranking.metrics if metric.published]
    return Section(title=ranking.title, head=head, lead=lead, tables=tuple(tables))


def _table(kind: Kind, title: str, note: str, found: Standings) -> Table:
    names = tuple(column.name for column in found.columns)
    return Table(kind=kind, title=title, note=note, columns=names, rows=found.rows)


_GROUPED = (
    "What is missing counts as the worst it could be, here too; in the mean over groups each counts the same."
)


def _groups(ranking: Ranking, board: Leaderboard) -> Iterator[Table]:
    """The table by every attribute, and each of its metrics with intervals by the attribute that was asked for."""
    head = ranking.head
    for one in board.groupings:
        if head.metric in {found.metric for group in one.groups for found in group.metrics}:
            yield _table("groups", f"{head.metric} by {one.attribute}", _GROUPED, by_group(ranking, one))
        if one.attribute == board.by:
            for metric in ranking.metrics:
                if metric is not head:
                    found = by_group(Ranking.alone(metric), one)
                    yield _table("groups", f"{metric.metric} by {one.attribute}", _GROUPED, found)


def _metric(metric: MetricBoard) -> Table:
    direction = "Lower is better. " if metric.lower_is_better else ""
    note = f"{direction}{metric.basis[0].upper()}{metric.basis[1:]}."
    return _table("metric", metric.metric, note, standings(Ranking.alone(metric)))


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
