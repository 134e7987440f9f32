"""`judges:`: another judge for a protocol or for a medium, from the configuration to the board."""

import asyncio
import json

import pyarrow.parquet as pq
import pytest
from aiohttp import web

from adjudge.engine.commands.doctor import _judges
from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.evaluation.gate import Patience
from adjudge.engine.rewards.model import RewardModel
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.runs.run import Run
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.query import ReportQuery
from adjudge.judges.errors import JudgeError
from tests.commands import one_line, run
from tests.judged_worlds import Noting, judged, record_of, serving, two_protocols
from tests.made_bench import made_bench
from tests.mock_openai import Call, MockOpenAI, completion, refused
from tests.outages import stored
from tests.viewing import viewing

QUICK = Patience(silence_s=0.3, patience_s=1.0, backoff_s=0.05, longest_s=0.2)


async def test_each_protocol_and_picture_has_its_judge(tmp_path, capsys):
    plain, strong, sees = Noting(), Noting(), Noting()
    async with serving(plain, strong, sees):
        path = two_protocols(
            tmp_path,
            judge=judged(plain, "plain-1"),
            judges={"dr3": judged(strong, "strong-1"), "image": f"openai:{sees.url}#sees-1"},
        )
        result = await evaluate_async(RunConfig.load(path))
        assert result.unscored == 0
        assert plain.asked == {("plain-1", False): 60}
        assert set(strong.asked) == {("strong-1", False)} and strong.asked.total() > 6
        assert sees.asked == {("sees-1", True): 3}
        assert (plain.probes, strong.probes, sees.probes) == (1, 1, 1)
        assert result.from_judge == sum(one.asked.total() for one in (plain, strong, sees))
        again = await evaluate_async(RunConfig.load(path))
    assert (again.from_judge, again.unscored) == (0, 0)
    assert {row["judge"] for row in stored(tmp_path)} == {"plain-1", "strong-1", "sees-1"}
    record = RunRecord.read(tmp_path / "run")
    assert {answer: judge.name for answer, judge in record.judges.items()} == {
        "rubrics": "plain-1", "dr3": "strong-1", "image": "sees-1",
    }  # fmt: skip
    assert (record.judge.name, record.media) == ("plain-1", {"dr3": ("image",)})
    board = build_leaderboard([tmp_path / "run"])
    assert {one.protocol: one.judge for one in board.metrics} == {
        "rubrics": "plain-1", "dr3": "strong-1, image: sees-1",
    }  # fmt: skip
    _, out, _ = await asyncio.to_thread(run, capsys, "leaderboard", tmp_path / "run")
    assert "rubrics (judge: plain-1;" in out and "dr3 (judge: strong-1, image: sees-1;" in " ".join(
        out.split()
    )
    page = (tmp_path / "run" / "leaderboard.html").read_text()
    text = (tmp_path / "run" / "leaderboard.md").read_text()
    for shown in (page, text):
        assert (
            "strong-1 (dr3), fingerprint strong-1" in shown and "sees-1 (image), fingerprint sees-1" in shown
        )
    await asyncio.to_thread(
        run, capsys, "export", tmp_path / "run", "--format", "scores", "--out", tmp_path / "x"
    )
    rows = pq.read_table(tmp_path / "x" / "scores.parquet").to_pylist()
    assert {(row["protocol"], row["judge"]) for row in rows} == {
        ("rubrics", "plain-1"), ("dr3", "strong-1, image: sees-1"),
    }  # fmt: skip
    await asyncio.to_thread(
        run, capsys, "export", tmp_path / "run", "--format", "every-eval-ever", "--out", tmp_path / "eee"
    )
    told = {}
    for file in (tmp_path / "eee").rglob("*.json"):
        for one in json.loads(file.read_text())["evaluation_results"]:
            judges = one["metric_config"]["llm_scoring"]["judges"]
            told[one["evaluation_name"].partition(".")[0]] = [judge["model_info"]["name"] for judge in judges]
    assert told == {"rubrics": ["plain-1"], "dr3": ["strong-1", "sees-1"]}


async def test_evidence_is_found_under_every_judge(tmp_path):
    """The viewer asks the questions again: their keys are those of the judge that answered."""
    plain, sees = Noting(), Noting()
    async with serving(plain, sees):
        judges = {"image": judged(sees, "sees-1")}
        path = two_protocols(tmp_path, systems=["A"], tasks=1, judge=judged(plain, "plain-1"), judges=judges)
        await evaluate_async(RunConfig.load(path))
    found = await OpenRun(Run.open(tmp_path / "run")).questions(
        ReportQuery(system="A", task="0", protocol="dr3"), "dr3"
    )
    assert {one.judge.name for one in found.values()} == {"plain-1", "sees-1"}
    assert all(one.judgment.reason != "deadline" for one in found.values())
    assert [one.judge.name for one in found.values() if one.question.context.media] == ["sees-1"]
    async with viewing(tmp_path / "run") as reader:
        page = (await reader.page("")).text()
        assert "plain-1 (rubrics, dr3), sees-1 (image)" in page


async def test_pictures_without_their_judge_are_missing_alone(tmp_path):
    plain = Noting()
    async with serving(plain):
        path = two_protocols(tmp_path, judge=judged(plain, "plain-1"))
        result = await evaluate_async(RunConfig.load(path))
    assert all(not shows for _, shows in plain.asked)
    reasons = {row["reason"] for row in stored(tmp_path)}
    assert "media_unsupported" in reasons and result.unscored < result.scorecards
    assert "judges" in record_of(tmp_path) and record_of(tmp_path)["judges"] == {}


async def test_equal_judges_share_one_limit(tmp_path):
    """One server that two keys of the configuration name is one judge."""
    mock = Noting(latency=0.01)
    async with serving(mock):
        one = judged(mock, "plain-1", max_in_flight=3)
        path = two_protocols(tmp_path, judge=one, judges={"dr3": one, "image": one})
        assert list(RunConfig.load(path).resolved.bench.seats) == ["judge"]
        result = await evaluate_async(RunConfig.load(path))
    assert (result.unscored, mock.peak, mock.probes) == (0, 3, 1)


async def test_one_dead_judge_ends_the_run_which_resumes(tmp_path):
    plain, dies, well = Noting(latency=0.01), Noting(dies_after=4), Noting()
    async with serving(plain, dies, well):
        judges = {"dr3": judged(dies, "strong-1", media=["image"])}
        path = two_protocols(tmp_path, judge=judged(plain, "plain-1"), judges=judges)
        with pytest.raises(
            JudgeError, match=r"judge strong-1: not back after 1 s .*answers of this run are stored"
        ):
            await evaluate_async(RunConfig.load(path), patience=QUICK)
        before = plain.asked.total()
        path = two_protocols(
            tmp_path,
            judge=judged(plain, "plain-1"),
            judges={"dr3": judged(well, "strong-1", media=["image"])},
        )
        result = await evaluate_async(RunConfig.load(path))
    assert before == 60 == plain.asked.total() and dies.asked.total() == 4
    assert result.from_store >= 64 and well.asked.total() == result.from_judge
    keys = pq.read_table(tmp_path / "store" / "judgments", columns=["key"])["key"].to_pylist()
    assert len(set(keys)) == len(keys) == 64 + result.from_judge, "each question is answered once"


async def test_patience_is_each_judges_own(tmp_path):
    config = RunConfig.of(
        {
            "judge": {"patience_s": 7.0},
            "judges": {"dr3": {"patience_s": 9.0}},
            "protocols": ["rubrics", "dr3"],
        }
    )
    assert {name: seat.config.patience_s for name, seat in config.resolved.bench.seats.items()} == {
        "judge": 7.0, "judges.dr3": 9.0,
    }  # fmt: skip


async def test_sick_judge_of_one_protocol_is_named_first(tmp_path, capsys):
    plain, sick = Noting(), MockOpenAI()
    async with serving(plain, sick):
        judges = {"dr3": {**judged(sick, "strong-1"), "url": sick.at("garbage")}}
        path = two_protocols(tmp_path, judge=judged(plain, "plain-1"), judges=judges)
        code, _, error = await asyncio.to_thread(run, capsys, "evaluate", path)
        assert code == 1 and "strong-1: ignores the JSON schema" in one_line(error)
        code, out, _ = await asyncio.to_thread(run, capsys, "doctor", path)
    assert code == 1
    assert [line.split()[0] for line in out.splitlines() if "judge" in line.split()[0]][
        :2
    ] or "judges.dr3" in out


async def test_plan_prices_each_judge(tmp_path, capsys):
    plain, one, two = Noting(), Noting(), Noting()
    async with serving(plain, one, two):
        panel = {"backend": "panel", "members": [judged(one, "one-1"), judged(two, "two-1")]}
        price = {"prompt_tokens_per_second": 100.0, "completion_tokens_per_second": 10.0}
        prices = {
            name: {**price, "cost_per_million_prompt_tokens": cost}
            for name, cost in {"plain-1": 1.0, "one-1": 10.0, "two-1": 100.0}.items()
        }
        path = two_protocols(tmp_path, judge=judged(plain, "plain-1"), judges={"dr3": panel}, prices=prices)
        code, out, _ = await asyncio.to_thread(run, capsys, "plan", path, "--json")
        planned = json.loads(out)
        first, second = planned["judges"]
        assert code == 0 and (plain.calls, one.calls, two.calls) == (0, 0, 0)
        assert (first["name"], first["key"], first["answers"]) == ("plain-1", "judge", ["rubrics"])
        assert (second["name"], second["key"]) == ("panel of one-1, two-1", "judges.dr3")
        assert first["cost"] == pytest.approx(first["prompt_tokens"] / 1e6)
        assert second["cost"] == pytest.approx(second["prompt_tokens"] * 110 / 1e6)
        assert planned["cost"] == pytest.approx(first["cost"] + second["cost"])
        assert planned["seconds"] == max(first["seconds"], second["seconds"])
        assert first["to_ask"] + second["to_ask"] == sum(planned["questions"].values())
        code, out, _ = await asyncio.to_thread(run, capsys, "plan", path)
        assert code == 0 and "panel of one-1, two-1" in out and "by judge" in out
        del prices["two-1"]
        path = two_protocols(tmp_path, judge=judged(plain, "plain-1"), judges={"dr3": panel}, prices=prices)
        code, out, _ = await asyncio.to_thread(run, capsys, "plan", path)
        assert code == 0 and "unknown; add prices: {two-1: ...}" in " ".join(out.split())


async def test_panel_may_be_one_of_the_judges(tmp_path):
    plain, one, two = Noting(), Noting(0.02), Noting(0.02)
    async with serving(plain, one, two):
        members = [judged(one, "one-1", max_in_flight=2), judged(two, "two-1", requests_per_minute=60_000)]
        judges = {"rubrics": {"backend": "panel", "members": members}}
        path = two_protocols(tmp_path, judge=judged(plain, "plain-1", media=["image"]), judges=judges)
        result = await evaluate_async(RunConfig.load(path))
        assert result.unscored == 0 and one.asked.total() == two.asked.total() == 60
        assert one.peak <= 2 < two.peak
        assert (await evaluate_async(RunConfig.load(path))).from_judge == 0
    board = build_leaderboard([tmp_path / "run"])
    assert {one.judge for one in board.metrics if one.protocol == "rubrics"} == {"panel of one-1, two-1"}


async def test_runs_by_different_judges_say_so_per_protocol(tmp_path):
    first, second = Noting(), Noting()
    async with serving(first, second):
        path = two_protocols(tmp_path, judge=judged(first, "one-1", media=["image"]))
        await evaluate_async(RunConfig.load(path))
        both = {
            "judge": judged(first, "one-1", media=["image"]),
            "judges": {"dr3": judged(second, "two-1", media=["image"])},
        }
        await evaluate_async(RunConfig.load(path, **both, out=str(tmp_path / "other")))
    board = build_leaderboard([tmp_path / "run", tmp_path / "other"])
    assert "these runs differ in their judges for dr3: compare their scores with care" in board.notes
    assert {one.protocol: one.judge for one in board.metrics} == {"rubrics": "one-1", "dr3": "one-1 + two-1"}


@pytest.mark.parametrize(
    ("judges", "said"),
    [
        ({"rubric": "lexical"}, "judges: unknown protocol or medium 'rubric'; use 'rubrics'"),
        ({"picture": "lexical"}, "judges: unknown protocol or medium 'picture'; there are "),
        ({"imgae": "lexical"}, "judges: unknown protocol or medium 'imgae'; use 'image'"),
        ({"dr3": "oracle"}, "judges.dr3: unknown judge 'oracle'"),
        ({"dr3": {"backend": "oracle"}}, "judges[...].backend"),
        ({"dr3": {"backend": "panel", "members": ["lexical"]}}, "panel needs members"),
        ({"dr3": {"replicas": 2}}, "judges.dr3.replicas: needs a cluster"),
        (["lexical"], "judges"),
    ],
)
def test_unusable_judges_are_named(tmp_path, capsys, judges, said):
    code, _, error = run(capsys, "evaluate", two_protocols(tmp_path, judges=judges))
    assert code == 2 and said in one_line(error)


def test_judges_of_other_protocols_do_no_harm(tmp_path, capsys):
    """A file may name judges for protocols that this run does not ask."""
    path = two_protocols(tmp_path, judges={"race": judged(MockOpenAI(), "x", url="http://127.0.0.1:9/v1")})
    code, out, _ = run(capsys, "evaluate", path, "--protocol", "rubrics")
    assert code == 0 and "judge: lexical" in out
    assert list(RunConfig.load(path, protocols=["rubrics"]).resolved.bench.seats) == ["judge"]


async def test_rewards_ask_each_protocols_judge(tmp_path):
    plain, strong, sees = Noting(), Noting(), Noting()
    async with serving(plain, strong, sees):
        path = two_protocols(
            tmp_path,
            judge=judged(plain, "plain-1"),
            judges={"dr3": judged(strong, "strong-1"), "image": judged(sees, "sees-1")},
            reward={"weights": {"score_clipped": 1.0, "average": 1.0}},
        )
        text = "The budget is 5 million euros [Doc: plan.pdf]. It grew [Image: chart.png]."
        with RewardModel(RunConfig.load(path)) as model:
            [reward] = await model.score([{"task_id": "0", "text": text}], deadline=30)
    assert reward.status == "scored", reward
    assert set(plain.asked) == {("plain-1", False)} and set(strong.asked) == {("strong-1", False)}
    assert set(sees.asked) == {("sees-1", True)}


async def test_rewards_miss_only_what_a_dead_judge_would_judge(tmp_path):
    plain, dead = Noting(), Noting(dies_after=0)
    async with serving(plain, dead):
        settings = {"judge": judged(plain, "plain-1"), "judges": {"dr3": judged(dead, "strong-1")}}
        path = two_protocols(tmp_path, **settings, reward={"metric": "score_clipped"})
        with RewardModel(RunConfig.load(path)) as model:
            [alone] = await model.score([{"task_id": "0", "text": "It costs 5."}], deadline=10)
        path = two_protocols(tmp_path, **settings, reward={"weights": {"score_clipped": 1.0, "average": 1.0}})
        with RewardModel(RunConfig.load(path)) as model:
            [both] = await model.score([{"task_id": "1", "text": "It costs 5."}], deadline=5)
    assert alone.status == "scored"
    assert (both.value, both.reason) == (None, "judge_unavailable")


async def _prose(mock: MockOpenAI, call: Call) -> web.StreamResponse:
    """A server that refuses every schema, and answers everything else in words."""
    if call.constrained:
        return refused(422, "unknown field")
    return completion("Certainly.")


async def test_probe_asks_for_words_where_only_words_are_asked(tmp_path, capsys):
    """With published calls alone no schema is sent; beside our own calls one is demanded."""
    bench = made_bench(tmp_path / "bench")
    published = {"name": "race", "call": "published", "checkout": str(bench)}
    async with MockOpenAI(fault=_prose) as mock:
        judge = judged(mock, "prose-1")
        path = two_protocols(tmp_path / "words", systems=["A"], tasks=1, judge=judge)
        words = RunConfig.load(path, protocols=[published])
        [finding] = [one for one in await _judges(words, ["judge"]) if one.what == "judge"]
        assert finding.good, finding.found
        assert mock.last is not None and set(json.loads(mock.last.body)) == {"model", "messages"}
        mixed = RunConfig.load(path, protocols=[published, "rubrics"])
        assert not (await _judges(mixed, ["judge"]))[0].good
        split = RunConfig.load(
            path, protocols=[published, "rubrics"], judges={"race": {**judge, "max_in_flight": 2}}
        )
        assert [one.good for one in await _judges(split, ["judges.race", "judge"])] == [True, False]


def test_unasked_options_of_a_protocol_raise_no_judge():
    with pytest.raises(ConfigError, match="unknown protocol 'rubrisc'; use 'rubrics'"):
        RunConfig.of({"protocols": ["rubrisc"]})


def test_a_judge_with_an_address_or_members_needs_no_backend():
    """A server's keys alone once meant the lexical judge, without a word."""
    server = {"url": "http://127.0.0.1:9/v1", "model": "m"}
    several = {"members": [server, "lexical", {"urls": ["http://127.0.0.1:9/v1"], "model": "n"}]}
    config = RunConfig.of({"tasks": "tasks.jsonl", "judge": server, "judges": {"race": several}})
    assert config.judge_of("fact").backend == "openai"
    panel = config.judge_of("race")
    assert panel.backend == "panel" and [one.backend for one in panel.panel()] == [
        "openai",
        "lexical",
        "openai",
    ]
