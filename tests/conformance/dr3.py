"""Case files of `golden/dr3`, whose scores run from 0 to 100."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adjudge.scoring.dr3_eval import dr3
from adjudge.scoring.dr3_eval.questions import BATCH
from tests.conformance.case import Check, Checker, compare, read_lines


def check_recall(path: Path) -> Iterator[Check]:
    for case in read_lines(path):
        insights = {"long_context": case["n_long_context"], "source_documents": case["n_source"]}
        replies = iter(case["judge_replies_in_call_order"])
        scores = {
            name: [
                score
                for start in range(0, count, BATCH)
                for score in _by_id(next(replies), min(BATCH, count - start), "score")
            ]
            for name, count in insights.items()
        }
        corpus, files = (dr3.information_recall(scores[name]) for name in insights)
        expected = case["expected"]
        actual = {
            "score": _percent(_average(files, corpus)),
            "long_context_score": _percent(corpus),
            "source_documents_score": _percent(files),
            "judge_calls": len(case["judge_replies_in_call_order"]) - len(list(replies)),
            "scores": scores,
        }
        yield compare(case["case"], actual, expected)


def check_following(path: Path) -> Iterator[Check]:
    for case in read_lines(path):
        [reply] = case["judge_replies_in_call_order"]
        verdicts = _by_id(reply, case["n_items"], "satisfied")
        counted = [verdict for verdict in verdicts if verdict is not None]
        code = dr3.instruction_following_code(verdicts)
        actual = {"score": _percent(code), "satisfied": sum(counted), "total": len(counted)}
        yield compare(case["case"], actual, {name: case["expected"][name] for name in actual})
        paper = dr3.instruction_following(verdicts)
        yield compare(f"{case['case']} (paper)", paper, sum(counted) / case["n_items"])


def check_accuracy(path: Path) -> Iterator[Check]:
    for case in read_lines(path):
        verdicts = case["verdicts_claim||citation"]
        claims = [
            (
                claim["source_type"],
                [verdicts.get(f"{claim['claim_text']}||{c}", False) for c in claim["citations"]],
            )
            for claim in case["claims"]
        ]
        expected = case["expected_code"]
        yield compare(
            f"{case['case']} (code)",
            _percent(dr3.claim_accuracy([found for _, found in claims])),
            expected["score"],
        )
        # The published breakdown calls everything from the corpus long_context, and an empty part -1.
        for part, inside in (("long_context", True), ("source", False)):
            group = [found for kind, found in claims if (kind in ("long_context", "rag")) == inside]
            score = dr3.claim_accuracy(group)
            actual = {
                "score": -1 if score is None else 100 * score,
                "supported_count": round((score or 0) * len(group)),
                "total_count": len(group),
            }
            yield compare(f"{case['case']} ({part})", actual, expected["breakdown"][part])
        pairs = [verdict for _, found in claims for verdict in found]
        yield compare(
            f"{case['case']} (paper)",
            _percent(dr3.pair_accuracy(pairs)),
            case["expected_paper_eq4_pairs"],
        )


def check_total(path: Path) -> Iterator[Check]:
    for number, case in enumerate(read_lines(path), 1):
        mean = _average(*(case["scores"][name] for name in case["enabled"]))
        yield compare(f"line {number}", mean, case["run_all_total_score"])
        yield compare(f"line {number} (batch report)", mean, case["batch_report_mean_of_valid"])


def check_paper_table(path: Path) -> Iterator[Check]:
    for row in json.loads(path.read_text(encoding="utf-8")):
        name = f"{row['model']} {row['size']}"
        six = [row[column] for column in ("IR_UF", "IR_SC", "CC", "FA", "IF", "DQ")]
        mean = _average(*six) or 0.0
        yield compare(f"{name} (six)", round(mean, 3), row["mean_of_six"])
        five = [_average(row["IR_UF"], row["IR_SC"]), *(row[column] for column in ("CC", "FA", "IF", "DQ"))]
        yield compare(f"{name} (five)", round(_average(*five) or 0.0, 2), row["mean_of_five_code"])
        # Published averages come from columns with more digits than those printed.
        yield compare(f"{name} (published)", abs(mean - row["avg_published"]) <= 0.067, True)


def _by_id(reply: dict[str, Any], count: int, field: str) -> list[Any]:
    """The values of ids 1 to `count` in a published reply, None for an id without one."""
    found = {result["id"]: result[field] for result in reply["results"]}
    return [found.get(number) for number in range(1, count + 1)]


def _average(*values: float | None) -> float | None:
    """Over the values there are."""
    known = [value for value in values if value is not None]
    return dr3.average(known) if known else None


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


CHECKS: dict[str, Checker] = {
    "information_recall.jsonl": check_recall,
    "format_compliance.jsonl": check_following,
    "factual_accuracy_aggregation.jsonl": check_accuracy,
    "total_score.jsonl": check_total,
    "paper_table2.json": check_paper_table,
}
DATA: tuple[str, ...] = ()
