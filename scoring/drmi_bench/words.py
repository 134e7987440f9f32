"""What the metrics of Dr.Mi-Bench are."""

from adjudge.scoring.contract.metric_words import MetricWords

__all__ = ["DRMI"]

DRMI = MetricWords(
    source="Dr.Mi-Bench",
    of={
        "plan_f1": "The harmonic mean of precision and recall of the planned subtasks, matched one to one.",
        "plan_precision": "The planned subtasks that the expert's plan has, matched one to one.",
        "plan_recall": "The expert's subtasks that the plan has, matched one to one.",
        "plan_accuracy": "Matched subtasks of all different ones (Jaccard), as the paper's text says.",
        "plan_accuracy_tables": "The precision of the plan, which the paper's tables print as accuracy.",
        "plan_f1_many": "The harmonic mean of precision and recall, where a subtask may match several.",
        "plan_precision_many": "The planned subtasks that match any of the expert's.",
        "plan_recall_many": "The expert's subtasks that match any of the plan's.",
        "retrieval_accuracy": "Works found of all different ones (Jaccard) for a review; a hit for a research paper.",
        "retrieval_f1": "The harmonic mean of precision and recall of the works that were found.",
        "retrieval_precision": "The works found that are the gold ones.",
        "retrieval_recall": "The gold works that were found.",
        "reasoning_accuracy": "The statements about the paper that the report gets right.",
        "reasoning_f1": "The harmonic mean of precision and recall of the statements, true as the positive class.",
        "reasoning_precision": "The statements that the report makes true and that are.",
        "reasoning_recall": "The true statements that the report makes true.",
        "reasoning_f1_macro": "F1 as the mean over the labels of statements.",
        "reasoning_precision_macro": "Precision as the mean over the labels of statements.",
        "reasoning_recall_macro": "Recall as the mean over the labels of statements.",
    },
    forms={
        "_doi": "Works are the same if their DOIs are (section 3.2).",
        "_title20": "Works are the same if the first 20 letters and digits of their titles are (A.17).",
    },
)
