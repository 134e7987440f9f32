"""What a reader of a leaderboard must know before comparing: notes beside its figures."""

from collections import Counter
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.leaderboard.board import FLAGGED_BELOW, MetricBoard
from adjudge.engine.leaderboard.correction import Correction
from adjudge.engine.records.record import RunRecord
from adjudge.judges.panel import same_family

__all__ = ["notes_on"]

_NO_ROOM = ("answer_truncated", "context_overflow")


def notes_on(
    records: Sequence[RunRecord],
    boards: Sequence[MetricBoard],
    corrected: Sequence[Correction],
    scores: pa.Table,
) -> tuple[str, ...]:
    """The notes on a leaderboard of the runs `records`: on its `boards`, people's corrections and all score rows."""
    return (
        *_differing(records),
        *_judging(records),
        *(record.stopped.note for record in records if record.stopped is not None),
        *_correcting(corrected),
        *_unanswered(records, scores),
        *dict.fromkeys(note for board in boards if board.headline for note in _lacking(board)),
        *_unscored_beside(boards),
        *_no_room(scores),
    )


def _differing(records: Sequence[RunRecord]) -> Iterator[str]:
    for what, values in (
        ("judges", [record.judge.fingerprint for record in records]),
        ("prompts", [str(sorted(record.prompts.items())) for record in records]),
        ("protocol options", [str(record.config.protocols) for record in records]),
        ("criteria", [str(record.criteria) for record in records]),
    ):
        if len(set(values)) > 1:
            yield f"these runs differ in their {what}: compare their scores with care"
    changed = _changed_tasks(records)
    if changed:
        yield f"these runs differ in the prompt or gold of {changed} tasks: compare their scores with care"


def _changed_tasks(records: Sequence[RunRecord]) -> int:
    """How many task ids stand for different tasks in different runs."""
    digests: dict[str, set[str]] = {}
    for record in records:
        for name, task in record.tasks.items():
            digests.setdefault(name, set()).add(task.digest)
    return sum(len(found - {""}) > 1 for found in digests.values())


def _judging(records: Sequence[RunRecord]) -> Iterator[str]:
    if any(record.judge.name == "lexical" for record in records):
        yield "the lexical judge sees words, not meaning: a baseline, not a measure of quality"
    for record in records:
        related = same_family(record.judge.name, record.systems)
        if related:
            family = ", ".join(related)
            yield f"the judge {record.judge.name} is from the same family as {family}: it may favour its own"


def _correcting(corrected: Sequence[Correction]) -> Iterator[str]:
    if any(one.differences for one in corrected):
        yield "corrected figures estimate people's mean scores; they hold if the rated tasks were drawn at random"
    for one in corrected:
        if one.left_out:
            yield f"{one.protocol} {one.metric}: people rated reports that are not in these runs: {one.left_out}"


def _unanswered(records: Sequence[RunRecord], scores: pa.Table) -> Iterator[str]:
    """Tasks without any report, except in runs that stopped early by themselves."""
    tasks = {name for record in records if record.stopped is None for name in record.tasks}
    without = tasks.difference(pc.unique(scores["task_id"]).to_pylist())
    if without:
        yield f"{len(without)} of {len(tasks)} tasks have no report"


def _lacking(board: MetricBoard) -> Iterator[str]:
    """What is missing from a headline metric, for some systems or for all."""
    name = f"{board.protocol} {board.metric}"
    flagged = [row.system for row in board.standings if row.flagged]
    if flagged:
        yield f"{name}: under {FLAGGED_BELOW:.0%} scored for {', '.join(flagged)} (*)"
    most = max((row.n_total for row in board.standings), default=0)
    fewer = [f"{row.system} ({row.n_total} of {most})" for row in board.standings if row.n_total < most]
    if fewer:
        yield f"{board.protocol}: fewer reports than others for {', '.join(fewer)}"
    if not board.n_common:
        yield f"{name}: no task is scored for all systems, so they are not ranked"


def _unscored_beside(boards: Sequence[MetricBoard]) -> Iterator[str]:
    """Metrics that lack values where their protocol's headline metric has them: the standings do not show it."""
    heads = {board.protocol: _unscored(board) for board in boards if board.headline}
    beside: dict[tuple[str, str], list[str]] = {}
    for board in boards:
        more = _unscored(board) - heads.get(board.protocol, Counter())
        if more:
            reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(more.items()))
            beside.setdefault((board.protocol, reasons), []).append(board.metric)
    for (protocol, reasons), metrics in beside.items():
        yield f"{protocol} {', '.join(metrics)}: unscored where its headline is not: {reasons}"


def _unscored(board: MetricBoard) -> Counter[str]:
    return sum((Counter(row.unscored) for row in board.standings), Counter())


def _no_room(scores: pa.Table) -> list[str]:
    """Reports that got the minimum because the judge could not read them whole, or not finish its answer."""
    wanted = pc.and_(pc.is_valid(scores["value"]), pc.is_in(scores["reason"], pa.array(_NO_ROOM)))
    cards = scores.filter(wanted).group_by(["protocol", "reason", "system", "task_id", "sample", "repeat"])
    counted = cards.aggregate([]).group_by(["protocol", "reason"]).aggregate([([], "count_all")])
    return [
        f"{row['protocol']}: {row['count_all']} reports got the minimum because of {row['reason']}: if that is most of "
        "them, raise the limit on the judge's context or answers and ask again with --retry-unscored"
        for row in sorted(counted.to_pylist(), key=lambda row: (row["protocol"], row["reason"]))
    ]
