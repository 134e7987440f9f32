"""The page of a report in Chromium: text and evidence move together, filters live in the address, the panel pins."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.config.run import RunConfig
from tests.browser import overflow, resized, violations, visiting
from tests.viewing import Reader, quickstart, viewing
from tests.worlds import lines

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.asyncio(loop_scope="session")

DELTA = "report?system=delta&task=heat-pumps&protocol=fact"
SIZES = ((1440, "light"), (1280, "dark"), (390, "light"), (390, "dark"))
FOUND = 60


def long_report() -> str:
    """Sixty statements in sections, with a table, on pages of twelve hosts."""
    said = [
        f"The **tower** of town number {n} is {n + 100} metres high in every season of the year [{n % 12 + 1}]."
        + ("\n\n## Section\n\n| a | b |\n|---|--:|\n| one | 1 |\n\n" if n % 10 == 0 else "\n\n")
        for n in range(1, FOUND + 1)
    ]
    listed = "".join(f"{n}. Source, https://host{n}.example/a\n" for n in range(1, 13))
    return f"# Towers\n\n{''.join(said)}\n\n## References\n{listed}"


CHINESE = "# 塔\n\n这座塔在一年四季都有四十二米高，是城里最高的建筑物[1]。\n\n## 参考文献\n[1] 甲 https://host1.example/a\n"
ARABIC = "# البرج\n\nيبلغ ارتفاع البرج 42 مترا في جميع فصول السنة في المدينة [1].\n\n## References\n1. A https://host1.example/a\n"


async def towers(folder: Path) -> Path:
    """The run folder of long, Chinese and Arabic reports; pages of some sources support them, some are unreachable."""
    texts = {"long": long_report(), "zh": CHINESE, "ar": ARABIC}
    rubric = [
        {"criterion": "Names the height.", "points": 3, "tags": ["facts"]},
        {"criterion": "Lies.", "points": -2},
    ]
    lines(
        folder / "tasks.jsonl",
        [
            {"id": name, "prompt": f"Write about towers. {'More. ' * 60}", "gold": {"rubrics": rubric}}
            for name in texts
        ],
    )
    lines(
        folder / "reports.jsonl",
        [{"task_id": name, "system": "s", "text": text} for name, text in texts.items()],
    )
    (folder / "pages").mkdir()
    for n in range(1, 9):
        said = "".join(
            f"<p>The tower of town number {k} is {k + 100} metres high in every season of the year.</p>"
            for k in range(1, FOUND + 1)
            if n < 5
        )
        page = f"<html><body><article><p>About towers of towns.</p>{said}</article></body></html>"
        (folder / "pages" / f"{n}.html").write_text(page, encoding="utf-8")
    rows = [
        {"url": f"https://host{n}.example/a", "file": f"{n}.html", "status_code": 200} for n in range(1, 9)
    ]
    lines(folder / "pages" / "index.jsonl", rows)
    config = {
        "tasks": "tasks.jsonl", "reports": ["reports.jsonl"], "fetch": {"mode": "snapshot", "snapshot": "pages"},
        "protocols": [{"name": "fact", "extraction": "markers"}, "rubrics"], "judge": {"backend": "lexical"},
        "store": "store", "out": "run",
    }  # fmt: skip
    (folder / "adjudge.yaml").write_text(json.dumps(config))
    await evaluate_async(RunConfig.load(folder / "adjudge.yaml"))
    return folder / "run"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def viewer(tmp_path_factory) -> AsyncIterator[Reader]:
    """The viewer on the towers."""
    async with viewing(await towers(tmp_path_factory.mktemp("towers"))) as reader:
        yield reader


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def example(tmp_path_factory) -> AsyncIterator[Reader]:
    """The viewer on the shipped example."""
    async with viewing(await quickstart(tmp_path_factory.mktemp("example"))) as reader:
        yield reader


async def shown(page: "Page") -> list[str]:
    """The numbers of the lines that are shown."""
    return await page.locator(".evidence li[data-n]:visible").evaluate_all(
        "all => all.map(one => one.dataset.n)"
    )


@pytest.mark.parametrize(
    "path", ["task=long", "task=zh", "task=ar", "task=long&protocol=rubrics", "task=long&text=raw"]
)
async def test_report_fits_every_window(browser: "Browser", viewer: Reader, path: str) -> None:
    async with visiting(browser, f"{viewer.url}report?system=s&{path}") as page:
        for width, scheme in SIZES:
            await resized(page, width, scheme)
            assert await overflow(page) == 0
            assert await violations(page) == []
        assert await page.locator(".report").count() == 1


async def test_j_and_k_move_text_and_evidence_together(browser: "Browser", viewer: Reader) -> None:
    async with visiting(browser, f"{viewer.url}report?system=s&task=long&protocol=fact") as page:
        order = await page.locator(".report a.chip").evaluate_all("all => all.map(one => one.id.slice(1))")
        assert len(order) == FOUND and await shown(page) == order
        for _ in range(40):
            await page.keyboard.press("j")
        await page.keyboard.press("k")
        assert await page.evaluate("document.activeElement.id") == f"s{order[38]}"
        line = page.locator(f'.evidence li[data-n="{order[38]}"]')
        assert await line.get_attribute("class") == "now"
        for place in (line, page.locator(f'.report mark[data-n="{order[38]}"]').first):
            box = await place.bounding_box()
            assert box is not None and 0 < box["y"] < 900 - box["height"]


async def test_evidence_follows_the_text_that_is_read(browser: "Browser", viewer: Reader) -> None:
    async with visiting(browser, f"{viewer.url}report?system=s&task=long&protocol=fact") as page:
        order = await shown(page)
        chip = page.locator(f"#s{order[30]}")
        await chip.evaluate("chip => scrollTo({top: chip.getBoundingClientRect().top + scrollY - 300})")
        line = page.locator(f'.evidence li[data-n="{order[30]}"]')
        await page.wait_for_function(
            'n => {const r = document.querySelector(`.evidence li[data-n="${n}"]`)'
            ".getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight}",
            arg=order[30],
        )
        assert await line.is_visible()


async def test_filters_by_keyboard_live_in_the_address(browser: "Browser", viewer: Reader) -> None:
    async with visiting(browser, f"{viewer.url}report?system=s&task=long&protocol=fact") as page:
        every = len(await shown(page))
        unreachable = page.get_by_role("button", name="unreachable")
        await unreachable.press("Enter")
        some = await shown(page)
        assert 0 < len(some) < every and await unreachable.get_attribute("aria-pressed") == "true"
        assert await page.locator("#shown").inner_text() == f"{len(some)} of {every} shown"
        source = page.get_by_label("Source")
        await source.focus()
        await source.select_option("host11.example")
        fewer = await shown(page)
        assert 0 < len(fewer) < len(some)
        assert "show=unreachable" in page.url and "source=host11.example" in page.url
        assert (
            await page.locator(".report mark:not(.off)").evaluate_all(
                "all => [...new Set(all.map(one => one.dataset.n))]"
            )
            == fewer
        )
        assert await violations(page) == []
        await page.goto(page.url)
        assert await shown(page) == fewer
        await page.locator("h1").click()
        await page.keyboard.press("j")
        assert await page.evaluate("document.activeElement.id") == f"s{fewer[0]}"
        await page.get_by_role("button", name="Show all").first.press("Enter")
        assert len(await shown(page)) == every and "show=" not in page.url


async def test_no_line_that_matches_is_said(browser: "Browser", viewer: Reader) -> None:
    address = f"{viewer.url}report?system=s&task=long&protocol=fact&show=supported&source=host12.example"
    async with visiting(browser, address) as page:
        assert await shown(page) == []
        await page.locator("#nothing button").press("Enter")
        assert len(await shown(page)) == FOUND


async def test_r_shows_the_raw_text_and_keeps_the_filter(browser: "Browser", viewer: Reader) -> None:
    async with visiting(browser, f"{viewer.url}report?system=s&task=long&protocol=fact&show=none") as page:
        assert "**tower**" not in await page.locator(".report").inner_text()
        kept = await shown(page)
        await page.keyboard.press("r")
        await page.locator(".report.text").wait_for()
        assert "text=raw" in page.url and await shown(page) == kept
        assert (await page.locator(".report").inner_text()).count("**tower**") == FOUND
        await page.keyboard.press("r")
        await page.locator(".report:not(.text)").wait_for()
        assert "text=raw" not in page.url and await shown(page) == kept


async def test_text_follows_evidence_that_is_scrolled(browser: "Browser", viewer: Reader) -> None:
    async with visiting(browser, f"{viewer.url}report?system=s&task=long&protocol=fact", width=1280) as page:
        line = page.locator(".evidence li[data-n]").nth(10)
        await page.locator(".aside").hover()
        await page.locator(".aside").evaluate(
            "(one, line) => { one.scrollTop += line.getBoundingClientRect().top - one.getBoundingClientRect().top }",
            await line.element_handle(),
        )
        chip = page.locator(f"#s{await line.get_attribute('data-n')}")
        await page.wait_for_function("scrollY > 0")
        held, read = await line.bounding_box(), await chip.bounding_box()
        assert held is not None and read is not None and abs(held["y"] - read["y"]) < 3


@pytest.mark.parametrize("width", [1280, 390])
async def test_panel_pins_statement_and_verdict(browser: "Browser", viewer: Reader, width: int) -> None:
    address = f"{viewer.url}report?system=s&task=long&protocol=fact&show=supported"
    async with visiting(browser, address, width=width) as page:
        await page.keyboard.press("j")
        await page.keyboard.press("Enter")
        await page.locator("dialog.panel mark.window").wait_for()
        await page.locator("dialog.panel").evaluate("panel => panel.scrollTo(0, panel.scrollHeight)")
        said = page.locator("dialog.panel .pinned")
        box = await said.bounding_box()
        assert box is not None and 0 <= box["y"] < 120
        assert "supported" in await said.inner_text() and "The tower of town" in await said.inner_text()
        assert await violations(page) == [] and await overflow(page) == 0
        if width == 390:
            panel = await page.locator("dialog.panel").bounding_box()
            assert panel is not None and (panel["x"], panel["width"]) == (0, 390)
        before = await page.locator("dialog.panel h1").inner_text()
        await page.keyboard.press("j")
        await page.wait_for_function(
            "before => document.querySelector('dialog.panel h1').innerText !== before", arg=before
        )


async def test_marks_stand_in_rendered_text_of_every_language(browser: "Browser", viewer: Reader) -> None:
    for task, words in (
        ("zh", "四十二米高"),
        ("ar", "ارتفاع البرج"),
        ("long", "The tower of town number 1 is"),
    ):
        async with visiting(browser, f"{viewer.url}report?system=s&task={task}&protocol=fact") as page:
            marks = page.locator(".report mark")
            assert words in "".join(await marks.all_inner_texts())
            heading = page.locator(".report h3").first
            assert await heading.evaluate("one => getComputedStyle(one).direction") == (
                "rtl" if task == "ar" else "ltr"
            )


async def test_criteria_have_weight_explanation_and_points(browser: "Browser", example: Reader) -> None:
    async with visiting(browser, f"{example.url}report?system=delta&task=heat-pumps&protocol=race") as page:
        cards = page.locator(".criteria li")
        every = await cards.count()
        weights = await page.locator(".criteria .bar-above .quiet").all_inner_texts()
        assert len(weights) == every > 8
        assert sum(float(text.split()[1]) for text in weights) == pytest.approx(100, abs=0.1)
        assert "with the number of homes" in await cards.first.inner_text()
        assert await cards.first.locator("meter").count() == 2
        await page.get_by_label("Criterion").select_option("insight")
        assert (
            0 < await page.locator(".criteria li:visible").count() < every and "criterion=insight" in page.url
        )
