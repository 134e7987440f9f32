"""Folders as DR3-Eval's and LiveDRBench's own code reads them: the same tasks, files and gold, evaluated to the end."""

import json
from pathlib import Path

import pytest

from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.config.run import RunConfig
from adjudge.engine.formats import dr3, livedrbench
from adjudge.engine.formats.dataset import InputFile, load_dataset
from tests.grafting import own_code
from tests.mock_openai import MockOpenAI
from tests.reference_dr3 import dr3_folder, folder_by_code, folder_by_us
from tests.reference_livedr import livedr_folder, livedr_rows, truths_by_code, truths_by_us


async def test_dr3_folder_is_read_as_its_own_code_reads_it(tmp_path: Path) -> None:
    repo = dr3_folder(tmp_path, own_code)
    assert await folder_by_code(repo) == json.loads(json.dumps(folder_by_us(repo)))


def test_dr3_folder_is_read_whole(tmp_path: Path) -> None:
    repo = dr3_folder(tmp_path)
    data = repo / "data" / "datasets_en"
    dataset = load_dataset("dr3-eval", str(data), [str(repo / "results_main" / "datasets_en")])
    assert list(dataset.tasks) == ["001@128k", "001@64k", "002@128k", "002@64k"]
    for case in dataset.cases():
        task, _, size = case.task.id.partition("@")
        assert (size, case.task.attributes) == ("64k", {"size": "64k", "files": "md + txt"})
        path = repo / "results_main/datasets_en/64k" / case.report.system / task / "final_report.md"
        assert case.report.text == path.read_text(encoding="utf-8")
    assert dataset.rejected == []


async def test_dr3_folder_is_evaluated_to_the_end(tmp_path: Path) -> None:
    repo = dr3_folder(tmp_path)
    reports = [str(repo / "results_main/datasets_en/*/*/*/final_report.md")]
    scored = await _evaluated(tmp_path, "dr3-eval", repo / "data/datasets_en", reports, "dr3")
    assert scored == (4, 0)


async def test_livedr_gold_is_deciphered_as_its_own_code_does(tmp_path: Path) -> None:
    rows = livedr_rows()
    repo = livedr_folder(tmp_path, rows, own_code)
    assert await truths_by_code(repo) == {row["key"]: row["ground_truths"] for row in rows}


@pytest.mark.parametrize("preds", [lambda told: told, json.dumps], ids=["list", "text"])
async def test_livedr_rows_are_evaluated_to_the_end(tmp_path: Path, preds) -> None:
    rows = livedr_rows()
    repo = livedr_folder(tmp_path, rows)
    predictions = [{"key": row["key"], "preds": preds(row["ground_truths"])} for row in rows[:-1]]
    (tmp_path / "tern.json").write_text(json.dumps(predictions))
    questions = [row["question"] for row in rows]
    inferred = [{"question": one, "prediction": "I found:\n```json\n[[]]\n```"} for one in questions]
    (tmp_path / "wren.jsonl").write_text("".join(json.dumps(row) + "\n" for row in inferred))
    dataset = livedrbench.read(
        repo / "questions.jsonl", [InputFile(tmp_path / one) for one in ("tern.json", "wren.jsonl")]
    )
    assert truths_by_us(repo, tmp_path / "wren.jsonl") == {row["key"]: row["ground_truths"] for row in rows}
    assert dataset.rejected == []
    reports = [str(tmp_path / "tern.json"), str(tmp_path / "wren.jsonl")]
    assert await _evaluated(tmp_path, "livedrbench", repo / "questions.jsonl", reports, "livedr") == (48, 0)


async def _evaluated(
    folder: Path, layout: str, tasks: Path, reports: list[str], protocol: str
) -> tuple[int, int]:
    """How many scorecards there are, and how many of them are unscored."""
    async with MockOpenAI() as mock:
        config = RunConfig.of(
            {
                "tasks": str(tasks),
                "reports": reports,
                "format": layout,
                "protocols": [protocol],
                "judge": {"backend": "openai", "url": mock.url, "model": "judge"},
                "store": str(folder / "store"),
                "out": str(folder / "run"),
            }
        )
        result = await evaluate_async(config)
    assert result.rejected == ()
    return result.scorecards, result.unscored


def test_dr3_folder_names_what_it_cannot_read(tmp_path: Path) -> None:
    base = tmp_path / "datasets_zh"
    for task in ("1", "2"):
        (base / task / "source").mkdir(parents=True)
    (base / "query.jsonl").write_text(
        '{"task": 1, "query": "q"}\n{"query": "q"}\n{"number": "../2", "query": "q"}\n{"number": "3", "query": "q"}\n'
    )
    (base / "1/source/a.txt").write_text("A.")
    (base / "1/long_context_sampled_32k.json").write_text(
        '[{"title": "T", "page_body": "B"}, 7, {"title": 1}]'
    )
    (base / "1/useful_search.jsonl").write_text('{"title": "T"}\n{"title": "U", "page_body": "beyond"}\nno\n')
    gold = tmp_path / "evaluation/insights/datasets_zh/1"
    gold.mkdir(parents=True)
    (gold / "gold_insights_from_source.json").write_text('{"gold_insights": [{}]}')
    report = tmp_path / "32k/tern/1/final_report.md"
    report.parent.mkdir(parents=True)
    report.write_bytes(b"\xff")
    (tmp_path / "final_report.md").write_text("R.")
    dataset = dr3.read(
        base, [InputFile(one) for one in (report, tmp_path / "final_report.md", tmp_path / "other.md")]
    )
    assert list(dataset.tasks) == ["1@32k"]
    task = dataset.tasks["1@32k"]
    gold_read = json.loads(bytes(task.gold["dr3"]))
    assert (task.language, [page["role"] for page in gold_read["corpus"]]) == (
        "zh",
        ["supportive", "supportive"],
    )
    assert [file["name"] for file in gold_read["user_files"]] == ["a.txt"]
    places = [(Path(one.file).name, one.line) for one in dataset.rejected]
    assert places == [
        ("useful_search.jsonl", 3),
        ("gold_insights_from_source.json", 0),
        ("long_context_sampled_32k.json", 2),
        ("long_context_sampled_32k.json", 3),
        ("query.jsonl", 2),
        ("query.jsonl", 3),
        ("query.jsonl", 4),
        ("final_report.md", 0),
        ("other.md", 0),
    ]
