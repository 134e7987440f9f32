"""Tables that are wider than the window: a shadow shows that there is more, and keys scroll them."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from tests.browser import overflow, violations, visiting

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.asyncio(loop_scope="session")

TABLE = (
    "<table><thead><tr><th>system</th><th>a <code>score</code></th></tr></thead>"
    '<tbody><tr><td style="min-width: 900px; height: 60px"></td>'
    '<td>1<span class="visually-hidden">, the first tier</span></td></tr></tbody></table>'
)
REGION = f'<div class="scroll" role="region" tabindex="0" aria-label="Scores">{TABLE}</div>'
BOARD = (ROOT / "engine/tables/assets/base.css").read_text()
SITE = ":root { --md-default-bg-color: white }" + (ROOT / "docs/site.css").read_text()
WIDE = {
    "board": (BOARD, REGION),
    "report": (BOARD, f'<div class="report">{REGION.replace("scroll", "wide")}</div>'),
    "site": (SITE, f'<div class="md-typeset">{REGION}</div>'),
}


async def edge(page: "Page", side: Literal["left", "right"]) -> bytes:
    """A picture of a few pixels at a side of the empty cell."""
    box = await page.locator("[role=region]").bounding_box()
    assert box is not None
    x = box["x"] + (4 if side == "left" else box["width"] - 8)
    return await page.screenshot(
        clip={"x": x, "y": box["y"] + box["height"] - 25, "width": 4, "height": 4}, animations="disabled"
    )


@pytest.mark.parametrize("place", WIDE)
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_shadow_lies_where_a_table_goes_on(
    browser: "Browser", tmp_path: Path, place: str, scheme: Literal["light", "dark"]
) -> None:
    style, body = WIDE[place]
    file = tmp_path / "page.html"
    file.write_text(
        f'<!doctype html><html lang="en"><title>t</title><style>{style} td {{ border: 0 }} .wide {{ overflow: auto }}'
        f"</style><main><h1>t</h1>{body}</main>"
    )
    async with visiting(browser, file.as_uri(), width=390, scheme=scheme) as page:
        assert await overflow(page) == 0 and await violations(page) == []
        left, right = await edge(page, "left"), await edge(page, "right")
        assert left != right
        await page.locator("[role=region]").focus()
        await page.keyboard.press("ArrowRight")
        await page.wait_for_function("document.activeElement.scrollLeft > 0")
        await page.evaluate("document.activeElement.scrollTo(1e6, 0)")
        assert await edge(page, "left") != left and await edge(page, "right") != right
