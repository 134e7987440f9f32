"""Input that cannot be used stays out of the scores by file and line, in every layout."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.commands.plan import plan
from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.formats.dataset import Dataset, FormatError, Given, load_dataset
from adjudge.engine.runs.choice import chosen_dataset
from adjudge.engine.statistics.build import build_leaderboard
from tests.layouts import (
    HUGE,
    LAYOUTS,
    PROMPTS,
    VALUES,
    Row,
    any_line,
    changed,
    check_line,
    drb,
    lines,
    own,
    rigorous,
)
from tests.nightly import quick_or_whole
from tests.shared_data import shared


def read(layout: str, folder: Path, content: bytes, name: str = "s.jsonl") -> Dataset:
    tasks = LAYOUTS[layout][0](folder / "data")
    file = folder / "systems" / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    return load_dataset(layout, str(tasks), [str(file)])


def with_bad(layout: str, folder: Path, bad: Row | str | bytes) -> Dataset:
    """The dataset of a good row, and after an empty line, `bad`."""
    good = json.dumps(LAYOUTS[layout][1]).encode()
    line = bad if isinstance(bad, bytes) else (bad if isinstance(bad, str) else json.dumps(bad)).encode()
    return read(layout, folder, good + b"\n\n" + line + b"\n")


def with_number(row: Row, digits: str) -> str:
    return json.dumps({**row, "number": "N"}).replace('"number": "N"', digits)


BAD: list[tuple[str, Row | str | bytes]] = [
    *((layout, LAYOUTS[layout][1] | {"prompt": PROMPTS["2"]}) for layout in LAYOUTS),
    *((layout, b'{"prompt": "\xff\xfe"}') for layout in LAYOUTS),
    *((layout, "[" * 100_000) for layout in LAYOUTS),
    *((layout, '{"id": "\\ud800", "text": "\\udc00"}') for layout in LAYOUTS),
    *((layout, "null") for layout in LAYOUTS),
    ("adjudge", changed("adjudge", sample=2**31)),
    ("adjudge", changed("adjudge", sample=1, seconds=1e200)),
    ("adjudge", changed("adjudge", sample=1, seconds=-1.0)),
    ("adjudge", changed("adjudge", sample=1, usage={"cost": 1e200})),
    ("adjudge", changed("adjudge", sample=1, usage={"total_tokens": 2**70})),
    ("adjudge", with_number(changed("adjudge", sample=1), f'"usage": {{"retrieved": {HUGE}}}')),
    ("adjudge", changed("adjudge", sample=1, citations=[{"url": "https://e.com/", "marker": HUGE}])),
    ("adjudge", changed("adjudge", sample=1, system=" ")),
    ("deepresearch-bench", with_number({"article": "x"}, f'"id": {2**64}')),
    ("deepresearch-bench", with_number({"article": "x"}, f'"id": {HUGE}')),
    ("livedrbench", with_number({"preds": []}, f'"key": {HUGE}')),
    ("livedrbench", {"key": "2", "preds": None}),
    ("livedrbench", {"key": "2"}),
    ("livedrbench", {"key": "2", "preds": "the mill was built by nobody"}),
    ("livedrbench", with_number({"key": "2"}, f'"preds": [[{HUGE}]]')),
    ("livedrbench", with_number({"key": "2"}, '"preds": [[1e400]]')),
    ("livedrbench", {"key": "1", "question": PROMPTS["2"], "preds": [["a"]]}),
    ("livedrbench", {"question": "Which bridge?", "prediction": "None."}),
    ("dr3-eval", changed("dr3-eval", sample=1, seconds=1e200)),
    ("dr3-eval", changed("dr3-eval", sample=1, citations=[{"url": "u", "marker": HUGE}])),
    ("rigorous", changed("rigorous", sample=1, total_tokens=2**70)),
    ("rigorous", changed("rigorous", sample=1, input_tokens=-1)),
    ("drmi", changed("drmi", sample=1, seconds=1e200)),
    ("drmi", changed("drmi", sample=1, total_tokens=2**70)),
]


@pytest.mark.parametrize(("layout", "bad"), BAD, ids=[f"{n}-{layout}" for n, (layout, _) in enumerate(BAD)])
def test_bad_row_is_rejected_by_file_and_line(layout: str, bad: Row | str | bytes, tmp_path: Path) -> None:
    dataset = with_bad(layout, tmp_path, bad)
    assert [(Path(found.file).name, found.line) for found in dataset.rejected] == [("s.jsonl", 3)]
    assert [(report.task_id, report.system) for report in dataset.reports] == [("1", "s")]
    assert [case.report.task_id for case in dataset.cases()] == ["1"]
    assert len(str(dataset.rejected[0])) < 1000


def test_unknown_task_is_rejected_in_every_layout(tmp_path: Path) -> None:
    for number, (layout, (_, row)) in enumerate(LAYOUTS.items()):
        key = next(name for name in ("task_id", "id", "key", "uid") if name in row)
        dataset = with_bad(layout, tmp_path / str(number), {**row, key: "no such task"})
        assert [(found.line, "unknown task" in found.why) for found in dataset.rejected] == [(3, True)]


def test_prompt_of_its_own_task_is_accepted(tmp_path: Path) -> None:
    """White space aside; and words that no task asks say nothing about whose report it is."""
    for number, (layout, (_, row)) in enumerate(LAYOUTS.items()):
        for prompt in (f" {PROMPTS['1'].replace(' ', chr(10))} ", "Something else."):
            dataset = read(
                layout, tmp_path / f"{number}{len(prompt)}", json.dumps(row | {"prompt": prompt}).encode()
            )
            assert not dataset.rejected and dataset.reports


# LiveDRBench: whose answer is missing, and whose cannot be read


def predictions(folder: Path, content: str, name: str = "s.json") -> Dataset:
    return read("livedrbench", folder, content.encode(), name)


def test_question_that_a_file_leaves_out_is_empty(tmp_path: Path) -> None:
    dataset = predictions(tmp_path, '[{"key": "1", "preds": [["a"]]}]')
    assert [(case.task.id, case.report.text) for case in dataset.cases()] == [("1", '[["a"]]'), ("2", "")]


@pytest.mark.parametrize(
    "bad", ['{"preds": [["a"]]}', '{"key": "2", "preds": null}', '{"key": [], "preds": []}', "3"]
)
def test_unreadable_prediction_is_never_an_empty_report(bad: str, tmp_path: Path) -> None:
    dataset = predictions(tmp_path, f'[{{"key": "1", "preds": [["a"]]}}, {bad}]')
    assert [found.line for found in dataset.rejected] == [2]
    assert [case.task.id for case in dataset.cases()] == ["1"]


@pytest.mark.parametrize("name", ["s.json", "s.jsonl"])
def test_file_of_unreadable_predictions_is_an_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"nothing is left to evaluate.*invalid prediction"):
        predictions(tmp_path, '[{"predictions": 1}]' if name == "s.json" else '{"predictions": 1}', name)


def test_predictions_may_be_json_text_or_prose(tmp_path: Path) -> None:
    rows = [
        {"key": "1", "preds": '[["a"]]'},
        {"question": PROMPTS["2"], "prediction": "It was the miller."},
    ]
    first, second = predictions(tmp_path, json.dumps(rows)).cases()
    assert bytes(first.report.answer) == b'[["a"]]'
    assert (second.task.id, second.report.text) == ("2", "It was the miller.")


# DeepResearch Bench: what is in the folder and is not a system


def test_reference_files_are_not_systems(tmp_path: Path) -> None:
    folder = drb(tmp_path)
    for name in ("a", "reference", "reference_cleaned", "criteria"):
        rows: list[Row] = [] if name == "criteria" else [{"id": 1, "article": name}]
        lines(folder / f"{name}.jsonl", rows)
    found = load_dataset("deepresearch-bench", str(folder), [])
    assert found.systems == ["a"] and not found.rejected
    named = load_dataset("deepresearch-bench", str(folder), [str(folder / "*.jsonl")])
    assert named.systems == ["a"]
    assert [Path(one.file).name for one in named.rejected] == ["reference_cleaned.jsonl"]


def test_file_name_that_is_not_utf8_is_an_error(tmp_path: Path) -> None:
    name = tmp_path / "gr\udcfcn.jsonl"
    try:
        name.write_text('{"task_id": "1", "system": "s", "text": "t"}')
    except OSError:
        pytest.skip("this file system has names in UTF-8 only")
    with pytest.raises(FormatError, match="not UTF-8"):
        load_dataset("adjudge", str(own(tmp_path / "data")), [str(tmp_path / "*.jsonl")])


def test_run_with_bad_rows_has_a_leaderboard_afterwards(tmp_path: Path) -> None:
    """Each of them once ended a run, or every leaderboard after it."""
    tasks = own(tmp_path)
    bad = [row for layout, row in BAD if layout == "adjudge" and isinstance(row, dict)]
    lines(tmp_path / "reports.jsonl", [LAYOUTS["adjudge"][1], *bad])
    config = tmp_path / "adjudge.yaml"
    config.write_text(
        f"tasks: {tasks}\nreports: [{tmp_path / 'reports.jsonl'}]\nprotocols: [fact]\njudge: lexical\n"
        f"fetch: {{mode: 'off'}}\nstore: {tmp_path / 'store'}\nout: {tmp_path / 'run'}\n"
    )
    result = evaluate(RunConfig.load(config))
    assert [found.line for found in result.rejected] == list(range(2, 2 + len(bad)))
    assert build_leaderboard([Path(result.out)]).metrics


def test_bad_line_of_a_snapshot_is_named_by_the_run(tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "a.html").write_text("<p>The bridge was built in 1932.</p>")
    index: list[Row] = [
        {"url": "https://e.com/a", "file": "a.html"},
        {"url": "", "file": "a.html"},
        {"url": "https://e.com/a", "status_code": 404},
    ]
    lines(pages / "index.jsonl", index)
    report = "The bridge was built in 1932 [1].\n\n## References\n[1] https://e.com/a\n"
    lines(tmp_path / "reports.jsonl", [LAYOUTS["adjudge"][1] | {"text": report}])
    config = tmp_path / "adjudge.yaml"
    config.write_text(
        f"tasks: {own(tmp_path)}\nreports: [{tmp_path / 'reports.jsonl'}]\nprotocols: [fact]\njudge: lexical\n"
        f"fetch: {{mode: snapshot, snapshot: {pages}}}\nstore: {tmp_path / 'store'}\nout: {tmp_path / 'run'}\n"
    )
    result = evaluate(RunConfig.load(config))
    assert [(Path(found.file).name, found.line) for found in result.rejected] == [
        ("index.jsonl", 2),
        ("index.jsonl", 3),
    ]
    assert result.pages_read == 1 and result.unscored == 0


# Any bytes


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=quick_or_whole(30, 150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_bytes_are_rows_or_rejected_lines(layout: str, data: st.DataObject, tmp_path: Path) -> None:
    line = data.draw(any_line(layout) | st.binary(max_size=60))
    check_line(layout, tmp_path, line)


TASK_FILES = {
    "adjudge": "tasks.jsonl",
    "deepresearch-bench": "query.jsonl",
    "livedrbench": "questions.jsonl",
    "dr3-eval": "1/task.json",
    "rigorous": "DrBench.jsonl",
    "drmi": "papers.jsonl",
}
TASK_FIELDS = (
    "id key uid prompt question query language domain gold category ground_truths misc canary topic".split()
)
TASK_FIELDS += (
    "qsr fak fdk tsl insights checklist plan references statements kind dimension_weight criterions".split()
)


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=quick_or_whole(20, 100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_bytes_are_tasks_or_rejected_lines(layout: str, data: st.DataObject, tmp_path: Path) -> None:
    """The second of two tasks is spoilt: the first one's report is still there to be evaluated."""
    tasks = LAYOUTS[layout][0](tmp_path / "data")
    good, spoilt = (
        (tmp_path / "data" / "2/task.json", tmp_path / "data" / "1/task.json")
        if layout == "dr3-eval"
        else (tmp_path / "data" / TASK_FILES[layout],) * 2
    )
    kept, _, last = good.read_bytes().rpartition(b"\n")
    row = json.loads(last)
    for name in data.draw(st.lists(st.sampled_from(TASK_FIELDS), max_size=4)):
        row[name] = data.draw(VALUES)
    line = json.dumps(row).encode() if data.draw(st.booleans()) else data.draw(st.binary(max_size=60))
    spoilt.write_bytes(kept + b"\n" + line)
    system = tmp_path / "s.jsonl"
    first = "2" if layout == "dr3-eval" else "1"
    key = next(name for name in ("task_id", "id", "key", "uid") if name in LAYOUTS[layout][1])
    kind = type(LAYOUTS[layout][1][key])
    system.write_text(json.dumps(LAYOUTS[layout][1] | {key: kind(first)}))
    try:
        dataset = load_dataset(layout, str(tasks), [str(system)])
    except FormatError as error:
        assert "before with other content" in str(error)
        return
    assert {case.report.task_id for case in dataset.cases()} >= {first}


# Folders as they are published, and files of one system


def bench(folder: Path, *places: str) -> Path:
    lines(folder / "data/prompt_data/query.jsonl", [{"id": 1, "prompt": "Why?"}, {"id": 2, "prompt": "Who?"}])
    for place in places:
        rows = [{"id": number, "article": place, "prompt": ("Why?", "Who?")[number - 1]} for number in (1, 2)]
        lines(folder / "data" / place, rows)
    return folder


def texts(dataset: Dataset) -> set[str]:
    return {case.report.text for case in dataset.cases()}


def test_articles_are_raw_or_cleaned(tmp_path: Path) -> None:
    raw, cleaned = "test_data/raw_data/a.jsonl", "test_data/cleaned_data/a.jsonl"
    folder = str(bench(tmp_path / "both", raw, cleaned, "test_data/cleaned_data/reference.jsonl"))
    assert texts(load_dataset("deepresearch-bench", folder, [])) == {raw}
    assert texts(load_dataset("deepresearch-bench", folder, [], "raw")) == {raw}
    assert texts(load_dataset("deepresearch-bench", folder, [], "cleaned")) == {cleaned}
    alone = str(bench(tmp_path / "alone", cleaned))
    assert texts(load_dataset("deepresearch-bench", alone, [])) == {cleaned}
    with pytest.raises(FormatError, match=r"articles: .* has no raw articles"):
        load_dataset("deepresearch-bench", alone, [], "raw")
    with pytest.raises(FormatError, match="articles: the format 'adjudge' has one form"):
        load_dataset("adjudge", str(own(tmp_path)), [], "raw")
    with pytest.raises(FormatError, match="remove articles: or reports:"):
        load_dataset("deepresearch-bench", folder, [str(Path(folder) / "data" / raw)], "raw")


def test_reports_of_the_hub_set_are_read(tmp_path: Path) -> None:
    """With the queries beside them, or from the prompts in the reports themselves."""
    whole = bench(tmp_path / "whole", "generated_reports/a.jsonl", "generated_reports/b.jsonl")
    assert load_dataset("deepresearch-bench", str(whole), []).systems == ["a", "b"]
    lines(tmp_path / "hub/generated_reports/a.jsonl", [{"id": 1, "prompt": "为什么?", "article": "x"}])
    lines(tmp_path / "hub/human_RACE_annotation.jsonl", [{"id": 1, "dimension_scores": {}}])
    found = load_dataset("deepresearch-bench", str(tmp_path / "hub"), [])
    assert (found.systems, found.tasks["1"].language, found.rejected) == (["a"], "zh", [])


def test_missing_references_are_named_as_the_cause(tmp_path: Path) -> None:
    folder = bench(tmp_path, "test_data/raw_data/a.jsonl")
    config = RunConfig.of(
        {
            "tasks": str(folder),
            "format": "deepresearch-bench",
            "protocols": ["race"],
            "store": str(tmp_path / "store"),
            "out": str(tmp_path / "run"),
        }
    )
    cause = "test_data/cleaned_data/reference.jsonl is missing"
    assert cause in plan(config).lacking["race"]
    assert any(cause in note for note in evaluate(config).leaderboard.notes)


def test_system_is_named_beside_its_files(tmp_path: Path) -> None:
    folder = bench(tmp_path, "x/one.jsonl", "x/two.jsonl")
    one, two = (str(folder / "data/x" / name) for name in ("one.jsonl", "two.jsonl"))
    found = load_dataset("deepresearch-bench", str(folder), [Given(one, "gpt-5"), two])
    assert found.systems == ["gpt-5", "two"]
    assert {case.report.identity for case in found.cases()} == {
        ("gpt-5", "1", 0), ("gpt-5", "2", 0), ("two", "1", 0), ("two", "2", 0),
    }  # fmt: skip


def test_runs_of_one_system_are_its_samples(tmp_path: Path) -> None:
    """In the order of the numbers in their names; files without a common task are one run."""
    folder = bench(tmp_path, *(f"x/run_{number}.jsonl" for number in range(1, 12)))
    found = load_dataset(
        "deepresearch-bench", str(folder), [Given(str(folder / "data/x/run_*.jsonl"), "onyx")]
    )
    samples = {case.report.sample: case.report.text for case in found.cases()}
    assert samples == {number: f"x/run_{number + 1}.jsonl" for number in range(11)}
    parts = [tmp_path / "p/1.jsonl", tmp_path / "p/2.jsonl"]
    for number, part in enumerate(parts, 1):
        lines(part, [{"id": number, "article": "x"}])
    found = load_dataset("deepresearch-bench", str(folder), [Given(str(part), "onyx") for part in parts])
    assert [(report.task_id, report.sample) for report in found.reports] == [("1", 0), ("2", 0)]


def test_file_of_several_systems_cannot_be_one_system(tmp_path: Path) -> None:
    tasks = own(tmp_path)
    rows = [{"task_id": "1", "system": name, "text": "x"} for name in "ab"]
    lines(tmp_path / "reports.jsonl", rows)
    with pytest.raises(FormatError, match=r"several systems \(a, b\), which cannot all be 'c'"):
        load_dataset("adjudge", str(tasks), [Given(str(tmp_path / "reports.jsonl"), "c")])


def test_configuration_names_systems_beside_files(tmp_path: Path) -> None:
    own(tmp_path)
    lines(tmp_path / "r/1.jsonl", [{"task_id": "1", "system": "a", "text": "x"}])
    file = tmp_path / "adjudge.yaml"
    file.write_text("tasks: tasks.jsonl\nreports: [{path: r/*.jsonl, system: b}]\nprotocols: [fact]\n")
    config = RunConfig.load(file)
    assert chosen_dataset(config).systems == ["b"]
    assert RunConfig.of(msgspec.to_builtins(config)) == config
    file.write_text("tasks: tasks.jsonl\nreports: [{system: b}]\n")
    with pytest.raises(ConfigError, match=r"reports\[0\]: lacks path:"):
        RunConfig.load(file)
    file.write_text("tasks: tasks.jsonl\nreports: [{path: r/*.jsonl, fields: {txt: a}}]\n")
    with pytest.raises(ConfigError, match=r"reports\[0\].fields.txt: unknown key; use 'text'"):
        RunConfig.load(file)


def test_queries_of_rigorous_bench_have_two_names(tmp_path: Path) -> None:
    rigorous(tmp_path)
    (tmp_path / "DrBench.jsonl").rename(tmp_path / "RigorousBench.jsonl")
    lines(tmp_path / "Log_s.jsonl", [{"uid": 1, "text": "x"}])
    assert load_dataset("rigorous", str(tmp_path), []).systems == ["s"]


# Published files


def test_published_articles_are_read_whole() -> None:
    """Every system's file of two benchmarks' checkouts, and the reports of three systems."""
    folder = shared("reference/deep_research_bench_tickr")
    dataset = load_dataset("deepresearch-bench", str(folder), [])
    assert dataset.systems == ["claude-opus-tickr-0929", "gpt5-tickr-0917"] and not dataset.rejected
    assert all(case.report.text for case in dataset.cases())
    cleaned = folder / "data/test_data/cleaned_data/*.jsonl"
    assert load_dataset("deepresearch-bench", str(folder), [str(cleaned)]).systems == dataset.systems
    reports = shared("golden/reports") / "*.jsonl"
    queries = shared("reference/deep_research_bench")
    found = load_dataset("deepresearch-bench", str(queries), [str(reports)])
    assert len(found.reports) == 30 and not found.rejected


def test_published_results_are_not_reports() -> None:
    """A file of scores, named by mistake, is rejected line by line."""
    folder = shared("reference/deep_research_bench")
    results = folder / "results/race/claude-3-7-sonnet-latest/raw_results.jsonl"
    with pytest.raises(FormatError, match=r"nothing is left to evaluate.*raw_results\.jsonl:1"):
        load_dataset("deepresearch-bench", str(folder), [str(results)])
