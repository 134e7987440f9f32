"""The command line: arguments in, one call, results on stdout, everything else on stderr, and an exit code."""

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import TypeVar

import msgspec
from adjudge.engine import console as show
from adjudge.engine.agreement import with_humans, with_run
from adjudge.engine.attack import AttackReport, attack, load_attacks
from adjudge.engine.board import Leaderboard
from adjudge.engine.compare import compare
from adjudge.engine.config import ConfigError, JudgeConfig, RunConfig
from adjudge.engine.doctor import examine
from adjudge.engine.evidence import find_evidence
from adjudge.engine.fetch import FetchRow, fetch_command, fetch_config
from adjudge.engine.house import make_judge
from adjudge.engine.leaderboard import build_leaderboard
from adjudge.engine.leaderboard_files import write_leaderboard
from adjudge.engine.logs import begin, form, is_json
from adjudge.engine.markdown import leaderboard_markdown, rich_markdown
from adjudge.engine.options import cluster_section, port, positive, run_config
from adjudge.engine.plan import plan
from adjudge.engine.preferences import with_preferences
from adjudge.engine.progress import progress_on
from adjudge.engine.published import read_published
from adjudge.engine.run import evaluate
from adjudge.engine.server import serve
from adjudge.engine.store import StoreError
from adjudge.engine.store.upkeep import compact, contents, existing, prune
from adjudge.engine.viewer import view
from adjudge.fetchers.pool import PoolError
from adjudge.judges.errors import JudgeError
from adjudge.prompts import PromptBook
from rich.console import Console
from rich.table import Table

__all__ = ["main"]

DONE, FAILED, USAGE, INCOMPLETE, INTERRUPTED = 0, 1, 2, 3, 130

T = TypeVar("T")
Command = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code (contract.md, Command line)."""
    try:
        options = _parser().parse_args(arguments)
        begin(form())
        code = options.run(options)
        sys.stdout.flush()
    except (ConfigError, JudgeError) as error:
        code = _ended(USAGE, str(error), "red")
    except (StoreError, PoolError) as error:
        code = _ended(FAILED, str(error), "red")
    except KeyboardInterrupt:
        said = "interrupted; what was answered is stored, the same command goes on from there"
        code = _ended(INTERRUPTED, said, "")
    except BrokenPipeError:  # nobody reads on, nor what is still in the buffer
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = DONE
    sys.exit(code)


def _ended(code: int, said: str, style: str) -> int:
    """Say on stderr why the command ended; its exit code."""
    if is_json():
        logging.getLogger("adjudge").error("%s", said)
    else:
        Console(stderr=True, soft_wrap=True).print(
            f"adjudge: {said}", style=style, markup=False, highlight=False
        )
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="adjudge", description="Evaluate deep-research reports on judges you host yourself."
    )
    parser.add_argument("--version", action="version", version=f"adjudge {version('adjudge')}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    command = _add(commands, "evaluate", _evaluate, "score reports and print the leaderboard")
    _run_options(command)

    command.add_argument(
        "--until-resolved",
        metavar="METRIC[:A,B]",
        help="stop when the full run's order of all pairs of systems, or of A and B, is known",
    )

    command = _add(commands, "plan", _plan, "say what a run would ask, read and cost, without doing it")
    _run_options(command)

    command = _add(
        commands,
        "leaderboard",
        _leaderboard,
        "print and write the leaderboard of one or more runs",
        tables=True,
    )
    command.add_argument("runs", nargs="+", metavar="RUN", help="folder of a run")
    command.add_argument(
        "--out", metavar="DIR", help="where to write leaderboard.{json,csv,html}; the first RUN if not given"
    )
    command.add_argument(
        "--cluster", default="none", metavar="WHERE", help="none, local, or the address of a Ray head"
    )
    command.add_argument(
        "--human",
        metavar="FILE",
        help="correct means and differences by people's scores: CSV or JSONL, as agreement takes them",
    )
    command.add_argument(
        "--published", metavar="FILE", help="set published figures beside: CSV with system, metric, value"
    )

    command = _add(commands, "show", _show, "show the evidence behind a system's scores for a task")
    command.add_argument("run_folder", metavar="RUN", help="folder of a run")
    command.add_argument("--task", required=True, metavar="ID")
    command.add_argument("--system", required=True, metavar="NAME")

    command = _add(commands, "view", _view, "show a run in a local web page, down to every question and page")
    command.add_argument("run_folder", metavar="RUN", help="folder of a run")
    command.add_argument("--other", metavar="RUN", help="another run or judge, to see where they differ")
    command.add_argument("--port", type=port, default=8301, metavar="N", help="0 for any that is free")

    command = _add(commands, "fetch", _fetch, "read a file of URLs into a store, one JSON line each")
    command.add_argument("file", metavar="FILE", help="one URL a line")
    command.add_argument("--store", default=".adjudge/store", metavar="URI", help="where pages are kept")
    command.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="may be read though the guard refuses it; without a port, 80 and 443",
    )
    command.add_argument("--extractor", choices=["trafilatura", "fast"], default="trafilatura")
    command.add_argument("--timeout", type=positive, metavar="SECONDS", help="for a whole page")
    command.add_argument("--max-bytes", type=int, metavar="N", help="of a page")

    command = _add(
        commands,
        "compare",
        _compare,
        "test two systems of a run against each other, every metric",
        tables=True,
    )
    command.add_argument("run_folder", metavar="RUN", help="folder of a run")
    command.add_argument("a", metavar="A", help="a system")
    command.add_argument("b", metavar="B", help="another system")

    command = _add(
        commands,
        "agreement",
        _agreement,
        "say how far a run's judge agrees with people or another judge",
        tables=True,
    )
    command.add_argument("run_folder", metavar="RUN", help="folder of a run")
    other = command.add_mutually_exclusive_group(required=True)
    other.add_argument(
        "--human",
        metavar="FILE",
        help="CSV or JSONL: task_id, system, rater, metric, value (0 to 1 where tables show 0 to 100)",
    )
    other.add_argument("--other", metavar="RUN", help="folder of a run by another judge")
    other.add_argument(
        "--preferences",
        metavar="FILE",
        help="JSONL: task_id, chosen and rejected (lists of systems, or of {system, sample}), subset",
    )

    command = _add(commands, "serve", _serve, "give trainers rewards over HTTP")
    command.add_argument("config", metavar="CONFIG", help="configuration file (YAML)")
    command.add_argument("--host", default="127.0.0.1", help="beyond loopback only with ADJUDGE_TOKEN set")
    command.add_argument("--port", type=port, default=8300, metavar="N", help="0 for any that is free")
    command.add_argument("--store", metavar="URI", help="where judgments and pages are kept")
    command.add_argument(
        "--judge", metavar="SPEC", help="lexical, openai:http://HOST:PORT/v1#MODEL or vllm:MODEL_OR_FOLDER"
    )
    command.add_argument("--cluster", metavar="WHERE", help="none, local, or the address of a Ray head")

    command = _add(
        commands, "store", _store, "say what a store holds; merge its small parts; leave out old rows"
    )
    command.add_argument("action", choices=["ls", "compact", "prune"])
    command.add_argument("uri", metavar="URI", help="the store")
    command.add_argument(
        "--days", type=positive, metavar="N", help="prune: rows written more than N days ago"
    )
    command.add_argument(
        "--of",
        metavar="JUDGE",
        help="prune: judgments with this judge fingerprint; with --days those of that age",
    )

    command = _add(
        commands, "attack", _attack, "try to talk a judge round, and say how often that works", tables=True
    )
    command.add_argument("--judge", default="lexical", metavar="SPEC", help="whom to try")
    command.add_argument("--file", metavar="ATTACKS.jsonl", help="attacks of your own: id, kind, where, text")

    command = _add(
        commands, "doctor", _doctor, "say what is installed, reachable and missing, and how to mend it"
    )
    command.add_argument(
        "config", nargs="?", metavar="CONFIG", help="also check this configuration's store and judge"
    )
    return parser


def _add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    run: Command,
    summary: str,
    tables: bool = False,
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
    how = command.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print one JSON document instead")
    if tables:
        how.add_argument("--markdown", action="store_true", help="print Markdown instead")
    command.set_defaults(run=run)
    return command


def _run_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("config", metavar="CONFIG", help="configuration file (YAML)")
    command.add_argument("--out", metavar="DIR", help="the run's folder")
    command.add_argument("--store", metavar="URI", help="where judgments and pages are kept")
    command.add_argument(
        "--judge", metavar="SPEC", help="lexical, openai:http://HOST:PORT/v1#MODEL or vllm:MODEL_OR_FOLDER"
    )
    command.add_argument("--prompts", metavar="DIR", help="prompt files that override the shipped ones")
    command.add_argument("--format", metavar="NAME", help="layout of tasks and reports")
    command.add_argument("--protocol", nargs="+", metavar="NAME", help="only these protocols")
    command.add_argument("--fetch", choices=["live", "snapshot", "off"], help="where pages come from")
    command.add_argument("--cluster", metavar="WHERE", help="none, local, or the address of a Ray head")
    command.add_argument("--repeats", type=int, metavar="N", help="how often the judge repeats everything")
    command.add_argument(
        "--retry-unscored", action="store_true", help="ask again what was left unscored for good, too"
    )
    command.add_argument("--serial", action="store_true", help="one case at a time, for debugging")


def _evaluate(options: argparse.Namespace) -> int:
    with progress_on(Console(stderr=True)) as on_start:
        result = evaluate(run_config(options), on_start)
    show.rejected(result.rejected)
    _print(options, result, show.result)
    return DONE if result.complete else INCOMPLETE


def _plan(options: argparse.Namespace) -> int:
    found = plan(run_config(options))
    show.rejected(found.rejected)
    _print(options, found, show.plan)
    return INCOMPLETE if found.rejected or found.unscored else DONE


def _leaderboard(options: argparse.Namespace) -> int:
    board = _built(options)
    written = write_leaderboard(board, options.out or options.runs[0])
    if options.markdown:
        sys.stdout.write(leaderboard_markdown(board))
    else:
        _print(options, board, lambda found: show.leaderboard(found, written))
    return DONE


def _built(options: argparse.Namespace) -> Leaderboard:
    published = () if options.published is None else read_published(options.published)
    if options.cluster == "none":
        return build_leaderboard(options.runs, published=published, human=options.human)
    from adjudge.engine.cluster.statistics import statistics_on

    with statistics_on(options.cluster) as statistics:
        return build_leaderboard(options.runs, statistics, published, options.human)


def _show(options: argparse.Namespace) -> int:
    _print(options, find_evidence(options.run_folder, options.task, options.system), show.evidence)
    return DONE


def _view(options: argparse.Namespace) -> int:
    view(options.run_folder, options.other, options.port, options.json)
    return DONE


def _fetch(options: argparse.Namespace) -> int:
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
            sys.stdout.write(msgspec.json.encode(row).decode() + "\n")
            sys.stdout.flush()

    summary = asyncio.run(fetch_command(options.file, options.store, settings, emit))
    if options.json:
        sys.stdout.write(msgspec.json.encode(rows).decode() + "\n")
    show.fetched(summary)
    return INCOMPLETE if malformed else DONE


def _compare(options: argparse.Namespace) -> int:
    _print_table(options, compare(options.run_folder, options.a, options.b), show.comparison)
    return DONE


def _agreement(options: argparse.Namespace) -> int:
    if options.preferences is not None:
        _print_table(options, with_preferences(options.run_folder, options.preferences), show.preferences)
    elif options.human is not None:
        _print_table(options, with_humans(options.run_folder, options.human), show.agreement)
    else:
        _print_table(options, with_run(options.run_folder, options.other), show.agreement)
    return DONE


def _serve(options: argparse.Namespace) -> int:
    config = RunConfig.load(
        options.config, store=options.store, judge=options.judge, cluster=cluster_section(options)
    )
    serve(config, options.host, options.port, options.json)
    return DONE


def _store(options: argparse.Namespace) -> int:
    place = existing(options.uri)
    if options.action == "ls":
        _print(options, contents(place), show.contents)
    elif options.action == "compact":
        _print(options, compact(place), show.rewritten)
    elif options.days is None and options.of is None:
        raise ConfigError("store prune: say what goes, by --days N or --of JUDGE")
    else:
        _print(options, prune(place, days=options.days, judge=options.of), show.rewritten)
    return DONE


def _attack(options: argparse.Namespace) -> int:
    found = asyncio.run(_attacked(options))
    _print_table(options, found, show.attacked)
    return INCOMPLETE if found.overall.unscored else DONE


async def _attacked(options: argparse.Namespace) -> AttackReport:
    attacks = load_attacks(options.file)
    judge = make_judge(JudgeConfig.from_spec(options.judge), PromptBook())
    try:
        return await attack(judge, attacks)
    finally:
        await judge.close()


def _doctor(options: argparse.Namespace) -> int:
    findings = examine(None if options.config is None else RunConfig.load(options.config))
    _print(options, findings, show.findings)
    return DONE if all(finding.good for finding in findings) else FAILED


def _print(options: argparse.Namespace, result: object, people: Callable[..., None]) -> None:
    if options.json:
        sys.stdout.write(msgspec.json.encode(result).decode() + "\n")
    else:
        people(result)


def _print_table(options: argparse.Namespace, result: T, people: Callable[[T], Table]) -> None:
    if options.markdown:
        sys.stdout.write(rich_markdown(people(result)))
    else:
        _print(options, result, lambda found: show.table(people(found)))
