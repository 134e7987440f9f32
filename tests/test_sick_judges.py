"""Judges that cannot be used, in every way: what the run says, how it ends, what it stores and what it scores.

Each is a real server (`tests.mock_openai`). No score and no reward may come from what it fails at.
"""

import asyncio
from pathlib import Path

import aiohttp
import pytest

from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import LimitReached
from adjudge.engine.evaluation.dry_run import longest
from adjudge.engine.evaluation.gate import Patience
from adjudge.engine.rewards.scorer import open_rewards
from adjudge.engine.runs.record import RunRecord
from adjudge.judges.errors import JudgeError
from adjudge.scoring.contract.case import Case, Report, Task
from tests.commands import changed, one_line, run
from tests.mock_openai import FAULTS, MockOpenAI, completion
from tests.outages import judged, outage, scores, stored
from tests.processes import free_port
from tests.reward_server import reward_server
from tests.worlds import lines, world

QUICK = Patience(silence_s=0.3, patience_s=20.0, doubt_s=0.1, backoff_s=0.05, longest_s=0.2)
CASES = 20
CHARS = {"short": 10, "long": 1_000, "middling": 100}
QUESTIONS = CASES * 10
TEXT = "It states fact number 0. The measured value was 42 units."


def assert_nothing_came_of_it(folder: Path) -> None:
    """No judgment, no score and no leaderboard; the run's record says that it ended."""
    assert not list(folder.glob("store/**/*.parquet"))
    assert {file.name for file in folder.glob("run/*")} <= {"run.json"}
    if (folder / "run" / "run.json").exists():
        assert RunRecord.read(folder / "run").state != "running"


SICK = {
    "thinks": "set judge: thinking: true",
    "thinks-silently": "set judge: thinking: true",
    "thinks-aloud": "set judge: thinking: true",
    "truncated": "cuts its replies off",
    "rambles": "ignores the JSON schema",
    "garbage": "ignores the JSON schema",
    "missing-model": "does not exist",
    "no-max-tokens": "max_tokens",
    "no-temperature": "temperature",
    "down": "when it is ready",
    "refusal": "declines",
}


@pytest.mark.parametrize("fault", SICK)
async def test_judge_that_cannot_be_used_ends_the_run_at_once(tmp_path, capsys, fault):
    async with MockOpenAI() as mock:
        path = world(tmp_path, judge=judged(mock.at(fault)))
        code, out, error = await asyncio.to_thread(run, capsys, "evaluate", path)
    assert (code, out) == (1, "")
    line = one_line(error)
    assert SICK[fault] in line and mock.at(fault) in line and "nothing was stored" in line
    assert mock.calls == 0
    assert_nothing_came_of_it(tmp_path)


async def test_window_too_small_for_anything_ends_the_run(tmp_path, capsys):
    async with MockOpenAI() as mock:
        path = world(tmp_path, judge=judged(mock.url, max_context=64))
        code, _, error = await asyncio.to_thread(run, capsys, "evaluate", path)
    assert code == 1 and "serve the model with a longer context" in one_line(error)
    assert_nothing_came_of_it(tmp_path)


async def test_another_model_is_found_before_the_run(tmp_path, capsys):
    async with MockOpenAI(serves="another") as mock:
        code, _, error = await asyncio.to_thread(
            run, capsys, "evaluate", world(tmp_path, judge=judged(mock.url))
        )
    assert code == 1 and "serves another; set judge: model" in one_line(error)
    assert_nothing_came_of_it(tmp_path)


def test_judge_that_is_not_there_ends_the_run_at_once(tmp_path, capsys):
    judge = judged(f"http://127.0.0.1:{free_port()}/v1")
    code, _, error = run(capsys, "evaluate", world(tmp_path, judge=judge))
    assert code == 1 and "start it, or correct judge: url" in one_line(error)
    assert_nothing_came_of_it(tmp_path)


@pytest.mark.parametrize("fault", SICK)
async def test_judge_that_cannot_be_used_gives_no_reward(tmp_path, fault):
    async with MockOpenAI() as mock:
        path = world(tmp_path, judge=judged(mock.at(fault)), reward={"metric": "score_clipped"})
        async with open_rewards(RunConfig.load(path), QUICK) as scorer:
            (reward,) = await scorer.score([{"task_id": "0", "text": TEXT}], deadline=5.0)
            assert SICK[fault] in str(scorer.judge_trouble)
    assert (reward.value, reward.reason) == (None, "judge_unavailable")
    assert mock.calls == 0 and not list(tmp_path.glob("store/**/*.parquet"))


async def test_judge_away_in_mid_run_pauses_it(tmp_path, caplog):
    mock, config = await outage(tmp_path, after=60, until=1.5)
    result = await evaluate_async(config, patience=QUICK)
    await mock.stop()
    assert result.unscored == 0 and result.from_judge == QUESTIONS
    assert {row["status"] for row in stored(tmp_path)} == {"scored"}
    assert all(row["value"] is not None for row in scores(tmp_path))
    assert [line.partition(";")[0] for line in caplog.messages] == [
        "judge mock: no longer answers",
        "judge mock: answers again",
    ]


async def test_judge_gone_in_mid_run_ends_it_resumably(tmp_path, caplog):
    mock, config = await outage(tmp_path, after=60, until=1e9)
    short = Patience(silence_s=0.3, patience_s=0.5, backoff_s=0.05, longest_s=0.2)
    with pytest.raises(JudgeError, match=r"patience_s.*status 503.*answers of this run are stored") as ended:
        await evaluate_async(config, patience=short)
    await mock.stop()
    kept = stored(tmp_path)
    assert 50 <= len(kept) <= 60 and {row["status"] for row in kept} == {"scored"}
    assert f"{len(kept)} answers" in str(ended.value)
    async with MockOpenAI() as mock:
        again = RunConfig.load(tmp_path / "adjudge.yaml", judge=judged(mock.url))
        result = await evaluate_async(again)
    assert result.unscored == 0 and mock.calls == QUESTIONS - len(kept)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("garbage", "judge_unparseable"),
        ("refusal", "judge_refused"),
        ("slow", "judge_timeout"),
        ("truncated", "answer_truncated"),
        ("thinks", "answer_truncated"),
    ],
)
async def test_failure_that_begins_later_is_no_score(tmp_path, fault, reason):
    async def later(mock: MockOpenAI, call):
        return None if call.is_probe or mock.calls <= 5 else await FAULTS[fault](mock, call)

    async with MockOpenAI(fault=later) as mock:
        timeout_s = 0.5 if fault == "slow" else 30.0
        judge = judged(mock.url, timeout_s=timeout_s, max_in_flight=20)
        path = world(tmp_path, systems=1, tasks=2, judge=judge)
        result = await evaluate_async(RunConfig.load(path), patience=QUICK)
    assert result.unscored == 2
    assert {row["reason"] for row in stored(tmp_path)} == {None, reason}
    assert {(row["value"], row["reason"]) for row in scores(tmp_path) if row["metric"] == "score"} == {
        (None, reason)
    }


async def test_show_says_what_in_a_reply_cannot_be_read(tmp_path, capsys):
    async def later(mock: MockOpenAI, call):
        return None if call.is_probe else completion('{"analysis": "", "points": "many"}')

    async with MockOpenAI(fault=later) as mock:
        path = world(tmp_path, systems=1, tasks=1, judge=judged(mock.url))
        await evaluate_async(RunConfig.load(path), patience=QUICK)
    code, out, _ = await asyncio.to_thread(
        run, capsys, "show", tmp_path / "run", "--task", "0", "--system", "system0"
    )
    assert code == 0 and "(judge_unparseable; stop: " in out and "`$.points`" in " ".join(out.split())


async def test_dead_server_of_four_is_left_out_and_named(tmp_path, caplog):
    async with MockOpenAI() as one, MockOpenAI() as two, MockOpenAI() as three:
        dead = f"http://127.0.0.1:{free_port()}/v1"
        urls = [one.url, two.url, dead, three.url]
        path = world(tmp_path, judge=judged("", urls=urls))
        result = await evaluate_async(RunConfig.load(path), patience=QUICK)
        assert min(one.calls, two.calls, three.calls) > 0
        assert one.calls + two.calls + three.calls == QUESTIONS
    assert result.unscored == 0
    (line,) = caplog.messages
    assert dead in line and "left out; 3 of 4 servers answer" in line


async def test_four_dead_servers_end_the_run(tmp_path, capsys):
    urls = [f"http://127.0.0.1:{free_port()}/v1" for _ in range(4)]
    code, _, error = await asyncio.to_thread(
        run, capsys, "evaluate", world(tmp_path, judge=judged("", urls=urls))
    )
    assert code == 1 and urls[0] in one_line(error) and "the other 3 servers cannot be used either" in error
    assert_nothing_came_of_it(tmp_path)


async def test_stored_panel_answers_offline(tmp_path, capsys):
    async with MockOpenAI() as one, MockOpenAI() as two:
        members = [judged(one.url, model="one"), judged(two.url, model="two")]
        path = world(tmp_path, systems=1, tasks=2, judge={"backend": "panel", "members": members})
        await asyncio.to_thread(run, capsys, "evaluate", path)
    (tmp_path / "run" / "scores.parquet").unlink()
    panel = next(row["judge"] for row in stored(tmp_path) if row["judge"].startswith("panel"))
    assert (await asyncio.to_thread(run, capsys, "store", "prune", tmp_path / "store", "--of", panel))[0] == 0
    code, _, error = await asyncio.to_thread(run, capsys, "evaluate", path)
    assert code == 0, error
    assert (one.probes, two.probes, one.calls, two.calls) == (1, 1, 20, 20)


async def test_panel_names_the_member_that_is_missing(tmp_path, capsys):
    async with MockOpenAI() as one:
        dead = f"http://127.0.0.1:{free_port()}/v1"
        members = [judged(one.url, model="one"), judged(dead, model="two")]
        path = world(tmp_path, judge={"backend": "panel", "members": members})
        code, _, error = await asyncio.to_thread(run, capsys, "evaluate", path)
    assert code == 1 and dead in one_line(error)


async def test_serve_starts_before_its_judge(tmp_path):
    port = free_port()
    path = world(tmp_path, judge=judged(f"http://127.0.0.1:{port}/v1"), reward={"metric": "score_clipped"})
    context = reward_server(path)
    url, _ = await asyncio.to_thread(context.__enter__)
    item = {"items": [{"task_id": "0", "text": TEXT}], "deadline_s": 1}
    try:
        async with aiohttp.ClientSession() as client:

            async def reward() -> tuple[float | None, str | None]:
                async with client.post(f"{url}/v1/rewards", json=item) as response:
                    (found,) = (await response.json())["rewards"]
                    return found["value"], found["reason"]

            async def ready() -> int:
                async with client.get(f"{url}/readyz") as response:
                    return response.status

            assert await ready() == 503 and await reward() == (None, "judge_unavailable")
            mock = MockOpenAI()
            await mock.start(port=port)
            async with asyncio.timeout(30):
                while await ready() != 200:
                    await asyncio.sleep(0.1)
            item["deadline_s"] = 20
            value, reason = await reward()
            assert value is not None and reason is None
            item["deadline_s"] = 1
            await mock.stop()
            async with asyncio.timeout(30):
                while await ready() != 503:
                    await asyncio.sleep(0.1)
                    item["items"][0]["text"] += " More."
                    await reward()
            item["items"][0]["text"] += " Even more."
            assert await reward() == (None, "judge_unavailable")
    finally:
        await asyncio.to_thread(context.__exit__, None, None, None)


@pytest.mark.parametrize(
    ("limits", "said"),
    [({"max_questions": 37}, "max_questions: 37"), ({"max_cost": 0.0012}, "max_cost: 0.0012")],
)
async def test_run_stops_at_its_limit_resumably(tmp_path, limits, said):
    prices = {"mock": {"cost_per_million_prompt_tokens": 0.25, "cost_per_million_completion_tokens": 0.25}}
    async with MockOpenAI() as mock:
        judge = judged(mock.url, max_in_flight=4)
        path = world(tmp_path, judge=judge, prices=prices, **limits)
        with pytest.raises(LimitReached, match=f"{said}.*answers of this run are stored"):
            await evaluate_async(RunConfig.load(path))
        asked = mock.calls
        assert 37 <= asked <= 44 and len(stored(tmp_path)) == asked
        result = await evaluate_async(RunConfig.load(path, max_questions=1000, max_cost=100.0))
        assert result.unscored == 0 and mock.calls == QUESTIONS


async def test_prompts_that_do_not_fit_are_counted_before_the_run(tmp_path, capsys, caplog):
    async with MockOpenAI(serves="mock", window=2_500) as mock:
        path = world(tmp_path, systems=3, tasks=5, judge=judged(mock.url))
        rows = [
            {"task_id": str(task), "system": "long", "text": "It states a fact. " * 2_000}
            for task in range(5)
        ]
        lines(tmp_path / "reports" / "long.jsonl", rows)
        code, out, _ = await asyncio.to_thread(run, capsys, "plan", path)
        assert (
            code == 0
            and "window of 2,500 tokens: about 50 of points for one rubric" in out
            and mock.calls == 0
        )
        code, out, _ = await asyncio.to_thread(run, capsys, "doctor", path)
        assert (
            code == 1
            and "window of 2,500 tokens" in out
            and "50 of 200 questions (points for one rubric)" in out
        )
        await evaluate_async(RunConfig.load(path))
        (line,) = caplog.messages
        assert (
            "a window of 2,500 tokens is too small for about 50 of 200 questions (points for one rubric)"
            in line
        )
        code, out, _ = await asyncio.to_thread(run, capsys, "doctor", path)
        assert code == 0 and "fit into 2,500 tokens" in out  # nothing is left to ask
    small = changed(path, judge=judged(mock.url, max_context=2_500), store="new")
    code, out, _ = await asyncio.to_thread(run, capsys, "plan", small)
    assert code == 0 and "window of 2,500 tokens: about 50 of points for one rubric" in out
    away = changed(path, judge=judged(mock.url), store="new")
    code, out, _ = await asyncio.to_thread(run, capsys, "plan", away)
    assert code == 0 and "the judge's window is not known" in out


def test_longest_cases_are_looked_at_first():
    reports = [Report(task_id="1", system=name, text="x" * chars) for name, chars in CHARS.items()]
    found = longest((Case(task=Task(id="1", prompt="p"), report=report) for report in reports), 2)
    assert [case.report.system for case in found] == ["long", "middling"]


async def test_report_limit_is_the_same_for_all(tmp_path):
    """A longer report gets the minimum unasked; without the limit it is judged."""
    path = world(tmp_path, systems=1, tasks=1, report_limit=300)
    result = await evaluate_async(RunConfig.load(path))
    assert result.from_judge == 0
    assert {row["reason"] for row in scores(tmp_path)} == {"report_too_large"}
    result = await evaluate_async(RunConfig.load(changed(path, report_limit=3_000)))
    assert result.from_judge == 10


async def test_rewards_derive_their_report_limit_from_the_window(tmp_path, caplog):
    async with MockOpenAI(serves="mock", window=2_500) as mock:
        path = world(tmp_path, judge=judged(mock.url), reward={"metric": "score_clipped"})
        async with open_rewards(RunConfig.load(path), QUICK) as scorer:
            short, long = await scorer.score(
                [{"task_id": "0", "text": TEXT}, {"task_id": "0", "text": TEXT * 200}], deadline=10.0
            )
            limit = scorer.evaluator.report_limit
        assert 1_000 < limit < 7_500
        assert f"report_limit: {limit} characters, by the judge's window of 2500 tokens" in caplog.messages
        assert short.value is not None and (long.value, long.reason) == (0.0, "report_too_large")


@pytest.mark.parametrize(("limit", "window"), [(100_000, 2_500), (None, 600)])
async def test_limit_that_does_not_fit_is_refused(tmp_path, limit, window):
    async with MockOpenAI(serves="mock", window=window) as mock:
        path = world(tmp_path, judge=judged(mock.url), report_limit=limit, reward={"metric": "score_clipped"})
        async with open_rewards(RunConfig.load(path), QUICK) as scorer:
            (reward,) = await scorer.score([{"task_id": "0", "text": TEXT}], deadline=5.0)
            assert "serve the model with a longer context" in str(scorer.judge_trouble)
    assert (reward.value, reward.reason, mock.calls) == (None, "judge_unavailable", 0)
