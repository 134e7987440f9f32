"""Results for people, on stdout."""

import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from adjudge.engine.commands.agreement import MetricAgreement
from adjudge.engine.commands.attack import AttackReport
from adjudge.engine.commands.compare import Comparison
from adjudge.engine.commands.doctor import Finding
from adjudge.engine.commands.evaluate import RunResult
from adjudge.engine.commands.fetch import FetchSummary
from adjudge.engine.commands.plan import ASSUMED_PAGE_CHARS, Plan
from adjudge.engine.commands.preferences import MetricPreference
from adjudge.engine.commands.show import CardEvidence
from adjudge.engine.formats import Rejected
from adjudge.engine.leaderboard.board import Leaderboard, MetricBoard
from adjudge.engine.rendering.standings import ranked_metrics, standings
from adjudge.engine.store.upkeep import Rewritten, TableContent
from adjudge.engine.telemetry.logs import event, is_json

__all__ = [
    "agreement",
    "attacked",
    "comparison",
    "contents",
    "evidence",
    "fetched",
    "findings",
    "leaderboard",
    "plan",
    "preferences",
    "rejected",
    "result",
    "rewritten",
    "table",
]

_log = logging.getLogger(__name__)

_SHOWN_REJECTED = 20
_PIPE_WIDTH = 200
_JOINED = ("rank interval", "interval", "corrected interval")
_MAX_METRICS = 7  # of a protocol; the page and the files hold all


class _Out(Console):
    def on_broken_pipe(self) -> None:
        raise  # rich itself would exit with 1


def _out() -> Console:
    console = _Out(highlight=False)
    return console if console.is_terminal else _Out(highlight=False, width=_PIPE_WIDTH)


def rejected(lines: Sequence[Rejected]) -> None:
    """Print the lines that were left out, on stderr."""
    if is_json():
        for line in lines[:_SHOWN_REJECTED]:
            event(_log, "line left out", logging.WARNING, why=str(line))
        return
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    for line in lines[:_SHOWN_REJECTED]:
        console.print(f"left out: {line}", style="yellow", markup=False)
    if len(lines) > _SHOWN_REJECTED:
        console.print(f"left out: {len(lines) - _SHOWN_REJECTED} more lines", style="yellow")


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


def fetched(summary: FetchSummary) -> None:
    """Print what a fetch read, on stderr."""
    Console(stderr=True, highlight=False).print(
        f"{summary.read} read, {summary.failed} failed; {summary.from_store} from the store, "
        f"{summary.from_network} from the network"
    )


def leaderboard(board: Leaderboard, page: Path) -> None:
    """Print one table per protocol, notes, and the path of the page."""
    console = _out()
    for head, others in ranked_metrics(board):
        console.print(_table(head, others))
    for metric in board.metrics:
        if metric.corrected_differences:
            console.print(_differences(metric))
        if metric.published_agreement is not None:
            name = f"{metric.protocol}.{metric.metric}"
            console.print(f"{name} and published: {metric.published_agreement.line}", markup=False)
    for note in board.notes:
        console.print(f"note: {note}", markup=False)
    console.print(f"page: {page}", markup=False, soft_wrap=True)


def _table(head: MetricBoard, others: Sequence[MetricBoard]) -> Table:
    """The standings; an interval stands behind its value, in the same column."""
    shown = [metric for metric in others if metric.shown][: _MAX_METRICS - 1]
    found = standings(head, shown).only(
        "rank",
        "rank interval",
        "system",
        "value",
        "interval",
        "beside",
        "corrected",
        "corrected interval",
        "published",
        "scored",
        "unscored",
    )
    title = f"{head.protocol} (judge: {head.judge}; ranked on {head.ranked_on})"
    table = Table(title=escape(title), title_justify="left", title_style="bold")
    for column in found.columns:
        if column.kind not in _JOINED:
            table.add_column(escape(column.name), justify="right" if column.numeric else "left")
    for row in found.rows:
        cells: list[str] = []
        for column, cell in zip(found.columns, row, strict=True):
            text = cell.text if cell.short is None else cell.short
            if column.kind in _JOINED:
                cells[-1] = f"{cells[-1]} {text}".rstrip()
            else:
                cells.append(text)
        table.add_row(*map(escape, cells))
    return table


def _differences(metric: MetricBoard) -> Table:
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


def table(found: Table) -> None:
    """Print a table."""
    _out().print(found)


def comparison(found: Comparison) -> Table:
    """Paired tests, one line per metric."""
    table = Table(
        title=f"{escape(found.a)} minus {escape(found.b)}", title_justify="left", title_style="bold"
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


def agreement(found: Iterable[MetricAgreement]) -> Table:
    """Agreement, one line per metric."""
    table = Table()
    names = ("par", "par_dr3", "opc", "fap", "fas", "icc_1_1", "icc_2_k", "alpha", "kappa", "kappa_quadratic")
    for name in ("metric", *names, "systems", "reports"):
        table.add_column(name, justify="left" if name == "metric" else "right")
    for row in found:
        figures = (_with_interval(getattr(row, name), row.intervals.get(name)) for name in names)
        table.add_row(escape(f"{row.protocol}.{row.metric}"), *figures, str(row.n_systems), str(row.n_cases))
        if row.left_out:
            table.caption = escape(
                f"left out, because the run does not have these rated reports: {row.left_out}"
            )
    return table


def preferences(found: Iterable[MetricPreference]) -> Table:
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


def _with_interval(value: float | None, interval: tuple[float, float] | None) -> str:
    text = "-" if value is None else f"{value:.3f}"
    return text if interval is None else f"{text}\n{interval[0]:.2f} to {interval[1]:.2f}"


def _number(value: float | None, scale: float) -> str:
    return "-" if value is None else f"{value * scale:.3f}"


def plan(found: Plan) -> None:
    """Print what a run would ask, read and cost."""
    console = _out()
    asked = sum(found.questions.values()) - found.stored
    table = Table(
        title=f"{found.scorecards} scorecards of {found.cases} cases, judged by {escape(found.judge)}",
        title_justify="left",
    )
    table.add_column("question")
    table.add_column("number", justify="right")
    for name, number in found.questions.items():
        table.add_row(escape(name), f"{number:,}")
    console.print(table)
    console.print(f"to ask: {asked:,}; in the store already: {found.stored:,}")
    if found.unscored:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in found.unscored.items())
        console.print(f"scorecards that no judge can score: {reasons}")
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
    if found.seconds is None or found.cost is None:
        console.print(
            f"time and cost: unknown; add prices: {{{escape(found.judge)}: ...}} to the configuration"
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
        for name, value in card.scores.items():
            shown = f"{value:.4f}" if value is not None else f"unscored: {card.reasons.get(name)}"
            console.print(f"  {name}: {shown}", markup=False)
        if card.reason is not None:
            console.print(f"  {card.status} ({card.reason})", markup=False)
        for line in card.evidence:
            source = f"  {line.url}" if line.url else ""
            reason = f" ({line.reason})" if line.reason else ""
            console.print(f"  - {line.what}\n    {line.outcome}{reason}{source}", markup=False)
        for page in item.pages:
            state = f"{page.chars:,} characters" if page.reason is None else page.reason
            moved = "" if page.final_url == page.url else f" -> {page.final_url}"
            console.print(f"  page {page.url}{moved}: {state}", markup=False)
        for question in item.questions:
            answer = question.text if question.answer is None else question.answer
            reason = f" ({question.reason})" if question.reason else ""
            console.print(f"  {question.question} {question.key}{reason}: {answer}", markup=False)


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


def attacked(found: AttackReport) -> Table:
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
