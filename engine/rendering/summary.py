"""All protocols in one table: each system with its score and rank under every protocol, nothing summed up over them."""

from collections.abc import Sequence

import msgspec

from adjudge.engine.leaderboard.board import Standing
from adjudge.engine.rendering.cells import Cell
from adjudge.engine.rendering.headline import NAME, SHORT, Column, about_metric
from adjudge.engine.rendering.names import labels
from adjudge.engine.rendering.numbers import number
from adjudge.engine.rendering.standings import Ranking

__all__ = ["Place", "Summary", "SummaryRow", "summary"]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A system under one protocol: its score, its rank in words ("" for none) and its tier."""

    cell: Cell
    protocol: str
    rank: str
    tier: int | None


class SummaryRow(msgspec.Struct, frozen=True, kw_only=True):
    """A system under every protocol."""

    system: str
    label: str
    short: str
    places: tuple[Place, ...]


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The table, `by` the first protocol's order."""

    by: str
    columns: tuple[Column, ...]
    rows: tuple[SummaryRow, ...]


def summary(rankings: Sequence[Ranking]) -> Summary | None:
    """The table over all `rankings`; None where there is but one."""
    if len(rankings) < 2:
        return None
    heads = [one.head for one in rankings]
    found = [{row.system: row for row in head.standings} for head in heads]
    systems = list(dict.fromkeys(name for rows in found for name in rows))
    names, short = labels(systems, NAME), labels(systems, SHORT)
    return Summary(
        by=f"{rankings[0].title} {heads[0].metric}",
        columns=tuple(
            Column(
                key=f"p{place}",
                title=f"{one.title} {one.head.metric}",
                tip=about_metric(one.head),
                best="ascending" if one.head.lower_is_better else "descending",
            )
            for place, one in enumerate(rankings)
        ),
        rows=tuple(
            SummaryRow(
                system=name,
                label=names[name],
                short=short[name],
                places=tuple(_place(rows.get(name), one) for one, rows in zip(rankings, found, strict=True)),
            )
            for name in systems
        ),
    )


def _place(row: Standing | None, ranking: Ranking) -> Place:
    head = ranking.head
    if row is None or row.value is None:
        return Place(cell=Cell(text="-"), protocol=head.protocol, rank="", tier=None)
    return Place(
        cell=Cell(text=number(row.value, head.scale), sort=row.value, metric=head.metric),
        protocol=head.protocol,
        rank="" if row.rank is None else f"{row.rank:g}",
        tier=row.tier,
    )
