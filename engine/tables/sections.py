"""A leaderboard as sections of tables, the same for its page and for Markdown: standings and their detail."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from adjudge.engine.config.board import SystemConfig
from adjudge.engine.runs.board import Corrected, Detail, Leaderboard, MetricBoard
from adjudge.engine.runs.record import Resolution
from adjudge.engine.statistics.selection import cause_of, remedy
from adjudge.engine.tables.cells import bar_span, number, rounded, score
from adjudge.engine.tables.standings import Ranking, by_group, published, rankings, standings
from adjudge.engine.tables.table import Cell, Column, Table
from adjudge.judges.plural import plural
from adjudge.scoring.contract.answers import Answers

_WORDS = (
    "host",
    "for example",
    "system",
    "minus",
    "reason",
    "cause",
    "what to do",
    "on the frontier of",
    "component",
    "ahead",
    "task",
    "what",
    "people",
    "judge",
    "judge",
    "who",
    "why",
)


def _table(kind: str, title: str, note: str, names: Sequence[str], rows: Iterable[tuple[Cell, ...]]) -> Table:
    columns = tuple(Column(name, words=name in _WORDS) for name in names)
    return Table(kind=kind, title=title, note=note, columns=columns, blocks=(tuple(rows),))


def detail_tables(head: MetricBoard, board: Leaderboard) -> list[Table]:
    """The tables of a headline metric's detail; empty ones are left out."""
    detail = head.detail
    if detail is None:
        return []
    tables = [*([_ranks(detail)] if detail.ranks else []), _pairs(detail, head.scale), *_left_out(detail)]
    tables += [*_samples(head, detail, board), *_cost(head, board, detail)]
    tables.append(_unscored(head))
    tables += [_noise(detail, head.scale, board)]
    return [table for table in tables if table.rows or table.note]


_HOSTS = 20


def unread_table(board: Leaderboard) -> Table | None:
    """What could not be read of the cited pages, by host and reason; None if all was read."""
    if not board.unread:
        return None
    shown = board.unread[:_HOSTS]
    more = sum(one.pages for one in board.unread[_HOSTS:])
    return _table(
        kind="unread",
        title="Pages that could not be read",
        note="Cited pages by host and reason. Those of cause source count against the reports that cite them; others "
        "are nobody's fault."
        + (f" {plural(more, 'further page')} of other hosts or reasons." if more else ""),
        names=("host", "reason", "cause", "pages", "for example", "what to do"),
        rows=tuple(
            (
                Cell(one.host or "others"),
                Cell(one.reason),
                Cell(cause_of(one.reason)),
                Cell(f"{one.pages:,}", one.pages),
                Cell(one.example),
                Cell(remedy(one.reason)),
            )
            for one in shown
        ),
    )


_OF_PAIRS = ("first ahead", "equal", "second ahead")
_SAID = 4  # different answers that are named


def answers_table(board: Leaderboard) -> Table | None:
    """What the judges said by question type, and how their replies ended; None where nobody counted."""
    rows = [
        (
            Cell(protocol),
            Cell(one.words or name, tip=name),
            Cell(f"{one.questions:,}", one.questions),
            Cell(_said(one)),
            Cell(f"{one.entropy:.2f}" if one.said else "-", one.entropy if one.said else None),
            *(_share(count, one.pairs) for count in (one.first, one.equal, one.second)),
            *(_share(count, one.questions) for count in (one.cut, one.looped, one.unscored)),
        )
        for protocol, types in board.answers.items()
        for name, one in types.items()
    ]
    if not rows:
        return None
    columns = [
        Column("protocol", words=True),
        Column("question", words=True),
        Column("answers"),
        Column("what the judge said", words=True),
        Column("bits", spare=3),
        Column("first ahead", spare=4),
        Column("equal", spare=2),
        Column("second ahead", spare=4),
        Column("cut", spare=1),
        Column("loops", spare=1),
        Column("none", spare=1),
    ]
    paired = any(one.pairs for types in board.answers.values() for one in types.values())
    kept = [at for at, one in enumerate(columns) if paired or one.name not in _OF_PAIRS]
    return Table(
        kind="answers",
        title="Answers by question type",
        note="The share of each answer, criterion by criterion, and what one tells, in bits: 0 if all are the same. "
        "Where two texts are marked side by side: how often the one shown first is ahead, both are equal, and the "
        "second is ahead. Of the answers: cut at a limit of tokens, ended in a loop, and none at all.",
        columns=tuple(columns),
        blocks=(tuple(rows),),
    ).arranged(kept)


def _said(one: Answers) -> str:
    """The shares of the most frequent answers, and of all others together."""
    named = one.commonest if len(one.said) <= _SAID else one.commonest[: _SAID - 1]
    shares = [(label.replace("_", " "), count) for label, count in named]
    others = one.choices - sum(count for _, count in named)
    shares += [("others", others)] if others else []
    return ", ".join(f"{label} {count / one.choices:.0%}" for label, count in shares) or "free text"


def _share(count: int, of: int) -> Cell:
    return Cell(f"{count / of:.0%}", count / of) if of else Cell("-")


def systems_table(board: Leaderboard) -> Table | None:
    """What the configuration says of systems, without columns that are empty; None if it says nothing."""
    if not board.systems:
        return None
    columns = [
        ("system", [Cell(name) for name in board.systems]),
        *(
            (field, [Cell(str(getattr(one, field) or "-")) for one in board.systems.values()])
            for field in SystemConfig.__struct_fields__
            if any(getattr(one, field) for one in board.systems.values())
        ),
    ]
    return Table(
        kind="systems",
        title="Systems",
        columns=tuple(Column(name, kind="link" if name == "link" else "", words=True) for name, _ in columns),
        blocks=(tuple(zip(*(cells for _, cells in columns), strict=True)),),
    )


def lengths_table(board: Leaderboard) -> Table | None:
    """How long the systems' reports are; None if nobody has looked."""
    if not board.lengths:
        return None
    return _table(
        kind="lengths",
        title="Length of the reports",
        note="Means per report: words, each ideograph one; tokens, estimated from characters; addresses cited, each "
        "once. A longer report is not a better one: see whether the ranking follows the length.",
        names=("system", "words", "tokens", "citations", "reports"),
        rows=tuple(
            (
                Cell(system),
                *(Cell(f"{value:,.1f}", value) for value in (one.words, one.tokens, one.citations)),
                Cell(f"{one.reports:,}", one.reports),
            )
            for system, one in sorted(board.lengths.items())
        ),
    )


def overrides_table(board: Leaderboard) -> Table | None:
    """The verdicts that people overrode, with who and why; None without any."""
    if not board.overrides:
        return None
    return _table(
        kind="overrides",
        title="Verdicts overridden by people",
        note="The judge's verdict stays, and ranks; the column edited by people has the scores with theirs.",
        names=("system", "task", "what", "judge", "people", "who", "why"),
        rows=tuple(
            tuple(
                map(
                    Cell,
                    (one.system, one.task_id, one.what, one.judge, one.people, one.rater or "-", one.reason),
                )
            )
            for one in board.overrides
        ),
    )


def _ranks(detail: Detail) -> Table:
    return _table(
        kind="ranks",
        title="Rank distribution",
        note="The share of the resamples in which each system has each rank.",
        names=("system", "rank", "share"),
        rows=tuple(
            (
                Cell(one.system),
                Cell(f"{one.rank:g}", one.rank),
                Cell(f"{one.share:.1%}", one.share),
            )
            for one in detail.ranks
        ),
    )


def _pairs(detail: Detail, scale: float) -> Table:
    return _table(
        kind="pairs",
        title="Pairwise differences",
        note="Of the numbers that rank. Where at most 12 tasks differ, p counts all ways to flip the signs of their "
        "differences, else it is Student's; Holm corrects it for the number of pairs."
        + (
            f" Each system with the next and with the best of its tier; {detail.more_pairs:,} other pairs are in "
            "leaderboard.pairs.parquet, and the distribution of ranks in leaderboard.ranks.parquet."
            if detail.more_pairs
            else ""
        ),
        names=("system", "minus", "difference", "interval", "p", "Holm p", "tasks"),
        rows=tuple(
            (
                Cell(pair.a),
                Cell(pair.b),
                Cell(number(pair.difference, scale), pair.difference),
                bar_span(pair.low, pair.high, scale),
                *(Cell("-" if p is None else f"{p:.3g}", p) for p in (pair.p, pair.holm)),
                Cell(str(pair.n_used), pair.n_used),
            )
            for pair in detail.pairs
        ),
    )


def _left_out(detail: Detail) -> list[Table]:
    found = detail.left_out
    if found is None:
        return []
    tau = (
        ""
        if found.least_tau is None
        else f"; the lowest Kendall's tau with the full ranking is {found.least_tau:.2f}"
    )
    note = (
        f"{found.n_kept} of the {plural(found.n_tasks, 'task')} can each be left out without changing the ranking "
        f"(consistent in {found.n_kept / found.n_tasks:.1%}){tau}."
    )
    stays = {name: count / found.n_tasks for name, count in found.stays.items()}
    rows = (
        (Cell(name), Cell(str(best), best), Cell(str(worst), worst), _share_of(stays.get(name)))
        for name, (best, worst) in found.ranks.items()
    )
    return [
        _table(
            kind="left out",
            title="Ranks without one task",
            note=note,
            names=("system", "best", "worst", "keeps its rank"),
            rows=tuple(rows),
        )
    ]


def _share_of(share: float | None) -> Cell:
    return Cell("-" if share is None else f"{share:.1%}", share)


def _samples(head: MetricBoard, detail: Detail, board: Leaderboard) -> Iterator[Table]:
    """The best of several samples over all tasks, then by every attribute, each system with its k of all tasks."""
    if not detail.best_of and not detail.scatter:
        return
    most = {one.system: one.k for one in detail.best_of}  # k rises
    ks = [k for k in range(1, max(most.values(), default=0) + 1) if k.bit_count() == 1 or k in most.values()]
    names = ("system", "tasks", *(f"pass@{k}" for k in ks), "sd of samples", "sd of repeats")
    yield _table(
        kind="samples",
        title=f"{head.metric} of several samples",
        note="pass@k: the mean if only the best of k of a system's reports per task were kept, over all ways to "
        "choose them (in brackets: of the first k), all on the same tasks, those with the most samples that are "
        "due. sd: the standard deviation of a task's samples, and of the judge's repeats of one.",
        names=names,
        rows=tuple(_sample_rows(head, detail, ks)),
    )
    for grouping in board.groupings:
        rows = [
            (Cell(group.name or "none"), *row)
            for group in grouping.groups
            for one in group.metrics
            if (one.protocol, one.metric) == (head.protocol, head.metric)
            and one.detail
            and one.detail.best_of
            for row in _sample_rows(one, one.detail, ks)
        ]
        if rows:
            columns = (Column(grouping.attribute, "group", words=True), *(Column(name) for name in names))
            yield Table(
                kind="samples by",
                title=f"{head.metric} of several samples by {grouping.attribute}",
                note="As above, on the tasks of each group that have so many samples.",
                columns=columns,
                blocks=(tuple(rows),),
            )


def _sample_rows(board: MetricBoard, detail: Detail, ks: Sequence[int]) -> Iterator[tuple[Cell, ...]]:
    """A row for each system: its tasks, the best of each of `ks` samples, and how samples and repeats scatter."""
    found = {(one.system, one.k): one for one in detail.best_of}
    scatter = {one.system: one for one in detail.scatter}
    for row in board.standings:
        first = found.get((row.system, 1))
        on = "-" if first is None else f"{first.n_scored:,} of {first.n_tasks:,}"
        cells = [Cell(row.system), Cell(on, None if first is None else first.n_scored)]
        for k in ks:
            one = found.get((row.system, k))
            text = "-" if one is None else number(one.value, board.scale, board.decimals)
            if one is not None and k > 1 and one.first is not None:
                text += f" ({number(one.first, board.scale, board.decimals)})"
            cells.append(Cell(text, None if one is None else one.value))
        spread = scatter.get(row.system)
        sds = (None, None) if spread is None else (spread.samples, spread.repeats)
        yield (*cells, *(Cell(number(sd, board.scale, board.decimals), sd) for sd in sds))


def _cost(head: MetricBoard, board: Leaderboard, detail: Detail) -> list[Table]:
    # Words have a table of their own, with the other lengths of reports.
    axes = [frontier.axis for frontier in detail.frontiers if frontier.axis != "words"]
    if not axes:
        return []
    on = {
        (frontier.axis, system)
        for frontier in detail.frontiers
        for system, flag in zip(frontier.systems, frontier.on_frontier, strict=True)
        if flag
    }
    timed = {"seconds", "tokens"} <= set(axes)
    rows = []
    for row in head.standings:
        spent = board.spent.get(row.system)
        figures: list[float | None] = [None if spent is None else getattr(spent, axis) for axis in axes]
        if timed:
            figures.append(None if spent is None else spent.rate)
        best = ", ".join(_spent(axis) for axis in axes if (axis, row.system) in on)
        cells = [Cell("-" if value is None else rounded(value), value) for value in figures]
        rows.append((Cell(row.system), score(row, head), *cells, Cell(best or "-")))
    return [
        _table(
            kind="cost",
            title="Score against resources per report",
            note="Means per report, as stated by the systems. On the frontier: no other scores as much for less.",
            names=(
                "system",
                head.metric,
                *map(_spent, axes),
                *(["tokens a second"] if timed else []),
                "on the frontier of",
            ),
            rows=tuple(rows),
        )
    ]


def _spent(axis: str) -> str:
    return axis.replace("_", " ")


def _unscored(head: MetricBoard) -> Table:
    rows = [
        (
            Cell(row.system),
            Cell(reason),
            Cell(cause_of(reason)),
            Cell(str(count), count),
            Cell(remedy(reason)),
        )
        for row in head.standings
        for reason, count in row.unscored.items()
    ]
    note = (
        f"Scores of {head.metric} that are missing; each counts as the worst it could be until it is there."
    )
    return _table(
        kind="unscored",
        title="What was unscored, and why",
        note=note if rows else f"Nothing of {head.metric} was left unscored.",
        names=("system", "reason", "cause", "scores", "what to do"),
        rows=tuple(rows),
    )


def _noise(detail: Detail, scale: float, board: Leaderboard) -> Table:
    noise = detail.noise
    repeats = max((source.repeats for source in board.sources), default=1)
    if noise is None:
        note = (
            "Not measured: the judge answered once. Run with --repeats 2 or more to see its own scatter."
            if repeats == 1
            else "Too few scores to tell."
        )
        return _table(kind="noise", title="Judge noise", note=note, names=("component", "share"), rows=())
    scatter = (
        "cannot be told apart from the rest"
        if noise.repeat_sd is None
        else f"is {number(noise.repeat_sd, scale)} (standard deviation)"
    )
    return _table(
        kind="noise",
        title="Judge noise",
        note=f"The judge's own scatter between repeats {scatter}, from {plural(noise.n_used, 'score')} of "
        f"{plural(repeats, 'repeat')}.",
        names=("component", "share"),
        rows=tuple(
            (Cell(name.replace("_", " x ")), Cell("-" if share is None else f"{share:.1%}", share))
            for name, share in noise.shares.items()
        ),
    )


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One table of a protocol: the metric it is ranked by, and all tables about it, the ranking first."""

    title: str
    head: MetricBoard
    lead: str
    tables: tuple[Table, ...]


def sections_of(board: Leaderboard) -> list[Section]:
    """A section for each table of each protocol."""
    return [_section(ranking, board) for ranking in rankings(board.metrics)]


def _section(ranking: Ranking, board: Leaderboard) -> Section:
    head = ranking.head
    lead = (
        f"Judge {head.judge}. {head.basis[0].upper()}{head.basis[1:]}"
        f"{', lower is better' if head.lower_is_better else ''}. "
        f"Intervals at {board.confidence:.0%} from {board.resamples:,} resamples of tasks."
    )
    tables = [standings(ranking)]
    for metric in ranking.metrics:
        if metric.corrected_differences:
            tables += [_corrected_means(metric), _corrected_differences(metric)]
    tables += [_resolved(one, ranking.metrics) for one in board.stopped if one.protocol == head.protocol]
    tables += [*_groups(ranking, board), *detail_tables(head, board)]
    tables += [_metric(metric) for metric in ranking.metrics if metric is not head]
    tables += [_published(metric) for metric in ranking.metrics if metric.published]
    return Section(title=ranking.title, head=head, lead=lead, tables=tuple(tables))


def _groups(ranking: Ranking, board: Leaderboard) -> Iterator[Table]:
    """The table by every attribute, and each of its metrics with intervals by the attribute that was asked for."""
    head = ranking.head
    for one in board.groupings:
        if head.metric in {found.metric for group in one.groups for found in group.metrics}:
            yield by_group(ranking, one)
        if one.attribute == board.by:
            for metric in ranking.metrics:
                if metric is not head:
                    yield by_group(Ranking.alone(metric), one)


def _metric(metric: MetricBoard) -> Table:
    direction = "Lower is better. " if metric.lower_is_better else ""
    note = f"{direction}{metric.basis[0].upper()}{metric.basis[1:]}."
    found = standings(Ranking.alone(metric))
    return msgspec.structs.replace(found, kind="metric", title=metric.metric, note=note)


def _corrected(found: Corrected | None, scale: float) -> tuple[Cell, ...]:
    """Corrected and people's own figure with their intervals, labelled tasks and the judge's weight."""
    if found is None:
        return (Cell("-"),) * 6
    return (
        Cell(number(found.value, scale), found.value),
        bar_span(found.low, found.high, scale),
        Cell(number(found.people, scale), found.people),
        bar_span(found.people_low, found.people_high, scale),
        Cell(f"{found.n_labelled} of {found.n_labelled + found.n_unlabelled}", found.n_labelled),
        Cell(number(found.power), found.power),
    )


_CORRECTED = (
    "corrected",
    "corrected interval",
    "people alone",
    "people's interval",
    "labelled",
    "judge's weight",
)


def _corrected_means(metric: MetricBoard) -> Table:
    return _table(
        kind="people",
        title=f"{metric.metric} corrected by people's scores",
        note="Prediction-powered (PPI++): an estimate of people's mean over all tasks, from the judge's scores of all "
        "tasks and people's of some, which must be drawn at random. A weight of 0 leaves the judge out.",
        names=("system", metric.metric, "interval", *_CORRECTED),
        rows=tuple(
            (
                Cell(row.system),
                score(row, metric),
                bar_span(row.low, row.high, metric.scale, metric.decimals),
                *_corrected(row.corrected, metric.scale),
            )
            for row in metric.standings
        ),
    )


def _corrected_differences(metric: MetricBoard) -> Table:
    return _table(
        kind="people",
        title=f"Differences of {metric.metric} corrected by people's scores",
        note="The judge's own differences with Student's interval, and the corrected ones.",
        names=("system", "minus", "judge's", "judge's interval", *_CORRECTED),
        rows=tuple(
            (
                Cell(pair.a),
                Cell(pair.b),
                Cell(number(pair.raw, metric.scale), pair.raw),
                bar_span(pair.raw_low, pair.raw_high, metric.scale),
                *_corrected(pair.corrected, metric.scale),
            )
            for pair in metric.corrected_differences
        ),
    )


def _resolved(found: Resolution, metrics: Sequence[MetricBoard]) -> Table:
    scale = next((metric.scale for metric in metrics if metric.metric == found.metric), 1.0)
    return _table(
        kind="resolved",
        title=f"Comparisons by {found.metric}, and when they were resolved",
        note=f"{found.note[0].upper()}{found.note[1:]}.",
        names=("system", "minus", "difference", "interval", "ahead", "after tasks", "scored for both"),
        rows=tuple(
            (
                Cell(pair.a),
                Cell(pair.b),
                Cell(number(pair.difference, scale), pair.difference),
                bar_span(pair.low, pair.high, scale),
                Cell(pair.ahead or "open"),
                Cell(str(pair.resolved_at or "-"), pair.resolved_at),
                Cell(str(pair.n_used), pair.n_used),
            )
            for pair in found.pairs
        ),
    )


def _published(metric: MetricBoard) -> Table:
    own = {row.system: row for row in metric.standings}
    names = [*own, *sorted(metric.published.keys() - own.keys())]
    rows = []
    for name in names:
        row = own.get(name)
        value = None if row is None or row.value is None else row.value * metric.scale
        theirs = metric.published.get(name)
        difference = None if value is None or theirs is None else value - theirs
        rows.append(
            (
                Cell(name),
                Cell("-") if row is None else score(row, metric),
                published(metric, name),
                Cell(number(difference, decimals=metric.decimals), difference),
            )
        )
    return _table(
        kind="published",
        title=f"{metric.metric} beside published figures",
        note="" if metric.published_agreement is None else f"{metric.published_agreement.line}.",
        names=("system", "here", "published", "difference"),
        rows=tuple(rows),
    )
