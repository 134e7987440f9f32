"""`adjudge label` in Chromium: thirty items by keyboard over a kill, all scripts, both sizes, light and dark."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.config.run import RunConfig
from adjudge.engine.runs.run import Run
from adjudge.engine.statistics.labels import with_labels
from tests.browser import BOTH_SIZES, overflow, picture, resized, violations, visiting
from tests.viewing import quickstart
from tests.worlds import lines

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.asyncio(loop_scope="session")

LABEL = [sys.executable, "-m", "adjudge.engine", "label"]
KEYS = {"supported": "1", "unsupported": "2", "unknown": "3"}


@asynccontextmanager
async def desk(run: Path, out: Path, *options: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """The command in a process of its own, and the page's URL."""
    started = await asyncio.create_subprocess_exec(
        *LABEL, str(run), "--out", str(out), "--port", "0", *options, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert started.stdout is not None
        yield started, (await asyncio.wait_for(started.stdout.readline(), 240)).decode().strip()
    finally:
        if started.returncode is None:
            started.send_signal(signal.SIGTERM)
        await started.wait()


async def press(page: "Page", key: str, then: str) -> None:
    """Press a key once the page listens, and wait for what the count says then."""
    await page.wait_for_load_state("load")
    await page.keyboard.press(key)
    await page.locator(".count", has_text=then).wait_for()


async def shown_statement(page: "Page") -> str:
    return await page.locator(".what").inner_text()


async def test_thirty_items_are_labelled_over_a_kill(browser: "Browser", tmp_path: Path) -> None:
    run = await quickstart(tmp_path)
    verdicts = {item.line.what: item.labelled.label for item in Run.open(run).items}
    out, options = tmp_path / "labels.jsonl", ("--sample", "30", "--rater", "ann")

    async def agree(page: "Page", number: int) -> None:
        await press(page, KEYS[verdicts[await shown_statement(page)]], f"{number} of 30 labelled")

    async with desk(run, out, *options) as (process, url), visiting(browser, url) as page:
        for number in range(1, 13):
            await agree(page, number)
        before = await shown_statement(page)
        await press(page, "u", "11 of 30 labelled")
        await page.wait_for_load_state("load")
        await page.keyboard.press("n")
        await page.keyboard.type("1 or 2?")
        await page.keyboard.press("Escape")
        await agree(page, 12)
        assert await shown_statement(page) == before
        await press(page, "s", "12 of 30 labelled, 1 skipped")
        await page.wait_for_load_state("load")
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()
    with out.open("ab") as file:
        file.write(b'{"item": "v00')  # a line that was cut off
    async with desk(run, out, *options) as (_, url), visiting(browser, url) as page:
        await page.locator(".count", has_text="12 of 30 labelled, 1 skipped").wait_for()
        for number in range(13, 30):
            await agree(page, number)
        await page.get_by_role("heading", name="30 items done").wait_for()
        assert await violations(page) == []
        await picture(page, "label-done-1280")

    [found] = await asyncio.to_thread(with_labels, run, out)
    assert (found.protocol, found.kind, found.n_items, found.accuracy) == ("fact", "backing", 29, 1.0)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 32 and sum("note" in row for row in rows) == 1
    assert not any({"system", "task_id", "verdict"} & row.keys() for row in rows)


ARABIC = "بلغ ارتفاع البرج اثنين وأربعين مترا في عام 1931."
CHINESE = "该塔建于1931年，高四十二米，由九根石柱支撑。"


async def scripts(folder: Path) -> Path:
    """A run whose statements and pages are Chinese and Arabic, hostile and long."""
    hostile = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    texts = [CHINESE, ARABIC, f"The tower is 42 metres high {hostile}.", "word" * 300]
    urls = [f"https://{place}.example/" for place in range(len(texts))]
    cited = " ".join(f"{text} [{place}]." for place, text in enumerate(texts, 1))
    listed = "\n".join(f"[{place}] {url}" for place, url in enumerate(urls, 1))
    lines(folder / "tasks.jsonl", [{"id": "1", "prompt": f"{CHINESE} {hostile}"}])
    lines(
        folder / "reports.jsonl",
        [{"task_id": "1", "system": "A", "text": f"{cited}\n\n## References\n{listed}"}],
    )
    (folder / "pages").mkdir()
    for place, text in enumerate(texts):
        page = f"<p>{text.replace('<', '&lt;')}</p>" + "<p>Nothing else is said here.</p>" * 50
        (folder / f"pages/{place}.html").write_text(page, encoding="utf-8")
    rows = [{"url": url, "file": f"{place}.html"} for place, url in enumerate(urls)]
    lines(folder / "pages/index.jsonl", rows)
    config = {
        "tasks": str(folder / "tasks.jsonl"),
        "reports": [str(folder / "reports.jsonl")],
        "protocols": [{"name": "fact", "extraction": "markers"}],
        "fetch": {"mode": "snapshot", "snapshot": str(folder / "pages")},
        "store": str(folder / "store"),
        "out": str(folder / "run"),
    }
    await evaluate_async(RunConfig.of(config))
    return folder / "run"


async def test_every_script_of_text_fits_the_window(browser: "Browser", tmp_path: Path) -> None:
    run = await scripts(tmp_path)
    async with (
        desk(run, tmp_path / "labels.jsonl") as (_, url),
        visiting(browser, url) as page,
    ):
        total = int((await page.locator(".count").inner_text()).split()[2])
        assert total >= 3
        directions = set()
        for number in range(1, total + 1):
            await page.wait_for_load_state("load")
            await page.keyboard.press("t")
            assert await page.locator("#whole").get_attribute("open") is not None or number
            for width, scheme in BOTH_SIZES:
                await resized(page, width, scheme)
                assert await overflow(page) == 0
                assert await violations(page) == []
                await picture(page, f"label-{number}-{width}")
            assert await page.locator("main img, main script").count() == 0
            directions.add(await page.locator(".what").evaluate("node => getComputedStyle(node).direction"))
            await press(page, "1", f"{number} of {total} labelled")
        assert directions == {"ltr", "rtl"}
