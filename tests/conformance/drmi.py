"""Case files of `golden/drmi`: planning, retrieval and reasoning in their readings, and which fits the tables."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from adjudge.scoring.answers.parts import Overlap
from adjudge.scoring.drmi_bench.measures import (
    Label,
    Reasoning,
    Reference,
    planning_scores,
    reasoning_scores,
    retrieval_scores,
)
from tests.conformance.case import Check, Checker, compare, read_lines

LABELS: dict[str, Label] = {"True": "true", "False": "false", "Not mentioned": "not_stated"}

# How far a published mean over papers may lie from what our reading gives at the same rates, in points of 100.
POINTS = 1.0
JACCARD_POINTS = 0.2
POSITIVE = 0.6471
STATEMENTS = 10_000
UNFIT = "Search-r1 res"  # the one row that the three-label reading does not fit


def check_planning(path: Path) -> Iterator[Check]:
    for case in read_lines(path):
        matrix = case["matrix_pred_x_gold"]
        found = planning_scores(matrix, len(matrix[0]))
        one = _figures(found.one_to_one) | {"tp": found.matched, "jaccard": found.jaccard}
        yield compare(
            case["case"], {"one_to_one": one, "many_to_many": _figures(found.many_to_many)}, case["expected"]
        )


def check_retrieval(path: Path) -> Iterator[Check]:
    for case in read_lines(path):
        predicted, gold = (
            [Reference(title) for title in case[side]] for side in ("pred_titles", "gold_titles")
        )
        for rule in ("title20", "combined"):
            found = retrieval_scores(predicted, gold, rule)
            actual = _figures(found.overlap) | {"accuracy_jaccard": found.accuracy}
            yield compare(f"{case['case']} {rule}", actual, case["expected"])


def check_reasoning(path: Path) -> Iterator[Check]:
    for case in read_lines(path):
        labels = [LABELS[label] for label in case["pred"]]
        found = reasoning_scores([label == "True" for label in case["gold"]], labels)
        actual = {
            "accuracy": found.accuracy,
            "binary_positive_true": _figures(found.binary),
            "macro_three_labels": _figures(found.macro),
            "macro_present_labels": _figures(found.macro_present),
        }
        yield compare(case["case"], actual, case["expected"])


def check_consistency(path: Path) -> Iterator[Check]:
    """The readings named after the published tables reproduce their figures at the rates of those tables."""
    published = json.loads(path.read_text(encoding="utf-8"))
    for row in published["reasoning_rows"]:
        recall = 100 * _answered_alike(row["accuracy"] / 100).macro.recall
        fits = abs(recall - row["recall"]) < POINTS
        yield (
            f"reasoning {row['row']}",
            fits == (row["row"] != UNFIT),
            f"three-label recall {recall:.2f}: {row}",
        )
    for name, accuracy, precision, recall, _ in published["planning_rows_accuracy_equals_precision"]:
        matched, gold = round(10 * precision), round(1000 * precision / recall)
        found = planning_scores(np.eye(1000, gold) * (np.arange(gold) < matched), gold)
        yield compare(f"planning {name}", round(100 * found.one_to_one.precision, 1), round(accuracy, 1))
    for name, accuracy, *_, f1 in published["retrieval_review_rows"]:
        gold = [Reference(doi=f"10.5555/gold{place}") for place in range(500)]
        both = round(5 * f1)
        other = [Reference(doi=f"10.5555/other{place}") for place in range(500 - both)]
        jaccard = 100 * retrieval_scores([*gold[:both], *other], gold, "doi").accuracy
        yield (
            f"retrieval {name}",
            abs(jaccard - accuracy) < JACCARD_POINTS,
            f"Jaccard {jaccard:.2f}, not {accuracy}",
        )


def _answered_alike(accuracy: float) -> Reasoning:
    """So many statements right, true and false ones alike; of the others nothing is said."""
    truth = [place < POSITIVE * STATEMENTS for place in range(STATEMENTS)]
    right = [place % 100 < 100 * accuracy for place in range(STATEMENTS)]
    labels: list[Label] = [
        ("true" if true else "false") if said else "not_stated"
        for true, said in zip(truth, right, strict=True)
    ]
    return reasoning_scores(truth, labels)


def _figures(overlap: Overlap) -> dict[str, float]:
    return msgspec.structs.asdict(overlap)


CHECKS: dict[str, Checker] = {
    "planning_cases.jsonl": check_planning,
    "retrieval_cases.jsonl": check_retrieval,
    "reasoning_cases.jsonl": check_reasoning,
    "paper_consistency.json": check_consistency,
}
DATA: tuple[str, ...] = ()
