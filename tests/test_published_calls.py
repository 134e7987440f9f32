"""DeepResearch Bench's published calls beside its own code: the same requests, the same results, before one judge.

The data are the published ones. What both sides sent and how long they took is printed (`pytest -s`).
"""

import json
import time
from pathlib import Path

import pytest

from tests.drawn_replies import FAILED, criteria_judge, fact_judge, race_judge
from tests.reference_bench import SYSTEMS, bench_folder, rows, told
from tests.reference_race import (
    asked_of_pages,
    criteria_by_code,
    criteria_by_us,
    drawn_marks,
    fact_by_code,
    fact_by_us,
    marks_by_code,
    marks_by_us,
    pages_and_scraper,
    race_by_code,
    race_by_us,
    two_languages,
)


@pytest.mark.parametrize(("variant", "flags"), [("full", []), ("pointwise", ["--no_reference"])])
async def test_race_sends_and_scores_as_the_reference_does(
    tmp_path: Path, capsys, variant: str, flags: list[str]
) -> None:
    bench = bench_folder(tmp_path, "deep_research_bench_tickr")
    if any(flag not in (bench / "deepresearch_bench_race.py").read_text(encoding="utf-8") for flag in flags):
        pytest.skip(f"this version of DeepResearch Bench has no {' '.join(flags)}")
    for stale in (bench / "data/test_data/cleaned_data").glob("*tickr*"):
        stale.unlink()
    async with race_judge(bench) as theirs, race_judge(bench) as judge:
        expected, seconds = await race_by_code(bench, theirs, SYSTEMS, *flags)
        found, own_seconds = await race_by_us(bench, tmp_path, judge, SYSTEMS, variant=variant)
    assert judge.requests == theirs.requests
    assert found == pytest.approx(expected, abs=1e-9)
    for system in SYSTEMS:
        scored = sum(
            f"{system} {task} overall" in expected and expected[f"{system} {task} overall"] is not None
            for task in range(1, 11)
        )
        assert 4 <= scored < 10, "some tasks are scored, and some fail"
    told(
        capsys, f"RACE, {variant}, {len(SYSTEMS)} systems x 10 tasks", (theirs, seconds), (judge, own_seconds)
    )


async def test_marks_are_read_as_the_reference_reads_them(tmp_path: Path) -> None:
    """Thousands of replies, most of them damaged: the same means, or no result on either side."""
    bench = bench_folder(tmp_path, "deep_research_bench_tickr")
    gold = rows(bench / "data/criteria_data/criteria.jsonl")[0]
    replies = drawn_marks(gold, 3_000)
    expected, found = await marks_by_code(bench, gold, replies), marks_by_us(gold, replies)
    for reply, theirs, mine in zip(replies, expected, found, strict=True):
        assert mine == pytest.approx(theirs, abs=1e-9, nan_ok=True), reply
    assert 800 < sum(one is not None for one in found) < 2_800


async def test_weights_and_criteria_are_made_as_the_reference_does(tmp_path: Path, capsys) -> None:
    bench = bench_folder(tmp_path)
    query = bench / "data/prompt_data/query.jsonl"
    tasks = [row for row in rows(query) if row["id"] in (1, 2, 51, 52)]
    assert {row["language"] for row in tasks} == {"en", "zh"}
    query.write_text("".join(json.dumps(row) + "\n" for row in tasks))
    async with criteria_judge(bench) as theirs, criteria_judge(bench) as judge:
        expected, seconds = await criteria_by_code(bench, theirs)
        started = time.perf_counter()
        assert await criteria_by_us(bench, judge) == expected
        own_seconds = time.perf_counter() - started
    assert judge.requests == theirs.requests
    told(capsys, f"weights and criteria of {len(tasks)} tasks", (theirs, seconds), (judge, own_seconds))


async def test_fact_sends_and_counts_as_the_reference_does(tmp_path: Path, capsys) -> None:
    bench = bench_folder(tmp_path, "deep_research_bench_tickr")
    two_languages(bench)
    async with (
        pages_and_scraper() as (address, urls),
        fact_judge(bench, urls) as theirs,
        fact_judge(bench, urls) as judge,
        fact_judge(bench, urls) as again,
    ):
        expected, seconds = await fact_by_code(bench, theirs, SYSTEMS, f"http://{address}/scrape")
        live = {"mode": "live", "allow": [address]}
        found, own_seconds = await fact_by_us(bench, tmp_path / "live", judge, SYSTEMS, live)
        scraped = str(bench / "results/fact")
        same, _ = await fact_by_us(
            bench, tmp_path / "recorded", again, SYSTEMS, {"mode": "off"}, scraped=scraped
        )
    for one in (judge, again):
        assert one.requests == asked_of_pages(theirs.requests)
    assert any(FAILED in request for request in theirs.requests)
    for system in SYSTEMS:
        counted = [name for name in expected if name.startswith(f"{system} ")]
        assert 3 <= len(counted) < 10, "some reports cite, some do not or cannot be read"
    assert {name: found.get(name) for name in expected} == expected
    assert {name: same.get(name) for name in expected} == expected
    told(capsys, f"FACT, {len(SYSTEMS)} systems x 10 tasks", (theirs, seconds), (judge, own_seconds))
