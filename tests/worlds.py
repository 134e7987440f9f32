"""Small worlds on disk for tests of the engine: tasks, reports and a configuration."""

import json
import sys
from pathlib import Path

import msgspec

FACTS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa")
CRITERIA = [  # to the embedded judge, every text below meets all of them
    {"criterion": f"The report names fact {fact}.", "points": points, "tags": ["facts"]}
    for fact, points in zip(FACTS, [1, 2, 3, 4, 5, 1, 2, 3, 4, -5], strict=True)
]
METRICS = 8  # of a report under rubrics with one tag
ADJUDGE = [sys.executable, "-m", "adjudge.engine"]


def lines(path: Path, rows: list[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def text(system: str, task: int) -> str:
    return (
        f"# Report of {system}\n\nIt states fact number {task}. " + "The measured value was 42 units. " * 20
    )


def world(folder: Path, *, systems: int = 4, tasks: int = 5, **settings: object) -> Path:
    """Write a world judged by rubrics into `folder`; the path of its configuration."""
    lines(
        folder / "tasks.jsonl",
        [
            {
                "id": str(task),
                "prompt": f"What is fact {task}?",
                "domain": f"domain {task % 2}",
                "gold": {"rubrics": CRITERIA},
            }
            for task in range(tasks)
        ],
    )
    for number in range(systems):
        name = f"system{number}"
        rows = [{"task_id": str(task), "system": name, "text": text(name, task)} for task in range(tasks)]
        lines(folder / "reports" / f"{name}.jsonl", rows)
    config = {
        "tasks": "tasks.jsonl",
        "reports": ["reports/*.jsonl"],
        "protocols": ["rubrics"],
        "judge": {"backend": "lexical"},
        "fetch": {"mode": "off"},
        "store": "store",
        "out": "run",
        **settings,
    }
    path = folder / "adjudge.yaml"
    path.write_bytes(msgspec.yaml.encode(config))
    return path
