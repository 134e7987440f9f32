"""Results as tables for a terminal, which are also printed as Markdown."""

from adjudge.engine.cli.figures import bracketed, coefficient
from adjudge.engine.cli.sheet import Column, Sheet
from adjudge.engine.commands.attack import AttackReport
from adjudge.engine.commands.gold_check import GoldCheck
from adjudge.engine.commands.plan import Plan
from adjudge.engine.commands.replay import Replay
from adjudge.engine.commands.show import CardEvidence
from adjudge.engine.leaderboard.board import MetricBoard
from adjudge.engine.rendering.cells import number
from adjudge.engine.rendering.standings import Standings

__all__ = [
    "attack_sheet",
    "corrected_sheet",
    "gold_problems_sheet",
    "gold_separation_sheet",
    "judges_sheet",
    "plan_sheet",
    "replay_sheets",
    "scores_sheet",
    "standings_sheet",
]

_JOINED = ("rank interval", "interval", "bounds", "corrected interval")
_SPARE = {"scored": 1, "published": 2, "beside": 3, "unscored": 4}  # what gives way, the last first
_WORDS = ("group", "system", "unscored")


def standings_sheet(found: Standings, title: str) -> Sheet:
    """The standings, an interval in the column of its value."""
    columns = tuple(
        Column(column.name, column.kind in _WORDS, _SPARE.get(column.kind, 0))
        for column in found.columns
        if column.kind not in _JOINED
    )
    blocks = []
    for rows in found.blocks:
        block: list[tuple[str, ...]] = []
        for row in rows:
            cells: list[str] = []
            for column, cell in zip(found.columns, row, strict=True):
                text = cell.text if cell.short is None else cell.short
                if column.kind in _JOINED:
                    cells[-1] = f"{cells[-1]} {text}".rstrip()
                else:
                    cells.append("" if column.kind == "group" and block else text)
            block.append(tuple(cells))
        blocks.append(tuple(block))
    return Sheet(title=title, columns=columns, blocks=tuple(blocks), elsewhere="leaderboard.csv or --json")


def corrected_sheet(metric: MetricBoard) -> Sheet:
    """The judge's differences between systems, and those corrected by people's scores."""
    rows = []
    for row in metric.corrected_differences:
        found = row.corrected
        figures = (
            (row.raw, row.raw_low, row.raw_high),
            (found.value, found.low, found.high),
            (found.people, found.people_low, found.people_high),
        )
        cells = (bracketed(value, low, high, metric.scale) for value, low, high in figures)
        rows.append((row.a, row.b, *cells, f"{found.n_labelled:,}"))
    return Sheet(
        title=f"{metric.protocol}.{metric.metric}: differences, the judge's and corrected by people",
        columns=(
            Column("system", words=True),
            Column("minus", words=True),
            Column("judge"),
            Column("corrected"),
            Column("people alone", spare=2),
            Column("labelled", spare=1),
        ),
        blocks=(tuple(rows),),
    )


def plan_sheet(found: Plan) -> Sheet:
    """What a run would ask, one line per kind of question."""
    rows = tuple((found.words.get(kind, kind), f"{count:,}") for kind, count in found.questions.items())
    return Sheet(
        title=f"{found.scorecards:,} scorecards of {found.cases:,} cases, judged by {found.judge}",
        columns=(Column("questions: what is asked for", words=True), Column("number")),
        blocks=(rows,),
    )


def judges_sheet(found: Plan) -> Sheet:
    """What each judge would be asked."""
    rows = []
    for one in found.judges:
        counts = (one.to_ask, one.prompt_tokens, one.completion_tokens)
        cost = "unknown" if one.cost is None else f"{one.cost:,.2f}"
        rows.append((one.name, ", ".join(one.answers), *(f"{count:,}" for count in counts), cost))
    return Sheet(
        title="by judge",
        columns=(
            Column("judge", words=True),
            Column("answers", words=True),
            Column("to ask"),
            Column("prompt tokens", spare=1),
            Column("generated", spare=2),
            Column("cost"),
        ),
        blocks=(tuple(rows),),
    )


def scores_sheet(found: CardEvidence) -> Sheet:
    """The scores of a scorecard, one line per metric, and what those with missing parts could become."""
    card, rows = found.card, []
    for name, value in card.scores.items():
        scale, bounds = found.scales.get(name, 1.0), card.bounds.get(name)
        shown = number(value, scale) if value is not None else f"unscored: {card.reasons.get(name)}"
        could, parts = "", ""
        if bounds is not None and bounds.low != bounds.high:
            low, high = (
                "unbounded" if end is None else number(end, scale) for end in (bounds.low, bounds.high)
            )
            could, parts = f"{low} to {high}", f"{bounds.answered:,} of {bounds.parts:,}"
        rows.append((name, shown, could, parts))
    columns = (
        Column("metric", words=True),
        Column("score"),
        Column("could become"),
        Column("parts answered", spare=1),
    )
    shown_columns = columns if any(row[2] for row in rows) else columns[:2]
    return Sheet(columns=shown_columns, blocks=(tuple(row[: len(shown_columns)] for row in rows),))


def replay_sheets(found: Replay) -> list[Sheet]:
    """Figures of a replay; then, where there are any, the groups that changed most and the rollouts that moved."""
    sheets = [_replay_figures(found)]
    groups = [
        (
            _step(group.step),
            group.task,
            f"{group.rollouts:,}",
            coefficient(group.mean_before),
            coefficient(group.mean_after),
            coefficient(group.kendall),
        )
        for group in found.changed
    ]
    if groups:
        columns = _columns("step", "task", "rollouts", "before", "after", "tau")
        sheets.append(
            Sheet(title="groups whose order changed most", columns=columns, blocks=(tuple(groups),))
        )
    for title, rollouts in (
        ("rollouts that gained most", found.gained),
        ("rollouts that fell most", found.fell),
    ):
        rows = [
            (
                str(one.line),
                _step(one.step),
                one.task,
                coefficient(one.before),
                coefficient(one.after),
                f"{one.rank_before:g} -> {one.rank_after:g}",
                one.start,
            )
            for one in rollouts
        ]
        if rows:
            columns = _columns("line", "step", "task", "before", "after", "rank", "report")
            sheets.append(Sheet(title=title, columns=columns, blocks=(tuple(rows),)))
    return sheets


def _replay_figures(found: Replay) -> Sheet:
    counts = {
        "rollouts": found.rollouts,
        "with both rewards": found.both,
        **{f"without the new one: {reason}": count for reason, count in found.lost.items()},
        "with the new one alone": found.won,
        "with neither": found.neither,
        "lines that hold no rollout": found.rejected,
    }
    figures = {
        "mean reward before": coefficient(found.mean_before),
        "mean reward after": coefficient(found.mean_after),
        "Pearson's r": coefficient(found.pearson),
        "Spearman's rho": coefficient(found.spearman),
        "Kendall's tau": coefficient(found.kendall),
        "Kendall's tau within groups": coefficient(found.kendall_in_groups),
        "share that changed sides of its group's mean": coefficient(found.flipped),
        "rho of gain and length": coefficient(found.gain_by_length),
    }
    rows = [
        *((name, f"{count:,}") for name, count in counts.items()),
        ("groups with another best rollout", f"{found.best_changed:,} of {found.groups:,}"),
        *figures.items(),
    ]
    title = f"{found.log}: {', '.join(found.judges_before) or '-'}, then {found.judge_after}"
    return Sheet(title=title, columns=(Column("", words=True), Column("figure")), blocks=(tuple(rows),))


def _columns(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, words=name in ("task", "report")) for name in names)


def _step(step: int | None) -> str:
    return "-" if step is None else str(step)


def attack_sheet(found: AttackReport) -> Sheet:
    """A judge's flip rate, one line per kind of attack."""
    rows = [
        (
            row.kind,
            f"{row.tried:,}",
            f"{row.flipped:,}",
            "-" if row.rate is None else f"{row.rate:.1%}",
            "-" if row.low is None or row.high is None else f"{row.low:.1%} to {row.high:.1%}",
            f"{row.settled:,}",
            f"{row.unscored:,}",
        )
        for row in (*found.kinds, found.overall)
    ]
    unscored = ", ".join(f"{count:,} {reason}" for reason, count in found.reasons.items())
    said = {"flipped by": ", ".join(found.flipped), "unscored": unscored}
    return Sheet(
        title=f"{found.attacks:,} attacks on {found.judge}",
        columns=(
            Column("kind", words=True),
            Column("tried", spare=1),
            Column("flipped", spare=2),
            Column("rate"),
            Column("95 %"),
            Column("settled", spare=4),
            Column("unscored", spare=3),
        ),
        blocks=(tuple(rows),),
        said=tuple(f"{name}: {what}" for name, what in said.items() if what),
    )


def gold_problems_sheet(found: GoldCheck) -> Sheet:
    """The problems of gold, one line per item: what is wrong with it, and what to do."""
    rows = [
        (one.task_id, one.part, one.item or "(all)", f"{one.problem}: {one.why}", one.fix)
        for one in found.problems
    ]
    return Sheet(
        title="Problems",
        columns=(
            Column("task", words=True),
            Column("part", words=True, spare=1),
            Column("item", words=True),
            Column("problem", words=True),
            Column("what to do", words=True),
        ),
        blocks=(tuple(rows),),
    )


def gold_separation_sheet(found: GoldCheck) -> Sheet:
    """How items separate the systems of a run: the share that meets each, and its correlation with the others."""
    rows = [
        (
            one.task_id,
            one.part,
            one.item,
            f"{one.systems:,}",
            f"{one.share_met:.0%}",
            "-" if one.correlation is None else f"{one.correlation:.2f}",
        )
        for one in found.separation
    ]
    return Sheet(
        title="How items separate the systems",
        columns=(
            Column("task", words=True),
            Column("part", words=True, spare=1),
            Column("item", words=True),
            Column("systems", spare=2),
            Column("met by"),
            Column("correlation"),
        ),
        blocks=(tuple(rows),),
    )
