"""Gold that the judge drafts: written once, reviewed, and frozen by naming the file in `tasks:`."""

import json
from pathlib import Path
from typing import Any

import docx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.commands.gold import read_sources
from adjudge.engine.errors import UsageError
from adjudge.engine.formats.dataset import load_dataset
from adjudge.judges import Judge, Question, ScriptedJudge
from adjudge.judges.chat import prompt_digests
from adjudge.judges.schema import schema_of
from adjudge.prompts import PromptBook
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.gold import GoldSource
from adjudge.scoring.contract.scorecard import Missing
from adjudge.scoring.deepresearch_bench.race import Race
from adjudge.scoring.dr3_eval.dr3 import DR3
from adjudge.scoring.dr3_eval.questions import Checklist, ChecklistOf, Insights, InsightsOf
from adjudge.scoring.drmi_bench.drmi import DraftedStatement, DraftedStatements, DrMi, StatementsOf
from adjudge.scoring.livedrbench.livedr import ClaimsOf, DraftedClaim, DraftedClaims, LiveDR
from adjudge.scoring.rubrics.drafting import (
    DraftedKeywords,
    DraftedRubric,
    DraftedRubrics,
    KeywordsOf,
    QueryRubricsOf,
    with_total,
)
from adjudge.scoring.rubrics.rigorous import Rigorous
from adjudge.scoring.rubrics.rubrics import Rubrics
from tests.commands import run
from tests.examples import shipped
from tests.made_pdf import pdf
from tests.random_judge import random_judge
from tests.tools import DirectTools
from tests.wheel import ROOT

FAULTS = ROOT / "tests" / "gold_faults"
EXAMPLE = shipped("dr3")

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
        assert all(
            one["source"] == "task" and one["quote"] in old["prompt"] for one in new["rests_on"]["race"]
        )
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
    assert lines(out)[0] == msgspec.to_builtins(tasks[0]) | {"domain": "", "attributes": {}, "rests_on": {}}


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


DOCUMENT = (
    "Cargo bikes in the port district\n\nIn 2023 the port district tried 14 cargo bikes for ten months. They carried "
    "5,200 parcels a month. A van needed 9.4 minutes per parcel, a bike 7.1 minutes.\n\nTwo bikes were stolen in May. "
    "Riders complained about Harbour Street, where tram tracks are close to the kerb. The city of Larnby paid 3,100 "
    "euros for each bike."
)


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """A Word document, and a task without gold."""
    write(
        tmp_path / "tasks.jsonl",
        [{"id": "bikes", "prompt": "Do cargo bikes carry parcels well? Say what they cost."}],
    )
    write(
        tmp_path / "reports.jsonl",
        [{"task_id": "bikes", "system": "A", "text": "They carried 5,200 parcels."}],
    )
    (tmp_path / "adjudge.yaml").write_text(
        "tasks: tasks.jsonl\nreports: [reports.jsonl]\njudge: lexical\nstore: store\nout: run\n"
    )
    words = docx.Document()
    for paragraph in DOCUMENT.split("\n\n"):
        words.add_paragraph(paragraph)
    words.save(str(tmp_path / "bikes.docx"))
    return tmp_path / "bikes.docx"


@pytest.mark.parametrize("protocol", ["rubrics", "rigorous", "livedr", "drmi"])
def test_gold_is_drafted_from_a_document(protocol: str, document: Path, capsys: Any) -> None:
    """With the passages that it rests on; it can be scored by."""
    folder = document.parent
    out, config = folder / "gold.jsonl", folder / "adjudge.yaml"
    code, printed, said = run(
        capsys, "gold", config, "--protocol", protocol, "--from", document, "--out", out, "--json"
    )
    found = json.loads(printed)
    assert (code, found["drafted"], said) == (0, 1, "")
    (task,) = lines(out)
    passages = task["rests_on"][protocol]
    assert found["items"] >= found["founded"] == len(passages) > 0
    texts = {"bikes.docx": "\n".join(DOCUMENT.split("\n\n")), "task": task["prompt"]}
    assert all(one["quote"] in texts[one["source"]] for one in passages)
    assert "bikes.docx" in {one["source"] for one in passages}
    config.write_text(config.read_text().replace("tasks.jsonl", "gold.jsonl") + f"protocols: [{protocol}]\n")
    code, printed, _ = run(capsys, "evaluate", config, "--json")
    assert not {"gold_missing", "gold_invalid"} & set(printed.split('"'))


def test_gold_of_a_document_needs_one(document: Path, capsys: Any) -> None:
    config, out = document.parent / "adjudge.yaml", document.parent / "gold.jsonl"
    code, _, said = run(capsys, "gold", config, "--protocol", "drmi", "--out", out)
    assert code == 2 and "--from: drmi drafts gold from a document" in said
    for wrong in ("missing.pdf", "adjudge.yaml"):
        code, _, said = run(
            capsys, "gold", config, "--protocol", "drmi", "--out", out, "--from", document.parent / wrong
        )
        assert code == 2 and said.startswith("adjudge: --from: ") and wrong in said
    (document.parent / "empty.md").write_text(" \n")
    code, _, said = run(
        capsys, "gold", config, "--protocol", "drmi", "--out", out, "--from", document.parent / "empty.md"
    )
    assert code == 2 and "has no text" in said and not out.exists()


@given(st.lists(st.integers(1, 6), min_size=1, max_size=15))
def test_points_are_scaled_to_a_total(points: list[int]) -> None:
    scaled = with_total(points, 30)
    assert sum(scaled) == 30 and min(scaled) >= 1
    assert all(
        one <= other
        for first, one in zip(points, scaled, strict=True)
        for second, other in zip(points, scaled, strict=True)
        if first < second
    )


def asked(question: Question[Any]) -> bytes:
    """All that a key is made of, without the judge: type, version and fields, context, prompts, schema."""
    prompts, schema = prompt_digests(question, PromptBook()), schema_of(question, analysis=True)
    return msgspec.msgpack.encode((question.identity(), question.context.digest, prompts, schema))


async def questions(protocol: Any, case: Case, judge: Judge) -> set[bytes]:
    tools = DirectTools(judge)
    await protocol.score(case, tools)
    return {asked(question) for question in tools.questions}


@pytest.mark.parametrize("protocol", [Race(), DR3(), Rubrics(), Rigorous(), DrMi()], ids=lambda one: one.name)
async def test_frozen_gold_asks_the_same_under_two_judges(protocol: Any) -> None:
    """The same contexts, fields, prompts and schemas; drafted gold is another with another judge.

    LiveDRBench is not here: which claims are left to compare depends on the matches before, by its rule.
    """
    tasks = msgspec.json.Decoder(Task).decode_lines((FAULTS / "tasks.jsonl").read_bytes())
    reports = msgspec.json.Decoder(Report).decode_lines((FAULTS / "reports.jsonl").read_bytes())
    task = next(one for one in tasks if protocol.name in one.gold)
    case = Case(task=task, report=next(one for one in reports if one.task_id == task.id))
    first, second = random_judge(1), random_judge(2)
    second.identity = msgspec.structs.replace(first.identity, fingerprint="scripted:another")
    kept = await questions(protocol, case, first)
    assert kept and kept == await questions(protocol, case, second)
    bare = msgspec.structs.replace(task, gold=lacking(task, protocol.name))
    sources = [GoldSource("review.txt", "A review of 12 studies. It covers kelp, trams and naps.")]
    drafts = []
    for judge in (first, second):
        gold = await protocol.draft(msgspec.structs.replace(case, task=bare), DirectTools(judge), sources)
        drafts.append(msgspec.structs.replace(task, gold={protocol.name: gold}))
    own = [await questions(protocol, msgspec.structs.replace(case, task=one), first) for one in drafts]
    assert own[0] != own[1]
    frozen = [
        await questions(protocol, msgspec.structs.replace(case, task=drafts[0]), judge)
        for judge in (first, second)
    ]
    assert frozen[0] == frozen[1] == own[0]


def lacking(task: Task, protocol: str) -> dict[str, msgspec.Raw]:
    """Gold with what no judge drafts: a reference report, sources, references."""
    gold = msgspec.json.decode(task.gold[protocol])
    if not isinstance(gold, dict):
        return {}
    kept = {name: gold[name] for name in ("reference", "user_files", "tsl") if name in gold}
    return {protocol: msgspec.Raw(msgspec.json.encode(kept))}


def test_sources_of_gold_are_read_from_pdf_and_text(tmp_path: Path) -> None:
    (tmp_path / "paper.pdf").write_bytes(pdf("Cargo bikes carried 5,200 parcels a month."))
    (tmp_path / "notes.md").write_text("# Notes\n\nTwo bikes were stolen.")
    read = read_sources([str(tmp_path / "paper.pdf"), str(tmp_path / "notes.md")])
    assert [one.name for one in read] == ["paper.pdf", "notes.md"]
    assert "5,200 parcels" in read[0].text and "stolen" in read[1].text
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.md").write_text("More.")
    with pytest.raises(UsageError, match=r"two files are called notes\.md"):
        read_sources([str(tmp_path / "notes.md"), str(tmp_path / "other" / "notes.md")])


async def test_drafts_become_gold_with_all_their_parts() -> None:
    """Claims with subclaims, rubrics scaled to 30 points, keywords, statements with labels; what is there stays."""
    made = {
        ClaimsOf: DraftedClaims(
            claims=[DraftedClaim(claim="A bike needs 7.1 minutes.", subclaims=("A van needs 9.4.",))]
        ),
        QueryRubricsOf: DraftedRubrics(
            rubrics=[
                DraftedRubric(rubric=f"Does the report name bike {n}?", points=1 + n % 6) for n in range(8)
            ]
        ),
        KeywordsOf: DraftedKeywords(anchors=("cargo bike", "parcel"), deviations=("e-scooter",)),
        StatementsOf: DraftedStatements(
            statements=[DraftedStatement(text=f"Bike {n} was stolen.", truth=n < 2) for n in range(15)]
        ),
    }
    tools = DirectTools(ScriptedJudge(lambda question: made[type(question)]))
    gold = {
        "rigorous": msgspec.Raw(b'{"tsl": ["https://a.example"]}'),
        "drmi": msgspec.Raw(b'{"plan": ["Ask."]}'),
    }
    case = Case(
        task=Task(id="1", prompt="Do bikes carry parcels well?", gold=gold),
        report=Report(task_id="1", system="gold", text=""),
    )
    sources = [GoldSource("bikes.txt", DOCUMENT)]
    protocols: list[Any] = [LiveDR(), Rigorous(), DrMi()]
    for protocol in protocols:
        drafted = await protocol.draft(case, tools, sources)
        gold[protocol.name] = drafted
    whole = msgspec.structs.replace(case, task=msgspec.structs.replace(case.task, gold=gold))
    items = {one.name: one.gold_items(whole).items for one in protocols}
    assert [one.item for one in items["livedr"]] == ["A bike needs 7.1 minutes.", "A van needs 9.4."]
    assert sum(one.full for one in items["rigorous"] if one.part == "qsr") == 30
    assert [one.kind for one in items["rigorous"]][-3:] == ["anchor", "anchor", "deviation"]
    assert b"https://a.example" in bytes(gold["rigorous"])
    assert [one.truth for one in items["drmi"]][:3] == [True, True, False]
    assert [one.item for one in items["drmi"] if one.part == "plan"] == ["Ask."]
    assert {type(question) for question in tools.questions} == set(made)
