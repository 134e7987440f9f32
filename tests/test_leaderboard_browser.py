"""The leaderboard's page in Chromium: from disk, by keyboard, at both widths, in light and dark."""

import random

import pytest

from adjudge.engine.leaderboard.build import build_leaderboard
from adjudge.engine.leaderboard.published import Published
from adjudge.engine.rendering.files import write_leaderboard
from tests.browser import overflow, picture, violations, visiting
from tests.made_runs import made_run
from tests.worlds import lines

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE = "</script><img src=x onerror=alert(1)>&amp;'\"{{}}"
SYSTEMS = ("atlas", "a-system-with-a-rather-long-name-that-goes-on", HOSTILE, "delta", "北京研究员", "echo")
FOCUSED = "document.activeElement"


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> str:
    """The page of six systems, 40 tasks and two repeats, with human scores of ten tasks and published figures."""
    folder = made_run(tmp_path_factory.mktemp("run"), SYSTEMS, 40, repeats=2)
    draw = random.Random(0)
    ratings = [
        {
            "task_id": str(task),
            "system": system,
            "rater": "r",
            "metric": "race.overall",
            "value": draw.random(),
        }
        for task in draw.sample(range(40), 10)
        for system in SYSTEMS
    ]
    human = lines(folder / "human.jsonl", ratings)
    published = [Published(system, "overall", 50.0 + place) for place, system in enumerate(SYSTEMS[:4])]
    return write_leaderboard(build_leaderboard([folder], published=published, human=human), folder).as_uri()


async def see_all(page) -> None:
    """Scroll every figure into view."""
    for plot in await page.locator(".plot").all():
        await plot.scroll_into_view_if_needed()
    await page.wait_for_function(
        "document.querySelectorAll('.plot svg').length && !document.querySelector('.plot:not([data-drawn])')"
    )
    await page.evaluate("scrollTo(0, 0)")


async def tab_to(page, wanted: str, key: str = "Tab", most: int = 80) -> None:
    """Press `key` until the script expression `wanted` holds of the focused element."""
    for _ in range(most):
        await page.keyboard.press(key)
        if await page.evaluate(f"(at => {wanted})({FOCUSED})"):
            return
    pytest.fail(f"{most} tabs do not reach {wanted}")


def column(page, table: str, name: str):
    """The texts of the visible cells under the heading `name`."""
    return page.evaluate(
        """([id, name]) => {
            const table = document.getElementById(id);
            const at = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === name);
            return [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.cells[at].textContent);
        }""",
        [table, name],
    )


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
async def test_whole_page_is_accessible_and_fits_its_window(browser, url, width, scheme):
    async with visiting(browser, url, width=width, scheme=scheme) as page:
        await see_all(page)
        await picture(page, f"leaderboard-{width}-{scheme}")
        if scheme == "light":
            await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        assert await violations(page) == []
        assert await overflow(page) == 0


async def test_human_and_published_figures_appear_beside_the_judge(browser, url):
    async with visiting(browser, url) as page:
        assert all(" to " in text for text in await column(page, "p1t0", "corrected interval"))
        assert sorted(await column(page, "p1t0", "published")) == [
            "-",
            "-",
            "50.00",
            "51.00",
            "52.00",
            "53.00",
        ]
        tables = [await one.text_content() for one in await page.locator("#p1 summary").all()]
        assert "Differences of overall corrected by people's scores" in tables
        assert "overall beside published figures" in tables


async def test_table_is_sorted_by_keyboard(browser, url):
    async with visiting(browser, url) as page:
        ranked = await column(page, "p0t0", "system")
        assert set(ranked) == set(SYSTEMS)
        await tab_to(page, "at.matches('#p0t0 thead button') && at.textContent === 'e_cit'")
        heading = page.locator("#p0t0 th", has_text="e_cit").first
        for key, direction in (("Enter", "ascending"), ("Space", "descending")):
            await page.keyboard.press(key)
            assert await heading.get_attribute("aria-sort") == direction
            values = [float(text) for text in await column(page, "p0t0", "e_cit")]
            assert values == sorted(values, reverse=direction == "descending")
        await tab_to(page, "at.matches('#p0t0 thead button') && at.textContent === 'rank'", "Shift+Tab")
        await page.keyboard.press("Enter")
        assert await column(page, "p0t0", "system") == ranked
        assert await page.locator("#p0t0 th[aria-sort]").count() == 1


async def test_systems_are_filtered_by_keyboard_in_tables_and_figures(browser, url):
    async with visiting(browser, url) as page:
        await page.keyboard.press("Tab")
        assert await page.evaluate(f"{FOCUSED}.className") == "skip"
        await tab_to(page, "at.id === 'filter'")
        await page.keyboard.type("T")
        left = [name for name in SYSTEMS if "t" in name.lower()]
        assert sorted(await column(page, "p0t0", "system")) == sorted(left)
        assert await page.locator("#found").text_content() == f"{len(left)} of {len(SYSTEMS)} systems"
        await page.keyboard.type("las")
        assert await column(page, "p1t0", "system") == ["atlas"]
        await see_all(page)
        figure = page.locator(".plot[data-figure=scores] svg").first
        assert await figure.get_attribute("aria-label") == "c_acc of 1 systems with intervals and bounds"
        await page.locator("#filter").focus()
        await page.keyboard.press("Control+A")
        await page.keyboard.press("Delete")
        assert await column(page, "p0t0", "system") != ["atlas"]
        assert await page.locator("#found").text_content() == ""


async def test_figure_opens_as_a_table_by_keyboard(browser, url):
    async with visiting(browser, url) as page:
        await tab_to(page, "at.parentElement.dataset.table === 'pairs'")
        await page.keyboard.press("Enter")
        rows = page.locator("details[data-table=pairs] tbody tr")
        await rows.first.wait_for()
        assert await rows.count() == len(SYSTEMS) * (len(SYSTEMS) - 1) // 2
        assert await violations(page) == []


async def test_colour_scheme_changes_by_keyboard(browser, url):
    async with visiting(browser, url, scheme="light") as page:
        paper = "getComputedStyle(document.body).backgroundColor"
        light = await page.evaluate(paper)
        await tab_to(page, "at.id === 'theme'")
        await page.keyboard.press("Enter")
        assert await page.evaluate(paper) != light
        assert await violations(page) == []
        await page.keyboard.press("Enter")
        assert await page.evaluate(paper) == light


async def test_page_prints_every_figure_and_no_controls(browser, url):
    async with visiting(browser, url, scheme="dark") as page:
        printed = await page.pdf()
        assert printed.startswith(b"%PDF")
        assert await page.locator(".plot:not([data-drawn])").count() == 0
        await page.emulate_media(media="print")
        await page.set_viewport_size({"width": 703, "height": 1032})  # A4 minus its margins
        wider = "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth).length"
        assert await page.evaluate(wider) == 0
        assert not await page.locator(".controls").is_visible()
        assert await page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"


async def test_board_of_one_unscored_system_opens(browser, tmp_path):
    folder = made_run(tmp_path, ("only",), 3, missing=1.0)
    page_file = write_leaderboard(build_leaderboard([folder]), folder)
    async with visiting(browser, page_file.as_uri(), width=390) as page:
        assert await column(page, "p0t0", "scored") == ["0/2 (under 95%)"]
        await page.locator("body").press("End")
        assert await violations(page) == []
