"""`adjudge gold`: gold drafted for review, or checked."""

import argparse
from typing import Any

from adjudge.engine.cli.configuration import select_section
from adjudge.engine.cli.exits import DONE, INCOMPLETE
from adjudge.engine.cli.printing import out, print_result
from adjudge.engine.cli.sheet import Column, Sheet
from adjudge.engine.commands.gold import DraftedGold, draft_gold
from adjudge.engine.commands.gold_check import GoldCheck, check_config, check_gold
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.leaderboard.missing import explained

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Have the judge draft gold and write it for review, or check gold."""
    config = _config(options)
    if options.check is not None:
        checked = check_gold(config, options.documents, options.of_run)
        print_result(options, checked, _print_check)
        return DONE if checked.is_clean else INCOMPLETE
    if options.of_run is not None:
        raise UsageError("--run: is for checking; add --check, or leave it out")
    if options.out is None:
        raise UsageError("--out: is missing; name a new file for the drafts, or pass --check to check gold")
    found = draft_gold(config, options.out, options.documents)
    print_result(options, found, _print_drafts)
    return INCOMPLETE if found.unscored else DONE


def _config(options: argparse.Namespace) -> RunConfig:
    """The configuration for `gold`: the file's under one protocol, or a file of tasks alone. Raises UsageError."""
    changed: dict[str, Any] = {
        "store": options.store,
        "judge": options.judge,
        "prompts": options.prompts,
        "format": options.format,
        "select": select_section(options),
        "protocols": None if options.protocol is None else [options.protocol],
    }
    if options.config is None:
        if not options.check:
            raise UsageError("gold: no configuration; name a CONFIG, or a file of tasks with --check FILE")
        return check_config(options.check, **changed)
    if options.protocol is None:
        raise UsageError("--protocol: is missing; name the protocol whose gold it is, such as race")
    if options.check:
        changed["tasks"], changed["format"] = options.check, "adjudge"
    return RunConfig.load(options.config, **changed)


def _print_drafts(found: DraftedGold) -> None:
    """Print what the judge drafted, and how to use it."""
    console = out()
    said = [
        f"{found.tasks:,} tasks in {found.out}: gold for {found.protocol} drafted by {found.judge} for "
        f"{found.drafted:,}, complete before for {found.complete:,}"
    ]
    if found.items:
        said.append(f"  passages found for {found.founded:,} of {found.items:,} drafted items")
    said += [
        f"  {count:,} tasks without passages: {explained(reason)}"
        for reason, count in found.unfounded.items()
    ]
    said += [f"  {count:,} without: {explained(reason)}" for reason, count in found.unscored.items()]
    said.append(f"Review and edit it, and check it: adjudge gold --check {found.out}")
    said.append(f"Then measure by it: tasks: {found.out}, format: adjudge")
    for line in said:
        console.print(line, markup=False, soft_wrap=True)


def _print_check(found: GoldCheck) -> None:
    """Print the problems of gold, how items separate systems, and what was left open."""
    console = out()
    if found.problems:
        console.print(_problems_sheet(found).table(console.width))
    if found.separation:
        console.print(_separation_sheet(found).table(console.width))
    said = [
        f"{found.items:,} items of {found.tasks:,} tasks checked with {found.judge}: {len(found.problems):,} problems"
    ]
    said += [
        f"  {count:,} questions without an answer: {explained(reason)}"
        for reason, count in found.unanswered.items()
    ]
    said += [f"  not checked: {why}" for why in found.unreadable]
    if found.unknown_sources:
        said.append(
            f"  passages not checked, because these are missing; pass --from: {', '.join(found.unknown_sources)}"
        )
    for line in said:
        console.print(line, markup=False, soft_wrap=True)


def _problems_sheet(found: GoldCheck) -> Sheet:
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


def _separation_sheet(found: GoldCheck) -> Sheet:
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
