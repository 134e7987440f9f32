"""Runs on a cluster, for tests."""

from pathlib import Path

import pyarrow.parquet as pq

from adjudge.engine.config.run import RunConfig
from adjudge.engine.formats.dataset import load_dataset


def on_cluster(path: Path, name: str = "run", **cluster: object) -> RunConfig:
    settings = {"address": "local", "flush_seconds": 0.5, "hung_seconds": 20, **cluster}
    return RunConfig.load(
        path, cluster=settings, out=str(path.parent / name), store=str(path.parent / f"{name}-store")
    )


def rows(out: str | Path) -> list[dict[str, object]]:
    return pq.read_table(Path(out) / "scores.parquet").to_pylist()


async def score(evaluator, config):
    dataset = load_dataset(config.format, config.tasks, config.reports)
    cards = [card async for card in evaluator.run(dataset.cases(config.repeats))]
    return sorted(cards, key=lambda card: (card.protocol, card.task_id, card.system, card.repeat))
