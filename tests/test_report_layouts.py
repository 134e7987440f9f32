"""Reports are read in whatever form people have them, and a form that cannot be read is named with its remedy."""

import csv
import gzip
import io
import json
import logging
import zipfile
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adjudge.engine.formats import input_files
from adjudge.engine.formats.dataset import Dataset, FormatError, Given, load_dataset
from adjudge.scoring.text.accounted import account
from tests.layouts import PROMPTS, Row, drb, lines, own
from tests.nightly import quick_or_whole

TEXT = '# Report\n\nIt took "41 d", as 5 < 7 [register](https://r.example/1).\n\n- The wall, über 52 汉字; it stands.'
ROWS: list[Row] = [
    {"task_id": task, "system": system, "text": f"{TEXT} {system} {task}"}
    for system in ("a", "b")
    for task in ("1", "2")
]
EVERY = {(row["system"], row["task_id"]): row["text"] for row in ROWS}


def csv_of(rows: list[Row], separator: str = ",") -> bytes:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(rows[0]), delimiter=separator)
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


def json_lines(rows: list[Row]) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode()


def parquet(rows: list[Row]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()


def excel(*sheets: list[Row]) -> bytes:
    book = openpyxl.Workbook()
    for at, rows in enumerate(sheets):
        sheet = book.active if not at else book.create_sheet()
        sheet.append(list(rows[0]))
        for row in rows:
            sheet.append(list(row.values()))
    book.create_sheet("Sheet3")
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    return file.getvalue()


TABLES: dict[str, Callable[[list[Row]], bytes]] = {
    "r.jsonl": json_lines,
    "r.json": lambda rows: json.dumps(rows, indent=1).encode(),
    "lines.json": json_lines,
    "data.json": lambda rows: json.dumps({"data": rows}).encode(),
    "r.csv": csv_of,
    "bom.csv": lambda rows: b"\xef\xbb\xbf" + csv_of(rows),
    "semicolons.csv": lambda rows: csv_of(rows, ";"),
    "r.tsv": lambda rows: csv_of(rows, "\t"),
    "r.parquet": parquet,
    "r.xlsx": excel,
    "r.jsonl.gz": lambda rows: gzip.compress(json_lines(rows)),
    "r.csv.gz": lambda rows: gzip.compress(csv_of(rows)),
    "r.zip": lambda rows: zipped({"out/r.jsonl": json_lines(rows), "__MACOSX/out/._r.jsonl": b"\0"}),
}


def read(folder: Path, *reports: str | Given) -> Dataset:
    return load_dataset("adjudge", str(own(folder / "tasks")), [
        str(folder / one) if isinstance(one, str) else Given(str(folder / one.path), one.system, one.fields)
        for one in reports
    ])  # fmt: skip


def found(dataset: Dataset) -> dict[tuple[str, str], str]:
    return {(case.report.system, case.task.id): case.report.text for case in dataset.cases()}


@pytest.mark.parametrize("name", TABLES)
def test_rows_are_the_same_in_every_kind_of_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(TABLES[name](ROWS))
    dataset = read(tmp_path, name)
    assert not dataset.rejected and found(dataset) == EVERY


NAMES = {
    "task_id": ["id", "idx", "qid"],
    "text": ["article", "response", "report", "final_report", "output", "answer", "prediction"],
    "system": ["model", "agent"],
}


@settings(
    max_examples=quick_or_whole(20, 60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_usual_names_are_taken_for_their_fields(data: st.DataObject, tmp_path: Path) -> None:
    """Also where ids are numbers, or only the question says which task it is."""
    names = {field: data.draw(st.sampled_from([field, *others])) for field, others in NAMES.items()}
    as_number, by_question = data.draw(st.booleans()), data.draw(st.booleans())
    rows = []
    for row in ROWS:
        made = {names[field]: value for field, value in row.items()}
        if as_number:
            made[names["task_id"]] = int(row["task_id"])
        if by_question:
            del made[names["task_id"]]
            made["question"] = PROMPTS[row["task_id"]]
        rows.append(made)
    name = data.draw(st.sampled_from([*TABLES]))
    (tmp_path / name).write_bytes(TABLES[name](rows))
    dataset = read(tmp_path, name)
    assert not dataset.rejected and found(dataset) == EVERY


LONG = "The ferry crosses twice a day in winter. " * 8
WIDE: list[Row] = [
    {"Question": prompt, "GPT 5": f"{LONG}{TEXT} a {task}", "o3": f"{LONG}{TEXT} b {task}", "Score": task}
    for task, prompt in PROMPTS.items()
]
OF_WIDE = {(system, task): WIDE[int(task) - 1][system] for system in ("GPT 5", "o3") for task in PROMPTS}


@pytest.mark.parametrize("name", TABLES)
def test_column_for_each_system_is_a_report_of_each(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / name).write_bytes(TABLES[name](WIDE))
    with caplog.at_level(logging.WARNING):
        dataset = read(tmp_path, name)
    assert not dataset.rejected and found(dataset) == OF_WIDE
    (said,) = [record.getMessage() for record in caplog.records]
    assert "'GPT 5, o3' as the report of one system each, and left out 'Score'" in said


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"PK", "cannot be opened: File is not a zip file"),
        (
            excel(ROWS, ROWS),
            "has rows in several sheets (Sheet, Sheet1); save the sheet that is meant as .csv",
        ),
        (excel([ROWS[0] | {"text": "x" * 32_767}]), "a cell of 32,767 characters, where Excel cuts texts"),
    ],
    ids=["no archive", "several sheets", "a text that is cut"],
)
def test_excel_file_that_cannot_be_read_says_why(body: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "r.xlsx").write_bytes(body)
    (tmp_path / "r.csv").write_bytes(csv_of(ROWS))
    dataset = read(tmp_path, "r.*")
    assert found(dataset) == EVERY
    (rejected,) = dataset.rejected
    assert said in rejected.why


@pytest.mark.parametrize("layout", ["adjudge", "deepresearch-bench"])
def test_column_for_each_system_is_read_in_every_layout(layout: str, tmp_path: Path) -> None:
    rows = [{"id": int(task), "GPT 5": row["GPT 5"], "o3": row["o3"]} for task, row in enumerate(WIDE, 1)]
    (tmp_path / "r.csv").write_bytes(csv_of(rows))
    tasks = own(tmp_path / "tasks") if layout == "adjudge" else drb(tmp_path / "tasks")
    assert found(load_dataset(layout, str(tasks), [str(tmp_path / "r.csv")])) == OF_WIDE


def test_empty_cell_of_a_system_is_no_report(tmp_path: Path) -> None:
    rows = [WIDE[0] | {"o3": ""}, WIDE[1]]
    for name in ("r.csv", "r.jsonl"):
        (tmp_path / name).write_bytes(TABLES[name](rows))
        dataset = read(tmp_path, name)
        assert found(dataset) == {key: text for key, text in OF_WIDE.items() if key != ("o3", "1")}
    (tmp_path / "r.jsonl").write_bytes(
        json_lines([WIDE[0] | {"GPT 5": None}, WIDE[1] | {"GPT 5": 7, "o3": LONG}, WIDE[0]])
    )
    dataset = read(tmp_path, "r.jsonl")
    assert set(found(dataset)) == {("GPT 5", "1"), ("o3", "1"), ("o3", "2")}
    assert [one.line for one in dataset.rejected] == [2]


@pytest.mark.parametrize(
    "row",
    [
        {"Question": PROMPTS["1"], "GPT 5": "Red.", "o3": "Blue."},
        {"GPT 5": LONG, "o3": LONG},
        {"Question": PROMPTS["1"], "Reference answer": LONG, "notes": LONG},
        {"Question": PROMPTS["1"], "model": "o3", "essay": LONG, "draft": LONG},
        {"task_id": "1", "system": "o3", "body": LONG, "draft": LONG},
        {"task_id": "1", "body": LONG},
    ],
    ids=["short texts", "no question", "names of other things", "a model", "a system", "one long text"],
)
def test_columns_that_may_be_anything_are_asked_about(row: Row, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_bytes(csv_of([row]))
    with pytest.raises(FormatError, match="no 'text'; say which of"):
        read(tmp_path, "r.csv")


def test_report_column_goes_before_columns_of_systems(tmp_path: Path) -> None:
    rows = [{"question": prompt, "answer": "Red.", "essay": LONG} for prompt in PROMPTS.values()]
    (tmp_path / "r.csv").write_bytes(csv_of(rows))
    assert found(read(tmp_path, "r.csv")) == {("r", "1"): "Red.", ("r", "2"): "Red."}


def test_hostile_columns_of_systems_stay_small(tmp_path: Path) -> None:
    """Many columns, headings that are markup, paths or other systems' names, a long cell beside them, rows cut off."""
    names = [
        "../../etc/passwd",
        "<script>x</script>",
        "=cmd()",
        "\u202egpt",
        "a" * 5_000,
        *map(str, range(900)),
    ]
    row = dict.fromkeys(names, LONG) | {"question": PROMPTS["1"], "other": "x" * 100_000}
    body = json_lines([row, row | {"question": PROMPTS["2"]}])
    (tmp_path / "r.jsonl").write_bytes(body + b'\n{"question": "cut\n[1, 2]\n')
    dataset = read(tmp_path, "r.jsonl")
    assert set(dataset.systems) == set(names) and len(dataset.reports) == 2 * len(names)
    assert [one.line for one in dataset.rejected] == [3, 4]
    assert {one.load().text for one in dataset.reports} == {LONG}


SAID = "Ferries run daily. Größe is 40 m."
AT, PAGE, OTHER = 18, "https://ferry.example/1", "https://ferry.example/2"
ANNOTATION = {"type": "url_citation", "url": PAGE, "title": "Ferries", "start_index": 0, "end_index": AT}
ANSWERS: dict[str, dict[str, object]] = {
    "responses": {
        "id": "resp_1",
        "output": [
            {"type": "reasoning", "summary": []},
            {
                "type": "message",
                "content": [{"type": "output_text", "text": SAID, "annotations": [ANNOTATION]}],
            },
        ],
    },
    "chat": {
        "choices": [
            {
                "message": {
                    "content": SAID,
                    "annotations": [{"type": "url_citation", "url_citation": ANNOTATION}],
                }
            }
        ]
    },
    "messages": {
        "content": [
            {"type": "text", "text": SAID[:AT], "citations": [{"url": PAGE, "cited_text": "daily"}]},
            {"type": "text", "text": SAID[AT:]},
        ]
    },
    "gemini": {
        "candidates": [
            {
                "content": {"parts": [{"text": SAID[:9]}, {"text": SAID[9:]}]},
                "groundingMetadata": {
                    "groundingChunks": [{"web": {"uri": OTHER}}, {"web": {"uri": PAGE, "title": "Ferries"}}],
                    "groundingSupports": [
                        {"segment": {"endIndex": len(SAID[:AT].encode())}, "groundingChunkIndices": [1, 9]}
                    ],
                },
            }
        ]
    },
    "annotated": {"text": SAID, "annotations": [ANNOTATION]},
    "numbered": {"text": SAID.replace(".", " [1].", 1), "citations": [PAGE, OTHER]},
    "searched": {"answer": SAID.replace(".", " [2].", 1), "search_results": [{"url": OTHER}, {"url": PAGE}]},
    "labelled": {
        "answer": SAID.replace(".", " [7].", 1),
        "references": [{"citation_number": 7, "link": PAGE, "name": "Ferries"}],
    },
}


@pytest.mark.parametrize("form", ANSWERS)
@pytest.mark.parametrize("nested", [False, True])
def test_citations_apart_from_the_text_are_kept(form: str, nested: bool, tmp_path: Path) -> None:
    row = {"task_id": "1", "system": "a"} | ({"response": ANSWERS[form]} if nested else ANSWERS[form])
    if nested and ("text" in ANSWERS[form] or "answer" in ANSWERS[form]):
        row = {"task_id": "1", "system": "a", **ANSWERS[form]}
    (tmp_path / "r.jsonl").write_text(json.dumps(row, ensure_ascii=False))
    dataset = read(tmp_path, "r.jsonl")
    assert not dataset.rejected
    (report,) = [one.load() for one in dataset.reports]
    (pair,) = account(report.text, report.citations).pairs
    assert pair.statement.startswith("Ferries run daily") and pair.url == PAGE


@pytest.mark.parametrize("packed", [False, True])
def test_storm_folder_is_one_report_with_its_pages(packed: bool, tmp_path: Path) -> None:
    index = {"url_to_unified_index": {PAGE: 3}, "url_to_info": {PAGE: {"title": "Ferries", "snippets": []}}}
    files = {
        "storm/1/storm_gen_article_polished.txt": b"Ferries run daily[3].",
        "storm/1/url_to_info.json": json.dumps(index).encode(),
    }
    if packed:
        (tmp_path / "r.zip").write_bytes(zipped(files))
    for name, body in files.items() if not packed else ():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(body)
    dataset = read(tmp_path, "r.zip" if packed else "storm/*/storm_gen_article_polished.txt")
    (located,) = dataset.reports
    assert (located.system, located.task_id) == ("storm", "1")
    report = located.load()
    assert [pair.url for pair in account(report.text, report.citations).pairs] == [PAGE]


@pytest.mark.parametrize(
    "row",
    [
        {"text": "It is.", "citations": [{"url": "a.md"}], "sources": [PAGE]},
        {"text": "It is.", "output": [{"content": 3}], "choices": [[]], "candidates": [{}]},
        {
            "text": "It is.",
            "annotations": [None, 3, {"url": 4}],
            "references": ["no address"],
            "sources": "x",
        },
        {
            "text": "It is.",
            "candidates": [{"content": {"parts": [{}]}, "groundingMetadata": {"groundingSupports": [3]}}],
        },
    ],
)
def test_what_has_no_known_form_leaves_the_text(row: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text(json.dumps({"task_id": "1", "system": "a", **row}))
    dataset = read(tmp_path, "r.jsonl")
    assert [one.load().text for one in dataset.reports] == ["It is."]


def test_fields_name_any_columns(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows: list[Row] = [
        {"q": PROMPTS[row["task_id"]], "says": row["text"], "who": row["system"], "text": "no"}
        for row in ROWS
    ]
    (tmp_path / "r.csv").write_bytes(csv_of(rows))
    fields = {"prompt": "q", "text": "says", "system": "who"}
    dataset = read(tmp_path, Given("r.csv", fields=fields))
    assert not dataset.rejected and found(dataset) == EVERY and not caplog.records


@pytest.mark.parametrize("pattern", ["*.csv", "r[12].csv", "r[[]1].csv", "r[1].csv", "."])
def test_signs_of_patterns_in_names_are_names(pattern: str, tmp_path: Path) -> None:
    folder = tmp_path / "my [draft] #1 (50%) é"
    folder.mkdir()
    (folder / ("r1.csv" if pattern == "r[12].csv" else "r[1].csv")).write_bytes(csv_of(ROWS))
    dataset = read(tmp_path, str(folder / pattern))
    assert not dataset.rejected and found(dataset) == EVERY


def test_fields_name_what_stands_inside_a_column(tmp_path: Path) -> None:
    rows = [
        {
            "task": {"id": row["task_id"]},
            "config": {"model.name": row["system"]},
            "out": {"all": {"text": row["text"]}},
        }
        for row in ROWS
    ]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, rows)))
    fields = {"task_id": "task.id", "text": "out.all.text", "system": "config.model.name"}
    dataset = read(tmp_path, Given("r.jsonl", fields=fields))
    assert not dataset.rejected and found(dataset) == EVERY
    with pytest.raises(FormatError, match=r"no column 'out\.text'"):
        read(tmp_path, Given("r.jsonl", fields=fields | {"text": "out.text"}))


@pytest.mark.parametrize("name", ["messages", "conversation"])
@pytest.mark.parametrize("shape", ["role", "from", "blocks", "parts", "class", "calls"])
@pytest.mark.parametrize("is_named", [False, True])
def test_last_words_of_a_conversation_are_the_report(
    name: str, shape: str, is_named: bool, tmp_path: Path
) -> None:
    def said(who: str, text: str) -> Row:
        if shape == "from":
            return {"from": {"assistant": "gpt", "user": "human"}[who], "value": text}
        if shape == "parts":
            thought = {"text": "Let me see.", "thought": True}
            return {"role": {"assistant": "model"}.get(who, who), "parts": [thought, {"text": text}]}
        if shape == "class":
            return {"type": {"assistant": "ai", "user": "human"}[who], "content": text}
        if shape == "calls":
            call = {"type": "tool_use", "name": "search", "input": {}}
            before = [{"type": "text", "text": "I look it up."}, call] if who == "assistant" else []
            return {"role": who, "content": [*before, {"type": "text", "text": text}]}
        return {"role": who, "content": text if shape == "role" else [{"type": "text", "text": text}]}

    rows = [
        {
            "task_id": row["task_id"],
            "system": row["system"],
            name: [
                said("user", "Go on."),
                said("assistant", "A draft."),
                said("assistant", row["text"]),
                said("user", "So."),
            ],
        }
        for row in ROWS
    ]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, rows)))
    dataset = read(tmp_path, Given("r.jsonl", fields={"text": name} if is_named else {}))
    assert not dataset.rejected and found(dataset) == EVERY


def test_what_was_taken_for_what_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "o").mkdir()
    for number, row in enumerate(ROWS):
        named = {"id": row["task_id"], "response": row["text"], "model": row["system"]}
        (tmp_path / "o" / f"{number}.json").write_text(json.dumps(named, indent=2))
    with caplog.at_level(logging.WARNING):
        assert found(read(tmp_path, "o/*.json")) == EVERY
    (said,) = [record.getMessage() for record in caplog.records]
    assert (
        "0.json and 3 more" in said and "'response' as the text" in said and "'model' as the system" in said
    )


@pytest.mark.parametrize("end", [".md", ".txt", ".html", ".json"])
@pytest.mark.parametrize("packed", [False, True])
def test_folder_names_systems_and_file_names_tasks(end: str, packed: bool, tmp_path: Path) -> None:
    def body(text: str) -> bytes:
        return json.dumps({"report": text}).encode() if end == ".json" else text.encode()

    plain = {(row["system"], row["task_id"]): f"The pier of {row['system']} stands." for row in ROWS}
    files = {f"deep/{system}/{task}{end}": body(text) for (system, task), text in plain.items()}
    files["deep/~$1.docx"] = b"\5Ann"  # Word's, while it has 1.docx open
    if packed:
        (tmp_path / "out.zip").write_bytes(zipped(files))
    else:
        for name, content in files.items():
            (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "out" / name).write_bytes(content)
    dataset = read(tmp_path, "out.zip" if packed else "out")
    assert not dataset.rejected and found(dataset) == plain


def test_object_of_tasks_holds_their_reports(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"1": "One.", "2": {"article": "Two."}}))
    assert found(read(tmp_path, "a.json")) == {("a", "1"): "One.", ("a", "2"): "Two."}


def test_folders_of_one_system_are_its_samples(tmp_path: Path) -> None:
    for run in ("run1", "run2"):
        for task in PROMPTS:
            (tmp_path / run).mkdir(exist_ok=True)
            (tmp_path / run / f"{task}.md").write_text(f"{run} {task}")
    dataset = read(tmp_path, Given("run*/*.md", "a"))
    samples = {(one.task_id, one.sample): one.load().text for one in dataset.reports}
    assert samples == {(task, n): f"run{n + 1} {task}" for task in PROMPTS for n in (0, 1)}


def test_published_layout_takes_reports_in_any_form(tmp_path: Path) -> None:
    folder = drb(tmp_path / "drb")
    (tmp_path / "x" / "tern").mkdir(parents=True)
    (tmp_path / "x" / "tern" / "1.md").write_text("One.")
    (tmp_path / "x" / "heron.json").write_text(json.dumps([{"id": 2, "response": "Two."}]))
    dataset = load_dataset("deepresearch-bench", str(folder), [str(tmp_path / "x")])
    assert found(dataset) == {("tern", "1"): "One.", ("heron", "2"): "Two."}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"task_id": "1", "system": "a", "body": "x"}, "no 'text'; say which of 'task_id', 'system', 'body'"),
        ({"id": "1", "model": "a", "answer": "x", "output": "y"}, "'output' or 'answer' may be the text"),
        ({"system": "a", "text": "x"}, "no 'task_id'; say which of 'system', 'text'"),
    ],
)
def test_what_cannot_be_told_is_asked_for(row: Row, said: str, tmp_path: Path) -> None:
    lines(tmp_path / "r.jsonl", [row])
    with pytest.raises(FormatError, match=r"r\.jsonl:1: invalid row: ") as caught:
        read(tmp_path, "r.jsonl")
    assert said in str(caught.value) and "fields: {" in str(caught.value)


def test_column_that_is_not_there_is_named_with_the_nearest(tmp_path: Path) -> None:
    lines(tmp_path / "r.jsonl", [{"id": "1", "article": "x", "model": "a"}])
    with pytest.raises(FormatError, match=r"r\.jsonl:1: .*no column 'artcle' .*use 'article'"):
        read(tmp_path, Given("r.jsonl", fields={"text": "artcle"}))


def test_folder_without_reports_says_what_they_may_be(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.bin").write_bytes(b"\0")
    with pytest.raises(FormatError, match=r"out: a folder without reports; .*\.jsonl.*\.md"):
        read(tmp_path, "out")


BROKEN = {
    "r.json": b'{"task_id": "1", "text": ',
    "ragged.csv": b"task_id,system,text\n1,a,x\n1,2,3,4\n",
    "r.jsonl.gz": gzip.compress(b"{}")[:9],
    "r.zip": b"PK\x03\x04",
    "r.xyz": b"text",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_file_costs_the_others_nothing(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(BROKEN[name])
    lines(tmp_path / "good.jsonl", ROWS)
    dataset = read(tmp_path, name, "good.jsonl")
    assert found(dataset) == EVERY
    assert [Path(one.file).name for one in dataset.rejected] == [name]


def test_bombs_are_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_files, "MAX_UNPACKED_BYTES", 1_000_000)
    monkeypatch.setattr(input_files.InputFile.read, "__defaults__", (1_000_000,))
    lines(tmp_path / "good.jsonl", ROWS)
    (tmp_path / "r.jsonl.gz").write_bytes(gzip.compress(b" " * 2_000_000))
    dataset = read(tmp_path, "r.jsonl.gz", "good.jsonl")
    assert [one.why for one in dataset.rejected] == ["larger than 1,000,000 bytes"]
    (tmp_path / "r.zip").write_bytes(zipped({"a/1.md": b" " * 2_000_000}))
    with pytest.raises(FormatError, match="larger than 1,000,000 bytes unpacked"):
        read(tmp_path, "r.zip")


def test_tasks_are_read_in_every_kind_of_file(tmp_path: Path) -> None:
    lines(tmp_path / "r.jsonl", ROWS)
    tasks: list[Row] = [
        {"id": int(key), "prompt": prompt, "language": "en"} for key, prompt in PROMPTS.items()
    ]
    for name, write in TABLES.items():
        if not name.endswith("zip"):
            (tmp_path / "t").mkdir(exist_ok=True)
            (tmp_path / "t" / name).write_bytes(write(tasks))
            dataset = load_dataset("adjudge", str(tmp_path / "t" / name), [str(tmp_path / "r.jsonl")])
            assert {task.id: task.prompt for task in dataset.tasks.values()} == PROMPTS
