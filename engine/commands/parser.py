"""The commands and their options, and a parser whose errors are usage errors: one line, with the nearest valid word."""

import argparse
import math
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias

from adjudge.engine.errors import UsageError, nearest
from adjudge.engine.exports.forms import BENCHMARKS, FORMS


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


def finite(text: str) -> float:
    """A finite number."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise ArgumentTypeError(f"{text!r} is not a number")
    return found


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
    add = command.add_argument
    add("--limit", type=count, metavar="N", help="only the first N tasks that are chosen")
    add("--task", nargs="+", metavar="ID", help="only these tasks")
    add("--system", nargs="+", metavar="NAME", help="only these systems")
    add("--language", nargs="+", metavar="LANG", help="only tasks in these languages")
    add("--domain", nargs="+", metavar="NAME", help="only tasks of these domains")


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
STORE = "where judgments and pages are kept"
CONFIG = "configuration file (YAML)"
LABELS = "show people's labels beside the judge's verdicts, and scores both ways"
WHERE = "none, local, or the address of a Ray head"
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
    _running(commands)
    _results(commands)
    _evidence(commands)
    _comparisons(commands)
    _people(commands)
    _training(commands)
    _upkeep(commands)
    return top


def _running(commands: Commands) -> None:
    """Begin, score reports, say what that would take, and draft gold."""
    command = _add(
        commands, "init", "write a configuration for the reports in a folder, and say what was found"
    )
    add = command.add_argument
    add("folder", metavar="FOLDER", nargs="?", default=".", help="where your files are (default: here)")
    add("--judge", metavar="SPEC", help=JUDGES)
    add("--protocol", nargs="+", metavar="NAME", help="these protocols, whatever was found")
    add("--out", metavar="FILE", help="the configuration to write (default: adjudge.yaml in FOLDER)")

    command = _add(commands, "evaluate", "score reports and print the leaderboard")
    add = command.add_argument
    _add_run_options(command)
    add("--view", action="store_true", help="also open the viewer while the run lasts")
    add(
        "--until-resolved",
        metavar="METRIC[:A,B]",
        help="stop when the full run's order of all pairs of systems, or of A and B, is known",
    )
    summary = "show what a run would ask, read and cost, without doing it"
    _add_run_options(_add(commands, "plan", summary))

    summary = "have the judge draft missing gold for review, or check gold"
    command = _add(commands, "gold", summary)
    add = command.add_argument
    add("config", nargs="?", metavar="CONFIG", help=CONFIG)
    add("--protocol", metavar="NAME", help="draft or check this protocol's gold, such as race")
    add("--out", metavar="FILE", help="file to write; to use it, set tasks: to it")
    add(
        "--from",
        dest="documents",
        nargs="+",
        default=[],
        metavar="FILE",
        help="documents to draft from, or to check against: text, Markdown, HTML, PDF or Word",
    )
    add(
        "--check",
        nargs="?",
        const="",
        metavar="FILE",
        help="check the gold of a file of tasks, or of CONFIG's tasks (exit code 3 if there are problems)",
    )
    add(
        "--run",
        dest="of_run",
        metavar="RUN",
        help="with --check: also test how well items separate this run's systems",
    )
    add("--store", metavar="URI", help=STORE)
    add("--judge", metavar="SPEC", help=JUDGES)
    add("--prompts", metavar="DIR", help="folder of prompt files that override the shipped ones")
    add("--format", metavar="NAME", help="layout of tasks")
    add_select(command)


def _results(commands: Commands) -> None:
    """Runs as leaderboards and files."""
    summary = "print the leaderboard of one or more runs"
    command = _add(commands, "leaderboard", summary, tables=True)
    add = command.add_argument
    add("runs", nargs="+", metavar="RUN", help="folder of a run")
    add("--out", metavar="DIR", help="also write it there: leaderboard.{json,csv,parquet,md,html}")
    add("--cluster", default="none", metavar="WHERE", help=WHERE)
    people = command.add_mutually_exclusive_group()
    people.add_argument(
        "--human",
        metavar="FILE",
        help="correct means and differences by human scores: CSV or JSONL, as for agreement --human",
    )
    people.add_argument(
        "--labels", metavar="FILE", help="correct them by people's labels, written by adjudge label"
    )
    add("--published", metavar="FILE", help="also show published figures: CSV with system, metric, value")
    add(
        "--by",
        default="",
        metavar="ATTRIBUTE",
        help="group tasks by an attribute (language, domain, kind, size ...) and add the mean over groups",
    )
    add("--metric", nargs="+", default=[], metavar="NAME", help="show these columns instead of the paper's")
    add_select(command)

    summary = "read recorded results of a published benchmark as a run"
    command = _add(commands, "import", summary, module="import_results")
    add = command.add_argument
    add("folder", metavar="FOLDER", help="folder or file of results")
    add("--format", required=True, metavar="NAME", help=f"the benchmark: {', '.join(BENCHMARKS)}")
    add("--out", required=True, metavar="RUN", help="the new run's folder")
    add("--judge", metavar="NAME", help="the judge's name on the leaderboard")
    add("--system", metavar="NAME", help="the system's name, if no folder or file gives it")

    summary = "write a run as a benchmark's own result files, as tables, or for other tools"
    command = _add(commands, "export", summary, of_run=True)
    add = command.add_argument
    add("--format", required=True, metavar="NAME", help=", ".join(FORMS))
    add("--out", required=True, metavar="DIR", help="where to write the files")
    add(
        "--other",
        metavar="RUN",
        help="judge-sft, judge-preferences: the same reports judged by a stronger judge",
    )
    add("--labels", metavar="FILE", help="judge-sft, judge-preferences: labels by people, which decide")

    summary = "write the pages of a run or a WARC file as a folder for fetch: snapshot"
    command = _add(commands, "snapshot", summary)
    add = command.add_argument
    add("source", metavar="RUN", help="folder of a run, or a WARC file")
    add("--out", required=True, metavar="DIR", help="the new folder of pages")
    add("--warc", action="store_true", help="also write a WARC file, to share")


def _evidence(commands: Commands) -> None:
    """What is behind a score, and pages."""
    command = _add(commands, "show", "show the evidence behind a system's scores for a task", of_run=True)
    add = command.add_argument
    add("--task", required=True, metavar="ID", help="the task's id")
    add("--system", required=True, metavar="NAME", help="the system that wrote the report")
    add("--labels", metavar="FILE", help=LABELS)

    summary = "show what is read of the citations of reports, without judge or network"
    command = _add(commands, "citations", summary)
    help_ = "file of reports (Markdown, HTML, DOCX, PDF, JSON, CSV ...), folder, or configuration (YAML)"
    command.add_argument("files", metavar="FILE", nargs="+", help=help_)

    command = _add(commands, "ls", "list the runs in a folder, and who leads in each", tables=True)
    command.add_argument(
        "folder", metavar="FOLDER", nargs="?", default=".", help="where runs are (default: here)"
    )

    summary = "show a run in a local web page, down to every question and page; of a folder, all its runs"
    command = _add(commands, "view", summary, of_run=True)
    add = command.add_argument
    add("--other", metavar="RUN", help="another run: show where the two differ")
    add("--labels", metavar="FILE", help=LABELS)
    add("--port", type=port, default=8301, metavar="N", help="0 for any free port")
    add("--export", metavar="DIR", help="write the pages as files for any web host")
    add("--with-pages", action="store_true", help="with --export: whole pages, not only the judged passages")
    add(
        "--with-gold",
        action="store_true",
        help="with --export: also the gold of encrypted and gated benchmarks",
    )
    add("--with-stdin", action="store_true", help=argparse.SUPPRESS)  # ends when stdin does

    command = _add(commands, "fetch", "read a file of URLs into a store and print one JSON line per URL")
    add = command.add_argument
    add("file", metavar="FILE", help="one URL per line")
    add("--store", default=".adjudge/store", metavar="URI", help="where pages are kept")
    add(
        "--allow",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="read this address although the guard blocks it (ports 80 and 443 by default)",
    )
    add(
        "--extractor",
        choices=["trafilatura", "fast"],
        default="trafilatura",
        help="how text is extracted from HTML",
    )
    add("--timeout", type=positive, metavar="SECONDS", help="time limit per page")
    add("--max-bytes", type=count, metavar="N", help="size limit per page")


def _comparisons(commands: Commands) -> None:
    """Whether a difference is one."""
    summary = "test two systems of a run against each other on every metric"
    command = _add(commands, "compare", summary, tables=True, of_run=True)
    add = command.add_argument
    add("a", metavar="A", help="a system")
    add("b", metavar="B", help="another system")
    add(
        "--metric",
        nargs="+",
        default=[],
        metavar="M",
        help="only these, such as race.overall (default: all; those that rank are corrected for their number)",
    )

    summary = (
        "check that a run scores no worse than a baseline, or than given numbers (exit code 4 if it does)"
    )
    command = _add(commands, "check", summary, tables=True, of_run=True)
    add = command.add_argument
    add("--baseline", metavar="RUN", help="folder of the run to check against")
    add(
        "--min",
        dest="least",
        action="append",
        default=[],
        metavar="METRIC=VALUE",
        help="a number that every system must reach, in the tables' units, such as race.overall=40 (repeatable)",
    )
    add("--system", metavar="A", help="only this system (default: all that both runs have)")
    add("--against", metavar="B", help="the baseline's system to compare A with")
    add(
        "--metric",
        nargs="+",
        default=[],
        metavar="M",
        help="such as race.overall; by default, all that the protocols are ranked by",
    )
    add(
        "--max-drop",
        type=finite,
        metavar="X",
        help="pass only if a drop of X, in the tables' units, is ruled out (default: any significant drop fails)",
    )
    add("--alpha", type=finite, default=0.05, metavar="P", help="chance of a false alarm (default 0.05)")
    add(
        "--min-scored",
        type=finite,
        default=0.95,
        metavar="SHARE",
        help="share of tasks that must be scored in both runs (default 0.95)",
    )
    add("--junit", metavar="FILE", help="also write JUnit XML")


def _people(commands: Commands) -> None:
    """What people say of verdicts."""
    summary = "label single verdicts in a local page, without seeing the judge's"
    command = _add(commands, "label", summary, of_run=True)
    add = command.add_argument
    add(
        "--out",
        required=True,
        metavar="FILE",
        help="append labels to this file; if it ends in .csv, write a new table to fill in",
    )
    add(
        "--sample",
        type=count,
        default=100,
        metavar="N",
        help="number of verdicts, balanced over systems and verdicts (default 100)",
    )
    add("--rater", default="", metavar="NAME", help="name of the rater; several may share one file")
    add(
        "--overlap",
        type=share,
        default=0.2,
        metavar="SHARE",
        help="share of the sample that every rater labels (default 0.2)",
    )
    add(
        "--edit",
        nargs="?",
        const="",
        metavar="WORDS",
        help="show the judge's verdicts (those with WORDS in statement, page, system or task) and override them, "
        "each with a reason",
    )
    add("--port", type=port, default=8302, metavar="N", help="0 for any free port")

    summary = "measure how far a run's judge agrees with people or with another judge"
    command = _add(commands, "agreement", summary, tables=True, of_run=True)
    add = command.add_argument
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
    other.add_argument(
        "--claims",
        metavar="FILE",
        help="the claims that people find in reports, CSV or JSONL: task_id, system, claim",
    )


def _training(commands: Commands) -> None:
    """Rewards for trainers."""
    command = _add(commands, "serve", "serve rewards to trainers over HTTP")
    add = command.add_argument
    add("config", metavar="CONFIG", help=CONFIG)
    add(
        "--host", default="127.0.0.1", help="address to bind; other than loopback only with ADJUDGE_TOKEN set"
    )
    add("--port", type=port, default=8300, metavar="N", help="0 for any free port")
    add("--store", metavar="URI", help=STORE)
    add("--judge", metavar="SPEC", help=JUDGES)
    add("--cluster", metavar="WHERE", help=WHERE)

    summary = "score a training run's logged rollouts again and compare the rewards"
    command = _add(commands, "rewards", summary)
    add = command.add_argument
    add("action", choices=["replay"], help="score them again")
    add("log", metavar="RUN_LOG", help="the log file set by reward.log")
    add("config", metavar="CONFIG", help="configuration file (YAML) with the other reward")
    add("--formula", metavar="DIGEST", help="the formula to replay, where the log has several")
    add("--judge", metavar="SPEC", help=f"another judge: {JUDGES}")
    add("--store", metavar="URI", help=STORE)


def _upkeep(commands: Commands) -> None:
    """Stores, judges and machines."""
    summary = "list what a store holds, merge its small parts, remove old rows, or move damaged parts aside"
    command = _add(commands, "store", summary)
    add = command.add_argument
    add("action", choices=["ls", "compact", "prune", "repair"], help="list, merge, remove or move aside")
    add("uri", metavar="URI", help="the store")
    add("--days", type=positive, metavar="N", help="prune: only rows older than N days")
    add(
        "--of",
        metavar="JUDGE",
        help="prune: only judgments of this judge, by fingerprint (combine with --days for old ones)",
    )

    summary = "try a judge on planted controls: is it one? (exit code 4 if not)"
    command = _add(commands, "judge", summary, tables=True)
    add = command.add_argument
    add("of", metavar="CONFIG", help=f"{CONFIG}, whose judges are tried on its reports, or a judge: {JUDGES}")
    add(
        "--limit",
        type=count,
        metavar="N",
        help="statements or reports of each language for each type of question (default 12)",
    )

    summary = "try injected text on a judge, and count how often it gets a better answer"
    command = _add(commands, "attack", summary, tables=True)
    add = command.add_argument
    add("--judge", default="lexical", metavar="SPEC", help=JUDGES)
    add("--file", metavar="ATTACKS.jsonl", help="your own attacks: id, kind, where, text")

    summary = "check what is installed, reachable and missing, and how to fix it"
    command = _add(commands, "doctor", summary)
    add = command.add_argument
    add("config", nargs="?", metavar="CONFIG", help="also check this configuration's store and judge")


def _add(
    commands: Commands, name: str, summary: str, tables: bool = False, of_run: bool = False, module: str = ""
) -> argparse.ArgumentParser:
    """The parser of a command, which the module of its name in `engine/commands/` runs, or another `module` there."""
    command = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
    how = command.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print one JSON document instead")
    if tables:
        how.add_argument("--markdown", action="store_true", help="print Markdown instead")
    if of_run:
        command.add_argument("run_folder", metavar="RUN", help="folder of a run")
    command.set_defaults(module=module or name)
    return command


def _add_run_options(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "config",
        metavar="CONFIG",
        nargs="?",
        default="adjudge.yaml",
        help=f"{CONFIG} (default: adjudge.yaml)",
    )
    add("--out", metavar="DIR", help="the run's folder")
    add("--store", metavar="URI", help=STORE)
    add("--judge", metavar="SPEC", help=JUDGES)
    add("--prompts", metavar="DIR", help="folder of prompt files that override the shipped ones")
    add("--format", metavar="NAME", help="layout of tasks and reports")
    add("--protocol", nargs="+", metavar="NAME", help="only these protocols")
    add("--fetch", choices=["live", "snapshot", "off"], help="where pages come from")
    add("--cluster", metavar="WHERE", help=WHERE)
    add("--repeats", type=count, metavar="N", help="ask every question N times")
    add("--retry-unscored", action="store_true", help="also ask again after permanent failures")
    add(
        "--budget",
        type=count,
        metavar="N",
        help="pairwise: at most N comparisons, the most informative first",
    )
    add_select(command)
    add("--serial", action="store_true", help="run one case at a time, for debugging")
