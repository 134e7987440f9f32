"""The bootstrap against scipy, against theory, against itself, and on degenerate input."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from adjudge.scoring.kernels.base.arrays import KernelError
from adjudge.scoring.kernels.base.streams import draw_counts, philox, poisson_tails, seed_key
from adjudge.scoring.kernels.resampling.bootstrap import (
    Bootstrap,
    Sampler,
    bootstrap,
    bootstrap_part,
    merge,
    whole_numbers,
)
from adjudge.scoring.kernels.resampling.intervals import difference_intervals, quantiles
from adjudge.scoring.kernels.resampling.rankings import descending_midranks, rankings
from benchmarks.coverage import coverage

Floats = npt.NDArray[np.float64]


def _scores(systems: int, tasks: int, missing: float = 0.05, seed: int = 7) -> Floats:
    generator = np.random.default_rng(seed)
    difficulty = generator.normal(0.0, 10.0, tasks)
    scores = (
        generator.normal(60.0, 3.0, (systems, 1)) + difficulty + generator.normal(0.0, 8.0, (systems, tasks))
    )
    scores[generator.random((systems, tasks)) < missing] = np.nan
    return np.asarray(scores, dtype=np.float64)


def _counts(tasks: int, resamples: int, seed: int, bounds: list[int] | None = None) -> npt.NDArray[np.uint8]:
    edges = np.array(bounds or [0, tasks], dtype=np.int64)
    counts = np.zeros((tasks, resamples), dtype=np.uint8)
    draw_counts(counts, edges, poisson_tails(np.diff(edges)), 0, *seed_key(seed))
    return counts


RANKS = ("rank", "rank_counts", "ranked", "tau", "rho")  # computed when they are asked for


def _equal(first: Bootstrap, second: Bootstrap) -> bool:
    """Bit for bit, whatever the number of threads or parts."""
    return all(
        np.array_equal(a, b, equal_nan=True) if isinstance(a, np.ndarray) else a == b or (a != a and b != b)
        for a, b in (
            (getattr(first, name), getattr(second, name)) for name in (*first.__struct_fields__, *RANKS)
        )
    )


# Random streams


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ([0, 0, 0, 0], [0, 0], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_gives_the_published_words(counter: list[int], key: list[int], words: list[int]) -> None:
    block = np.repeat(np.array(counter, dtype=np.uint32)[:, None], 5, axis=1)
    philox(block, np.uint32(key[0]), np.uint32(key[1]))
    assert (block == np.array(words, dtype=np.uint32)[:, None]).all()


@pytest.mark.parametrize("tasks", [1, 2, 3, 10, 50, 1000])
def test_counts_are_multinomial_against_theory(tasks: int) -> None:
    resamples = 20_000
    counts = _counts(tasks, resamples, seed=3)
    assert (counts.sum(axis=0, dtype=np.int64) == tasks).all()
    expected = stats.binom(tasks, 1.0 / tasks).pmf(np.arange(8)) * tasks * resamples
    observed = np.bincount(counts.ravel(), minlength=8)[:8]
    likely = expected > 50
    noise = np.sqrt(expected[likely] + 1.0)
    assert (np.abs(observed[likely] - expected[likely]) < 5.0 * noise).all()


def test_tasks_are_drawn_equally_often_against_theory() -> None:
    per_task = _counts(100, 20_000, seed=5).sum(axis=1, dtype=np.int64)
    assert stats.chisquare(per_task).pvalue > 1e-4


def test_pairs_of_draws_are_multinomial_against_theory() -> None:
    counts = _counts(4, 50_000, seed=11)
    patterns, observed = np.unique(counts, axis=1, return_counts=True)
    chances = stats.multinomial(4, [0.25] * 4).pmf(patterns.T)
    assert chances.sum() == pytest.approx(1.0)
    assert stats.chisquare(observed, chances * 50_000).pvalue > 1e-4


def test_redrawn_resamples_are_multinomial() -> None:
    """The mean is 1 - 3 / sqrt(n), so about one resample in 700 starts with too many draws."""
    counts = _counts(400, 60_000, seed=13)
    assert (counts.sum(axis=0, dtype=np.int64) == 400).all()
    assert np.var(counts, dtype=np.float64) == pytest.approx(1.0 - 1.0 / 400, rel=2e-3)


def test_strata_keep_their_sizes() -> None:
    counts = _counts(60, 500, seed=1, bounds=[0, 1, 8, 60])
    sums = np.add.reduceat(counts.astype(np.int64), [0, 1, 8], axis=0)
    assert (sums == np.array([[1], [7], [52]])).all()


def test_seeds_and_resamples_differ() -> None:
    first, other = _counts(50, 200, seed=1), _counts(50, 200, seed=2)
    assert not np.array_equal(first, other)
    assert not np.array_equal(_counts(50, 200, seed=1), _counts(50, 200, seed=1 + 2**32))
    assert np.unique(first, axis=1).shape[1] == 200


# Against itself


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("cuts", [[300], [1, 299], [128, 129, 43], [100, 7, 193]])
def test_threads_and_shards_change_nothing(threads: int, cuts: list[int]) -> None:
    scores = _scores(7, 130)
    strata = np.arange(130) % 3
    whole = bootstrap(scores, strata=strata, resamples=300, seed=42, threads=1)
    firsts = np.cumsum([0, *cuts[:-1]])
    parts = [
        bootstrap_part(scores, strata=strata, first=int(first), count=count, seed=42, threads=threads)
        for first, count in zip(firsts, cuts, strict=True)
    ]
    assert _equal(whole, merge(parts[::-1], threads=threads))


def test_system_order_changes_only_the_output_order() -> None:
    scores = _scores(6, 90)
    order = np.array([3, 0, 5, 1, 4, 2])
    forward, shuffled = bootstrap(scores, resamples=400), bootstrap(scores[order], resamples=400)
    np.testing.assert_array_equal(shuffled.bca, forward.bca[order])
    np.testing.assert_array_equal(shuffled.rank_counts, forward.rank_counts[order])
    pairs = np.ix_(order, order)
    np.testing.assert_allclose(
        shuffled.difference_interval, forward.difference_interval[pairs], rtol=0, atol=1e-12
    )
    assert shuffled.tau == forward.tau


def test_mismatched_parts_are_rejected() -> None:
    scores = _scores(3, 40)
    first = bootstrap_part(scores, first=0, count=50)
    with pytest.raises(KernelError, match="begins at resample 60, expected 50"):
        merge([first, bootstrap_part(scores, first=60, count=50)])
    with pytest.raises(KernelError, match="expected 50"):
        merge([first, first])
    with pytest.raises(KernelError, match="other scores"):
        merge([first, bootstrap_part(scores, first=50, count=50, seed=1)])
    with pytest.raises(KernelError, match="other scores"):
        merge([first, bootstrap_part(scores + 1.0, first=50, count=50)])
    with pytest.raises(KernelError, match="no parts"):
        merge([])


# Against plain formulas over the same draws


@pytest.mark.parametrize("missing", [0.0, 0.05, 0.7])
def test_resampled_means_against_numpy(missing: float) -> None:
    scores = _scores(6, 203, missing)
    scores = scores[:, ~np.isnan(scores).all(axis=0)]
    counts = _counts(scores.shape[1], 150, seed=9).astype(np.float64)
    present = ~np.isnan(scores)
    expected = np.where(present, scores, 0.0) @ counts / (present @ counts)
    part = bootstrap_part(scores, first=0, count=150, seed=9)
    np.testing.assert_allclose(part.means, expected, rtol=1e-12)
    np.testing.assert_allclose(part.estimate, np.nanmean(scores, axis=1), rtol=1e-12)
    assert part.n_used.tolist() == present.sum(axis=1).tolist()


def test_ratio_of_sums_against_numpy() -> None:
    generator = np.random.default_rng(2)
    cited = generator.poisson(12.0, (4, 80)).astype(np.float64)
    correct = np.asarray(generator.binomial(cited.astype(np.int64), 0.8), dtype=np.float64)
    correct[0, :5] = np.nan
    cited[1, 7] = np.nan
    present = ~np.isnan(correct) & ~np.isnan(cited)
    counts = _counts(80, 120, seed=4).astype(np.float64)
    tops, bottoms = (np.where(present, values, 0.0) for values in (correct, cited))
    part = bootstrap_part(correct, denominators=cited, first=0, count=120, seed=4)
    np.testing.assert_allclose(part.means, (tops @ counts) / (bottoms @ counts), rtol=1e-13)
    np.testing.assert_allclose(part.estimate, tops.sum(axis=1) / bottoms.sum(axis=1), rtol=1e-13)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), systems=st.integers(2, 7), tasks=st.integers(1, 30), data=st.data())
def test_ranks_among_some_systems_are_theirs_alone(
    seed: int, systems: int, tasks: int, data: st.DataObject
) -> None:
    scores = _scores(systems, tasks, missing=0.0, seed=seed)
    ranked = np.array(data.draw(st.lists(st.booleans(), min_size=systems, max_size=systems)))
    found = bootstrap(scores, resamples=60, seed=seed).among(ranked)
    if not ranked.any():
        assert np.isnan(found.rank).all() and not found.rank_counts.any() and found.ranked == 0
        return
    alone = bootstrap(scores[ranked], resamples=60, seed=seed)
    for name in ("n_used", "defined", "estimate", "standard_error", "percentile", "bca", "rank"):
        np.testing.assert_allclose(getattr(found, name)[ranked], getattr(alone, name), rtol=1e-9)
    assert (found.rank_counts[ranked][:, : ranked.sum()] == alone.rank_counts).all()
    assert np.isnan(found.percentile[~ranked]).all() and not found.rank_counts[~ranked].any()
    for mine, theirs in ((found.tau, alone.tau), (found.rho, alone.rho)):
        assert mine.mean == pytest.approx(theirs.mean, nan_ok=True) and mine.resamples == theirs.resamples
    np.testing.assert_allclose(
        found.difference_interval[np.ix_(ranked, ranked)], alone.difference_interval, atol=1e-9
    )


def test_intervals_and_ranks_against_numpy_and_scipy() -> None:
    scores = _scores(9, 150)
    part = bootstrap_part(scores, first=0, count=2_000, seed=1)
    result = merge([part], level=0.9)
    np.testing.assert_allclose(result.percentile, np.percentile(part.means, [5, 95], axis=1).T, rtol=1e-13)
    np.testing.assert_allclose(result.standard_error, part.means.std(axis=1, ddof=1), rtol=1e-10)
    differences = part.means[:, None, :] - part.means[None, :, :]
    expected = np.moveaxis(np.percentile(differences, [5, 95], axis=2), 0, 2)
    np.testing.assert_allclose(result.difference_interval, expected, atol=1e-12)
    ranks = stats.rankdata(-part.means, method="min", axis=0)
    for system in range(9):
        counts = np.bincount(ranks[system].astype(int) - 1, minlength=9)
        assert result.rank_counts[system].tolist() == counts.tolist()
    tau = [stats.kendalltau(result.estimate, column).statistic for column in part.means.T]
    rho = [stats.spearmanr(result.estimate, column).statistic for column in part.means.T]
    for ours, values in ((result.tau, tau), (result.rho, rho)):
        assert (ours.mean, ours.low, ours.high) == pytest.approx(
            (np.mean(values), *np.quantile(values, [0.05, 0.95]))
        )
        assert ours.resamples == 2_000


@pytest.mark.parametrize("method", ["percentile", "BCa"])
def test_intervals_against_scipy_bootstrap(method: str) -> None:
    """Same method, other random numbers: the ends agree within the noise of 20,000 resamples."""
    generator = np.random.default_rng(6)
    sample = generator.exponential(1.0, 60)
    theirs = stats.bootstrap((sample,), np.mean, method=method, n_resamples=20_000, rng=generator)
    ours = bootstrap(sample[None, :], resamples=20_000)
    ends = ours.bca[0] if method == "BCa" else ours.percentile[0]
    noise = 4.0 * np.sqrt(2.0) * theirs.standard_error * 2.7 / np.sqrt(20_000)
    assert ends.tolist() == pytest.approx(list(theirs.confidence_interval), abs=noise)
    assert ours.standard_error[0] == pytest.approx(theirs.standard_error, rel=0.03)


def test_bca_against_its_formula() -> None:
    scores = _scores(2, 40, missing=0.0) ** 3
    part = bootstrap_part(scores, first=0, count=5_000)
    result = merge([part])
    for system in range(2):
        without = np.array([np.delete(scores[system], task).mean() for task in range(40)])
        skew = without.mean() - without
        acceleration = (skew**3).sum() / (6.0 * (skew**2).sum() ** 1.5)
        bias = stats.norm.ppf(np.mean(part.means[system] < scores[system].mean()))
        z = bias + stats.norm.ppf([0.025, 0.975])
        shares = stats.norm.cdf(bias + z / (1.0 - acceleration * z))
        assert result.bca[system].tolist() == pytest.approx(np.quantile(part.means[system], shares), rel=1e-6)


def test_strata_narrow_intervals_against_theory() -> None:
    """Between-stratum variance is no longer sampled: the error is that within strata, pooled."""
    generator = np.random.default_rng(8)
    strata = np.repeat([4, -1, 9], [40, 60, 100])
    scores = (generator.normal(0.0, 1.0, 200) + 10.0 * strata)[None, :]
    within = sum(np.var(scores[0, strata == h]) * np.sum(strata == h) for h in np.unique(strata)) / 200**2
    shuffled = generator.permutation(200)
    result = bootstrap(scores[:, shuffled], strata=strata[shuffled], resamples=20_000)
    assert result.standard_error[0] == pytest.approx(np.sqrt(within), rel=0.02)
    assert bootstrap(scores, resamples=2_000).standard_error[0] > 5.0 * result.standard_error[0]


# Order statistics of differences


@pytest.mark.parametrize(
    "kind", ["normal", "cauchy", "two values", "few values", "all equal", "one outlier", "huge"]
)
@pytest.mark.parametrize("resamples", [1, 2, 3, 40, 1_000, 9_999])
@pytest.mark.parametrize("level", [0.95, 0.5, 0.001])
def test_difference_intervals_are_exact_for_any_distribution(kind: str, resamples: int, level: float) -> None:
    generator = np.random.default_rng(resamples)
    values = {
        "normal": generator.normal(size=(3, resamples)),
        "cauchy": generator.standard_cauchy((3, resamples)),
        "two values": generator.integers(0, 2, (3, resamples)).astype(np.float64),
        "few values": generator.integers(0, 9, (3, resamples)) / 8.0,
        "all equal": np.ones((3, resamples)),
        "one outlier": np.where(np.arange(resamples) == 0, 1e9, generator.normal(size=(3, resamples))),
        "huge": generator.normal(size=(3, resamples)) * 1e300,
    }[kind]
    values[2, resamples // 2 + 1 :: 3] = np.nan
    ours = difference_intervals(values, level)
    differences = values[:, None, :] - values[None, :, :]
    shares = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    expected = np.moveaxis(np.nanquantile(differences, shares, axis=2), 0, 2)
    np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-12)


def test_quantiles_against_numpy() -> None:
    values = np.sort(np.random.default_rng(0).normal(size=101))
    shares = np.array([0.0, 0.013, 0.5, 0.999, 1.0])
    np.testing.assert_allclose(quantiles(values, shares), np.quantile(values, shares), rtol=1e-13)
    assert np.isnan(quantiles(values, np.array([np.nan]))).all()
    assert np.isnan(quantiles(values[:0], shares)).all()


# Ties


def test_equal_means_on_a_decimal_grid_are_tied() -> None:
    """0.1 + 0.2 is not 0.3 in binary; as scores on a grid they are equal."""
    scores = np.array([[0.1, 0.2, 0.1, 0.2], [0.3, 0.0, 0.3, 0.0], [0.2, 0.2, 0.2, 0.2]])
    result = bootstrap(scores, resamples=50)
    assert result.estimate[0] == result.estimate[1]
    assert result.rank.tolist() == [2.5, 2.5, 1.0]


def test_identical_systems_share_every_rank() -> None:
    scores = _scores(4, 70)
    scores[2] = scores[0]
    result = bootstrap(scores, resamples=500)
    assert (result.rank_counts[0] == result.rank_counts[2]).all()
    assert result.rank_counts[0].sum() == 500 and result.rank_counts[0, 3] == 0
    assert result.difference_interval[0, 2].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("systems", [1, 2, 3, 8, 40, 101])
@pytest.mark.parametrize("values", [2, 4, 1_000])
def test_tau_and_rho_with_ties_against_scipy(systems: int, values: int) -> None:
    generator = np.random.default_rng(systems * values)
    estimates = generator.integers(0, values, systems).astype(np.float64)
    means = generator.integers(0, values, (systems, 60)).astype(np.float64)
    result = rankings(estimates, means)
    for column in range(60):
        constant = len(set(estimates)) == 1 or len(set(means[:, column])) == 1
        if constant:
            assert np.isnan(result.tau[column])
            assert np.isnan(result.rho[column])
        else:
            tau = stats.kendalltau(estimates, means[:, column]).statistic
            rho = stats.spearmanr(estimates, means[:, column]).statistic
            assert result.tau[column] == pytest.approx(tau, abs=1e-12)
            assert result.rho[column] == pytest.approx(rho, abs=1e-12)
    ranks = stats.rankdata(-means, method="min", axis=0)
    expected = [np.bincount(row.astype(int) - 1, minlength=systems).tolist() for row in ranks]
    assert result.counts.tolist() == expected


def test_midranks_are_descending_and_skip_undefined() -> None:
    ranks = descending_midranks(np.array([1.0, np.nan, 5.0, 1.0, 3.0]))
    assert ranks[[0, 2, 3, 4]].tolist() == [3.5, 1.0, 3.5, 2.0]
    assert np.isnan(ranks[1])


@pytest.mark.parametrize("scale", [1.0, 0.1, 0.25, 1e-4, 3e-7, 1e12, 1e-200, 1e200])
def test_whole_numbers_keep_the_needed_precision(scale: float) -> None:
    scores = np.arange(-50.0, 50.0).reshape(4, 25) * scale
    values, per_unit = whole_numbers(scores, draws=10_000)
    assert (values == np.rint(values)).all()
    assert np.abs(values).max() * 10_000 <= 2.0**53
    np.testing.assert_allclose(values / per_unit, scores, rtol=1e-9, atol=1e-11 * scale)


# Degenerate input


def test_one_system_ranks_first() -> None:
    result = bootstrap(_scores(1, 30), resamples=100)
    assert (result.rank.tolist(), result.rank_counts.tolist()) == ([1.0], [[100]])
    assert (result.tau.resamples, result.rho.resamples) == (0, 0)
    assert np.isnan(result.tau.mean)


def test_one_task_gives_an_estimate_and_no_interval() -> None:
    result = bootstrap(np.array([[4.0], [2.0]]), resamples=100)
    assert result.estimate.tolist() == [4.0, 2.0]
    for undefined in (result.percentile, result.bca, result.standard_error, result.difference_interval):
        assert np.isnan(undefined).all()


def test_equal_scores_give_equal_means_and_ranks() -> None:
    result = bootstrap(np.full((3, 20), 0.7), resamples=100)
    assert (result.estimate == 0.7).all()
    assert (result.percentile == 0.7).all()
    assert (result.bca == 0.7).all()
    assert (result.difference_interval == 0.0).all()
    assert result.rank.tolist() == [2.0, 2.0, 2.0]
    assert result.tau.resamples == 0


def test_missing_scores_give_undefined_results() -> None:
    result = bootstrap(np.full((2, 5), np.nan), resamples=20)
    assert (result.n_tasks, result.n_used.tolist(), result.ranked) == (0, [0, 0], 0)
    assert np.isnan(result.estimate).all()
    assert np.isnan(bootstrap(np.empty((2, 0)), resamples=20).estimate).all()


def test_tasks_without_scores_are_left_out() -> None:
    scores = _scores(3, 20, missing=0.0)
    padded = np.insert(scores, [0, 4, 20], np.nan, axis=1)
    strata = np.insert(np.arange(20) % 2, [0, 4, 20], 7)
    assert _equal(
        bootstrap(scores, strata=np.arange(20) % 2, resamples=64),
        bootstrap(padded, strata=strata, resamples=64),
    )


def test_system_without_scores_is_unranked_and_changes_no_other() -> None:
    scores = _scores(4, 60)
    alone = bootstrap(scores[1:], resamples=200)
    scores[0] = np.nan
    result = bootstrap(scores, resamples=200)
    assert np.isnan(result.rank[0])
    assert result.rank_counts[0].sum() == 0
    np.testing.assert_array_equal(result.rank_counts[1:, :3], alone.rank_counts)
    np.testing.assert_array_equal(result.percentile[1:], alone.percentile)
    assert result.tau == alone.tau


def test_resamples_that_miss_a_system_are_counted_and_left_out() -> None:
    scores = _scores(3, 12, missing=0.0)
    scores[1, 2:] = np.nan
    part = bootstrap_part(scores, first=0, count=3_000)
    absent = np.isnan(part.means[1])
    result = merge([part])
    assert absent.mean() == pytest.approx((10 / 12) ** 12, abs=0.03)
    assert result.defined.tolist() == [3_000, 3_000 - absent.sum(), 3_000]
    assert result.ranked == 3_000 - absent.sum()
    assert result.tau.resamples <= result.ranked
    expected = np.quantile((part.means[0] - part.means[1])[~absent], [0.025, 0.975])
    np.testing.assert_allclose(result.difference_interval[0, 1], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        ([1.0, 2.0], {}, "1 dimensions, expected 2"),
        (np.empty((0, 4)), {}, "no systems"),
        ([["a", "b"]], {}, "not an array of numbers"),
        ([[1.0, np.inf]], {}, "infinite"),
        ([[1.0, -np.inf]], {}, "infinite"),
        ([[1.0, 2.0]], {"level": 1.0}, "level"),
        ([[1.0, 2.0]], {"level": float("nan")}, "level"),
        ([[1.0, 2.0]], {"resamples": 0}, "at least one"),
        ([[1.0, 2.0]], {"resamples": 2**32 + 1}, "within"),
        ([[1.0, 2.0]], {"strata": [1]}, "one integer for each task"),
        ([[1.0, 2.0]], {"strata": [0.5, 1.0]}, "one integer for each task"),
        ([[1.0, 2.0]], {"denominators": [[1.0]]}, "denominators: shape"),
        ([[1.0, 2.0]], {"denominators": [[1.0, -1.0]]}, "negative"),
        ([[1.0, 2.0]], {"denominators": [[1.0, np.inf]]}, "infinite"),
    ],
)
def test_unusable_input_is_a_kernel_error(scores: object, options: dict[str, object], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        bootstrap(scores, **options)  # type: ignore[arg-type]


def test_ratio_without_denominator_is_undefined() -> None:
    result = bootstrap([[0.0, 0.0], [1.0, 1.0]], denominators=[[0.0, 0.0], [2.0, 2.0]], resamples=10)
    assert np.isnan(result.estimate[0])
    assert result.estimate[1] == 0.5


def test_sampler_gives_the_statistic_of_the_tasks() -> None:
    scores = _scores(5, 77)
    scored = ~np.isnan(scores)
    sampler = Sampler(np.where(scored, scores, 0.0), scored, None, np.array([0, 77]))
    np.testing.assert_allclose(sampler.full(), np.nanmean(scores, axis=1), rtol=1e-12)


def test_coverage_against_theory() -> None:
    """A small edition of `python -m benchmarks.coverage`: 400 data sets, so 95% is within 3.3 points."""
    shares = coverage(tasks=100, data_sets=400, resamples=400, seed=1)
    for name, share in shares.items():
        assert share == pytest.approx(0.95, abs=0.033), name


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("tasks", [100, 200])
def test_coverage_of_ten_thousand_data_sets(tasks: int) -> None:
    for name, share in coverage(tasks=tasks, data_sets=10_000, resamples=1_000, seed=0).items():
        assert share == pytest.approx(0.95, abs=0.015), name
