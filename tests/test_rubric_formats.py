"""Benchmarks of rubrics in their published layouts: rows, documents, what is refused, and the shipped examples."""

import json
from pathlib import Path
from typing import Any

import docx
import msgspec
import pytest

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.run import RunConfig
from adjudge.engine.formats.dataset import Dataset, FormatError, Located, load_dataset
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.runs.run import Run
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.scorecard import Bounds, Scorecard
from adjudge.scoring.rubrics.criteria import load_criteria
from adjudge.scoring.rubrics.rubrics import Rubrics
from tests.examples import shipped

ROOT = Path(__file__).parent.parent
READERS = {
    "draco": "test.jsonl",
    "researchrubrics": "processed_data.jsonl",
    "healthbench": "healthbench.jsonl",
    "deepresearch-bench-2": "tasks_and_rubrics.jsonl",
}


def row(name: str, task: str = "1", weight: Any = 3) -> dict[str, Any]:
    """A row of the published layout with one criterion."""
    if name == "draco":
        criterion = {"id": "c", "requirement": "Names a river.", "weight": weight}
        answer = json.dumps({"sections": [{"id": "accuracy", "criteria": [criterion]}]})
        return {"id": task, "domain": "Water", "problem": "Which rivers?", "answer": answer}
    if name == "researchrubrics":
        rubrics = [{"criterion": "Names a river.", "weight": weight, "axis": "Explicit"}]
        return {"prompt": "Which rivers?", "sample_id": task, "domain": "Water", "rubrics": rubrics}
    if name == "healthbench":
        rubrics = [{"criterion": "Names a river.", "points": weight, "tags": ["axis:accuracy"]}]
        prompt = [{"role": "user", "content": "Which rivers?"}]
        return {"prompt_id": task, "prompt": prompt, "rubrics": rubrics, "example_tags": ["theme:hedging"]}
    rubric = {"info_recall": ["Names a river."], "analysis": [], "presentation": []}
    content = {"task": "Which rivers?", "rubric": rubric, "blocked": {"title": "", "authors": [], "urls": []}}
    return {
        "id": 9,
        "idx": int(task),
        "language": "en",
        "theme": "Water",
        "prompt": "Which rivers?",
        "content": content,
    }


def load(name: str, folder: Path, lines: list[str], reports: str = "r.jsonl") -> Dataset:
    (folder / READERS[name]).write_text("\n".join(lines) + "\n", encoding="utf-8")
    if reports == "r.jsonl":
        (folder / reports).write_text('{"task_id": "1", "system": "heron", "text": "The Lind is a river."}\n')
    return load_dataset(name, str(folder), [str(folder / reports)])


@pytest.mark.parametrize("name", READERS)
def test_rows_keep_what_tables_are_grouped_by(name: str, tmp_path: Path) -> None:
    dataset = load(name, tmp_path, [json.dumps(row(name))])
    (task,) = dataset.tasks.values()
    assert (task.id, task.prompt) == ("1", "Which rivers?")
    assert task.domain == {"healthbench": "hedging"}.get(name, "Water")
    assert task.attributes == {
        "healthbench": {"theme": "hedging"},
        "deepresearch-bench-2": {"theme": "Water"},
    }.get(name, {})


@pytest.mark.parametrize("name", ["draco", "researchrubrics", "healthbench"])
@pytest.mark.parametrize("weight", ["NaN", "1e400", "Infinity", '"3"', "null", "[3]", "true", "1e10"])
def test_weight_that_is_no_number_rejects_its_line(name: str, weight: str, tmp_path: Path) -> None:
    good, bad = json.dumps(row(name)), json.dumps(row(name, "2", "WEIGHT"))
    bad = bad.replace('\\"WEIGHT\\"', weight.replace('"', '\\"')).replace('"WEIGHT"', weight)
    dataset = load(name, tmp_path, [good, bad])
    assert list(dataset.tasks) == ["1"]
    (rejected,) = dataset.rejected
    assert rejected.line == 2 and len(str(rejected)) < 600


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("line", ["[" * 100_000, '{"id": 1}', "null", "[]", '"' + "x" * 100, "{" * 9])
def test_hostile_line_is_rejected_with_its_number(name: str, line: str, tmp_path: Path) -> None:
    dataset = load(name, tmp_path, [json.dumps(row(name)), line])
    assert [one.line for one in dataset.rejected] == [2]


@pytest.mark.parametrize(
    "answer", ["[" * 50_000, '"{}"', "null", '{"sections": 3}', '{"sections": [{"id": 1}]}', ""]
)
def test_nested_json_text_that_is_no_answer_is_rejected(answer: str, tmp_path: Path) -> None:
    bad = {**row("draco", "2"), "answer": answer}
    assert [
        one.line for one in load("draco", tmp_path, [json.dumps(row("draco")), json.dumps(bad)]).rejected
    ] == [2]


@pytest.mark.parametrize("name", READERS)
def test_equal_rows_are_one_task_and_others_are_refused(name: str, tmp_path: Path) -> None:
    once = json.dumps(row(name))
    assert len(load(name, tmp_path, [once, once]).tasks) == 1
    changed = {"draco": {"problem": "?"}, "healthbench": {"prompt": [{"role": "user", "content": "?"}]}}
    other = json.dumps({**row(name), **changed.get(name, {"prompt": "?"})})
    with pytest.raises(FormatError, match=r":2: task '1' was given before"):
        load(name, tmp_path, [once, other])


def test_all_weights_negative_is_invalid_gold(tmp_path: Path) -> None:
    lines = [json.dumps(row("researchrubrics", weight=-2))]
    load("researchrubrics", tmp_path, lines)
    result = evaluate(
        RunConfig.of(
            {
                "tasks": str(tmp_path), "reports": [str(tmp_path / "r.jsonl")], "format": "researchrubrics",
                "protocols": ["researchrubrics"], "store": str(tmp_path / "s"), "out": str(tmp_path / "o"),
            }
        )
    )  # fmt: skip
    assert result.unscored == 1
    assert RunRecord.read(tmp_path / "o").failures[0].reason == "gold_invalid"


def test_ten_thousand_criteria_are_invalid_gold(tmp_path: Path) -> None:
    rubrics = [{"criterion": f"c{n}", "weight": 1, "axis": "Explicit"} for n in range(10_000)]
    load("researchrubrics", tmp_path, [json.dumps({**row("researchrubrics"), "rubrics": rubrics})])
    config = {
        "tasks": str(tmp_path), "reports": [str(tmp_path / "r.jsonl")], "format": "researchrubrics",
        "protocols": ["researchrubrics"], "store": str(tmp_path / "s"), "out": str(tmp_path / "o"),
    }  # fmt: skip
    assert evaluate(RunConfig.of(config)).unscored == 1


def test_documents_are_reports_of_their_folder(tmp_path: Path) -> None:
    heron = tmp_path / "out" / "heron"
    heron.mkdir(parents=True)
    (heron / "idx-1.md").write_text("# Rivers\n\nThe Lind is a river [1](https://lind.example).")
    (heron / "idx-1-2.txt").write_text("The Lind.")
    (heron / "2.html").write_text(
        "<html><body><article><p>The Orl is a long river.</p></article></body></html>"
    )
    made = docx.Document()
    made.add_paragraph("The Orl is a river.")
    made.save(str(heron / "idx-3.docx"))
    (heron / "idx-4.pdf").write_bytes(b"no PDF at all")
    (heron / "idx-9.md").write_text("Nobody asked.")
    (heron / "idx-2.zip").write_bytes(b"PK")
    rows = [json.dumps(row("deepresearch-bench-2", str(n))) for n in range(1, 5)]
    dataset = load("deepresearch-bench-2", tmp_path, rows, "out/*/*")
    found: dict[tuple[str, str, int], Located] = {
        (one.system, one.task_id, one.sample): one for one in dataset.reports
    }
    assert set(found) == {("heron", "1", 0), ("heron", "1", 2), ("heron", "2", 0), ("heron", "3", 0)}
    assert "https://lind.example" in found["heron", "1", 0].load().text
    assert "The Orl is a river." in found["heron", "3", 0].load().text
    refused = {Path(one.file).name: one.why for one in dataset.rejected}
    assert refused.keys() == {"idx-4.pdf", "idx-9.md", "idx-2.zip"}
    assert refused["idx-9.md"] == "unknown task '9'" and ".docx" in refused["idx-2.zip"]


def test_tasks_without_their_file_say_which_is_missing(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text("")
    for name, file in READERS.items():
        with pytest.raises(FormatError, match=file):
            load_dataset(name, str(tmp_path), [str(tmp_path / "r.jsonl")])


EXPECTED = {
    "draco": ("draco", "score", 100),
    "researchrubrics": ("researchrubrics", "score", 100),
    "healthbench": ("healthbench", "score", 1),
    "deepresearch-bench-2": ("drb2", "total", 100),
}


@pytest.mark.parametrize("name", READERS)
def test_example_ranks_the_careful_system_first(name: str, tmp_path: Path) -> None:
    folder = {"out": str(tmp_path / "run"), "store": str(tmp_path / "store")}
    result = evaluate(RunConfig.load(shipped(name) / "adjudge.yaml", **folder))
    assert (result.unscored, result.rejected) == (0, ())
    protocol, metric, scale = EXPECTED[name]
    (board,) = [one for one in result.leaderboard.metrics if one.headline]
    assert (board.protocol, board.metric, board.scale) == (protocol, metric, scale)
    assert [one.system for one in board.standings] == ["heron", "tern"]
    assert all(one.scale == scale for one in result.leaderboard.metrics)


def test_example_of_healthbench_holds_every_mean(tmp_path: Path) -> None:
    folder = {"out": str(tmp_path / "run"), "store": str(tmp_path / "store")}
    result = evaluate(RunConfig.load(shipped("healthbench") / "adjudge.yaml", **folder))
    values = [row.value for board in result.leaderboard.metrics for row in board.standings]
    assert all(value is not None and 0 <= value <= 1 for value in values)
    rows = result.scores.to_pylist() if hasattr(result, "scores") else []
    assert not rows or min(row["value"] for row in rows) < 0


PROFESSIONAL = {
    "id": 7,
    "conversation": {"messages": [{"role": "user", "content": "An ankle is swollen. What first?"}]},
    "rubric_items": [
        {"criterion_text": "Advises cooling.", "points": 4},
        {"criterion_text": "Recommends elevation.", "points": 6},
    ],
    "use_case": "consult",
}


def answered(words: str, length: int) -> str:
    return words + " z" * ((length - len(words)) // 2) + "z" * ((length - len(words)) % 2)


@pytest.mark.parametrize(
    ("said", "length", "expected"),
    [
        ("Advises cooling. Recommends elevation.", 3_000, 1 - 0.0147 * 2),
        ("Advises cooling.", 1_500, 0.4 + 0.0147),
        ("Nothing of use.", 52_001, -0.0147 * 50_001 / 500),
    ],
)
def test_professional_form_is_read_and_adjusted_for_length(
    said: str, length: int, expected: float, tmp_path: Path
) -> None:
    (tmp_path / "hb.jsonl").write_text(json.dumps(PROFESSIONAL) + "\n")
    report = {"task_id": "7", "system": "heron", "text": answered(said, length)}
    (tmp_path / "r.jsonl").write_text(json.dumps(report) + "\n")
    options = {"format": "healthbench", "protocols": ["healthbench"]}
    paths = {"tasks": tmp_path / "hb.jsonl", "store": tmp_path / "s", "out": tmp_path / "o"}
    config = options | {name: str(path) for name, path in paths.items()}
    evaluate(RunConfig.of(config | {"reports": [str(tmp_path / "r.jsonl")]}))
    run = Run.open(str(tmp_path / "o"))
    assert run.record.tasks["7"].attributes == {"use_case": "consult", "set": "professional"}
    found = {row["metric"]: row for row in run.scores.to_pylist()}
    assert found["score_length_adjusted"]["value"] == pytest.approx(expected)
    assert found["score"]["value"] == pytest.approx(max(0.0, round(expected, 1)))


@pytest.mark.parametrize("lacks", ["id", "conversation", "rubric_items"])
def test_professional_row_without_a_part_is_rejected(lacks: str, tmp_path: Path) -> None:
    bad = {name: value for name, value in PROFESSIONAL.items() if name != lacks}
    dataset = load("healthbench", tmp_path, [json.dumps(row("healthbench")), json.dumps(bad)])
    assert [one.line for one in dataset.rejected] == [2]


def test_a_missing_answer_bounds_the_adjusted_score_as_the_score(tmp_path: Path) -> None:
    card = Scorecard(
        protocol="p", system="s", task_id="1", sample=0, repeat=0, scores={"score": None}, status="unscored",
        reasons={"score": "judge_unparseable"}, bounds={"score": Bounds(0.4, 1.0, 1, 2)},
    )  # fmt: skip
    derived = card.derived("score", "less", lambda score: score - 0.1)
    assert derived.scores["less"] is None and derived.reasons["less"] == "judge_unparseable"
    low, high = derived.bounds["less"].low, derived.bounds["less"].high
    assert (low, high) == (pytest.approx(0.3), pytest.approx(0.9))


def test_names_may_be_numbers_in_every_layout(tmp_path: Path) -> None:
    for name, key in (("draco", "domain"), ("researchrubrics", "domain"), ("deepresearch-bench-2", "theme")):
        dataset = load(name, tmp_path, [json.dumps({**row(name), key: 4})])
        assert [task.domain for task in dataset.tasks.values()] == ["4"]


def test_lines_that_the_documentation_shows_are_read(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent / "docs/protocols/rubrics.md").read_text()
    task = msgspec.json.decode(page.split("```json\n")[1].partition("\n```")[0], type=Task)
    own = Case(task=task, report=Report(task_id="1", system="s", text="It opened in 1931."))
    assert Rubrics().metrics_of(own)
    assert task.gold["rubrics"]
    shown = page.partition("is one such object, `")[2].partition("`")[0]
    text = page.partition("it may end in its values, `")[2].partition("`")[0]
    file = tmp_path / "criteria.jsonl"
    file.write_text(f"{shown}\n{text}\n")
    assert [one.values or one.points for one in load_criteria(str(file))] == [2, (2, 0)]
