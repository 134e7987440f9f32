"""Gold that the judge drafts: written once, reviewed, and frozen by naming the file in `tasks:`."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from adjudge.engine.formats import load_dataset
from adjudge.judges import Question, ScriptedJudge
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.scorecard import Missing
from adjudge.scoring.dr3_eval.checklist import Checklist, ChecklistOf
from adjudge.scoring.dr3_eval.dr3 import DR3
from adjudge.scoring.dr3_eval.insights import Insights, InsightsOf
from tests.test_cli import run
from tests.tools import DirectTools
from tests.wheel import ROOT

EXAMPLE = ROOT / "examples" / "dr3"

PROMPTS = ("Compare trams and buses.", "比较电车和公交车。", "Which trains run at night?")
REFERENCE = "Trams and buses both cost money. Trams are quieter."
WEIGHTS = {"comprehensiveness": 0.4, "insight": 0.3, "instruction_following": 0.2, "readability": 0.1}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Three tasks: one without weights and criteria, one without gold, one with weights and a note of its own."""
    golds: list[dict[str, Any]] = [
        {"race": {"reference": REFERENCE}},
        {},
        {"race": {"reference": REFERENCE, "dimension_weight": WEIGHTS, "note": "kept"}, "fact": {"x": 1}},
    ]
    write(
        tmp_path / "tasks.jsonl",
        [
            {"id": str(place), "prompt": prompt, "language": "zh" if place == 1 else "en", "gold": gold}
            for place, (prompt, gold) in enumerate(zip(PROMPTS, golds, strict=True))
        ],
    )
    reports = [
        {"task_id": str(place), "system": system, "text": f"Trams are good. {system} {'电车' * place}"}
        for place in range(3)
        for system in ("A", "B")
    ]
    write(tmp_path / "reports.jsonl", reports)
    file = tmp_path / "adjudge.yaml"
    file.write_text(
        "tasks: tasks.jsonl\nreports: [reports.jsonl]\nprotocols: [race]\njudge: lexical\n"
        "store: store\nout: run\n"
    )
    return file


def write(file: Path, rows: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_gold_drafts_what_is_missing_and_keeps_the_rest(config: Path, capsys: Any) -> None:
    out = config.parent / "drafts" / "gold.jsonl"
    code, printed, _ = run(capsys, "gold", config, "--protocol", "race", "--out", out, "--json")
    assert (code, json.loads(printed)["drafted"], json.loads(printed)["complete"]) == (0, 3, 0)
    before, after = lines(config.parent / "tasks.jsonl"), lines(out)
    assert [task["prompt"] for task in after] == list(PROMPTS)
    for old, new in zip(before, after, strict=True):
        race = new["gold"]["race"]
        assert {"reference", "note"} & race.keys() == {"reference", "note"} & old["gold"].get(
            "race", {}
        ).keys()
        assert sum(race["dimension_weight"].values()) == pytest.approx(1)
        for criteria in race["criterions"].values():
            assert 4 <= len(criteria) <= 10
            assert sum(one["weight"] for one in criteria) == pytest.approx(1)
    assert after[2]["gold"]["race"]["dimension_weight"] == WEIGHTS
    assert after[2]["gold"]["fact"] == {"x": 1}
    again = config.parent / "again.jsonl"
    code, printed, _ = run(
        capsys, "gold", config, "--protocol", "race", "--out", again, "--task", "0", "--json"
    )
    assert lines(again) == after[:1]


def test_frozen_gold_gives_the_same_scores_without_asking_for_it(config: Path, capsys: Any) -> None:
    _, printed, _ = run(capsys, "evaluate", config, "--json")
    made = {key: row["value"] for key, row in standings(printed)}
    run(capsys, "gold", config, "--protocol", "race", "--out", config.parent / "gold.jsonl")
    frozen = config.parent / "frozen.yaml"
    frozen.write_text(
        config.read_text()
        .replace("tasks: tasks.jsonl", "tasks: gold.jsonl")
        .replace("store: store", "store: other")
    )
    _, printed, _ = run(capsys, "evaluate", frozen, "--json")
    assert {key: row["value"] for key, row in standings(printed)} == made
    assert json.loads(printed)["from_judge"] == 4  # a question of marks per report that has a reference


def standings(printed: str) -> list[tuple[tuple[str, str], dict[str, Any]]]:
    board = json.loads(printed)["leaderboard"]
    return [
        ((metric["metric"], row["system"]), row) for metric in board["metrics"] for row in metric["standings"]
    ]


def test_reviewed_file_is_never_written_over(config: Path, capsys: Any) -> None:
    out = config.parent / "gold.jsonl"
    out.write_text("reviewed")
    code, _, said = run(capsys, "gold", config, "--protocol", "race", "--out", out)
    assert code == 2 and "exists" in said and out.read_text() == "reviewed"
    assert not (config.parent / "store").exists()


def test_protocol_without_drafts_is_a_usage_error(config: Path, capsys: Any) -> None:
    code, _, said = run(capsys, "gold", config, "--protocol", "fact", "--out", config.parent / "gold.jsonl")
    assert code == 2 and "fact has no gold that a judge drafts" in said


def test_task_that_cannot_be_drafted_keeps_its_gold(config: Path, capsys: Any) -> None:
    tasks = lines(config.parent / "tasks.jsonl")
    tasks[0]["gold"]["race"]["dimension_weight"] = {"insight": 1}
    write(config.parent / "tasks.jsonl", tasks)
    out = config.parent / "gold.jsonl"
    code, printed, _ = run(capsys, "gold", config, "--protocol", "race", "--out", out, "--json")
    found = json.loads(printed)
    assert (code, found["unscored"], found["drafted"]) == (3, {"gold_invalid": 1}, 2)
    assert lines(out)[0] == msgspec.to_builtins(tasks[0]) | {"domain": "", "attributes": {}}


def opinion(question: Question[Any]) -> Any:
    if isinstance(question, InsightsOf):
        return Insights(insights=("The harbour has grown.", "Ferries run at night."))
    if isinstance(question, ChecklistOf):
        return Checklist(requirements=("Names the year.",))
    return question.lexical() or "judge_unsupported"


async def test_dr3_drafts_insights_and_checklist() -> None:
    """Frozen, they give the same scores, and nobody is asked for them again."""
    dataset = load_dataset("dr3-eval", str(EXAMPLE / "datasets_en"), [str(EXAMPLE / "results/*.jsonl")])
    given = next(dataset.cases())
    gold = msgspec.json.decode(given.task.gold["dr3"], type=dict[str, Any])
    bare = {name: part for name, part in gold.items() if name not in ("insights", "checklist")}
    case = with_gold(given, msgspec.json.encode(bare))
    tools = DirectTools(ScriptedJudge(opinion))
    drafted = await DR3().draft(case, tools)
    assert isinstance(drafted, msgspec.Raw)
    assert {type(question) for question in tools.questions} == {InsightsOf, ChecklistOf}
    frozen = with_gold(given, bytes(drafted))
    later = DirectTools(ScriptedJudge(opinion))
    once, again = (
        await DR3().score(case, DirectTools(ScriptedJudge(opinion))),
        await DR3().score(frozen, later),
    )
    assert once.scores == again.scores
    assert not {InsightsOf, ChecklistOf} & {type(question) for question in later.questions}
    unanswered = await DR3().draft(case, DirectTools(ScriptedJudge(lambda _: "judge_timeout")))
    assert unanswered == Missing("judge_timeout")


def with_gold(case: Case, gold: bytes) -> Case:
    task = msgspec.structs.replace(case.task, gold={"dr3": msgspec.Raw(gold)})
    return msgspec.structs.replace(case, task=task)
