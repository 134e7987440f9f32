"""The leaderboard's page in Chromium: from disk, by keyboard, at three widths, in light and dark, and on paper."""

import random
import re
from urllib.parse import parse_qs, urlsplit

import msgspec
import pypdfium2
import pytest

from adjudge.engine.config.board import BoardConfig
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.statistics.published import Published
from adjudge.engine.tables.files import write_leaderboard
from adjudge.engine.tables.table import visible
from tests.browser import overflow, picture, resized, violations, visiting
from tests.made_runs import made_run
from tests.worlds import lines

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE = "</script><img src=x onerror=alert(1)>&amp;'\"{{}}"
LONG = "openai/a-deep-research-system-with-a-rather-long-name-of-2026-01-15-that-goes-on-{}-effort"
SYSTEMS = ("atlas", LONG.format("high"), HOSTILE, LONG.format("low"), "北京研究员", "echo", "echo\u200b")
FOCUSED = "document.activeElement"


def board_of(folder, systems, tasks=40, about=None):
    """The page of a run of `systems` with people's scores of ten tasks and published figures."""
    run = made_run(folder, systems, tasks, repeats=2)
    draw = random.Random(0)
    ratings = [
        {
            "task_id": str(task),
            "system": system,
            "rater": "r",
            "metric": "race.overall",
            "value": draw.random(),
        }
        for task in draw.sample(range(tasks), min(tasks, 10))
        for system in systems
    ]
    human = lines(run / "human.jsonl", ratings)
    published = [Published(system, "overall", 50.0 + place) for place, system in enumerate(systems[:4])]
    board = build_leaderboard([run], published=published, human=human)
    board = msgspec.structs.replace(board, about=about or BoardConfig(), notes=board.notes[:5])
    assert len(board.notes) == 5
    return write_leaderboard(board, run).as_uri()


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> str:
    about = BoardConfig(title="Seven agents", description="On forty tasks.", author="Example Lab")
    return board_of(tmp_path_factory.mktemp("run"), SYSTEMS, about=about)


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> str:
    """The page of forty systems."""
    names = [f"vendor-{number % 7}/deep-research-agent-2026-{number:02d}" for number in range(40)]
    return board_of(tmp_path_factory.mktemp("run"), names)


async def see_all(page) -> None:
    """Scroll every figure into view."""
    for plot in await page.locator(".plot").all():
        await plot.scroll_into_view_if_needed()
    await page.wait_for_function(
        "document.querySelectorAll('.plot svg').length && !document.querySelector('.plot:not([data-drawn])')"
    )
    await page.evaluate("scrollTo(0, 0)")


async def tab_to(page, wanted: str, key: str = "Tab", most: int = 120) -> None:
    """Press `key` until the script expression `wanted` holds of the focused element."""
    for _ in range(most):
        await page.keyboard.press(key)
        if await page.evaluate(f"(at => {wanted})({FOCUSED})"):
            return
    pytest.fail(f"{most} tabs do not reach {wanted}")


def column(page, table: str, name: str):
    """The texts of the visible cells under the heading `name`; of systems, their whole names."""
    return page.evaluate(
        """([id, name]) => {
            const table = document.getElementById(id);
            const heads = [...table.tHead.rows[0].cells].map((cell) => cell.querySelector("button").textContent.trim());
            const at = heads.indexOf(name);
            const text = (row) => name === "system" ? row.dataset.system
                : (row.cells[at].querySelector(".place") ?? row.cells[at]).textContent.trim();
            return [...table.tBodies[0].rows].filter((row) => !row.hidden).map(text);
        }""",
        [table, name],
    )


async def asked(page) -> dict[str, str]:
    """What the page's address says of the view."""
    return {key: found for key, (found,) in parse_qs(urlsplit(page.url).query).items()}


@pytest.mark.parametrize(
    ("width", "schemes"), [(1440, ["dark"]), (1280, ["light", "dark"]), (390, ["dark", "light"])]
)
async def test_whole_page_is_accessible_and_fits_its_window(browser, url, width, schemes):
    async with visiting(browser, url, width=width, scheme=schemes[0]) as page:
        for scheme in schemes:
            await resized(page, width, scheme)
            await see_all(page)
            await picture(page, f"leaderboard-{width}-{scheme}")
            opened = str(scheme == "light").lower()
            await page.evaluate(
                f"for (const one of document.querySelectorAll('details')) one.open = {opened}"
            )
            assert await violations(page) == []
            assert await overflow(page) == 0


async def test_forty_systems_fit_a_narrow_window(browser, many):
    async with visiting(browser, many, width=390) as page:
        await see_all(page)
        assert await violations(page) == []
        assert await overflow(page) == 0
        assert len(await column(page, "p0t0", "system")) == 40
        names = page.locator("#p0t0 tbody .short")
        assert all(
            name.startswith("vendor-") for name in await names.all_inner_texts()
        )  # whole, in as many lines


_SCALES = """() => [...document.querySelectorAll(".plot:has(g.dots) svg[role=img]")].map((svg) =>
  [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim().match(/^[\\d.,]+[kM]?$/)
    && text.getBoundingClientRect().top > svg.getBoundingClientRect().bottom - 45).length)"""


async def test_axes_of_a_narrow_window_have_a_scale(browser, url):
    async with visiting(browser, url, width=390) as page:
        await see_all(page)
        named = await page.evaluate(_SCALES)
        assert named and min(named) > 1  # a single value is no scale


async def test_little_tables_stay_with_their_headings_on_paper(browser, url):
    async with visiting(browser, url) as page:
        await page.emulate_media(media="print")
        kept = """(all) => all.map((one) =>
          [one.tBodies[0].rows.length <= 15, getComputedStyle(one.parentElement).breakInside])"""
        tables = await page.locator("section > .scroll > table").evaluate_all(kept)
        assert {inside for little, inside in tables if little} == {"avoid"}


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
async def test_first_ranked_row_is_above_the_fold(browser, url, many, width, height):
    for each in (url, many):
        async with visiting(browser, each, width=width) as page:
            await page.set_viewport_size({"width": width, "height": height})
            assert await page.locator("#notes summary").inner_text() == "5 notes"
            box = await page.locator(".headline tbody tr").first.bounding_box()
            assert box["y"] + box["height"] < height


@pytest.mark.parametrize("width", [1280, 390])
async def test_no_two_names_look_equal(browser, url, width):
    async with visiting(browser, url, width=width) as page:
        await see_all(page)
        names = await page.evaluate(
            """() => [...document.querySelectorAll("#p0t0 tbody th")].map((cell) =>
                [...cell.querySelectorAll("span")].filter((one) => !one.children.length && one.offsetParent
                    && !one.closest(".badges, .full")).map((one) => one.innerText).join(""))"""
        )
        assert len(names) == len(SYSTEMS) == len({name.replace("\u200b", "") for name in names})
        spoken = await page.evaluate(
            """() => [...document.querySelectorAll("#p0t0 tbody th")]
                .map((cell) => (cell.querySelector(".full") ?? cell.firstElementChild).textContent)"""
        )
        assert set(spoken) == set(SYSTEMS)
        drawn = await page.evaluate(
            """() => [...document.querySelector(".plot[data-figure=ranks] svg").querySelectorAll("text")]
                .map((one) => one.textContent)"""
        )
        ticks = [one for one in drawn if not re.fullmatch(r"[\d.−]+|.*→", one)]
        assert len({*ticks}) == len(ticks) == len(SYSTEMS)


async def test_human_and_published_figures_appear_beside_the_judge(browser, url):
    async with visiting(browser, url) as page:
        assert all(
            re.fullmatch(r"\d+\.\d\d", text) for text in await column(page, "p0t0", "corrected by people")
        )
        published = await column(page, "p0t0", "published")
        assert sorted(published) == ["-", "-", "-", "50.00", "51.00", "52.00", "53.00"]
        tables = [(await one.text_content()).strip() for one in await page.locator("#p0 summary").all()]
        assert "Differences of overall corrected by people's scores" in tables
        assert "overall beside published figures" in tables
        await see_all(page)
        against = page.locator("#p0 .plot[data-figure=agreement]")
        assert "by people" in await against.locator("svg").first.get_attribute("aria-label")


async def test_table_is_sorted_by_keyboard_best_first(browser, url):
    async with visiting(browser, url) as page:
        ranked = await column(page, "p1t0", "system")
        assert set(ranked) == set(SYSTEMS)
        await tab_to(page, "at.matches('#p1t0 thead button') && at.textContent.trim() === 'e_cit'")
        heading = page.locator("#p1t0 th[data-key='m.e_cit']")
        assert "\u2195" in await heading.locator("button").evaluate(
            "(at) => getComputedStyle(at, '::after').content"
        )
        for key, direction in (("Enter", "descending"), ("Space", "ascending")):
            await page.keyboard.press(key)
            assert await heading.get_attribute("aria-sort") == direction
            values = [float(text) for text in await column(page, "p1t0", "e_cit")]
            assert values == sorted(values, reverse=direction == "descending")
        assert (await asked(page))["sort.p1"] == "m.e_cit"
        await tab_to(
            page, "at.matches('#p1t0 thead button') && at.textContent.trim() === 'rank'", "Shift+Tab"
        )
        await page.keyboard.press("Enter")
        assert await column(page, "p1t0", "system") == ranked
        assert await page.locator("#p1t0 th[aria-sort]").count() == 1


async def test_every_header_and_chip_works_by_keyboard(browser, url):
    async with visiting(browser, url) as page:
        await see_all(page)
        for heading in await page.locator(".standings thead th:not([hidden])").all():
            await heading.locator("button").focus()
            await page.keyboard.press("Enter")
            assert await heading.get_attribute("aria-sort") in ("ascending", "descending")
        for chip in await page.locator("button.chip").all():
            await chip.focus()
            await page.keyboard.press("Space")
            assert await chip.get_attribute("aria-pressed") == "true"
        reachable = "(one) => one.tabIndex >= 0"
        for one in await page.locator(
            ".badge, .tier[data-tip]:not(#all *), thead button, summary, .chip"
        ).all():
            assert await one.evaluate(reachable)


async def test_badges_and_headings_explain_themselves_on_focus(browser, url):
    async with visiting(browser, url) as page:
        for one in ("#p1 tbody .badge", "#p1t0 thead th[data-key='m.c_acc'] button"):
            await page.locator(one).first.focus()
            tip = page.locator("#tip")
            assert await tip.get_attribute("role") == "tooltip"
            assert await tip.inner_text() == await page.locator(one).first.get_attribute("data-tip")
            assert await page.evaluate(f"{FOCUSED}.getAttribute('aria-describedby')") == "tip"
            await page.keyboard.press("Escape")
            assert await tip.count() == 0


async def test_columns_are_chosen_by_keyboard(browser, url):
    async with visiting(browser, url) as page:
        heading = page.locator("#p1t0 th[data-key='m.c_acc_distinct']")
        assert not await heading.is_visible()
        await tab_to(page, "at.matches('#p1 .picker summary')")
        await page.keyboard.press("Enter")
        await tab_to(page, "at.value === 'm.c_acc_distinct'")
        await page.keyboard.press("Space")
        assert await heading.is_visible()
        assert "m.c_acc_distinct" in (await asked(page))["columns.p1"].split(",")
        await page.keyboard.press("Escape")
        assert not await page.locator("#p1 .picker fieldset").is_visible()
        assert all(re.fullmatch(r"\d+\.\d\d", text) for text in await column(page, "p1t0", "c_acc_distinct"))


async def test_systems_are_filtered_by_keyboard_in_tables_and_figures(browser, url):
    async with visiting(browser, url) as page:
        await page.keyboard.press("Tab")
        assert await page.evaluate(f"{FOCUSED}.className") == "skip"
        await tab_to(page, "at.id === 'filter'")
        await page.keyboard.type("E")
        left = [name for name in SYSTEMS if "e" in name.lower()]
        assert sorted(await column(page, "p0t0", "system")) == sorted(left)
        assert await page.locator("#found").text_content() == f"{len(left)} of {len(SYSTEMS)} systems"
        await page.keyboard.type("cho")
        assert {*await column(page, "p1t0", "system")} == {"echo", "echo\u200b"}
        await see_all(page)
        figure = page.locator("#p0 .plot[data-figure=ranks] svg").first
        said = await figure.get_attribute("aria-label")
        assert said == "Share of resamples in which each of 2 systems has each rank"
        await page.keyboard.press("Control+A")
        await page.keyboard.type("nobody <b>")
        none = page.locator("#none")
        assert await none.locator("span").inner_text() == "No system matches 'nobody <b>'."
        assert not await page.locator("#p0t0").is_visible()
        await tab_to(page, "at.matches('#none button')")
        await page.keyboard.press("Enter")
        assert len(await column(page, "p0t0", "system")) == len(SYSTEMS)
        assert not await none.is_visible() and await page.locator("#p0t0").is_visible()


async def test_address_brings_the_view_back(browser, url):
    async with visiting(browser, url) as page:
        await page.locator("#filter").fill("a")
        await page.locator("#p1t0 th[data-key='m.e_cit'] button").click()
        await page.locator("#p0 .picker summary").click()
        await page.locator("#p0 .picker input[value='m.insight']").uncheck()
        await page.locator("#p0 .picker input[value='interval']").check()
        await page.locator("#theme").click()
        await page.locator("#p0 [data-choose=tokens]").click()
        copied, order = page.url, await column(page, "p1t0", "system")
    async with visiting(browser, copied) as page:
        assert await column(page, "p1t0", "system") == order
        assert await page.locator("#filter").input_value() == "a"
        assert not await page.locator("#p0t0 th[data-key='m.insight']").is_visible()
        assert await page.locator("#p0t0 th[data-key=interval]").is_visible()
        assert await page.evaluate("document.documentElement.dataset.theme") == "dark"
        await see_all(page)
        spent = page.locator("#p0 .plot[data-figure=spent] svg[role=img]")
        assert "against tokens per report" in await spent.get_attribute("aria-label")
        assert page.url == copied


async def test_unknown_words_of_an_address_change_nothing(browser, url):
    async with visiting(
        browser, f"{url}?sort.p0=none&sort.%22%5D=x&columns.p9=a&theme=pink&figure.0.spent=<b>"
    ) as page:
        await see_all(page)
        assert await page.locator("th[aria-sort]").count() == 0
        assert len(await column(page, "p0t0", "system")) == len(SYSTEMS)


async def test_heat_map_is_read_by_keyboard(browser, url):
    async with visiting(browser, url) as page:
        await see_all(page)
        heat = page.locator("#p0 .plot[data-figure=tasks]")
        await tab_to(page, "at.matches('#p0 canvas')", most=200)
        said = heat.locator("[role=status]")
        first = await said.inner_text()
        assert re.fullmatch(r".*, task 0: (\d+\.\d\d|not scored)", first)
        await page.keyboard.press("ArrowRight")
        assert ", task 1: " in await said.inner_text()
        await page.keyboard.press("ArrowDown")
        assert (await said.inner_text()).partition(",")[0] != first.partition(",")[0]
        await page.locator("#p0 [data-choose='by.language']").click()
        await heat.locator("canvas").focus()
        await page.keyboard.press("End")
        assert ", zh: " in await said.inner_text()


async def test_names_of_a_figure_cover_no_dot_and_no_interval(browser, many):
    boxes = """([kind, section]) => [...document.querySelectorAll(`#p${section} .plot[data-figure] g.${kind} > *`)]
        .map((one) => [one.closest(".plot").dataset.figure, one.getBoundingClientRect()])
        .map(([figure, box]) => [figure, box.left, box.right, box.top, box.bottom])"""
    async with visiting(browser, many) as page:
        await see_all(page)
        names, *others = [await page.evaluate(boxes, [kind, 0]) for kind in ("named", "dots", "spans")]
        assert {name[0] for name in names} == {"spent", "agreement"}
        assert all(others)
        for figure, left, right, top, bottom in names:
            for dots in others:
                assert not [
                    one
                    for one in dots
                    if one[0] == figure
                    and one[1] < right
                    and left < one[2]
                    and one[3] < bottom - 2
                    and top + 2 < one[4]
                ]


async def test_heat_map_of_few_tasks_has_its_scale(browser, tmp_path):
    url = board_of(tmp_path, ("atlas", "echo"), tasks=2)
    async with visiting(browser, url) as page:
        await see_all(page)
        canvas = page.locator("#p0 canvas")
        assert (await canvas.bounding_box())["width"] > 250
        assert await canvas.evaluate("(one) => one.getContext('2d').font") == "12px system-ui, sans-serif"


async def test_figures_leave_no_gap_in_their_rows(browser, url, many):
    for each in (url, many):
        async with visiting(browser, each) as page:
            await see_all(page)
            figures = """() => [...document.querySelectorAll("#p0 figure")].map((one) => one.getBoundingClientRect())
                .map((box) => [box.left, box.right, box.top, box.bottom])"""
            whole = await page.locator("#p0 .figures").bounding_box()
            found = await page.evaluate(figures)
            for _, _, top, bottom in found:
                row = [one for one in found if abs(one[2] - top) < 1]
                assert {round(one[3]) for one in row} == {round(bottom)}
                assert sum(one[1] - one[0] for one in row) > whole["width"] - 40


async def test_figure_opens_as_a_table_by_keyboard(browser, url):
    async with visiting(browser, url) as page:
        await tab_to(page, "at.parentElement.dataset.table === 'pairs'", most=200)
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
        assert await page.evaluate(paper) != light and (await asked(page))["theme"] == "dark"
        assert await violations(page) == []
        await page.keyboard.press("Enter")
        assert await page.evaluate(paper) == light


@pytest.mark.usefixtures("chinese_font")
async def test_page_prints_on_six_pages_with_nothing_cut(browser, url):
    async with visiting(browser, url, scheme="dark") as page:
        await see_all(page)
        values = await column(page, "p1t0", "c_acc") + await column(page, "p0t0", "overall")
        notes = [await one.text_content() for one in await page.locator("#notes li").all()]
        titles = await page.locator("figcaption").all_text_contents()
        headings = [
            (await one.text_content()).strip()
            for one in await page.locator(".standings thead th:not([hidden]) button").all()
        ]
        printed = pypdfium2.PdfDocument(await page.pdf(format="A4", prefer_css_page_size=True))
        assert len(printed) <= 6
        text = "".join(one.get_textpage().get_text_range() for one in printed)
        for one in printed:  # in the colours of the light scheme
            pixels = one.render(scale=0.5).to_numpy()
            assert (pixels.mean(axis=2) < 60).mean() < 0.02
        for word in (
            *map(visible, SYSTEMS),
            *values,
            *notes,
            *titles,
            *headings,
            "Seven agents",
            "How it was made",
            "Versions",
        ):
            assert squeezed(word) in squeezed(text), word
        assert "Filter systems" not in text and "Dark or light" not in text
        for sheet in printed:  # nothing reaches over the paper's edge
            found = sheet.get_textpage()
            width = sheet.get_width()
            boxes = [found.get_charbox(at) for at in range(found.count_chars())]
            assert all(left >= 0 and right <= width for left, _, right, _ in boxes)


def squeezed(text: str) -> str:
    """`text` without what line breaks on paper change."""
    return re.sub(r"[\s\u00ad\ufffe\u2010\u200b-]+", "", text)


async def test_board_of_one_unscored_system_opens(browser, tmp_path):
    folder = made_run(tmp_path, ("only",), 3, missing=1.0)
    page_file = write_leaderboard(build_leaderboard([folder]), folder)
    async with visiting(browser, page_file.as_uri(), width=390) as page:
        assert await column(page, "p0t0", "scored") == ["0/2 (under 95%)"]
        badges = await page.locator("#p0t0 .badge").all_text_contents()
        assert badges[0] == "cov. 0 %" and badges[1].endswith("unscored")
        assert await page.locator("#p0 .head .badge.bad").text_content() == "no ranking"
        await page.locator("body").press("End")
        assert await violations(page) == []
