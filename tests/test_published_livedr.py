"""LiveDRBench's published calls beside its own code: the same requests, the same results, before one drawn judge.

What both sides sent and how long they took is printed (`pytest -s`).
"""

import json
import random
from pathlib import Path

import pytest

from adjudge.judges.published import UnreadableReply
from adjudge.scoring.livedrbench.graded_slots import Graded
from adjudge.scoring.livedrbench.published import json_in, live_wordings, match_in, points
from tests.grafting import own_code
from tests.reference_bench import DrawnJudge, ours, told
from tests.reference_livedr import (
    METRICS,
    asked_once,
    livedr_folder,
    livedr_judge,
    livedr_rows,
    predictions,
    scored_by_code,
    scored_by_us,
)


async def test_livedr_sends_and_scores_as_the_reference_does(tmp_path: Path, capsys) -> None:
    rows = livedr_rows()
    repo = livedr_folder(tmp_path, rows, own_code)
    answers = tmp_path / "tern.json"
    answers.write_text(json.dumps(predictions(rows)))
    async with livedr_judge(repo) as theirs, livedr_judge(repo) as judge:
        expected, seconds = await scored_by_code(repo, theirs, answers)
        found, own_seconds = await scored_by_us(repo, tmp_path, judge, answers)
    told(capsys, f"LiveDRBench, {len(rows)} questions", (theirs, seconds), (judge, own_seconds))
    assert len(expected) == len(METRICS) * len(rows)
    assert found == pytest.approx(expected, abs=1e-9)
    assert judge.requests == asked_once(repo, theirs.requests)
    twice = theirs.requests - judge.requests
    assert len(twice) > 10 and len(theirs.requests) - len(twice) > 40
    assert any(0 < value < 1 for name, value in expected.items() if name.endswith(" f1"))


async def test_livedr_without_a_readable_reply_has_no_value(tmp_path: Path) -> None:
    rows = [row for row in livedr_rows() if row["key"].endswith("0")]
    repo = livedr_folder(tmp_path, rows)
    answers = tmp_path / "tern.json"
    answers.write_text(json.dumps([{"key": row["key"], "preds": _wrong(row)} for row in rows]))
    async with DrawnJudge(lambda prompt, draw: "Well.", 0.0) as judge:
        scores, _ = await ours(
            repo / "questions.jsonl", tmp_path, judge.url, reports=[str(answers)], format="livedrbench",
            protocols=[{"name": "livedr", "call": "published", "checkout": str(repo)}],
        )  # fmt: skip
    values = {task: value for (_, task, metric), value in scores.items() if metric == "f1"}
    assert values == dict.fromkeys(values) | {
        "scifacts-materials-0": 0,
        "scifacts-geo-0": 0,
        "flights-0": 0,  # of another shape
    }
    assert max(judge.requests.values()) == 6


def _wrong(row: dict) -> object:
    if row["category"] == "flights":
        return ["X1"]
    if row["category"].startswith("scifacts"):
        return [[{"paper_title": "none", "material": "none"}]]
    return row["ground_truths"]


async def test_livedr_converts_prose_by_the_published_calls(tmp_path: Path) -> None:
    rows = [row for row in livedr_rows() if row["key"] == "entities-0"]
    repo = livedr_folder(tmp_path, rows)
    prose = {"question": rows[0]["question"], "prediction": "They were Ann Lee and {nobody}."}
    (tmp_path / "tern.jsonl").write_text(json.dumps(prose))

    wordings = live_wordings(str(repo))
    answer, conversion = (
        one.turns[-1][1].pieces[0][0] for one in (wordings["answer"], wordings["conversion"])
    )

    def draw(prompt: str, by: random.Random) -> str:
        if prompt.startswith(f"{answer}They were"):
            return '["Ann Lee"]'
        if prompt.startswith(conversion):
            assert prompt.endswith('"[\\"Ann Lee\\"]"')
            return '["Ann Lee", "Dan"]'
        return '{"match": "Ann Lee"}' if '"Ann Lee"\n' in prompt else "{}"

    async with DrawnJudge(draw) as judge:
        scores, _ = await ours(
            repo / "questions.jsonl", tmp_path, judge.url, reports=[str(tmp_path / "tern.jsonl")],
            format="livedrbench", protocols=[{"name": "livedr", "call": "published", "checkout": str(repo)}],
        )  # fmt: skip
    assert scores["tern", "entities-0", "precision"] == 1 / 2
    assert scores["tern", "entities-0", "recall"] == 1 / 3


def test_more_points_than_keys_have_no_value() -> None:
    gold = [{"a": 1}]
    assert points([Graded(("a",), {"a": 3, "b": 3}, whole=True)], gold, {}) is None
    found = points([Graded(("a",), {"a": 3}, whole=True)], gold, {})
    assert found is not None and found.f1 == 1


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "9" * 5_000, "{'a': 1}"])
def test_replies_that_are_not_json_cannot_be_read(text: str) -> None:
    for read in (json_in, match_in):
        with pytest.raises(UnreadableReply):
            read(text)
