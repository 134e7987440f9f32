"""`adjudge citations`: what is read of the citations of reports, without judge or network."""

import argparse
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from adjudge.engine.cli.exits import DONE, INCOMPLETE
from adjudge.engine.cli.notices import rejected as print_rejected
from adjudge.engine.cli.output import out, print_result, print_table
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.formats.columns import Prompts
from adjudge.engine.formats.dataset import Given, Located
from adjudge.engine.formats.input_files import matched
from adjudge.engine.formats.own import reports
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.runs.choice import chosen_dataset
from adjudge.engine.tables.table import Column, Table
from adjudge.judges.plural import plural
from adjudge.scoring.text.accounted import Account, account

_LOUD = 0.1  # share of marks and addresses that lead nowhere above which it is said
_SHOWN = 5


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
        several = list(reports(file, Prompts({}), rejected))
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
    for name, own in systems.items():
        for line in _said(name, own):
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


def _said(name: str, own: list[ReadReport]) -> Iterator[str]:
    """What of a system's citations leads nowhere, with examples, if it is more than a tenth."""
    lost, every = sum(one.lost for one in own), sum(one.marks + len(one.urls_unused) for one in own)
    if lost <= _LOUD * every:
        return
    yield f"{name}: {lost / every:.0%} of marks and addresses lead to no pair of a statement and a page"
    marks_lost = [mark for one in own for mark in one.unresolved]
    uncited = [url for one in own for url in one.urls_unused]
    if marks_lost:
        yield f"  {plural(len(marks_lost), 'mark leads', 'marks lead')} nowhere: {_examples(marks_lost)}"
    if uncited:
        yield f"  no statement cites {plural(len(uncited), 'address', 'addresses')}: {_examples(uncited)}"


def _examples(every: list[str]) -> str:
    return ", ".join(dict.fromkeys(every[:_SHOWN])) + (" ..." if len(every) > _SHOWN else "")
