"""Reward models with scripted judges, for tests."""

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from adjudge.engine.config.run import RunConfig
from adjudge.engine.evaluation.assembly import open_evaluator
from adjudge.engine.rewards.scorer import RewardScorer
from adjudge.judges import ScriptedJudge
from adjudge.scoring.contract.case import Task
from adjudge.scoring.rubrics.asking import PointsGiven
from tests.mock_openai import MockOpenAI
from tests.worlds import CRITERIA, world


def rewarded(folder: Path, judge: object = "lexical", tasks: int = 5, **reward: object) -> RunConfig:
    """A world whose rollouts are judged by rubrics."""
    settings = {"weights": {"score_clipped": 1.0}, **reward}
    return RunConfig.load(world(folder, tasks=tasks, judge=judge, reward=settings))


def served(mock: MockOpenAI, fault: str = "", **judge: object) -> dict[str, object]:
    url = mock.at(fault) if fault else mock.url
    return {"backend": "openai", "url": url, "model": "mock", "retries": 0, **judge}


@contextlib.asynccontextmanager
async def scripted(config: RunConfig, judge: ScriptedJudge) -> AsyncIterator[RewardScorer]:
    async with open_evaluator(config, judge=lambda book: judge) as evaluator:
        tasks = {
            str(number): Task(id=str(number), prompt=f"What is fact {number}?", gold={"rubrics": _gold()})
            for number in range(5)
        }
        yield RewardScorer(config, evaluator, tasks)


def _gold() -> msgspec.Raw:
    return msgspec.Raw(json.dumps(CRITERIA).encode())


def best(question: object) -> PointsGiven:
    return PointsGiven(points=max(question.options))
