"""Agreement of a run's judge with people, or with another run's judge.

A run's scores against people's preferences: does a chosen report score above the rejected ones?
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.config.metrics import headlines
from adjudge.engine.errors import UsageError, unread
from adjudge.engine.runs.run import Run
from adjudge.engine.runs.scores import ScoreMatrix, alone, figure, values_of
from adjudge.engine.statistics.corrections import (
    left_out,
    matrix_named,
    mean_rating,
    rating_array,
    read_ratings,
)
from adjudge.engine.statistics.verdicts import VerdictsOfTwo, verdicts_of_two
from adjudge.scoring.contract.scorecard import Metric
from adjudge.scoring.kernels.agreement.correlations import correlations
from adjudge.scoring.kernels.agreement.human_consistency import (
    human_consistency,
    human_par,
    icc_2_k,
    judge_agreement,
    krippendorffs_alpha,
)
from adjudge.scoring.kernels.comparison.preference_accuracy import (
    Candidate,
    Preference,
    PreferenceAccuracy,
    ScoreRow,
    TiesScore,
    best_of,
    candidate_scores,
    preference_accuracy,
    scored_sides,
    ties_score,
)
from adjudge.scoring.kernels.resampling.bootstrap import bootstrap

__all__ = [
    "MetricAgreement",
    "MetricPreference",
    "Ranked",
    "Rankings",
    "read_preferences",
    "with_humans",
    "with_preferences",
    "with_run",
]

RESAMPLES = 500
CONFIDENCE = 0.95

Floats = npt.NDArray[np.float64]
Tasks = npt.NDArray[np.int64]
Figures = dict[str, float | None]


class Ranked(msgspec.Struct, frozen=True):
    """A system in two rankings: means over the tasks that both have of it, and ranks, equals sharing the best."""

    system: str
    mean: float
    other_mean: float
    rank: int
    other_rank: int


class Rankings(msgspec.Struct, frozen=True, kw_only=True):
    """Two rankings of the same systems by one metric, best first by the first of them.

    `swaps` are the pairs of systems that they order differently, of `n_pairs`; ties of either are no swap. `tau`
    (Kendall's tau-b) and `rho` (Spearman's) correlate the means. Their intervals are in `MetricAgreement.intervals` as
    `tau` and `rho`.
    """

    systems: tuple[Ranked, ...]
    swaps: tuple[tuple[str, str], ...]
    n_pairs: int
    tau: float | None
    rho: float | None


class MetricAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How far two sets of scores of one metric agree; a figure is None where the data do not define it.

    `par`, `par_dr3`, `opc`, `fap` and `fas` are the measures of DeepResearch Bench and DR3-Eval, as defined in
    `scoring/kernels/agreement/human_consistency.py`. `icc_1_1`, `icc_2_k` and `alpha` (Krippendorff's,
    interval) are the raters' agreement with each other if people are compared with, else that of the two judges, and
    `par_people` is the PAR between one person and the others; `pooled_r` and `pooled_rho` are Pearson's and Spearman's
    correlation over all (task, system), as in table 4 of DR3-Eval;
    `kappa` (Cohen's) and `kappa_quadratic` compare two judges. Counts say how much data is behind the figures.
    `intervals` holds each figure's percentile interval at 95 %, from RESAMPLES resamples of the tasks; a figure
    that fewer than half of the resamples define has none. `left_out` are rated reports that the run does not have.
    `rankings` are those by two runs, for a metric that their protocol is ranked by; `verdicts` are those of both judges
    on the same things, at the first metric of each protocol.
    """

    protocol: str
    metric: str
    par: float | None
    par_dr3: float | None
    opc: float | None
    fap: float | None
    fas: float | None
    icc_1_1: float | None
    icc_2_k: float | None
    alpha: float | None
    pooled_r: float | None
    pooled_rho: float | None
    par_people: float | None = None
    kappa: float | None = None
    kappa_quadratic: float | None = None
    n_systems: int
    n_cases: int
    n_pairs: int
    n_tasks_kept: int
    n_raters: int
    left_out: str = ""
    intervals: dict[str, tuple[float, float]] = {}
    rankings: Rankings | None = None
    verdicts: VerdictsOfTwo | None = None


def with_humans(run: str | Path, file: str | Path) -> list[MetricAgreement]:
    """Agreement of the run's judge with the ratings in `file` (CSV or JSON Lines), for every metric that was rated.

    Raises UsageError for a file that cannot be read, an invalid line, or a metric that the run does not have.
    """
    opened = Run.open(run)
    matrices, seed = opened.matrices, opened.config.seed
    ratings = list(read_ratings(Path(file)))
    found = []
    for name in dict.fromkeys(rating.metric for rating in ratings):
        matrix = matrix_named(matrices, name)
        named = [rating for rating in ratings if rating.metric == name]
        humans = rating_array(matrix, named)
        judge = matrix.values
        consistency = human_consistency(humans, judge)
        rated = np.flatnonzero(~np.isnan(humans).all(axis=(0, 2)))

        def redrawn(tasks: Tasks, humans: Floats = humans, judge: Floats = judge) -> Figures:
            return _of_humans(humans[:, tasks], judge[:, tasks])

        found.append(
            MetricAgreement(
                protocol=matrix.protocol,
                metric=matrix.metric,
                **_of_humans(humans, judge),
                n_systems=consistency.n_systems,
                n_cases=consistency.n_cases,
                n_pairs=consistency.n_pairs,
                n_tasks_kept=consistency.n_kept,
                n_raters=humans.shape[2],
                left_out=left_out(matrix, named),
                intervals=_intervals(redrawn, rated, seed),
                rankings=None,
                verdicts=None,
            )
        )
    return found


def with_run(run: str | Path, other: str | Path) -> list[MetricAgreement]:
    """Agreement of the judges of two runs on the same reports, for every metric of both. Raises UsageError."""
    opened, compared = Run.open(run), Run.open(other)
    mine, seed = opened.matrices, opened.config.seed
    others = {(matrix.protocol, matrix.metric): matrix for matrix in compared.matrices}
    verdicts = verdicts_of_two(opened, compared) if opened.has_store and compared.has_store else {}
    heads = {(name, one.name): one for name, own in opened.metrics.items() for one in headlines(own)}
    found = []
    for matrix in mine:
        name = matrix.protocol, matrix.metric
        if name not in others:
            continue
        first, second = _aligned(matrix, others[name])
        agreement = judge_agreement(first, second)
        shared = np.flatnonzero(~np.isnan(first + second).all(axis=0))

        def redrawn(
            tasks: Tasks, first: Floats = first, second: Floats = second, ranks: bool = name in heads
        ) -> Figures:
            one, other = first[:, tasks], second[:, tasks]
            return _of_judges(one, other) | (_correlated(*_means(one, other)) if ranks else {})

        systems = [one for one in matrix.systems if one in others[name].systems]
        found.append(
            MetricAgreement(
                protocol=matrix.protocol,
                metric=matrix.metric,
                **_of_judges(first, second),
                n_systems=agreement.n_systems,
                n_cases=agreement.n_cases,
                n_pairs=agreement.n_pairs,
                n_tasks_kept=agreement.n_tasks,
                n_raters=2,
                left_out="",
                intervals=_intervals(redrawn, shared, seed),
                rankings=None,
                verdicts=verdicts.pop(matrix.protocol, None),
            )
        )
        if name in heads:
            rankings = _rankings(systems, first, second, heads[name])
            found[-1] = msgspec.structs.replace(found[-1], rankings=rankings)
    if not found:
        raise UsageError(
            f"other: {run} and {other} have no metric in common; name runs with a common protocol"
        )
    return found


def _means(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Each system's means over the tasks on which both score it, NaN without any."""
    both = ~np.isnan(first + second)
    with np.errstate(invalid="ignore"):
        one, other = (
            np.where(both, values, 0.0).sum(axis=1) / both.sum(axis=1) for values in (first, second)
        )
    return one, other


def _correlated(mine: Floats, theirs: Floats) -> Figures:
    """Kendall's tau-b and Spearman's rho of two rankings."""
    if not mine.size:
        return {"tau": None, "rho": None}
    found = correlations(np.stack([mine, theirs]), coefficients=("spearman", "kendall"))
    tau, rho = (
        None if matrix is None else figure(matrix[0, 1]) for matrix in (found.kendall, found.spearman)
    )
    return {"tau": tau, "rho": rho}


def _rankings(systems: Sequence[str], first: Floats, second: Floats, metric: Metric) -> Rankings:
    """Both rankings of the `systems` that both runs score on some task."""
    mine, theirs = _means(first, second)
    sign = 1.0 if metric.lower_is_better else -1.0
    ranked = sorted(
        np.flatnonzero(~np.isnan(mine)).tolist(), key=lambda row: (sign * mine[row], sign * theirs[row])
    )

    def rank(means: Floats, row: int) -> int:
        return 1 + sum(bool(sign * means[other] < sign * means[row]) for other in ranked)

    swaps = [
        (systems[a], systems[b])
        for a, b in combinations(ranked, 2)
        if (mine[a] - mine[b]) * (theirs[a] - theirs[b]) < 0.0
    ]
    return Rankings(
        systems=tuple(
            Ranked(systems[row], float(mine[row]), float(theirs[row]), rank(mine, row), rank(theirs, row))
            for row in ranked
        ),
        swaps=tuple(swaps),
        n_pairs=len(ranked) * (len(ranked) - 1) // 2,
        **_correlated(mine[ranked], theirs[ranked]),
    )


def _of_humans(humans: Floats, judge: Floats) -> Figures:
    """The figures for `judge[S, T]` against `humans[S, T, R]`."""
    consistency = human_consistency(humans, judge)
    by_report = humans.reshape(-1, humans.shape[2])
    rated = by_report[~np.isnan(by_report).all(axis=1)]
    return {
        "par": figure(consistency.par),
        "par_dr3": figure(consistency.par_dr3),
        "opc": figure(consistency.opc),
        "fap": figure(consistency.fap),
        "fas": figure(consistency.fas),
        "icc_1_1": _mean(consistency.icc),
        "icc_2_k": figure(float(icc_2_k(rated))),
        "alpha": figure(krippendorffs_alpha(rated.T, level="interval")),
        "par_people": figure(human_par(humans)),
        **_pooled(mean_rating(humans), judge),
    }


def _of_judges(first: Floats, second: Floats) -> Figures:
    """The figures for two judges' scores `[S, T]`."""
    agreement = judge_agreement(first, second)
    return {
        "par": figure(agreement.par),
        "par_dr3": figure(agreement.par_dr3),
        "opc": figure(agreement.opc),
        "fap": figure(agreement.pearson),
        "fas": figure(agreement.spearman),
        "icc_1_1": figure(agreement.icc_1_1),
        "icc_2_k": figure(agreement.icc_2_k),
        "alpha": figure(agreement.alpha),
        **_pooled(first, second),
        "kappa": figure(agreement.kappa),
        "kappa_quadratic": figure(agreement.kappa_quadratic),
    }


def _pooled(first: Floats, second: Floats) -> Figures:
    """The correlations over all reports that both scored; for one pair, threads cost more than they save."""
    both = np.stack([first.ravel(), second.ravel()])
    found = correlations(both, coefficients=("pearson", "spearman"), threads=1)
    pearson, spearman = (
        None if matrix is None else figure(matrix[0, 1]) for matrix in (found.pearson, found.spearman)
    )
    return {"pooled_r": pearson, "pooled_rho": spearman}


def _intervals(
    redrawn: Callable[[Tasks], Figures], tasks: Tasks, seed: int
) -> dict[str, tuple[float, float]]:
    """Percentile intervals of the figures, `tasks` resampled with replacement; none from fewer than two tasks."""
    if tasks.size < 2:
        return {}
    rng = np.random.default_rng(seed)
    draws = [redrawn(tasks[rng.integers(0, tasks.size, tasks.size)]) for _ in range(RESAMPLES)]
    found = {}
    for name in draws[0]:
        values = [value for draw in draws if (value := draw[name]) is not None]
        if 2 * len(values) >= RESAMPLES:
            low, high = np.quantile(values, [(1.0 - CONFIDENCE) / 2.0, (1.0 + CONFIDENCE) / 2.0])
            found[name] = (float(low), float(high))
    return found


def _aligned(first: ScoreMatrix, second: ScoreMatrix) -> tuple[Floats, Floats]:
    """Both judges' scores `[S, T]` on the systems and tasks that both have."""
    systems = [name for name in first.systems if name in second.systems]
    tasks = [name for name in first.tasks if name in second.tasks]
    return values_of(first, systems, tasks), values_of(second, systems, tasks)


def _mean(values: Floats) -> float | None:
    present = values[~np.isnan(values)]
    return float(present.mean()) if present.size else None


Scores = dict[tuple[str, Candidate], float]


class MetricPreference(msgspec.Struct, frozen=True, kw_only=True):
    """How often a metric prefers what people preferred: over all sets, by subset, and in the ties test if there is one.

    `low` and `high` bound the overall `best_of` at 95 %, tasks resampled; None for fewer than two tasks. `chance` is
    the expected `best_of` of a judge that guesses.
    """

    protocol: str
    metric: str
    overall: PreferenceAccuracy
    low: float | None
    high: float | None
    chance: float
    subsets: dict[str, PreferenceAccuracy]
    ties: TiesScore | None


def read_preferences(file: Path) -> list[Preference]:
    """The sets in `file`, one JSON object per line. Raises UsageError.

    {"task_id": ..., "chosen": ["system", ...], "rejected": [{"system": ..., "sample": 1}, ...]}, and optionally
    "subset" and "pair". A set names each report once, and each set of a ties test has its own "pair".
    """
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"preferences: {file} cannot be read: {unread(error)}; correct the path") from error
    found: list[Preference] = []
    named: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            one = msgspec.json.decode(line, type=_Line).preference()
        except (msgspec.MsgspecError, RecursionError) as error:
            raise UsageError(f"preferences: {file}:{number}: {error}") from error
        report, times = Counter((*one.chosen, *one.rejected)).most_common(1)[0]
        if times > 1:
            raise UsageError(
                f"preferences: {file}:{number}: {report.system!r} is named {times} times; name each report once"
            )
        if one.pair and named.setdefault(one.pair, number) != number:
            raise UsageError(
                f"preferences: {file}:{number}: line {named[one.pair]} has pair {one.pair!r} too; name each once"
            )
        found.append(one)
    if not found:
        raise UsageError(f"preferences: {file}: no preferences; add lines with task_id, chosen and rejected")
    return found


def with_preferences(run: str | Path, file: str | Path) -> list[MetricPreference]:
    """Agreement of every metric of the run with the preferences in `file`.

    Raises UsageError for a file that cannot be read, an invalid line, and if no set has all its reports in the run.
    """
    opened = Run.open(run)
    sets = read_preferences(Path(file))
    scores = alone(opened.scores)
    scores = scores.filter(pc.is_in(scores["task_id"], pa.array({one.task_id for one in sets})))
    rows = msgspec.convert(scores.to_pylist(), list[ScoreRow])
    reports = {(row.task_id, Candidate(row.system, row.sample)) for row in rows}
    if not any(reports.issuperset(_reports(one)) for one in sets):
        raise UsageError(
            f"preferences: no set in {file} has all its reports in this run; check task_id and systems"
        )
    lower = {
        (name, metric.name): metric.lower_is_better
        for name, metrics in opened.metrics.items()
        for metric in metrics
    }
    by_metric: dict[tuple[str, str], list[ScoreRow]] = {}
    for row in rows:
        by_metric.setdefault((row.protocol, row.metric), []).append(row)
    return [
        _metric(name, sets, candidate_scores(own, *name, lower.get(name, False)), opened.config.seed)
        for name, own in by_metric.items()
    ]


class _Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    task_id: str
    chosen: tuple[Candidate | str, ...]
    rejected: tuple[Candidate | str, ...]
    subset: str = ""
    pair: str = ""

    def preference(self) -> Preference:
        sides = {"chosen": _candidates(self.chosen), "rejected": _candidates(self.rejected)}
        return msgspec.convert({**msgspec.structs.asdict(self), **sides}, Preference)


def _candidates(side: Iterable[Candidate | str]) -> tuple[Candidate, ...]:
    return tuple(Candidate(one) if isinstance(one, str) else one for one in side)


def _reports(one: Preference) -> set[tuple[str, Candidate]]:
    return {(one.task_id, candidate) for candidate in (*one.chosen, *one.rejected)}


def _metric(name: tuple[str, str], sets: Sequence[Preference], scores: Scores, seed: int) -> MetricPreference:
    subsets = preference_accuracy(sets, scores)
    low, high = _interval(sets, scores, seed)
    return MetricPreference(
        protocol=name[0],
        metric=name[1],
        overall=subsets.pop(""),
        low=low,
        high=high,
        chance=float(np.mean([len(one.chosen) / len(_reports(one)) for one in sets])),
        subsets=subsets,
        ties=ties_score(sets, scores) if any(one.pair for one in sets) else None,
    )


def _interval(sets: Sequence[Preference], scores: Scores, seed: int) -> tuple[float | None, float | None]:
    """The interval of the mean credit per set, tasks resampled with all their sets."""
    tasks = {task: place for place, task in enumerate(dict.fromkeys(one.task_id for one in sets))}
    credits, counts = np.zeros(len(tasks)), np.zeros(len(tasks))
    for one in sets:
        if sides := scored_sides(one, scores):
            credits[tasks[one.task_id]] += best_of(*sides)
            counts[tasks[one.task_id]] += 1
    used = counts > 0
    if used.sum() < 2:
        return None, None
    drawn = bootstrap(credits[None, used], denominators=counts[None, used], seed=seed)
    return figure(drawn.percentile[0, 0]), figure(drawn.percentile[0, 1])
