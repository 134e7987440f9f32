"""From runs to a leaderboard: every metric and rank with its interval, and what is missing and why.

The number that is shown is the number that ranks: a system's mean over all tasks that are due, with what is missing at
its worst. A system under 95 % coverage is shown underneath, without a rank.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa

from adjudge.engine.config.board import BoardConfig, SystemConfig
from adjudge.engine.config.metrics import Name, headlines, named
from adjudge.engine.config.run import EVERYTHING, Select
from adjudge.engine.errors import UsageError
from adjudge.engine.runs.board import (
    Correction,
    Detail,
    Grouping,
    Leaderboard,
    MetricBoard,
    Noise,
    Provenance,
)
from adjudge.engine.runs.choice import chosen_runs
from adjudge.engine.runs.record import RunRecord, Spent, TaskRecord
from adjudge.engine.runs.run import Run
from adjudge.engine.runs.scores import alone, compared, metric_rows, settled, told_apart
from adjudge.engine.runs.tallies import best_known_lengths, joined_answers, joined_unread, signs_so_far
from adjudge.engine.statistics.analysis import Samples, detail_of, noise_of, samples_of
from adjudge.engine.statistics.comparisons import comparison_boards
from adjudge.engine.statistics.corrections import corrections, item_corrections
from adjudge.engine.statistics.edits import NO_EDITS, Edits, edits_of, with_edits
from adjudge.engine.statistics.integrity import Integrity, integrity_of
from adjudge.engine.statistics.notes import notes_on
from adjudge.engine.statistics.placement import (
    CONFIDENCE,
    Claims,
    Drawing,
    Known,
    Measured,
    Statistics,
    attributes_of,
    grouped,
    known_attribute,
    measured,
    placed,
    ranked_among,
    sign_of,
)
from adjudge.engine.statistics.published import Published, agreement_with, figures_for, published_names
from adjudge.engine.statistics.selection import selections
from adjudge.scoring.contract.scorecard import Metric

__all__ = ["build_leaderboard", "leaderboard_of", "leaderboard_so_far"]


class _Known(msgspec.Struct, frozen=True, kw_only=True):
    """What the `records` of the runs say about metrics, those that protocols are ranked by, tasks and systems."""

    metrics: Known
    ranking: frozenset[tuple[str, str]]
    tasks: dict[str, TaskRecord]
    spent: dict[str, Spent]
    records: list[RunRecord]
    seed: int
    noise: dict[tuple[str, str], Noise | None]

    @classmethod
    def of(cls, records: list[RunRecord], scores: pa.Table) -> "_Known":
        declared: dict[str, dict[str, Metric]] = {}
        for record in records:
            for protocol, found in record.metrics.items():
                declared.setdefault(protocol, {}).update({metric.name: metric for metric in found})
        ranking = {
            (protocol, metric.name): metric
            for protocol, own in declared.items()
            for metric in headlines(own.values())
        }
        metrics = {
            (protocol, name): msgspec.structs.replace(metric, headline=(protocol, name) in ranking)
            for protocol, own in declared.items()
            for name, metric in own.items()
        }
        repeated = any(record.config.repeats > 1 for record in records)
        return cls(
            metrics=metrics,
            ranking=frozenset(ranking),
            tasks={name: task for record in records for name, task in record.tasks.items()},
            spent=_spent(records),
            records=records,
            seed=records[0].config.seed,
            noise={
                (protocol, name): noise_of(scores, protocol, name) for protocol, name in ranking if repeated
            },
        )

    def judges_of(self, protocol: str) -> str:
        """Who judged a protocol in these runs, in words."""
        own = [record for record in self.records if protocol in record.metrics]
        return " + ".join(dict.fromkeys(record.judging.said_of(protocol) for record in own or self.records))


def build_leaderboard(
    runs: Sequence[str | Path | Run],
    statistics: Statistics | None = None,
    published: Sequence[Published] = (),
    human: str | Path | None = None,
    select: Select = EVERYTHING,
    by: str = "",
    metrics: Sequence[str] = (),
    labels: str | Path | None = None,
) -> Leaderboard:
    """The leaderboard of what `select` chooses of `runs`, open or by their folders; `statistics` computes it, by
    default in this process.

    `published`, `human`, `by` and `metrics` are those of `leaderboard_of`; people's labels of single verdicts in the
    file `labels` correct the metrics that the verdicts make up.
    Of a run that has not finished, the tasks count that are complete. Raises UsageError for a folder without a run, and
    what `leaderboard_of` raises.
    """
    opened = [run if isinstance(run, Run) else Run.open(run) for run in runs]
    if len({run.folder for run in opened}) < len(opened):
        raise UsageError("leaderboard: a run is named twice; name each run once")
    records = [_looked_at(run) for run in opened]
    statistics = statistics or Statistics()
    unfinished = []
    if len({bool(record.recorded) for record in records}) > 1 or any(record.due for record in records):
        tables = []
        for record, run in zip(records, opened, strict=True):
            table, said = settled(record, statistics.read([run]))
            tables.append(table)
            unfinished += [f"run {record.run}: {said}" if len(records) > 1 else said] if said else []
        records, scores = told_apart(records, tables)
    else:
        scores = statistics.read(opened)
    records, scores = chosen_runs(select, records, scores)
    chosen_of = list(zip(opened, records, strict=True))
    corrected = [] if labels is None else item_corrections(chosen_of, labels)
    edits = NO_EDITS if labels is None else edits_of(chosen_of, labels)
    board = leaderboard_of(records, scores, statistics, published, human, by, metrics, corrected, edits)
    chosen = (f"chosen for this leaderboard: {select.words}",) if select.words else ()
    return _provisional(msgspec.structs.replace(board, notes=(*chosen, *board.notes)), unfinished)


def _looked_at(run: Run) -> RunRecord:
    """The record of `run`; of one that has not finished, with the signs in the reports that are judged by now."""
    if run.written.due is None:
        return run.written
    return msgspec.structs.replace(run.written, signs=signs_so_far(run.place, run.written.run))


def leaderboard_so_far(record: RunRecord, scores: pa.Table, statistics: Statistics) -> Leaderboard:
    """The leaderboard of a run that has not finished, over the tasks that are complete in its score rows."""
    kept, said = settled(record, scores)
    return _provisional(leaderboard_of([record], kept, statistics), [said])


def _provisional(board: Leaderboard, said: Sequence[str]) -> Leaderboard:
    return msgspec.structs.replace(board, provisional=tuple(said), notes=(*said, *board.notes))


def leaderboard_of(
    records: list[RunRecord],
    scores: pa.Table,
    statistics: Statistics,
    published: Sequence[Published] = (),
    human: str | Path | None = None,
    by: str = "",
    metrics: Sequence[str] = (),
    corrected: Sequence[Correction] = (),
    edits: Edits = NO_EDITS,
) -> Leaderboard:
    """The leaderboard of the runs in `records`, whose score rows, one after the other, are `scores`.

    `published` figures are set beside the metrics they name. The ratings in the file `human` give corrected means and
    differences beside the judge's, in the place of `corrected` ones; `edits` are verdicts that people overrode.
    All metrics are grouped `by` this attribute of tasks, the headline ones by every attribute. `metrics` are shown
    instead of the protocols' own choice. Raises UsageError if no published figure is for a metric of these runs, and
    for an unknown attribute or metric.
    """
    comparisons, scores = compared(scores), alone(scores)
    known, rows = _Known.of(records, scores), metric_rows(scores)
    among = selections(records, rows)
    corrected = corrected if human is None else corrections([one.matrix() for one in rows], human)
    if by:
        known_attribute(by, known.tasks)
    every = list(measured(rows, known.metrics, among, known.judges_of))
    due, without = _due(every)
    integrity = integrity_of(scores, records)
    boards = [
        with_edits(_with_people(_board(one, known, statistics), corrected), edits.changes) for one in due
    ]
    unknown: list[str] = []
    ranking = known.ranking
    if published:
        boards, unknown = _with_published(boards, published)
    if comparisons is not None:
        found, said = comparison_boards(
            comparisons, records, known.judges_of, statistics.resamples, CONFIDENCE
        )
        boards, unknown = [*boards, *found], [*said, *unknown]
        ranking |= {(one.protocol, one.metric) for one in headlines(found)}
    boards = [
        _with_signs(board, integrity) if (board.protocol, board.metric) in ranking else board
        for board in boards
    ]
    abouts = [record.config.board for record in records]
    groupings = tuple(
        _with_samples(one, due, boards, known.tasks) for one in _groupings(due, known, statistics, by)
    )
    return Leaderboard(
        runs=tuple(record.run for record in records),
        answers=joined_answers(record.answers for record in records),
        unread=joined_unread([one for record in records for one in record.unread]),
        notes=(*notes_on(records, boards, corrected), *edits.notes, *integrity.notes, *without, *unknown),
        confidence=CONFIDENCE,
        resamples=statistics.resamples,
        seed=known.seed,
        metrics=tuple(_in_order(_shown(boards, metrics), known.metrics)),
        sources=tuple(Provenance.of(record) for record in records),
        spent=known.spent,
        lengths=best_known_lengths(record.lengths for record in records),
        stopped=tuple(record.stopped for record in records if record.stopped is not None),
        by=by,
        groupings=groupings,
        about=next((one for one in abouts if one != BoardConfig()), BoardConfig()),
        systems=_described(records),
        tasks={
            name: {one.attribute: task.attribute(one.attribute) for one in groupings}
            for name, task in known.tasks.items()
            if groupings
        },
        overrides=edits.overrides,
    )


def _spent(records: Sequence[RunRecord]) -> dict[str, Spent]:
    """What systems spent, and the words of their reports, where either is known."""
    stated = {name: spent for record in records for name, spent in record.spent.items()}
    for name, length in best_known_lengths(record.lengths for record in records).items():
        known = stated.get(name, Spent(reports=length.reports, seconds=None, cost=None, tokens=None))
        stated[name] = msgspec.structs.replace(known, words=length.words)
    return stated


def _described(records: Sequence[RunRecord]) -> dict[str, SystemConfig]:
    """What the first configuration that says anything of a system says of it."""
    found: dict[str, SystemConfig] = {}
    for record in records:
        for name in record.systems:
            if name in record.config.systems:
                found.setdefault(name, record.config.systems[name])
    return found


def _groupings(due: Sequence[Measured], known: _Known, statistics: Statistics, by: str) -> Iterator[Grouping]:
    """All metrics `by` the attribute asked for, and the headline metrics by the others; nothing without groups."""
    drawing = Drawing(resamples=statistics.resamples, seed=known.seed)
    ranking = [one for one in due if one.name in known.ranking]
    for attribute in dict.fromkeys([*([by] if by else []), *attributes_of(known.tasks)]):
        yield grouped(attribute, due if attribute == by else ranking, known.tasks, drawing)


def _with_samples(
    grouping: Grouping,
    due: Sequence[Measured],
    boards: Sequence[MetricBoard],
    tasks: Mapping[str, TaskRecord],
) -> Grouping:
    """`grouping` with the best of several samples in each group, where the metric has them over all tasks.

    Each system's k is the one that it has there: a group shows what its tasks add to that.
    """
    most = {
        (board.protocol, board.metric): {one.system: one.k for one in board.detail.best_of}  # k rises
        for board in boards
        if board.detail is not None and board.detail.best_of
    }
    if not most:
        return grouping
    measured = {one.name: one for one in due}
    groups = []
    for group in grouping.groups:
        own = {name for name, task in tasks.items() if task.attribute(grouping.attribute) == group.name}
        found = []
        for board in group.metrics:
            name = board.protocol, board.metric
            if name in most:
                one = measured[name]
                samples = samples_of(one.rows[0].on(own), one.metric, most[name])
                board = msgspec.structs.replace(
                    board, detail=Detail.of_samples(samples.best_of, samples.scatter)
                )
            found.append(board)
        groups.append(msgspec.structs.replace(group, metrics=tuple(found)))
    return msgspec.structs.replace(grouping, groups=tuple(groups))


def _shown(boards: Sequence[MetricBoard], metrics: Sequence[str]) -> list[MetricBoard]:
    """`boards`, of which those that `metrics` name are shown; as they are if it names none."""
    if not metrics:
        return list(boards)
    known = [Name(board.protocol, board.metric) for board in boards]
    chosen = {named(said, known, "metric") for said in metrics}
    return [
        msgspec.structs.replace(board, shown=name in chosen)
        for board, name in zip(boards, known, strict=True)
    ]


def _in_order(boards: Sequence[MetricBoard], declared: Known) -> list[MetricBoard]:
    """`boards` by protocol in the order of the configuration, metrics as declared; those of single tasks last."""
    places = {name: place for place, name in enumerate(declared)}
    protocols = {name: place for place, name in enumerate(dict.fromkeys(name for name, _ in declared))}
    last = len(places)
    return sorted(
        boards,
        key=lambda board: (
            protocols.get(board.protocol, last),
            board.protocol,
            places.get((board.protocol, board.metric), last),
        ),
    )


def _due(every: Sequence[Measured]) -> tuple[list[Measured], list[str]]:
    """The metrics that some task has the gold for; and what to say of the tables of a protocol that no task has.

    A protocol without gold for any task keeps its tables: they say what is missing.
    """
    some = {one.protocol for one in every if one.among.tasks}
    due = [one for one in every if one.among.tasks or one.protocol not in some]
    names = {one.name for one in due}
    tables = {(one.protocol, one.metric.table) for one in due}
    without = dict.fromkeys(
        f"{one.protocol} {one.metric.table or one.metric.name}: left out: no task has the gold for it"
        f"{f' ({one.metric.gold})' if one.metric.gold else ''}"
        for one in every
        if one.name not in names and (one.protocol, one.metric.table) not in tables
    )
    return due, list(without)


def _board(one: Measured, known: _Known, statistics: Statistics) -> MetricBoard:
    """The board of a metric over all its tasks, with its detail if its protocol is ranked by it."""
    filled, sign = one.filled(), sign_of(one)
    clip = filled.signed_clip(sign)
    own = statistics.resample(sign * filled.values, filled.denominators, known.seed, clip)
    ranked = ranked_among(filled, own.estimate)
    drawn = own if ranked.all() else own.among(ranked)
    heads = one.name in known.ranking
    claims = Claims.of(filled, sign, ranked, bounded=heads)
    detail = None
    if heads:
        samples = Samples() if one.parts else samples_of(one.rows[0], one.metric, one.among.samples)
        noise = known.noise.get(one.name)
        detail = detail_of(filled, claims, drawn, sign, known.spent, noise, samples)
    return placed(one, filled, own, drawn, claims, len(one.among.without_gold), detail)


def _with_published(
    boards: Sequence[MetricBoard], published: Sequence[Published]
) -> tuple[list[MetricBoard], list[str]]:
    """`boards` with the figures of their metrics; and a note on the metrics that these runs do not have."""
    known = [Name(board.protocol, board.metric) for board in boards]
    names = published_names(published, known)
    if not any(names.values()):
        there = ", ".join(name.full for name in known)
        raise UsageError(f"published: no figure belongs to a metric of these runs; use one of {there}")
    found = []
    for board, name in zip(boards, known, strict=True):
        own = [one for one in published if names[one.metric] == name]
        figures = figures_for(own, name, [row.system for row in board.standings])
        ours = {
            row.system: row.as_published * board.scale
            for row in board.standings
            if row.as_published is not None
        }
        if figures:
            board = msgspec.structs.replace(
                board, published=figures, published_agreement=agreement_with(ours, figures)
            )
        found.append(board)
    unknown = [said for said, name in names.items() if name is None]
    return found, [f"published: left out, no metric of these runs: {', '.join(unknown)}"] if unknown else []


def _with_people(board: MetricBoard, corrected: Sequence[Correction]) -> MetricBoard:
    """`board` with its means and differences corrected by people's scores."""
    for one in corrected:
        if one.means and (one.protocol, one.metric) == (board.protocol, board.metric):
            standings = tuple(
                msgspec.structs.replace(row, corrected=one.means.get(row.system)) for row in board.standings
            )
            return msgspec.structs.replace(board, standings=standings, corrected_differences=one.differences)
    return board


def _with_signs(board: MetricBoard, integrity: Integrity) -> MetricBoard:
    """`board`, which ranks, with what the systems' reports do to please."""
    signs = {row.system: integrity.signs.get((board.protocol, row.system), ()) for row in board.standings}
    if not any(signs.values()):
        return board
    standings = tuple(msgspec.structs.replace(row, signs=signs[row.system]) for row in board.standings)
    return msgspec.structs.replace(board, standings=standings)
