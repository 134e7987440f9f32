"""Tournaments and pairwise results for tests."""

from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize
from scipy.special import expit, log_expit

from adjudge.engine.config.run import RunConfig
from tests.worlds import lines, world


def arena(folder: Path, systems: int = 4, tasks: int = 6, **settings: Any) -> RunConfig:
    """A world whose systems write differently long reports."""
    path = world(folder, systems=systems, tasks=tasks, **{"protocols": ["pairwise"], **settings})
    for number in range(systems):
        rows = [
            {
                "task_id": str(task),
                "system": f"system{number}",
                "text": " ".join(
                    f"fact{(word * 7 + task) % 90}"
                    for word in range(9 + 4 * number + (11 * number + 7 * task) % 29)
                ),
            }
            for task in range(tasks)
        ]
        lines(folder / "reports" / f"system{number}.jsonl", rows)
    return RunConfig.load(path)


def fitted(wins, prior=0.0):
    """The strengths by scipy's trust region over a likelihood written out comparison by comparison."""
    wins = np.array(wins, float)
    systems = len(wins)

    def loss(theta):
        pairs = sum(
            wins[i, j] * log_expit(theta[i] - theta[j])
            for i in range(systems)
            for j in range(systems)
            if i != j
        )
        return -pairs - prior / 2 * (log_expit(theta) + log_expit(-theta)).sum()

    def slope(theta):
        chance = expit(theta[:, None] - theta[None, :])
        games = wins + wins.T
        return -(wins.sum(1) - (games * chance).sum(1) + prior * (0.5 - expit(theta)))

    found = optimize.minimize(loss, np.zeros(systems), jac=slope, method="BFGS", options={"gtol": 1e-11}).x
    found = optimize.root(
        lambda theta: slope(theta) + (theta.mean() if prior == 0 else 0), found, tol=1e-14
    ).x
    return found - found.mean()
