"""The helpers of the browser tests detect the faults they look for."""

import pytest

from tests.browser import overflow, violations, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")

GOOD = (
    '<!doctype html><html lang="en"><head><title>Page</title><link rel="icon" href="data:,"></head>'
    "<body><main><h1>Page</h1>{}</main></body></html>"
)


@pytest.fixture
def page_with(tmp_path):
    def write(piece: str) -> str:
        path = tmp_path / "page.html"
        path.write_text(GOOD.replace("{}", piece))
        return path.as_uri()

    return write


async def test_valid_page_passes(browser, page_with):
    async with visiting(browser, page_with("<p>Text.</p>"), width=390) as page:
        assert await violations(page) == []
        assert await overflow(page) == 0


@pytest.mark.parametrize(
    ("piece", "word"),
    [
        ("<script>console.error('no')</script>", "console: no"),
        ("<script>throw new Error('oh')</script>", "raised oh"),
        ("<img alt='' src='http://127.0.0.1:9/a.png'>", "asked http://127.0.0.1:9/a.png"),
        ("<img alt='' src='https://example.org/a.png'>", "asked https://example.org/a.png"),
    ],
)
async def test_errors_and_outside_requests_fail_the_page(browser, page_with, piece, word):
    with pytest.raises(AssertionError, match=word):
        async with visiting(browser, page_with(piece)) as page:
            await page.wait_for_load_state("networkidle")


async def test_axe_and_overflow_find_violations(browser, page_with):
    url = page_with("<input><p style='color:#ccc'>Pale.</p><div style='width:2000px'>Wide.</div>")
    async with visiting(browser, url) as page:
        found = [line.split(" ")[0] for line in await violations(page)]
        assert {"label", "color-contrast"} <= set(found)
        assert await overflow(page) > 700
