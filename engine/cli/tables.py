"""Results as terminal tables, which are also printed as Markdown."""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.markup import escape
from rich.table import Table

from adjudge.engine.commands.agreement import MetricAgreement
from adjudge.engine.commands.attack import AttackReport
from adjudge.engine.commands.check import POWER, Check
from adjudge.engine.commands.compare import Comparison
from adjudge.engine.commands.labels import LabelAgreement
from adjudge.engine.commands.preferences import MetricPreference
from adjudge.engine.commands.replay import Replay
from adjudge.engine.leaderboard.board import MetricBoard
from adjudge.engine.rendering.standings import Column, Standings

__all__ = [
    "agreement_table",
    "attack_table",
    "check_table",
    "comparison_table",
    "corrected_table",
    "labels_table",
    "preferences_table",
    "replay_tables",
    "standings_tables",
]

_JOINED = ("rank interval", "interval", "bounds", "corrected interval")
_HEADS = ("group", "system")  # of every part of a table that is wider than the terminal


def standings_tables(found: Standings, title: str, width: int) -> list[Table]:
    """The standings, an interval in the column of its value; what does not fit `width` follows in further tables."""
    columns, blocks = _joined(found)
    widths = [
        max(cell_len(text) for text in (column.name, *(row[place] for rows in blocks for row in rows)))
        for place, column in enumerate(columns)
    ]
    heads = [place for place, column in enumerate(columns) if column.kind in _HEADS]
    tables: list[Table] = []
    for places in _parts(widths, heads, width):
        table = Table(
            title=escape(f"{title}, continued" if tables else title), title_justify="left", title_style="bold"
        )
        for place in places:
            column = columns[place]
            table.add_column(
                escape(column.name),
                justify="right" if column.numeric else "left",
                no_wrap=column.numeric,
                overflow="fold",
            )
        for rows in blocks:
            for row in rows:
                table.add_row(*(escape(row[place]) for place in places))
            table.add_section()
        tables.append(table)
    return tables


def _joined(found: Standings) -> tuple[list[Column], list[list[list[str]]]]:
    """The columns that stand alone, and their cells with those that follow in one column; a group is named once."""
    columns = [column for column in found.columns if column.kind not in _JOINED]
    blocks = []
    for rows in found.blocks:
        block: list[list[str]] = []
        for row in rows:
            cells: list[str] = []
            for column, cell in zip(found.columns, row, strict=True):
                text = cell.text if cell.short is None else cell.short
                if column.kind in _JOINED:
                    cells[-1] = f"{cells[-1]} {text}".rstrip()
                else:
                    cells.append("" if column.kind == "group" and block else text)
            block.append(cells)
        blocks.append(block)
    return columns, blocks


def _parts(widths: Sequence[int], heads: Sequence[int], width: int) -> list[list[int]]:
    """The columns of each table, all in order, `heads` in each of them; as many as fit into `width`."""
    parts: list[list[int]] = []
    room = 0
    for place, own in enumerate(widths):
        if place in heads:
            continue
        if not parts or (own + 3 > room and len(parts[-1]) > len(heads)):
            parts.append([*heads])
            room = width - 1 - sum(widths[head] + 3 for head in heads)
        parts[-1].append(place)
        room -= own + 3
    return [sorted(part) for part in parts]


def corrected_table(metric: MetricBoard) -> Table:
    """The judge's differences between systems, and those corrected by people's scores."""
    table = Table(
        title=escape(f"{metric.protocol}.{metric.metric}: differences, the judge's and corrected by people"),
        title_justify="left",
        title_style="bold",
    )
    for name in ("system", "minus", "judge", "corrected", "people alone", "labelled"):
        table.add_column(name, justify="left" if name in ("system", "minus") else "right")
    for row in metric.corrected_differences:
        found = row.corrected
        figures = (
            (row.raw, row.raw_low, row.raw_high),
            (found.value, found.low, found.high),
            (found.people, found.people_low, found.people_high),
        )
        cells = (
            _number(value, metric.scale)
            + (
                ""
                if low is None
                else escape(f" [{_number(low, metric.scale)}, {_number(high, metric.scale)}]")
            )
            for value, low, high in figures
        )
        table.add_row(escape(row.a), escape(row.b), *cells, str(found.n_labelled))
    return table


def comparison_table(found: Comparison) -> Table:
    """Paired tests, one line per metric."""
    table = Table(
        title=f"{escape(found.a)} minus {escape(found.b)}, on the tasks scored for both",
        title_justify="left",
        title_style="bold",
    )
    for name in ("metric", "difference", "95 %", "t p", "Holm p", "Wilcoxon p", "sign-flip p", "d", "tasks"):
        table.add_column(name, justify="left" if name == "metric" else "right")
    for row in found.metrics:
        span = "-" if row.low is None else f"{_number(row.low, row.scale)} to {_number(row.high, row.scale)}"
        chances = (row.t_p, row.holm_p, row.wilcoxon_p, row.sign_flip_p)
        table.add_row(
            escape(f"{row.protocol}.{row.metric}"),
            _number(row.difference, row.scale),
            span,
            *("-" if p is None else f"{p:.3g}" for p in chances),
            _number(row.cohens_d, 1.0),
            str(row.n_used),
        )
    return table


def check_table(found: Check) -> Table:
    """The check of a run, one line per system and metric; what did not pass, and notes, underneath."""
    margin = "any significant drop" if found.max_drop is None else f"a drop of {found.max_drop:g}"
    table = Table(
        title=escape(
            f"{found.run} against {found.baseline}: {found.outcome} ({margin}, alpha {found.alpha:g})"
        ),
        title_justify="left",
        title_style="bold",
        caption_justify="left",
    )
    span, could = f"{1 - 2 * found.alpha:.0%}", f"could show ({POWER:.0%})"
    for name in ("system", "metric", "baseline", "run", "drop", span, "Holm p", could, "tasks", "outcome"):
        table.add_column(name, justify="left" if name in ("system", "metric", "outcome") else "right")
    for row in found.metrics:
        named = row.system if row.system == row.against else f"{row.system} (against {row.against})"
        interval = "-" if row.low is None else f"{_number(row.low, 1.0)} to {_number(row.high, 1.0)}"
        table.add_row(
            escape(named),
            escape(f"{row.protocol}.{row.metric}"),
            *(_number(value, 1.0) for value in (row.before, row.after, row.drop)),
            interval,
            "-" if row.holm_p is None else f"{row.holm_p:.3g}",
            _number(row.detectable, 1.0),
            f"{row.n_used}/{row.n_tasks}",
            row.outcome,
        )
    said = [
        *([] if found.outcome == "passed" else [found.summary]),
        *(f"note: {note}" for note in found.notes),
    ]
    table.caption = escape("\n".join(said)) or None
    return table


def agreement_table(found: Iterable[MetricAgreement]) -> Table:
    """Agreement, one line per metric."""
    table = Table()
    rows = list(found)
    people = ("par", "par_dr3", "opc", "fap", "fas", "pooled_r", "pooled_rho", "par_people")
    raters = ("icc_1_1", "icc_2_k", "alpha", "kappa", "kappa_quadratic")
    names = [name for name in (*people, *raters) if any(getattr(row, name) is not None for row in rows)]
    for name in ("metric", *names, "systems", "reports"):
        table.add_column(name, justify="left" if name == "metric" else "right", no_wrap=name == "metric")
    for row in rows:
        figures = (_with_interval(getattr(row, name), row.intervals.get(name)) for name in names)
        table.add_row(escape(f"{row.protocol}.{row.metric}"), *figures, str(row.n_systems), str(row.n_cases))
        if row.left_out:
            table.caption = escape(
                f"left out, because the run does not have these rated reports: {row.left_out}"
            )
    return table


def labels_table(found: Iterable[LabelAgreement]) -> Table:
    """Agreement of single verdicts with people's: a line for each protocol, and for each verdict."""
    table = Table(caption_justify="left")
    for name in (
        "protocol",
        "verdict",
        "accuracy",
        "kappa",
        "alpha",
        "recall",
        "precision",
        "people",
        "judge",
    ):
        table.add_column(name, justify="left" if name in ("protocol", "verdict") else "right")
    said = []
    for row in found:
        whole = (
            _with_interval(row.accuracy, row.accuracy_interval),
            *(_number(one, 1.0) for one in (row.kappa, row.alpha)),
        )
        table.add_row(escape(row.protocol), "all", *whole, "", "", str(row.n_items), str(row.n_items))
        for one in row.verdicts:
            shares = (
                _with_interval(one.recall, one.recall_interval),
                _with_interval(one.precision, one.precision_interval),
            )
            table.add_row("", escape(one.verdict), "", "", "", *shares, str(one.n_people), str(one.n_judge))
        counts = {
            "without a verdict of the judge": row.n_unscored,
            "without a majority of raters": row.n_tied,
        }
        said += [f"{row.protocol}: left out: {count} {why}" for why, count in counts.items() if count]
        if row.left_out:
            said.append(f"left out, because the run does not have it: {row.left_out}")
    table.caption = escape("\n".join(dict.fromkeys(said))) or None
    return table


def preferences_table(found: Iterable[MetricPreference]) -> Table:
    """Agreement with people's preferences, one line per metric and subset."""
    table = Table()
    for name in ("metric", "subset", "best of set", "by chance", "of pairs", "ties test", "sets", "unscored"):
        table.add_column(name, justify="left" if name in ("metric", "subset") else "right")
    for row in found:
        interval = None if row.low is None or row.high is None else (row.low, row.high)
        for subset, one in {"": row.overall, **row.subsets}.items():
            table.add_row(
                "" if subset else escape(f"{row.protocol}.{row.metric}"),
                escape(subset) or "all",
                _with_interval(one.best_of, None if subset else interval),
                "" if subset else f"{row.chance:.3f}",
                _number(one.pairwise, 1.0),
                "" if subset or row.ties is None else _number(row.ties.overall, 1.0),
                str(one.n_scored),
                str(one.n_unscored),
            )
    return table


def replay_tables(found: Replay) -> list[Table]:
    """Figures of a replay; then, where there are any, the groups that changed most and the rollouts that moved."""
    tables = [_replay_figures(found)]
    if found.changed:
        tables.append(
            _table("groups whose order changed most", "step", "task", "rollouts", "before", "after", "tau")
        )
        for group in found.changed:
            means = (
                _number(group.mean_before, 1.0),
                _number(group.mean_after, 1.0),
                _number(group.kendall, 1.0),
            )
            tables[-1].add_row(_step(group.step), escape(group.task), str(group.rollouts), *means)
    for title, rollouts in (
        ("rollouts that gained most", found.gained),
        ("rollouts that fell most", found.fell),
    ):
        if rollouts:
            tables.append(_table(title, "line", "step", "task", "before", "after", "rank", "report"))
        for one in rollouts:
            values = (_number(one.before, 1.0), _number(one.after, 1.0))
            rank = f"{one.rank_before:g} -> {one.rank_after:g}"
            tables[-1].add_row(
                str(one.line), _step(one.step), escape(one.task), *values, rank, escape(one.start)
            )
    return tables


def _replay_figures(found: Replay) -> Table:
    table = _table(
        f"{found.log}: {', '.join(found.judges_before) or '-'}, then {found.judge_after}", "", "figure"
    )
    counts = {
        "rollouts": found.rollouts,
        "with both rewards": found.both,
        **{f"without the new one: {reason}": count for reason, count in found.lost.items()},
        "with the new one alone": found.won,
        "with neither": found.neither,
        "lines that hold no rollout": found.rejected,
    }
    figures = {
        "mean reward before": found.mean_before,
        "mean reward after": found.mean_after,
        "Pearson's r": found.pearson,
        "Spearman's rho": found.spearman,
        "Kendall's tau": found.kendall,
        "Kendall's tau within groups": found.kendall_in_groups,
        "share that changed sides of its group's mean": found.flipped,
        "rho of gain and length": found.gain_by_length,
    }
    for name, count in counts.items():
        table.add_row(escape(name), f"{count:,}")
    table.add_row("groups with another best rollout", f"{found.best_changed:,} of {found.groups:,}")
    for name, value in figures.items():
        table.add_row(name, _number(value, 1.0))
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=escape(title), title_justify="left", title_style="bold")
    for name in columns:
        table.add_column(name, justify="left" if name in ("", "task", "report") else "right")
    return table


def _step(step: int | None) -> str:
    return "-" if step is None else str(step)


def attack_table(found: AttackReport) -> Table:
    """A judge's flip rate, one line per kind of attack."""
    table = Table(
        title=f"{found.attacks} attacks on {escape(found.judge)}",
        title_justify="left",
        title_style="bold",
        caption_justify="left",
    )
    for name in ("kind", "tried", "flipped", "rate", "95 %", "settled", "unscored"):
        table.add_column(name, justify="left" if name == "kind" else "right")
    for row in (*found.kinds, found.overall):
        rate = "-" if row.rate is None else f"{row.rate:.1%}"
        span = "-" if row.low is None or row.high is None else f"{row.low:.1%} to {row.high:.1%}"
        counts = (str(row.settled), str(row.unscored))
        table.add_row(escape(row.kind), str(row.tried), str(row.flipped), rate, span, *counts)
    unscored = ", ".join(f"{count} {reason}" for reason, count in found.reasons.items())
    said = {"flipped by": ", ".join(found.flipped), "unscored": unscored}
    table.caption = "; ".join(f"{name}: {escape(what)}" for name, what in said.items() if what) or None
    return table


def _with_interval(value: float | None, interval: tuple[float, float] | None) -> str:
    text = "-" if value is None else f"{value:.3f}"
    return text if interval is None else f"{text}\n{interval[0]:.2f} to {interval[1]:.2f}"


def _number(value: float | None, scale: float) -> str:
    return "-" if value is None else f"{value * scale:.3f}"
