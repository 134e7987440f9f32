"""How a board looks: its publisher's logo and colours, tiers as groups, one meaning for one sign, and plain numbers."""

import base64
import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser, LexborNode

from adjudge.engine.config.board import BoardConfig, Colours
from adjudge.engine.config.run import ConfigError, RunConfig
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.tables.files import write_leaderboard
from adjudge.engine.tables.page import leaderboard_page
from tests.browser import BOTH_SIZES, overflow, picture, violations, visiting
from tests.made_runs import made_run
from tests.viewing import quickstart

if TYPE_CHECKING:
    from playwright.async_api import Browser

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><circle cx="4" cy="4" r="4"/></svg>'
PURPLE = {"light": "#5a2ca0", "dark": "#c3a6f0"}


def config(folder: Path, board: str) -> Path:
    """A configuration whose section `board:` says `board`."""
    (folder / "tasks.jsonl").write_text('{"id": "1", "prompt": "?"}\n')
    (folder / "adjudge.yaml").write_text(f"tasks: tasks.jsonl\nreports: [reports.jsonl]\nboard: {board}\n")
    return folder / "adjudge.yaml"


def test_logo_is_copied_into_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "logo.svg").write_bytes(SVG)
    logo = RunConfig.load(config(tmp_path, "{logo: logo.svg}")).board.logo
    assert logo == f"data:image/svg+xml;base64,{base64.b64encode(SVG).decode()}"
    assert BoardConfig(logo=logo).logo == logo


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "No such file"),
        (b"not a picture", "not a PNG"),
        (b"<svg" + b" " * 200_000, "larger than 200 kB"),
    ],
)
def test_unusable_logo_is_one_line(tmp_path: Path, content: bytes | None, why: str) -> None:
    if content is not None:
        (tmp_path / "logo").write_bytes(content)
    with pytest.raises(ConfigError, match=why) as raised:
        RunConfig.load(config(tmp_path, "{logo: logo}"))
    assert str(raised.value).startswith("board.logo: ") and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("{logo: 'javascript:alert(1)'}", "cannot be read"),
        ("{colours: {light: blue}}", "not a colour"),
        ("{colours: {light: '#8ab4f8'}}", "darker"),
        ("{colours: {dark: '#0b5cad'}}", "lighter"),
    ],
)
def test_unusable_look_names_its_key(tmp_path: Path, said: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        RunConfig.load(config(tmp_path, said))


@given(st.text(max_size=40))
def test_no_text_of_colours_reaches_the_style(colour: str) -> None:
    try:
        style = Colours(light=colour).style
    except ValueError:
        return
    assert not style or re.fullmatch(r"#[0-9a-fA-F]{6}", colour)


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of twelve systems in several tiers, with a look of its own."""
    folder = made_run(tmp_path_factory.mktemp("run"), [f"agent {n}" for n in range(12)], 40)
    about = BoardConfig(
        title="Twelve agents",
        logo=f"data:image/svg+xml;base64,{base64.b64encode(SVG).decode()}",
        colours=msgspec.convert(PURPLE, Colours),
    )
    return write_leaderboard(msgspec.structs.replace(build_leaderboard([folder]), about=about), folder)


def tier_of(row: LexborNode) -> str:
    pill = row.css_first(".rank .tier")
    return str(pill.attributes["class"])


def test_tiers_are_groups_of_rows_parted_by_a_line(board: Path) -> None:
    html = LexborHTMLParser(board.read_text())
    rows = html.css("#p0t0 tbody tr")
    tiers = [tier_of(row) for row in rows]
    assert len(set(tiers)) > 2
    parted = [row.attributes.get("class") == "parted" for row in rows]
    assert parted == [False] + [a != b for a, b in pairwise(tiers)]


def test_every_pill_is_a_rank_and_a_legend_says_so(board: Path) -> None:
    html = LexborHTMLParser(board.read_text())
    for table in ("allt0", "p0t0", "p1t0"):
        pills = [pill for row in html.css(f"#{table} tbody tr") for pill in row.css(".tier")]
        assert pills
        for pill in pills:
            assert re.fullmatch(r"(rank )?(\d+=?|-)?(, tier \d+)?", pill.text().strip()), pill.html
    assert len(html.css(".legend")) == 3


def test_columns_that_say_nothing_are_hidden(tmp_path: Path) -> None:
    board = build_leaderboard([made_run(tmp_path, ["a", "b", "c"], 12, missing=0.0)])
    emptied = [
        msgspec.structs.replace(
            one, standings=tuple(msgspec.structs.replace(row, value=None) for row in one.standings)
        )
        if one.metric == "insight"
        else one
        for one in board.metrics
    ]
    html = LexborHTMLParser(leaderboard_page(msgspec.structs.replace(board, metrics=tuple(emptied))))
    hidden = {head.attributes["data-key"]: "hidden" in head.attributes for head in html.css("#p0t0 thead th")}
    assert hidden["m.insight"] and hidden["scored"] and not hidden["m.readability"]


@pytest.mark.asyncio(loop_scope="session")
async def test_own_colours_are_legible_and_lines_follow_the_order(browser: "Browser", board: Path) -> None:
    for width, scheme in BOTH_SIZES:
        async with visiting(browser, board.as_uri(), width=width, scheme=scheme) as page:
            assert await violations(page) == [] and await overflow(page) == 0
            assert await page.locator("img.logo").evaluate("(one) => one.naturalWidth > 0")
            await picture(page, f"board-look-{width}")
            parted = page.locator("#p0t0 tr.parted")
            before = await parted.count()
            assert before > 1
            await page.locator("#p0t0 th[data-key='m.insight'] button").click()
            assert await parted.count() == 0
            await page.locator("#p0t0 th[data-key='rank'] button").click()
            assert await parted.count() == before


@pytest.mark.asyncio(loop_scope="session")
async def test_badges_keep_clear_of_a_name_and_in_line_with_it(browser: "Browser", tmp_path: Path) -> None:
    systems = ["a", "a system whose badges stand below its name", *"bcdef"]
    board = build_leaderboard([made_run(tmp_path, systems, 24, missing=0.2)])
    page_of = write_leaderboard(board, tmp_path)
    for width in (1280, 390):
        async with visiting(browser, page_of.as_uri(), width=width) as page:
            gaps = await page.evaluate(
                """() => [...document.querySelectorAll("#p0t0 tbody th .badges")].map((badges) => {
                    const range = document.createRange();
                    range.selectNodeContents(badges.closest("th"));
                    range.setEndBefore(badges);
                    const name = [...range.getClientRects()].filter((one) => one.width > 1);
                    const end = Math.max(...name.map((one) => one.bottom));
                    const last = name.filter((one) => one.bottom > end - 4);
                    const box = badges.getBoundingClientRect();
                    const beside = box.top < end - 4;
                    return [beside, beside ? box.left - Math.max(...last.map((one) => one.right))
                        : box.left - Math.min(...name.map((one) => one.left))];
                })"""
            )
            assert gaps
            assert all(gap > 1 if beside else abs(gap) < 1 for beside, gap in gaps), (width, gaps)


def test_a_short_name_behind_its_protocol_is_not_broken(board: Path) -> None:
    heads = [str(one.html) for one in LexborHTMLParser(board.read_text()).css("#allt0 thead th")]
    assert any("fact c_acc" in one for one in heads), heads


_TABLES = """() => [...document.querySelectorAll("main .scroll")].map((region) => [
    region.getAttribute("aria-label"), region.scrollWidth - region.clientWidth])"""
_BROKEN = """() => [...document.querySelectorAll("main tbody td")].flatMap((cell) => {
    const text = cell.firstChild?.nodeType === Node.TEXT_NODE ? cell.firstChild : null;
    return [...((cell.offsetParent && text)?.data.matchAll(/\\p{L}{3,}/gu) ?? [])].filter(({ 0: word, index }) => {
        const range = document.createRange();
        range.setStart(text, index);
        range.setEnd(text, index + word.length);
        return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1;
    }).map(([word]) => word);
})"""


@pytest.mark.asyncio(loop_scope="session")
async def test_tables_fit_1280_pixels_and_keep_words_whole(browser: "Browser", tmp_path: Path) -> None:
    run = await quickstart(tmp_path)
    async with visiting(browser, (run / "leaderboard.html").as_uri()) as page:
        await page.evaluate(
            "document.querySelectorAll('details:not(.picker)').forEach((one) => one.open = true)"
        )
        await page.locator("details[data-table] table").last.wait_for()
        assert [name for name, more in await page.evaluate(_TABLES) if more > 0] == []
        assert set(await page.evaluate(_BROKEN)) <= {
            "https",
            "example",
        }  # addresses end where their column does
        assert await violations(page) == []


def test_groups_have_pills_and_no_column_that_says_nothing(board: Path, tmp_path: Path) -> None:
    whole = build_leaderboard([made_run(tmp_path, ["a", "b", "c"], 24, missing=0.0)])
    for page, unscored in ((leaderboard_page(whole), False), (board.read_text(), True)):
        (table,) = [
            one for one in LexborHTMLParser(page).css("#p0 table.groups") if "language" in one.html[:900]
        ]
        names = [head.text().strip() for head in table.css("thead th")]
        assert [name in names for name in ("scored", "unscored", "bounds")] == [unscored] * 3
        assert "tier" not in names and {"rank interval", "system", "overall", "interval"} < set(names)
        assert len(table.css("td.rank .tier-1 .place")) >= 2
