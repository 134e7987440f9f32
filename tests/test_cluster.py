"""The cluster gives the rows of one process and survives failures. Real Ray, real processes."""

import asyncio
import hashlib
import os
import signal
import time
from collections import Counter
from concurrent.futures import Future
from itertools import cycle, islice
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from adjudge.engine.cluster.driver import open_cluster
from adjudge.engine.cluster.evaluator_actor import UNWRITTEN
from adjudge.engine.cluster.messages import Remote
from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.evaluation.assembly import open_evaluator
from adjudge.engine.formats.dataset import load_dataset
from adjudge.judges import ScriptedJudge
from adjudge.judges.errors import JudgeError
from adjudge.judges.schema import schema_of
from tests.clusters import on_cluster, rows, score
from tests.mock_openai import MockOpenAI, valid
from tests.processes import ended
from tests.small_ray import RAY_WARNINGS
from tests.worlds import world

pytest.importorskip("ray")

pytestmark = [*RAY_WARNINGS, pytest.mark.usefixtures("small_ray")]


def opinion(question):
    seed = hashlib.blake2b(question.identity() + question.context.digest, digest_size=32).digest()
    return msgspec.json.encode(valid(schema_of(question, True), seed)).decode()


def scripted(book):
    return ScriptedJudge(opinion, latency=lambda question: question.context.digest[0] / 4000)


async def test_lexical_judge_gives_the_same_rows(tmp_path):
    """Whatever the number of evaluators: of 4, and of 1 that finds what they stored."""
    path = world(tmp_path, systems=5, tasks=7)
    alone = await evaluate_async(RunConfig.load(path))
    result = await evaluate_async(on_cluster(path, "cluster", evaluators=4))
    assert rows(result.out) == rows(alone.out)
    assert (result.from_judge, result.scorecards, result.unscored) == (alone.from_judge, 35, 0)
    assert msgspec.structs.replace(result.leaderboard, runs=(), sources=()) == msgspec.structs.replace(
        alone.leaderboard, runs=(), sources=()
    )
    again = await evaluate_async(on_cluster(path, "cluster", evaluators=1))
    assert again.from_judge == 0 and rows(again.out) == rows(alone.out)


@pytest.mark.parametrize("evaluators", [1, 2, 4])
async def test_scripted_judge_gives_the_same_scorecards(tmp_path, evaluators):
    config = on_cluster(world(tmp_path, systems=4, tasks=6, repeats=2), evaluators=evaluators)
    async with open_evaluator(config, judge=scripted) as evaluator:
        alone = await score(evaluator, config)
    config = msgspec.structs.replace(config, store=str(tmp_path / "other"))
    async with open_cluster(config, scripted) as cluster:
        together = await score(cluster, config)
        assert cluster.counts.from_judge == sum(len(card.judgments) for card in alone)
    assert together == alone


async def test_request_limit_holds_across_evaluators(tmp_path):
    async with MockOpenAI(latency=0.05) as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock", "max_in_flight": 10}
        config = on_cluster(world(tmp_path, systems=6, tasks=6, judge=judge), evaluators=2)
        result = await evaluate_async(config)
        assert result.unscored == 0 and mock.calls == result.from_judge
        assert 8 <= mock.peak <= 10


async def test_token_rate_limit_holds_across_evaluators(tmp_path):
    asked: list[float] = []

    async def noted(mock, call) -> None:
        if not call.is_probe:
            asked.append(time.monotonic())

    in_flight, tokens, per_minute = 8, 120, 144_000  # tokens: what the server counts for a call
    async with MockOpenAI(fault=noted) as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock", "max_in_flight": in_flight}
        judge["tokens_per_minute"] = per_minute
        config = on_cluster(world(tmp_path, systems=4, tasks=4, judge=judge), evaluators=2)
        result = await evaluate_async(config)
    assert result.unscored == 0 and len(asked) == 160
    rate, burst = per_minute / 65, 5.0  # in no 60 seconds more than per_minute, a burst of 5 seconds included
    for first in range(160):
        for last in range(first, 160):
            spent = (last - first + 1 - in_flight) * tokens  # those in flight may have come late
            assert spent <= rate * (asked[last] - asked[first] + burst)


@pytest.mark.parametrize(
    ("error", "judge"),
    [
        (UsageError, {"backend": "openai", "url": "http://127.0.0.1:1/v1"}),
        (JudgeError, {"backend": "openai", "url": "http://127.0.0.1:1/v2#x?", "model": "m"}),
    ],
)
async def test_fatal_error_stops_the_run_unchanged(tmp_path, error, judge):
    async with MockOpenAI() as mock:
        if error is JudgeError:
            judge = {**judge, "url": mock.url.replace("/v1", "/nothing-here")}
        config = on_cluster(world(tmp_path, judge=judge), evaluators=2)
        with pytest.raises(error, match=r"judge|status 404"):
            await evaluate_async(config)


async def test_store_that_is_a_file_is_refused_at_once(tmp_path):
    path = world(tmp_path)
    (tmp_path / "file").write_text("")
    config = msgspec.structs.replace(on_cluster(path, evaluators=2), store=str(tmp_path / "file"))
    with pytest.raises(UsageError, match="is a file; name a folder"):
        await evaluate_async(config)


def lethal(book):
    """Kills its process when asked about the report of system2 to task 3."""

    def deadly(question):
        if "Report of system2" in str(question.context) and "fact number 3." in str(question.context):
            os.kill(os.getpid(), signal.SIGKILL)
        return opinion(question)

    return ScriptedJudge(deadly, latency=0.01)


async def test_case_that_kills_two_workers_alone_is_set_aside(tmp_path):
    config = on_cluster(world(tmp_path, systems=3, tasks=5), evaluators=2)
    async with open_cluster(config, lethal) as cluster:
        cards = await score(cluster, config)
    assert len(cards) == 15
    unscored = [(card.system, card.task_id, card.reason) for card in cards if card.status == "unscored"]
    assert unscored == [("system2", "3", "worker_died")]


class Hang:
    """A judge that stops its whole process, once in total."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, book):
        def hanging(question):
            if not (self.folder / "hung").exists() and "fact number 3." in str(question.context):
                (self.folder / "hung").write_text(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGSTOP)
            return opinion(question)

        return ScriptedJudge(hanging)


async def test_hung_evaluator_is_replaced(tmp_path):
    config = on_cluster(world(tmp_path, systems=3, tasks=5), evaluators=2, hung_seconds=4)
    async with open_cluster(config, Hang(tmp_path)) as cluster:
        cards = await score(cluster, config)
    assert len(cards) == 15 and all(card.status == "scored" for card in cards)
    await ended(int((tmp_path / "hung").read_text()))


async def test_evaluator_that_opens_slowly_is_not_hung(tmp_path):
    def slow_to_open(book):
        time.sleep(3)
        return ScriptedJudge(opinion, latency=2.5)

    config = on_cluster(world(tmp_path, systems=1, tasks=1), evaluators=1, hung_seconds=4)
    async with open_cluster(config, slow_to_open) as cluster:
        assert len(await score(cluster, config)) == 1
        assert not lost(cluster)


async def test_evaluators_outlive_the_only_replica(tmp_path):
    hang = Hang(tmp_path)

    def slow_to_return(book):
        if (tmp_path / "hung").exists():
            time.sleep(7)
        return hang(book)

    config = on_cluster(world(tmp_path, systems=3, tasks=5), evaluators=2, hung_seconds=4)
    async with open_cluster(config, slow_to_return, replicas=1) as cluster:
        cards = await score(cluster, config)
        assert all(card.status == "scored" for card in cards)
        assert lost(cluster) == {"judge": 1}


def lost(cluster):
    """How many workers of each kind were lost."""
    families = [family for family in cluster.measured() if family.name == "adjudge_workers_lost"]
    samples = [sample for family in families for sample in family.samples if sample[0].endswith("_total")]
    return Counter(labels["kind"] for _, labels, count in samples for _ in range(int(count)))


async def test_shared_question_is_asked_once_and_cases_are_spread(tmp_path):
    judge = {"backend": "lexical", "max_in_flight": 12}
    config = on_cluster(world(tmp_path, systems=40, tasks=1, judge=judge), evaluators=3)
    opened, pids = tmp_path / "opened", tmp_path / "pids"
    opened.mkdir()
    pids.mkdir()

    def noting(book):
        def noted(question):
            (pids / str(os.getpid())).touch()
            return opinion(question)

        (opened / str(os.getpid())).touch()
        while len(list(opened.iterdir())) < 3:  # a busy machine starts them one after another
            time.sleep(0.05)
        return ScriptedJudge(noted, latency=0.3)

    async with open_cluster(config, noting) as cluster:
        cards = await score(cluster, config)
        asked = cluster.counts.from_judge
    assert len(cards) == 40
    assert asked == len({key for card in cards for key in card.judgments})
    assert len(list(pids.iterdir())) == 3


async def test_call_cancelled_as_its_answer_arrives_is_cancelled():
    answers = []

    class Method:
        def remote(self):
            return self

        def future(self):
            answers.append(Future())
            return answers[-1]

    remote = Remote.__new__(Remote)
    remote.name, remote.actor = "evaluator 0", SimpleNamespace(deliveries=Method())
    task = asyncio.create_task(remote.call("deliveries", within=20))
    while not answers:
        await asyncio.sleep(0)
    answers[0].set_result(b"")
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_interrupted_run_has_stored_its_answers(tmp_path):
    async with MockOpenAI(latency=0.05) as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock", "max_in_flight": 8}
        config = on_cluster(world(tmp_path, systems=6, tasks=8, judge=judge), evaluators=2, flush_seconds=60)
        running = asyncio.ensure_future(evaluate_async(config))
        while mock.calls < 200:
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        asked = mock.calls
        result = await evaluate_async(config)
        assert result.from_store >= asked - 8 and result.unscored == 0


async def test_finished_cases_are_written_before_they_pile_up(tmp_path):
    config = on_cluster(world(tmp_path), evaluators=1, flush_seconds=600)
    dataset = load_dataset(config.format, config.tasks, config.reports)
    given, count = 0, 5 * UNWRITTEN

    def cases():
        nonlocal given
        for case in islice(cycle(list(dataset.cases(1))), count):
            given += 1
            yield case

    async with open_cluster(config, scripted) as cluster:
        given_at = [given async for _ in cluster.run(cases())]
    assert len(given_at) == count
    assert UNWRITTEN <= given_at[0] < count


async def test_replica_processes_give_the_same_scorecards(tmp_path):
    config = on_cluster(world(tmp_path, systems=4, tasks=6), evaluators=2)
    async with open_evaluator(config, judge=scripted) as evaluator:
        alone = await score(evaluator, config)
    config = msgspec.structs.replace(config, store=str(tmp_path / "other"))
    async with open_cluster(config, scripted, replicas=2) as cluster:
        assert cluster.judges["judge"].fingerprint == "scripted:scripted"
        assert await score(cluster, config) == alone


async def test_hung_replica_is_replaced_and_its_questions_retried(tmp_path):
    config = on_cluster(world(tmp_path, systems=3, tasks=5), evaluators=1, hung_seconds=4)
    async with open_evaluator(config, judge=lambda book: ScriptedJudge(opinion)) as evaluator:
        alone = await score(evaluator, config)
    config = msgspec.structs.replace(config, store=str(tmp_path / "other"))
    async with open_cluster(config, Hang(tmp_path), replicas=2) as cluster:
        assert await score(cluster, config) == alone
    await ended(int((tmp_path / "hung").read_text()))


async def test_question_that_kills_two_replicas_alone_is_set_aside(tmp_path):
    config = on_cluster(world(tmp_path, systems=3, tasks=4, min_answered=1.0), evaluators=1)
    async with open_cluster(config, deadly_judge, replicas=2) as cluster:
        cards = await score(cluster, config)
    assert len(cards) == 12
    unscored = [(card.system, card.task_id, card.reason) for card in cards if card.status == "unscored"]
    assert unscored == [("system2", "3", "worker_died")]


def deadly_judge(book):
    """Kills its process when asked one question about the report of system2 to task 3."""

    def deadly(question):
        about = str(question.context)
        if "Report of system2" in about and "fact number 3." in about and "theta" in str(question.fields()):
            os.kill(os.getpid(), signal.SIGKILL)
        return opinion(question)

    return ScriptedJudge(deadly, latency=0.01)
