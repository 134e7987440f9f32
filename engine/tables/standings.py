"""The standings of a protocol and all protocols beside each other, laid out once as tables; drawers choose columns.

The same layout holds for groups of tasks, whose blocks of rows stand one below the other. Every metric of a protocol's
table has a column; the ones that the protocol does not show are for the page's readers to choose.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal

import msgspec

from adjudge.engine.config.metrics import headlines
from adjudge.engine.runs.board import FLAGGED_BELOW, Grouping, Leaderboard, MetricBoard, Standing
from adjudge.engine.tables.cells import bar_span, bounds, number, score
from adjudge.engine.tables.table import Badge, Bar, Cell, Column, Table
from adjudge.judges.plural import plural
from adjudge.scoring.contract.scorecard import Metric

__all__ = [
    "Ranking",
    "about_metric",
    "by_group",
    "of_board",
    "published",
    "rankings",
    "standings",
    "summary",
    "words_of",
]

_End = Literal["ascending", "descending"]

_STEPS = 5  # of a power of ten: the ends of the bars' axis are whole ones
_SPARE = {
    "scored": 1,
    "published": 2,
    "beside": 3,
    "unscored": 4,
    "integrity": 5,
    "deviation": 6,
    "spread": 7,
    "n": 8,
}  # what gives way, the last first
_WORDS = ("group", "system", "unscored", "integrity")
_JOINED = ("rank interval", "interval", "bounds", "corrected interval")
_TIPS = {
    "rank": "Rank by the score, 1 is best, 2= is shared; its colour is the tier's.",
    "rank interval": "The ranks that tests between the systems do not rule out, nor what is missing.",
    "system": "The system that wrote the reports.",
    "interval": "The score's interval, in figures.",
    "deviation": "Standard deviation of the system's totals over its samples, else over the judge's repeats.",
    "spread": "How much it differs from task to task (standard deviation).",
    "n": "Reports that state it.",
    "bounds": "What the score could become once everything is scored; the score is the worst of it.",
    "as published": "The mean over what is scored, by the rule that the metric's name stands for. It ranks nothing.",
    "corrected": "An estimate of people's mean score, from the judge's scores of all tasks and people's of some.",
    "corrected interval": "The interval of the corrected score.",
    "edited": "The score with the verdicts that people overrode, each with a reason, in the place of the judge's.",
    "published": "The figure that others published.",
    "scored": "Reports scored, of all that were to be scored.",
    "unscored": "What was not scored, by reason.",
    "integrity": "What the reports do that the score may rest on; the notes say it in full.",
}


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


class _Block(msgspec.Struct, frozen=True):
    """The rows of one group: by metric, every system's standing; systems in the order of the ranked metric."""

    group: str
    rows: Mapping[str, Mapping[str, Standing]]
    systems: tuple[str, ...]

    @classmethod
    def of(cls, ranking: Ranking, group: str, boards: Sequence[MetricBoard]) -> "_Block":
        rows = {one.metric: {row.system: row for row in one.standings} for one in boards}
        first = next((one.metric for one in (ranking.head, *ranking.shown) if one.metric in rows), "")
        return cls(group, rows, tuple(rows.get(first, ())))


_Layout = list[tuple[Column, Callable[[_Block, str], Cell]]]


def rankings(metrics: Sequence[MetricBoard]) -> list[Ranking]:
    """The tables of every protocol in `metrics`, each with the metric that ranks it."""
    by_table: dict[tuple[str, str], list[MetricBoard]] = {}
    for metric in metrics:
        by_table.setdefault((metric.protocol, metric.table), []).append(metric)
    return [Ranking(head=headlines(found)[0], metrics=tuple(found)) for found in by_table.values()]


def standings(ranking: Ranking) -> Table:
    """The standings of a table; systems that only others have figures for come last."""
    head = ranking.head
    block = _Block.of(ranking, "", ranking.metrics)
    layout = _layout(ranking, ranking.metrics, [block])
    rows = [tuple(cell(block, system) for _, cell in layout) for system in block.systems]
    sign = 1.0 if head.lower_is_better else -1.0
    for system in sorted(head.published, key=lambda name: (sign * head.published[name], name)):
        if system not in block.systems:
            known = _published_alone(head, system)
            rows.append(tuple(known.get(column.kind, Cell("-", short="")) for column, _ in layout))
    return Table(
        kind="standings",
        title=f"Ranking by {head.metric}",
        columns=tuple(column for column, _ in layout),
        blocks=(tuple(rows),),
        badges=tuple(_about(head)),
        elsewhere="leaderboard.csv or --json",
    )


def by_group(ranking: Ranking, grouping: Grouping) -> Table:
    """The standings of a table in every group, as the mean over the groups, and over all tasks."""
    head = ranking.head
    parts = [(group.name or "none", _of(ranking, group.metrics)) for group in grouping.groups]
    known = {one.metric for _, boards in parts for one in boards}
    among = Ranking(head=head, metrics=tuple(one for one in ranking.metrics if one.metric in known))
    found = [_Block.of(among, _tasks(name, boards), boards) for name, boards in parts if boards]
    mean = _of(ranking, grouping.mean)
    if mean:
        found.append(_Block.of(among, f"mean over {plural(len(found), 'group')}", mean))
    found.append(_Block.of(among, _tasks("all", among.metrics), among.metrics))
    layout = _layout(among, among.shown, found)
    blocks = []
    for block in found:
        rows: list[tuple[Cell, ...]] = []
        for system in block.systems:
            group = Cell(block.group, short="" if rows else None)  # a terminal shows it once
            rows.append((group, *(_plain(cell(block, system)) for _, cell in layout)))
        blocks += [tuple(rows)] if rows else []
    return Table(
        kind="groups",
        title=f"{head.metric} by {grouping.attribute}",
        note="What is missing counts as the worst it could be, here too; in the mean over groups each counts the same.",
        columns=(Column(grouping.attribute, "group", words=True), *(column for column, _ in layout)),
        blocks=tuple(blocks),
        elsewhere="leaderboard.csv or --json",
    )


def of_board(ranking: Ranking, board: Leaderboard) -> Table:
    """The standings as they are printed: over all tasks, or by the attribute that was asked for."""
    grouping = next((one for one in board.groupings if one.attribute == board.by), None)
    found = standings(ranking) if grouping is None else by_group(ranking, grouping)
    by = "" if grouping is None else f" by {board.by}"
    title = f"{ranking.title}{by} (judge: {ranking.head.judge}; {ranking.head.basis})"
    return msgspec.structs.replace(found.shown.without("tier"), title=title, note="")


def summary(rankings: Sequence[Ranking]) -> Table | None:
    """All protocols in one table, nothing summed up over them; None where there is but one. The first one's order."""
    if len(rankings) < 2:
        return None
    found = [{row.system: row for row in one.head.standings} for one in rankings]
    return Table(
        kind="standings",
        title="All protocols",
        columns=(
            Column("system", "system", words=True),
            *(
                Column(
                    f"{one.title} {one.head.metric}",
                    f"p{place}",
                    tip=about_metric(one.head),
                    best=_best(one.head),
                )
                for place, one in enumerate(rankings)
            ),
        ),
        blocks=(
            tuple(
                (
                    Cell(system),
                    *(_placed(rows.get(system), one.head) for one, rows in zip(rankings, found, strict=True)),
                )
                for system in dict.fromkeys(name for rows in found for name in rows)
            ),
        ),
    )


def _placed(row: Standing | None, head: MetricBoard) -> Cell:
    """A system's score with its rank, whose colour is its tier's."""
    if row is None or row.value is None or row.rank is None:
        return msgspec.structs.replace(score(row, head), badges=(Badge("", kind="tier none"),))
    tier = "" if row.tier is None else f", tier {row.tier}"
    return msgspec.structs.replace(score(row, head), badges=(_pill(row, f"Rank {row.place}{tier}"),))


def _of(ranking: Ranking, boards: Sequence[MetricBoard]) -> list[MetricBoard]:
    """Those of `boards` that are of the table."""
    known = {(one.protocol, one.metric) for one in ranking.metrics}
    return [one for one in boards if (one.protocol, one.metric) in known]


def _tasks(name: str, boards: Sequence[MetricBoard]) -> str:
    return f"{name} ({plural(max(one.n_tasks for one in boards), 'task')})"


def _plain(cell: Cell) -> Cell:
    """A cell of a group: the evidence of its value is that of some tasks, not of all. A rank keeps its pill."""
    pills = (msgspec.structs.replace(one, tip="") for one in cell.badges if one.kind.startswith("tier"))
    return Cell(cell.text, cell.sort, short=cell.short, badges=tuple(pills))


def _layout(ranking: Ranking, metrics: Sequence[MetricBoard], blocks: Sequence[_Block]) -> _Layout:
    """The columns that hold something in any of `blocks`, with a column for each of `metrics`."""
    head = ranking.head
    own = [row for block in blocks for row in block.rows.get(head.metric, {}).values()]

    def column(kind: str, cell: Callable[[Standing], Cell], name: str = "", best: _End = "ascending") -> None:
        made = Column(
            name or kind,
            kind,
            words=kind in _WORDS,
            spare=_SPARE.get(kind, 0),
            joined=kind in _JOINED,
            tip=_TIPS.get(kind, ""),
            best=best,
        )
        layout.append((made, partial(_cell, head.metric, cell)))

    layout: _Layout = []
    column("rank", _rank)
    column("rank interval", _rank_interval)
    column("system", _name)
    for metric in metrics:
        if metric is not head:
            beside = Column(
                metric.metric,
                "beside",
                spare=_SPARE["beside"],
                tip=about_metric(metric),
                best=_best(metric),
                shown=metric.shown,
            )
            layout.append((beside, partial(_cell, metric.metric, partial(_value, metric=metric))))
            rows = (row for block in blocks for row in block.rows.get(metric.metric, {}).values())
            if metric.shown and any(_differs(row, metric) and not row.n_unscored for row in rows):
                # the published rule drops parts of reports that are scored
                dropping = msgspec.structs.replace(
                    beside, name=f"{metric.metric} as published", tip=_TIPS["as published"]
                )
                layout.append((dropping, partial(_cell, metric.metric, partial(as_published, metric=metric))))
            continue
        least, most = _ends(own, head.scale)
        axis = () if least == most else tuple(f"{end * head.scale:.10g}" for end in (least, most))
        value = Column(head.metric, "value", tip=about_metric(head), best=_best(head), axis=axis)
        layout.append(
            (value, partial(_cell, head.metric, partial(_barred, metric=head, least=least, most=most)))
        )
        column("interval", lambda row: bar_span(row.low, row.high, head.scale, head.decimals))
        if any(row.spread is not None for row in own):
            column("spread", lambda row: _figure(row.spread, head), "sd")
            column("n", lambda row: Cell(f"{row.n_scored:,}", row.n_scored))
        if any(row.deviation is not None for row in own):
            column("deviation", lambda row: _figure(row.deviation, head), "sd of totals")
        if any(row.open for row in own):
            column("bounds", partial(_bounds, metric=head))
        if any(_differs(row, head) for row in own):
            column("as published", partial(as_published, metric=head), best=_best(head))
        if any(row.corrected is not None for row in own):
            column("corrected", partial(_corrected, scale=head.scale), "corrected by people", _best(head))
            column("corrected interval", partial(_corrected_interval, scale=head.scale))
        if any(row.edited is not None for row in own):
            column("edited", lambda row: _figure(row.edited, head), "edited by people", _best(head))
        if head.published:
            column("published", lambda row: published(head, row.system), best=_best(head))
    column("tier", lambda row: Cell(str(row.tier or "-"), row.tier))
    column("scored", _scored)
    column("unscored", lambda row: Cell(_reasons(row) or "-", short=_reasons(row)))
    if any(row.signs for row in own):
        column("integrity", lambda row: Cell(words_of(row) or "-", short=words_of(row)))
    return layout


def _cell(metric: str, cell: Callable[[Standing], Cell], block: _Block, system: str) -> Cell:
    row = block.rows.get(metric, {}).get(system)
    return Cell("-") if row is None else cell(row)


def _published_alone(head: MetricBoard, system: str) -> dict[str, Cell]:
    """The cells of a system that only others have figures for, by the kinds of their columns."""
    return {
        "rank": msgspec.structs.replace(_unranked("No rank: only others have figures for it."), short=""),
        "system": Cell(system, badges=(Badge("published only", "These runs have no report of it."),)),
        "published": published(head, system),
    }


def published(metric: MetricBoard, system: str) -> Cell:
    """The published figure of `system`."""
    value = metric.published.get(system)
    return Cell(number(value, decimals=metric.decimals), value)


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


def _best(metric: MetricBoard) -> _End:
    return "ascending" if metric.lower_is_better else "descending"


def _rank(row: Standing) -> Cell:
    """A rank, as a pill whose colour is its tier's."""
    could = _rank_interval(row).text
    could = "" if could == "-" else f"It could rank {could}."
    if row.rank is None:
        return _unranked(f"No rank: less than {FLAGGED_BELOW:.0%} is scored." if row.flagged else "No rank.")
    tier = "" if row.tier is None else f"Tier {row.tier}: these cannot be told from the tier's best."
    return Cell(row.place, row.rank, badges=(_pill(row, f"{tier} {could}".strip()),))


def _pill(row: Standing, tip: str) -> Badge:
    """The rank of a system that has one."""
    tier = "tier" if row.tier is None else f"tier tier-{row.tier}"
    return Badge(row.place, tip, tier, unseen="" if row.tier is None else f"tier {row.tier}")


def _unranked(why: str) -> Cell:
    return Cell("-", badges=(Badge("-", why, "tier none"),))


def _rank_interval(row: Standing) -> Cell:
    if row.rank_low is None or row.rank_high is None:
        return Cell("-", short="")
    short = "" if row.rank_low == row.rank_high else f"({row.rank_low:g}-{row.rank_high:g})"
    return Cell(f"{row.rank_low:g} to {row.rank_high:g}", row.rank_low, short=short)


def _name(row: Standing) -> Cell:
    """A system, with what a reader must know of its score."""
    badges = []
    if row.flagged:
        share = min(int(1000 * row.coverage) / 10, 99.9)  # a share that is not all, so never 100 %
        scored = f"{row.n_scored:,} of {plural(row.n_total, 'report')}"
        tip = f"{scored} scored; a system needs {FLAGGED_BELOW:.0%} to be ranked."
        badges.append(Badge(f"cov. {share:g} %", tip, "bad"))
    if row.n_unscored:
        tip = f"{_reasons(row)}. What is missing counts as the worst it could be until it is there."
        badges.append(Badge(f"{row.n_unscored:,} unscored", tip, "open"))
    if row.signs:
        words = row.signs[0].words if len(row.signs) == 1 else f"{len(row.signs)} signs"
        badges.append(Badge(words, "\n".join(sign.said for sign in row.signs), "open"))
    return Cell(row.system, badges=tuple(badges))


def _value(row: Standing, metric: MetricBoard) -> Cell:
    """A system's value of `metric`, with its interval, rank and bounds as a tip."""
    if row.value is None:
        return Cell("-")
    parts = (
        []
        if row.low is None
        else [f"interval {bar_span(row.low, row.high, metric.scale, metric.decimals).text}"]
    )
    parts += [f"rank {row.place} by {metric.metric}"] if row.rank is not None else []
    parts += [f"could become {bounds(row, metric).text}"] if row.open else []
    if _differs(row, metric):
        parts.append(f"{as_published(row, metric).text} as published, over what is scored")
    return msgspec.structs.replace(score(row, metric), tip="; ".join(parts))


def _barred(row: Standing, metric: MetricBoard, least: float, most: float) -> Cell:
    """A system's value of the ranked metric, and its bar on an axis from `least` to `most`."""
    if row.value is None or least == most:
        return _value(row, metric)

    def place(value: float | None, otherwise: float) -> float:
        at = otherwise if value is None else value
        return round(min(max(100.0 * (at - least) / (most - least), 0.0), 100.0), 2)

    said = "" if row.low is None else bar_span(row.low, row.high, metric.scale, metric.decimals).text
    bar = Bar(
        low=place(row.low, row.value),
        high=place(row.high, row.value),
        value=place(row.value, row.value),
        least=place(row.bound_low, least) if row.open else place(row.value, row.value),
        most=place(row.bound_high, most) if row.open else place(row.value, row.value),
        words=f"{said}, could become {bounds(row, metric).text}" if row.open else said,
    )
    return msgspec.structs.replace(_value(row, metric), bar=bar)


def _ends(rows: Sequence[Standing], scale: float) -> tuple[float, float]:
    """The ends of the bars' axis, round once times `scale`: around all intervals, and the bounds of what is ranked."""
    ends = [end for row in rows for end in (row.low, row.high, row.value) if end is not None]
    ranked = (row for row in rows if row.rank is not None)
    ends += [end for row in ranked for end in (row.bound_low, row.bound_high) if end is not None]
    if not ends:
        return 0.0, 0.0
    low, high = min(ends), max(ends)
    apart = (high - low) * scale or abs(high) * scale or 1.0
    if not math.isfinite(apart) or apart < 1e-300:
        return low, high
    step = 10.0 ** math.floor(math.log10(apart)) / _STEPS / scale
    first, last = math.floor(low / step), math.ceil(high / step)
    return first * step, max(last, first + 1) * step


def _figure(value: float | None, metric: MetricBoard) -> Cell:
    return Cell(number(value, metric.scale, metric.decimals), value)


def as_published(row: Standing, metric: MetricBoard) -> Cell:
    """A system's figure by the rule that the metric's name stands for, which may drop what is missing."""
    return _figure(row.as_published, metric)


def _differs(row: Standing, metric: MetricBoard) -> bool:
    """Whether the published rule gives another number than the one that ranks, as they are written."""
    return row.as_published is not None and as_published(row, metric).text != _figure(row.value, metric).text


def _bounds(row: Standing, metric: MetricBoard) -> Cell:
    """What a value could become; a final one is sorted among them by itself."""
    return msgspec.structs.replace(bounds(row, metric), sort=row.bound_low)


def _corrected(row: Standing, scale: float) -> Cell:
    found = row.corrected
    return Cell("-") if found is None else Cell(number(found.value, scale), found.value)


def _corrected_interval(row: Standing, scale: float) -> Cell:
    found = row.corrected
    return bar_span(None, None) if found is None else bar_span(found.low, found.high, scale)


def _scored(row: Standing) -> Cell:
    text = f"{row.n_scored:,}/{row.n_total:,}"
    if not row.flagged:
        return Cell(text, row.coverage)
    return Cell(f"{text} (under {FLAGGED_BELOW:.0%})", row.coverage, short=f"{text} *")


def words_of(row: Standing) -> str:
    """The signs of a system's reports in one line."""
    return "; ".join(sign.words for sign in row.signs)


def _reasons(row: Standing) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in row.unscored.items())


def _about(head: MetricBoard) -> Iterator[Badge]:
    """What holds for the whole ranking."""
    if head.no_ranking:
        yield Badge("no ranking", f"No ranking: {head.no_ranking}.", "bad")
    if head.lower_is_better:
        yield Badge("lower is better", "The smallest value is the best.")
    lacking = (
        f" {head.n_without_gold:,} without gold are left out for all systems." if head.n_without_gold else ""
    )
    yield Badge(plural(head.n_tasks, "task"), f"Values are means over all of them.{lacking}")
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
            "The judge's own scatter between repeats of one judgment (standard deviation), from "
            f"{plural(noise.n_used, 'score')}.",
        )
