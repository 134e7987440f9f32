"""The papers' statistics recomputed: `python -m benchmarks.paper_statistics [--golden DIR]`.

Prints, as Markdown, DeepResearch Bench's table of paired tests (appendix K) from its differences and t values, and
what five judgings of one system's reports say about the judge's noise and the tasks'. Needs the folder with the
published data (`stats/drb_table12.json`, `race/onyx_run_1.jsonl` to `_5`, `race/claude37_raw_results.jsonl`).
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from adjudge.scoring.kernels.agreement.human_consistency import icc_1_1
from adjudge.scoring.kernels.agreement.variance import plan, variance_components
from adjudge.scoring.kernels.comparison.paired_tests import paired_t, student
from tests.shared_data import shared_folder

METRICS = ("comprehensiveness", "insight", "instruction_following", "readability", "overall_score")
RUNS = tuple(f"onyx_run_{run}" for run in range(1, 6))
RIVAL = "claude37_raw_results"
REPEATS = 5

Scores = NDArray[np.float64]


def published_tests(golden: Path) -> Iterator[str]:
    """DeepResearch Bench K: interval, p and Cohen's d from the published difference, t and n."""
    yield (
        "| comparison | n | difference | t | interval, published | recomputed "
        "| p, published | recomputed | d, published | recomputed |"
    )
    yield "|---|--:|--:|--:|---|---|--:|--:|--:|--:|"
    for row in json.loads((golden / "stats/drb_table12.json").read_text(encoding="utf-8"))["rows"]:
        test = student(row["delta"], row["delta"] / row["t"], row["n"])
        low, high = row["published_ci"]
        effect = "" if row["paper_text_d"] is None else f"{row['paper_text_d']:.2f}"
        yield (
            f"| {row['comparison']} | {row['n']} | {row['delta']:.2f} | {row['t']:.2f} | {low:.2f} to {high:.2f} "
            f"| {float(test.low):.2f} to {float(test.high):.2f} | {row['published_p']} | {float(test.p):.2g} "
            f"| {effect} | {float(test.cohens_d):.2f} |"
        )


def read_scores(golden: Path, system: str) -> dict[int, dict[str, float]]:
    """Scores of 0 to 1 by task and metric, times 100."""
    lines = (golden / "race" / f"{system}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    return {row["id"]: {metric: 100 * row[metric] for metric in METRICS} for row in rows}


def tabulate(runs: list[dict[int, dict[str, float]]], metric: str) -> Scores:
    """`[runs, tasks]`, NaN where a run lacks a task."""
    tasks = sorted(set().union(*runs))
    missing = {metric: float("nan")}
    return np.array([[run.get(task, missing)[metric] for task in tasks] for run in runs])


def noise_of_judge_and_tasks(golden: Path) -> Iterator[str]:
    """Components of five judgings of one system; standard errors of its mean over all tasks."""
    yield (
        "| metric | mean of each judging | sd of tasks | sd of the judge | judge's share of variance "
        "| ICC(1,1) | error of the mean: tasks | error of the mean: one judging |"
    )
    yield "|---|---|--:|--:|--:|--:|--:|--:|"
    runs = [read_scores(golden, run) for run in RUNS]
    for metric in METRICS:
        scores = tabulate(runs, metric)
        _, task = np.indices(scores.shape)
        found = variance_components(scores.ravel(), system=np.zeros(scores.size), task=task.ravel())
        tasks, judge = (np.sqrt(max(found.variance[name] or 0.0, 0.0)) for name in ("task", "repeat"))
        means = ", ".join(f"{mean:.2f}" for mean in np.nanmean(scores, axis=1))
        count = np.sqrt(scores.shape[1])
        yield (
            f"| {metric} | {means} | {tasks:.2f} | {judge:.2f} | {found.share['repeat']:.1%} "
            f"| {float(icc_1_1(scores.T)):.3f} | {tasks / count:.3f} | {judge / count:.3f} |"
        )


def tests_of_real_scores(golden: Path) -> Iterator[str]:
    """Paired t tests of the overall score: two systems, and two judgings of one."""
    yield "| pair | n | difference | 95% interval | t | p | d |"
    yield "|---|--:|--:|---|--:|--:|--:|"
    for first, second in ((RUNS[0], RIVAL), (RUNS[1], RUNS[0])):
        scores = tabulate([read_scores(golden, first), read_scores(golden, second)], "overall_score")
        test = paired_t(scores)
        yield (
            f"| {first} - {second} | {test.n_used[0]} | {test.mean_difference[0]:.3f} "
            f"| {test.low[0]:.3f} to {test.high[0]:.3f} | {test.t[0]:.2f} | {test.p[0]:.2g} | {test.cohens_d[0]:.2f} |"
        )


def plans(golden: Path) -> Iterator[str]:
    """Designs that resolve a difference between two such systems."""
    systems = [read_scores(golden, run) for run in (*RUNS, RIVAL)]
    scores = tabulate(systems, "overall_score")
    run, task = np.indices(scores.shape)
    found = variance_components(scores.ravel(), system=(run == len(RUNS)).ravel(), task=task.ravel())
    yield "| difference | tasks x judgings of each report |"
    yield "|--:|---|"
    for difference in (0.5, 1.0, 2.0, 5.0):
        designs = plan(found, difference, most_samples=1, most_repeats=REPEATS)
        choices = ", ".join(f"{design.tasks} x {design.repeats}" for design in reversed(designs))
        yield f"| {difference:.1f} | {choices} |"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    shared = shared_folder()
    parser.add_argument(
        "--golden",
        type=Path,
        default=shared and shared / "golden",
        required=shared is None,
        metavar="DIR",
        help="folder with stats/ and race/ (default: golden/ in the folder that ADJUDGE_SHARED names)",
    )
    golden = parser.parse_args().golden
    if not all((golden / name).is_dir() for name in ("stats", "race")):
        print(f"{golden}: no stats/ and race/ there; pass --golden with the folder of both", file=sys.stderr)
        return 2
    for title, lines in {
        "DeepResearch Bench, appendix K": published_tests,
        "Five runs of RACE on one system, times 100": noise_of_judge_and_tasks,
        "Paired tests of the overall score": tests_of_real_scores,
        "Designs of power 0.8 at 5%, paired t test": plans,
    }.items():
        print(f"**{title}**\n", *lines(golden), "", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
