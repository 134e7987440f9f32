"""Agreement against pingouin, krippendorff, scikit-learn's definitions, scipy and hostile input."""

import itertools
import json

import krippendorff
import numpy as np
import pandas as pd
import pingouin
import pytest
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa as statsmodels_kappa

from adjudge.scoring.kernels.agreement.human_consistency import (
    cohens_kappa,
    human_consistency,
    human_par,
    icc_1_1,
    icc_2_k,
    judge_agreement,
    krippendorffs_alpha,
)
from adjudge.scoring.kernels.base.arrays import KernelError
from tests.shared_data import GOLDEN


def make_ratings(reports: int, raters: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.clip(np.round(rng.normal(5, 2, (reports, 1)) + rng.normal(0, 1, (reports, raters))), 0, 10)


def pingouin_icc(ratings: np.ndarray) -> dict[str, float]:
    table = pd.DataFrame(ratings).melt(ignore_index=False, var_name="rater", value_name="score")
    table = table.rename_axis("report").reset_index()
    result = pingouin.intraclass_corr(table, "report", "rater", "score")
    return dict(zip(result["Type"], result["ICC"], strict=True))


@pytest.mark.filterwarnings("ignore::Warning")
@pytest.mark.parametrize(("reports", "raters"), [(6, 3), (40, 2), (25, 7)])
def test_icc_against_pingouin(reports, raters):
    ratings = make_ratings(reports, raters)
    peer = pingouin_icc(ratings)
    one, two = (
        peer.get(name, peer.get(other)) for name, other in (("ICC1", "ICC(1,1)"), ("ICC2k", "ICC(A,k)"))
    )
    assert float(icc_1_1(ratings)) == pytest.approx(one, abs=1e-6)
    assert float(icc_2_k(ratings)) == pytest.approx(two, abs=1e-6)


def test_icc_1_1_of_a_stack_is_that_of_each():
    stack = np.stack([make_ratings(6, 3, seed) for seed in range(5)])
    np.testing.assert_allclose(icc_1_1(stack), [float(icc_1_1(ratings)) for ratings in stack])


def test_icc_1_1_unbalanced_against_theory():
    rng = np.random.default_rng(2)
    ratings = rng.normal(0, np.sqrt(3), (4000, 1)) + rng.normal(0, 1, (4000, 4))
    ratings[rng.random(ratings.shape) < 0.4] = np.nan
    assert float(icc_1_1(ratings)) == pytest.approx(0.75, abs=0.03)


def test_icc_2_k_leaves_out_reports_that_lack_a_rating():
    ratings = make_ratings(12, 3)
    holed = np.vstack([ratings, [[9, np.nan, 1]]])
    assert float(icc_2_k(holed)) == float(icc_2_k(ratings))


@pytest.mark.parametrize(
    ("weights", "peer"), [("none", None), ("linear", "linear"), ("quadratic", "quadratic")]
)
def test_cohens_kappa_against_statsmodels(weights, peer):
    ratings = make_ratings(300, 2)
    values, codes = np.unique(ratings, return_inverse=True)
    table = np.zeros((values.size, values.size))
    np.add.at(table, tuple(codes.reshape(ratings.shape).T), 1)
    expected = statsmodels_kappa(table, wt=peer, return_results=False)
    assert cohens_kappa(*ratings.T, weights=weights) == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("missing", [0.0, 0.3, 0.7])
def test_krippendorffs_alpha_against_krippendorff(level, missing):
    rng = np.random.default_rng(11)
    ratings = make_ratings(80, 4).T
    ratings[rng.random(ratings.shape) < missing] = np.nan
    expected = krippendorff.alpha(reliability_data=ratings, level_of_measurement=level)
    assert krippendorffs_alpha(ratings, level=level) == pytest.approx(expected, abs=1e-12)


def naive_consistency(human: np.ndarray, judge: np.ndarray) -> tuple[float, float]:
    signs, strict = [], []
    systems, tasks = judge.shape
    cells = [(s, t) for s in range(systems) for t in range(tasks) if np.isfinite(human[s, t] + judge[s, t])]
    for number, (s, t) in enumerate(cells):
        for r, u in cells[:number]:
            a, b = np.sign(human[s, t] - human[r, u]), np.sign(judge[s, t] - judge[r, u])
            strict.append(a * b > 0)
            if t == u:
                signs.append(a == b)
    return float(np.mean(signs)), float(np.mean(strict))


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_human_consistency_against_the_definitions(missing):
    rng = np.random.default_rng(5)
    human = rng.integers(3, 9, (5, 12, 3)).astype(float)
    judge = np.round(human.mean(axis=2) + rng.normal(0, 1, (5, 12)))
    judge[rng.random(judge.shape) < missing] = np.nan
    human[0, 0, 1] = np.nan
    ours = human_consistency(human, judge)
    people = np.where(np.isnan(judge), np.nan, np.nanmean(human, axis=2))
    par, strict = naive_consistency(people, judge)
    assert ours.par == pytest.approx(par) and ours.par_dr3 == pytest.approx(strict)
    means = np.nanmean(people, axis=1), np.nanmean(judge, axis=1)
    assert ours.opc == pytest.approx(stats.pearsonr(*means).statistic)
    pearson, spearman = [], []
    for task in np.flatnonzero(ours.kept):
        both = ~np.isnan(judge[:, task])
        if min(np.ptp(people[both, task]), np.ptp(judge[both, task])) == 0:
            continue
        pearson.append(stats.pearsonr(people[both, task], judge[both, task]).statistic)
        spearman.append(stats.spearmanr(people[both, task], judge[both, task]).statistic)
    assert ours.fap == pytest.approx(np.mean(pearson)) and ours.fas == pytest.approx(np.mean(spearman))
    assert ours.n_filtered == len(pearson) <= ours.n_kept
    assert ours.n_cases == np.count_nonzero(~np.isnan(judge))


def test_human_consistency_of_the_golden_case():
    case = json.loads((GOLDEN / "stats/human_consistency.json").read_text(encoding="utf-8"))
    human = np.array(case["human_scores_task_report_rater"]).transpose(1, 0, 2)
    ours = human_consistency(human, np.array(case["method_scores_task_report"]).T)
    assert ours.par == pytest.approx(case["expected"]["pairwise_agreement"], abs=1e-9)
    assert ours.fas == pytest.approx(case["expected"]["filtered_avg_spearman"], abs=1e-9)


def test_par_between_people_against_its_definition():
    rng = np.random.default_rng(8)
    human = rng.integers(3, 7, (4, 6, 3)).astype(float)
    human[1, 2] = np.nan
    human[0, 0, 1:] = np.nan  # one person alone rated this report
    signs = []
    for rater in range(3):
        rest = human[:, :, np.arange(3) != rater]
        there = (~np.isnan(rest)).sum(axis=2)
        others = np.where(there > 0, np.nansum(rest, axis=2) / np.maximum(there, 1), np.nan)
        own = np.where(np.isnan(others), np.nan, human[:, :, rater])
        others = np.where(np.isnan(own), np.nan, others)
        for task in range(6):
            for one, other in itertools.combinations(range(4), 2):
                first, second = own[one, task] - own[other, task], others[one, task] - others[other, task]
                signs += [] if np.isnan(first) else [np.sign(first) == np.sign(second)]
    assert human_par(human) == pytest.approx(np.mean(signs))
    assert np.isnan(human_par(human[:, :, :1]))


def test_tie_agrees_only_with_a_tie():
    human = np.array([[1.0, 1, 1], [1, 2, 1]])[:, :, None]
    judge = np.array([[5.0, 5, 5], [5, 6, 4]])
    ours = human_consistency(human, judge)
    assert (ours.par, ours.n_pairs) == (2 / 3, 3)


def test_judge_agreement_of_a_judge_with_itself():
    scores = np.random.default_rng(1).normal(5, 1, (6, 9))
    ours = judge_agreement(scores, scores)
    assert ours.par == ours.par_dr3 == ours.kappa == ours.alpha == 1
    np.testing.assert_allclose([ours.opc, ours.pearson, ours.spearman, ours.icc_1_1, ours.icc_2_k], 1)
    assert (ours.mean_difference, ours.n_cases, ours.n_pairs, ours.n_tasks) == (0, 54, 135, 9)


def test_judge_agreement_detects_a_shift():
    scores = np.random.default_rng(1).normal(5, 1, (6, 9))
    ours = judge_agreement(scores, scores - 3)
    assert ours.opc == pytest.approx(1) and ours.icc_2_k < 0.5 and ours.mean_difference == pytest.approx(3)


@pytest.mark.parametrize(("systems", "tasks"), [(1, 1), (1, 5), (5, 1), (0, 3), (3, 0)])
def test_degenerate_shapes_are_handled(systems, tasks):
    scores = np.random.default_rng(0).normal(0, 1, (systems, tasks))
    ours = human_consistency(scores[:, :, None], scores)
    assert not ours.kept.any() and np.isnan(ours.fap) and np.isnan(ours.fas)
    assert ours.n_cases == systems * tasks
    judge_agreement(scores, scores)


@pytest.mark.parametrize("value", [0.1, np.nan])
def test_constant_or_missing_ratings_are_undefined(value):
    scores = np.full((3, 4), value)
    ours = judge_agreement(scores, scores)
    undefined = [ours.opc, ours.pearson, ours.icc_1_1, ours.icc_2_k, ours.kappa, ours.alpha]
    assert np.isnan(undefined).all()
    assert np.isnan(human_consistency(np.full((3, 4, 3), value), scores).icc).all()
    for level in ("nominal", "ordinal", "interval"):
        assert np.isnan(krippendorffs_alpha(scores, level=level))


def test_bad_input_is_rejected():
    good = np.ones((2, 3))
    with pytest.raises(KernelError):
        judge_agreement(good, np.ones((3, 2)))
    with pytest.raises(KernelError):
        human_consistency(good, good)
    with pytest.raises(KernelError):
        judge_agreement(good, np.full((2, 3), np.inf))
    with pytest.raises(KernelError):
        cohens_kappa([1, 2], [1, 2, 3])
    with pytest.raises(KernelError):
        cohens_kappa([1, 2], [1, 2], weights="cubic")
    with pytest.raises(KernelError):
        krippendorffs_alpha(good, level="ratio")
