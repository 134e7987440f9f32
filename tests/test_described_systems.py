"""What a configuration says of systems stands on the board, in every form, and can be filtered by."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from selectolax.lexbor import LexborHTMLParser

from adjudge.engine.config.board import SystemConfig
from adjudge.engine.config.run import ConfigError, RunConfig
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.tables.files import write_leaderboard
from tests.boards import tables
from tests.browser import BOTH_SIZES, overflow, picture, violations, visiting
from tests.made_runs import made_run

if TYPE_CHECKING:
    from playwright.async_api import Browser

SYSTEMS = {
    "heron": {
        "organisation": "Example Lab",
        "weights": "open",
        "licence": "MIT",
        "date": "2026-01-15",
        "link": "https://heron.example/<b>",
    },
    "tern": {
        "organisation": "Sample <Works>",
        "weights": "closed",
        "date": "2026-06-01",
        "price": "2 per report",
    },
    "not there": {"organisation": "Nobody"},
}


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    """The page of three systems, of which two are described."""
    folder = made_run(tmp_path_factory.mktemp("run"), ["heron", "tern", "wren"], 12)
    record = RunRecord.read(folder)
    described = msgspec.convert(SYSTEMS, type=dict[str, SystemConfig])
    config = msgspec.structs.replace(record.config, systems=described)
    msgspec.structs.replace(record, config=config).write(folder)
    return write_leaderboard(build_leaderboard([folder]), folder)


def test_every_form_says_who_made_a_system(page: Path) -> None:
    found = json.loads(page.with_suffix(".json").read_bytes())["systems"]
    assert set(found) == {"heron", "tern"}
    assert found["heron"]["weights"] == "open"
    table = next(
        one for one in tables(page.with_suffix(".md").read_text()) if one[0][:2] == ["system", "organisation"]
    )
    assert table[0] == ["system", "organisation", "weights", "licence", "date", "price", "link"]
    html = LexborHTMLParser(page.read_text())
    names = {row.attributes["data-system"]: row for row in html.css("#p0t0 tbody tr")}
    assert names["heron"].css_first(".about").text().strip() == "Example Lab, open weights, MIT"
    assert names["tern"].css_first(".about").text().strip() == "Sample <Works>, closed weights"
    assert names["wren"].css_first(".about") is None
    (link,) = html.css("#systems-table tbody a")
    assert link.attributes["href"] == "https://heron.example/<b>"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"link": "javascript:alert(1)"}, "link"),
        ({"weights": "half"}, "weights"),
        ({"organization": "Example Lab"}, "organisation"),
        ({"date": "soon"}, "date"),
    ],
)
def test_mistakes_name_the_key(said: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        RunConfig.of({"tasks": "t.jsonl", "systems": {"heron": said}})


@pytest.mark.asyncio(loop_scope="session")
async def test_systems_are_filtered_and_drawn_by_date(browser: "Browser", page: Path) -> None:
    for width, scheme in BOTH_SIZES:
        async with visiting(browser, page.as_uri(), width=width, scheme=scheme) as view:
            plot = view.locator('[data-section="0"][data-figure="dates"]')
            await plot.scroll_into_view_if_needed()
            await plot.locator("circle").first.wait_for()
            assert await plot.locator("circle").count() == 2
            assert await overflow(view) == 0
            assert await violations(view) == []
            await picture(view, f"board-systems-{width}")
            await view.locator("#filter").fill("open weights")
            rows = await view.locator("#p0t0 tbody tr:visible").all()
            assert [await row.get_attribute("data-system") for row in rows] == ["heron"]
