"""The numbers: statistics over arrays of scores. No judge, no files; missing scores are absent through a mask."""

from adjudge.scoring.kernels import (
    agreement,
    bootstrap,
    correlations,
    frontier,
    match_claims,
    paired_tests,
    rank_stability,
    variance,
)

__all__ = [
    "agreement",
    "bootstrap",
    "correlations",
    "frontier",
    "match_claims",
    "paired_tests",
    "rank_stability",
    "variance",
]
