"""The run viewer in Chromium: errors, outside requests, keyboard, screen readers, both sizes, light and dark."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pypdfium2
import pytest
import pytest_asyncio

from adjudge.engine.viewer.pages import search
from tests.browser import BOTH_SIZES, overflow, picture, resized, violations, visiting
from tests.mock_openai import MockOpenAI
from tests.viewing import Reader, exporting, hostile, quickstart, viewing

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.asyncio(loop_scope="session")

DELTA = "system=delta&task=heat-pumps&protocol=fact"
PAGES = {
    "systems": "",
    "system": "system?system=delta&protocol=fact&metric=c_acc&sort=value",
    "tasks": "tasks",
    "task": "task?task=heat-pumps&protocol=fact",
    "report": f"report?{DELTA}",
    "criteria": "report?system=delta&task=heat-pumps&protocol=race",
    "evidence": "evidence?system=borealis&task=sodium-ion&protocol=fact&n=6",  # the longest statement
    "questions": f"questions?{DELTA}",
    "search": "search?q=heat&where=statements",
    "differences": "differences?metric=fact.c_acc",
    "difference": f"difference?{DELTA}",
}


NOT_EXPORTED = ("questions", "differences", "difference")
served = pytest.mark.parametrize("viewer", ["served"], indirect=True)


def everywhere(names: Iterable[str]) -> pytest.MarkDecorator:
    """For each of PAGES among `names`, served by the viewer, and from the exported folder if it is part of that."""
    places = [(place, name) for place in ("served", "exported") for name in names]
    kept = [(place, name) for place, name in places if place == "served" or name not in NOT_EXPORTED]
    return pytest.mark.parametrize(("viewer", "name"), kept, indirect=["viewer"])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def runs(tmp_path_factory) -> tuple[Path, Path]:
    """A run of the shipped example, and another judge's."""
    folder = tmp_path_factory.mktemp("viewer")
    run = await quickstart(folder)
    async with MockOpenAI() as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock"}
        return run, await quickstart(folder, judge, "other")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def readers(runs: tuple[Path, Path], tmp_path_factory) -> AsyncIterator[dict[str, Reader]]:
    """The viewer on both runs, and a plain file server on the first one's exported folder."""
    run, other = runs
    async with viewing(run, other) as served, exporting(run, tmp_path_factory.mktemp("site")) as exported:
        yield {"served": served, "exported": exported}


@pytest.fixture(params=["served", "exported"])
def viewer(request, readers: dict[str, Reader]) -> Reader:
    return readers[request.param]


@everywhere(PAGES)
async def test_every_page_fits_both_window_sizes(browser: "Browser", viewer: Reader, name: str) -> None:
    async with visiting(browser, viewer.at(PAGES[name])) as page:
        assert await page.locator("h1").count() == 1
        for width, scheme in BOTH_SIZES:
            await resized(page, width, scheme)
            assert await overflow(page) == 0
            assert await violations(page) == []
            await picture(page, f"viewer-{name}-{width}")


_CUT_OFF = """() => [...document.querySelectorAll(".scroll")]
  .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.getAttribute("aria-label"))"""
_APART = """() => [".pinned", "mark.window"].map((one) => document.querySelector(one).getBoundingClientRect())
  .map((box) => [box.top, box.bottom])"""


@everywhere(["systems", "system", "tasks", "task", "differences"])
async def test_tables_are_whole_in_a_common_window(browser: "Browser", viewer: Reader, name: str) -> None:
    async with visiting(browser, viewer.at(PAGES[name])) as page:
        assert await page.evaluate(_CUT_OFF) == []


_NAMES_AWAY = """() => [...document.querySelectorAll(".scroll")].filter((one) => {
  one.scrollLeft = one.scrollWidth;
  const names = one.querySelectorAll("thead th.who, thead:not(:has(.who)) th:first-child, tbody th");
  return [...names].some((name) => name.getBoundingClientRect().left - one.getBoundingClientRect().left > 2
    || name.getBoundingClientRect().left < one.getBoundingClientRect().left);
}).map((one) => one.getAttribute("aria-label"))"""


@served
@pytest.mark.parametrize("name", ["systems", "system", "tasks", "questions", "differences", "difference"])
async def test_names_stay_when_a_table_is_moved(browser: "Browser", viewer: Reader, name: str) -> None:
    async with visiting(browser, viewer.at(PAGES[name]), width=390) as page:
        assert await page.evaluate(_NAMES_AWAY) == []


async def test_statement_stays_above_its_passage(browser: "Browser", viewer: Reader) -> None:
    async with visiting(browser, viewer.at(PAGES["evidence"])) as page:
        await page.locator("mark.window").wait_for()
        (top, bottom), (passage, end) = await page.evaluate(_APART)
        assert 0 <= top < bottom < passage < end < 900


@served
async def test_question_page_shows_its_prompt(browser: "Browser", viewer: Reader) -> None:
    async with visiting(browser, viewer.at(f"questions?{DELTA}")) as page:
        await page.get_by_role("link", name="statements a cited page supports").first.click()
        await page.get_by_role("heading", name="Prompt").wait_for()
        assert await page.locator("pre").count() == 4
        assert await violations(page) == []
        await picture(page, "viewer-question-1280")


async def test_evidence_opens_and_closes_by_keyboard(browser: "Browser", viewer: Reader) -> None:
    async with visiting(browser, viewer.at(f"report?{DELTA}")) as page:
        for key in ("j", "j", "j", "k"):
            await page.keyboard.press(key)
        assert await page.evaluate("document.activeElement.id") == "s2"
        await page.keyboard.press("Enter")
        window = page.locator("dialog mark.window")
        await window.wait_for()
        assert "median seasonal coefficient" in await window.inner_text()
        assert await page.evaluate("document.activeElement.closest('dialog') !== null")
        assert await violations(page) == []
        await picture(page, "viewer-drawer-1280")
        await page.get_by_role("dialog").get_by_role("link", name="Next").press("Enter")
        await page.locator("dialog h1", has_text="Evidence 3").wait_for()
        await page.keyboard.press("Escape")
        await page.locator("dialog.panel").wait_for(state="hidden")
        assert await page.evaluate("document.activeElement.id") == "s2"


async def test_a_cited_page_prints_to_its_end(browser: "Browser", viewer: Reader) -> None:
    async with visiting(browser, viewer.at(PAGES["evidence"]), scheme="dark") as page:
        text = await page.locator(".page").inner_text()
        printed = pypdfium2.PdfDocument(await page.pdf(format="A4", prefer_css_page_size=True))
        found = "".join(one.get_textpage().get_text_range() for one in printed)
        assert "".join(text.split())[-60:] in "".join(found.split())
        assert "Keys" not in found and "Search" not in found


async def test_evidence_fits_a_narrow_window(browser: "Browser", viewer: Reader) -> None:
    async with visiting(browser, viewer.at(f"report?{DELTA}"), width=390, scheme="dark") as page:
        await page.locator(".report a.chip").first.click()
        await page.locator("dialog mark.window").wait_for()
        assert await overflow(page) == 0
        await picture(page, "viewer-drawer-390")


async def test_tables_are_sorted_and_filtered_by_keyboard(browser: "Browser", viewer: Reader) -> None:
    async with visiting(browser, viewer.at("system?system=borealis&protocol=race&metric=overall")) as page:
        await page.locator("#rows th a", has_text="overall").press("Enter")
        await page.locator("th[aria-sort=descending]").wait_for()
        values = page.locator("#rows [data-column=value]")
        shown = [float(text) for text in (await values.all_inner_texts())[:-1]]
        assert shown == sorted(shown, reverse=True) and len(shown) == 5
        await page.locator("#rows th a", has_text="overall").press("Enter")
        await page.locator("th[aria-sort=ascending]").wait_for()
        assert [float(text) for text in (await values.all_inner_texts())[:-1]] == shown[::-1]
        await page.get_by_role("link", name="Tasks").press("Enter")
        await page.get_by_label("Filter tasks").fill("zh")
        await page.get_by_text("2 of 6 tasks").wait_for()
        assert await page.locator("#rows tbody tr:visible").count() == 2


async def test_address_brings_a_view_of_a_table_back(browser: "Browser", viewer: Reader) -> None:
    async with visiting(browser, viewer.at("tasks")) as page:
        await page.locator("#rows th a", has_text="language").press("Enter")
        await page.get_by_label("Filter tasks").fill("tree-canopy")
        await page.wait_for_url("**filter=tree-canopy**")
        await page.reload()
        assert await page.get_by_label("Filter tasks").input_value() == "tree-canopy"
        assert await page.locator("#rows tbody tr:visible").count() == 1
        assert await page.locator("#rows th[aria-sort=ascending]").inner_text() == "language"
        await page.get_by_label("Filter tasks").fill("nothing like it")
        await page.get_by_role("link", name="Clear").press("Enter")
        assert await page.locator("#rows tbody tr:visible").count() == 6
        assert "filter" not in page.url and "sort=language" in page.url


@everywhere(["systems", "tasks", "system", "task", "questions", "search", "differences"])
async def test_rows_are_stepped_through_by_keyboard(browser: "Browser", viewer: Reader, name: str) -> None:
    async with visiting(browser, viewer.at(PAGES[name])) as page:
        await page.locator(".finds a, tbody a").first.wait_for()
        await page.keyboard.press("j")
        first = await page.evaluate("document.activeElement.href")
        await page.keyboard.press("j")
        second = await page.evaluate("document.activeElement.href")
        await page.keyboard.press("k")
        assert await page.evaluate("document.activeElement.href") == first != second
        await page.keyboard.press("Enter")
        await page.wait_for_url(first)


async def test_question_mark_lists_the_keys(browser: "Browser", viewer: Reader) -> None:
    async with visiting(browser, viewer.at("tasks")) as page:
        await page.keyboard.press("?")
        keys = page.get_by_role("dialog", name="Keys")
        await keys.wait_for()
        assert await violations(page) == []
        await page.keyboard.press("Escape")
        await keys.wait_for(state="hidden")
        await page.get_by_role("button", name="Keys").press("Enter")
        await keys.wait_for()


async def test_two_reports_are_read_in_parallel(browser: "Browser", viewer: Reader) -> None:
    async with visiting(browser, viewer.at("task?task=heat-pumps&protocol=fact")) as page:
        await page.locator("#side-b").select_option("delta")
        right = page.locator("[data-side=b] .held")
        await right.locator("mark.v-unreachable").wait_for()
        assert await page.locator("[data-side=a] .held mark").count() > 0
        await page.reload()
        await right.locator("mark.v-unreachable").wait_for()
        await right.locator("a.chip").first.press("Enter")
        await page.locator("dialog mark.window").wait_for()
        assert await violations(page) == []


@served
async def test_points_of_two_judges_lead_to_reports(browser: "Browser", viewer: Reader) -> None:
    async with visiting(browser, viewer.at("differences?metric=fact.c_acc")) as page:
        assert await page.locator(".scatter circle").count() > 10
        await page.locator(".scatter a").last.click()  # points may lie on others: the last is on top
        await page.get_by_role("heading", name="Evidence that differs").wait_for()


async def test_search_by_keyboard_leads_to_the_statement(browser: "Browser", viewer: Reader) -> None:
    async with visiting(browser, viewer.at("")) as page:
        await page.keyboard.press("/")
        await page.keyboard.type("sodium-ion cells")
        await page.keyboard.press("Enter")
        await page.locator(".finds a").first.press("Enter")
        await page.get_by_role("heading", name="Evidence").wait_for()
        assert "odium-ion cells" in await page.locator("blockquote").inner_text()


async def test_search_goes_on_by_itself(
    browser: "Browser", runs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    where = "search?where=statements&q=heat"
    async with viewing(runs[0]) as reader:
        async with visiting(browser, reader.url + where) as page:
            whole = await page.locator(".finds a").all_inner_texts()
        monkeypatch.setattr(search, "SECONDS", 0.0)
        async with visiting(browser, reader.url + where) as page:
            await page.locator("a[data-search-on]").wait_for(state="detached")
            assert await page.locator(".finds a").all_inner_texts() == whole
            assert await page.locator("#found").inner_text() == f"{len(whole)} found on this page."
    assert len(whole) > 1


async def test_colour_scheme_is_kept_across_pages(browser: "Browser", viewer: Reader) -> None:
    async with visiting(browser, viewer.at("")) as page:
        paper = "getComputedStyle(document.body).backgroundColor"
        light = await page.evaluate(paper)
        await page.get_by_role("button", name="Dark or light").press("Enter")
        dark = await page.evaluate(paper)
        await page.goto(viewer.at("tasks"))
        assert light != dark and await page.evaluate(paper) == dark


async def test_leaderboard_value_leads_to_its_reports(browser: "Browser", viewer: Reader) -> None:
    async with visiting(browser, viewer.at("leaderboard")) as page:
        cell = page.locator("td[data-metric] a").first
        shown = await cell.inner_text()
        await cell.press("Enter")
        await page.locator("#value").wait_for()
        assert await page.locator("#value").inner_text() == shown
        await page.locator("#rows tbody a").first.press("Enter")
        await page.locator(".report").wait_for()


async def test_hostile_text_runs_nothing(browser: "Browser", tmp_path: Path) -> None:
    run = await hostile(tmp_path)
    async with viewing(run) as reader, visiting(browser, reader.url) as page:
        await page.get_by_role("link", name="Tasks").click()
        await page.locator("#rows tbody a").first.click()
        await page.locator("#rows tbody a").last.click()
        await page.locator(".report a.chip").first.click()
        await page.locator("dialog h1").wait_for()
        assert await page.locator("dialog script, dialog img, main img").count() == 0
        await page.keyboard.press("Escape")
        await page.get_by_role("link", name="Questions (").click()
        await page.locator("tbody a").first.click()
        await page.get_by_role("heading", name="Prompt").wait_for()
        assert await overflow(page) == 0
        await page.goto(f"{reader.url}search?where=pages&q=<script>alert(9)</script>")
        await page.locator("h1").wait_for()


@everywhere(["systems", "task"])
async def test_figures_of_a_row_are_in_line(browser: "Browser", viewer: Reader, name: str) -> None:
    async with visiting(browser, viewer.at(PAGES[name])) as page:
        lines = await page.evaluate(
            """() => [...document.querySelectorAll("tbody tr")].map((row) => [...row.querySelectorAll("td.n")]
                .filter((cell) => /^[\\d.]+/.test(cell.innerText.trim())).map((cell) => {
                    const range = document.createRange();
                    range.selectNodeContents(cell);
                    return Math.round(range.getClientRects()[0].bottom);
                }))"""
        )
        assert any(len(row) > 1 for row in lines)
        assert all(max(row) - min(row) <= 4 for row in lines if row), lines


async def test_system_on_few_tasks_has_them_in_one_table(readers: dict[str, Reader]) -> None:
    page = await readers["served"].page(PAGES["system"])
    assert not page.css("details.apart") and page.css("#rows [data-column=difference]")
