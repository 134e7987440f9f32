"""RACE and FACT: a made data set, and what the benchmark's own code and ours make of one judge's replies."""

import asyncio
import json
import math
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from adjudge.engine.commands.export import export_run
from adjudge.fetchers.http import HttpFetcher
from adjudge.fetchers.page import Page, address_of
from adjudge.judges.openai import OpenAIJudge
from adjudge.judges.published import Checkout, UnreadableReply
from adjudge.judges.server import OpenAIConfig
from adjudge.prompts import PromptBook
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.deepresearch_bench.published_criteria import criteria_wordings, published_yardstick
from adjudge.scoring.deepresearch_bench.published_race import marks_in, shares
from adjudge.scoring.deepresearch_bench.yardstick import Criterion, RaceGold, Yardstick
from tests.drawn_replies import FAILED, marks, odd
from tests.grafting import LaidOut
from tests.reference_bench import (
    DIMENSIONS,
    DrawnJudge,
    Figures,
    laid_out,
    ours,
    rows,
    run_python,
    run_reference,
)
from tests.tools import DirectTools
from tests.worlds import lines

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


_WEIGHTS = ((0.3, 0.3, 0.25, 0.15), (0.4, 0.2, 0.2, 0.2))
_TOPICS = ("mills", "锁", "ferries", "桥", "kilns", "茶", "looms", "井")
MADE_SYSTEMS = ("tern", "wren")
ADDRESSES = tuple(f"http://pages.example/{number}" for number in range(12))


def made_bench_folder(folder: Path, code: LaidOut, languages: Sequence[str]) -> Path:
    """DeepResearch Bench by `code` with eight made tasks, in one language or in turns, and two systems' articles."""
    bench = laid_out(folder, code)
    draw = random.Random(1)
    tasks = [
        {
            "id": number,
            "prompt": f"What became of the {topic}, and why?",
            "language": languages[number % len(languages)],
        }
        for number, (topic, language) in enumerate(zip(_TOPICS, cycle(languages), strict=False), 1)
    ]
    criteria = [
        {"id": task["id"], "prompt": task["prompt"]}
        | {
            "dimension_weight": dict(
                zip(DIMENSIONS, draw.choice([(0.3, 0.3, 0.25, 0.15), (0.4, 0.2, 0.2, 0.2)]), strict=True)
            ),
            "criterions": {
                name: [
                    {
                        "criterion": f"Point {n} of {name}, task {task['id']}",
                        "explanation": f"Says {n}.",
                        "weight": weight,
                    }
                    for n, weight in enumerate(draw.choice([(0.5, 0.3, 0.2), (0.25, 0.75), (1.0,)]))
                ]
                for name in DIMENSIONS
            },
        }
        for task in tasks
    ]
    data = bench / "data"
    for file in ("prompt_data", "criteria_data", "test_data/raw_data", "test_data/cleaned_data"):
        (data / file).mkdir(parents=True)
    lines(data / "prompt_data/query.jsonl", tasks)
    lines(data / "criteria_data/criteria.jsonl", criteria)
    for file in ("cleaned_data/reference", *(f"raw_data/{system}" for system in MADE_SYSTEMS)):
        articles = [
            {"id": task["id"], "prompt": task["prompt"], "article": _article(file, draw)} for task in tasks
        ]
        lines(data / f"test_data/{file}.jsonl", articles)
    return bench


def _article(by: str, draw: random.Random) -> str:
    words = [
        "The trade grew",
        "它们渐渐消失",
        "nobody knows",
        "by 8 percent [1]",
        "in 1904 [2]",
        "as was said",
        "{so}",
    ]
    said = [
        " ".join(draw.choices(words, k=5)) + draw.choice([". ", "。", "?\n"])
        for _ in range(draw.randint(8, 30))
    ]
    return f"By {by}.\n\n{''.join(said)}"


async def race_by_code(
    bench: Path, judge: DrawnJudge, systems: Sequence[str], *flags: str
) -> tuple[Figures, float]:
    """The scores by system, task and metric, None where the code has none, and the text of every result; seconds."""
    seconds, found = 0.0, {}
    for system in systems:
        seconds += await run_reference(
            bench, judge, "deepresearch_bench_race.py", system, "--max_workers", "10",
            "--output_dir", f"results/{system}", *flags,
        )  # fmt: skip
        raw = {row["id"]: row for row in _results(bench / "results" / system, "raw_results.jsonl")}
        for task in rows(bench / "data/prompt_data/query.jsonl"):
            for name in (*DIMENSIONS, "overall"):
                row = raw.get(task["id"], {})
                found[f"{system} {task['id']} {name}"] = row.get(
                    "overall_score" if name == "overall" else name
                )
        (text,) = (bench / "results" / system).rglob("race_result.txt")
        found[system] = text.read_text()
    return found, seconds


def _results(folder: Path, name: str) -> list[dict[str, Any]]:
    (file,) = folder.rglob(name)
    return rows(file)


async def race_by_us(
    bench: Path, out: Path, judge: DrawnJudge, systems: Sequence[str], **options: str
) -> tuple[Figures, float]:
    """The same by ours."""
    protocol = {"name": "race", "call": "published", "checkout": str(bench), **options}
    scores, seconds = await ours(bench, out, judge.url, protocols=[protocol])
    found: Figures = {
        f"{system} {task} {name}": value
        for (system, task, name), value in scores.items()
        if name in (*DIMENSIONS, "overall")
    }
    await asyncio.to_thread(export_run, out / "run", "deepresearch-bench", out / "exported")
    for system in systems:
        found[system] = (out / "exported/race" / system / "race_result.txt").read_text()
    return found, seconds


def drawn_marks(gold: dict[str, Any], count: int, pair: bool = True) -> list[str]:
    """Replies with marks by the criteria of `gold`, most of them damaged; `pair` marks a reference too."""
    draw = random.Random(1)
    return [odd(marks(gold["criterions"], draw, pair), draw) for _ in range(count)]


async def marks_by_code(bench: Path, gold: dict[str, Any], replies: list[str]) -> list[list[Any] | None]:
    """The share of the total, and the means of target and reference by dimension; None where there is no share."""
    lines(bench / "replies.jsonl", replies)
    (bench / "criteria.json").write_text(json.dumps(gold))
    said = await run_python(bench, "-c", _SCORED, "replies.jsonl", "criteria.json", json.dumps(DIMENSIONS))
    found: list[list[Any] | None] = []
    for line in said.splitlines():
        expected = json.loads(line)
        if expected is None:
            found.append(None)
            continue
        target, reference = expected[:2]
        share = target / (target + reference) if target + reference > 0 else 0.0
        found.append([share, *expected[2], *expected[3]] if math.isfinite(share) else None)
    return found


def marks_by_us(gold: dict[str, Any], replies: list[str], alone: bool = False) -> list[list[Any] | None]:
    """The same by ours."""
    criteria = {name: msgspec.convert(each, list[Criterion]) for name, each in gold["criterions"].items()}

    def read(reply: str) -> list[Any] | None:
        try:
            found = shares(marks_in(reply), gold["dimension_weight"], criteria, alone=alone)
        except UnreadableReply:
            return None
        means = [found.marks.get(name) for name in DIMENSIONS]
        sides = ([one and getattr(one, side) for one in means] for side in ("target", "reference"))
        return [found.overall, *(value for side in sides for value in side)]

    return list(map(read, replies))


async def criteria_by_code(bench: Path, judge: DrawnJudge) -> tuple[Figures, float]:
    """The weights and criteria of every task."""
    script = "from bench.utils.generate_criteria import *; generate_criteria_pipeline(INPUT_FILE, OUTPUT_FILE, 50, 25)"
    seconds = await run_reference(bench, judge, "-c", script)
    found = rows(bench / "data/criteria_data/criteria.jsonl")
    return {str(row["id"]): [row["dimension_weight"], row["criterions"]] for row in found}, seconds


async def criteria_by_us(bench: Path, judge: DrawnJudge) -> Figures:
    """The same by ours."""
    wordings, found = criteria_wordings(Checkout(bench)), {}
    asked = OpenAIJudge(OpenAIConfig(url=judge.url, model="judge"), PromptBook(), b"")
    try:
        for row in rows(bench / "data/prompt_data/query.jsonl"):
            task = Task(id=str(row["id"]), prompt=row["prompt"], language=row["language"])
            case = Case(task=task, report=Report(task_id=task.id, system="A", text="A."))
            made = await published_yardstick(case, RaceGold(), wordings, DirectTools(asked))
            assert isinstance(made, Yardstick)
            criteria = {name: list(map(msgspec.to_builtins, each)) for name, each in made.criteria.items()}
            found[task.id] = [made.weights, criteria]
    finally:
        await asked.close()
    return found


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


@asynccontextmanager
async def made_scraper() -> AsyncIterator[str]:
    """A server that has read the pages at ADDRESSES, some of them in vain; its address."""

    async def scrape(request: web.Request) -> web.Response:
        return web.json_response(_scraped((await request.json())["url"]))

    application = web.Application()
    application.add_routes([web.post("/scrape", scrape)])
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/scrape"
    finally:
        await runner.cleanup()


def _scraped(url: str) -> dict[str, str]:
    number = int(url.rpartition("/")[2])
    if number % 4 == 3:
        return {"url": url, "error": "gone"}
    return {
        "url": url,
        "title": f"Growth {number}",
        "description": "",
        "content": f"It grew by {number} %. " * 9,
    }


def made_scrapes(bench: Path) -> Path:
    """The pages at ADDRESSES as the code records them; a folder."""
    found = {}
    for url in ADDRESSES:
        page = _scraped(url)
        text = f"scrape failed: {page['error']}" if "error" in page else _shown(page)
        found[url] = {"facts": [], "url_content": text}
    tasks = rows(bench / "data/prompt_data/query.jsonl")
    for system in MADE_SYSTEMS:
        (bench / "scrapes" / system).mkdir(parents=True)
        lines(
            bench / "scrapes" / system / "scraped.jsonl",
            [{"id": row["id"], "citations_deduped": found} for row in tasks],
        )
    return bench / "scrapes"


def _shown(page: dict[str, str]) -> str:
    return f"{page['title']}\n\n{page['description']}\n\n{page['content']}"


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


async def fact_by_code(
    bench: Path, judge: DrawnJudge, systems: Sequence[str], scraper: str
) -> tuple[Figures, float]:
    """The supported and the judged statements by system and task, and the text of every result; seconds."""
    seconds, found = 0.0, {}
    for system in systems:
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
                bench, judge, "-m", f"utils.{step}", "--raw_data_path", str(source), "--output_path",
                str(out / f"{WRITTEN[step]}.jsonl"), *query, "--n_total_process", "10", scraper=scraper,
            )  # fmt: skip
        seconds += await run_reference(
            bench, judge, "-m", "utils.stat", "--input_path", str(out / "validated.jsonl"), "--output_path",
            str(out / "fact_result.txt"),
        )  # fmt: skip
        for task, counted in tallies(bench / out / "validated.jsonl").items():
            found[f"{system} {task}"] = list(counted)
        found[system] = (bench / out / "fact_result.txt").read_text()
    return found, seconds


async def fact_by_us(
    bench: Path, out: Path, judge: DrawnJudge, systems: Sequence[str], fetch: dict[str, Any], **options: str
) -> tuple[Figures, float]:
    """The same by ours, of all reports that cite."""
    protocol = {"name": "fact", "call": "published", "checkout": str(bench), **options}
    scores, seconds = await ours(bench, out, judge.url, protocols=[protocol], fetch=fetch)
    found: Figures = {
        f"{system} {task}": [scores[system, task, name] or 0 for name in ("supported", "judged")]
        for (system, task, metric), value in scores.items()
        if metric == "cited" and value == 1
    }
    await asyncio.to_thread(export_run, out / "run", "deepresearch-bench", out / "exported")
    for system in systems:
        found[system] = (out / "exported/fact" / system / "fact_result.txt").read_text()
    return found, seconds


def asked_of_pages(requests: Counter[str]) -> Counter[str]:
    """The requests without those about pages that could not be read: the code asks what their error text supports."""
    return Counter({request: count for request, count in requests.items() if FAILED not in request})
