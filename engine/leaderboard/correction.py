"""A judge's means and differences, corrected by people's scores of a few tasks (prediction-powered inference)."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from adjudge.engine.leaderboard.corrected import Corrected, CorrectedDifference, Correction
from adjudge.engine.leaderboard.ratings import left_out, matrix_named, mean_rating, rating_array, read_ratings
from adjudge.engine.records.matrices import ScoreMatrix, figure
from adjudge.scoring.kernels.comparison.paired_tests import paired_t
from adjudge.scoring.kernels.comparison.prediction_powered import (
    PredictionPowered,
    powered_differences,
    powered_means,
)

__all__ = ["corrections"]

Floats = npt.NDArray[np.float64]


def corrections(matrices: list[ScoreMatrix], human: str | Path) -> list[Correction]:
    """The corrections of every metric rated in the file `human`; a report's label is the mean of its ratings.

    The rated tasks must have been drawn at random. Raises UsageError for a file that cannot be read, an invalid line,
    and an unknown metric.
    """
    ratings = list(read_ratings(Path(human)))
    found = []
    for name in dict.fromkeys(rating.metric for rating in ratings):
        matrix = matrix_named(matrices, name)
        named = [rating for rating in ratings if rating.metric == name]
        found.append(_correction(matrix, mean_rating(rating_array(matrix, named)), left_out(matrix, named)))
    return found


def _correction(matrix: ScoreMatrix, labels: Floats, strange: str) -> Correction:
    judge = matrix.values
    means = _listed(powered_means(judge, labels), powered_means(judge, labels, power=0.0))
    differences = _listed(powered_differences(judge, labels), powered_differences(judge, labels, power=0.0))
    raw = paired_t(judge)
    pairs = [
        CorrectedDifference(
            a=matrix.systems[raw.first[pair]],
            b=matrix.systems[raw.second[pair]],
            raw=figure(raw.mean_difference[pair]),
            raw_low=figure(raw.low[pair]),
            raw_high=figure(raw.high[pair]),
            corrected=corrected,
        )
        for pair, corrected in enumerate(differences)
        if corrected.n_labelled
    ]
    return Correction(
        protocol=matrix.protocol,
        metric=matrix.metric,
        means=dict(zip(matrix.systems, means, strict=True)),
        differences=tuple(pairs),
        left_out=strange,
    )


def _listed(found: PredictionPowered, alone: PredictionPowered) -> list[Corrected]:
    return [
        Corrected(
            value=figure(found.estimate[row]),
            low=figure(found.low[row]),
            high=figure(found.high[row]),
            power=float(found.power[row]),
            people=figure(alone.estimate[row]),
            people_low=figure(alone.low[row]),
            people_high=figure(alone.high[row]),
            n_labelled=int(found.n_labelled[row]),
            n_unlabelled=int(found.n_unlabelled[row]),
        )
        for row in range(found.estimate.size)
    ]
