"""What the metrics of comparisons are."""

from adjudge.scoring.contract.metric_words import MetricWords

__all__ = ["PAIRWISE"]

PAIRWISE = MetricWords(
    source="adjudge",
    of={
        "won": "Comparisons won against other systems' reports, a tie counting half; the mean of both orders.",
        "won_shown_first": "Comparisons won where the report is shown first.",
        "won_shown_last": "Comparisons won where the report is shown last.",
    },
)
