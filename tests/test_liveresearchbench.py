"""LiveResearchBench: its layout, its maps beside its own graders, and the mean of two judges."""

import datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adjudge.engine.commands.evaluate import evaluate, evaluate_async
from adjudge.engine.config.run import RunConfig
from adjudge.engine.formats import liveresearchbench as layout
from adjudge.engine.formats.dataset import FormatError, load_dataset
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.judges import ScriptedJudge
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.protocol import score_case
from adjudge.scoring.rubrics.liveresearchbench import (
    MOST_PROBLEMS,
    PRESENTATION,
    ListedProblems,
    LiveGold,
    LiveResearchBench,
    depth_won,
    problem_score,
)
from tests.conformance.liveresearchbench import marks, scored
from tests.examples import shipped
from tests.mock_openai import MockOpenAI
from tests.recorded import recorded
from tests.reference_graders import SEEDS, verdicts_of, winner
from tests.tools import DirectTools
from tests.worlds import lines

EXAMPLE = shipped("liveresearchbench")
DAY = datetime.date(2025, 11, 2)
ROW = {
    "qid": "market6V",
    "question": "Sizes of the market in {{current_year}} and {{last_year}}, as of {{current_date}}?",
    "checklists": ["Does the report state {{last_year}}?", "Is it of {{date}}?"],
}


def bench(folder: Path, rows: list[Any], system: str = "wren", report: str = "# Report\n\nIt grew.") -> Path:
    lines(folder / "questions_with_checklist.jsonl", rows)
    (folder / system).mkdir(parents=True, exist_ok=True)
    (folder / system / f"qid_{rows[0]['qid']}_report.md").write_text(report)
    return folder


def loaded(folder: Path, date: datetime.date | None = DAY) -> Any:
    return load_dataset("liveresearchbench", str(folder), [str(folder / "wren" / "*.md")], date=date)


def gold(task: Task) -> LiveGold:
    return msgspec.json.decode(task.gold["liveresearchbench"], type=LiveGold)


def test_reader_is_one_small_file() -> None:
    assert len(Path(str(layout.__file__)).read_text().splitlines()) < 120


def test_placeholders_are_filled_for_the_stated_date(tmp_path: Path) -> None:
    dataset = loaded(bench(tmp_path, [ROW]))
    task = dataset.tasks["market6V"]
    assert task.prompt == "Sizes of the market in 2025 and 2024, as of November 02, 2025?"
    assert gold(task) == LiveGold(
        checklist=("Does the report state 2024?", "Is it of November 02, 2025?"), date="November 02, 2025"
    )
    assert [(one.system, one.task_id) for one in dataset.reports] == [("wren", "market6V")]
    assert dataset.reports[0].load().text.startswith("# Report")


def test_placeholders_without_a_date_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        FormatError, match=r"date: is missing; .* has placeholders \(task 'market6V'\): state the day"
    ):
        loaded(bench(tmp_path, [ROW]), None)


def test_date_is_for_formats_with_placeholders(tmp_path: Path) -> None:
    lines(tmp_path / "tasks.jsonl", [{"id": "1", "prompt": "?"}])
    with pytest.raises(
        FormatError, match="date: the format 'adjudge' has no placeholders to fill; remove date:"
    ):
        load_dataset("adjudge", str(tmp_path / "tasks.jsonl"), [], date=DAY)


def test_static_questions_need_no_date(tmp_path: Path) -> None:
    rows = [
        {
            **ROW,
            "checklists": [],
            "question_no_placeholder": "In 2025?",
            "checklist": item,
            "checklist_no_placeholder": plain,
        }
        for item, plain in (("{{date}} a?", "a?"), ("{{date}} b?", "b?"))
    ]
    task = loaded(bench(tmp_path, rows), None).tasks["market6V"]
    assert task.prompt == "In 2025?" and gold(task).checklist == ("a?", "b?")
    filled = loaded(bench(tmp_path, rows)).tasks["market6V"]
    assert gold(filled).checklist == ("November 02, 2025 a?", "November 02, 2025 b?")


def test_questions_in_parquet_are_the_same(tmp_path: Path) -> None:
    plain = loaded(bench(tmp_path, [ROW]))
    (tmp_path / "questions_with_checklist.jsonl").unlink()
    folder = tmp_path / "question_with_checklist"
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist([ROW, {**ROW, "qid": None}]), folder / "test-00000-of-00001.parquet")
    table = loaded(tmp_path)
    assert table.tasks == plain.tasks
    assert [(one.line, "qid" in one.why) for one in table.rejected] == [(2, True)]


def test_reference_reports_lie_beside_the_questions(tmp_path: Path) -> None:
    folder = bench(tmp_path, [ROW, {**ROW, "qid": "../x"}])
    (folder / "data" / "reference_reports").mkdir(parents=True)
    (folder / "data" / "reference_reports" / "qid_market6V_report.md").write_text("It shrank.")
    (folder / "data" / "qid_x_report.md").write_text("secret")
    tasks = loaded(folder).tasks
    assert gold(tasks["market6V"]).reference == "It shrank." and gold(tasks["../x"]).reference == ""


def test_reports_with_other_names_are_rejected(tmp_path: Path) -> None:
    folder = bench(tmp_path, [ROW])
    (folder / "wren" / "notes.md").write_text("x")
    (folder / "wren" / "qid_unknown_report.md").write_text("x")
    assert sorted(one.why.partition(";")[0] for one in loaded(folder).rejected) == [
        "unknown task 'notes'",
        "unknown task 'unknown'",
    ]


@pytest.mark.parametrize(
    "row",
    [
        {"qid": 9**99, "question": "?"},
        {"qid": "1", "question": 7},
        {"qid": "1", "question": "?", "checklists": "abc"},
        {"qid": "1", "question": "?", "checklists": [["a"]]},
        ["not", "a", "row"],
    ],
)
def test_hostile_rows_are_rejected_with_their_line(tmp_path: Path, row: Any) -> None:
    dataset = loaded(bench(tmp_path, [ROW, row]))
    assert list(dataset.tasks) == ["market6V"] and [one.line for one in dataset.rejected] == [2]


async def card_of(gold: LiveGold, answer: Any, text: str = "It grew by 3%.") -> Any:
    task = Task(id="1", prompt="?", gold={"liveresearchbench": msgspec.Raw(msgspec.json.encode(gold))})
    case = Case(task=task, report=Report(task_id="1", system="wren", text=text))
    return await score_case(LiveResearchBench(), case, DirectTools(ScriptedJudge(answer)))


async def test_empty_report_gets_the_least_of_every_map() -> None:
    card = await card_of(LiveGold(checklist=("a",), reference="r"), lambda question: None, "")
    assert card.scores["consistency"] == card.scores["citation"] == 0.1
    assert card.scores["average"] == pytest.approx(0.05) and card.scores["depth"] == 0.0


async def test_judge_that_is_silent_leaves_bounds() -> None:
    card = await card_of(LiveGold(checklist=("a",), reference="r"), lambda question: None)
    assert set(card.scores.values()) == {None}
    low = {name: bounds.low for name, bounds in card.bounds.items()}
    assert low["consistency"] == 0.1 and low["average"] == pytest.approx(0.05)
    assert card.bounds["depth_decided"].low == 0.0 and card.bounds["depth_decided"].high == 2.0


async def test_too_long_or_empty_checklists_are_invalid_gold() -> None:
    for checklist in (("a",) * 5_000, ("a", " ")):
        card = await card_of(LiveGold(checklist=checklist), lambda question: None)
        assert card.reason == "gold_invalid"


def test_questions_are_ten_in_each_language() -> None:
    assert [len(items) for items in PRESENTATION.values()] == [10, 10]


def test_example_runs_with_the_embedded_judge(tmp_path: Path) -> None:
    config = RunConfig.load(
        EXAMPLE / "adjudge.yaml", store=str(tmp_path / "store"), out=str(tmp_path / "run")
    )
    result = evaluate(config)
    assert (result.scorecards, result.unscored, result.rejected) == (4, 0, ())
    board = next(one for one in result.leaderboard.metrics if one.headline)
    assert [row.system for row in board.standings] == ["wren", "finch"]


async def test_two_judges_are_averaged_by_a_leaderboard_of_both(tmp_path: Path) -> None:
    values = []
    async with MockOpenAI() as server:
        server_judge = {"backend": "openai", "url": server.url, "model": "mock"}
        for name, judge in (("one", {"backend": "lexical"}), ("two", server_judge)):
            changes = {"store": str(tmp_path / "store"), "out": str(tmp_path / name), "judge": judge}
            await evaluate_async(RunConfig.load(EXAMPLE / "adjudge.yaml", **changes))
            values.append(figures(build_leaderboard([tmp_path / name])))
    both = figures(build_leaderboard([tmp_path / "one", tmp_path / "two"]))
    assert values[0] != values[1]
    means = {key: (values[0][key] + values[1][key]) / 2 for key in both}
    assert both == pytest.approx(means)


def figures(board: Any) -> dict[tuple[str, str], float]:
    return {
        (one.metric, row.system): row.value
        for one in board.metrics
        for row in one.standings
        if one.metric != "depth_code"  # pooled over tasks
    }


def test_problem_maps_are_those_of_their_graders() -> None:
    expected = recorded("liveresearchbench").figures
    own = [round(100 * problem_score(count)) for count in range(41)]
    assert expected["tables"] == {"consistency": own, "citation": own}
    for count, score in expected["problems"]:
        assert score == 100 * problem_score(count)
    assert len(expected["problems"]) == 2 * 41
    assert problem_score(MOST_PROBLEMS) == problem_score(40)


@pytest.mark.parametrize("seed", SEEDS)
async def test_scores_are_those_of_their_graders(seed: int) -> None:
    """The same verdicts, counts and marks, given to both."""
    verdicts, checklist, pairs = verdicts_of(seed)
    counts = {"consistency": 3 * seed + 1, "citation": 17 - seed}
    expected = recorded("liveresearchbench").figures[f"seed {seed}"]
    assert recorded("liveresearchbench").figures["questions"] == 10
    ours = await scored({"presentation": verdicts, "coverage": checklist, **counts, "depth": pairs})
    assert 100 * float(ours["presentation"] or 0) == pytest.approx(expected["presentation"])
    assert 100 * float(ours["coverage"] or 0) == pytest.approx(expected["coverage"])
    assert ours["depth_won"] == expected["won"]
    assert ours["depth_decided"] == 2 - expected["ties"]
    assert ours["depth"] == (expected["won"] + expected["ties"] / 2) / 2
    assert depth_won(marks(*pairs[0]).lead) == {"A": 1.0, "tie": 0.5, "B": 0.0}[winner(*pairs[0])]


def test_listed_problems_are_capped_where_the_map_ends() -> None:
    assert problem_score(18) == 0.1 and MOST_PROBLEMS > 18
    assert ListedProblems.answer.__name__ == "Problems"
