"""Every recorded file among the published texts: its published figures on import, and itself on export after it."""

import json
from pathlib import Path

import pytest

from adjudge.engine.commands.export import export_run
from adjudge.engine.commands.import_results import ImportResult, import_results
from adjudge.engine.errors import UsageError
from tests.result_folders import DRB, Row, figures, same_files
from tests.shared_data import shared

# Files of results, and the test that imports them.
RECORDED = {
    "reference/deep_research_bench/results/race/*/raw_results.jsonl": "race",
    "reference/deep_research_bench/results/race/*/race_result.txt": "race",
    "golden/race/*_raw_results.jsonl": "race",
    "golden/race/onyx_run_?.jsonl": "race",
    "reference/deep_research_bench_tickr/judgements/*.jsonl": "judgements",
    "golden/fact/dls_validated.jsonl": "fact",
}
# All others, and what they are.
OTHERS = {
    "golden/*/*.expected.json": "the figures to expect",
    "golden/*/paper_*.json": "a paper's table",
    "golden/stats/*.json": "a paper's table",
    "golden/*/*_cases.jsonl": "inputs of an aggregation, with its result",
    "golden/dr3/*.jsonl": "inputs of an aggregation, with its result",
    "golden/race/dimension_weight_averaging.jsonl": "inputs of an aggregation, with its result",
    "golden/race/*_pointwise.jsonl": "inputs of an aggregation, with its result",
    "golden/race/*_criteria.jsonl": "criteria",
    "golden/race/drb_query.jsonl": "queries",
    "golden/fact/dls_science_03_17_dedup.jsonl": "citations beside a judge's replies: no step of FACT writes such rows",
    "golden/reports/*.jsonl": "reports",
    "reference/*/data/*_data/*.jsonl": "criteria and queries",
    "reference/*/data/test_data/*_data/*.jsonl": "reports",
}


def published_files() -> list[tuple[str, Path]]:
    """Every file of data among the published texts, by its name there."""
    base = shared("golden").parent
    files = [file for name in ("golden", "reference") for file in sorted(shared(name).rglob("*"))]
    kinds = (".json", ".jsonl", ".csv", ".parquet", ".txt", ".arrow", ".db")
    named = [(str(file.relative_to(base)), file) for file in files if file.suffix in kinds]
    return [(name, file) for name, file in named if file.stem not in ("requirements", "LICENSE")]


def test_every_recorded_file_is_imported_or_named() -> None:
    """A new file is listed above, with its test or with what it is."""
    for name, file in published_files():
        kinds = [kind for kind in (RECORDED, OTHERS) if any(file.match(pattern) for pattern in kind)]
        assert len(kinds) == 1, f"{name}: list it in RECORDED or in OTHERS"


def test_files_of_another_kind_are_refused_in_one_line(tmp_path: Path) -> None:
    for name, file in published_files():
        if any(file.match(pattern) for pattern in OTHERS):
            with pytest.raises(UsageError, match=f"has no results of {DRB}") as raised:
                import_results(file, DRB, tmp_path / "run")
            assert "\n" not in str(raised.value), name
            if name.endswith("_dedup.jsonl"):
                assert "_dedup.jsonl:1: invalid row: Object missing required field `prompt`" in str(
                    raised.value
                )


def means(found: ImportResult, system: str) -> dict[str, float | None]:
    return {metric: value for (metric, name), value in figures(found).items() if name == system}


def test_published_race_results_have_their_figures(tmp_path: Path) -> None:
    """Every recorded file of RACE: its published means; a checkout's own files come back byte for byte."""
    checkout = shared("reference/deep_research_bench")
    found = import_results(checkout, DRB, tmp_path / "run")
    shown = [f"{means(found, 'claude-3-7-sonnet-latest')[name]:.4f}" for name in ("overall", "insight")]
    assert shown == ["0.4218", "0.4051"]
    export_run(tmp_path / "run", DRB, tmp_path / "out")
    assert same_files(tmp_path / "out", checkout / "results") == 2
    golden = shared("golden/race")
    for recorded in [*golden.glob("*_raw_results.jsonl"), *golden.glob("onyx_run_?.jsonl")]:
        name = recorded.stem.removesuffix("_raw_results")
        run = tmp_path / name
        got = means(import_results(recorded, DRB, run, system=name), name)
        expected = published_means(golden / f"{name}.expected.json")
        assert {key: got[key] for key in expected} == pytest.approx(expected, abs=1e-9), name
        export_run(run, DRB, tmp_path / f"{name}_out")
        (text,) = (tmp_path / f"{name}_out").rglob("raw_results.jsonl")
        assert read(text) == read(recorded)


def published_means(file: Path) -> dict[str, float]:
    """A recorded file's means: those beside it, or to four places those of the index."""
    if not file.exists():
        assert file.name.startswith("tickr_gpt5")
        found = read(file.with_name("tickr_gpt5-tickr-0917_raw_results.jsonl"))
        names = {"overall_score": "overall"}
        expected = {
            names.get(name, name): sum(row[name] for row in found) / len(found)
            for name in found[0]
            if isinstance(found[0][name], float)
        }
        assert {round(value, 4) for value in expected.values()} == {0.9315, 0.921, 0.9985, 0.984, 0.9528}
        return expected
    means: dict[str, float] = json.loads(file.read_text())["mean"]
    means["overall"] = means.pop("overall_score")
    return means


def read(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_published_judgements_have_their_figures(tmp_path: Path) -> None:
    fork = shared("reference/deep_research_bench_tickr")
    found = import_results(fork, DRB, tmp_path / "run")
    cases = read(shared("golden/race/tickr_gpt5-tickr-0917_pointwise.jsonl"))
    expected = {row["id"]: row["expected_pointwise"] for row in cases}
    export_run(tmp_path / "run", DRB, tmp_path / "out")
    got = {row["id"]: row for row in read(tmp_path / "out/race/gpt5-tickr-0917/raw_results.jsonl")}
    assert found.scorecards == len(expected) == 10
    for task, scores in expected.items():
        assert {name: got[task][name] for name in scores} == pytest.approx(scores, abs=1e-9)
    judged = tmp_path / "out/judgements/gpt5-tickr-0917.jsonl"
    assert judged.read_bytes() == (fork / "judgements/gpt5-tickr-0917.jsonl").read_bytes()


def test_published_fact_results_have_their_figures(tmp_path: Path) -> None:
    file = shared("golden/fact/dls_validated.jsonl")
    summary = json.loads(shared("golden/fact/dls.expected.json").read_text())["summary"]
    found = import_results(file, DRB, tmp_path / "run")
    got = means(found, "dls")
    code, paper = summary["code"], summary["paper"]
    assert got["c_acc_code"] == pytest.approx(code["valid_rate"], abs=1e-9)
    assert got["e_cit_code"] == pytest.approx(code["total_valid_citations"], abs=1e-9)
    assert got["c_acc"] == pytest.approx(
        paper["citation_accuracy_eq3_denominator_all_unique_pairs"], abs=1e-9
    )
    assert got["e_cit"] == pytest.approx(paper["effective_citations_eq4"], abs=1e-9)
    assert (found.pages, found.rejected) == (42, ())
    export_run(tmp_path / "run", DRB, tmp_path / "out")
    assert read(tmp_path / "out/fact/dls/validated.jsonl") == read(file)
    text = "".join(f"{name}: {value}\n" for name, value in code.items())
    assert (tmp_path / "out/fact/dls/fact_result.txt").read_text() == text
