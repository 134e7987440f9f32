"""The standings of a protocol, laid out once: the terminal, the page, Markdown and the viewer only draw them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import msgspec

from adjudge.engine.leaderboard.board import FLAGGED_BELOW, Leaderboard, MetricBoard, Standing
from adjudge.engine.leaderboard.correction import Corrected
from adjudge.engine.rendering.cells import Cell, bounds, number, score, span

__all__ = ["Column", "Kind", "Standings", "published", "ranked_metrics", "standings"]

Kind = Literal[
    "rank",
    "rank interval",
    "system",
    "value",
    "interval",
    "bounds",
    "corrected",
    "corrected interval",
    "tier",
    "published",
    "beside",
    "scored",
    "unscored",
]


class Column(msgspec.Struct, frozen=True):
    """What a column's cells say, and its heading. `value` is the ranked metric, `beside` another one."""

    kind: Kind
    name: str

    @property
    def numeric(self) -> bool:
        """Whether its cells are aligned as numbers."""
        return self.kind not in ("system", "unscored")


class Standings(msgspec.Struct, frozen=True, kw_only=True):
    """Systems in order of their rank under `head`; each row has one cell per column."""

    head: MetricBoard
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def only(self, *kinds: Kind) -> "Standings":
        """The columns of these kinds, in this order."""
        kept = [place for kind in kinds for place, column in enumerate(self.columns) if column.kind == kind]
        return Standings(
            head=self.head,
            columns=tuple(self.columns[place] for place in kept),
            rows=tuple(tuple(row[place] for place in kept) for row in self.rows),
        )


def ranked_metrics(board: Leaderboard) -> list[tuple[MetricBoard, list[MetricBoard]]]:
    """For each protocol the metric it is ranked by, and its other metrics."""
    by_protocol: dict[str, list[MetricBoard]] = {}
    for metric in board.metrics:
        by_protocol.setdefault(metric.protocol, []).append(metric)
    found = []
    for metrics in by_protocol.values():
        head = next((metric for metric in metrics if metric.headline), metrics[0])
        found.append((head, [metric for metric in metrics if metric is not head]))
    return found


def standings(head: MetricBoard, others: Sequence[MetricBoard] = ()) -> Standings:
    """The standings under `head`, beside the `others` that are meant to be shown."""
    layout: list[tuple[Column, Callable[[Standing], Cell]]] = [
        (Column("rank", "rank"), _rank),
        (Column("rank interval", "rank interval"), _rank_interval),
        (Column("system", "system"), lambda row: Cell(row.system)),
        (Column("value", head.metric), lambda row: score(row, head)),
        (Column("interval", "interval"), lambda row: span(row.low, row.high, head.scale)),
    ]
    if any(row.open for row in head.standings):
        layout.append((Column("bounds", "bounds"), lambda row: bounds(row, head)))
    if any(row.corrected is not None for row in head.standings):
        layout += [
            (Column("corrected", "corrected by people"), lambda row: _corrected(row.corrected, head.scale)),
            (
                Column("corrected interval", "corrected interval"),
                lambda row: _corrected_interval(row.corrected, head.scale),
            ),
        ]
    layout.append((Column("tier", "tier"), lambda row: Cell(str(row.tier or "-"), row.tier)))
    if head.published:
        layout.append((Column("published", "published"), lambda row: published(head, row.system)))
    layout += [
        (
            Column("beside", metric.metric),
            partial(_beside, metric, {row.system: row for row in metric.standings}),
        )
        for metric in others
        if metric.shown
    ]
    layout += [(Column("scored", "scored"), _scored), (Column("unscored", "unscored"), _unscored)]
    columns = tuple(column for column, _ in layout)
    ranked = [tuple(cell(row) for _, cell in layout) for row in head.standings]
    own = {row.system for row in head.standings}
    beside = [_published_alone(head, name, columns) for name in _best_first(head) if name not in own]
    return Standings(head=head, columns=columns, rows=(*ranked, *beside))


def _best_first(head: MetricBoard) -> list[str]:
    sign = 1.0 if head.lower_is_better else -1.0
    return sorted(head.published, key=lambda name: (sign * head.published[name], name))


def _published_alone(head: MetricBoard, system: str, columns: Sequence[Column]) -> tuple[Cell, ...]:
    """The row of a system that only others have figures for."""
    known = {"system": Cell(system), "published": published(head, system)}
    return tuple(known.get(column.kind, Cell("-", short="")) for column in columns)


def published(metric: MetricBoard, system: str) -> Cell:
    """The published figure of `system`."""
    value = metric.published.get(system)
    return Cell(number(value), value)


def _rank(row: Standing) -> Cell:
    return Cell("-" if row.rank is None else f"{row.rank:g}", row.rank)


def _rank_interval(row: Standing) -> Cell:
    if row.rank_low is None or row.rank_high is None:
        return Cell("-", short="")
    short = "" if row.rank_low == row.rank_high else f"({row.rank_low:g}-{row.rank_high:g})"
    return Cell(f"{row.rank_low:g} to {row.rank_high:g}", row.rank_low, short=short)


def _corrected(found: Corrected | None, scale: float) -> Cell:
    return Cell("-") if found is None else Cell(number(found.value, scale), found.value)


def _corrected_interval(found: Corrected | None, scale: float) -> Cell:
    return span(None, None) if found is None else span(found.low, found.high, scale)


def _beside(metric: MetricBoard, rows: dict[str, Standing], row: Standing) -> Cell:
    return score(rows.get(row.system), metric)


def _scored(row: Standing) -> Cell:
    text = f"{row.n_scored:,}/{row.n_total:,}"
    if not row.flagged:
        return Cell(text, row.coverage)
    return Cell(f"{text} (under {FLAGGED_BELOW:.0%})", row.coverage, short=f"{text} *")


def _unscored(row: Standing) -> Cell:
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in row.unscored.items())
    return Cell(reasons or "-", short=reasons)
