"""`adjudge init` finds what people have in a folder, and writes a configuration that runs."""

import asyncio
import json
import shlex
import shutil
import zipfile
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from adjudge.engine.commands.init import start
from adjudge.engine.config.run import RunConfig
from adjudge.engine.formats.found import found_in
from adjudge.engine.runs.choice import chosen_dataset
from adjudge.scoring.rubrics.criteria import load_criteria
from tests.commands import one_line, run
from tests.examples import shipped
from tests.mock_openai import MockOpenAI
from tests.paper_folders import deepresearch_bench, dr3_eval, drmi_bench, livedrbench, rigorous_bench
from tests.result_folders import race_row, written

KITE = "What colour is the kite?"
BOAT = "How long is the boat?"
TEXT = "The kite is red [1].\n\n## References\n\n[1] https://kites.example/red\n"


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def put(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


FOLDERS: dict[str, tuple[dict[str, str], set[tuple[str, str, int]]]] = {
    "documents of one system": (
        {"kite.md": TEXT, "boat.md": TEXT},
        {("HERE", "kite", 0), ("HERE", "boat", 0)},
    ),
    "a folder for each system, a word about it": (
        {"wren/kite.md": TEXT, "robin/kite.txt": TEXT, "wren/README.md": "About wren"},
        {("wren", "kite", 0), ("robin", "kite", 0)},
    ),
    "a folder for each report": (
        {
            "wren/kite/report.md": TEXT,
            "wren/kite/notes.md": "Look at kites.",
            "wren/boat/report.md": TEXT,
            "robin/kite/report.md": TEXT,
        },
        {("wren", "kite", 0), ("wren", "boat", 0), ("robin", "kite", 0)},
    ),
    "a folder for each topic": (
        {
            f"{topic}/{name}": TEXT
            for topic in ("kite_20251213", "boat_20251214")
            for name in ("final_report.md", "plan.md", "index.html")
        }
        | {"mill_20251215/plan.md": "A run that failed."},
        {("HERE", "kite_20251213", 0), ("HERE", "boat_20251214", 0)},
    ),
    "questions beside the reports of several systems": (
        {
            "q1/prompt.txt": KITE,
            "q1/wren.md": TEXT,
            "q1/robin.md": TEXT,
            "q2/prompt.txt": BOAT,
            "q2/wren.md": TEXT,
        },
        {("wren", "q1", 0), ("robin", "q1", 0), ("wren", "q2", 0)},
    ),
    "a folder of questions": (
        {
            "prompts/kite.txt": KITE,
            "wren/kite.md": TEXT,
            "robin/kite/report.md": TEXT,
            "tern/kite/report.md": TEXT,
        },
        {("wren", "kite", 0), ("robin", "kite", 0), ("tern", "kite", 0)},
    ),
    "system and task in one name": (
        {
            f"out/{system}__{task}.md": TEXT
            for system, task in (("wren", "kite"), ("wren", "boat"), ("robin", "kite"))
        },
        {("wren", "kite", 0), ("wren", "boat", 0), ("robin", "kite", 0)},
    ),
    "task and system in one name": (
        {f"{task}__{system}.md": TEXT for task in ("kite", "boat", "mill") for system in ("wren", "robin")},
        {(system, task, 0) for task in ("kite", "boat", "mill") for system in ("wren", "robin")},
    ),
    "names that only look like two": (
        {"wren/kite__in_spring.md": TEXT, "wren/boat.md": TEXT},
        {("wren", "kite__in_spring", 0), ("wren", "boat", 0)},
    ),
    "tasks above systems": (
        {
            "tasks.jsonl": lines({"id": "q1", "prompt": KITE}, {"id": "q2", "prompt": BOAT}),
            "out/q1/wren/report.md": TEXT,
            "out/q1/robin/report.md": TEXT,
            "out/q2/wren/report.md": TEXT,
        },
        {("wren", "q1", 0), ("robin", "q1", 0), ("wren", "q2", 0)},
    ),
    "one report in several forms": (
        {
            "wren/kite.md": TEXT,
            "wren/kite.html": "<p>Kite",
            "robin/kite.html": f"<p>{TEXT.replace(chr(10), '<p>')}",
        },
        {("wren", "kite", 0), ("robin", "kite", 0)},
    ),
    "a report called so among others": (
        {"kite.md": TEXT, "report.md": TEXT, "boat.md": TEXT},
        {("HERE", "kite", 0), ("HERE", "report", 0), ("HERE", "boat", 0)},
    ),
    "questions alone in a folder of reports": (
        {"questions/kite.md": TEXT, "questions/boat.md": TEXT},
        {("questions", "kite", 0), ("questions", "boat", 0)},
    ),
    "samples by number": (
        {
            "wren/7-1.md": TEXT,
            "wren/7-2.md": TEXT + "More.",
            "wren/8-1.md": TEXT,
            "wren/8-2.md": TEXT + "More.",
        },
        {("wren", "7", 1), ("wren", "7", 2), ("wren", "8", 1), ("wren", "8", 2)},
    ),
    "numbers that are no samples": (
        {"wren/report-1.md": TEXT, "wren/report-2.md": TEXT},
        {("wren", "report-1", 0), ("wren", "report-2", 0)},
    ),
    "a table of questions and answers": (
        {
            "out.csv": f'question,answer,model\n{KITE},"{TEXT}",wren\n{BOAT},"{TEXT}",wren\n{KITE},"{TEXT}",robin\n'
        },
        {("wren", "question-1", 0), ("wren", "question-2", 0), ("robin", "question-1", 0)},
    ),
    "a column for each system": (
        {"out.csv": f'question,wren,robin\n{KITE},"{TEXT * 9}","{TEXT * 8}"\n{BOAT},"{TEXT * 7}",\n'},
        {("wren", "question-1", 0), ("wren", "question-2", 0), ("robin", "question-1", 0)},
    ),
    "a column for each system, and ids": (
        {"out.jsonl": lines({"id": 7, "question": KITE, "wren": TEXT * 9, "robin": TEXT * 8})},
        {("wren", "7", 0), ("robin", "7", 0)},
    ),
    "tasks with long texts beside reports": (
        {
            "tasks.jsonl": lines({"id": "1", "prompt": KITE, "history": TEXT * 9, "setting": TEXT * 8}),
            "reports.jsonl": lines({"task_id": "1", "system": "wren", "text": TEXT}),
        },
        {("wren", "1", 0)},
    ),
    "one question without an id": (
        {"out.csv": f'question;answer;model\n{KITE};"{TEXT}";wren\n'},
        {("wren", "question-1", 0)},
    ),
    "ids of rows": (
        {
            "out.jsonl": lines(
                {"id": 1, "prompt": KITE, "response": TEXT, "model": "wren"},
                {"id": 2, "prompt": KITE, "response": TEXT, "model": "robin"},
            )
        },
        {("wren", "question-1", 0), ("robin", "question-1", 0)},
    ),
    "a file of tasks with its own columns": (
        {
            "questions.csv": f"question_id,question\n1,{KITE}\n2,{BOAT}\n",
            "results/wren.jsonl": lines({"id": "1", "article": TEXT}, {"id": "2", "article": TEXT}),
        },
        {("wren", "1", 0), ("wren", "2", 0)},
    ),
    "tasks with answers, and a run that is there": (
        {
            "tasks.jsonl": lines({"id": "1", "prompt": KITE, "answer": "Red"}),
            "reports.jsonl": lines({"task_id": "1", "system": "wren", "text": TEXT}),
            "runs/first/run.json": "{}",
            "runs/first/leaderboard.md": TEXT,
        },
        {("wren", "1", 0)},
    ),
    "tables of questions beside the file of tasks": (
        {
            "tasks.jsonl": lines({"id": "1", "prompt": KITE}),
            "human.csv": f"question,mark\n{KITE},4\n",
            "reports.jsonl": lines({"task_id": "1", "system": "wren", "text": TEXT}),
        },
        {("wren", "1", 0)},
    ),
    "notes and questions beside the folders of systems": (
        {
            "questions.txt": f"{KITE}\n{BOAT}\n",
            "notes.md": "What we tried.",
            **{
                f"{system}/{task}.md": TEXT
                for system in ("wren (v2)", "Robin Pro")
                for task in ("q1 - final", "q2 - final")
            },
        },
        {(system, task, 0) for system in ("wren (v2)", "Robin Pro") for task in ("q1 - final", "q2 - final")},
    ),
    "a table of final answers": (
        {
            "eval.csv": "id,prompt,model_name,final_answer,latency\n"
            + "".join(
                f'{task},"{asked}",{system},"{TEXT}",2.5\n'
                for task, asked in (("q1", KITE), ("q2", BOAT))
                for system in ("wren", "robin")
            )
        },
        {(system, task, 0) for system in ("wren", "robin") for task in ("q1", "q2")},
    ),
    "tasks with final answers": (
        {
            "questions.csv": f"id,question,final_answer\n1,{KITE},Red\n2,{BOAT},Blue\n",
            "wren.jsonl": lines({"id": "1", "article": TEXT}, {"id": "2", "article": TEXT}),
        },
        {("wren", "1", 0), ("wren", "2", 0)},
    ),
    "an object of texts": (
        {"wren.json": json.dumps({"kite": TEXT * 4, "boat": TEXT * 4})},
        {("wren", "kite", 0), ("wren", "boat", 0)},
    ),
}


def loaded(folder: Path) -> set[tuple[str, str, int]]:
    dataset = chosen_dataset(RunConfig.load(folder / "adjudge.yaml"))
    assert not dataset.rejected
    return {(one.system, one.task_id, one.sample) for one in dataset.reports}


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_of_people_are_read(tmp_path: Path, name: str) -> None:
    files, due = FOLDERS[name]
    place = put(tmp_path / "HERE", files)
    found = start(str(place))
    assert loaded(place) == due
    assert found.protocols == ("fact",)
    assert {path: (place / path).read_text() for path in files} == files


def test_questions_in_the_fields_above_reports_are_asked(tmp_path: Path) -> None:
    for system, task, fields in (
        ("alpha", "bridge", "title: The bridge\nquestion: How long is the bridge?"),
        ("beta", "bridge", "prompt: Another wording"),  # the first that is found
        ("alpha", "mill", "query: >\n  What does the mill\n  grind?"),
        ("beta", "mill", "title: [unclosed"),
        ("alpha", "none", "title: Nothing is asked"),
        ("alpha", "odd", f"a: &a {'[' * 900}\nyear: {'9' * 9_000}\nquestion: [What?]"),
    ):
        file = tmp_path / system / f"{task}.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"---\n{fields}\n---\n# Report\n\nIt is 312 metres long.\n")
    found = found_in(tmp_path)
    asked = {task.id: task.prompt for task in found.made}
    assert asked == {
        "bridge": "How long is the bridge?",
        "mill": "What does the mill grind?",
        "none": "none",
        "odd": "odd",
    }
    assert found.unasked == 2


def test_half_an_import_is_passed_over(tmp_path: Path) -> None:
    row = lines({"id": "1", "prompt": "Why?"})
    put(tmp_path, {"alpha/t.md": TEXT, "killed/recorded.jsonl": row, "killed/tasks.jsonl": row})
    assert [task.id for task in found_in(tmp_path).made] == ["t"]


def test_questions_in_documents_are_asked(tmp_path: Path) -> None:
    put(tmp_path, {"q1/prompt.txt": KITE, "q1/wren.md": TEXT, "prompts/boat.md": BOAT, "robin/boat.md": TEXT})
    found = found_in(tmp_path)
    assert {task.id: task.prompt for task in found.made} == {"q1": KITE, "boat": BOAT}
    assert not found.unasked
    assert not found.aside


def test_archives_are_looked_into(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "wren.zip", "w") as archive:
        archive.writestr("kite.md", TEXT)
    start(str(tmp_path))
    assert loaded(tmp_path) == {("wren", "kite", 0)}


def checkout(folder: Path) -> None:
    """A checkout of DeepResearch Bench with a system's articles."""
    deepresearch_bench(folder / "made")
    bench = (folder / "made/deep_research_bench").rename(folder / "bench")
    shutil.rmtree(folder / "made")
    rows = [{"id": number, "prompt": f"Task {number}?", "article": TEXT} for number in (1, 2)]
    put(bench, {"data/test_data/raw_data/wren.jsonl": lines(*rows)})


@pytest.mark.parametrize(
    ("make", "layout", "protocols"),
    [
        (checkout, "deepresearch-bench", {"race", "fact"}),
        (rigorous_bench, "rigorous", {"rigorous"}),
        (livedrbench, "livedrbench", {"livedr"}),
        (drmi_bench, "drmi", {"drmi"}),
        (dr3_eval, "dr3-eval", {"dr3"}),
    ],
)
def test_published_folders_are_known(tmp_path: Path, make, layout: str, protocols: set[str]) -> None:
    make(tmp_path)
    found = start(str(tmp_path))
    assert found.found["format"] == layout
    assert set(found.protocols) == protocols
    assert loaded(tmp_path)


def test_two_commands_make_a_board(tmp_path: Path, capsys, monkeypatch) -> None:
    put(
        tmp_path,
        {
            "criteria.yaml": '- {criterion: "The kite is red.", points: 1}\n',
            "wren/kite.md": "The kite is red.",
            "robin/kite.md": "A boat.",
        },
    )
    monkeypatch.chdir(tmp_path)
    code, said, _ = run(capsys, "init")
    assert code == 0
    assert "2 reports of 2 systems (robin, wren)" in said
    assert "names stand for them" in said
    assert "variant: pointwise" in said
    assert "next: write the questions into tasks.jsonl, then adjudge evaluate" in said
    code, board, _ = run(capsys, "evaluate")
    assert code == 0
    assert board.index("wren") < board.index("robin")


def test_no_file_is_written_over(tmp_path: Path, capsys) -> None:
    put(tmp_path, {"kite.md": TEXT, "adjudge.yaml": "mine: 1\n"})
    code, _, error = run(capsys, "init", tmp_path)
    assert code == 2
    assert "--out FILE" in one_line(error)
    assert (tmp_path / "adjudge.yaml").read_text() == "mine: 1\n"
    assert not (tmp_path / "tasks.jsonl").exists()
    put(tmp_path, {"tasks.jsonl": "not a task\n"})
    code, _, error = run(capsys, "init", tmp_path, "--out", tmp_path / "other.yaml")
    assert code == 2
    assert "tasks.jsonl exists" in one_line(error)
    assert not (tmp_path / "other.yaml").exists()


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "no report was found"),
        ({"README.md": "About"}, "no report was found"),
        ({"tasks.jsonl": lines({"id": "1", "prompt": KITE})}, "no report was found"),
        ({"one.score.json": json.dumps({"question": KITE})}, "no report was found"),
        (
            {"a.csv": "frage,modell,antwort\nWhy?,wren,Red.\n"},
            "a.csv has the columns 'frage', 'modell', 'antwort': call the one of reports `text`",
        ),
        (
            {"a.csv": f"Question;wren;robin\n{KITE};Red.;Blue.\n"},
            "each row is one report (columns that are called after systems need reports of more than 200 ch",
        ),
        (
            {"a.csv": f"id,prompt,Antwort\n1,{KITE},Red.\n"},
            "a.csv has the columns 'id', 'prompt', 'Antwort': call the one of reports `text`",
        ),
        (
            {"notes/a.xls": "PK", "a.odt": "PK"},
            "no report was found; .odt files are not read; save a.odt as .docx",
        ),
        ({"a.xlsx": "PK"}, "a.xlsx holds no row that can be read: cannot be opened: File is not a zip file"),
        ({"a.csv": ""}, "a.csv holds no row that can be read: cannot be read as CSV: Empty CSV file"),
        (
            {"a.csv": "question,answer\nWhy?,Red.\nWhy?\n"},
            "row 3: not as many columns as in the first row; put quotation marks around cells",
        ),
        (
            {"data/papers.jsonl": lines({"id": "1", "question": KITE, "plan": [], "references": []})},
            "has the tasks of drmi, but no report was found beside them",
        ),
        (
            {
                "a.jsonl": lines({"id": "1", "prompt": KITE}),
                "b.jsonl": lines({"id": "1", "prompt": BOAT}),
                "k.md": TEXT,
            },
            "any of a.jsonl, b.jsonl could be the tasks",
        ),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, capsys, files: dict[str, str], said: str) -> None:
    code, _, error = run(capsys, "init", put(tmp_path, files))
    assert code == 2
    assert said in one_line(error)


def test_a_file_is_answered_with_its_folder(tmp_path: Path, capsys) -> None:
    put(tmp_path, {"a.csv": f"question,answer\n{KITE},Red.\n"})
    code, _, error = run(capsys, "init", tmp_path / "a.csv")
    assert code == 2 and f"is not a folder; give its folder: adjudge init {tmp_path}" in one_line(error)


def test_files_that_are_not_read_are_named_unless_hidden(tmp_path: Path) -> None:
    put(
        tmp_path, {"wren/kite.md": TEXT, "wren/boat.doc": "x", "wren/~$kite.docx": "x", "wren/._kite.md": "x"}
    )
    found = found_in(tmp_path)
    assert found.aside == ("wren/boat.doc",) and found.reports == ("wren",)
    assert [task.id for task in found.made] == ["kite"]


def test_one_file_is_named_not_a_pattern_of_its_name(tmp_path: Path) -> None:
    put(tmp_path, {"answers.csv": f'question,answer,model\n{KITE},"{TEXT}",wren\n'})
    assert found_in(tmp_path).reports == ("answers.csv",)


def test_next_command_can_be_typed_as_it_is_printed(tmp_path: Path, capsys) -> None:
    folder = put(tmp_path / "my reports", {"wren/kite.md": TEXT})
    code, out, _ = run(capsys, "init", folder)
    typed = shlex.split(out.rpartition("adjudge evaluate")[2])
    assert code == 0 and typed == [str(folder / "adjudge.yaml")]


def test_tasks_that_only_capitals_tell_apart_are_said(tmp_path: Path) -> None:
    put(tmp_path, {"wren/kite.md": TEXT, "robin/Kite.md": TEXT, "robin/boat.md": TEXT})
    said = start(str(tmp_path)).found["tasks"]
    assert "; Kite and kite are different tasks: use one spelling for one task: 3 tasks" in said


def test_list_of_texts_is_criteria_of_one_point(tmp_path: Path, capsys) -> None:
    criteria = "- The kite is red.\n- The kite is large. Yes=2, No=0\n"
    put(tmp_path, {"wren/kite.md": TEXT, "criteria.yaml": criteria})
    assert "rubrics" in start(str(tmp_path)).protocols
    assert [one.options for one in load_criteria(str(tmp_path / "criteria.yaml"))] == [(0, 1), (0, 2)]


@pytest.mark.parametrize("row", ["The kite is red. Yes=two", "{criterion: The kite is red., weight: 2}"])
def test_unusable_criteria_are_said_first(tmp_path: Path, capsys, row: str) -> None:
    put(tmp_path, {"wren/kite.md": TEXT, "criteria.yaml": f"- {{criterion: a, points: 1}}\n- {row}\n"})
    code, _, error = run(capsys, "init", tmp_path)
    assert code == 2 and "criteria.yaml:2: " in one_line(error)
    assert not (tmp_path / "adjudge.yaml").exists()


def test_criteria_in_a_table_are_used(tmp_path: Path, capsys) -> None:
    put(tmp_path, {"wren/kite.md": TEXT, "criteria.csv": "Criterion;Points\nThe kite is red.;2\n"})
    assert "rubrics" in start(str(tmp_path)).protocols
    assert run(capsys, "plan", tmp_path / "adjudge.yaml")[0] == 0


def test_results_without_reports_are_for_import(tmp_path: Path, capsys) -> None:
    put(tmp_path, {"query.jsonl": lines({"id": 1, "prompt": "Why 1?", "language": "en", "topic": "kites"})})
    written(tmp_path / "race" / "wren" / "raw_results.jsonl", [race_row(1, 0.5)])
    (tmp_path / "race" / "wren" / "race_result.txt").write_text("Overall Score: 0.5\n")
    code, _, error = run(capsys, "init", tmp_path)
    assert code == 2
    assert f"`adjudge import {tmp_path} --format deepresearch-bench --out runs/recorded`" in one_line(error)


def test_column_of_several_systems_is_asked_for(tmp_path: Path, capsys) -> None:
    put(tmp_path, {"a.csv": "question,by,answer\nWhy?,wren,Red.\nWhy?,robin,Blue.\n"})
    code, _, error = run(capsys, "init", tmp_path)
    assert code == 2
    assert error.endswith("or name the column of several systems: fields: {system: NAME}\n")


def test_empty_cell_of_the_texts_is_an_empty_report(tmp_path: Path) -> None:
    put(tmp_path, {"a.csv": f"question,model,answer\n{KITE},wren,\n{KITE},robin,Red.\n"})
    start(tmp_path)
    dataset = chosen_dataset(RunConfig.load(tmp_path / "adjudge.yaml"))
    assert not dataset.rejected
    assert {one.system: one.load().text for one in dataset.reports} == {"wren": "", "robin": "Red."}


def test_headings_are_read_as_people_write_them(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "a.csv": f"Task ID,Question, MODEL ,Answer,ANSWER\n7,{KITE},wren,Red.,no\n7,{KITE},robin,Blue.,no\n"
        },
    )
    start(tmp_path)
    dataset = chosen_dataset(RunConfig.load(tmp_path / "adjudge.yaml"))
    assert list(dataset.tasks) == ["7"]
    assert {one.system: one.load().text for one in dataset.reports} == {"wren": "Red.", "robin": "Blue."}


def test_options_decide(tmp_path: Path, capsys) -> None:
    put(tmp_path, {"kite.md": TEXT})
    code, _, error = run(capsys, "init", tmp_path, "--protocol", "rase")
    assert code == 2
    assert "race" in one_line(error)
    spec = "openai:http://127.0.0.1:9/v1#m"
    run(capsys, "init", tmp_path, "--protocol", "race", "--judge", spec)
    config = yaml.safe_load((tmp_path / "adjudge.yaml").read_text())
    assert config["protocols"] == ["race"]
    assert config["judge"] == spec


def test_a_server_of_the_environment_judges(tmp_path: Path) -> None:
    put(tmp_path, {"kite.md": TEXT})
    named = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_MODEL": "small"}
    start(str(tmp_path), environ=named)
    assert RunConfig.load(tmp_path / "adjudge.yaml").judge_of("fact").model == "small"
    away = start(
        str(tmp_path), str(tmp_path / "b.yaml"), environ={"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    )
    assert "lists no model" in away.found["judge"]


async def test_the_only_model_of_a_server_judges(tmp_path: Path) -> None:
    put(tmp_path, {"kite.md": TEXT})
    async with MockOpenAI(serves="small") as mock:
        found = await asyncio.to_thread(start, str(tmp_path), environ={"OPENAI_BASE_URL": mock.url})
    assert found.found["judge"] == "small: the server of OPENAI_BASE_URL"


def test_pages_and_criteria_are_found(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "kite.md": TEXT,
            "pages/index.jsonl": lines({"url": "https://kites.example/red", "file": "red.html"}),
            "pages/red.html": "<p>The kite is red.",
            "criteria.jsonl": lines({"criterion": "The kite is red.", "points": 1}),
        },
    )
    start(str(tmp_path))
    config = RunConfig.load(tmp_path / "adjudge.yaml")
    assert config.fetch.mode == "snapshot"
    assert {one.name for one in config.resolved.protocols} == {"fact", "rubrics"}


@given(st.dictionaries(st.text(min_size=1, max_size=30), st.text(max_size=60), min_size=1, max_size=4))
@example({"\x7f": "", "\x85\u2028a: b": "", "\U0001f600 \ufeff": ""})
def test_names_are_no_settings(tmp_path_factory, names: dict[str, str]) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    for place, name in enumerate(names):
        safe = name.replace("/", "").replace("\0", "").encode("utf-8", "ignore").decode().lstrip(".")
        if safe.strip() and len(safe.encode()) < 100:
            (folder / f"{safe}.md").write_text(TEXT)
        (folder / f"plain-{place}.md").write_text(TEXT)
    found = found_in(folder)
    start(str(folder))
    dataset = chosen_dataset(RunConfig.load(folder / "adjudge.yaml"))
    assert {one.task_id for one in dataset.reports} == {task.id for task in found.made}


def test_tasks_of_a_benchmark_are_no_reports_for_their_answers(tmp_path: Path, capsys) -> None:
    shutil.copytree(
        shipped("draco"), tmp_path / "draco", ignore=shutil.ignore_patterns("adjudge.yaml", "runs")
    )
    found = found_in(tmp_path / "draco")
    assert (found.layout, found.tasks, found.reports) == ("draco", ".", ("reports",))
