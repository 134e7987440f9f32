"""Published calls beside the reference code: the same requests, the same results, before one judge.

What both sides sent and how long they took is printed (`pytest -s`).
"""

import asyncio
import json
import math
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from adjudge.engine.commands.export import export_run
from adjudge.fetchers.http import HttpFetcher
from adjudge.fetchers.page import Page, address_of
from adjudge.judges.openai import OpenAIJudge
from adjudge.judges.published import Checkout, UnreadableReply
from adjudge.judges.server import OpenAIConfig
from adjudge.prompts import PromptBook
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.deepresearch_bench.published_criteria import CriteriaWordings, published_yardstick
from adjudge.scoring.deepresearch_bench.published_race import marks_in, shares
from adjudge.scoring.deepresearch_bench.yardstick import Criterion, RaceGold, Yardstick
from tests.drawn_replies import FAILED, drafted, fact_judge, marks, odd, race_judge
from tests.reference_bench import (
    DIMENSIONS,
    SYSTEMS,
    DrawnJudge,
    bench_folder,
    ours,
    rows,
    run_python,
    run_reference,
    told,
)  # fmt: skip
from tests.shared_data import shared
from tests.tools import DirectTools

_SCORED = """
import json, logging, sys
logging.disable(logging.CRITICAL)
from utils.json_extractor import extract_json_from_markdown
from utils.score_calculator import calculate_weighted_scores
dims = json.loads(sys.argv[3])
criteria = json.load(open(sys.argv[2]))
for line in open(sys.argv[1]):
    try:
        said = json.loads(extract_json_from_markdown(json.loads(line)))
        if not all(dim in said for dim in dims):
            raise ValueError("missing")
        found = calculate_weighted_scores(said, criteria)
        sides = [[found[side]["dims"].get(dim + "_weighted_avg") for dim in dims] for side in ("target", "reference")]
        print(json.dumps([found["target"]["total"], found["reference"]["total"], *sides]))
    except Exception as error:
        print("null")
"""
STEPS = (
    ("extract", "raw"),
    ("deduplicate", "extracted"),
    ("scrape", "deduplicated"),
    ("validate", "scraped"),
)
WRITTEN = {
    "extract": "extracted",
    "deduplicate": "deduplicated",
    "scrape": "scraped",
    "validate": "validated",
}


@pytest.mark.parametrize(("variant", "flags"), [("full", []), ("pointwise", ["--no_reference"])])
async def test_race_sends_and_scores_as_the_reference_does(
    tmp_path: Path, capsys, variant: str, flags: list[str]
) -> None:
    bench = bench_folder(tmp_path, "deep_research_bench_tickr")
    for stale in (bench / "data/test_data/cleaned_data").glob("*tickr*"):
        stale.unlink()
    async with race_judge(bench) as theirs, race_judge(bench) as judge:
        seconds = 0.0
        for system in SYSTEMS:
            seconds += await run_reference(
                bench, theirs, "deepresearch_bench_race.py", system, "--max_workers", "10",
                "--output_dir", f"results/{system}", *flags,
            )  # fmt: skip
        checkout = str(shared("reference/deep_research_bench_tickr"))
        protocols = [{"name": "race", "call": "published", "checkout": checkout, "variant": variant}]
        scores, own_seconds = await ours(bench, tmp_path, judge.url, protocols=protocols)
    assert judge.requests == theirs.requests
    await asyncio.to_thread(export_run, tmp_path / "run", "deepresearch-bench", tmp_path / "exported")
    for system in SYSTEMS:
        raw = {str(row["id"]): row for row in rows(bench / "results" / system / "raw_results.jsonl")}
        assert 4 <= len(raw) < 10, "some tasks are scored, and some fail"
        for task in map(str, range(1, 11)):
            for metric in (*DIMENSIONS, "overall"):
                value = scores[system, task, metric]
                name = "overall_score" if metric == "overall" else metric
                assert value == (pytest.approx(raw[task][name], abs=1e-9) if task in raw else None)
        published = (bench / "results" / system / "race_result.txt").read_text()
        assert (tmp_path / "exported/race" / system / "race_result.txt").read_text() == published
    told(
        capsys, f"RACE, {variant}, {len(SYSTEMS)} systems x 10 tasks", (theirs, seconds), (judge, own_seconds)
    )


async def test_marks_are_read_as_the_reference_reads_them(tmp_path: Path) -> None:
    """Thousands of replies, most of them damaged: the same means, or no result on either side."""
    bench = bench_folder(tmp_path, "deep_research_bench_tickr")
    gold = rows(bench / "data/criteria_data/criteria.jsonl")[0]
    listed = {
        name: [{"criterion": one["criterion"]} for one in each] for name, each in gold["criterions"].items()
    }
    prompt = f"<criteria_list>\n{json.dumps(listed)}\n</criteria_list>"
    draw = random.Random(1)
    replies = [odd(marks(prompt, draw), draw) for _ in range(3_000)]
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(one) + "\n" for one in replies))
    (tmp_path / "criteria.json").write_text(json.dumps(gold))
    said = await run_python(
        bench,
        "-c",
        _SCORED,
        str(tmp_path / "replies.jsonl"),
        str(tmp_path / "criteria.json"),
        json.dumps(DIMENSIONS),
    )
    criteria = {name: msgspec.convert(each, list[Criterion]) for name, each in gold["criterions"].items()}
    scored = 0
    for reply, line in zip(replies, said.splitlines(), strict=True):
        expected = json.loads(line)
        try:
            found = shares(marks_in(reply), gold["dimension_weight"], criteria)
        except UnreadableReply:
            assert expected is None or not math.isfinite(expected[0] + expected[1]), reply
            continue
        assert expected is not None, reply
        scored += 1
        for place, name in enumerate(DIMENSIONS):
            one = found.marks.get(name)
            theirs = [expected[2][place], expected[3][place]]
            assert [one and one.target, one and one.reference] == pytest.approx(theirs, abs=1e-9, nan_ok=True)
        target, reference = expected[:2]
        share = target / (target + reference) if target + reference > 0 else 0.0
        assert found.overall == pytest.approx(share, abs=1e-9)
    assert 800 < scored < 2_800


async def test_weights_and_criteria_are_made_as_the_reference_does(tmp_path: Path, capsys) -> None:
    bench = bench_folder(tmp_path)
    query = bench / "data/prompt_data/query.jsonl"
    tasks = [row for row in rows(query) if row["id"] in (1, 2, 51, 52)]
    assert {row["language"] for row in tasks} == {"en", "zh"}
    query.write_text("".join(json.dumps(row) + "\n" for row in tasks))
    checkout = Checkout(bench)
    wordings = {language: CriteriaWordings.of(checkout, language) for language in ("en", "zh")}
    heads = tuple(one.weights.turns[0][1].pieces[0][0] for one in wordings.values())

    def draw(prompt: str, by: random.Random) -> str:
        return drafted(prompt.startswith(heads), by)

    script = "from bench.utils.generate_criteria import *; generate_criteria_pipeline(INPUT_FILE, OUTPUT_FILE, 50, 25)"
    async with DrawnJudge(draw) as theirs, DrawnJudge(draw) as judge:
        seconds = await run_reference(bench, theirs, "-c", script)
        made = {row["id"]: row for row in rows(bench / "data/criteria_data/criteria.jsonl")}
        config = OpenAIConfig(url=judge.url, model="judge")
        started = time.perf_counter()
        asked = OpenAIJudge(config, PromptBook(), b"")
        try:
            for row in tasks:
                task = Task(id=str(row["id"]), prompt=row["prompt"], language=row["language"])
                case = Case(task=task, report=Report(task_id=task.id, system="A", text="A."))
                found = await published_yardstick(
                    case, RaceGold(), wordings[task.language], DirectTools(asked)
                )
                assert isinstance(found, Yardstick)
                assert found.weights == made[row["id"]]["dimension_weight"]
                criteria = {
                    name: list(map(msgspec.to_builtins, each)) for name, each in found.criteria.items()
                }
                assert criteria == made[row["id"]]["criterions"]
        finally:
            await asked.close()
        own_seconds = time.perf_counter() - started
    assert judge.requests == theirs.requests
    told(capsys, f"weights and criteria of {len(tasks)} tasks", (theirs, seconds), (judge, own_seconds))


@asynccontextmanager
async def pages_and_scraper() -> AsyncIterator[tuple[str, list[str]]]:
    """A server of pages, some of them gone, and of a scraper that reads them; its address, and what can be cited."""

    async def page(request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        if number % 4 == 3:
            raise web.HTTPNotFound
        text = f"<p>Page {number}: it grew by {number} % in {2000 + number}, and then a little more. </p>" * 9
        head = f"<title>Growth {number}</title><meta name='description' content='On growth, part {number}'>"
        return web.Response(
            text=f"<html><head>{head}</head><body><article>{text}</article></body></html>",
            content_type="text/html",
        )

    async def scrape(request: web.Request) -> web.Response:
        url = (await request.json())["url"]
        address = address_of(url)
        found = address if isinstance(address, Page) else await fetcher.page(address)
        if found.reason is not None:
            return web.json_response({"url": url, "content": "", "error": found.reason})
        read = {"title": found.title, "description": found.description, "content": found.text}
        return web.json_response({"url": url, **read})

    application = web.Application()
    application.add_routes([web.get("/page/{number}", page), web.post("/scrape", scrape)])
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    fetcher = HttpFetcher(allow=[f"127.0.0.1:{port}"])
    try:
        yield f"127.0.0.1:{port}", [f"http://127.0.0.1:{port}/page/{number}" for number in range(12)]
    finally:
        await fetcher.close()
        await runner.cleanup()


def two_languages(bench: Path) -> None:
    """Make every other task Chinese, for both sides."""
    query = bench / "data/prompt_data/query.jsonl"
    made = [row | {"language": "zh" if row["id"] % 2 else "en"} for row in rows(query)]
    query.write_text("".join(json.dumps(row) + "\n" for row in made))


def tallies(validated: Path) -> dict[str, tuple[int, int]]:
    """By task, how many statements the reference counts as supported, and as either."""
    found = {}
    for row in rows(validated):
        groups = [one for one in row["citations_deduped"].values() if one["validate_error"] is None]
        said = [
            each["result"] for one in groups for each in one["validate_res"] if each["result"] != "unknown"
        ]
        if row["citations"]:
            found[str(row["id"])] = said.count("supported"), len(said)
    return found


async def test_fact_sends_and_counts_as_the_reference_does(tmp_path: Path, capsys) -> None:
    bench = bench_folder(tmp_path, "deep_research_bench_tickr")
    two_languages(bench)
    checkout = str(shared("reference/deep_research_bench"))
    async with (
        pages_and_scraper() as (address, urls),
        fact_judge(bench, urls) as theirs,
        fact_judge(bench, urls) as judge,
        fact_judge(bench, urls) as again,
    ):
        seconds = 0.0
        for system in SYSTEMS:
            out = Path("results/fact") / system
            (bench / out).mkdir(parents=True)
            for step, read in STEPS:
                source = (
                    Path("data/test_data/raw_data") / f"{system}.jsonl"
                    if read == "raw"
                    else out / f"{read}.jsonl"
                )
                query = [] if step == "scrape" else ["--query_data_path", "data/prompt_data/query.jsonl"]
                seconds += await run_reference(
                    bench, theirs, "-m", f"utils.{step}", "--raw_data_path", str(source), "--output_path",
                    str(out / f"{WRITTEN[step]}.jsonl"), *query, "--n_total_process", "10",
                    scraper=f"http://{address}/scrape",
                )  # fmt: skip
            seconds += await run_reference(
                bench, theirs, "-m", "utils.stat", "--input_path", str(out / "validated.jsonl"), "--output_path",
                str(out / "fact_result.txt"),
            )  # fmt: skip
        protocol = {"name": "fact", "call": "published", "checkout": checkout}
        live = {"mode": "live", "allow": [address]}
        scores, own_seconds = await ours(
            bench, tmp_path / "live", judge.url, protocols=[protocol], fetch=live
        )
        recorded = protocol | {"scraped": str(bench / "results/fact")}
        same, _ = await ours(
            bench, tmp_path / "recorded", again.url, protocols=[recorded], fetch={"mode": "off"}
        )
    for one in (judge, again):
        lacking = theirs.requests - one.requests
        assert one.requests - theirs.requests == Counter()
        assert lacking and all(FAILED in request for request in lacking), (
            "what the code asks about failed scrapes"
        )
    for run in ("live", "recorded"):
        await asyncio.to_thread(export_run, tmp_path / run / "run", "deepresearch-bench", tmp_path / run)
    for system in SYSTEMS:
        counted = tallies(bench / "results/fact" / system / "validated.jsonl")
        assert 3 <= len(counted) < 10, "some reports cite, some do not or cannot be read"
        published = (bench / "results/fact" / system / "fact_result.txt").read_text()
        for run, found in (("live", scores), ("recorded", same)):
            assert (tmp_path / run / "fact" / system / "fact_result.txt").read_text() == published
            for task, (supported, judged) in counted.items():
                assert found[system, task, "cited"] == 1
                assert (found[system, task, "supported"] or 0, found[system, task, "judged"] or 0) == (
                    supported,
                    judged,
                )
    told(capsys, f"FACT, {len(SYSTEMS)} systems x 10 tasks", (theirs, seconds), (judge, own_seconds))
