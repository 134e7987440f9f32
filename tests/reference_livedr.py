"""LiveDRBench: made questions and answers, drawn replies, and what its own code and ours make of both."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

from adjudge.engine.formats import livedrbench
from adjudge.engine.formats.input_files import InputFile
from adjudge.engine.formats.livedrbench import encrypt
from adjudge.scoring.livedrbench.livedr import Gold
from adjudge.scoring.livedrbench.published import live_wordings
from tests.grafting import LaidOut, made_checkout
from tests.reference_bench import DrawnJudge, Figures, ours
from tests.reference_papers import run_beside, stand_ins, write_json

_EVALUATED = """
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
_DECIPHERED = """
import json, sys
sys.path.insert(0, "src")
from utils import decrypt
rows = json.load(open("questions.json"))
print()
print(json.dumps([[r["key"], json.loads(decrypt(r["ground_truths"], r["canary"]))] for r in rows]))
"""
METRICS = ("f1", "precision", "recall")


def livedr_rows() -> list[dict[str, Any]]:
    """Questions of all categories, as the data set has them, but in clear."""
    info = {"primary_keys": ["name"], "main_claims": ["title", "name"], "ignore_keys": ["link"]}
    rows = [
        {"name": "MNLI", "size": 100, "link": "x"},
        {"name": "SST-2", "size": 70, "link": "y"},
        {"name": "CoLA", "size": 10},
    ]
    truths: dict[str, Any] = {
        "scifacts-materials": [[
            {"material": ["ZnO", "zinc oxide"], "paper_title": ["A", "A!"]},
            {"material": ["GaN"], "paper_title": ["B"]},
        ]],
        "scifacts-geo": [[{"paper_title": ["Rivers", "On rivers"]}, {"paper_title": ["Lakes"]}]],
        "novel-datasets-identification": [{"title": "HOT", "year": 2024, "link": "z"}],
        "novel-datasets-identi-extraction": [{"title": "HOT", "year": 2024}, rows],
        "novel-datasets-peer": [rows],
        "prior-art": [[{"title": "P1"}, {"title": "P2"}, {"title": "P3"}]],
        "entities": [["Ann Lee", "Bob Ray", "Cy Poe"]],
        "flights": [{"title": "X1", "airline": "Q"}],
    }  # fmt: skip
    return [
        {
            "key": f"{category}-{number}",
            "category": category,
            "question": f"What about {category}, in form {number}?",
            "ground_truths": truth,
            "misc": {"eval_info": info},
        }
        for category, truth in truths.items()
        for number in range(3)
    ]


def livedr_folder(folder: Path, rows: list[dict[str, Any]], code: LaidOut = made_checkout) -> Path:
    """A checkout of LiveDRBench, and `questions.jsonl` and `questions.json` with encrypted `rows`; its folder.

    `code` lays out its Python files: made prompts alone, the benchmark's own code, or that code with the made prompts.
    """
    repo = code("LiveDRBench", folder / "livedr")
    closed = [
        row | {name: encrypt(json.dumps(row[name]), f"canary {row['key']}") for name in ("ground_truths", "misc")}
        | {"canary": f"canary {row['key']}"}
        for row in rows
    ]  # fmt: skip
    write_json(repo / "questions.json", closed)
    (repo / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in closed), encoding="utf-8")
    stand_ins(folder)
    return repo


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


def livedr_judge(repo: Path) -> DrawnJudge:
    """Tells the kinds of requests apart by how the checkout's templates begin; replies are of any quality."""
    found = live_wordings(str(repo))
    kinds = ("equal", "search.prior-art", "search.entities", "match", "grades")
    heads = [
        (kind.partition(".")[0], *(text for text, _ in found[kind].turns[-1][1].pieces[:2])) for kind in kinds
    ]

    def draw(prompt: str, by: random.Random) -> str:
        for kind, before, after in heads:
            if prompt.startswith(before):
                return reply(kind, prompt, prompt.removeprefix(before).partition(after)[0], by)
        raise AssertionError(prompt[:200])

    return DrawnJudge(draw)


def reply(kind: str, prompt: str, shown: str, draw: random.Random) -> str:
    """A reply to a request of this kind that shows this gold, of any quality that the code survives."""
    if kind == "equal":
        again = random.Random(prompt)  # the code asks twice, for recall and for precision
        return again.choice(["True", "true", "TRUE", "False", "false", " true", "True.", "yes"])
    if draw.random() < 0.2:
        return draw.choice(["", "Well.", "{", "{'a': 1}", "```json\n{]\n```", "nothing: null"])
    gold = json.loads(shown)
    if kind == "search":
        if not gold or draw.random() < 0.4:
            return draw.choice(["{}", "[]", '{"match": null}', '{"found": "x"}'])
        match = draw.choice(gold)
        return json.dumps({"match": draw.choice([match, match.upper()])})
    if kind == "match":
        found = json.dumps(draw.choice(gold)) if gold and draw.random() < 0.8 else draw.choice(["{}", "[]"])
    else:
        grades = [0, 1, 2, 3, 3, 3, 2.5, 1.5, True]
        found = json.dumps({key: draw.choice(grades) for key in gold})
    return draw.choice([found, f"```json\n{found}\n```", f"  {found}\n", f"```{found}```"])


async def scored_by_code(repo: Path, judge: DrawnJudge, answers: Path) -> tuple[Figures, float]:
    """The scores of every question by the code, and its seconds."""
    found, seconds = await run_beside(repo, judge, _EVALUATED, str(answers))
    return {f"{row['key']} {name}": row[name] for row in found for name in METRICS}, seconds


async def scored_by_us(repo: Path, out: Path, judge: DrawnJudge, answers: Path) -> tuple[Figures, float]:
    """The same by ours."""
    scores, seconds = await ours(
        repo / "questions.jsonl", out, judge.url, reports=[str(answers)], format="livedrbench",
        protocols=[{"name": "livedr", "call": "published", "checkout": str(repo)}],
    )  # fmt: skip
    return {f"{task} {name}": value for (_, task, name), value in scores.items() if name in METRICS}, seconds


def asked_once(repo: Path, requests: Counter[str]) -> Counter[str]:
    """The requests, but once those that the code sends twice, for recall and for precision."""
    head = live_wordings(str(repo))["equal"].turns[-1][1].pieces[0][0]

    def is_equal(request: str) -> bool:
        said: str = json.loads(request)["messages"][-1]["content"]
        return said.startswith(head)

    return Counter({request: 1 if is_equal(request) else count for request, count in requests.items()})


async def truths_by_code(repo: Path) -> dict[str, Any]:
    """The gold of every question, deciphered by the code."""
    found, _ = await run_beside(repo, None, _DECIPHERED)
    return dict(found)


def truths_by_us(repo: Path, answers: Path) -> dict[str, Any]:
    """The same by our reader; `answers` are to all questions."""
    dataset = livedrbench.read(repo / "questions.jsonl", [InputFile(answers)])
    return {
        case.task.id: json.loads(bytes(case.gold("livedr", Gold).ground_truths)) for case in dataset.cases()
    }
