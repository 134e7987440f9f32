"""`adjudge rewards`: the rollouts of a log scored again."""

import argparse

from adjudge.engine.cli.exits import DONE, INCOMPLETE
from adjudge.engine.cli.figures import coefficient
from adjudge.engine.cli.notices import rejected
from adjudge.engine.cli.printing import out, print_result
from adjudge.engine.cli.sheet import Column, Sheet
from adjudge.engine.commands.interruption import interruptible
from adjudge.engine.commands.replay import Replay, replay
from adjudge.engine.config.run import RunConfig

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Score a log of rewards again, and print how the two differ."""
    config = RunConfig.load(options.config, store=options.store, judge=options.judge)
    found = interruptible(replay(options.log, config))
    rejected(found.examples)
    print_result(options, found, _print_replay)
    return DONE if found.is_whole else INCOMPLETE


def _print_replay(found: Replay) -> None:
    """Print rewards beside those of a replay: figures, groups, rollouts and a closing sentence."""
    console = out()
    for sheet in _sheets(found):
        console.print(sheet.table(console.width))
    console.print(found.said, markup=False, soft_wrap=True)


def _sheets(found: Replay) -> list[Sheet]:
    """Figures of a replay; then, where there are any, the groups that changed most and the rollouts that moved."""
    sheets = [_figures(found)]
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


def _figures(found: Replay) -> Sheet:
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
