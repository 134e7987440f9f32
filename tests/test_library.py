"""`import adjudge`: evaluations, runs, scores and comparisons from Python, in notebooks too."""

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import adjudge
from tests.examples import shipped
from tests.wheel import ROOT
from tests.worlds import CRITERIA, text, world

QUICKSTART = shipped("quickstart") / "adjudge.yaml"
QUERIES = re.findall(r"^```sql\n(.*?)^```", (ROOT / "docs" / "store.md").read_text("utf-8"), re.M | re.S)
TASKS = [{"id": n, "prompt": f"What is fact {n}?", "gold": {"rubrics": CRITERIA}} for n in range(3)]
REPORTS = [
    {"task_id": n, "system": system, "text": text(system, n)} for n in range(3) for system in ("a", "b")
]


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory) -> adjudge.Run:
    made = tmp_path_factory.mktemp("quickstart")
    return adjudge.evaluate(QUICKSTART, store=str(made / ".adjudge" / "store"), out=str(made / "run"))


def options(folder: Path) -> dict[str, object]:
    return {"protocols": ["rubrics"], "store": str(folder / "store"), "out": str(folder / "run")}


def test_import_loads_nothing_heavy():
    heavy = "numpy pyarrow msgspec numba scipy aiohttp trafilatura rich".split()
    code = f"import adjudge, sys; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_loads_and_is_documented():
    for name in adjudge.__all__:
        assert getattr(adjudge, name).__doc__, name
        assert name in dir(adjudge)
    with pytest.raises(AttributeError, match="nothing"):
        _ = adjudge.nothing


def test_contract_of_protocols_is_in_scoring():
    from adjudge.scoring import Protocol, Question, Scorecard

    assert all((Protocol, Question, Scorecard))


FRAMES = {
    "dictionaries": lambda rows: rows,
    "generator": iter,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.Table.from_pylist,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_rows_of_every_kind_give_the_same_scores(kind, tmp_path):
    made = FRAMES[kind]
    run = adjudge.evaluate(tasks=made(TASKS), reports=made(REPORTS), **options(tmp_path))
    plain = world(tmp_path / "files", systems=2, tasks=3)
    files = adjudge.evaluate(
        plain, tasks=run.folder / "tasks.jsonl", reports=str(run.folder / "reports.jsonl")
    )
    assert len(run.scores.filter(pc.equal(run.scores["metric"], "score"))) == 6
    assert run.scores.equals(files.scores)
    assert run.record.systems == ["a", "b"]


def test_missing_cells_of_a_frame_are_no_fields(tmp_path):
    frame = pd.DataFrame([{**row, "seconds": 1.0 if row["system"] == "a" else np.nan} for row in REPORTS])
    run = adjudge.evaluate(tasks=TASKS, reports=frame, **options(tmp_path))
    assert not run.record.rejected
    written = [json.loads(line) for line in (run.folder / "reports.jsonl").read_text().splitlines()]
    assert {row["system"] for row in written if "seconds" in row} == {"a"}


@pytest.mark.parametrize(
    ("reports", "said"),
    [
        ([{"task_id": "0", "system": "a", "text": object()}], "reports: row 1: cannot be written as JSON"),
        (["text", 3], "reports.*text matches no file"),
        ([7], "reports: row 1: int instead of a mapping"),
    ],
)
def test_rows_that_are_none_are_refused_with_their_place(reports, said, tmp_path):
    with pytest.raises(adjudge.UsageError, match=said):
        adjudge.evaluate(tasks=TASKS, reports=reports, **options(tmp_path))


def test_unknown_argument_is_named(tmp_path):
    with pytest.raises(adjudge.ConfigError, match="arguments: protocol: unknown key; use 'protocols'"):
        adjudge.evaluate(tasks=TASKS, reports=REPORTS, protocol="rubrics", out=str(tmp_path))


def test_tables_have_names_in_clear_and_join(quickstart):
    judgments, evidence, pages = quickstart.judgments, quickstart.evidence, quickstart.pages
    assert set(judgments["system"].to_pylist()) == set(quickstart.record.systems)
    # The leaderboard's line says how many judgments there are; some reports share one.
    assert len(judgments["key"].unique()) == quickstart.record.from_judge
    assert set(evidence["key"].to_pylist()) - {""} <= set(judgments["key"].to_pylist())
    # What a snapshot lacks was never read.
    cited = {
        row["url"] for row in evidence.to_pylist() if row["url"] and row["reason"] != "page_not_in_snapshot"
    }
    assert cited
    assert cited <= set(pages["url"].to_pylist())
    joined = evidence.to_pandas().merge(judgments.to_pandas(), on=["key", "system", "task_id", "protocol"])
    assert set(joined["protocol"]) == {"fact", "race"}
    assert not any(
        pa.types.is_dictionary(field.type)
        for table in (judgments, pages, quickstart.scores)
        for field in table.schema
    )
    assert pl.from_arrow(judgments).height == judgments.num_rows


@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_documented_queries_run_without_our_code(number, quickstart, monkeypatch):
    monkeypatch.chdir(quickstart.folder.parent)
    found = duckdb.sql(QUERIES[number]).fetchall()
    assert len(QUERIES) == 3
    if number == 0:
        ours = quickstart.evidence.to_pylist()
        mine = [row for row in ours if row["protocol"] == "fact" and row["key"]]
        assert sorted(row[:5] for row in found) == sorted(
            (row["system"], row["task_id"], row["what"], row["kind"], row["url"]) for row in mine
        )
    if number == 1:
        assert sum(row[2] for row in found) == quickstart.record.from_judge
    if number == 2:
        assert {row[0] for row in found} == set(quickstart.pages["url"].to_pylist())


def test_a_run_is_opened_again_and_shown(quickstart):
    again = adjudge.open(quickstart.folder)
    assert again.scores.equals(quickstart.scores)
    assert "4 systems" in repr(again)
    shown = again._repr_html_()
    assert "<caption>fact, ranked by c_acc</caption>" in shown
    assert "borealis" in shown
    with pytest.raises(adjudge.UsageError, match="not a run"):
        adjudge.open(quickstart.folder / "nowhere")


def test_names_of_systems_stay_text_in_html(tmp_path):
    reports = [{**row, "system": f"<script>{row['system']}"} for row in REPORTS]
    run = adjudge.evaluate(tasks=TASKS, reports=reports, **options(tmp_path))
    assert "<script>" not in run._repr_html_()
    scored = adjudge.score(prompt="?", text="x", rubrics=["<script>"], store=str(tmp_path / "store"))
    assert "<script>" not in scored._repr_html_()


def test_compare_takes_a_run_or_its_folder(quickstart):
    one = adjudge.compare(quickstart, "borealis", "atlas")
    assert one == adjudge.compare(quickstart.folder, "borealis", "atlas")
    assert one == asyncio.run(adjudge.compare_async(str(quickstart.folder), "borealis", "atlas"))


RUBRICS = ["Names the year.", {"criterion": "Says that the bridge opened.", "points": 3}]
BRIDGE = {"prompt": "When?", "text": "The bridge opened in the year 1999, it says.", "rubrics": RUBRICS}


def test_one_report_is_scored_in_one_line(tmp_path):
    scored = adjudge.score(**BRIDGE, store=str(tmp_path))
    assert scored.value == scored.scores["rubrics.score"]
    assert [one.what for one in scored.cards[0].evidence] == [
        "Names the year.",
        "Says that the bridge opened.",
    ]
    assert scored.reason is None
    empty = adjudge.score(**(BRIDGE | {"text": " "}), store=str(tmp_path))
    assert (empty.value, empty.reason) == (0.0, "report_empty")


def test_a_missing_answer_is_no_score(tmp_path):
    scored = adjudge.score(
        prompt="?", text="x", gold={"race": None}, store=str(tmp_path), fetch={"mode": "off"}
    )
    assert scored.value is None
    assert scored.reason == "gold_invalid"
    with pytest.raises(adjudge.UsageError, match="pass rubrics="):
        adjudge.score(prompt="?", text="x", store=str(tmp_path))


def test_every_call_works_inside_a_running_loop(tmp_path):
    async def notebook() -> list[object]:
        plain = adjudge.score(**BRIDGE, store=str(tmp_path / "store"))
        awaited = await adjudge.score_async(**BRIDGE, store=str(tmp_path / "store"))
        run = adjudge.evaluate(tasks=TASKS, reports=REPORTS, **options(tmp_path))
        again = await adjudge.evaluate_async(tasks=TASKS, reports=REPORTS, **options(tmp_path))
        opened = await adjudge.open_async(run.folder)
        return [
            plain.value == awaited.value,
            run.scores.equals(again.scores),
            opened.scores.equals(run.scores),
        ]

    assert asyncio.run(notebook()) == [True, True, True]


def test_awaited_call_can_be_cancelled(tmp_path):
    """A judge that never answers is left at once, and its loop ends with it."""

    async def cancelled() -> None:
        accepted: list[asyncio.StreamWriter] = []
        server = await asyncio.start_server(lambda _, writer: accepted.append(writer), "127.0.0.1", 0)
        judge = f"openai:http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1#m"
        work = asyncio.ensure_future(adjudge.score_async(**BRIDGE, judge=judge, store=str(tmp_path)))
        while not accepted:
            await asyncio.sleep(0.02)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(work, 30)
        for writer in accepted:
            writer.close()
        server.close()

    asyncio.run(cancelled())
