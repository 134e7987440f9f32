"""Pages in a real headless Chromium that can reach only this machine.

Use the fixture `browser` and, since one browser serves the whole session, its event loop:

    pytestmark = pytest.mark.asyncio(loop_scope="session")

    async def test_it(browser: Browser) -> None:
        async with visiting(browser, path.as_uri()) as page:
            await page.keyboard.press("Tab")
            assert await violations(page) == []
            await picture(page, "it-1280")
"""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

if TYPE_CHECKING:
    from playwright.async_api import Browser, ConsoleMessage, Dialog, Page, Route

NAMES = ("chromium", "chromium-browser", "google-chrome")
PICTURES = Path(__file__).parents[1] / ".screenshots"
HEIGHT = 900
BOTH_SIZES: tuple[tuple[int, Literal["light", "dark"]], ...] = ((1280, "light"), (390, "dark"))
PATIENCE = 60_000  # milliseconds until an action or an expectation fails
# No background services and no name resolution: a request to another host fails and is seen.
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


def _need(missing: str) -> NoReturn:
    """Skip the test; in CI it fails."""
    if os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)


@pytest.fixture(scope="session")
def chinese_font() -> None:
    """Without one, Chromium prints Chinese as boxes, whose text is lost."""
    fonts = shutil.which("fc-list")
    if fonts and not subprocess.run([fonts, ":lang=zh"], capture_output=True, check=True).stdout:
        _need("no Chinese font: `make debian` installs one, as root")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> "AsyncIterator[Browser]":
    """Chromium with an empty profile. Without Chromium the test is skipped; in CI it fails."""
    executable = next(filter(None, map(shutil.which, NAMES)), None)
    if executable is None:
        _need("no Chromium: `make debian` installs it, as root")
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        # Playwright itself makes a new, empty user data folder.
        found = await playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        yield found
        await found.close()


@asynccontextmanager
async def visiting(
    browser: "Browser", url: str, *, width: int = 1280, scheme: Literal["light", "dark"] = "light"
) -> "AsyncIterator[Page]":
    """The loaded page `url` in a window `width` pixels wide.

    On exit the test fails if the console had an error, a script raised or opened a dialog, or a request went to another
    origin than the page's (for a file: to anything but files).
    """
    context = await browser.new_context(
        viewport={"width": width, "height": HEIGHT}, color_scheme=scheme, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE)
    wrong: list[str] = []

    async def ask(route: "Route") -> None:
        if _origin(route.request.url) in (_origin(url), "data://", "blob://"):
            await route.continue_()
        else:
            wrong.append(f"asked {route.request.url}")
            await route.abort()

    def say(message: "ConsoleMessage") -> None:
        if message.type in ("error", "warning"):
            wrong.append(f"console: {message.text}")

    async def dismiss(dialog: "Dialog") -> None:
        wrong.append(f"opened a dialog: {dialog.message}")
        await dialog.dismiss()

    try:
        await context.route("**/*", ask)
        page = await context.new_page()
        page.on("console", say)
        page.on("dialog", dismiss)
        page.on("pageerror", lambda error: wrong.append(f"raised {error}"))
        await page.goto(url)
        yield page
    finally:
        await context.close()
    assert not wrong, "; ".join(wrong)


def _origin(url: str) -> str:
    """Scheme, host and port."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


async def resized(page: "Page", width: int, scheme: Literal["light", "dark"]) -> None:
    """Show the loaded page in a window `width` pixels wide, in light or dark, once it has laid itself out again."""
    await page.emulate_media(color_scheme=scheme)
    await page.set_viewport_size({"width": width, "height": HEIGHT})
    await page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


async def violations(page: "Page") -> list[str]:
    """The serious and critical findings of axe-core, one line per element."""
    from axe_playwright_python.async_playwright import Axe

    found = (await Axe().run(page)).response["violations"]
    return [
        f"{one['id']} ({one['impact']}): {' '.join(map(str, node['target']))}: {node['failureSummary']}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


async def picture(page: "Page", name: str) -> Path:
    """Save a screenshot of the whole page as `.screenshots/NAME.png`."""
    PICTURES.mkdir(exist_ok=True)
    path = PICTURES / f"{name}.png"
    await page.screenshot(path=path, full_page=True)
    assert path.stat().st_size > 5_000
    return path


async def overflow(page: "Page") -> int:
    """How many pixels the page is wider than its window: 0 if nothing sticks out."""
    width: int = await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return width
