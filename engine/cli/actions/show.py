"""`adjudge show`: the evidence behind a score."""

import argparse
from collections.abc import Iterable

from adjudge.engine.cli.exits import DONE
from adjudge.engine.cli.notices import unfinished
from adjudge.engine.cli.printing import out, print_result
from adjudge.engine.cli.sheet import Column, Sheet
from adjudge.engine.commands.show import CardEvidence, find_evidence
from adjudge.engine.leaderboard.missing import explained
from adjudge.engine.rendering.numbers import number

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Print the evidence behind a score."""
    unfinished(options.run_folder)
    print_result(options, find_evidence(options.run_folder, options.task, options.system), _print_evidence)
    return DONE


def _print_evidence(found: Iterable[CardEvidence]) -> None:
    """Print scores, then every line of evidence, page and question."""
    console = out()
    for item in found:
        card = item.card
        console.print(
            f"\n{card.protocol}: {card.system}, task {card.task_id}, sample {card.sample}, repeat {card.repeat}",
            style="bold",
            markup=False,
        )
        if card.scores:
            console.print(_scores_sheet(item).table(console.width))
        if card.reason is not None:
            console.print(f"  {card.status} ({card.reason})", markup=False)
        for why in dict.fromkeys([*card.reasons.values(), *([card.reason] if card.reason else [])]):
            console.print(f"  {explained(why)}", markup=False)
        for line in card.evidence:
            source = f"  {line.url}" if line.url else ""
            reason = f" ({line.reason})" if line.reason else ""
            console.print(f"  - {line.what}\n    {line.outcome}{reason}{source}", markup=False)
            for name, text in (("reason given", line.note), ("quoted", line.quote)):
                if text:
                    console.print(f"    {name}: {text}", markup=False)
        for page in item.pages:
            state = f"{page.chars:,} characters" if page.reason is None else page.reason
            moved = "" if page.final_url == page.url else f" -> {page.final_url}"
            console.print(f"  page {page.url}{moved}: {state}", markup=False)
        for question in item.questions:
            answer = question.text if question.answer is None else question.answer
            reason = f" ({question.reason})" if question.reason else ""
            console.print(f"  {question.question} {question.key}{reason}: {answer}", markup=False)


def _scores_sheet(found: CardEvidence) -> Sheet:
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
