"""The two pictures of the README, taken of the shipped example as it is: `make pictures`.

Each holds the figures of the example's board, as text beside its pixels, by which a test knows a stale one.
"""

import asyncio
import shutil
import tempfile
from pathlib import Path

import msgspec
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from playwright.async_api import Browser, Page, async_playwright

from adjudge.engine.runs.run import Run
from tests.browser import FLAGS, NAMES
from tests.viewing import quickstart, viewing

IMAGES = Path(__file__).parents[1] / "docs" / "images"
FIGURES = "figures"
_SIZE = (1200, 720)
_REPORT = "report?system=delta&task=cargo-bikes&protocol=fact"
_STATEMENT = "3"  # the one that is pointed at


def figures(run: Path) -> str:
    """Every score of the board of `run`, as JSON by metric and system."""
    board = Run.open(run).board
    assert board is not None
    return msgspec.json.encode(
        {
            f"{one.protocol}.{one.metric}": {
                row.system: round(row.value, 2) for row in one.standings if row.value
            }
            for one in board.metrics
        }
    ).decode()


async def taken(folder: Path) -> None:
    """Judge the example in `folder`, and take the pictures."""
    run = await quickstart(folder)
    executable = next(filter(None, map(shutil.which, NAMES)))
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        page = await _opened(browser, (run / "leaderboard.html").as_uri())
        await _picture(page, "leaderboard", run)
        async with viewing(run) as reader:
            page = await _opened(browser, f"{reader.url}{_REPORT}")
            await page.locator(f'.report mark[data-n="{_STATEMENT}"]').first.click()
            await _picture(page, "report", run)
        await browser.close()


async def _opened(browser: Browser, url: str) -> Page:
    width, height = _SIZE
    page = await browser.new_page(viewport={"width": width, "height": height}, reduced_motion="reduce")
    await page.goto(url)
    return page


async def _picture(page: Page, name: str, run: Path) -> None:
    path = IMAGES / f"{name}.png"
    await page.screenshot(path=path)
    said = PngInfo()
    said.add_text(FIGURES, figures(run))
    with Image.open(path) as image:
        image.load()
        image.save(path, pnginfo=said, optimize=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(taken(Path(folder)))
