"""Case files of `golden/fact`: FACT's grouping, deduplication and both ways of counting, on real and made-up tasks."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adjudge.scoring.deepresearch_bench.fact import (
    Tally,
    code_scores,
    group_by_url,
    kept_statements,
    known_accuracy,
    paper_scores,
)
from adjudge.scoring.text.citations import Triplet, url_key
from tests.conformance.case import Check, Checker, compare, read_lines


def check_aggregation(path: Path) -> Iterator[Check]:
    """Verdicts of several tasks -> the code's and the paper's figures."""
    for case in read_lines(path):
        yield compare(case["case"], _figures(case["tasks"]), case["expected"])


def check_validated(path: Path) -> Iterator[Check]:
    """Real tasks with recorded verdicts -> counts per task and all figures."""
    tasks = list(read_lines(path))
    expected = json.loads(path.with_name("dls.expected.json").read_text(encoding="utf-8"))
    for task, wanted in zip(tasks, expected["per_task"], strict=True):
        tally, groups = _tally(task), group_by_url(_triplets(task))
        actual = {
            "id": task["id"],
            "raw_triplets": len(task["citations"]),
            "unique_urls": len(groups),
            "pairs": tally.pairs,
            "supported": tally.supported,
            "unsupported": tally.unsupported,
            "unknown": tally.unknown,
            "error_pairs": tally.unreachable,
        }
        yield compare(f"task {task['id']}", {key: actual[key] for key in wanted}, wanted)
    summary = expected["summary"]
    actual_summary = {
        "tasks_in_file": len(tasks),
        "tasks_with_citations": sum(bool(task["citations"]) for task in tasks),
        **_figures(tasks),
    }
    yield compare("summary", actual_summary, summary)


def check_deduplication(path: Path) -> Iterator[Check]:
    """Raw triplets and a judge's kept indices -> groups in order of first use and unique pairs."""
    expected = json.loads(path.with_name(path.stem + ".expected.json").read_text(encoding="utf-8"))
    for task, wanted in zip(read_lines(path), expected["per_task"], strict=True):
        kept = {url_key(url): indices for url, indices in task["dedup_judge_kept_indices_1based"].items()}
        groups = group_by_url(_triplets(task))
        unique = [kept_statements(group.facts, kept[url_key(group.url)]) for group in groups]
        actual = {
            "id": task["id"],
            "raw_triplets": len(task["citations"]),
            "unique_urls": len(groups),
            "pairs_after_dedup": sum(map(len, unique)),
            "url_order_is_first_seen": [url_key(group.url) for group in groups] == list(kept),
        }
        yield compare(f"task {task['id']}", actual, wanted)


def _triplets(task: dict[str, Any]) -> list[Triplet]:
    return [Triplet(one["fact"], one["ref_idx"], one["url"]) for one in task["citations"]]


def _tally(task: dict[str, Any]) -> Tally:
    counts: Counter[str] = Counter()
    for page in task["citations_deduped"].values():
        if page["validate_error"]:
            counts["unreachable"] += len(page["facts"])
        else:
            counts.update(verdict["result"] for verdict in page["validate_res"])
    return Tally(**counts)


def _figures(tasks: list[dict[str, Any]]) -> dict[str, Any]:
    tallies = [_tally(task) for task in tasks]
    cited = [tally if task["citations"] else None for task, tally in zip(tasks, tallies, strict=True)]
    code, paper = code_scores(cited), paper_scores(tallies)
    return {
        "code": {
            "total_citations": code.citations,
            "total_valid_citations": code.e_cit,
            "valid_rate": code.c_acc,
        },
        "paper": {
            "citation_accuracy_eq3_denominator_all_unique_pairs": paper.c_acc,
            "effective_citations_eq4": paper.e_cit,
        },
        "paper_variant_unknown_excluded": {
            "citation_accuracy": sum(map(known_accuracy, tallies)) / len(tallies)
        },
        "totals": {
            "supported": sum(tally.supported for tally in tallies),
            "unsupported": sum(tally.unsupported for tally in tallies),
            "unknown": sum(tally.unknown for tally in tallies),
            "pairs": sum(tally.pairs for tally in tallies),
        },
    }


CHECKS: dict[str, Checker] = {
    "aggregation_cases*.jsonl": check_aggregation,
    "dls_validated*.jsonl": check_validated,
    "*_dedup.jsonl": check_deduplication,
}
DATA: tuple[str, ...] = ()
