"""Folders of published results, for tests."""

import json
from pathlib import Path
from typing import Any

from adjudge.engine.commands.import_results import ImportResult

DRB = "deepresearch-bench"
Row = dict[str, Any]


def race_row(task: int, share: float) -> Row:
    names = ("comprehensiveness", "insight", "instruction_following", "readability", "overall_score")
    return {"id": task, "prompt": f"Why {task}?"} | dict.fromkeys(names, share)


def fact_row(task: int, verdicts: dict[str, list[str]]) -> Row:
    """A row of validated.jsonl, its pages' texts among it."""
    sources = {
        url: {
            "facts": [f"{url} {place}" for place in range(len(found))],
            "url_content": f"Title\n\n\n\nPage <{url}> & more",
            "article_id": task,
            "validate_res": [{"idx": place, "result": result} for place, result in enumerate(found)],
            "validate_error": None,
        }
        for url, found in verdicts.items()
    }
    cited = [
        {"fact": fact, "ref_idx": "1", "url": url} for url, one in sources.items() for fact in one["facts"]
    ]
    return {
        "id": task,
        "prompt": f"Why {task}?",
        "article": "A [1].",
        "citations": cited,
        "citations_deduped": sources,
    }


def figures(found: ImportResult) -> dict[tuple[str, str], float | None]:
    return {
        (metric.metric, row.system): row.as_published
        for metric in found.leaderboard.metrics
        for row in metric.standings
    }


def same_files(exported: Path, original: Path) -> int:
    """How many files below `exported` are byte for byte those below `original`; fails if one is not."""
    files = [file.relative_to(exported) for file in exported.rglob("*") if file.is_file()]
    for file in files:
        assert (exported / file).read_bytes() == (original / file).read_bytes(), file
    return len(files)


def dr3_result(
    folder: Path, metric: str, score: float, time: str = "20260101_120000", **details: Any
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    row = {"metric_name": metric, "score": score, "weight": 1.0, "details": details}
    text = json.dumps(row, ensure_ascii=False, indent=2)
    (folder / f"eval_{metric}_{time}.json").write_text(text, encoding="utf-8")


def written(file: Path, rows: list[Row]) -> Path:
    """Rows as the benchmarks' code writes them."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return file
