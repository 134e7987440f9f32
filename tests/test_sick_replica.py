"""A cluster whose judge has replicas that cannot be used: each is tried by its own actor, and left out by name."""

import os
import time
from pathlib import Path

import msgspec
import pytest

from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.config.judge import JudgeConfig
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import LimitReached
from adjudge.engine.evaluation.gate import Patience
from adjudge.judges.errors import JudgeError
from tests.mock_openai import MockOpenAI

pytest.importorskip("ray")

from adjudge.engine.cluster.driver import open_cluster
from adjudge.engine.evaluation.assembly import make_judge
from tests.clusters import on_cluster, score
from tests.outages import judged, outage, stored
from tests.worlds import lines, world

pytestmark = [
    pytest.mark.usefixtures("small_ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray's pipes to its processes
    pytest.mark.timeout(120),
]


class Servers:
    """Makes the judge of one replica after another, each with the next of `urls` and `apart` seconds later."""

    def __init__(self, folder: Path, urls: list[str], apart: float = 0.0) -> None:
        self.folder = folder
        self.urls = urls
        self.apart = apart

    def __call__(self, book):
        for number, url in enumerate(self.urls):
            try:
                os.close(os.open(self.folder / f"replica{number}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            time.sleep(number * self.apart)
            return make_judge(msgspec.convert(judged(url), JudgeConfig), book)
        raise AssertionError("more replicas than servers")


async def test_sick_replica_is_left_out_and_named(tmp_path, caplog):
    async with MockOpenAI(latency=0.1) as mock:  # the run is not over before both replicas are there
        config = on_cluster(world(tmp_path), evaluators=2)
        servers = Servers(tmp_path, [mock.url, mock.at("garbage")])
        async with open_cluster(config, servers, replicas=2) as cluster:
            cards = await score(cluster, config)
        assert mock.calls == 200
    assert {card.status for card in cards} == {"scored"}
    (line,) = [line for line in caplog.messages if "left out" in line]
    assert "/garbage/v1" in line and "JudgeActor" in line and "1 of 2 servers answer" in line


@pytest.mark.parametrize("apart", [0.0, 3.0])
async def test_sick_replicas_alone_end_the_run(tmp_path, apart):
    async with MockOpenAI() as mock:
        config = on_cluster(world(tmp_path), evaluators=2)
        servers = Servers(tmp_path, [mock.at("thinks"), mock.at("garbage")], apart)
        with pytest.raises(JudgeError, match="the other server cannot be used either"):
            async with open_cluster(config, servers, replicas=2) as cluster:
                await score(cluster, config)
        assert mock.calls == 0 and stored(tmp_path) == []


async def test_sick_replica_that_comes_first_does_not_end_the_run(tmp_path):
    async with MockOpenAI() as mock:
        config = on_cluster(world(tmp_path), evaluators=2)
        servers = Servers(tmp_path, [mock.at("thinks"), mock.url], apart=3.0)
        async with open_cluster(config, servers, replicas=2) as cluster:
            cards = await score(cluster, config)
        assert mock.calls == 200
    assert {card.status for card in cards} == {"scored"}


async def test_judge_away_in_mid_run_pauses_a_cluster(tmp_path, caplog):
    mock, config = await outage(tmp_path, after=60, until=3.0)
    patience = Patience(silence_s=0.3, patience_s=20.0, backoff_s=0.05, longest_s=0.2)
    result = await evaluate_async(on_cluster(tmp_path / "adjudge.yaml", evaluators=2), patience=patience)
    await mock.stop()
    assert result.unscored == 0 and result.from_judge == 200
    said = [line.partition(";")[0] for line in caplog.messages]
    assert said == ["judge mock: no longer answers", "judge mock: answers again"]
    assert config.resolved.bench.default.max_in_flight == 8


async def test_limit_of_a_run_holds_on_a_cluster(tmp_path):
    async with MockOpenAI(latency=0.05) as mock:
        path = world(tmp_path, judge=judged(mock.url, max_in_flight=4), max_questions=40)
        with pytest.raises(LimitReached, match=r"max_questions.*answers of this run are stored"):
            await evaluate_async(on_cluster(path, evaluators=2))
        assert 40 <= mock.calls <= 80
    assert isinstance(RunConfig.load(path).max_questions, int)


async def test_prompts_that_do_not_fit_are_named_on_a_cluster(tmp_path, caplog):
    async with MockOpenAI(serves="mock", window=2_500) as mock:
        path = world(tmp_path, systems=1, tasks=5, judge=judged(mock.url))
        rows = [
            {"task_id": str(task), "system": "long", "text": "It states a fact. " * 2_000}
            for task in range(5)
        ]
        lines(tmp_path / "reports" / "long.jsonl", rows)
        await evaluate_async(on_cluster(path, evaluators=2))
    (line,) = [line for line in caplog.messages if "too small" in line]
    assert (
        "a window of 2,500 tokens is too small for about" in line
    )  # it is counted while others are answered
