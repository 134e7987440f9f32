"""Statistics over arrays of scores, without judges or files; a mask marks missing scores."""

from adjudge.scoring.kernels.agreement.correlations import correlations
from adjudge.scoring.kernels.agreement.human_consistency import human_consistency, icc_1_1
from adjudge.scoring.kernels.agreement.variance import variance_components
from adjudge.scoring.kernels.comparison.frontier import pareto_frontier, pass_at_k
from adjudge.scoring.kernels.comparison.paired_tests import holm, paired_t, sign_flip, wilcoxon
from adjudge.scoring.kernels.matching.match_claims import match_cardinality, match_greedy
from adjudge.scoring.kernels.resampling.bootstrap import bootstrap
from adjudge.scoring.kernels.resampling.rankings import leave_one_out

__all__ = [
    "bootstrap",
    "correlations",
    "holm",
    "human_consistency",
    "icc_1_1",
    "leave_one_out",
    "match_cardinality",
    "match_greedy",
    "paired_t",
    "pareto_frontier",
    "pass_at_k",
    "sign_flip",
    "variance_components",
    "wilcoxon",
]
