"""`adjudge plan`: what a run would ask, read and cost."""

import argparse

from rich.markup import escape

from adjudge.engine.cli.configuration import run_config
from adjudge.engine.cli.exits import DONE, INCOMPLETE
from adjudge.engine.cli.notices import rejected
from adjudge.engine.cli.printing import out, print_result
from adjudge.engine.cli.sheet import Column, Sheet
from adjudge.engine.commands.plan import ASSUMED_PAGE_CHARS, Plan, plan
from adjudge.engine.leaderboard.missing import explained

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Print what a run would ask, read and cost."""
    found = plan(run_config(options))
    rejected(found.rejected)
    print_result(options, found, _print_plan)
    return INCOMPLETE if found.rejected or found.unscored else DONE


def _print_plan(found: Plan) -> None:
    """Print what a run would ask, read and cost."""
    console = out()
    asked = sum(found.questions.values()) - found.stored
    console.print(_questions_sheet(found).table(console.width))
    console.print(f"to ask: {asked:,}; in the store already: {found.stored:,}")
    if found.oversized:
        kinds = "; ".join(
            f"{count:,} of {found.words.get(kind, kind)}" for kind, count in found.oversized.items()
        )
        console.print(
            f"too long for the judge's window of {found.window:,} tokens: about {kinds}", markup=False
        )
    if found.window_unsaid and asked:
        console.print(
            "the judge's window is not known, so prompts are not checked against it: start the judge, or set judge: "
            "max_context"
        )
    if found.unscored:
        console.print("scorecards that no judge can score:")
        for reason, count in found.unscored.items():
            console.print(f"  {count:,} {explained(reason)}", markup=False)
        for why in found.lacking.values():
            console.print(f"  {why}", markup=False, soft_wrap=True)
    shared = found.shared_tokens / found.prompt_tokens if found.prompt_tokens else 0.0
    console.print(
        f"prompt tokens: about {found.prompt_tokens:,}, of them {found.shared_tokens:,} ({shared:.0%}) repeat a "
        "context; "
        f"generated: about {found.completion_tokens:,}"
    )
    console.print(
        f"pages: {found.pages:,}, of them {found.pages_unread:,} not read yet "
        f"(taken as {ASSUMED_PAGE_CHARS:,} characters)"
    )
    if len(found.judges) > 1:
        console.print(_judges_sheet(found).table(console.width))
    if found.seconds is None or found.cost is None:
        unknown = (one for one in found.judges if one.seconds is None or one.cost is None)
        unpriced = dict.fromkeys(name for one in unknown for name in one.unpriced or (one.name,))
        console.print(
            f"time and cost: unknown; add prices: {{{escape(', '.join(f'{name}: ...' for name in unpriced))}}} to the "
            "configuration"
        )
    else:
        console.print(f"time: about {found.seconds:,.0f} s; cost: about {found.cost:,.2f}")


def _questions_sheet(found: Plan) -> Sheet:
    """What a run would ask, one line per kind of question."""
    rows = tuple((found.words.get(kind, kind), f"{count:,}") for kind, count in found.questions.items())
    return Sheet(
        title=f"{found.scorecards:,} scorecards of {found.cases:,} cases, judged by {found.judge}",
        columns=(Column("questions: what is asked for", words=True), Column("number")),
        blocks=(rows,),
    )


def _judges_sheet(found: Plan) -> Sheet:
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
