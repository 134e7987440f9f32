"""`adjudge attack`: the injection suite tried on a judge."""

import argparse

from adjudge.engine.cli.exits import DONE, INCOMPLETE
from adjudge.engine.cli.printing import print_sheet
from adjudge.engine.cli.sheet import Column, Sheet
from adjudge.engine.commands.attack import AttackReport, attack, load_attacks
from adjudge.engine.commands.interruption import interruptible
from adjudge.engine.config.judge import JudgeConfig
from adjudge.engine.evaluation.assembly import make_judge
from adjudge.prompts import PromptBook

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Try the injection suite on a judge."""
    found = interruptible(_attacked(options))
    print_sheet(options, found, _sheet)
    return INCOMPLETE if found.overall.unscored else DONE


async def _attacked(options: argparse.Namespace) -> AttackReport:
    attacks = load_attacks(options.file)
    judge = make_judge(JudgeConfig.from_spec(options.judge), PromptBook())
    try:
        return await attack(judge, attacks)
    finally:
        await judge.close()


def _sheet(found: AttackReport) -> Sheet:
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
