"""What each command does with its options: one call, print the result, return an exit code."""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from adjudge.engine.cli import console as show
from adjudge.engine.cli import tables
from adjudge.engine.cli.comparisons import (
    agreement_sheet,
    check_sheet,
    comparison_sheet,
    labels_sheet,
    preferences_sheet,
)
from adjudge.engine.cli.following import following
from adjudge.engine.cli.options import cluster_section, gold_config, run_config, select_section
from adjudge.engine.cli.progress import Step, counted_on, progress_on
from adjudge.engine.cli.sentences import agreement_said, comparison_said, labels_said, preferences_said
from adjudge.engine.cli.sheet import Sheet
from adjudge.engine.cli.terminal import Terminal
from adjudge.engine.commands.agreement import with_humans, with_run
from adjudge.engine.commands.attack import AttackReport, attack, load_attacks
from adjudge.engine.commands.check import check
from adjudge.engine.commands.compare import compare
from adjudge.engine.commands.doctor import examine
from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.commands.export_run import export_run
from adjudge.engine.commands.fetch import FetchRow, fetch_command, fetch_config
from adjudge.engine.commands.gold import draft_gold
from adjudge.engine.commands.gold_check import check_gold
from adjudge.engine.commands.import_results import import_results
from adjudge.engine.commands.interruption import interruptible
from adjudge.engine.commands.junit import write_junit
from adjudge.engine.commands.labels import with_labels
from adjudge.engine.commands.plan import plan
from adjudge.engine.commands.preferences import with_preferences
from adjudge.engine.commands.replay import replay
from adjudge.engine.commands.show import find_evidence
from adjudge.engine.commands.snapshot import snapshot
from adjudge.engine.config.judge import JudgeConfig
from adjudge.engine.config.redaction import printable, printable_json
from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.select import Select
from adjudge.engine.errors import UsageError
from adjudge.engine.evaluation.assembly import make_judge
from adjudge.engine.labelling.app import label
from adjudge.engine.labelling.sheet import write_sheet
from adjudge.engine.leaderboard.board import Leaderboard
from adjudge.engine.leaderboard.build import build_leaderboard
from adjudge.engine.leaderboard.published import read_published
from adjudge.engine.records.pulse import Reading
from adjudge.engine.rendering.files import write_leaderboard
from adjudge.engine.rendering.markdown import leaderboard_markdown, rich_markdown
from adjudge.engine.serving.server import serve
from adjudge.engine.store.repair import repair
from adjudge.engine.store.upkeep import compact, contents, existing, prune
from adjudge.engine.viewer import export, view
from adjudge.prompts import PromptBook

__all__ = [
    "DONE",
    "FAILED",
    "INCOMPLETE",
    "INTERRUPTED",
    "REGRESSED",
    "USAGE",
    "Command",
    "on_agreement",
    "on_attack",
    "on_check",
    "on_compare",
    "on_doctor",
    "on_evaluate",
    "on_export",
    "on_fetch",
    "on_gold",
    "on_import",
    "on_label",
    "on_leaderboard",
    "on_plan",
    "on_rewards",
    "on_serve",
    "on_show",
    "on_snapshot",
    "on_store",
    "on_view",
]


DONE, FAILED, USAGE, INCOMPLETE, REGRESSED, INTERRUPTED = 0, 1, 2, 3, 4, 130


T = TypeVar("T")


Command = Callable[[argparse.Namespace], int]


def on_evaluate(options: argparse.Namespace) -> int:
    """Score reports and print the leaderboard."""
    config, console = run_config(options), Terminal(stderr=True)
    with progress_on(console) as on_start, following(config.out, console, view=options.view) as follow:

        def begin(total: int, reading: Callable[[], Reading]) -> Step:
            follow()
            return on_start(total, reading)

        result = evaluate(config, begin)
    show.rejected(result.rejected)
    _print(options, result, show.result)
    return DONE if result.complete else INCOMPLETE


def on_plan(options: argparse.Namespace) -> int:
    """Print what a run would ask, read and cost."""
    found = plan(run_config(options))
    show.rejected(found.rejected)
    _print(options, found, show.plan)
    return INCOMPLETE if found.rejected or found.unscored else DONE


def on_gold(options: argparse.Namespace) -> int:
    """Have the judge draft gold and write it for review, or check gold."""
    config = gold_config(options)
    if options.check is not None:
        checked = check_gold(config, options.documents, options.of_run)
        _print(options, checked, show.gold_check)
        return DONE if checked.is_clean else INCOMPLETE
    if options.of_run is not None:
        raise UsageError("--run: is for checking; add --check, or leave it out")
    if options.out is None:
        raise UsageError("--out: is missing; name a new file for the drafts, or pass --check to check gold")
    found = draft_gold(config, options.out, options.documents)
    _print(options, found, show.gold)
    return INCOMPLETE if found.unscored else DONE


def on_leaderboard(options: argparse.Namespace) -> int:
    """Build, write and print the leaderboard of runs."""
    board = _built(options)
    written = write_leaderboard(board, options.out or options.runs[0])
    if options.markdown:
        sys.stdout.write(printable(leaderboard_markdown(board)))
    else:
        _print(options, board, lambda found: show.leaderboard(found, written))
    return DONE


def _built(options: argparse.Namespace) -> Leaderboard:
    build = partial(
        build_leaderboard,
        options.runs,
        published=() if options.published is None else read_published(options.published),
        human=options.human,
        labels=options.labels,
        select=Select(**select_section(options)),
        by=options.by,
        metrics=options.metric,
    )
    if options.cluster == "none":
        return build()
    from adjudge.engine.leaderboard.on_ray import statistics_on

    with statistics_on(options.cluster) as statistics:
        return build(statistics=statistics)


def on_import(options: argparse.Namespace) -> int:
    """Write recorded results as a run and print its leaderboard."""
    found = import_results(
        options.folder, options.format, options.out, judge=options.judge, system=options.system
    )
    show.rejected(found.rejected)
    _print(options, found, show.imported)
    return INCOMPLETE if found.rejected or found.unscored else DONE


def on_export(options: argparse.Namespace) -> int:
    """Write a run in another form."""
    show.unfinished(options.run_folder)
    _print(options, export_run(options.run_folder, options.format, options.out), show.exported)
    return DONE


def on_snapshot(options: argparse.Namespace) -> int:
    """Write the pages of a run or a web archive as a snapshot."""
    _print(options, snapshot(options.source, options.out, warc=options.warc), show.frozen)
    return DONE


def on_show(options: argparse.Namespace) -> int:
    """Print the evidence behind a score."""
    show.unfinished(options.run_folder)
    _print(options, find_evidence(options.run_folder, options.task, options.system), show.evidence)
    return DONE


def on_view(options: argparse.Namespace) -> int:
    """Serve the viewer until interrupted, or write its pages."""
    if options.export is not None:
        if options.other is not None or options.labels is not None:
            raise UsageError("export: one run at a time, without labels; leave --other and --labels out")
        with counted_on(Terminal(stderr=True), "reports") as step:
            written = export(
                options.run_folder,
                options.export,
                sources=options.with_pages,
                gold=options.with_gold,
                step=step,
            )
        _print(options, written, show.pages_exported)
        return DONE
    if options.with_pages or options.with_gold:
        raise UsageError("with-pages and with-gold: only for --export DIR; add it")
    view(options.run_folder, options.other, options.port, options.json, options.with_stdin, options.labels)
    return DONE


def on_fetch(options: argparse.Namespace) -> int:
    """Read URLs into a store."""
    settings = fetch_config(
        allow=options.allow, extractor=options.extractor, timeout=options.timeout, max_bytes=options.max_bytes
    )
    rows: list[FetchRow] = []
    malformed = 0

    def emit(row: FetchRow) -> None:
        nonlocal malformed
        malformed += row.reason == "citation_malformed"
        if options.json:
            rows.append(row)
        else:
            sys.stdout.write(printable_json(row) + "\n")
            sys.stdout.flush()

    summary = interruptible(fetch_command(options.file, options.store, settings, emit))
    if options.json:
        sys.stdout.write(printable_json(rows) + "\n")
    show.fetched(summary)
    return INCOMPLETE if malformed else DONE


def on_compare(options: argparse.Namespace) -> int:
    """Test two systems against each other."""
    show.unfinished(options.run_folder)
    found = compare(options.run_folder, options.a, options.b)
    _print_sheet(options, found, comparison_sheet, comparison_said)
    return DONE


def on_check(options: argparse.Namespace) -> int:
    """Check a run against a baseline."""
    show.unfinished(options.run_folder)
    found = check(
        options.run_folder,
        options.baseline,
        system=options.system,
        against=options.against,
        metrics=options.metric,
        max_drop=options.max_drop,
        alpha=options.alpha,
        min_scored=options.min_scored,
    )
    if options.junit is not None:
        write_junit(found, options.junit)
    _print_sheet(options, found, check_sheet)
    return {"passed": DONE, "regressed": REGRESSED, "unclear": INCOMPLETE}[found.outcome]


def on_label(options: argparse.Namespace) -> int:
    """Serve the page to label verdicts on until interrupted, or write a table of them."""
    if options.out.endswith(".csv"):
        number = write_sheet(options.run_folder, options.out, options.sample, options.rater)
        _print(options, {"out": options.out, "items": number}, show.label_sheet)
    else:
        label(
            options.run_folder,
            options.out,
            options.sample,
            options.rater,
            options.overlap,
            options.port,
            options.json,
        )
    return DONE


def on_agreement(options: argparse.Namespace) -> int:
    """Compare a judge with people, another judge or preferences."""
    show.unfinished(options.run_folder)
    if options.preferences is not None:
        preferred = with_preferences(options.run_folder, options.preferences)
        _print_sheet(options, preferred, preferences_sheet, preferences_said)
    elif options.labels is not None:
        _print_sheet(options, with_labels(options.run_folder, options.labels), labels_sheet, labels_said)
    elif options.human is not None:
        rated = with_humans(options.run_folder, options.human)
        _print_sheet(options, rated, agreement_sheet, partial(agreement_said, whom="people"))
    else:
        judged = with_run(options.run_folder, options.other)
        _print_sheet(options, judged, agreement_sheet, partial(agreement_said, whom="the other judge"))
    return DONE


def on_serve(options: argparse.Namespace) -> int:
    """Serve rewards until terminated."""
    config = RunConfig.load(
        options.config, store=options.store, judge=options.judge, cluster=cluster_section(options)
    )
    serve(config, options.host, options.port, options.json)
    return DONE


def on_rewards(options: argparse.Namespace) -> int:
    """Score a log of rewards again, and print how the two differ."""
    config = RunConfig.load(options.config, store=options.store, judge=options.judge)
    found = interruptible(replay(options.log, config))
    show.rejected(found.examples)
    _print(options, found, show.replayed)
    return DONE if found.is_whole else INCOMPLETE


def on_store(options: argparse.Namespace) -> int:
    """List, compact, prune or repair a store."""
    place = existing(options.uri)
    if options.action == "ls":
        _print(options, contents(place), show.contents)
    elif options.action == "compact":
        _print(options, compact(place), show.rewritten)
    elif options.action == "repair":
        _print(options, repair(place), show.repaired)
    elif options.days is None and options.of is None:
        raise UsageError("store prune: nothing chosen; pass --days N, --of JUDGE, or both")
    else:
        _print(options, prune(place, days=options.days, judge=options.of), show.rewritten)
    return DONE


def on_attack(options: argparse.Namespace) -> int:
    """Try the injection suite on a judge."""
    found = interruptible(_attacked(options))
    _print_sheet(options, found, tables.attack_sheet)
    return INCOMPLETE if found.overall.unscored else DONE


async def _attacked(options: argparse.Namespace) -> AttackReport:
    attacks = load_attacks(options.file)
    judge = make_judge(JudgeConfig.from_spec(options.judge), PromptBook())
    try:
        return await attack(judge, attacks)
    finally:
        await judge.close()


def on_doctor(options: argparse.Namespace) -> int:
    """Check the installation."""
    findings = examine(None if options.config is None else RunConfig.load(options.config))
    _print(options, findings, show.findings)
    return DONE if all(finding.good for finding in findings) else FAILED


def _print(options: argparse.Namespace, result: object, people: Callable[..., None]) -> None:
    if options.json:
        sys.stdout.write(printable_json(result) + "\n")
    else:
        people(result)


def _print_sheet(
    options: argparse.Namespace,
    result: T,
    people: Callable[[T], Sheet],
    sentence: Callable[[T], str] = lambda _: "",
) -> None:
    if options.markdown:
        sys.stdout.write(printable(rich_markdown(people(result).table(), sentence(result))))
    else:
        _print(options, result, lambda found: show.sheet(people(found), sentence(found)))
