"""Logs: text for people or one JSON line per event; never a secret, never the text of a report."""

import json
import logging
from pathlib import Path

import pytest

from adjudge.engine.config.run import RunConfig
from adjudge.engine.evaluation.assembly import open_evaluator
from adjudge.engine.formats.dataset import load_tasks
from adjudge.engine.rewards.scorer import RewardScorer
from adjudge.engine.telemetry.logs import about, begin, current, event
from adjudge.engine.telemetry.metrics import page
from adjudge.judges import Question, ScriptedJudge
from adjudge.scoring.rubrics.asking import PointsGiven
from tests.chaos import done, evaluate
from tests.commands import run
from tests.exposition import Labels, by, samples
from tests.mock_openai import Call, MockOpenAI, refused
from tests.worlds import lines, world

SECRET = "sk-do-not-tell-anybody"
SAID = "The quokka observatory measured 42 units"


@pytest.fixture(autouse=True)
def quiet():
    """Restore the logger for other tests."""
    logger = logging.getLogger("adjudge")
    yield
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


def events(errors: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in errors.splitlines()]


async def noted(tmp_path: Path, monkeypatch, **settings: object) -> list[dict[str, object]]:
    """The JSON log of a run whose judge repeats everything it is sent."""
    monkeypatch.setenv("ADJUDGE_LOG", "json")
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("ADJUDGE_FENCE_SECRET", "fence-" + SECRET)

    async def echo(mock: MockOpenAI, call: Call):
        if call.is_probe or not call.constrained:
            return None
        said = f"response_format is not supported: {call.body.decode()} {call.http.headers['Authorization']}"
        return refused(400, said)

    async with MockOpenAI(fault=echo) as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock"}
        path = world(tmp_path, systems=2, tasks=2, judge=judge, **settings)
        report = {"task_id": "0", "system": "odd", "text": f"{SAID}. {SECRET}"}
        lines(tmp_path / "reports" / "odd.jsonl", [report])
        process = await evaluate(path)
        errors = await done(process)
    assert process.returncode in (0, 3), errors
    for hidden in (SECRET, SAID, "quokka", "It states fact number"):
        assert hidden not in errors
    return events(errors)


async def test_every_event_of_a_run_is_one_json_line(tmp_path, monkeypatch):
    found = await noted(tmp_path, monkeypatch)
    kinds = [entry["event"] for entry in found]
    assert kinds.count("run started") == kinds.count("run ended") == 1
    cards = [entry for entry in found if entry["event"] == "scorecard"]
    assert {entry["case"] for entry in cards} == {
        "system0/0/0/0", "system0/1/0/0", "system1/0/0/0", "system1/1/0/0", "odd/0/0/0",
    }  # fmt: skip
    assert all(entry["shard"] == entry["case"].split("/")[1] for entry in cards)
    assert len({entry["run"] for entry in found}) == 1
    assert all({"time", "level", "logger"} <= set(entry) for entry in found)
    warnings = [entry for entry in found if entry["level"] == "warning"]
    assert warnings and all("does not constrain" in entry["message"] and entry["case"] for entry in warnings)


async def test_a_scorecard_of_a_reward_is_counted_and_logged(tmp_path, capsys):
    """Like one of a run: in the same metrics, under the name of its case, as are the questions asked for it."""
    begin("json")
    at_work: list[float] = []
    asked_for: set[str] = set()

    def opinion(question: Question[PointsGiven]) -> PointsGiven:
        at_work.append(by(numbers(), "adjudge_scorecards_in_flight")[()])
        asked_for.add(current()["case"])
        return PointsGiven(points=max(question.options))

    def numbers() -> dict[tuple[str, Labels], float]:
        return samples(page(evaluator.measured()).decode())

    reward = {"weights": {"score_clipped": 1.0}, "length": {"max": 1000}}
    config = RunConfig.load(world(tmp_path, reward=reward))
    tasks = load_tasks(config.format, config.tasks)
    async with open_evaluator(config, judge=lambda book: ScriptedJudge(opinion)) as evaluator:
        items = [
            {"task_id": "3", "sample": 7, "text": SAID},
            {"task_id": "3", "sample": 8, "text": "x" * 1001},
        ]
        found = await RewardScorer(config, evaluator, tasks).score(items)
    assert [each.value for each in found] == [1.0, 0.0]
    assert asked_for == {"policy/3/7/0"} and set(at_work) <= {1.0, 2.0}
    assert by(numbers(), "adjudge_scorecards_total", "protocol", "status", "reason") == {
        ("rubrics", "scored", ""): 1,
        ("rubrics", "scored", "report_too_large"): 1,
    }
    assert not by(numbers(), "adjudge_scorecards_in_flight")
    cards = [entry for entry in events(capsys.readouterr().err) if entry["event"] == "scorecard"]
    assert {(entry["case"], entry["reason"]) for entry in cards} == {
        ("policy/3/7/0", None),
        ("policy/3/8/0", "report_too_large"),
    }


def test_text_log_holds_warnings_only_and_no_secrets(monkeypatch, capsys):
    monkeypatch.setenv("ADJUDGE_TOKEN", SECRET)
    begin("human")
    logger = logging.getLogger("adjudge.made")
    event(logger, "run started", scorecards=3)
    logger.warning("the token %s is invalid", SECRET)
    assert capsys.readouterr().err == "adjudge: warning: the token *** is invalid\n"


def test_log_context_ends_with_its_block(capsys):
    begin("json")
    logger = logging.getLogger("adjudge.made")
    with about(run="r"), about(shard="s"):
        event(logger, "inside", count=1)
    event(logger, "outside")
    try:
        raise ValueError("said\nin two lines")
    except ValueError:
        logger.exception("broken")
    inside, outside, broken = events(capsys.readouterr().err)
    assert (inside["run"], inside["shard"], inside["count"]) == ("r", "s", 1)
    assert "run" not in outside and broken["error"] == "ValueError"


def test_fatal_error_is_logged_as_an_event(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("ADJUDGE_LOG", "json")
    config = world(tmp_path)
    (tmp_path / "reports" / "broken.jsonl").write_text('{"task_id": 1}\n')
    code, _, errors = run(capsys, "evaluate", config)
    (left_out,) = [entry for entry in events(errors) if entry["event"] == "line left out"]
    assert code == 3 and "broken.jsonl" in left_out["why"]
    code, _, errors = run(capsys, "evaluate", tmp_path / "none.yaml")
    (said,) = events(errors)
    assert code == 2 and said["level"] == "error" and "none.yaml" in said["message"]


def test_unknown_log_form_is_a_configuration_error(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("ADJUDGE_LOG", "xml")
    code, _, errors = run(capsys, "plan", world(tmp_path))
    assert code == 2 and errors.startswith("adjudge: ADJUDGE_LOG: 'xml'")
