"""Prints results for people, on stdout."""

import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from adjudge.engine.cli.sheet import Sheet
from adjudge.engine.cli.tables import (
    corrected_sheet,
    gold_problems_sheet,
    gold_separation_sheet,
    judges_sheet,
    plan_sheet,
    replay_sheets,
    scores_sheet,
    standings_sheet,
)
from adjudge.engine.cli.terminal import Terminal
from adjudge.engine.commands.doctor import Finding
from adjudge.engine.commands.evaluate import RunResult
from adjudge.engine.commands.export_run import ExportResult
from adjudge.engine.commands.fetch import FetchSummary
from adjudge.engine.commands.gold import DraftedGold
from adjudge.engine.commands.gold_check import GoldCheck
from adjudge.engine.commands.import_results import PAGES, ImportResult
from adjudge.engine.commands.plan import ASSUMED_PAGE_CHARS, Plan
from adjudge.engine.commands.replay import Replay
from adjudge.engine.commands.show import CardEvidence
from adjudge.engine.commands.snapshot import SnapshotResult
from adjudge.engine.formats import Rejected
from adjudge.engine.leaderboard.board import Leaderboard
from adjudge.engine.leaderboard.missing import explained
from adjudge.engine.records.matrices import read_scores
from adjudge.engine.records.record import RunRecord, is_finished
from adjudge.engine.records.so_far import provisional
from adjudge.engine.rendering.standings import Ranking, by_group, rankings, standings
from adjudge.engine.store.repair import ASIDE, Repaired
from adjudge.engine.store.upkeep import Rewritten, TableContent
from adjudge.engine.telemetry.logs import event, is_json
from adjudge.engine.viewer import Exported

__all__ = [
    "contents",
    "evidence",
    "exported",
    "fetched",
    "findings",
    "frozen",
    "gold",
    "gold_check",
    "imported",
    "label_sheet",
    "leaderboard",
    "pages_exported",
    "plan",
    "rejected",
    "repaired",
    "replayed",
    "result",
    "rewritten",
    "sheet",
    "unfinished",
]

_log = logging.getLogger(__name__)

_SHOWN_REJECTED = 20
_PIPE_WIDTH = 400


def _out() -> Terminal:
    console = Terminal(highlight=False)
    return console if console.is_terminal else Terminal(highlight=False, width=_PIPE_WIDTH)


def rejected(lines: Sequence[Rejected]) -> None:
    """Print the lines that were left out, on stderr."""
    if is_json():
        for line in lines[:_SHOWN_REJECTED]:
            event(_log, "line left out", logging.WARNING, why=str(line))
        return
    console = Terminal(stderr=True, soft_wrap=True, highlight=False)
    for line in lines[:_SHOWN_REJECTED]:
        console.print(f"left out: {line}", style="yellow", markup=False)
    if len(lines) > _SHOWN_REJECTED:
        console.print(f"left out: {len(lines) - _SHOWN_REJECTED} more lines", style="yellow")


def unfinished(folder: str) -> None:
    """Say on stderr how far the run in `folder` is, if it has not finished. Raises UsageError, StoreError."""
    if is_finished(Path(folder)):
        return
    said = provisional(RunRecord.read(Path(folder)), read_scores([Path(folder)]))
    if is_json():
        event(_log, "run unfinished", logging.WARNING, why=said)
    elif said:
        Terminal(stderr=True, soft_wrap=True, highlight=False).print(said, style="yellow", markup=False)


def result(run: RunResult) -> None:
    """Print a finished run: its leaderboard, and the work it took."""
    leaderboard(run.leaderboard, Path(run.out) / "leaderboard.html")
    console = _out()
    asked = " (all answered from the store)" if run.from_store and not run.from_judge else ""
    console.print(
        f"{run.scorecards} scorecards, {run.unscored} unscored; judgments: {run.from_judge} asked, "
        f"{run.from_store} from the store{asked}; pages: {run.pages_read} read, {run.pages_from_store} from the store; "
        f"{run.seconds:.1f} s",
        markup=False,
        soft_wrap=True,
    )


def imported(run: ImportResult) -> None:
    """Print an imported run: its leaderboard, and what was read."""
    leaderboard(run.leaderboard, Path(run.out) / "leaderboard.html")
    pages = f"; pages: {run.pages} recorded, in {Path(run.out) / PAGES}" if run.pages else ""
    _out().print(
        f"{run.scorecards} recorded scorecards, {run.unscored} unscored{pages}", markup=False, soft_wrap=True
    )


def exported(found: ExportResult) -> None:
    """Print where files were written."""
    _out().print(f"{len(found.files)} files in {found.out}", markup=False, soft_wrap=True)


def frozen(found: SnapshotResult) -> None:
    """Print where pages were written."""
    beside = f", and as {found.warc}" if found.warc else ""
    _out().print(f"{found.pages} pages in {found.out}{beside}", markup=False, soft_wrap=True)


def label_sheet(found: dict[str, str | int]) -> None:
    """Print where a table of verdicts to label was written, and what to do with it."""
    _out().print(
        f"{found['items']} verdicts to label in {found['out']}: fill in the column label, then pass the file to "
        "adjudge agreement --labels",
        markup=False,
        soft_wrap=True,
    )


def pages_exported(found: Exported) -> None:
    """Print where pages were written, and what they leave out."""
    console = _out()
    console.print(
        f"{found.files:,} files, {found.bytes / 1e6:,.1f} MB: put {found.out} on any web host, or open "
        f"{Path(found.out) / 'index.html'}; search engines are asked not to list it",
        markup=False,
        soft_wrap=True,
    )
    for line in found.left_out:
        console.print(f"left out: {line}", markup=False, soft_wrap=True)


def fetched(summary: FetchSummary) -> None:
    """Print what a fetch read, on stderr."""
    Terminal(stderr=True, highlight=False).print(
        f"{summary.read} read, {summary.failed} failed; {summary.from_store} from the store, "
        f"{summary.from_network} from the network"
    )


def gold(found: DraftedGold) -> None:
    """Print what the judge drafted, and how to use it."""
    console = _out()
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


def gold_check(found: GoldCheck) -> None:
    """Print the problems of gold, how items separate systems, and what was left open."""
    console = _out()
    if found.problems:
        console.print(gold_problems_sheet(found).table(console.width))
    if found.separation:
        console.print(gold_separation_sheet(found).table(console.width))
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


def leaderboard(board: Leaderboard, page: Path) -> None:
    """Print the tables of every protocol, notes, and the path of the page."""
    console = _out()
    for ranking in rankings(board.metrics):
        console.print(_standings(ranking, board).table(console.width))
        if ranking.others:
            names = ", ".join(metric.metric for metric in ranking.others)
            where = "on the page, or with adjudge leaderboard --metric NAME"
            console.print(f"{ranking.title}: more metrics {where}: {names}", markup=False, soft_wrap=True)
    for metric in board.metrics:
        if metric.corrected_differences:
            console.print(corrected_sheet(metric).table(console.width))
        if metric.published_agreement is not None:
            name = f"{metric.protocol}.{metric.metric}"
            console.print(f"{name} and published: {metric.published_agreement.line}", markup=False)
    for note in board.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    console.print(f"page: {page}", markup=False, soft_wrap=True)


def _standings(ranking: Ranking, board: Leaderboard) -> Sheet:
    """The standings over all tasks, or by the attribute that was asked for."""
    for grouping in board.groupings:
        if grouping.attribute == board.by:
            title = f"{ranking.title} by {board.by} (judge: {ranking.head.judge}; {ranking.head.basis})"
            return standings_sheet(by_group(ranking, grouping).without("tier"), title)
    title = f"{ranking.title} (judge: {ranking.head.judge}; {ranking.head.basis})"
    return standings_sheet(standings(ranking).without("tier"), title)


def sheet(found: Sheet, said: str = "") -> None:
    """Print a table, and a sentence underneath."""
    console = _out()
    console.print(found.table(console.width))
    if said:
        console.print(said, markup=False, soft_wrap=True)


def plan(found: Plan) -> None:
    """Print what a run would ask, read and cost."""
    console = _out()
    asked = sum(found.questions.values()) - found.stored
    console.print(plan_sheet(found).table(console.width))
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
        console.print(judges_sheet(found).table(console.width))
    if found.seconds is None or found.cost is None:
        unknown = (one for one in found.judges if one.seconds is None or one.cost is None)
        unpriced = dict.fromkeys(name for one in unknown for name in one.unpriced or (one.name,))
        console.print(
            f"time and cost: unknown; add prices: {{{escape(', '.join(f'{name}: ...' for name in unpriced))}}} to the "
            "configuration"
        )
    else:
        console.print(f"time: about {found.seconds:,.0f} s; cost: about {found.cost:,.2f}")


def evidence(found: Iterable[CardEvidence]) -> None:
    """Print scores, then every line of evidence, page and question."""
    console = _out()
    for item in found:
        card = item.card
        console.print(
            f"\n{card.protocol}: {card.system}, task {card.task_id}, sample {card.sample}, repeat {card.repeat}",
            style="bold",
            markup=False,
        )
        if card.scores:
            console.print(scores_sheet(item).table(console.width))
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


def replayed(found: Replay) -> None:
    """Print rewards beside those of a replay: figures, groups, rollouts and a closing sentence."""
    console = _out()
    for sheet in replay_sheets(found):
        console.print(sheet.table(console.width))
    console.print(found.said, markup=False, soft_wrap=True)


def contents(found: Iterable[TableContent]) -> None:
    """Print what a store holds, one line per table and one per kind of row."""
    table = Table()
    for name in ("table", "rows", "parts", "MB", "oldest", "newest"):
        table.add_column(name, justify="left" if name == "table" else "right")
    for row in found:
        size = f"{row.bytes / 1e6:,.1f}"
        table.add_row(
            row.table, f"{row.rows:,}", f"{row.parts:,}", size, _when(row.oldest), _when(row.newest)
        )
        for kind, count in row.kinds.items():
            table.add_row(escape(f"  {kind}"), f"{count:,}", "", "")
        for reason, count in row.reasons.items():
            table.add_row(escape(f"  unscored: {reason}"), f"{count:,}", "", "")
        for kind, count in row.tokens.items():
            table.add_row(f"  {kind.replace('_', ' ')}", f"{count:,}", "", "")
        for schema, count in row.versions.items():
            table.add_row(f"  schema version {schema}", "", f"{count:,}", "")
    _out().print(table)


def _when(seconds: float | None) -> str:
    return "-" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"


def rewritten(found: Iterable[Rewritten]) -> None:
    """Print what compacting or pruning a store did."""
    for row in found:
        _out().print(
            f"{row.table}: {row.parts_before} parts -> {row.parts_after}, {row.rows_before:,} rows read, "
            f"{row.rows_before - row.rows_after:,} left out, {row.deleted} old files deleted",
            markup=False,
            soft_wrap=True,
        )


def repaired(found: Iterable[Repaired]) -> None:
    """Print what repairing a store found."""
    for row in found:
        _out().print(f"{row.table}: {row.parts} parts, {len(row.moved)} moved aside", markup=False)
        for name in row.moved:
            _out().print(f"  damaged, now {row.table}/{ASIDE}/{name}", markup=False, soft_wrap=True)


def findings(found: Iterable[Finding]) -> None:
    """Print the doctor's findings."""
    console = _out()
    for finding in found:
        mark = "[green]ok[/]" if finding.good else "[red]no[/]"
        fix = (
            f"  -> {finding.fix}"
            if finding.fix and (not finding.good or finding.found == "not installed")
            else ""
        )
        console.print(f"{mark}  {escape(finding.what)}: {escape(finding.found)}{escape(fix)}", soft_wrap=True)
