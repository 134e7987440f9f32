"""Run folders with made-up scores for `adjudge leaderboard`."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adjudge.engine.config.run import RunConfig
from adjudge.engine.runs.record import RunRecord, Spent, TaskRecord, metrics_of
from adjudge.judges import JudgeIdentity
from adjudge.scoring.deepresearch_bench.fact import Fact
from adjudge.scoring.deepresearch_bench.race import Race

PROTOCOLS = (Race(), Fact())
LANGUAGES = ("en", "zh")
DOMAINS = ("energy", "finance and business", "health", "history", "law", "software engineering", "")
REASONS = ("judge_timeout", "page_timeout", "gold_missing")


def made_run(
    folder: Path, systems: Sequence[str], tasks: int, *, repeats: int = 1, missing: float = 0.03
) -> Path:
    """A run folder of RACE and FACT scores; the first system is the best, scores go missing for several reasons."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(len(systems) * tasks)
    names = [
        (protocol.name, metric.name)
        for protocol in PROTOCOLS
        for metric in protocol.metrics
        if not metric.ratio
    ]
    shape = (len(names), len(systems), tasks, repeats)
    skill = np.linspace(0.55, 0.35, len(systems))[:, None, None]
    difficulty = rng.normal(0, 0.08, (tasks, 1))
    values = np.clip(skill + difficulty + rng.normal(0, 0.08, shape), 0, 1)
    lost = np.broadcast_to(rng.random(shape[1:]) < missing, shape)
    at = [one.ravel() for one in np.indices(shape)]
    flat, gone = values.ravel(), lost.ravel()
    reason = np.array(REASONS)[at[2] % len(REASONS)]
    scores = pa.table(
        {
            "protocol": _named([protocol for protocol, _ in names], at[0]),
            "system": _named(systems, at[1]),
            "task_id": _named([str(task) for task in range(tasks)], at[2]),
            "sample": pa.array(np.zeros(flat.size, np.int32)),
            "repeat": pa.array(at[3].astype(np.int32)),
            "metric": _named([metric for _, metric in names], at[0]),
            "value": pa.array(flat, mask=gone),
            "status": pa.array(np.where(gone, "unscored", "scored")),
            "reason": pa.array(reason, mask=~gone),
        }
    )
    pq.write_table(scores, folder / "scores.parquet")
    RunRecord(
        run="20260101T000000-made",
        started=1_767_225_600.0,
        ended=1_767_226_200.0,
        command=["adjudge", "evaluate", "adjudge.yaml"],
        config=RunConfig(tasks="tasks.jsonl", protocols=("race", "fact"), repeats=repeats),
        versions={"adjudge": "0.1.0", "numpy": np.__version__},
        python="3.11",
        judge=JudgeIdentity("made-up", "made-up@0", "temperature 0"),
        prompts={f"{protocol.name}.en.md": f"{number:032x}" for number, protocol in enumerate(PROTOCOLS)},
        metrics=metrics_of(PROTOCOLS, ())[0],
        tasks={
            str(task): TaskRecord(LANGUAGES[task % 2], DOMAINS[task % len(DOMAINS)]) for task in range(tasks)
        },
        systems=list(systems),
        spent={
            name: Spent(
                reports=tasks,
                seconds=float(rng.uniform(60, 1_800)),
                cost=float(rng.lognormal(-1, 1)),
                tokens=float(rng.uniform(1e4, 1e6)),
                tokens_written=float(rng.uniform(1e3, 1e4)),
                words=float(rng.uniform(800, 4_000)),
            )
            for name in systems
        },
        pages="",
        rejected=(),
        from_store=0,
        from_judge=len(systems) * tasks,
    ).write(folder)
    return folder


def _named(names: Sequence[str], codes: "np.ndarray") -> pa.Array:
    return pa.array(names).take(pa.array(codes))
