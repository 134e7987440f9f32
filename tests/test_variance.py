"""Variance components against the analysis of variance and known components; plans against simulation."""

import msgspec
import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from adjudge.scoring.kernels.agreement.variance import COMPONENTS, Components, plan, variance_components
from adjudge.scoring.kernels.base.arrays import KernelError

TRUTH = {
    "system": 4.0,
    "task": 9.0,
    "system_task": 2.0,
    "sample": 1.5,
    "judge": 0.5,
    "judge_report": 0.8,
    "repeat": 1.2,
}


def simulate(shape, seed, truth=TRUTH, missing=0.0):
    """Scores and labels of systems x tasks x samples x judges x repeats."""
    rng = np.random.default_rng(seed)
    axes = {
        "system": (0,),
        "task": (1,),
        "system_task": (0, 1),
        "sample": (0, 1, 2),
        "judge": (3,),
        "judge_report": (0, 1, 2, 3),
        "repeat": (0, 1, 2, 3, 4),
    }
    scores = np.full(shape, 50.0)
    for name, own in axes.items():
        size = [count if axis in own else 1 for axis, count in enumerate(shape)]
        scores = scores + rng.normal(0, np.sqrt(truth[name]), size)
    labels = np.indices(shape).reshape(5, -1)
    kept = rng.random(scores.size) >= missing
    names = ("system", "task", "sample", "judge")
    return scores.ravel()[kept], {name: labels[i][kept] for i, name in enumerate(names)}


def anova_of_two_ways(table: np.ndarray) -> dict[str, float]:
    """Textbook estimates of a crossed design with replication `[a, b, n]`."""
    a, b, n = table.shape
    cell, row, column, grand = table.mean(2), table.mean((1, 2)), table.mean((0, 2)), table.mean()
    ms_row = b * n * np.sum((row - grand) ** 2) / (a - 1)
    ms_column = a * n * np.sum((column - grand) ** 2) / (b - 1)
    ms_cell = n * np.sum((cell - row[:, None] - column + grand) ** 2) / ((a - 1) * (b - 1))
    ms_error = np.sum((table - cell[:, :, None]) ** 2) / (a * b * (n - 1))
    return {
        "system": (ms_row - ms_cell) / (b * n),
        "task": (ms_column - ms_cell) / (a * n),
        "system_task": (ms_cell - ms_error) / n,
        "repeat": ms_error,
    }


def test_balanced_design_against_analysis_of_variance():
    table = np.random.default_rng(1).normal(0, 1, (5, 11, 3)) + np.arange(11)[:, None]
    system, task, _ = np.indices(table.shape)
    ours = variance_components(table.ravel(), system=system.ravel(), task=task.ravel())
    for name, expected in anova_of_two_ways(table).items():
        assert ours.variance[name] == pytest.approx(expected, rel=1e-9)
    assert ours.confounded == {"sample": "system_task", "judge_report": "system_task"}
    assert ours.variance["judge"] is None and ours.groups["system_task"] == 55


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_known_components_are_recovered(missing):
    runs = [
        variance_components(scores, **labels).variance
        for scores, labels in (simulate((8, 12, 2, 3, 2), seed, missing=missing) for seed in range(300))
    ]
    for name in COMPONENTS:
        found = np.array([run[name] for run in runs])
        error = found.std(ddof=1) / np.sqrt(found.size)
        assert abs(found.mean() - TRUTH[name]) < 4 * error, name
        assert error < 0.25 * TRUTH[name] + 0.02


def test_one_large_table_recovers_the_within_components():
    scores, labels = simulate((20, 300, 2, 3, 2), 5, missing=0.1)
    ours = variance_components(scores, **labels)
    for name in ("system_task", "sample", "judge_report", "repeat"):
        assert ours.variance[name] == pytest.approx(TRUTH[name], rel=0.1)
    assert sum(ours.share.values()) == pytest.approx(1)


def test_plain_table_leaves_the_interaction_with_the_noise():
    scores, labels = simulate((6, 40, 1, 1, 1), 3)
    ours = variance_components(scores, system=labels["system"], task=labels["task"])
    assert set(ours.confounded) == {"sample", "judge_report", "repeat"}
    assert set(ours.confounded.values()) == {"system_task"}
    assert ours.variance["repeat"] is None and ours.variance["system_task"] > 0


def test_one_system_has_task_and_judge_noise():
    scores, labels = simulate((1, 100, 1, 1, 5), 3)
    ours = variance_components(scores, system=["only"] * scores.size, task=labels["task"])
    table = scores.reshape(100, 5)
    noise = table.var(axis=1, ddof=1).mean()
    assert ours.variance["repeat"] == pytest.approx(noise)
    assert ours.variance["task"] == pytest.approx(table.mean(axis=1).var(ddof=1) - noise / 5)
    assert ours.confounded["system_task"] == "task" and ours.variance["system"] is None


def test_missing_scores_are_absent():
    scores, labels = simulate((4, 10, 2, 2, 2), 3)
    gone = np.random.default_rng(0).random(scores.size) < 0.2
    holed = variance_components(np.where(gone, np.nan, scores), **labels)
    without = variance_components(scores[~gone], **{name: label[~gone] for name, label in labels.items()})
    assert holed == without and holed.n_used == np.count_nonzero(~gone)


def test_row_order_and_label_names_do_not_matter():
    scores, labels = simulate((4, 10, 2, 2, 2), 3)
    order = np.random.default_rng(0).permutation(scores.size)
    names = np.array(["d", "a", "c", "b"])
    one = variance_components(scores, **labels).variance
    other = variance_components(
        scores[order],
        **{name: names[label[order]] if label.max() < 4 else label[order] for name, label in labels.items()},
    ).variance
    for name in COMPONENTS:
        assert one[name] == pytest.approx(other[name], rel=1e-9)


def test_constant_scores_have_no_variance():
    ours = variance_components(np.full(12, 0.1), system=np.arange(12) % 3, task=np.arange(12) // 3)
    assert all(value is None or abs(value) < 1e-25 for value in ours.variance.values())


def components_of(**variance: float) -> Components:
    return Components({**dict.fromkeys(COMPONENTS), **variance}, {}, {}, {}, 0)


@pytest.mark.parametrize(("d", "power", "alpha"), [(0.5, 0.8, 0.05), (0.1, 0.9, 0.01), (2.0, 0.8, 0.05)])
def test_plan_against_statsmodels(d, power, alpha):
    components = components_of(system_task=0.5)
    design = plan(components, d, power=power, alpha=alpha, most_samples=1, most_repeats=1)[0]
    peer = TTestPower().solve_power(d, power=power, alpha=alpha, alternative="two-sided")
    assert design.tasks == int(np.ceil(peer))
    assert design.power >= power


def test_plan_reaches_its_power():
    truth = {**TRUTH, "system": 0.0}
    scores, labels = simulate((8, 200, 3, 2, 3), 11)
    designs = plan(variance_components(scores, **labels), 0.8, judges=2, most_samples=3, most_repeats=2)
    design = designs[-1]
    found = 0
    for seed in range(400):
        shape = (2, design.tasks, design.samples, design.judges, design.repeats)
        scores, _ = simulate(shape, seed, truth)
        means = scores.reshape(2, design.tasks, -1).mean(axis=2)
        found += stats.ttest_rel(means[0] + 0.8, means[1]).pvalue < 0.05
    assert found / 400 == pytest.approx(design.power, abs=0.08)


def test_plan_offers_only_undominated_designs():
    designs = plan(components_of(system_task=1.0, sample=4.0, repeat=3.0), 0.5)
    costs = [(design.reports, design.judgments, design.tasks) for design in designs]
    assert costs == sorted(costs) and len(set(costs)) == len(costs) > 1
    for one in costs:
        assert not any(
            other != one and all(a <= b for a, b in zip(other, one, strict=True)) for other in costs
        )
    assert designs[0].repeats > 1 and designs[-1].tasks < designs[0].tasks


def test_plan_without_noise_needs_two_tasks():
    assert plan(components_of(), 1.0)[0].tasks == 2


def test_bad_input_is_rejected():
    good = {"system": [0, 1], "task": [0, 1]}
    for scores, labels in (
        ([1.0, np.inf], good),
        ([1.0, np.nan], good),
        ([], {"system": [], "task": []}),
        ([1.0, 2.0], {"system": [0], "task": [0, 1]}),
    ):
        with pytest.raises(KernelError):
            variance_components(scores, **labels)
    for options in ({"difference": 0.0}, {"difference": 1.0, "power": 1.0}, {"difference": 1.0, "judges": 0}):
        with pytest.raises(KernelError):
            plan(components_of(), **options)
    with pytest.raises(KernelError):
        plan(components_of(system_task=1.0), 1e-9)


def test_components_are_plain_data():
    scores, labels = simulate((3, 5, 1, 1, 2), 3)
    ours = variance_components(scores, **labels)
    assert msgspec.json.decode(msgspec.json.encode(ours), type=Components) == ours
