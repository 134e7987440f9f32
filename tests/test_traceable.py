"""Numbers of leaderboard.html are traced to answers and pages through the Parquet of the run and the store alone."""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from selectolax.lexbor import LexborHTMLParser

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.run import RunConfig
from tests.browser import visiting
from tests.viewing import QUICKSTART, viewing

Row = Mapping[str, Any]
SHOWN_TIMES_100 = {
    "race": {"overall", "comprehensiveness", "insight", "instruction_following", "readability"}
}
TASKS = [json.loads(line) for line in (QUICKSTART.parent / "tasks.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """The shipped example under the lexical judge; its store lies beside the run."""
    folder = tmp_path_factory.mktemp("traceable")
    evaluate(RunConfig.load(QUICKSTART, out=str(folder / "run"), store=str(folder / "store")))
    return folder / "run"


def cells(run: Path) -> list[tuple[str, str, str, str]]:
    """(protocol, system, metric, text) of every value on the page."""
    page = LexborHTMLParser((run / "leaderboard.html").read_text())
    return [
        (
            section.css_first("h2").text(),
            row.attributes["data-system"],
            cell.attributes["data-metric"],
            cell.text(),
        )
        for section in page.css("main > section:not(#all)")
        for row in section.css("tr[data-system]")
        for cell in row.css("td[data-metric]")
    ]


def stored(run: Path, table: str) -> list[Row]:
    return ds.dataset(run.parent / "store" / table, format="parquet").to_table().to_pylist()


def declared(run: Path) -> dict[tuple[str, str], Row]:
    """How run.json declares every metric, by protocol and name."""
    record = json.loads((run / "run.json").read_bytes())
    return {(name, one["name"]): one for name, ones in record["metrics"].items() for one in ones}


def five(run: Path, seed: int) -> Iterator[tuple[str, str, str, str]]:
    """Five random cells, including both protocols and a pooled metric."""
    found, metrics = cells(run), declared(run)
    assert len(found) >= 60
    drawn = random.Random(seed).sample(found, len(found))
    kinds = [
        next(cell for cell in drawn if cell[0] == "fact" and metrics[cell[0], cell[2]]["ratio"]),
        next(cell for cell in drawn if (cell[0], cell[2]) == ("race", "overall")),
    ]
    yield from kinds
    yield from [cell for cell in drawn if cell not in kinds][:3]


def by_hand(metric: Row, metrics: Mapping[str, Row], rows: list[Row], tasks: set[str]) -> float | None:
    """A system's value from its score rows, one report per task: a mean over `tasks`, or a ratio of sums.

    What is missing of a figure of quality counts as the worst it could be; None if that is infinitely bad. A count
    leaves it out.
    """
    quality, high = metric["kind"] == "quality", metric["lower_is_better"]
    if metric["ratio"] is None:
        found = by_task(metric, rows, tasks, high, quality)
        return None if None in found.values() else sum(found.values()) / len(found)
    above, below = (metrics[name] for name in metric["ratio"])
    over = by_task(above, rows, tasks, high, quality)
    under = by_task(below, rows, tasks, not high, quality)
    if None in (*over.values(), *under.values()):
        return None
    both = over.keys() & under.keys()
    return sum(over[task] for task in both) / sum(under[task] for task in both)


def by_task(
    metric: Row, rows: list[Row], tasks: set[str], high: bool, quality: bool
) -> dict[str, float | None]:
    """A metric by task: of `quality` the high or low end of what it could be (None: unbounded), else what is known."""
    own = {row["task_id"]: row for row in rows if row["metric"] == metric["name"] and row["task_id"] in tasks}
    if not quality:
        return {task: row["value"] for task, row in own.items() if row["value"] is not None}
    side, end = (
        ("high", metric["best"]) if high else ("low", metric["worst"])
    )  # no metric on the page has a `worst` that is its high end
    known = {task: row["value"] if row[side] is None else row[side] for task, row in own.items()}
    return {task: end if known.get(task) is None else known[task] for task in tasks}


@pytest.mark.parametrize("seed", [0, 1])
def test_random_cells_lead_to_questions_answers_and_pages(run, seed):
    scores = pq.read_table(run / "scores.parquet").to_pylist()
    cards = {
        (row["protocol"], row["system"], row["task_id"]): json.loads(row["card"])
        for row in stored(run, "scores")
    }
    judgments = {row["key"].hex(): row for row in stored(run, "judgments")}
    pages = {row["url"]: row for row in stored(run, "pages")}
    record, metrics = json.loads((run / "run.json").read_bytes()), declared(run)
    answers = texts = 0
    for protocol, system, metric, text in five(run, seed):
        own = [row for row in scores if (row["protocol"], row["system"]) == (protocol, system)]
        tasks = {
            row["task_id"]
            for row in scores
            if row["protocol"] == protocol and row["reason"] != "gold_missing"
        }
        named = {name: one for (its, name), one in metrics.items() if its == protocol}
        value = by_hand(metrics[protocol, metric], named, own, tasks)
        scale = metrics[protocol, metric]["scale"]
        assert text == ("-" if value is None else f"{value * scale:.2f}")
        for row in own:
            card = cards[protocol, system, row["task_id"]]
            assert card["scores"][row["metric"]] == row["value"]
            assert row["value"] is not None or row["reason"] is not None
        for task in {row["task_id"] for row in own}:
            card = cards[protocol, system, task]
            check_arithmetic(card, judgments)
            for key in card["judgments"]:
                asked = judgments[key]
                assert asked["question"] and asked["judge"] == record["judge"]["fingerprint"]
                assert (asked["answer"] is None) == (asked["reason"] is not None)
                answers += asked["answer"] is not None
            for url in card["pages"]:
                if url not in pages:  # what a snapshot lacks is not stored
                    reasons = {line.get("reason") for line in card["evidence"] if line.get("url") == url}
                    assert reasons == {"page_not_in_snapshot"}
                    continue
                assert (pages[url]["status"] == "read") == (pages[url]["reason"] is None)
                texts += bool(pages[url]["text"])
    assert answers > 10 and texts > 5


def check_arithmetic(card: dict[str, Any], judgments: Mapping[str, Row]) -> None:
    """The card's numbers follow from its lines of evidence, and those from the answers."""
    for line in card["evidence"]:
        if line["judgment"] and not line.get("reason"):
            said = json.dumps(json.loads(judgments[line["judgment"]]["answer"]))
            for word in line["outcome"].replace(" of 10, reference", "").split():
                assert (f"{float(word):.1f}" if word[0].isdigit() else f'"{word}"') in said, line
    if card["protocol"] == "fact" and card["scores"]["supported"] is not None:
        outcomes = Counter(line["kind"] for line in card["evidence"])
        assert outcomes["supported"] == card["scores"]["supported"]
        assert card["scores"]["unsupported"] in (None, outcomes["unsupported"])
    if card["protocol"] == "race" and card["scores"]["overall"] is not None and card["evidence"]:
        task = next(row for row in TASKS if row["id"] == card["task_id"])["gold"]["race"]
        ours, theirs = (weighted(task, card["evidence"], side) for side in (0, 1))
        assert card["scores"]["overall"] == pytest.approx(ours / (ours + theirs))


def weighted(gold: dict[str, Any], evidence: list[dict[str, Any]], side: int) -> float:
    """RACE's total of the report (side 0) or of the reference (side 1) from the marks in the evidence."""
    marks = {line["what"]: (line["points"], line["reference"]) for line in evidence}
    return sum(
        weight * criterion["weight"] * marks[f"{dimension}: {criterion['criterion']}"][side]
        for dimension, weight in gold["dimension_weight"].items()
        for criterion in gold["criterions"][dimension]
    )


@pytest.mark.asyncio(loop_scope="session")
async def test_leaderboard_cell_links_down_to_an_answer(browser, run):
    async with viewing(run) as reader, visiting(browser, reader.url + "leaderboard") as page:
        cell = page.locator("tbody tr", has_text="borealis").locator("td[data-metric=c_acc] a").first
        value = await cell.text_content()
        await cell.focus()
        await page.keyboard.press("Enter")
        await page.wait_for_url(re.compile("/system[?]"))
        assert await page.locator("#value").text_content() == value
        for there in ("report", "questions", "question"):
            link = page.locator(f"main a[href^='{there}?']").first
            await link.focus()
            await page.keyboard.press("Enter")
            await page.wait_for_url(re.compile(f"/{there}[?]"))
        assert '"items"' in await page.locator("main").text_content()
