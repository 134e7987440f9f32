"""Rows of `python -m benchmarks.kernels`: paired tests, rank stability and claim matching.

Both sides get the same arrays, and their results are compared before they are timed.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching
from statsmodels.stats.multitest import multipletests

from adjudge.scoring.kernels.comparison.paired_tests import holm, paired_t, sign_flip, wilcoxon
from adjudge.scoring.kernels.matching.match_claims import ClaimPairs, match_cardinality
from adjudge.scoring.kernels.resampling.rankings import leave_one_out
from benchmarks.timing import Row, compare

Scores = NDArray[np.float64]
EDGE_SHARE = 0.05
PASSES = 10  # ours takes milliseconds, after which the peer works for as many tenths of a second


def rows(quick: bool, wanted: Callable[[str], bool] = lambda name: True) -> Iterator[Row]:
    """The rows whose names are wanted; quick ones are of a tenth of the systems' pairs or less."""
    systems, tasks = (30, 2_000) if quick else (100, 10_000)
    rng = np.random.default_rng(0)
    scores = rng.normal(50, 10, (systems, tasks)) + rng.normal(0, 5, (systems, 1))
    halves = np.clip(np.round(scores / 5) / 2, 0, 10)
    size = f"S={systems} T={tasks}"
    pairs = systems * (systems - 1) // 2
    for name, n, sides in (
        (f"all-pairs Wilcoxon, {size}", pairs, lambda: _wilcoxon_sides(scores)),
        (f"all-pairs Wilcoxon on 0..10 in halves, {size}", pairs, lambda: _wilcoxon_sides(halves)),
        (f"all-pairs paired t, {size}", pairs, lambda: _paired_t_sides(scores)),
        (f"sign flips of all pairs, 2,000 resamples, {size}", pairs, lambda: _sign_flip_sides(scores)),
        ("Holm's adjustment of 100,000 p values", 100_000, lambda: _holm_sides(rng.random(100_000) ** 3)),
        (
            f"leave-one-out with tau, {size}",
            pairs,
            lambda: _leave_one_out_sides(scores, _leave_one_out_by_signs),
        ),
        (
            f"leave-one-out with tau, no ties, {size}",
            pairs,
            lambda: _leave_one_out_sides(scores, _leave_one_out_by_ranks),
        ),
        ("1,000 maximum matchings of 50 x 50", 1_000, lambda: _matching_sides(rng, _matching_by_assignment)),
        (
            "1,000 maximum matchings of 50 x 50, sparse",
            1_000,
            lambda: _matching_sides(rng, _matching_by_graph),
        ),
    ):
        if wanted(name):
            ours, peer, peer_name = sides()
            yield compare(name, ours, peer, peer_name=peer_name, n=n, quick=quick, passes=PASSES)


Sides = tuple[Callable[[], object], Callable[[], object], str]


def _wilcoxon_sides(scores: Scores) -> Sides:
    first, second = np.triu_indices(len(scores), 1)

    def peer() -> list[float]:
        # One call per pair: faster than scipy's own loop along an axis.
        return [
            float(stats.wilcoxon(scores[i], scores[j]).pvalue) for i, j in zip(first, second, strict=True)
        ]

    sample = slice(0, None, max(1, first.size // 50))
    expected = [
        stats.wilcoxon(scores[i], scores[j]).pvalue
        for i, j in zip(first[sample], second[sample], strict=True)
    ]
    np.testing.assert_allclose(wilcoxon(scores).p[sample], expected, rtol=1e-9)
    return lambda: wilcoxon(scores), peer, "scipy.stats.wilcoxon"


def _paired_t_sides(scores: Scores) -> Sides:
    def peer() -> Scores:
        tests = [stats.ttest_rel(scores[i], scores[i + 1 :], axis=1) for i in range(len(scores) - 1)]
        intervals = [test.confidence_interval() for test in tests]
        return np.concatenate(
            [[test.statistic, test.pvalue, *ends] for test, ends in zip(tests, intervals, strict=True)],
            axis=1,
        )

    ours = paired_t(scores)
    np.testing.assert_allclose(np.stack([ours.t, ours.p, ours.low, ours.high]), peer(), rtol=1e-7, atol=1e-12)
    return lambda: paired_t(scores), peer, "scipy.stats.ttest_rel"


def _sign_flip_sides(scores: Scores) -> Sides:
    resamples = 2_000
    first, second = np.triu_indices(len(scores), 1)

    def peer() -> Scores:
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (resamples, scores.shape[1]))
        sums = signs @ scores.T
        least = np.abs(scores.sum(axis=1)[first] - scores.sum(axis=1)[second])
        extreme = sum((np.abs(row[first] - row[second]) >= least).astype(np.int64) for row in sums)
        return np.asarray((1 + extreme) / (1 + resamples))

    # Two generators: p values agree to within their sampling error.
    np.testing.assert_allclose(sign_flip(scores, resamples=resamples).p, peer(), atol=0.08)
    return lambda: sign_flip(scores, resamples=resamples), peer, "numpy, signs @ scores"


def _holm_sides(p: Scores) -> Sides:
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], atol=1e-12)
    return lambda: holm(p), lambda: multipletests(p, method="holm"), "statsmodels multipletests"


def _leave_one_out_sides(scores: Scores, formulation: Callable[[Scores], list[Scores]]) -> Sides:
    ours = leave_one_out(scores)
    tau, best, worst = formulation(scores)
    np.testing.assert_allclose(ours.tau, tau, atol=1e-12)
    np.testing.assert_array_equal([ours.best_rank, ours.worst_rank], [best, worst])
    label = "numpy, signs" if formulation is _leave_one_out_by_signs else "numpy, 8-bit ranks (no ties)"
    return lambda: leave_one_out(scores), lambda: formulation(scores), label


def _leave_one_out_by_signs(scores: Scores) -> list[Scores]:
    """Tau-b and ranks, ties counted: signs of all pairs of means, a system at a time."""
    systems, tasks = scores.shape
    sums = scores.sum(axis=1)
    means, full = (sums[:, None] - scores) / (tasks - 1), sums / tasks
    concordance, ties, rank = np.zeros(tasks), np.zeros(tasks), np.ones(scores.shape)
    for i in range(systems - 1):
        signs = np.sign(means[i] - means[i + 1 :])
        concordance += np.sign(full[i] - full[i + 1 :]) @ signs
        ties += (signs == 0).sum(axis=0)
        rank[i] += (signs < 0).sum(axis=0)
        rank[i + 1 :] += signs > 0
    pairs = systems * (systems - 1) / 2
    return [concordance / np.sqrt(pairs * (pairs - ties)), rank.min(axis=1), rank.max(axis=1)]


def _leave_one_out_by_ranks(scores: Scores) -> list[Scores]:
    """The fastest numpy found, for at most 127 systems whose means are never tied: inversions of 8-bit ranks."""
    systems, tasks = scores.shape
    sums = scores.sum(axis=1)
    falling = np.argsort(-sums)
    means = (sums[falling, None] - scores[falling]) / (tasks - 1)
    rank = np.empty(scores.shape, np.int8)
    order = np.argsort(-means, axis=0)
    np.put_along_axis(rank, order, np.arange(systems, dtype=np.int8)[:, None], 0)
    inversions = np.zeros(tasks, np.int64)
    for i in range(systems - 1):
        inversions += np.add.reduce(rank[i] > rank[i + 1 :], axis=0, dtype=np.int8)
    extremes = np.empty((2, systems))
    extremes[:, falling] = rank.min(axis=1) + 1, rank.max(axis=1) + 1
    return [1 - 4 * inversions / (systems * (systems - 1)), *extremes]


def _matching_sides(
    rng: np.random.Generator, formulation: Callable[[Scores], Callable[[], list[int]]]
) -> Sides:
    edges = (rng.random((1_000, 50, 50)) < EDGE_SHARE).astype(np.float64)
    pairs = ClaimPairs.from_matrices(list(edges))
    peer = formulation(edges)
    np.testing.assert_array_equal(match_cardinality(pairs).count, peer())
    label = (
        "linear_sum_assignment" if formulation is _matching_by_assignment else "maximum_bipartite_matching"
    )
    return lambda: match_cardinality(pairs), peer, f"scipy {label}"


def _matching_by_assignment(edges: Scores) -> Callable[[], list[int]]:
    return lambda: [int(matrix[linear_sum_assignment(matrix, maximize=True)].sum()) for matrix in edges]


def _matching_by_graph(edges: Scores) -> Callable[[], list[int]]:
    graphs = [csr_array(matrix) for matrix in edges]
    return lambda: [int(np.count_nonzero(maximum_bipartite_matching(graph) >= 0)) for graph in graphs]
