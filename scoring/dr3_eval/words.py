"""What the metrics of DR3-Eval are."""

from adjudge.scoring.contract.metric_words import MetricWords

__all__ = ["WORDS"]

_COUNT = "count"

WORDS = MetricWords(
    source="DR3-Eval",
    of={
        "average": "The mean of the paper's six metrics that a task has.",
        "average:": "The mean of the paper's metrics, over the tasks with this size of the corpus.",
        "average_code": "The mean of the code's five metrics.",
        "ir_uf": "Information recall: the gold insights of the user's files that the report has.",
        "ir_sc": "Information recall: the gold insights of the sandbox corpus that the report has.",
        "ir": "Information recall: the mean over user files and corpus.",
        "cc": "Citation coverage: the required sources that the report cites.",
        "cc_lenient": "Citation coverage by the code's rule, which matches titles loosely.",
        "fa": "Factual accuracy: the pairs of claim and source that are supported.",
        "fa:": "Factual accuracy over the sources with this role, pooled over tasks.",
        "fa_claims": "Factual accuracy: the claims that all of their sources support.",
        "fa_lenient": "Factual accuracy of claims, with sources matched as the code does.",
        "if": "Instruction following: the items of the checklist that are satisfied.",
        "dq": "Depth: the judge's mark from 1 to 10, over 10.",
        "cited": "Sources that the report cites.",
        "cited:": "Cited sources with this role.",
        "pairs:": "Pairs of claim and source with this role.",
        "supported:": "Supported pairs of claim and source with this role.",
        "share:": "The cited sources that have this role, pooled over tasks.",
    },
    units=dict.fromkeys(("cited", "cited:", "pairs:", "supported:"), _COUNT),
    forms={"_strict": "Without a value where the code gives 0 for a reply that it lacks."},
)
