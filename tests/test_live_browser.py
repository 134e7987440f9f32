"""A run at work, in a real browser: figures move, a killed run says so, and the resumed one goes on."""

import asyncio
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import overflow, picture, violations, visiting
from tests.slow_run import slow_run
from tests.viewing import TAGS, viewing

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def state(page: "Page", wanted: str) -> None:
    """Wait until the page says that the run is in that state."""
    await page.locator(f"main [data-fig=state][data-state={wanted}]").wait_for()


async def done(page: "Page", at_least: int) -> None:
    """Wait until the page shows so many scorecards."""
    await page.wait_for_function(
        "(least) => parseInt(document.querySelector('[data-fig=done]').textContent) >= least", arg=at_least
    )


async def test_page_follows_a_run_that_is_killed_and_resumed(browser: "Browser", tmp_path: Path) -> None:
    async with slow_run(tmp_path, named=TAGS) as run:
        run.allow(60)
        process = await run.start()
        async with viewing(run.out) as viewer, visiting(browser, viewer.url) as page:
            await state(page, "running")
            await done(page, 3)
            await page.evaluate("window.unchanged = true")
            assert await page.locator("main [data-fig=done]").inner_text() < "8 of 24"
            run.allow(130)
            await done(page, 11)
            await page.get_by_text(re.compile("Over the [23] of 6 tasks")).wait_for()
            assert float(await page.locator("[data-fig=cost]").inner_text()) > 0
            assert await violations(page) == []
            await picture(page, "live-running-1280")
            process.kill()
            await state(page, "stopped")
            await page.get_by_text("its process was killed").wait_for()
            await picture(page, "live-killed-1280")
            run.allow(150)
            await run.start()
            await state(page, "running")
            await done(page, 12)
            run.allow(1_000_000)
            await page.get_by_role("link", name="Show its results").wait_for()
            assert await page.evaluate("window.unchanged"), "nothing was loaded anew"
            await page.get_by_role("link", name="Show its results").press("Enter")
            await page.get_by_text("ranked by score; 6 tasks").first.wait_for()
            assert await page.locator("[data-fig]").count() == 0


async def test_page_says_that_a_run_was_interrupted(browser: "Browser", tmp_path: Path) -> None:
    async with slow_run(tmp_path) as run:
        run.allow(40)
        process = await run.start()
        async with (
            viewing(run.out) as viewer,
            visiting(browser, viewer.url, width=390, scheme="dark") as page,
        ):
            await done(page, 2)
            process.send_signal(signal.SIGINT)
            await state(page, "stopped")
            await page.get_by_text("interrupted; run the same command again").wait_for()
            assert await overflow(page) == 0
            await picture(page, "live-interrupted-390")


async def test_page_says_that_the_judge_is_away(browser: "Browser", tmp_path: Path) -> None:
    async with slow_run(tmp_path) as run:
        run.allow(40)
        await run.start()
        async with viewing(run.out) as viewer, visiting(browser, f"{viewer.url}tasks") as page:
            await page.locator("header", has_text=re.compile("[34] of 18")).wait_for()
            run.allow(60)
            await page.get_by_role("link", name="Show what was scored since").wait_for()
            run.refuses = True
            run.allow(60)
            await page.locator("header [data-state=paused]").press("Enter")
            await page.get_by_text("The judge does not answer").wait_for()


async def test_hidden_page_follows_nothing(browser: "Browser", tmp_path: Path) -> None:
    async with slow_run(tmp_path) as run:
        await run.start()
        async with viewing(run.out) as viewer, visiting(browser, viewer.url) as page:
            await state(page, "running")
            await page.evaluate(
                """() => {
                  Object.defineProperty(document, "hidden", { value: true, configurable: true });
                  document.dispatchEvent(new Event("visibilitychange"));
                }"""
            )
            run.allow(60)
            await asyncio.sleep(5)
            assert (await page.locator("[data-fig=done]").inner_text()).startswith("0 ")
            await page.evaluate(
                "() => { delete document.hidden; document.dispatchEvent(new Event('visibilitychange')); }"
            )
            await done(page, 3)
