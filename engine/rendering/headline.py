"""The table that a protocol's section opens with: rank, tier, name, score, its interval as a bar, and badges.

Every metric of the table has a column, of which a reader chooses; the ones that the protocol does not show are hidden.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from adjudge.engine.leaderboard.board import FLAGGED_BELOW, Leaderboard, MetricBoard, Standing
from adjudge.engine.rendering.cells import Cell, span
from adjudge.engine.rendering.names import labels
from adjudge.engine.rendering.numbers import number
from adjudge.engine.rendering.standings import Ranking
from adjudge.scoring.contract.scorecard import Metric

__all__ = ["Badge", "Bar", "Column", "Headline", "Row", "about_metric", "headline"]

NAME = 120  # letters of a system's name in a table, and in a narrow one
SHORT = 28
_MARGIN = 0.04  # of the bars' axis, beside the outermost interval


class Badge(msgspec.Struct, frozen=True):
    """A few words with an explanation; `kind` is its class (base.css)."""

    text: str
    tip: str
    kind: str = "plain"


class Column(msgspec.Struct, frozen=True, kw_only=True):
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

    columns: tuple[Column, ...]
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
    rows += [_published_alone(name, (names[name], short[name]), head, columns) for name in alone]
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


def _columns(head: MetricBoard, confidence: float) -> Iterator[Column]:
    yield Column(key="rank", title="rank", tip="Rank by the score, 1 is best; beside it the tier.")
    yield Column(key="system", title="system", tip="The system that wrote the reports.", number=False)
    yield _metric(head, True)
    yield Column(
        key="bar",
        title=f"{confidence:.0%} interval",
        tip="The score's interval over resampled tasks; the thin line is what it could become once all is scored.",
        best=_best(head),
        number=False,
    )
    if any(row.corrected is not None for row in head.standings):
        yield Column(
            key="corrected",
            title="corrected by people",
            tip="An estimate of people's mean score, from the judge's scores of all tasks and people's of some.",
            best=_best(head),
        )
        yield Column(
            key="corrected interval",
            title="corrected interval",
            tip="The interval of the corrected score.",
            best=_best(head),
            shown=False,
        )
    if head.published:
        yield Column(
            key="published", title="published", tip="The figure that others published.", best=_best(head)
        )


def _last(head: MetricBoard) -> Iterator[Column]:
    more = {
        "rank interval": "The ranks it could have, over resampled tasks and all that is missing.",
        "interval": "The score's interval, in figures.",
        "bounds": "What the score could become once everything is scored.",
        "scored": "Reports scored, of all that were to be scored.",
        "unscored": "What was not scored, by reason.",
    }
    for key, tip in more.items():
        if key != "bounds" or any(row.open for row in head.standings):
            yield Column(key=key, title=key, tip=tip, number=key != "unscored", shown=False)


def _metric(metric: MetricBoard, shown: bool) -> Column:
    return Column(
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
        yield Cell(text="-") if found is None else span(found.low, found.high, head.scale)
    if head.published:
        theirs = head.published.get(row.system)
        yield Cell(text=number(theirs), sort=theirs)


def _last_cells(row: Standing, head: MetricBoard) -> Iterator[Cell]:
    yield Cell(text=_ranks(row) or "-", sort=row.rank_low)
    yield span(row.low, row.high, head.scale)
    if any(one.open for one in head.standings):
        yield Cell(text=_bounds(row, head) or "-", sort=row.bound_low)
    yield Cell(text=f"{row.n_scored:,}/{row.n_total:,}", sort=row.coverage)
    yield Cell(text=_reasons(row) or "-")


def _value(row: Standing | None, metric: MetricBoard) -> Cell:
    if row is None or row.value is None:
        return Cell(text="-")
    parts = [] if row.low is None else [f"interval {span(row.low, row.high, metric.scale).text}"]
    parts += [f"rank {row.rank:g} by {metric.metric}"] if row.rank is not None else []
    parts += [f"could become {found}"] if (found := _bounds(row, metric)) else []
    return Cell(
        text=number(row.value, metric.scale), sort=row.value, tip="; ".join(parts), metric=metric.metric
    )


def _bounds(row: Standing, metric: MetricBoard) -> str:
    """What the value could become, "" where it is final."""
    if not row.open:
        return ""
    low = number(row.bound_low, metric.scale)
    return f"{low} or more" if row.bound_high is None else f"{low} to {number(row.bound_high, metric.scale)}"


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

    said = "" if row.low is None else span(row.low, row.high, head.scale).text
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


def _published_alone(name: str, named: tuple[str, str], head: MetricBoard, columns: Sequence[Column]) -> Row:
    known = {
        "system": Cell(text=name),
        "published": Cell(text=number(head.published[name]), sort=head.published[name]),
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
