"""A gate: whether a run scores worse than a baseline, by paired tests on the tasks of both, or under given numbers.

The result of `adjudge check` as JUnit XML, which continuous integration shows test by test.

`adjudge check`: a run checked against a baseline.
"""

import argparse
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal
from xml.etree import ElementTree

import msgspec
import numpy as np

from adjudge.engine.commands.exits import DONE, INCOMPLETE, REGRESSED
from adjudge.engine.commands.notices import unfinished
from adjudge.engine.commands.output import print_as_table
from adjudge.engine.config.metrics import Name, headlines, named
from adjudge.engine.errors import UsageError, nearest
from adjudge.engine.runs.board import FLAGGED_BELOW
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.runs.run import Run
from adjudge.engine.runs.scores import MetricRows, figure, metric_rows
from adjudge.engine.statistics.floors import FloorCheck, floor_checks, floor_in
from adjudge.engine.statistics.notes import differing
from adjudge.engine.statistics.paired import Numbers, numbers_of, side_by_side
from adjudge.engine.statistics.placement import measured
from adjudge.engine.statistics.selection import selections
from adjudge.engine.tables.cells import chance, number, span
from adjudge.engine.tables.table import Column, Table
from adjudge.fetchers.files import write_whole
from adjudge.judges.plural import plural
from adjudge.scoring.contract.scorecard import Metric
from adjudge.scoring.kernels.comparison.claims import fewest_tasks
from adjudge.scoring.kernels.comparison.drop_test import DropTest, drop_test
from adjudge.scoring.kernels.comparison.paired_tests import holm

POWER = 0.8
"""With which the stated detectable drop would have been found."""

Outcome = Literal["passed", "regressed", "unclear"]


class MetricCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One system under one metric: `before` it was that of the baseline, `after` that of the checked run.

    All figures are in the units of tables, over the `n_used` of `n_tasks` common tasks that both have a score for;
    `scored` is the lower share of the two runs. `drop` is what got worse (negative: better), `low` and `high` bound it,
    each at confidence 1 - alpha. `p` is that of a drop above the margin, `holm_p` the same corrected for all tests of
    the check, `p_below` that of a drop below the margin. `detectable` is the drop that these tasks would have shown
    with a probability of POWER; with a margin, how far below it the true drop must be for the margin to be ruled out
    with that probability. `why` says what an outcome other than `passed` rests on.
    """

    system: str
    against: str
    protocol: str
    metric: str
    before: float | None
    after: float | None
    drop: float | None
    low: float | None
    high: float | None
    p: float | None
    holm_p: float | None
    p_below: float | None
    detectable: float | None
    n_tasks: int
    n_used: int
    scored: float
    outcome: Outcome
    why: str = ""
    decimals: int = 2


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The check of `run` against `baseline` ("" for none): regressed if any metric is, else unclear if any is.

    `max_drop` is the margin, None if any significant drop counts. `floors` are what systems must reach.
    """

    run: str
    baseline: str
    alpha: float
    max_drop: float | None
    min_scored: float
    outcome: Outcome
    metrics: tuple[MetricCheck, ...]
    notes: tuple[str, ...]
    floors: tuple[FloorCheck, ...] = ()

    @property
    def summary(self) -> str:
        """The outcome in one line per metric that did not pass."""
        every: tuple[MetricCheck | FloorCheck, ...] = (*self.metrics, *self.floors)
        wrong = [one for one in every if one.outcome != "passed"]
        named = [f"{one.system}, {one.protocol}.{one.metric}: {one.outcome}: {one.why}." for one in wrong]
        return "\n".join(named) or f"no regression in {plural(len(every), 'test')}"


class _Pair(msgspec.Struct, frozen=True):
    """A metric of two systems before they are tested, higher being better."""

    system: str
    against: str
    protocol: str
    metric: Metric
    before: np.ndarray
    after: np.ndarray
    scored: float


def check(
    run: str | Path,
    baseline: str | Path | None = None,
    *,
    system: str | None = None,
    against: str | None = None,
    metrics: Sequence[str] = (),
    max_drop: float | None = None,
    alpha: float = 0.05,
    min_scored: float = FLAGGED_BELOW,
    least: Mapping[str, float] = MappingProxyType({}),
) -> Check:
    """Check the run folder `run` against `baseline`, against the numbers in `least`, or both.

    Every system of both runs is checked, or `system` of the run against `against` (the same name if left out) of the
    baseline. `metrics` are names such as `race.overall`; by default all that the protocols are ranked by. Without
    `max_drop`, a drop regresses if it is significant at `alpha` after Holm's correction for all tests. With it (in the
    units of tables), a metric passes only if a drop of `max_drop` is ruled out at `alpha`, and regresses if a larger
    one is shown. With less than `min_scored` of the tasks scored in either run, nothing passes. `least` has by metric
    what every system of the run, or `system`, must reach, in the units of tables.

    Raises UsageError.
    """
    _validate(system, against, max_drop, alpha, min_scored)
    if baseline is None and not least:
        raise UsageError(
            "baseline: nothing to check against; pass --baseline RUN, --min METRIC=VALUE, or both"
        )
    if baseline is None and (against is not None or metrics or max_drop is not None):
        raise UsageError("baseline: --against, --metric and --max-drop need one; pass --baseline RUN")
    opened = (Run.open(run), None if baseline is None else Run.open(baseline))
    found, notes = (
        ((), ())
        if opened[1] is None
        else _drops((opened[0], opened[1]), system, against, metrics, max_drop, alpha, min_scored)
    )
    floors = floor_checks(run, least, system, min_scored) if least else ()
    outcomes = {one.outcome for one in found} | {one.outcome for one in floors}
    outcome: Outcome = (
        "regressed" if "regressed" in outcomes else "unclear" if "unclear" in outcomes else "passed"
    )
    return Check(
        run=str(run),
        baseline="" if baseline is None else str(baseline),
        alpha=alpha,
        max_drop=max_drop,
        min_scored=min_scored,
        outcome=outcome,
        metrics=found,
        notes=notes,
        floors=floors,
    )


def _drops(
    opened: tuple[Run, Run],
    system: str | None,
    against: str | None,
    metrics: Sequence[str],
    max_drop: float | None,
    alpha: float,
    min_scored: float,
) -> tuple[tuple[MetricCheck, ...], tuple[str, ...]]:
    """The paired tests of a run against its baseline, and what to say of both."""
    records = opened[0].written, opened[1].written
    systems = _systems(records, system, against)
    rows = [metric_rows(one.scores) for one in opened]
    same, notes = _common_tasks(records)
    due = [_due(record, own) for record, own in zip(records, rows, strict=True)]
    numbers = [numbers_of(one.scores, record.metrics) for one, record in zip(opened, records, strict=True)]
    checked = list(_metrics(records, metrics))
    if max_drop is not None:
        _check_margin(checked, max_drop)
    pairs = [
        _pair(names, protocol, metric, numbers, _selected(Name(protocol, metric.name), due, same))
        for protocol, metric in checked
        for names in systems
    ]
    family = len(pairs) if max_drop is None else 1
    tests = [
        drop_test(pair.before, pair.after, margin=max_drop or 0.0, alpha=alpha, power=POWER, family=family)
        for pair in pairs
    ]
    corrected = holm(np.array([test.p_above for test in tests]))
    found = tuple(
        _checked(pair, test, figure(p), max_drop, alpha / family, alpha, min_scored)
        for pair, test, p in zip(pairs, tests, corrected, strict=True)
    )
    return found, (*differing(records), *notes)


def _validate(
    system: str | None, against: str | None, max_drop: float | None, alpha: float, min_scored: float
) -> None:
    if against is not None and system is None:
        raise UsageError("against: no system; pass --system A --against B")
    if max_drop is not None and not 0 < max_drop < float("inf"):
        raise UsageError("max-drop: must be above 0; leave it out to test for any drop")
    if not 0 < alpha < 1:
        raise UsageError("alpha: must be between 0 and 1, such as 0.05")
    if not 0 <= min_scored <= 1:
        raise UsageError("min-scored: must be from 0 to 1, such as 0.95")


def _check_margin(metrics: Sequence[tuple[str, Metric]], max_drop: float) -> None:
    """Raises UsageError for a metric whose whole range is no more than `max_drop`: it could never regress."""
    for protocol, metric in metrics:
        ends = sorted(metric.scale * end for end in (metric.worst, metric.best) if end is not None)
        if len(ends) == 2 and ends[1] - ends[0] <= max_drop:
            raise UsageError(
                f"max-drop: {protocol}.{metric.name} is from {ends[0]:g} to {ends[1]:g}, and can never drop by more "
                f"than {max_drop:g}; pass less, or other metrics by --metric"
            )


def _systems(
    records: tuple[RunRecord, RunRecord], system: str | None, against: str | None
) -> list[tuple[str, str]]:
    """Which system of the run is checked against which of the baseline."""
    run, baseline = records
    if system is None:
        common = [(name, name) for name in run.systems if name in baseline.systems]
        if not common:
            raise UsageError(
                f"system: the runs have no system in common; pass --system A --against B, with A one of "
                f"{', '.join(run.systems[:20])} and B one of {', '.join(baseline.systems[:20])}"
            )
        return common
    pair = (system, system if against is None else against)
    for key, name, record in zip(("system", "against"), pair, records, strict=True):
        if name not in record.systems:
            raise UsageError(
                f"{key}: {name!r} is not in {'the run' if record is run else 'the baseline'}; "
                f"{nearest(name, record.systems)}"
            )
    return [pair]


def _common_tasks(records: tuple[RunRecord, RunRecord]) -> tuple[list[str], list[str]]:
    """The tasks that both runs have with the same prompt and gold, and what to say of the others. Raises UsageError."""
    run, baseline = (record.tasks for record in records)
    known = [name for name in run if name in baseline]
    # Runs of earlier versions have no digest.
    same = [name for name in known if len({run[name].digest, baseline[name].digest} - {""}) < 2]
    if not same:
        raise UsageError("tasks: the runs have no task in common; evaluate both on the same tasks")
    notes = []
    if len(same) < len(known):
        notes.append(
            f"{plural(len(known) - len(same), 'task')} with another prompt or gold in the baseline: left out"
        )
    only = len(run) + len(baseline) - 2 * len(known)
    if only:
        notes.append(f"{plural(only, 'task')} in only one of the runs: left out")
    return same, notes


def _due(record: RunRecord, rows: Sequence[MetricRows]) -> dict[Name, set[str]]:
    """The tasks on which each metric of a run was to be scored: those that have the gold for it."""
    known = {(protocol, one.name): one for protocol, own in record.metrics.items() for one in own}
    every = measured(rows, known, selections([record], rows), lambda protocol: "")
    return {Name(*one.name): {*one.among.tasks} for one in every}


def _selected(metric: Name, due: Sequence[dict[Name, set[str]]], same: Sequence[str]) -> list[str]:
    """The tasks among `same` that were to be scored by a metric in both runs."""
    both = [found.get(metric, set()) for found in due]
    return [name for name in same if all(name in tasks for tasks in both)]


def _metrics(records: tuple[RunRecord, RunRecord], names: Sequence[str]) -> Iterator[tuple[str, Metric]]:
    """The metrics to check, each with its protocol. Raises UsageError."""
    known = {
        protocol: metrics
        for protocol, metrics in records[0].metrics.items()
        if protocol in records[1].metrics
    }
    if not known:
        raise UsageError("metric: the runs have no protocol in common; evaluate both by the same protocols")
    if not names:
        yield from ((protocol, metric) for protocol, own in known.items() for metric in headlines(own))
        return
    every = {Name(protocol, metric.name): metric for protocol, own in known.items() for metric in own}
    for name in dict.fromkeys(named(said, every, "metric") for said in names):
        yield name.protocol, every[name]


def _pair(
    names: tuple[str, str],
    protocol: str,
    metric: Metric,
    numbers: Sequence[dict[Name, Numbers]],
    tasks: Sequence[str],
) -> _Pair:
    sign = -metric.scale if metric.lower_is_better else metric.scale
    after, before = (
        np.full((2, len(tasks)), np.nan)
        if (own := found.get(Name(protocol, metric.name))) is None
        else own.of(name, tasks)
        for name, found in zip(names, numbers, strict=True)
    )
    shares = [float(np.mean(~np.isnan(one).any(axis=0))) if tasks else 0.0 for one in (before, after)]
    before, after = sign * side_by_side(before, after)
    return _Pair(*names, protocol, metric, before, after, min(shares))


def _checked(
    pair: _Pair,
    test: DropTest,
    holm_p: float | None,
    max_drop: float | None,
    level: float,
    alpha: float,
    min_scored: float,
) -> MetricCheck:
    both = ~np.isnan(pair.before + pair.after)
    decimals = pair.metric.decimals + 1
    outcome, why = _outcome(test, holm_p, max_drop, level, alpha, pair.scored, min_scored, decimals)
    sign = -1.0 if pair.metric.lower_is_better else 1.0
    means = [
        sign * float(one[both].mean()) if both.any() else float("nan") for one in (pair.before, pair.after)
    ]
    return MetricCheck(
        system=pair.system,
        against=pair.against,
        protocol=pair.protocol,
        metric=pair.metric.name,
        before=figure(means[0]),
        after=figure(means[1]),
        drop=figure(test.drop),
        low=figure(test.low),
        high=figure(test.high),
        p=figure(test.p_above),
        holm_p=holm_p,
        p_below=figure(test.p_below),
        detectable=figure(test.detectable),
        n_tasks=both.size,
        n_used=test.n_used,
        scored=pair.scored,
        outcome=outcome,
        why=why,
        decimals=pair.metric.decimals,
    )


def _outcome(
    test: DropTest,
    holm_p: float | None,
    max_drop: float | None,
    level: float,
    alpha: float,
    scored: float,
    min_scored: float,
    decimals: int,
) -> tuple[Outcome, str]:
    """What the test comes to, and why if it is not passed. All of several must pass, so passing needs no correction.

    `level` is what a p must not exceed for a drop to be claimed: alpha over the number of tests that share it.
    """
    needed = max(2, fewest_tasks(level, sides=1))
    if test.n_used < needed:
        of_several = "" if level == alpha else f" for {round(alpha / level)} tests"
        return (
            "unclear",
            f"{plural(test.n_used, 'task')} scored in both runs, {needed} are needed at alpha {alpha:g}{of_several}",
        )
    if scored < min_scored:
        return "unclear", f"{scored:.1%} of the tasks are scored in one of the runs, under {min_scored:.1%}"
    if holm_p is not None and holm_p <= alpha:
        than = "" if max_drop is None else f", more than {max_drop:g}"
        return (
            "regressed",
            f"a drop of {number(test.drop, decimals=decimals)}{than} (p {holm_p:.2g} after Holm's correction)",
        )
    if max_drop is not None and not test.p_below <= alpha:
        ends = " and ".join(number(figure(end), decimals=decimals) for end in (test.low, test.high))
        return "unclear", f"the drop is between {ends}, which does not rule out {max_drop:g}"
    return "passed", ""


_NOT_XML = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_KINDS = {"regressed": "failure", "unclear": "error"}


_BEGINS = b'<?xml version="1.0" encoding="utf-8"?>\n<testsuites>\n  <testsuite name="adjudge check"'


def write_junit(found: Check, file: str | Path) -> None:
    """Write the result to `file`, in place of an earlier one. Raises UsageError, also if it holds something else."""
    try:
        if not _is_own(Path(file)):
            raise UsageError(f"junit: {file} holds something else; move it away or choose another file")
        write_whole(Path(file), _xml(found))
    except OSError as error:
        raise UsageError(f"junit: {file} cannot be written: {error.strerror}; choose another file") from error


def _is_own(file: Path) -> bool:
    """Whether `file` is missing, empty or an earlier result."""
    if not os.path.lexists(file):
        return True
    with file.open("rb") as content:
        return content.read(len(_BEGINS)) in (b"", _BEGINS)


def _xml(found: Check) -> bytes:
    """One test case per system and metric: a regression is a failure, what the tasks cannot tell an error."""
    every: tuple[MetricCheck | FloorCheck, ...] = (*found.metrics, *found.floors)
    kinds = [_KINDS.get(one.outcome, "") for one in every]
    counts = {"tests": len(kinds), "failures": kinds.count("failure"), "errors": kinds.count("error")}
    suite = ElementTree.Element(
        "testsuite", {"name": "adjudge check"} | {name: str(count) for name, count in counts.items()}
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name in ("run", "baseline", "alpha", "max_drop", "min_scored"):
        value = _text(str(getattr(found, name)))
        ElementTree.SubElement(properties, "property", {"name": name, "value": value})
    for one, kind in zip(every, kinds, strict=True):
        name = f"{one.protocol}.{one.metric}"
        if isinstance(one, FloorCheck):
            name += f" at least {one.least:g}"
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": _text(one.system), "name": _text(name)}
        )
        if kind:
            ElementTree.SubElement(case, kind, {"message": _text(one.why)}).text = _text(one.why)
        ElementTree.SubElement(case, "system-out").text = _text(_figures(one))
    ElementTree.SubElement(suite, "system-out").text = _text("\n".join(found.notes))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    text: str = ElementTree.tostring(root, encoding="unicode")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + text.encode()


def _figures(one: MetricCheck | FloorCheck) -> str:
    if isinstance(one, FloorCheck):
        return f"value: {one.value}\nleast: {one.least}\ncoverage: {one.coverage}"
    named = "before after drop low high p holm_p p_below detectable n_used n_tasks".split()
    return "\n".join(f"{name}: {getattr(one, name)}" for name in named)


def _text(text: str) -> str:
    """`text` without the characters that XML has no form for."""
    return _NOT_XML.sub("\ufffd", text)


def run(options: argparse.Namespace) -> int:
    """Check a run against a baseline."""
    unfinished(options.run_folder)
    found = check(
        options.run_folder,
        options.baseline,
        system=options.system,
        against=options.against,
        metrics=options.metric,
        max_drop=options.max_drop,
        alpha=options.alpha,
        min_scored=options.min_scored,
        least=dict(map(floor_in, options.least)),
    )
    if options.junit is not None:
        write_junit(found, options.junit)
    if found.floors and found.metrics and not options.json:
        print_as_table(options, found, floors_table)
    print_as_table(options, found, check_table if found.metrics else floors_table)
    return {"passed": DONE, "regressed": REGRESSED, "unclear": INCOMPLETE}[found.outcome]


def floors_table(found: Check) -> Table:
    """What the run's systems must reach, one line per system and metric."""
    rows = [
        (
            row.system,
            f"{row.protocol}.{row.metric}",
            f"{row.least:g}",
            number(row.value, decimals=row.decimals),
            f"{row.coverage:.1%}",
            row.outcome,
        )
        for row in found.floors
    ]
    return Table.of(
        title=f"{found.run}: what it must reach",
        columns=(
            Column("system", words=True),
            Column("metric", words=True),
            Column("at least"),
            Column("run"),
            Column("scored", spare=1),
            Column("outcome"),
        ),
        blocks=[rows],
        said=() if found.metrics or found.outcome == "passed" else (found.summary,),
    )


def check_table(found: Check) -> Table:
    """The check of a run, one line per system and metric; what did not pass, and notes, underneath."""
    margin = "any significant drop" if found.max_drop is None else f"a drop of {found.max_drop:g}"
    rows = [
        (
            row.system if row.system == row.against else f"{row.system} (against {row.against})",
            f"{row.protocol}.{row.metric}",
            *(number(value, decimals=row.decimals) for value in (row.before, row.after, row.drop)),
            span(row.low, row.high, decimals=row.decimals),
            chance(row.holm_p),
            number(row.detectable, decimals=row.decimals),
            f"{row.n_used:,} of {row.n_tasks:,}",
            row.outcome,
        )
        for row in found.metrics
    ]
    return Table.of(
        title=f"{found.run} against {found.baseline}: {found.outcome} ({margin}, alpha {found.alpha:g})",
        columns=(
            Column("system", words=True),
            Column("metric", words=True),
            Column("baseline", spare=2),
            Column("run", spare=3),
            Column("drop"),
            Column(f"{1 - 2 * found.alpha:.0%}"),
            Column("Holm p", spare=1),
            Column(f"could show ({POWER:.0%})", spare=5),
            Column("tasks", spare=4),
            Column("outcome"),
        ),
        blocks=[rows],
        said=(
            *([] if found.outcome == "passed" else [found.summary]),
            *(f"note: {note}" for note in found.notes),
        ),
    )
