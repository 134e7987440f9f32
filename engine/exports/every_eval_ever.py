"""A leaderboard as records of Every Eval Ever, schema 0.3.0: one JSON file per system and protocol."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adjudge.engine.runs.board import Leaderboard, MetricBoard, Standing
from adjudge.engine.runs.record import RunRecord
from adjudge.fetchers.files import file_name
from adjudge.scoring.contract.scorecard import Metric

SCHEMA = "0.3.0"


def write_every_eval_ever(board: Leaderboard, record: RunRecord, out: Path) -> Iterator[Path]:
    """Write the records of the run `record`, whose leaderboard is `board`, below `out`; the files written.

    The place is BENCHMARK/DEVELOPER/MODEL/UUID.json, as in the project's collection. A system with less coverage than a
    rank needs has no figure.
    """
    for protocol in dict.fromkeys(metric.protocol for metric in board.metrics):
        boards = [metric for metric in board.metrics if metric.protocol == protocol]
        known = {metric.name: metric for metric in record.metrics.get(protocol, ())}
        for system in sorted({row.system for metric in boards for row in metric.standings}):
            results = [
                _result(metric, row, known.get(metric.metric), record, board)
                for metric in boards
                for row in metric.standings
                if row.system == system and row.value is not None and not row.flagged
            ]
            if results:
                developer, _, model = system.rpartition("/")
                folder = out / protocol / file_name(developer or "unknown") / file_name(model or "unknown")
                name = uuid.uuid5(uuid.NAMESPACE_URL, f"adjudge:{record.run}:{protocol}:{system}")
                folder.mkdir(parents=True, exist_ok=True)
                file = folder / f"{name}.json"
                whole = _whole(protocol, system, record, results)
                file.write_text(json.dumps(whole, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
                yield file


def _whole(protocol: str, system: str, record: RunRecord, results: list[dict[str, Any]]) -> dict[str, Any]:
    source: dict[str, Any] = {
        "source_name": record.recorded or "adjudge",
        "source_type": "documentation" if record.recorded else "evaluation_run",
        "source_organization_name": "unknown",
        "evaluator_relationship": "other",
        "additional_details": {"run": record.run},
    }
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"{protocol}/{system}/{record.ended}",
        "evaluation_timestamp": str(record.started),
        "retrieved_timestamp": str(record.ended),
        "source_metadata": source,
        "eval_library": {"name": "adjudge", "version": record.versions.get("adjudge", "unknown")},
        "model_info": _model(system),
        "evaluation_results": results,
    }


def _model(name: str) -> dict[str, Any]:
    """A model of which nothing but the name is recorded."""
    details = {"deployment_type": "unknown", "model_availability": "unknown"}
    return {"name": name, "id": name, "additional_details": details}


def _result(
    board: MetricBoard, row: Standing, metric: Metric | None, record: RunRecord, whole: Leaderboard
) -> dict[str, Any]:
    details = {"scored": str(row.n_scored), "total": str(row.n_total), "coverage": str(row.coverage)}
    for name, bound in (("bound_low", row.bound_low), ("bound_high", row.bound_high)):
        if bound is not None:
            details[name] = str(bound)
    score: dict[str, Any] = {"score": row.value, "details": details}
    if row.low is not None and row.high is not None:
        score["uncertainty"] = {
            "confidence_interval": {
                "lower": row.low,
                "upper": row.high,
                "confidence_level": whole.confidence,
                "method": "percentile bootstrap over tasks",
            },
            "num_samples": board.n_tasks,
            "num_bootstrap_samples": whole.resamples,
        }
    return {
        "evaluation_name": f"{board.protocol}.{board.metric}",
        "source_data": {"dataset_name": board.protocol, "source_type": "other"},
        "metric_config": _config(board, metric, record),
        "score_details": score,
    }


def _config(board: MetricBoard, metric: Metric | None, record: RunRecord) -> dict[str, Any]:
    judges = [
        {
            "model_info": _model(judge.name),
            "additional_details": {"fingerprint": judge.fingerprint},
        }
        for judge in record.judging.all_of(board.protocol)
    ]
    made: dict[str, Any] = {
        "evaluation_description": f"{board.metric} of {board.protocol}, the mean over tasks",
        "lower_is_better": board.lower_is_better,
        "llm_scoring": {
            "judges": judges,
            "input_prompt": ", ".join(f"{name} {digest}" for name, digest in sorted(record.prompts.items()))
            or "as recorded",
        },
    }
    values = [row.value for row in board.standings if row.value is not None]
    worst, best = (0.0, None) if metric is None else (metric.worst, metric.best)
    if best is None:
        best = max(worst, *values)
        made["additional_details"] = {"max_score": "the largest value here; the metric has no upper bound"}
    low, high = sorted((worst, best))
    return made | {"score_type": "continuous", "min_score": low, "max_score": high}
