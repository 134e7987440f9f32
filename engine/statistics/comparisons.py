"""Standings of systems whose reports were compared with one another: strengths and win rates, over all comparisons.

A comparison without an answer counts as lost by both systems in the numbers that rank, and against their coverage; as
published, it is neither won nor lost. The bounds say what would become of a system if it had lost or won all of them.
Coverage and bounds are among ranked systems, so that one system's failures cost no other its rank.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.runs.board import (
    FLAGGED_BELOW,
    FROM_COMPARISONS,
    Detail,
    MetricBoard,
    Standing,
)
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.runs.scores import codes, figure
from adjudge.engine.statistics.listing import listed
from adjudge.engine.statistics.placement import Claims, end_of, ranks_of, stability_of
from adjudge.engine.store.scorecards import RIVAL
from adjudge.judges.plural import plural
from adjudge.scoring.kernels.comparison.claims import rank_spans, tiers
from adjudge.scoring.kernels.comparison.strengths import bradley_terry, shares_against, tournament
from adjudge.scoring.kernels.resampling.bootstrap import Bootstrap, bootstrap
from adjudge.scoring.pairwise.pairwise import FIRST, LAST, WON

__all__ = ["ELO", "comparison_boards"]

ELO = 400.0 / math.log(10.0)  # points of strength to the natural logarithm of odds

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

_KEYS = ("task_id", "system", RIVAL, "sample", "repeat")


class Compared(msgspec.Struct, frozen=True):
    """The comparisons of a protocol, a row for each: places of task and systems, and what the first system won.

    `won` is NaN without an answer, `reason` says why, or whose doing it was that nothing was asked. `weight` is 1 over
    the number of times that the pair was compared by the same reports (the judge's repeats).
    """

    systems: tuple[str, ...]
    tasks: tuple[str, ...]
    task: Integers
    a: Integers
    b: Integers
    won: Floats
    weight: Floats
    reason: list[str]

    @classmethod
    def of(cls, rows: pa.Table, systems: Sequence[str]) -> "Compared":
        """The comparisons in the `rows` of one metric; `systems` may be more than were compared."""
        tasks, task = codes(rows["task_id"])
        names = tuple(sorted({*systems, *rows["system"].to_pylist(), *rows[RIVAL].to_pylist()}))
        place = {name: number for number, name in enumerate(names)}
        a, b = (
            np.array([place[name] for name in rows[column].to_pylist()], np.int64)
            for column in ("system", RIVAL)
        )
        won = rows["value"].to_numpy().astype(np.float64)
        size = len(names)
        match = ((task * size + a) * size + b) * (1 + pc.max(rows["sample"]).as_py()) + rows[
            "sample"
        ].to_numpy()
        _, same = np.unique(match, return_inverse=True)
        times = np.bincount(same.reshape(-1), weights=~np.isnan(won))[same.reshape(-1)]
        weight = 1.0 / np.maximum(times, 1.0)
        reasons = [reason or "" for reason in rows["reason"].to_pylist()]
        return cls(names, tuple(tasks), task, a, b, won, weight, reasons)

    @property
    def answered(self) -> Flags:
        """Which comparisons have a winner, or a tie."""
        return ~np.isnan(self.won)

    def wins(self) -> Floats:
        """[T, S, S]: what the system of the row won against that of the column on each task."""
        shape = (len(self.tasks), len(self.systems), len(self.systems))
        found = np.zeros(shape)
        kept = self.answered
        won, weight = self.won[kept], self.weight[kept]
        np.add.at(found, (self.task[kept], self.a[kept], self.b[kept]), weight * won)
        np.add.at(found, (self.task[kept], self.b[kept], self.a[kept]), weight * (1.0 - won))
        return found

    def counted(self, kept: Flags) -> Floats:
        """[S, S]: how many of the comparisons `kept` are of each pair, both ways round."""
        size = len(self.systems)
        found = np.zeros((size, size))
        np.add.at(found, (self.a[kept], self.b[kept]), self.weight[kept])
        return found + found.T

    def covered(self) -> tuple[Flags, Floats, Floats]:
        """Which systems are ranked; of every system, the comparisons with ranked ones, answered and all.

        Of systems with too few answers the one with the fewest is left out first, and with it the comparisons that
        others lack because of it.
        """
        answered, whole = self.counted(self.answered), self.counted(np.ones_like(self.answered))
        ranked = whole.sum(axis=1) > 0.0
        while True:
            had, there = answered[:, ranked].sum(axis=1), whole[:, ranked].sum(axis=1)
            share = np.where(there > 0.0, had / np.maximum(there, 1e-12), 0.0)
            short = ranked & (share <= FLAGGED_BELOW - 1e-9)
            if not short.any():
                return ranked, had, there
            ranked = ranked & ~(short & (share <= share[short].min() + 1e-12))


def comparison_boards(
    rows: pa.Table,
    records: Sequence[RunRecord],
    judges_of: Callable[[str], str],
    resamples: int,
    level: float,
) -> tuple[list[MetricBoard], list[str]]:
    """The boards of every protocol that compares reports, and what a reader must know of them."""
    boards: list[MetricBoard] = []
    notes: list[str] = []
    for protocol in sorted(set(rows["protocol"].to_pylist())):
        of_protocol = rows.filter(pc.equal(rows["protocol"], protocol))
        own = [record for record in records if protocol in record.metrics]
        systems = sorted({name for record in own for name in record.systems})
        found = Compared.of(_metric(of_protocol, WON), systems)
        baseline = _baseline(protocol, own)
        boards += _boards(
            protocol, found, baseline, judges_of(protocol), records[0].config.seed, resamples, level
        )
        notes += _notes(protocol, found, baseline, of_protocol, own, records[0].config.seed)
    return boards, notes


def _metric(rows: pa.Table, metric: str) -> pa.Table:
    return rows.filter(pc.equal(rows["metric"], metric)).sort_by([(name, "ascending") for name in _KEYS])


def _options(protocol: str, records: Sequence[RunRecord]) -> list[dict[str, object]]:
    """The protocol's options in every run."""
    entries = [entry for record in records for entry in record.config.protocols]
    return [entry for entry in entries if isinstance(entry, dict) and entry.get("name") == protocol]


def _baseline(protocol: str, records: Sequence[RunRecord]) -> str | None:
    """The baseline that all runs share; None if they have none, or different ones."""
    found = {str(entry.get("baseline") or "") for entry in _options(protocol, records)}
    return (found.pop() or None) if len(found) == 1 else None


def _boards(
    protocol: str, found: Compared, baseline: str | None, judge: str, seed: int, resamples: int, level: float
) -> Iterator[MetricBoard]:
    wins = found.wins()
    ranked, had, there = found.covered()
    against = None if baseline is None else found.systems.index(baseline)
    every = tournament(wins, baseline=against, resamples=resamples, level=level, seed=seed)
    missing = found.counted(~found.answered) * (ranked[None, :] | ~ranked[:, None])
    low, high = (_at_worst_or_best(wins.sum(axis=0), missing, best, against) for best in (False, True))
    reasons = _reasons(found)
    strength, win_rate = FROM_COMPARISONS
    for name, scale, answered, ends, least in (
        (strength, ELO, every.strength, (low[0], high[0]), -np.inf),
        (win_rate, 100.0, every.share, (low[1], high[1]), 0.0),
    ):
        lacks = missing.any(axis=1)
        own = answered
        if lacks.any():
            own = answered.moved(np.where(lacks, ends[0] - answered.estimate, 0.0), least)
        among = own if ranked.all() else own.among(ranked)
        worst = np.where(np.isnan(own.estimate), ends[0], own.estimate)
        bounds = [worst, np.where(lacks, ends[1], worst)]
        claims = Claims.resampled(among, ranked, len(found.tasks), 1.0 - level)
        standings = _standings(found.systems, own, answered.estimate, claims, bounds, (had, there), reasons)
        yield MetricBoard(
            protocol=protocol,
            metric=name,
            judge=judge,
            headline=name == strength,
            shown=True,
            scale=scale,
            lower_is_better=False,
            n_tasks=len(found.tasks),
            tau=stability_of(among.tau),
            rho=stability_of(among.rho),
            standings=standings,
            detail=_detail(found, among, claims, standings) if name == strength else None,
        )


def _at_worst_or_best(
    wins: Floats, missing: Floats, best: bool, baseline: int | None
) -> tuple[Floats, Floats]:
    """Every system's strength and share of wins if it alone had won (or lost) all that is `missing` of its own."""
    size = len(wins)
    ends = np.repeat(wins[None], size, axis=0)
    for at in range(size):
        if best:
            ends[at, at] += missing[at]
        else:
            ends[at, :, at] += missing[at]
    fitted = bradley_terry(ends)
    own = np.arange(size)
    return fitted.strength[own, own], shares_against(fitted, baseline)[own, own]


def _reasons(found: Compared) -> list[Counter[str]]:
    """Why comparisons of each system have no answer."""
    counts: list[Counter[str]] = [Counter() for _ in found.systems]
    for at in np.flatnonzero(~found.answered).tolist():
        counts[found.a[at]][found.reason[at]] += 1
        counts[found.b[at]][found.reason[at]] += 1
    return counts


def _standings(
    systems: Sequence[str],
    own: Bootstrap,
    answered: Floats,
    claims: Claims,
    ends: Sequence[Floats],
    counts: tuple[Floats, Floats],
    reasons: Sequence[Counter[str]],
) -> tuple[Standing, ...]:
    """Every system by its `own` resamples, beside what the `answered` comparisons say; ranked by what is claimed."""
    (low, high), ranked = ends, claims.ranked
    found = ranks_of(rank_spans(claims.above, ranked), own.estimate, (low, high), -np.inf, ranked)
    tier = tiers(np.where(ranked, own.estimate, np.nan), claims.above)
    rows = []
    for row, name in enumerate(systems):
        had, there = (round(float(each[row])) for each in counts)
        share = counts[0][row] / counts[1][row] if counts[1][row] else 0.0
        rows.append(
            Standing(
                system=name,
                value=figure(own.estimate[row]),
                low=end_of(own.percentile[row], 0),
                high=end_of(own.percentile[row], 1),
                bound_low=figure(low[row]),
                bound_high=figure(high[row]),
                as_published=figure(answered[row]),
                standard_error=figure(own.standard_error[row]),
                rank=figure(found.rank[row]),
                midrank=figure(found.midrank[row]),
                rank_low=figure(found.span[row, 0]),
                rank_high=figure(found.span[row, 1]),
                tier=int(tier[row]) or None,
                n_total=there,
                n_scored=had,
                n_unscored=there - had,
                unscored=dict(sorted(reasons[row].items())),
                coverage=float(share),
                flagged=not ranked[row],
            )
        )
    return tuple(sorted(rows, key=_place))


def _place(row: Standing) -> tuple[float, float, str]:
    """By rank; unranked systems after them, by value."""
    if row.rank is not None:
        return 0.0, row.rank, row.system
    return 1.0, np.inf if row.value is None else -row.value, row.system


def _detail(found: Compared, drawn: Bootstrap, claims: Claims, standings: Sequence[Standing]) -> Detail:
    """The shares of ranks and the differences of strengths of ranked systems, with the comparisons behind them."""
    order = [found.systems.index(row.system) for row in standings if row.rank is not None]
    made = found.counted(found.answered)
    return listed(found.systems, drawn, claims, order, n_used=made)


def _notes(
    protocol: str,
    found: Compared,
    baseline: str | None,
    rows: pa.Table,
    records: Sequence[RunRecord],
    seed: int,
) -> Iterator[str]:
    against = "each with each" if baseline is None else f"with the baseline {baseline}"
    budgets = {str(entry["budget"]) for entry in _options(protocol, records) if entry.get("budget")}
    few = f", those that told most (budget: {', '.join(sorted(budgets))})" if budgets else ""
    yield (
        f"{protocol}: {plural(len(found.won), 'comparison')} of {plural(len(found.systems), 'system')}, "
        f"{against}{few}; strengths in Elo points about their mean"
    )
    asked = np.array([not reason for reason in found.reason]) & found.answered
    first, last = (_metric(rows, name)["value"].to_numpy() for name in (FIRST, LAST))
    if len(first) == len(last) == len(asked) and asked.any():
        preferred = (first[asked] + 1.0 - last[asked]) / 2.0
        sums, counts = (
            np.bincount(found.task[asked], weights=each, minlength=len(found.tasks))[None]
            for each in (preferred, np.ones(len(preferred)))
        )
        drawn = bootstrap(sums, denominators=counts, resamples=1_000, seed=seed)
        low, high = drawn.percentile[0]
        yield (
            f"{protocol}: the report shown first won {drawn.estimate[0]:.0%} of the answers"
            + (f" ({low:.0%} to {high:.0%})" if np.isfinite(low) else "")
            + "; both orders are asked, so that it favours nobody"
        )
