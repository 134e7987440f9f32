"""The viewer on a folder of runs: their list, each run, any two side by side, and systems over runs."""

import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
import pytest_asyncio
from selectolax.lexbor import LexborHTMLParser as HTMLParser

from adjudge.engine.runs.listed import Headline, ListedRun
from adjudge.engine.viewer.data.query import ListQuery
from adjudge.engine.viewer.pages.runs import runs_page
from tests.browser import BOTH_SIZES, overflow, picture, resized, violations, visiting
from tests.viewing import Reader, quickstart, viewing_folder

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def folder(tmp_path_factory) -> Path:
    """Three runs of the shipped example, the second a day later and better; and one that cannot be read."""
    made = tmp_path_factory.mktemp("runs")
    await quickstart(made, name="a")
    for name, days, more in (("b", 1, 0.01), ("deep/c", 2, 0.0)):
        shutil.copytree(made / "a", made / name)
        record = json.loads((made / name / "run.json").read_text())
        record["started"] += 86_400 * days
        record["ended"] += 86_400 * days
        (made / name / "run.json").write_text(json.dumps(record))
        board = json.loads((made / name / "leaderboard.json").read_text())
        for metric in board["metrics"]:
            for standing in metric["standings"]:
                standing["value"] = None if standing["value"] is None else standing["value"] + more
        (made / name / "leaderboard.json").write_text(json.dumps(board))
    (made / "broken").mkdir()
    (made / "broken/run.json").write_text("{")
    return made


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def reader(folder: Path) -> AsyncIterator[Reader]:
    async with viewing_folder(folder) as found:
        yield found


async def test_every_run_is_listed_and_opened(reader: Reader) -> None:
    page = await reader.page("")
    rows = [[cell.text().strip() for cell in row.css("th, td")] for row in page.css("#rows tbody tr")]
    assert [row[0] for row in rows] == ["deep/c", "b", "a", "broken"]
    assert [row[-1] for row in rows] == ["finished"] * 3 + ["unreadable"]
    for link in page.css("#rows tbody th a"):
        opened = await reader.page(link.attributes["href"])
        assert "All runs" in [one.text() for one in opened.css("nav a")]
        assert "Search" in opened.css_first("form").text()


async def test_systems_are_drawn_over_runs(reader: Reader) -> None:
    page = await reader.page("?sort=folder")
    course = page.css_first("svg.course")
    steps = [one.css_first("title").text() for one in course.css("a")]
    assert len(steps) == 3
    assert all("[" in step and "judged by lexical" in step for step in steps)
    heights = [float(one.attributes["cy"].removesuffix("%")) for one in course.css("circle")]
    assert heights[1] < heights[0] == heights[2]


def listed(
    place: int, judge: str, value: float, cost: float | None = None, rank: float | None = 1.0
) -> ListedRun:
    head = Headline(
        protocol="race",
        metric="overall",
        system="heron",
        value=value,
        low=None,
        high=None,
        decimals=2,
        rank=rank,
    )
    return ListedRun(
        folder=f"runs/{place}",
        state="finished",
        started=1_767_225_600.0 + 86_400 * place,
        judge=judge,
        protocols=("race",),
        cost=cost,
        headlines=(head,),
    )


def shown(*runs: ListedRun) -> HTMLParser:
    """The page of these runs, the newest first."""
    return HTMLParser(runs_page("runs", {one.folder: one for one in runs}, ListQuery()))


@pytest.mark.parametrize(
    ("last", "said"), [(40.0, "0.00"), (41.5, "+1.50"), (39.999, "0.00"), (38.0, "-2.00")]
)
async def test_change_has_a_sign_where_there_is_one(last: float, said: str) -> None:
    page = shown(listed(1, "large", last), listed(0, "large", 40.0))
    assert page.css("tr:has(svg.course) td.n")[2].text() == said


async def test_a_line_joins_runs_of_one_judge() -> None:
    judges = ["large", "large", "small", "large"]
    page = shown(*(listed(place, judges[place], 40.0 + place) for place in (3, 2, 1, 0)))
    ends = [(one.attributes["x1"], one.attributes["x2"]) for one in page.css("line.way")]
    places = [one.attributes["cx"] for one in page.css("circle.point")]
    assert ends == [(places[0], places[1]), (places[1], places[3])]


async def test_best_systems_are_listed_and_cost_where_it_is_known() -> None:
    free, paid = shown(listed(0, "large", 41.5)), shown(listed(0, "large", 41.5, cost=2.5))
    for page, more in ((free, []), (paid, ["2.50"])):
        cells = [" ".join(cell.text().split()) for cell in page.css("#rows tbody tr th, #rows tbody td")]
        assert cells[4:] == ["race.overall 41.50 heron", "0", "0", *more, "finished"]
        assert len(cells) == len(page.css("#rows thead th"))


async def test_nobody_is_best_where_nothing_is_ranked() -> None:
    (cell,) = shown(listed(0, "large", 41.5, rank=None)).css("#rows td.best")
    assert " ".join(cell.text().split()) == "race.overall - not ranked"


async def test_two_runs_are_opened_side_by_side(reader: Reader) -> None:
    page = await reader.page("")
    names = [one.attributes["value"] for one in page.css("#f-a option")]
    status, _, headers = await reader.get(f"beside?a={names[0]}&b={names[1]}")
    assert status == 303
    here = headers["Location"]
    found = await reader.page(here)
    other = next(one for one in found.css("nav a") if one.text() == "The other run")
    assert other.attributes["href"] == f"../../../{names[1]}/beside/{names[0]}/"
    assert await reader.page(f"runs/{names[1]}/beside/{names[0]}/differences")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("beside?a=x&b=y", 400),
        ("?page=x", 400),
        (f"runs/{'0' * 16}/", 404),
        (f"runs/{'0' * 16}/beside/{'1' * 16}/differences", 404),
        ("runs/..%2f..%2fetc/", 404),
    ],
)
async def test_an_address_of_no_run_is_answered(reader: Reader, path: str, status: int) -> None:
    found, body, _ = await reader.get(path)
    assert found == status
    assert "Traceback" not in body


async def test_the_list_fits_both_window_sizes(browser: "Browser", reader: Reader) -> None:
    async with visiting(browser, reader.url) as page:
        for width, scheme in BOTH_SIZES:
            await resized(page, width, scheme)
            assert await overflow(page) == 0
            assert await violations(page) == []
            await picture(page, f"viewer-runs-{width}")
        await page.get_by_role("button", name="Show where they differ").click()
        await page.get_by_role("link", name="All runs").click()
        assert page.url == reader.url


async def test_system_of_a_single_run_has_no_course() -> None:
    def renamed(run: ListedRun, *systems: str) -> ListedRun:
        (head,) = run.headlines
        return msgspec.structs.replace(
            run, headlines=tuple(msgspec.structs.replace(head, system=name) for name in systems)
        )

    page = shown(renamed(listed(1, "large", 41.5), "heron", "tern"), listed(0, "large", 40.0))
    assert [one.text() for one in page.css("tr:has(.course) th")] == ["heron"]
    assert "1 system with a single run is left out" in page.body.text()
    nothing = shown(renamed(listed(1, "large", 41.5), "tern"), listed(0, "large", 40.0))
    assert not nothing.css(".course")
