"""The commands and their options, one function per command.

Types of options, and the options that several commands have.

An invalid value is a usage error that says what is expected.

A parser of arguments whose mistakes are usage errors, in one line and with what is nearest.
"""

import argparse
import math
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias

from adjudge.engine.errors import UsageError, nearest
from adjudge.engine.exports.forms import BENCHMARKS, FORMS

__all__ = ["parser"]


def port(text: str) -> int:
    """A TCP port, 0 for any free one."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= 65_535):
        raise ArgumentTypeError(f"{text!r} is not a port, 0 to 65535")
    return int(text)


def count(text: str) -> int:
    """A whole number from 1."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 18 and int(text)):
        raise ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def positive(text: str) -> float:
    """A finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def share(text: str) -> float:
    """A number from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return number


def add_select(command: ArgumentParser) -> None:
    """The options that choose tasks and systems."""
    command.add_argument("--limit", type=count, metavar="N", help="only the first N tasks that are chosen")
    command.add_argument("--task", nargs="+", metavar="ID", help="only these tasks")
    command.add_argument("--system", nargs="+", metavar="NAME", help="only these systems")
    command.add_argument("--language", nargs="+", metavar="LANG", help="only tasks in these languages")
    command.add_argument("--domain", nargs="+", metavar="NAME", help="only tasks of these domains")


class StrictParser(argparse.ArgumentParser):
    """Raises UsageError for unknown options and values."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError, in one line."""
        said = " ".join(message.removeprefix("argument ").split())
        raise UsageError(f"{said}; `{self.prog} --help` lists all options")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does. Raises UsageError for unknown options, suggesting the nearest."""
        found, unknown = super().parse_known_args(args, namespace)
        for word in unknown:
            name = word.partition("=")[0]
            if name.startswith("-"):
                self.error(f"{name}: unknown option; {nearest(name, sorted(self._option_string_actions))}")
            self.error(f"{word}: unexpected argument; remove it, or put its option before it")
        return found, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise ArgumentError for a value outside an option's choices, suggesting the nearest."""
        if action.choices is not None and value not in action.choices:
            offer = nearest(str(value), map(str, action.choices))
            raise argparse.ArgumentError(action, f"unknown value {value!r}; {offer}")


class Version(argparse.Action):
    """Print the version, and end. It is read from the package's metadata, whose readers take long to import."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        text = "show program's version number and exit"  # as argparse puts it
        super().__init__(
            option_strings, dest=argparse.SUPPRESS, default=argparse.SUPPRESS, nargs=0, help=text
        )

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print it."""
        from importlib.metadata import version

        sys.stdout.write(f"adjudge {version('adjudge')}\n")
        parser.exit()


Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
JUDGES = "lexical, openai:http://HOST:PORT/v1#MODEL or vllm:MODEL_OR_FOLDER"


def parser() -> argparse.ArgumentParser:
    """The parser of all commands; `module` is the one in `engine/commands/` that runs the command."""
    top = StrictParser(
        prog="adjudge", description="Evaluate deep-research reports on judges you host yourself."
    )
    top.add_argument("--version", action=Version)
    commands: Commands = top.add_subparsers(
        title="commands", required=True, metavar="COMMAND", parser_class=StrictParser
    )
    _evaluate(commands)
    _plan(commands)
    _gold(commands)
    _leaderboard(commands)
    _import(commands)
    _export(commands)
    _snapshot(commands)
    _show(commands)
    _view(commands)
    _fetch(commands)
    _compare(commands)
    _check(commands)
    _label(commands)
    _agreement(commands)
    _serve(commands)
    _rewards(commands)
    _store(commands)
    _attack(commands)
    _doctor(commands)
    return top


def _evaluate(commands: Commands) -> None:
    command = _add(commands, "evaluate", "score reports and print the leaderboard")
    _add_run_options(command)
    command.add_argument("--view", action="store_true", help="also open the viewer while the run lasts")
    command.add_argument(
        "--until-resolved",
        metavar="METRIC[:A,B]",
        help="stop when the full run's order of all pairs of systems, or of A and B, is known",
    )


def _plan(commands: Commands) -> None:
    summary = "show what a run would ask, read and cost, without doing it"
    _add_run_options(_add(commands, "plan", summary))


def _gold(commands: Commands) -> None:
    summary = "have the judge draft missing gold for review, or check gold"
    command = _add(commands, "gold", summary)
    command.add_argument("config", nargs="?", metavar="CONFIG", help="configuration file (YAML)")
    command.add_argument(
        "--protocol", metavar="NAME", help="draft or check this protocol's gold, such as race"
    )
    command.add_argument("--out", metavar="FILE", help="file to write; to use it, set tasks: to it")
    command.add_argument(
        "--from",
        dest="documents",
        nargs="+",
        default=[],
        metavar="FILE",
        help="documents to draft from, or to check against: text, Markdown, HTML, PDF or Word",
    )
    command.add_argument(
        "--check",
        nargs="?",
        const="",
        metavar="FILE",
        help="check the gold of a file of tasks, or of CONFIG's tasks (exit code 3 if there are problems)",
    )
    command.add_argument(
        "--run",
        dest="of_run",
        metavar="RUN",
        help="with --check: also test how well items separate this run's systems",
    )
    command.add_argument("--store", metavar="URI", help="where judgments and pages are kept")
    command.add_argument("--judge", metavar="SPEC", help=JUDGES)
    command.add_argument(
        "--prompts", metavar="DIR", help="folder of prompt files that override the shipped ones"
    )
    command.add_argument("--format", metavar="NAME", help="layout of tasks")
    add_select(command)


def _leaderboard(commands: Commands) -> None:
    summary = "print the leaderboard of one or more runs"
    command = _add(commands, "leaderboard", summary, tables=True)
    command.add_argument("runs", nargs="+", metavar="RUN", help="folder of a run")
    command.add_argument(
        "--out", metavar="DIR", help="also write it there: leaderboard.{json,csv,parquet,md,html}"
    )
    command.add_argument(
        "--cluster", default="none", metavar="WHERE", help="none, local, or the address of a Ray head"
    )
    people = command.add_mutually_exclusive_group()
    people.add_argument(
        "--human",
        metavar="FILE",
        help="correct means and differences by human scores: CSV or JSONL, as for agreement --human",
    )
    people.add_argument(
        "--labels", metavar="FILE", help="correct them by people's labels, written by adjudge label"
    )
    command.add_argument(
        "--published", metavar="FILE", help="also show published figures: CSV with system, metric, value"
    )
    command.add_argument(
        "--by",
        default="",
        metavar="ATTRIBUTE",
        help="group tasks by an attribute (language, domain, kind, size ...) and add the mean over groups",
    )
    command.add_argument(
        "--metric", nargs="+", default=[], metavar="NAME", help="show these columns instead of the paper's"
    )
    add_select(command)


def _import(commands: Commands) -> None:
    summary = "read recorded results of a published benchmark as a run"
    command = _add(commands, "import", summary, module="import_results")
    command.add_argument("folder", metavar="FOLDER", help="folder or file of results")
    command.add_argument(
        "--format", required=True, metavar="NAME", help=f"the benchmark: {', '.join(BENCHMARKS)}"
    )
    command.add_argument("--out", required=True, metavar="RUN", help="the new run's folder")
    command.add_argument("--judge", metavar="NAME", help="the judge's name on the leaderboard")
    command.add_argument("--system", metavar="NAME", help="the system's name, if no folder or file gives it")


def _export(commands: Commands) -> None:
    summary = "write a run as a benchmark's own result files, as tables, or for other tools"
    command = _add(commands, "export", summary)
    _add_run(command)
    command.add_argument("--format", required=True, metavar="NAME", help=", ".join(FORMS))
    command.add_argument("--out", required=True, metavar="DIR", help="where to write the files")


def _snapshot(commands: Commands) -> None:
    summary = "write the pages of a run or a WARC file as a folder for fetch: snapshot"
    command = _add(commands, "snapshot", summary)
    command.add_argument("source", metavar="RUN", help="folder of a run, or a WARC file")
    command.add_argument("--out", required=True, metavar="DIR", help="the new folder of pages")
    command.add_argument("--warc", action="store_true", help="also write a WARC file, to share")


def _show(commands: Commands) -> None:
    command = _add(commands, "show", "show the evidence behind a system's scores for a task")
    _add_run(command)
    command.add_argument("--task", required=True, metavar="ID", help="the task's id")
    command.add_argument("--system", required=True, metavar="NAME", help="the system that wrote the report")


def _view(commands: Commands) -> None:
    summary = "show a run in a local web page, down to every question and page"
    command = _add(commands, "view", summary)
    _add_run(command)
    command.add_argument("--other", metavar="RUN", help="another run: show where the two differ")
    command.add_argument("--labels", metavar="FILE", help="show people's labels beside the judge's verdicts")
    command.add_argument("--port", type=port, default=8301, metavar="N", help="0 for any free port")
    command.add_argument("--export", metavar="DIR", help="write the pages as files for any web host")
    command.add_argument(
        "--with-pages", action="store_true", help="with --export: whole pages, not only the judged passages"
    )
    command.add_argument(
        "--with-gold",
        action="store_true",
        help="with --export: also the gold of encrypted and gated benchmarks",
    )
    command.add_argument("--with-stdin", action="store_true", help=argparse.SUPPRESS)  # ends when stdin does


def _fetch(commands: Commands) -> None:
    command = _add(commands, "fetch", "read a file of URLs into a store and print one JSON line per URL")
    command.add_argument("file", metavar="FILE", help="one URL per line")
    command.add_argument("--store", default=".adjudge/store", metavar="URI", help="where pages are kept")
    command.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="read this address although the guard blocks it (ports 80 and 443 by default)",
    )
    command.add_argument(
        "--extractor",
        choices=["trafilatura", "fast"],
        default="trafilatura",
        help="how text is extracted from HTML",
    )
    command.add_argument("--timeout", type=positive, metavar="SECONDS", help="time limit per page")
    command.add_argument("--max-bytes", type=int, metavar="N", help="size limit per page")


def _compare(commands: Commands) -> None:
    summary = "test two systems of a run against each other on every metric"
    command = _add(commands, "compare", summary, tables=True)
    _add_run(command)
    command.add_argument("a", metavar="A", help="a system")
    command.add_argument("b", metavar="B", help="another system")
    command.add_argument(
        "--metric",
        nargs="+",
        default=[],
        metavar="M",
        help="only these, such as race.overall (default: all; those that rank are corrected for their number)",
    )


def _check(commands: Commands) -> None:
    summary = "check that a run scores no worse than a baseline (exit code 4 if it does)"
    command = _add(commands, "check", summary, tables=True)
    _add_run(command)
    command.add_argument(
        "--baseline", required=True, metavar="RUN", help="folder of the run to check against"
    )
    command.add_argument("--system", metavar="A", help="only this system (default: all that both runs have)")
    command.add_argument("--against", metavar="B", help="the baseline's system to compare A with")
    command.add_argument(
        "--metric",
        nargs="+",
        default=[],
        metavar="M",
        help="such as race.overall; by default, all that the protocols are ranked by",
    )
    command.add_argument(
        "--max-drop",
        type=float,
        metavar="X",
        help="pass only if a drop of X, in the tables' units, is ruled out (default: any significant drop fails)",
    )
    command.add_argument(
        "--alpha", type=float, default=0.05, metavar="P", help="chance of a false alarm (default 0.05)"
    )
    command.add_argument(
        "--min-scored",
        type=float,
        default=0.95,
        metavar="SHARE",
        help="share of tasks that must be scored in both runs (default 0.95)",
    )
    command.add_argument("--junit", metavar="FILE", help="also write JUnit XML")


def _label(commands: Commands) -> None:
    summary = "label single verdicts in a local page, without seeing the judge's"
    command = _add(commands, "label", summary)
    _add_run(command)
    command.add_argument(
        "--out",
        required=True,
        metavar="FILE",
        help="append labels to this file; if it ends in .csv, write a new table to fill in",
    )
    command.add_argument(
        "--sample",
        type=count,
        default=100,
        metavar="N",
        help="number of verdicts, balanced over systems and verdicts (default 100)",
    )
    command.add_argument(
        "--rater", default="", metavar="NAME", help="name of the rater; several may share one file"
    )
    command.add_argument(
        "--overlap",
        type=share,
        default=0.2,
        metavar="SHARE",
        help="share of the sample that every rater labels (default 0.2)",
    )
    command.add_argument("--port", type=port, default=8302, metavar="N", help="0 for any free port")


def _agreement(commands: Commands) -> None:
    summary = "measure how far a run's judge agrees with people or with another judge"
    command = _add(commands, "agreement", summary, tables=True)
    _add_run(command)
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
    other.add_argument(
        "--labels",
        metavar="FILE",
        help="people's verdicts on single statements or rubrics, CSV or JSONL: task_id, system, what, label, rater",
    )


def _serve(commands: Commands) -> None:
    command = _add(commands, "serve", "serve rewards to trainers over HTTP")
    command.add_argument("config", metavar="CONFIG", help="configuration file (YAML)")
    command.add_argument(
        "--host", default="127.0.0.1", help="address to bind; other than loopback only with ADJUDGE_TOKEN set"
    )
    command.add_argument("--port", type=port, default=8300, metavar="N", help="0 for any free port")
    command.add_argument("--store", metavar="URI", help="where judgments and pages are kept")
    command.add_argument("--judge", metavar="SPEC", help=JUDGES)
    command.add_argument("--cluster", metavar="WHERE", help="none, local, or the address of a Ray head")


def _rewards(commands: Commands) -> None:
    summary = "score a training run's logged rollouts again and compare the rewards"
    command = _add(commands, "rewards", summary)
    command.add_argument("action", choices=["replay"], help="score them again")
    command.add_argument("log", metavar="RUN_LOG", help="the log file set by reward.log")
    command.add_argument("config", metavar="CONFIG", help="configuration file (YAML) with the other reward")
    command.add_argument("--judge", metavar="SPEC", help=f"another judge: {JUDGES}")
    command.add_argument("--store", metavar="URI", help="where judgments and pages are kept")


def _store(commands: Commands) -> None:
    summary = "list what a store holds, merge its small parts, remove old rows, or move damaged parts aside"
    command = _add(commands, "store", summary)
    command.add_argument(
        "action", choices=["ls", "compact", "prune", "repair"], help="list, merge, remove or move aside"
    )
    command.add_argument("uri", metavar="URI", help="the store")
    command.add_argument("--days", type=positive, metavar="N", help="prune: only rows older than N days")
    command.add_argument(
        "--of",
        metavar="JUDGE",
        help="prune: only judgments of this judge, by fingerprint (combine with --days for old ones)",
    )


def _attack(commands: Commands) -> None:
    summary = "try injected text on a judge, and count how often it gets a better answer"
    command = _add(commands, "attack", summary, tables=True)
    command.add_argument("--judge", default="lexical", metavar="SPEC", help=JUDGES)
    command.add_argument("--file", metavar="ATTACKS.jsonl", help="your own attacks: id, kind, where, text")


def _doctor(commands: Commands) -> None:
    summary = "check what is installed, reachable and missing, and how to fix it"
    command = _add(commands, "doctor", summary)
    command.add_argument(
        "config", nargs="?", metavar="CONFIG", help="also check this configuration's store and judge"
    )


def _add(
    commands: Commands, name: str, summary: str, tables: bool = False, module: str = ""
) -> argparse.ArgumentParser:
    """The parser of a command, which the module of its name in `engine/commands/` runs, or another `module` there."""
    command = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
    how = command.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print one JSON document instead")
    if tables:
        how.add_argument("--markdown", action="store_true", help="print Markdown instead")
    command.set_defaults(module=module or name)
    return command


def _add_run(command: argparse.ArgumentParser) -> None:
    command.add_argument("run_folder", metavar="RUN", help="folder of a run")


def _add_run_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("config", metavar="CONFIG", help="configuration file (YAML)")
    command.add_argument("--out", metavar="DIR", help="the run's folder")
    command.add_argument("--store", metavar="URI", help="where judgments and pages are kept")
    command.add_argument("--judge", metavar="SPEC", help=JUDGES)
    command.add_argument(
        "--prompts", metavar="DIR", help="folder of prompt files that override the shipped ones"
    )
    command.add_argument("--format", metavar="NAME", help="layout of tasks and reports")
    command.add_argument("--protocol", nargs="+", metavar="NAME", help="only these protocols")
    command.add_argument("--fetch", choices=["live", "snapshot", "off"], help="where pages come from")
    command.add_argument("--cluster", metavar="WHERE", help="none, local, or the address of a Ray head")
    command.add_argument("--repeats", type=int, metavar="N", help="ask every question N times")
    command.add_argument(
        "--retry-unscored", action="store_true", help="also ask again after permanent failures"
    )
    command.add_argument(
        "--budget",
        type=count,
        metavar="N",
        help="pairwise: at most N comparisons, the most informative first",
    )
    add_select(command)
    command.add_argument("--serial", action="store_true", help="run one case at a time, for debugging")
