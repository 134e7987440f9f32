"""Recorded results of benchmarks become runs with the published figures, and runs become the benchmarks' own files."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from scipy import stats

from adjudge.engine.commands.compare import compare
from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.commands.export import export_run
from adjudge.engine.commands.import_results import import_results
from adjudge.engine.commands.snapshot import snapshot
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.exports.forms import BENCHMARKS
from adjudge.engine.runs.run import Run
from adjudge.engine.statistics.agreement import with_humans, with_run
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.fetchers.snapshot import SnapshotFetcher
from tests.commands import run
from tests.examples import shipped
from tests.layouts import lines
from tests.result_folders import DRB, Row, dr3_result, fact_row, figures, race_row, same_files, written

FACT_ROWS = [
    fact_row(1, {"https://a.example/x": ["supported", "unsupported"], "https://b.example/": ["unknown"]}),
    fact_row(2, {}),
    fact_row(3, {"https://a.example/x": ["supported", "supported"], "doi:10.1/x": ["unsupported"]}),
]
FACT_FIGURES = "total_citations: 2.5\ntotal_valid_citations: 1.5\nvalid_rate: 0.6\n"


# RACE and FACT


def test_race_results_survive_import_and_export(tmp_path: Path) -> None:
    rows = [race_row(2, 0.41), race_row(10, 1 / 3), {"id": 11, "prompt": "Why 11?", "error": "no reply"}]
    written(tmp_path / "results/race/one/raw_results.jsonl", rows)
    names = ("Comprehensiveness", "Insight", "Instruction Following", "Readability", "Overall Score")
    (tmp_path / "results/race/one/race_result.txt").write_text("".join(f"{name}: 0.3717\n" for name in names))
    found = import_results(tmp_path / "results", DRB, tmp_path / "run", judge="a judge")
    assert (found.scorecards, found.unscored, found.systems) == (3, 1, ("one",))
    assert any(
        "recorded by deepresearch-bench, judged by a judge" in note for note in found.leaderboard.notes
    )
    export_run(tmp_path / "run", DRB, tmp_path / "out")
    assert same_files(tmp_path / "out", tmp_path / "results") == 2


def fact_folder(folder: Path) -> Path:
    """The four files of FACT as its steps leave them, and the text of its figures."""
    for number, name in enumerate(("extracted", "deduplicated", "scraped", "validated")):
        rows = json.loads(json.dumps(FACT_ROWS))
        for row in rows:
            for source in row["citations_deduped"].values():
                for key in ("article_id", "validate_res", "validate_error") if number < 3 else ():
                    del source[key]
                if number < 2:
                    source["url_content"] = None
            if number == 0:
                del row["citations_deduped"]
        if number == 0:
            rows.append({"id": 4, "prompt": "Why 4?", "article": "B.", "citations": "extraction failed"})
        written(folder / "fact/one" / f"{name}.jsonl", rows)
    (folder / "fact/one/fact_result.txt").write_text(FACT_FIGURES)
    return folder


def test_fact_results_survive_import_and_export(tmp_path: Path) -> None:
    folder = fact_folder(tmp_path / "results")
    found = import_results(folder, DRB, tmp_path / "run")
    assert (found.scorecards, found.unscored, found.pages) == (4, 1, 2)
    assert figures(found)["supported", "one"] == 1.0  # over the three tasks that state it
    export_run(tmp_path / "run", DRB, tmp_path / "out")
    assert same_files(tmp_path / "out", folder) == 5


def test_fact_figures_are_those_of_paper_and_code(tmp_path: Path) -> None:
    file = written(tmp_path / "one_validated.jsonl", FACT_ROWS)
    found = figures(import_results(file, DRB, tmp_path / "run"))
    assert found["c_acc", "one"] == pytest.approx((1 / 3 + 0 + 2 / 3) / 3)
    assert (found["c_acc_code", "one"], found["e_cit", "one"]) == (pytest.approx(3 / 5), pytest.approx(1.0))
    assert found["e_cit_code", "one"] == pytest.approx(3 / 2)
    written_files = export_run(tmp_path / "run", DRB, tmp_path / "out").files
    text = next(Path(file) for file in written_files if file.endswith("fact_result.txt")).read_text()
    assert text == FACT_FIGURES


def rows_of(run: Path) -> dict[tuple[str, str, int], Row]:
    """The score rows of a run by task, metric and sample."""
    return {
        (row["task_id"], row["metric"], row["sample"]): row
        for row in pq.read_table(run / "scores.parquet").to_pylist()
    }


def test_url_without_verdicts_leaves_bounds(tmp_path: Path) -> None:
    row = fact_row(1, {"https://a.example/": ["supported"], "https://b.example/": []})
    row["citations_deduped"]["https://b.example/"] |= {"facts": ["x"], "validate_error": "no JSON"}
    found = import_results(written(tmp_path / "one.jsonl", [row]), DRB, tmp_path / "run")
    said = figures(found)
    assert (said["supported", "one"], said["judged", "one"]) == (1.0, 1.0)
    rows = rows_of(tmp_path / "run")
    for metric in ("c_acc", "c_acc_code"):
        one = rows["1", metric, 0]
        assert (one["value"], one["low"], one["high"], one["answered"], one["parts"]) == (1, 0.5, 1, 1, 2)
    boards = {one.metric: one for one in build_leaderboard([tmp_path / "run"]).metrics}
    assert boards["c_acc_code"].headline and not boards["c_acc"].headline
    assert boards["c_acc"].standings[0].bound_low == 0.5


@pytest.mark.parametrize(
    ("scraped", "error", "kind", "high"),
    [
        ("scrape failed: 404", "no JSON", "unreachable", 1.0),
        ("A page.", "page_gone", "unreachable", 1.0),
        ("A page.", "no JSON", "missing", 1.0),
        ("scrape failed: 404", None, "supported", 0.5),
    ],
)
def test_recorded_url_counts_by_what_is_known_of_it(
    tmp_path: Path, scraped: str, error: str | None, kind: str, high: float
) -> None:
    """A verdict stands whatever was scraped; without one, a page that was not scraped is unsupported."""
    urls = {"https://a.example/": ["unsupported"], "https://b.example/": ["supported"]}
    row = fact_row(1, urls)
    row["citations_deduped"]["https://b.example/"] |= {"url_content": scraped, "validate_error": error}
    import_results(written(tmp_path / "one.jsonl", [row]), DRB, tmp_path / "run")
    (card,) = Run.open(tmp_path / "run").cards
    assert [line.outcome.kind for line in card.evidence] == ["unsupported", kind]
    bounds = card.bounds["c_acc"]
    assert (bounds.low, bounds.high) == (0.5 if kind == "supported" else 0.0, 0.5)
    assert bounds.answered == (1 if kind == "missing" else 2)
    assert card.scores["c_acc"] == bounds.low


def test_recorded_pages_are_a_snapshot(tmp_path: Path) -> None:
    """A run of our own reads them in place of the web."""
    import_results(written(tmp_path / "one.jsonl", FACT_ROWS), DRB, tmp_path / "run")

    async def texts(folder: Path) -> dict[str, str]:
        fetcher = SnapshotFetcher(folder)
        try:
            return {page.url: page.text async for page in fetcher.pages()}
        finally:
            await fetcher.close()

    kept = asyncio.run(texts(tmp_path / "run/pages"))
    assert kept["https://a.example/x"] == "Title\n\n\n\nPage <https://a.example/x> & more"
    snapshot(tmp_path / "run", tmp_path / "pages")
    assert asyncio.run(texts(tmp_path / "pages")) == kept
    with pytest.raises(UsageError, match="already holds a snapshot"):
        snapshot(tmp_path / "run", tmp_path / "pages")


def test_judgements_without_reference_are_weighed_by_the_folder(tmp_path: Path) -> None:
    names = ("comprehensiveness", "insight", "instruction_following", "readability")
    gold = {
        "id": 1,
        "prompt": "Why?",
        "dimension_weight": dict.fromkeys(names, 0.25),
        "criterions": {name: [{"criterion": "c", "explanation": "", "weight": 1.0}] for name in names},
    }
    details = {name: [{"criterion": "c", "analysis": "", "target_score": 7.5}] for name in names}
    row = {"id": 1, "prompt": "Why?", "mode": "no_reference", "judge_details": details}
    file = written(tmp_path / "results/judgements/one.jsonl", [row])
    with pytest.raises(UsageError, match=r"one\.jsonl:1: .*no criteria for this task"):
        import_results(tmp_path / "results", DRB, tmp_path / "run")
    written(tmp_path / "results/data/criteria.jsonl", [gold])
    found = figures(import_results(tmp_path / "results", DRB, tmp_path / "run"))
    assert (found["overall", "one"], found["total", "one"]) == (0.75, 7.5)
    export_run(tmp_path / "run", DRB, tmp_path / "out")
    assert (tmp_path / "out/judgements/one.jsonl").read_bytes() == file.read_bytes()


def test_results_before_the_verdicts_have_their_counts(tmp_path: Path) -> None:
    """No remedy is offered: there is nothing to run again."""
    row = json.loads(json.dumps(FACT_ROWS[0]))
    for source in row["citations_deduped"].values():
        source |= {"url_content": None}
        del source["article_id"], source["validate_res"], source["validate_error"]
    found = import_results(written(tmp_path / "one_deduplicated.jsonl", [row]), DRB, tmp_path / "run")
    assert (figures(found)["pairs", "one"], found.unscored) == (3.0, 1)
    (note,) = [note for note in found.leaderboard.notes if "fact c_acc_code: 1 unscored" in note]
    assert note.endswith("; missing in the recorded results")


# Other benchmarks


def test_livedrbench_results_survive_import_and_export(tmp_path: Path) -> None:
    rows = [
        {"key": "1", "category": "flights", "precision": 0.5, "recall": 0.25, "f1": 1 / 3},
        {"key": "2", "category": "entities", "precision": 1.0, "recall": 1.0, "f1": 1.0},
    ]
    for name, content in (("alone", rows), ("with_averages", [rows, {"overall": {"f1": 0.5}}])):
        file = tmp_path / name / "one.json"
        file.parent.mkdir()
        file.write_text(json.dumps(content))
        found = figures(import_results(file, "livedrbench", tmp_path / f"{name}_run"))
        assert found["f1", "one"] == pytest.approx(2 / 3)
        export_run(tmp_path / f"{name}_run", "livedrbench", tmp_path / f"{name}_out")
        read = json.loads((tmp_path / f"{name}_out/one.json").read_text())
        assert [{**row, "key": str(row["key"])} for row in read] == rows
    table = (tmp_path / "alone_out/one.txt").read_text().splitlines()
    assert table == [
        "entities: Precision: 1.000, Recall: 1.000, F1: 1.000",
        "flights: Precision: 0.500, Recall: 0.250, F1: 0.333",
        "overall: Precision: 0.750, Recall: 0.625, F1: 0.667",
    ]


def test_key_points_survive_import_and_export(tmp_path: Path) -> None:
    """In the published spelling and the right one; a bad entry costs the others nothing."""
    labels = {"1": ["Supported", "It says so."], "2": ["Omitted", "…"], "3": ["Contradicted", ""]}
    entry = {"labels": labels, "support_rate": 100 / 3, "contradicted_rate": 100 / 3}
    entries = {"q1": entry | {"ommitted_rate": 100 / 3}, "q2": entry | {"omitted_rate": 100 / 3}}
    file = tmp_path / "results/one/evaluation_results_kpr_judge.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(entries | {"q3": {"labels": {"1": ["Perhaps", ""]}}}))
    result = import_results(tmp_path / "results", "deepresearchgym", tmp_path / "run")
    assert [bad.line for bad in result.rejected] == [3]
    found = figures(result)
    rates = [found[name, "one"] for name in ("support", "contradiction", "omission")]
    assert rates == pytest.approx([1 / 3] * 3)
    export_run(tmp_path / "run", "deepresearchgym", tmp_path / "out")
    assert json.loads((tmp_path / "out/one/evaluation_results_kpr.json").read_text()) == entries
    again = import_results(tmp_path / "out", "deepresearchgym", tmp_path / "again")
    assert figures(again) == found


def test_own_key_points_are_exported_as_published(tmp_path: Path) -> None:
    points = [{"point": "The mill closed in 1950."}, {"point": "The weir is of oak."}]
    lines(tmp_path / "tasks.jsonl", [{"id": "1", "prompt": "Why?", "gold": {"keypoints": points}}])
    lines(
        tmp_path / "reports.jsonl",
        [{"task_id": "1", "system": "one", "text": "The mill closed in 1950, after a long dispute."}],
    )
    config = {
        "tasks": str(tmp_path / "tasks.jsonl"),
        "reports": [str(tmp_path / "reports.jsonl")],
        "protocols": ["keypoints"],
        "store": str(tmp_path / "store"),
        "out": str(tmp_path / "run"),
    }
    evaluate(RunConfig.of(config))
    export_run(tmp_path / "run", "deepresearchgym", tmp_path / "out")
    (entry,) = json.loads((tmp_path / "out/one/evaluation_results_kpr.json").read_text()).values()
    assert [label for label, _ in entry["labels"].values()] == ["Supported", "Omitted"]
    assert (entry["support_rate"], entry["omitted_rate"], entry["contradicted_rate"]) == (50.0, 50.0, 0.0)


def test_dr3_results_survive_import_and_export(tmp_path: Path) -> None:
    case = tmp_path / "results/64k/one/001"
    sides = {
        "long_context": {"score": 40.0, "details": {}, "available": True},
        "source_documents": {"score": None, "details": {}, "available": False},
    }
    dr3_result(case, "information_recall", 40.0, components=sides, note="…")
    for metric, score in (
        ("factual_accuracy", 60.0),
        ("overall_quality", 80.0),
        ("format_compliance", 100.0),
    ):
        dr3_result(case, metric, score)
    dr3_result(case, "citation_coverage", -1.0, status="failed", error="no reply")
    found = figures(import_results(tmp_path / "results", "dr3-eval", tmp_path / "run"))
    assert found["ir_sc", "one"] == found["ir", "one"] == 0.4
    assert (found["fa_lenient", "one"], found["average_code", "one"]) == (0.6, pytest.approx(0.7))
    export_run(tmp_path / "run", "dr3-eval", tmp_path / "out")
    assert same_files(tmp_path / "out", tmp_path / "results") == 5


def test_latest_dr3_result_counts(tmp_path: Path) -> None:
    case = tmp_path / "results/64k/one/001"
    dr3_result(case, "overall_quality", 10.0, "20260101_120000")
    dr3_result(case, "overall_quality", 90.0, "20260102_120000")
    found = figures(import_results(tmp_path / "results", "dr3-eval", tmp_path / "run"))
    assert found["dq", "one"] == 0.9


# Beside runs of our own


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A run of RACE's and FACT's, with a gone page among its citations."""
    lines(tmp_path / "tasks.jsonl", [{"id": str(task), "prompt": f"Why {task}?"} for task in (1, 3)])
    text = "Rain fell in May [1]. It was warm [2].\n\n## References\n[1] https://a.example/x\n[2] https://c.example/"
    lines(tmp_path / "r.jsonl", [{"task_id": t, "system": "one", "text": text} for t in ("1", "3")])
    lines(
        tmp_path / "pages/index.jsonl",
        [{"url": "https://a.example/x", "file": "a.html"}, {"url": "https://c.example/", "status_code": 404}],
    )
    (tmp_path / "pages/a.html").write_text("<p>Rain fell in May.</p>")
    config = {
        "tasks": str(tmp_path / "tasks.jsonl"),
        "reports": [str(tmp_path / "r.jsonl")],
        "protocols": [{"name": "fact", "extraction": "markers"}],
        "fetch": {"mode": "snapshot", "snapshot": str(tmp_path / "pages")},
        "store": str(tmp_path / "store"),
        "out": str(tmp_path / "own"),
    }
    evaluate(RunConfig.of(config))
    return tmp_path / "own"


def test_own_run_exports_what_the_benchmark_would_count(tmp_path: Path, own: Path) -> None:
    """The exported files, imported again, have the figures of the code that our own run has."""
    export_run(own, DRB, tmp_path / "out")
    rows = [json.loads(line) for line in (tmp_path / "out/fact/one/validated.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == [1, 3]
    gone = rows[0]["citations_deduped"]["https://c.example/"]
    assert (gone["validate_res"], gone["validate_error"]) == ([], "page_gone")
    assert "Rain fell in May." in rows[0]["citations_deduped"]["https://a.example/x"]["url_content"]
    again = figures(import_results(tmp_path / "out", DRB, tmp_path / "again"))
    mine = {metric.metric: metric.standings[0].as_published for metric in build_leaderboard([own]).metrics}
    for name in ("c_acc", "e_cit", "unreachable", "c_acc_code", "e_cit_code", "supported"):
        assert again[name, "one"] == pytest.approx(mine[name]), name


@pytest.mark.parametrize(
    ("example", "benchmark", "metrics"),
    [
        ("livedrbench", "livedrbench", ("f1", "precision", "recall")),
        ("dr3", "dr3-eval", ("ir_uf", "fa_lenient", "cc_lenient", "if")),
    ],
)
def test_exported_runs_are_imported_with_their_figures(
    tmp_path: Path, example: str, benchmark: str, metrics: tuple[str, ...]
) -> None:
    file = shipped(example) / "adjudge.yaml"
    evaluate(RunConfig.load(file, out=str(tmp_path / "run"), store=str(tmp_path / "store")))
    export_run(tmp_path / "run", benchmark, tmp_path / "out")
    import_results(tmp_path / "out", benchmark, tmp_path / "again")
    mine, again = (
        {
            (m.metric, row.system): row.as_published
            for m in build_leaderboard([run]).metrics
            for row in m.standings
        }
        for run in (tmp_path / "run", tmp_path / "again")
    )
    same = [key for key in again if key[0] in metrics]
    assert len(same) == 2 * len(metrics)
    for key in same:
        assert again[key] == pytest.approx(mine[key]), key


def test_recorded_run_ranks_beside_our_own(
    tmp_path: Path, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adjudge.engine.statistics.agreement.RESAMPLES", 20)
    import_results(
        written(tmp_path / "one.jsonl", [FACT_ROWS[0], FACT_ROWS[2]]), DRB, tmp_path / "run", judge="g"
    )
    board = build_leaderboard([own, tmp_path / "run"])
    assert {row.system for row in board.metrics[0].standings} == {"one", "one (recorded, g)"}
    assert all(row.rank is not None for row in board.metrics[0].standings if "recorded" in row.system)
    assert any("recorded by deepresearch-bench, judged by g" in note for note in board.notes)
    (agreement,) = [one for one in with_run(own, tmp_path / "run") if one.metric == "supported"]
    assert agreement.n_cases == 2


def test_recorded_runs_are_compared_and_held_against_people(tmp_path: Path) -> None:
    for system, better in (("a", 0.1), ("b", 0.0)):
        rows = [race_row(task, 0.3 + task / 50 + better) for task in range(1, 9)]
        written(tmp_path / f"results/race/{system}/raw_results.jsonl", rows)
    import_results(tmp_path / "results", DRB, tmp_path / "run")
    found = {one.metric: one for one in compare(tmp_path / "run", "a", "b").metrics}
    assert found["overall"].difference == pytest.approx(0.1)
    marks = {"a": {"Comprehensiveness": 8}, "b": {"Comprehensiveness": 6}}
    human = written(
        tmp_path / "human_RACE_annotation.jsonl",
        [{"id": task, "annotation_id": "x", "dimension_scores": marks} for task in range(1, 9)],
    )
    (agreement,) = with_humans(tmp_path / "run", human)
    assert (agreement.metric, agreement.par) == ("comprehensiveness", 1.0)


def test_agreement_is_pooled_and_held_against_people(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    marks: dict[tuple[int, str], list[int]] = {}
    judged: dict[tuple[int, str], float] = {}
    for system in ("a", "b", "c"):
        for task in range(1, 9):
            judged[task, system] = float(rng.uniform(0.3, 0.7))
            marks[task, system] = rng.integers(2, 10, 2).tolist()
        rows = [race_row(task, judged[task, system]) for task in range(1, 9)]
        written(tmp_path / f"results/race/{system}/raw_results.jsonl", rows)
    import_results(tmp_path / "results", DRB, tmp_path / "run")
    lines = [
        f"{task},{system},{rater},race.overall,{mark}"
        for (task, system), given in marks.items()
        for rater, mark in enumerate(given)
    ]
    file = tmp_path / "human.csv"
    file.write_text("\n".join(["task_id,system,rater,metric,value", *lines]))
    (found,) = with_humans(tmp_path / "run", file)
    people, judge = [np.mean(given) for given in marks.values()], [*judged.values()]
    assert found.pooled_r == pytest.approx(stats.pearsonr(people, judge).statistic, abs=1e-4)
    assert found.pooled_rho == pytest.approx(stats.spearmanr(people, judge).statistic)
    # Of two raters, each is the others of the other: the share of equal signs of their differences.
    signs = [
        np.sign(marks[task, one][0] - marks[task, two][0])
        == np.sign(marks[task, one][1] - marks[task, two][1])
        for task in range(1, 9)
        for one, two in (("a", "b"), ("a", "c"), ("b", "c"))
    ]
    assert found.par_people == pytest.approx(np.mean(signs))
    low, high = found.intervals["pooled_r"]
    assert low <= found.pooled_r <= high


def test_recorded_system_is_listed_where_it_has_results(tmp_path: Path) -> None:
    written(tmp_path / "results/race/a/raw_results.jsonl", [race_row(1, 0.5)])
    written(tmp_path / "results/fact/b/validated.jsonl", [FACT_ROWS[0]])
    board = import_results(tmp_path / "results", DRB, tmp_path / "run").leaderboard
    listed = {board.protocol: {row.system for row in board.standings} for board in board.metrics}
    assert listed == {"race": {"a"}, "fact": {"b"}}


def test_scores_are_exported_with_names_in_clear(tmp_path: Path, own: Path) -> None:
    files = export_run(own, "scores", tmp_path / "out").files
    parquet = pq.read_table(files[0]).to_pylist()
    assert {row["system"] for row in parquet} == {"one"} and {row["judge"] for row in parquet} == {"lexical"}
    assert [json.loads(line) for line in Path(files[2]).read_text().splitlines()] == parquet
    assert pyarrow.csv.read_csv(files[1]).num_rows == len(parquet)


def every_eval_ever_schema() -> dict[str, Any]:
    """The project's own JSON schema, out of its wheel; it is kept in the user's cache and skipped without a network."""
    name = "every_eval_ever-0.3.0-py3-none-any.whl"
    kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "adjudge-tests"
    if not (kept / name).exists():
        options = [
            "--no-deps",
            "--only-binary=:all:",
            "--python-version",
            "3.12",
            "--quiet",
            "--dest",
            str(kept),
        ]
        command = [sys.executable, "-m", "pip", "download", *options, "every-eval-ever==0.3.0"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"the package every-eval-ever cannot be downloaded: {done.stderr[-200:]}")
    with zipfile.ZipFile(kept / name) as wheel:
        schema: dict[str, Any] = json.loads(wheel.read("every_eval_ever/schemas/eval.schema.json"))
    return schema


def test_every_eval_ever_records_fit_its_own_schema(tmp_path: Path, own: Path) -> None:
    folders = [own]
    for example in ("dr3", "rigorous", "livedrbench"):
        file = shipped(example) / "adjudge.yaml"
        folders.append(tmp_path / example)
        evaluate(RunConfig.load(file, out=str(folders[-1]), store=str(tmp_path / "store")))
    import_results(written(tmp_path / "two.jsonl", [race_row(1, 0.5)]), DRB, tmp_path / "run", judge="g")
    files = [
        file
        for folder in (*folders, tmp_path / "run")
        for file in export_run(folder, "every-eval-ever", tmp_path / "out").files
    ]
    assert len(files) == 2 + 3 * 2
    check = Draft7Validator(every_eval_ever_schema())
    for file in files:
        assert [error.message for error in check.iter_errors(json.loads(Path(file).read_text()))] == []


def test_every_eval_ever_records_hold_the_figures(tmp_path: Path, own: Path) -> None:
    (file,) = export_run(own, "every-eval-ever", tmp_path / "out").files
    record = json.loads(Path(file).read_text())
    assert Path(file).parent.relative_to(tmp_path / "out").parts == ("fact", "unknown", "one")
    assert record["source_metadata"]["source_type"] == "evaluation_run"
    for one in record["evaluation_results"]:
        assert one["metric_config"]["min_score"] <= one["score_details"]["score"]
        assert one["score_details"]["score"] <= one["metric_config"]["max_score"]
    again = export_run(own, "every-eval-ever", tmp_path / "out").files
    assert again == (file,)


# What cannot be used


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (race_row(1, 1.5), "Expected `float` <= 1.0"),
        (race_row(1, 0.5) | {"overall_score": "high"}, "Expected `float"),
        (race_row(1, 0.5) | {"insight": None}, "a score is missing"),
        ({"id": [1], "prompt": "", "citations": []}, "Expected"),
        ({"id": 1, "citations": []}, "missing required field `prompt`"),
        (fact_row(1, {"https://a.example/": ["maybe"]}), "Invalid enum value 'maybe'"),
    ],
)
def test_invalid_row_is_left_out_by_its_place(tmp_path: Path, row: Row, said: str) -> None:
    good = race_row(9, 0.5) if "overall_score" in row else fact_row(9, {})
    file = written(tmp_path / "one.jsonl", [good, row])
    found = import_results(file, DRB, tmp_path / "run")
    (rejected,) = found.rejected
    assert (rejected.file, rejected.line, found.scorecards) == (str(file), 2, 1)
    assert said in rejected.why


def test_every_benchmark_has_a_reader() -> None:
    assert BENCHMARKS == ("deepresearch-bench", "livedrbench", "dr3-eval", "deepresearchgym")


def test_wrong_format_and_binary_file_are_named(tmp_path: Path) -> None:
    file = written(tmp_path / "race/wren/raw_results.jsonl", [race_row(1, 0.5)])
    with pytest.raises(UsageError, match=f"no results of livedrbench, but of {DRB}: --format {DRB}"):
        import_results(tmp_path / "race", "livedrbench", tmp_path / "run")
    file.write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    with pytest.raises(UsageError, match=r"raw_results\.jsonl: not JSON; a file of JSON Lines"):
        import_results(tmp_path / "race", DRB, tmp_path / "run")


@pytest.mark.parametrize("benchmark", BENCHMARKS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=80) | st.sampled_from([b"[" * 5000, b'{"id": 1, "overall_score": 1e999}']))
def test_any_bytes_are_no_results_or_named(benchmark: str, content: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "results/64k/one/001"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("raw_results.jsonl", "one.json", "eval_overall_quality.json", "evaluation_results_kpr.json"):
        (folder / name).write_bytes(content)
    with pytest.raises(UsageError, match="has no results") as raised:
        import_results(tmp_path / "results", benchmark, tmp_path / "run")
    assert "\n" not in str(raised.value)


def test_second_file_of_other_results_is_left_out_by_its_name(tmp_path: Path) -> None:
    for folder, share in (("x", 0.5), ("y", 0.6)):
        rows = [race_row(1, share), *([race_row(2, 0.4)] if folder == "y" else [])]
        written(tmp_path / folder / "race/one/raw_results.jsonl", rows)
    found = import_results(tmp_path, DRB, tmp_path / "run")
    (line,) = found.rejected
    assert "y/race/one/raw_results.jsonl:1: system 'one', task '1' was given before with other" in str(line)
    rows = rows_of(tmp_path / "run")
    assert (rows["1", "overall", 0]["value"], rows["2", "overall", 0]["value"]) == (0.5, 0.4)


def test_repeated_row_is_another_sample(tmp_path: Path) -> None:
    fact = [fact_row(1, {"https://a.example/": [verdict]}) for verdict in ("supported", "unsupported")]
    written(
        tmp_path / "in/race/one/raw_results.jsonl", [race_row(1, 0.5), race_row(1, 0.6), race_row(1, 0.5)]
    )
    written(tmp_path / "in/fact/one/validated.jsonl", [*fact, fact[0]])
    found = import_results(tmp_path / "in", DRB, tmp_path / "run")
    assert not found.rejected
    rows = rows_of(tmp_path / "run")
    for metric, values in (("overall", [0.5, 0.6]), ("c_acc", [1, 0])):
        given = [row["value"] for (_, name, _), row in sorted(rows.items()) if name == metric]
        assert given == values, "the same row once more is no other sample"


def test_bad_file_does_not_cost_its_neighbours(tmp_path: Path) -> None:
    folder = tmp_path / "in/race"
    good = json.dumps(race_row(1, 0.5)).encode()
    (folder / "half").mkdir(parents=True)
    (folder / "half/raw_results.jsonl").write_bytes(b'{"id": 1, "overall\n' + good + b"\n\xff\n")
    (folder / "none/raw_results.jsonl").mkdir(parents=True)
    written(folder / "one/raw_results.jsonl", [race_row(1, 0.5)])
    found = import_results(tmp_path / "in", DRB, tmp_path / "run")
    assert found.systems == ("half", "one")
    named = [str(line).removeprefix(f"{folder}/").partition(": ")[0] for line in found.rejected]
    assert named == ["half/raw_results.jsonl:1", "half/raw_results.jsonl:3", "none/raw_results.jsonl"]


def test_import_keeps_what_is_in_the_way(tmp_path: Path, own: Path) -> None:
    file = written(tmp_path / "one.jsonl", [race_row(1, 0.5)])
    with pytest.raises(UsageError, match=r"out: .* is not empty; pass a new folder"):
        import_results(file, DRB, own)


def test_import_says_what_a_killed_one_left(tmp_path: Path) -> None:
    file = written(tmp_path / "one.jsonl", [race_row(1, 0.5)])
    code = (
        "import os, sys; from adjudge.engine.commands import import_results as it;"
        "it._store = lambda *all: os.kill(os.getpid(), 9); it.import_results(*sys.argv[1:])"
    )
    words = (str(file), DRB, str(tmp_path / "run"))
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    with pytest.raises(UsageError, match=r"run holds half an import, .* remove it, or pass a new folder"):
        import_results(*words)


def test_import_and_export_through_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "results/raw_results.jsonl", [race_row(1, 0.5)])
    imported = ("import", file, "--format", DRB, "--out", tmp_path / "run", "--system", "x", "--json")
    code, out, error = run(capsys, *imported)
    assert code == 0, error
    assert json.loads(out)["systems"] == ["x"]
    code, _, error = run(capsys, "show", tmp_path / "run", "--task", "1", "--system", "x", "--json")
    assert code == 0, error
    assert run(capsys, "export", tmp_path / "run", "--format", DRB, "--out", tmp_path / "out")[0] == 0
    assert (tmp_path / "out/race/x/raw_results.jsonl").read_bytes() == file.read_bytes()
    code, _, error = run(capsys, "export", tmp_path / "run", "--format", "race", "--out", tmp_path / "out")
    assert code == 2 and "unknown format 'race'" in error
    unlike = ("export", tmp_path / "run", "--format", "livedrbench", "--out", tmp_path / "out")
    code, _, error = run(capsys, *unlike)
    assert code == 2 and "has no results for livedrbench" in error
    assert run(capsys, "import", tmp_path / "none", "--format", DRB, "--out", tmp_path / "r")[0] == 2
