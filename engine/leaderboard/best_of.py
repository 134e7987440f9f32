"""The best of several samples of an agent, from score rows: pass@k as Dr.Mi-Bench defines it."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.engine.leaderboard.detail import BestOf
from adjudge.engine.records.matrices import codes, figure
from adjudge.scoring.kernels.comparison.frontier import pass_at_k

__all__ = ["best_of_samples"]


def best_of_samples(
    scores: pa.Table, protocol: str, metric: str, lower_is_better: bool = False
) -> tuple[BestOf, ...]:
    """The best of k samples under one metric in score rows, for k = 2, 4, 8 ... and all samples.

    The judge's repeats are averaged first. Empty if no task has two samples.
    """
    rows = scores.filter(pc.and_(pc.equal(scores["protocol"], protocol), pc.equal(scores["metric"], metric)))
    if not rows.num_rows:
        return ()
    systems, system = codes(rows["system"])
    _, task = codes(rows["task_id"])
    sample = rows["sample"].to_numpy().astype(np.int64)
    reports, report = np.unique(np.stack([system, task, sample]), axis=1, return_inverse=True)
    cases, first, case = np.unique(reports[:2], axis=1, return_index=True, return_inverse=True)
    report, case, values = (
        report.reshape(-1),
        case.reshape(-1),
        rows["value"].to_numpy(),
    )  # flat in every numpy 2
    scored = ~np.isnan(values)
    total = np.bincount(report[scored], weights=values[scored], minlength=reports.shape[1])
    with np.errstate(invalid="ignore"):
        means = total / np.bincount(report[scored], minlength=reports.shape[1])
    place = np.arange(case.size) - first[case]
    samples = np.full((cases.shape[1], int(place.max()) + 1), np.nan)
    samples[case, place] = -means if lower_is_better else means
    most = samples.shape[1]
    found = []
    for k in sorted({*(2**power for power in range(1, most.bit_length())), most} - {1}):
        best = pass_at_k(samples, k).unbiased
        for row, name in enumerate(systems):
            own = best[cases[0] == row]
            known = own[~np.isnan(own)]
            mean = float(known.mean()) if known.size else float("nan")
            found.append(
                BestOf(
                    system=name,
                    k=k,
                    value=figure(-mean if lower_is_better else mean),
                    n_scored=known.size,
                    n_tasks=own.size,
                )
            )
    return tuple(found)
