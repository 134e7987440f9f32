"""`adjudge citations`: what is read of the citations of reports, without judge or network."""

import argparse
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from adjudge.engine.commands.exits import DONE, INCOMPLETE
from adjudge.engine.commands.notices import rejected as print_rejected
from adjudge.engine.commands.output import out, print_result, print_table
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.formats.columns import Prompts
from adjudge.engine.formats.dataset import Given, Located
from adjudge.engine.formats.input_files import matched
from adjudge.engine.formats.own import reports
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.runs.choice import chosen_dataset
from adjudge.engine.tables.table import Column, Table
from adjudge.scoring.text.accounted import Account, account, lost_by


class _Unlisted(Prompts):
    """The tasks of reports without a list of tasks: a prompt is its own id."""

    def __init__(self) -> None:
        super().__init__({})

    def of(self, prompt: str) -> list[str]:
        return [prompt]

    def check(self, task_id: str, prompt: str) -> None:
        """Any id may have any prompt."""


class ReadReport(Account, frozen=True, kw_only=True):
    """The account of one report: where it was read, and whose it is."""

    report: str
    system: str
    task_id: str


def read_citations(paths: Iterable[str]) -> tuple[list[ReadReport], list[Rejected]]:
    """What is read of every report in files of reports and in those that configurations name, and what is no report.

    Raises UsageError.
    """
    rejected: list[Rejected] = []
    found = [one for path in paths for one in _reports(path, rejected)]
    if not found:
        why = f": {rejected[0]}" if rejected else ""
        raise UsageError(f"citations: no report was found{why}")
    return found, rejected


def _reports(path: str, rejected: list[Rejected]) -> Iterator[ReadReport]:
    if Path(path).suffix.lower() in (".yaml", ".yml"):
        dataset = chosen_dataset(RunConfig.load(path))
        rejected += dataset.rejected
        for one in dataset.reports:
            yield _read(one, f"{one.system} on {one.task_id}")
        return
    for file in matched(Given(path)):
        several = list(reports(file, _Unlisted(), rejected))
        for one in several:
            yield _read(one, str(file) if len(several) == 1 else one.where)


def _read(located: Located, name: str) -> ReadReport:
    report = located.load()
    found = account(report.text, report.citations)
    return ReadReport(
        report=name, system=located.system, task_id=located.task_id, **msgspec.structs.asdict(found)
    )


def run(options: argparse.Namespace) -> int:
    """Print what is read of the citations of reports."""
    found, rejected = read_citations(options.files)
    print_rejected(rejected)
    print_result(options, found, _print)
    return INCOMPLETE if rejected else DONE


def _print(found: list[ReadReport]) -> None:
    console = out()
    if len(found) == 1:
        for pair in found[0].pairs:
            console.print(f"- {pair.statement}\n    {pair.url}", markup=False, soft_wrap=True)
    systems = defaultdict[str, list[ReadReport]](list)
    for one in found:
        systems[one.system].append(one)
    if len(found) > 1 and len(systems) > 1:
        print_table(_table("system", [_row(name, own) for name, own in systems.items()]))
    else:
        print_table(_table("report", [_row(one.report, [one]) for one in found]))
    for line in lost_by(systems):
        console.print(line, markup=False, soft_wrap=True)


def _table(what: str, rows: list[tuple[str, ...]]) -> Table:
    columns = ("reports", "marks", "lead nowhere", "addresses", "uncited", "pairs")
    return Table.of(columns=(Column(what, words=True), *map(Column, columns)), blocks=[rows])


def _row(name: str, own: list[ReadReport]) -> tuple[str, ...]:
    counts = (
        len(own),
        sum(one.marks for one in own),
        sum(len(one.unresolved) for one in own),
        sum(one.urls for one in own),
        sum(len(one.urls_unused) for one in own),
        sum(len(one.pairs) for one in own),
    )
    return (name, *(f"{count:,}" for count in counts))
