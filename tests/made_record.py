"""The record of a run that was made up: its tasks, systems and metrics, nothing asked."""

from collections.abc import Iterable, Mapping
from typing import Any

from adjudge.engine.config.run import RunConfig
from adjudge.engine.runs.record import RunRecord, TaskRecord
from adjudge.judges import JudgeIdentity
from adjudge.scoring.contract.scorecard import Metric


def made_record(
    metrics: dict[str, tuple[Metric, ...]],
    tasks: Mapping[str, TaskRecord],
    systems: Iterable[str],
    **more: Any,
) -> RunRecord:
    """`more` are further fields of the record."""
    return RunRecord(
        run="made",
        started=0.0,
        ended=0.0,
        command=[],
        config=RunConfig(tasks="tasks.jsonl"),
        versions={},
        python="",
        judge=JudgeIdentity("made-up", "made-up@0", "temperature 0"),
        prompts={},
        metrics=metrics,
        tasks=dict(tasks),
        systems=list(systems),
        pages="",
        rejected=(),
        from_store=0,
        from_judge=0,
        **more,
    )
