"""What the metrics of LiveDRBench are."""

from adjudge.scoring.contract.metric_words import MetricWords

__all__ = ["LIVEDR"]

LIVEDR = MetricWords(
    source="LiveDRBench",
    of={
        "f1": "The harmonic mean of precision and recall, for each question.",
        "precision": "The claims of the answer that the gold answer has.",
        "recall": "The claims of the gold answer that the answer has.",
        "f1_traced": "F1 of the answers that have a trace.",
        "sources": "Sources that the trace refers to.",
        "branches": "Branches of the search in the trace.",
        "backtracks": "Steps back in the trace.",
        "f1_per_source": "F1 over the number of sources, pooled over questions with a trace.",
        "f1_per_branch": "F1 over the number of branches, pooled over questions with a trace.",
        "f1_per_backtrack": "F1 over the number of steps back, pooled over questions with a trace.",
    },
    units={
        **dict.fromkeys(("sources", "branches", "backtracks"), "count"),
        "f1_per_source": "share a source",
        "f1_per_branch": "share a branch",
        "f1_per_backtrack": "share a step back",
        **{
            f"{name}{form}": "share" for name in ("f1", "precision", "recall") for form in ("_eq1", "_strict")
        },
    },
    forms={
        "_eq1": "By the paper's equation 1: the mean over claims of weight, score and the subclaims' precision.",
        "_strict": "By equation 1, with the least instead of the mean.",
    },
)
