"""Case files of `golden/stats`: published t tests, paired tests on real scores, human consistency."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from adjudge.scoring.kernels.agreement.human_consistency import human_consistency
from adjudge.scoring.kernels.comparison.paired_tests import paired_t, student
from tests.conformance.case import TOLERANCE, Check, Checker, compare, read_lines
from tests.shared_data import shared_folder


def check_published_t_tests(path: Path) -> Iterator[Check]:
    """DeepResearch Bench K: interval, p and d follow from the difference, its t and n."""
    for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
        ours = student(row["delta"], row["delta"] / row["t"], row["n"])
        yield compare(f"{row['comparison']}: p", float(ours.p), row["computed_p_from_rounded_t"])
        yield compare(f"{row['comparison']}: d", float(ours.cohens_d), row["cohens_dz_t_over_sqrt_n"])
        # The file keeps four decimals of the interval.
        off = np.abs(np.array([ours.low, ours.high]) - row["computed_ci_from_rounded"]).max()
        yield f"{row['comparison']}: interval", bool(off <= 0.5e-4 + TOLERANCE), f"off by {off}"


def check_paired_scores(path: Path) -> Iterator[Check]:
    """Paired t tests between two files of RACE results: `A - B` names them."""
    for name, expected in json.loads(path.read_text(encoding="utf-8")).items():
        first, second = (_overall_scores(path, system) for system in name.split(" - "))
        tasks = sorted(first.keys() | second.keys())
        missing = float("nan")
        scores = np.array([[system.get(task, missing) for task in tasks] for system in (first, second)])
        test = paired_t(scores)
        actual = {
            "n": int(test.n_used[0]),
            "mean_diff": float(test.mean_difference[0]),
            "sd_diff": float(test.sd_difference[0]),
            "t": float(test.t[0]),
            "p": float(test.p[0]),
            "ci95": [float(test.low[0]), float(test.high[0])],
            "cohens_dz": float(test.cohens_d[0]),
        }
        yield compare(name, {key: actual.get(key) for key in expected}, expected)


def _overall_scores(path: Path, system: str) -> dict[int, float]:
    """Overall scores by task id, from the race folder beside a stats folder, or from the published texts."""
    folders = [path.parent.parent / "race", path.parent]
    if (published := shared_folder()) is not None:
        folders.append(published / "golden" / "race")
    files = [folder / f"{system}{ending}.jsonl" for folder in folders for ending in ("", "_raw_results")]
    file = next((file for file in files if file.exists()), None)
    if file is None:
        raise FileNotFoundError(f"no results of {system} in {', '.join(map(str, folders))}")
    return {row["id"]: row["overall_score"] for row in read_lines(file)}


def check_human_consistency(path: Path) -> Iterator[Check]:
    """PAR, OPC, the ICC filter, FAP and FAS of one table of ratings."""
    case = json.loads(path.read_text(encoding="utf-8"))
    human = np.array(case["human_scores_task_report_rater"], dtype=np.float64).transpose(1, 0, 2)
    ours = human_consistency(human, np.array(case["method_scores_task_report"], dtype=np.float64).T)
    actual = {
        "pairwise_agreement": ours.par,
        "overall_pearson": ours.opc,
        "icc_1_1": ours.icc.tolist(),
        "kept_tasks": np.flatnonzero(ours.kept).tolist(),
        "filtered_avg_pearson": ours.fap,
        "filtered_avg_spearman": ours.fas,
    }
    for name, expected in case["expected"].items():
        yield compare(name, actual.get(name), expected)


CHECKS: dict[str, Checker] = {
    "drb_table12.json": check_published_t_tests,
    "paired_real.expected.json": check_paired_scores,
    "human_consistency.json": check_human_consistency,
}
DATA: tuple[str, ...] = ()
