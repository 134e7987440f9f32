"""The standings of a protocol, laid out once: the terminal, the page, Markdown and the viewer only draw them.

The same layout holds for groups of tasks, whose blocks of rows stand one below the other.

The table that a protocol's section opens with: rank, tier, name, score, its interval as a bar, and badges.

Every metric of the table has a column, of which a reader chooses; the ones that the protocol does not show are hidden.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal

import msgspec

from adjudge.engine.config.metrics import headlines
from adjudge.engine.runs.board import FLAGGED_BELOW, Corrected, Grouping, Leaderboard, MetricBoard, Standing
from adjudge.engine.tables.cells import Cell, bar_span, bounds, labels, number, score
from adjudge.scoring.contract.scorecard import Metric

__all__ = [
    "Headline",
    "HeadlineColumn",
    "Kind",
    "Ranking",
    "Standings",
    "about_metric",
    "by_group",
    "headline",
    "published",
    "rankings",
    "standings",
]

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
    return [Ranking(head=headlines(found)[0], metrics=tuple(found)) for found in by_table.values()]


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
        column("interval", "interval", lambda row: bar_span(row.low, row.high, head.scale, head.decimals))
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
    return Cell(number(value, decimals=metric.decimals), value)


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
    return bar_span(None, None) if found is None else bar_span(found.low, found.high, scale)


def _scored(row: Standing) -> Cell:
    text = f"{row.n_scored:,}/{row.n_total:,}"
    if not row.flagged:
        return Cell(text, row.coverage)
    return Cell(f"{text} (under {FLAGGED_BELOW:.0%})", row.coverage, short=f"{text} *")


def _unscored(row: Standing) -> Cell:
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in row.unscored.items())
    return Cell(reasons or "-", short=reasons)


NAME = 120  # letters of a system's name in a table, and in a narrow one
SHORT = 28
_MARGIN = 0.04  # of the bars' axis, beside the outermost interval


class Badge(msgspec.Struct, frozen=True):
    """A few words with an explanation; `kind` is its class (base.css)."""

    text: str
    tip: str
    kind: str = "plain"


class HeadlineColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column. `best` is the direction of its first sorting, `shown` whether it is there before anybody chooses."""

    key: str
    title: str
    tip: str
    best: Literal["ascending", "descending"] = "ascending"
    number: bool = True
    shown: bool = True


class Bar(msgspec.Struct, frozen=True):
    """A value, its interval and its bounds in per cent of the axis, and in words."""

    low: float
    high: float
    value: float
    least: float
    most: float
    words: str


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A system; `cells` are those of the columns in their order."""

    system: str
    label: str
    short: str
    tier: int | None
    tip: str
    cells: tuple[Cell, ...]
    bar: Bar | None
    badges: tuple[Badge, ...]


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """The table; `axis` names the ends of its bars, `badges` are about the whole ranking."""

    columns: tuple[HeadlineColumn, ...]
    rows: tuple[Row, ...]
    axis: str
    badges: tuple[Badge, ...]


def headline(ranking: Ranking, board: Leaderboard) -> Headline:
    """The opening table of `ranking`."""
    head = ranking.head
    others = [one for one in ranking.metrics if one is not head]
    beside = {one.metric: {row.system: row for row in one.standings} for one in others}
    columns = [*_columns(head, board.confidence), *(_metric(one, one.shown) for one in others), *_last(head)]
    least, most = _axis(head)
    systems = [row.system for row in head.standings]
    alone = sorted(head.published.keys() - set(systems))
    names, short = labels([*systems, *alone], NAME), labels([*systems, *alone], SHORT)
    rows = [
        Row(
            system=row.system,
            label=names[row.system],
            short=short[row.system],
            tier=row.tier,
            tip=_rank_tip(row),
            cells=(
                *_cells(row, head),
                *(_value(beside[one.metric].get(row.system), one) for one in others),
                *_last_cells(row, head),
            ),
            bar=_bar(row, head, least, most),
            badges=tuple(_badges(row)),
        )
        for row in head.standings
    ]
    rows += [_published_row(name, (names[name], short[name]), head, columns) for name in alone]
    return Headline(
        columns=tuple(columns),
        rows=tuple(rows),
        axis="" if least == most else f"{number(least, head.scale)} to {number(most, head.scale)}",
        badges=tuple(_about(head, board)),
    )


def about_metric(metric: MetricBoard | Metric) -> str:
    """What `metric` is: definition, unit, direction and source, a line each."""
    unit = metric.units if isinstance(metric, Metric) else metric.unit
    unit = "per cent" if unit == "share" and metric.scale == 100 else unit
    times = f", shown times {metric.scale:g}" if metric.scale not in (1, 100) else ""
    lines = (
        metric.definition,
        f"Unit: {unit}{times}." if unit else "",
        "Lower is better." if metric.lower_is_better else "Higher is better.",
        f"Source: {metric.source}." if metric.source else "",
    )
    return "\n".join(line for line in lines if line)


def _columns(head: MetricBoard, confidence: float) -> Iterator[HeadlineColumn]:
    yield HeadlineColumn(key="rank", title="rank", tip="Rank by the score, 1 is best; beside it the tier.")
    yield HeadlineColumn(key="system", title="system", tip="The system that wrote the reports.", number=False)
    yield _metric(head, True)
    yield HeadlineColumn(
        key="bar",
        title=f"{confidence:.0%} interval",
        tip="The score's interval over resampled tasks; the thin line is what it could become once all is scored.",
        best=_best(head),
        number=False,
    )
    if any(row.corrected is not None for row in head.standings):
        yield HeadlineColumn(
            key="corrected",
            title="corrected by people",
            tip="An estimate of people's mean score, from the judge's scores of all tasks and people's of some.",
            best=_best(head),
        )
        yield HeadlineColumn(
            key="corrected interval",
            title="corrected interval",
            tip="The interval of the corrected score.",
            best=_best(head),
            shown=False,
        )
    if head.published:
        yield HeadlineColumn(
            key="published", title="published", tip="The figure that others published.", best=_best(head)
        )


def _last(head: MetricBoard) -> Iterator[HeadlineColumn]:
    more = {
        "rank interval": "The ranks it could have, over resampled tasks and all that is missing.",
        "interval": "The score's interval, in figures.",
        "bounds": "What the score could become once everything is scored.",
        "scored": "Reports scored, of all that were to be scored.",
        "unscored": "What was not scored, by reason.",
    }
    for key, tip in more.items():
        if key != "bounds" or any(row.open for row in head.standings):
            yield HeadlineColumn(key=key, title=key, tip=tip, number=key != "unscored", shown=False)


def _metric(metric: MetricBoard, shown: bool) -> HeadlineColumn:
    return HeadlineColumn(
        key=f"m.{metric.metric}",
        title=metric.metric,
        tip=about_metric(metric),
        best=_best(metric),
        shown=shown,
    )


def _best(metric: MetricBoard) -> Literal["ascending", "descending"]:
    return "ascending" if metric.lower_is_better else "descending"


def _cells(row: Standing, head: MetricBoard) -> Iterator[Cell]:
    """The cells up to the head's own figures; those of the name and the bar are drawn from the row."""
    yield Cell(text="-" if row.rank is None else f"{row.rank:g}", sort=row.rank)
    yield Cell(text=row.system)
    yield _value(row, head)
    yield Cell(text="", sort=row.value)
    if any(one.corrected is not None for one in head.standings):
        found = row.corrected
        yield (
            Cell(text="-") if found is None else Cell(text=number(found.value, head.scale), sort=found.value)
        )
        yield Cell(text="-") if found is None else bar_span(found.low, found.high, head.scale)
    if head.published:
        theirs = head.published.get(row.system)
        yield Cell(text=number(theirs, decimals=head.decimals), sort=theirs)


def _last_cells(row: Standing, head: MetricBoard) -> Iterator[Cell]:
    yield Cell(text=_ranks(row) or "-", sort=row.rank_low)
    yield bar_span(row.low, row.high, head.scale, head.decimals)
    if any(one.open for one in head.standings):
        yield Cell(text=_bounds(row, head) or "-", sort=row.bound_low)
    yield Cell(text=f"{row.n_scored:,}/{row.n_total:,}", sort=row.coverage)
    yield Cell(text=_reasons(row) or "-")


def _value(row: Standing | None, metric: MetricBoard) -> Cell:
    if row is None or row.value is None:
        return Cell(text="-")
    interval = bar_span(row.low, row.high, metric.scale, metric.decimals)
    parts = [] if row.low is None else [f"interval {interval.text}"]
    parts += [f"rank {row.rank:g} by {metric.metric}"] if row.rank is not None else []
    parts += [f"could become {found}"] if (found := _bounds(row, metric)) else []
    text = number(row.value, metric.scale, metric.decimals)
    return Cell(text=text, sort=row.value, tip="; ".join(parts), metric=metric.metric)


def _bounds(row: Standing, metric: MetricBoard) -> str:
    """What the value could become, "" where it is final."""
    if not row.open:
        return ""
    low, high = (number(bound, metric.scale, metric.decimals) for bound in (row.bound_low, row.bound_high))
    return f"{low} or more" if row.bound_high is None else f"{low} to {high}"


def _ranks(row: Standing) -> str:
    if row.rank_low is None or row.rank_high is None:
        return ""
    return f"{row.rank_low:g} to {row.rank_high:g}"


def _reasons(row: Standing) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in row.unscored.items())


def _rank_tip(row: Standing) -> str:
    if row.rank is None:
        return f"No rank: less than {FLAGGED_BELOW:.0%} is scored." if row.flagged else "No rank."
    tier = "" if row.tier is None else f"Tier {row.tier}: these cannot be told from the tier's best. "
    return f"{tier}It could rank {_ranks(row)}." if _ranks(row) else tier.strip()


def _axis(head: MetricBoard) -> tuple[float, float]:
    """The ends of the bars' axis: around all intervals, and the bounds of what is ranked."""
    ends = [end for row in head.standings for end in (row.low, row.high, row.value) if end is not None]
    ends += [
        end
        for row in head.standings
        if row.rank is not None
        for end in (row.bound_low, row.bound_high)
        if end is not None
    ]
    if not ends:
        return 0.0, 0.0
    margin = (max(ends) - min(ends)) * _MARGIN or abs(max(ends)) * _MARGIN or 1.0
    return min(ends) - margin, max(ends) + margin


def _bar(row: Standing, head: MetricBoard, least: float, most: float) -> Bar | None:
    if row.value is None or least == most:
        return None

    def place(value: float | None, otherwise: float) -> float:
        at = otherwise if value is None else value
        return round(min(max(100.0 * (at - least) / (most - least), 0.0), 100.0), 2)

    said = "" if row.low is None else bar_span(row.low, row.high, head.scale).text
    bounds = _bounds(row, head)
    return Bar(
        low=place(row.low, row.value),
        high=place(row.high, row.value),
        value=place(row.value, row.value),
        least=place(row.bound_low, least) if row.open else place(row.value, row.value),
        most=place(row.bound_high, most) if row.open else place(row.value, row.value),
        words=f"{said}, could become {bounds}" if bounds else said,
    )


def _badges(row: Standing) -> Iterator[Badge]:
    if row.flagged:
        yield Badge(
            f"cov. {_percent(row.coverage)}",
            f"{row.n_scored:,} of {row.n_total:,} reports are scored; a system needs {FLAGGED_BELOW:.0%} to be ranked.",
            "bad",
        )
    if row.n_unscored:
        yield Badge(
            f"{row.n_unscored:,} unscored",
            f"{_reasons(row)}. What is missing counts as the worst it could be until it is there.",
            "open",
        )


def _percent(share: float) -> str:
    """A share that is not all, so never 100 %."""
    return f"{min(int(1000 * share) / 10, 99.9):g} %"


def _published_row(
    name: str, named: tuple[str, str], head: MetricBoard, columns: Sequence[HeadlineColumn]
) -> Row:
    known = {
        "system": Cell(text=name),
        "published": published(head, name),
    }
    return Row(
        system=name,
        label=named[0],
        short=named[1],
        tier=None,
        tip="No rank: only others have figures for it.",
        cells=tuple(known.get(column.key, Cell(text="-")) for column in columns),
        bar=None,
        badges=(Badge("published only", "These runs have no report of it."),),
    )


def _about(head: MetricBoard, board: Leaderboard) -> Iterator[Badge]:
    """What holds for the whole ranking."""
    if head.no_ranking:
        yield Badge("no ranking", f"No ranking: {head.no_ranking}.", "bad")
    if head.lower_is_better:
        yield Badge("lower is better", "The smallest value is the best.")
    left_out = (
        f" {head.n_without_gold:,} without gold are left out for all systems." if head.n_without_gold else ""
    )
    yield Badge(f"{head.n_tasks:,} tasks", f"Values are means over all of them.{left_out}")
    yield Badge(f"judge {head.judge}", "Who judged. Its fingerprint and settings are under How it was made.")
    if head.tau.mean is not None and head.rho.mean is not None:
        yield Badge(
            f"stability {head.tau.mean:.2f}",
            f"When tasks are resampled, the ranking agrees with this one at Kendall's tau {head.tau.mean:.2f} "
            f"({head.tau.low:.2f} to {head.tau.high:.2f}) and Spearman's rho {head.rho.mean:.2f} "
            f"({head.rho.low:.2f} to {head.rho.high:.2f}).",
        )
    noise = None if head.detail is None else head.detail.noise
    if noise is not None and noise.repeat_sd is not None:
        yield Badge(
            f"judge noise {number(noise.repeat_sd, head.scale)}",
            f"The judge's own scatter between repeats of one judgment (standard deviation), from {noise.n_used:,} "
            "scores.",
        )
