"""The standings of a protocol, laid out once: the terminal, the page, Markdown and the viewer only draw them.

The same layout holds for groups of tasks, whose blocks of rows stand one below the other.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

import msgspec

from adjudge.engine.leaderboard.board import FLAGGED_BELOW, Grouping, MetricBoard, Standing
from adjudge.engine.leaderboard.corrected import Corrected
from adjudge.engine.rendering.cells import Cell, bounds, score, span
from adjudge.engine.rendering.numbers import number

__all__ = ["Column", "Kind", "Ranking", "Standings", "by_group", "published", "rankings", "standings"]

Kind = Literal[
    "group",
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
        return self.kind not in ("group", "system", "unscored")


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """The metrics of a protocol's table in their order, and the one among them that ranks."""

    head: MetricBoard
    metrics: tuple[MetricBoard, ...]

    @property
    def title(self) -> str:
        """The protocol, and which of its tables."""
        return f"{self.head.protocol} {self.head.table}".rstrip()

    @property
    def shown(self) -> tuple[MetricBoard, ...]:
        """The columns: the ranked metric and those that are meant to stand beside it."""
        return tuple(one for one in self.metrics if one is self.head or one.shown)

    @property
    def others(self) -> tuple[MetricBoard, ...]:
        """The metrics without a column."""
        return tuple(one for one in self.metrics if one is not self.head and not one.shown)

    @classmethod
    def alone(cls, metric: MetricBoard) -> "Ranking":
        """The ranking of one metric."""
        return cls(head=metric, metrics=(metric,))


class Standings(msgspec.Struct, frozen=True, kw_only=True):
    """Systems in order of their rank under `head`; each row has one cell per column.

    `blocks` are the rows of each group, one after the other; without groups, of all.
    """

    head: MetricBoard
    columns: tuple[Column, ...]
    blocks: tuple[tuple[tuple[Cell, ...], ...], ...]

    @property
    def rows(self) -> tuple[tuple[Cell, ...], ...]:
        """The rows of all blocks."""
        return tuple(row for block in self.blocks for row in block)

    def without(self, *kinds: Kind) -> "Standings":
        """All columns but those of these kinds."""
        kept = [place for place, column in enumerate(self.columns) if column.kind not in kinds]
        return Standings(
            head=self.head,
            columns=tuple(self.columns[place] for place in kept),
            blocks=tuple(tuple(tuple(row[at] for at in kept) for row in block) for block in self.blocks),
        )


class _Block(msgspec.Struct, frozen=True):
    """The rows of one group: by metric, every system's standing; systems in the order of the ranked metric."""

    group: Cell
    rows: Mapping[str, Mapping[str, Standing]]
    systems: tuple[str, ...]

    @classmethod
    def of(cls, ranking: Ranking, group: Cell, boards: Sequence[MetricBoard]) -> "_Block":
        named = {one.metric: one for one in boards}
        present = [named[one.metric] for one in (ranking.head, *ranking.shown) if one.metric in named]
        return cls(
            group,
            {one.metric: {row.system: row for row in one.standings} for one in present},
            tuple(row.system for row in present[0].standings) if present else (),
        )


_Layout = list[tuple[Column, Callable[[_Block, str], Cell]]]


def rankings(metrics: Sequence[MetricBoard]) -> list[Ranking]:
    """The tables of every protocol in `metrics`, each with the metric that ranks it."""
    by_table: dict[tuple[str, str], list[MetricBoard]] = {}
    for metric in metrics:
        by_table.setdefault((metric.protocol, metric.table), []).append(metric)
    return [
        Ranking(head=next((one for one in found if one.headline), found[0]), metrics=tuple(found))
        for found in by_table.values()
    ]


def standings(ranking: Ranking) -> Standings:
    """The standings of a table; systems that only others have figures for come last."""
    head = ranking.head
    block = _Block.of(ranking, Cell(""), ranking.metrics)
    layout = _layout(ranking, [block])
    columns = tuple(column for column, _ in layout)
    rows = [tuple(cell(block, system) for _, cell in layout) for system in block.systems]
    rows += [_published_alone(head, name, columns) for name in _best_first(head) if name not in block.systems]
    return Standings(head=head, columns=columns, blocks=(tuple(rows),))


def by_group(ranking: Ranking, grouping: Grouping) -> Standings:
    """The standings of a table in every group, as the mean over the groups, and over all tasks."""
    head = ranking.head
    parts = [(group.name or "none", _of(ranking, group.metrics)) for group in grouping.groups]
    known = {one.metric for _, boards in parts for one in boards}
    among = Ranking(head=head, metrics=tuple(one for one in ranking.metrics if one.metric in known))
    found = [_Block.of(among, Cell(_tasks(name, boards)), boards) for name, boards in parts if boards]
    mean = _of(ranking, grouping.mean)
    if mean:
        found.append(_Block.of(among, Cell(f"mean over {len(found)} groups"), mean))
    found.append(_Block.of(among, Cell(_tasks("all", among.metrics)), among.metrics))
    layout: _Layout = [
        (Column("group", grouping.attribute), lambda block, _: block.group),
        *((column, partial(_unlinked, cell)) for column, cell in _layout(among, found)),
    ]
    return Standings(
        head=head,
        columns=tuple(column for column, _ in layout),
        blocks=tuple(
            tuple(tuple(cell(block, system) for _, cell in layout) for system in block.systems)
            for block in found
            if block.systems
        ),
    )


def _of(ranking: Ranking, boards: Sequence[MetricBoard]) -> list[MetricBoard]:
    """Those of `boards` that are of the table."""
    known = {(one.protocol, one.metric) for one in ranking.metrics}
    return [one for one in boards if (one.protocol, one.metric) in known]


def _tasks(name: str, boards: Sequence[MetricBoard]) -> str:
    count = max(one.n_tasks for one in boards)
    return f"{name} ({count:,} task{'' if count == 1 else 's'})"


def _unlinked(cell: Callable[[_Block, str], Cell], block: _Block, system: str) -> Cell:
    """A cell of a group: the evidence of its value is that of some tasks, not of all."""
    return msgspec.structs.replace(cell(block, system), metric="")


def _layout(ranking: Ranking, blocks: Sequence[_Block]) -> _Layout:
    """The columns that hold something in any of `blocks`."""
    head = ranking.head
    own = [row for block in blocks for row in block.rows.get(head.metric, {}).values()]

    def column(kind: Kind, name: str, cell: Callable[[Standing], Cell], of: MetricBoard = head) -> None:
        layout.append((Column(kind, name), partial(_cell, of.metric, cell)))

    layout: _Layout = []
    column("rank", "rank", _rank)
    column("rank interval", "rank interval", _rank_interval)
    layout.append((Column("system", "system"), lambda _, system: Cell(system)))
    for metric in ranking.shown:
        if metric is not head:
            column("beside", metric.metric, partial(score, metric=metric), metric)
            continue
        column("value", head.metric, partial(score, metric=head))
        column("interval", "interval", lambda row: span(row.low, row.high, head.scale))
        if any(row.open for row in own):
            column("bounds", "bounds", partial(bounds, metric=head))
        if any(row.corrected is not None for row in own):
            column("corrected", "corrected by people", lambda row: _corrected(row.corrected, head.scale))
            column(
                "corrected interval",
                "corrected interval",
                lambda row: _corrected_interval(row.corrected, head.scale),
            )
        if head.published:
            column("published", "published", lambda row: published(head, row.system))
    column("tier", "tier", lambda row: Cell(str(row.tier or "-"), row.tier))
    column("scored", "scored", _scored)
    column("unscored", "unscored", _unscored)
    return layout


def _cell(metric: str, cell: Callable[[Standing], Cell], block: _Block, system: str) -> Cell:
    row = block.rows.get(metric, {}).get(system)
    return Cell("-") if row is None else cell(row)


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


def _scored(row: Standing) -> Cell:
    text = f"{row.n_scored:,}/{row.n_total:,}"
    if not row.flagged:
        return Cell(text, row.coverage)
    return Cell(f"{text} (under {FLAGGED_BELOW:.0%})", row.coverage, short=f"{text} *")


def _unscored(row: Standing) -> Cell:
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in row.unscored.items())
    return Cell(reasons or "-", short=reasons)
