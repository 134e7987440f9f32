"""The detail behind a ranking, as tables."""

from adjudge.engine.leaderboard.board import Leaderboard, MetricBoard
from adjudge.engine.leaderboard.detail import Detail
from adjudge.engine.leaderboard.missing import cause_of, remedy
from adjudge.engine.rendering.cells import Cell, Table, score, span
from adjudge.engine.rendering.numbers import number

__all__ = ["detail_tables"]


def detail_tables(head: MetricBoard, board: Leaderboard) -> list[Table]:
    """The tables of a headline metric's detail; empty ones are left out."""
    detail = head.detail
    if detail is None:
        return []
    tables = [_ranks(detail), _pairs(detail, head.scale), *_left_out(detail)]
    tables += [*_best_of(head, detail), *_cost(head, board, detail)]
    tables.append(_unscored(head))
    tables += [_noise(detail, head.scale, board)]
    return [table for table in tables if table.rows or table.note]


def _ranks(detail: Detail) -> Table:
    return Table(
        kind="ranks",
        title="Rank distribution",
        note="The share of the resamples in which each system has each rank.",
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
        note="On the tasks scored for both; paired t tests, corrected by Holm for the number of pairs.",
        columns=("system", "minus", "difference", "interval", "p", "Holm p", "tasks"),
        rows=tuple(
            (
                Cell(pair.a),
                Cell(pair.b),
                Cell(number(pair.difference, scale), pair.difference),
                span(pair.low, pair.high, scale),
                *(Cell("-" if p is None else f"{p:.3g}", p) for p in (pair.p, pair.holm)),
                Cell(str(pair.n_used), pair.n_used),
            )
            for pair in detail.pairs
        ),
    )


def _left_out(detail: Detail) -> list[Table]:
    found = detail.left_out
    if found is None:
        return []
    tau = (
        ""
        if found.least_tau is None
        else f"; the lowest Kendall's tau with the full ranking is {found.least_tau:.2f}"
    )
    note = (
        f"{found.n_kept} of the {found.n_tasks} tasks can each be left out without changing the ranking (consistent in "
        f"{found.n_kept / found.n_tasks:.1%}){tau}."
    )
    rows = (
        (Cell(name), Cell(str(best), best), Cell(str(worst), worst))
        for name, (best, worst) in found.ranks.items()
    )
    return [
        Table(
            kind="left out",
            title="Ranks without one task",
            note=note,
            columns=("system", "best", "worst"),
            rows=tuple(rows),
        )
    ]


def _best_of(head: MetricBoard, detail: Detail) -> list[Table]:
    if not detail.best_of:
        return []
    ks = sorted({one.k for one in detail.best_of})
    found = {(one.system, one.k): one for one in detail.best_of}
    rows = []
    for row in head.standings:
        cells = [Cell(row.system), score(row, head)]
        for k in ks:
            one = found[row.system, k]
            some = "" if one.n_scored == one.n_tasks else f" ({one.n_scored} of {one.n_tasks} tasks)"
            cells.append(Cell(f"{number(one.value, head.scale)}{some}", one.value))
        rows.append(tuple(cells))
    return [
        Table(
            kind="samples",
            title=f"{head.metric} of the best of several samples",
            note="The mean if only the best of so many of a system's reports per task were kept: over all ways to "
            "choose them, on the tasks with that many scored reports.",
            columns=("system", head.metric, *(f"best of {k}" for k in ks)),
            rows=tuple(rows),
        )
    ]


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
        best = ", ".join(_spent(axis) for axis in axes if (axis, row.system) in on)
        cells = [Cell("-" if value is None else f"{value:,.6g}", value) for value in figures]
        rows.append((Cell(row.system), score(row, head), *cells, Cell(best or "-")))
    return [
        Table(
            kind="cost",
            title="Score against resources per report",
            note="Means per report, as stated by the systems. On the frontier: no other scores as much for less.",
            columns=("system", head.metric, *map(_spent, axes), "on the frontier of"),
            rows=tuple(rows),
        )
    ]


def _spent(axis: str) -> str:
    return axis.replace("_", " ")


def _unscored(head: MetricBoard) -> Table:
    rows = [
        (
            Cell(row.system),
            Cell(reason),
            Cell(cause_of(reason)),
            Cell(str(count), count),
            Cell(remedy(reason)),
        )
        for row in head.standings
        for reason, count in row.unscored.items()
    ]
    note = (
        f"Scores of {head.metric} that are missing; each counts as the worst it could be until it is there."
    )
    return Table(
        kind="unscored",
        title="What was unscored, and why",
        note=note if rows else f"Nothing of {head.metric} was left unscored.",
        columns=("system", "reason", "cause", "scores", "what to do"),
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
        else f"is {number(noise.repeat_sd, scale)} (standard deviation)"
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
