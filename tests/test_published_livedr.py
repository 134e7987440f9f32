"""LiveDRBench's published calls beside its own code: the same requests, the same results, before one drawn judge.

What both sides sent and how long they took is printed (`pytest -s`).
"""

import json
import random
from pathlib import Path

import pytest

from adjudge.judges.published import UnreadableReply
from adjudge.scoring.livedrbench.published import Graded, json_in, match_in, points
from tests.drawn_replies import between
from tests.reference_bench import DrawnJudge, ours, told
from tests.reference_papers import livedr_folder, livedr_rows, run_beside

_SCRIPT = """
import json, sys
from pathlib import Path
sys.path.insert(0, "src")
# SciFacts goes through sets of aliases, in an order that differs from run to run: here it goes through them in gold's.
code = Path("src/evals/scifacts.py")
text = code.read_text()
for walked, ordered in (
    ("set(entry[key])", "dict.fromkeys(entry[key])"),
    ("{item for actual_set in actual_sets for item in actual_set}",
     "dict.fromkeys(item for actual_set in actual_sets for item in actual_set)"),
):
    assert text.count(walked) == 1, walked
    text = text.replace(walked, ordered)
code.write_text(text)
from evaluate import LiveDRBenchEval
found, _ = LiveDRBenchEval(judge_name="judge", preds_file=sys.argv[1], num_threads=8)()
print()
print(json.dumps(found))
"""


def predictions(rows: list[dict]) -> list[dict]:
    """An answer to all questions but the last of each category: rows right, changed, made up, or none."""
    draw = random.Random(4)
    made = []
    for row in rows:
        truth, category = json.loads(json.dumps(row["ground_truths"])), row["category"]
        if category.startswith("scifacts"):
            slot = [{name: draw.choice(aliases) for name, aliases in one.items()} for one in truth[0]]
            slot += [{"paper_title": "Seas", "material": "Fe"}, {"material": "GaN"}, {"paper_title": ""}]
            preds = [slot]
        else:
            preds = [_changed(slot, draw, row["key"]) for slot in truth]
        if not row["key"].endswith("2"):
            made.append({"key": row["key"], "preds": preds})
    return made


def _changed(slot, draw: random.Random, key: str):
    """Rows that differ from one another and from those of all other questions, so that no request is sent twice."""
    if isinstance(slot, dict):
        return slot | {"year": draw.randint(1990, 2030), "extra": key}
    if isinstance(slot[0], str):
        return [f"{one} ({key})" for one in slot] + [f"Nobody {key}"]
    return [one | {"note": key, "title": f"T {n} {key}"} for n, one in enumerate([*slot, {"name": "none"}])]


def reply(prompt: str, draw: random.Random) -> str:
    """A reply to any prompt, of any quality that the code survives."""
    if prompt.startswith("Golden Answer:"):
        again = random.Random(prompt)  # the code asks twice, for recall and for precision
        return again.choice(["True", "true", "TRUE", "False", "false", " true", "True.", "yes"])
    if draw.random() < 0.3:
        return draw.choice(["", "Well.", "{", "{'a': 1}", "```json\n{]\n```", "nothing: null"])
    if "Predicted String:" in prompt:
        gold = json.loads(between(prompt, "Ground Truth List:\n", "\n\nPredicted"))
        if not gold or draw.random() < 0.4:
            return draw.choice(["{}", "[]", '{"match": null}', '{"found": "x"}'])
        match = draw.choice(gold)
        return json.dumps({"match": draw.choice([match, match.upper()])})
    if "Ground Truth List:" in prompt:
        gold = json.loads(between(prompt, "Ground Truth List:\n", "\n\nModel"))
        found = json.dumps(draw.choice(gold)) if gold and draw.random() < 0.8 else draw.choice(["{}", "[]"])
    else:
        gold = json.loads(between(prompt, "Ground Truth:\n", "\n\nModel"))
        grades = [0, 1, 2, 3, 3, 3, 2.5, 1.5, True]
        found = json.dumps({key: draw.choice(grades) for key in gold})
    return draw.choice([found, f"```json\n{found}\n```", f"  {found}\n", f"```{found}```"])


async def test_livedr_sends_and_scores_as_the_reference_does(tmp_path: Path, capsys) -> None:
    rows = livedr_rows()
    repo = livedr_folder(tmp_path, rows)
    answers = tmp_path / "tern.json"
    answers.write_text(json.dumps(predictions(rows)))
    async with DrawnJudge(reply) as theirs, DrawnJudge(reply) as judge:
        found, seconds = await run_beside(repo, theirs, _SCRIPT, str(answers))
        scores, own_seconds = await ours(
            repo / "questions.jsonl", tmp_path, judge.url, reports=[str(answers)], format="livedrbench",
            protocols=[{"name": "livedr", "call": "published", "checkout": str(repo)}],
        )  # fmt: skip
    told(capsys, f"LiveDRBench, {len(rows)} questions", (theirs, seconds), (judge, own_seconds))
    assert {row["key"] for row in found} == {row["key"] for row in rows}
    for row in found:
        for name in ("f1", "precision", "recall"):
            assert scores["tern", row["key"], name] == pytest.approx(row[name], abs=1e-9), row["key"]
    asked, own = theirs.requests, judge.requests
    assert asked.keys() == own.keys()
    twice = {
        request for request in asked if "Golden Answer" in request
    }  # for recall, and again for precision
    assert {request: asked[request] for request in asked.keys() - twice} == {
        request: own[request] for request in asked.keys() - twice
    }
    assert {own[request] for request in twice} == {1}
    assert len(twice) > 10 and len(asked) - len(twice) > 40
    assert {row["key"] for row in found if 0 < row["f1"] < 1}


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

    def draw(prompt: str, by: random.Random) -> str:
        if prompt.startswith("Provided text: They were"):
            return '["Ann Lee"]'
        if prompt.startswith("Question which specifies"):
            assert prompt.endswith('Provided json: "[\\"Ann Lee\\"]"')
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
    assert points([Graded({"a": 1}, {"a": 3, "b": 3}, True)], gold, {}) is None
    found = points([Graded({"a": 1}, {"a": 3}, True)], gold, {})
    assert found is not None and found.f1 == 1


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "9" * 5_000, "{'a': 1}"])
def test_replies_that_are_not_json_cannot_be_read(text: str) -> None:
    for read in (json_in, match_in):
        with pytest.raises(UnreadableReply):
            read(text)
