"""The pages of docs/rewards/, and the commands on them as tests type them."""

import re
from pathlib import Path

PAGES = {path.stem: path for path in (Path(__file__).parent.parent / "docs" / "rewards").glob("*.md")}
URL = "http://127.0.0.1:8300"


def block(page: str, language: str, place: int = 0) -> str:
    """A code block of a page, by its language and its place among those."""
    return re.findall(rf"^```{language}(?: title=[^\n]*)?\n(.*?)^```$", PAGES[page].read_text(), re.M | re.S)[
        place
    ]
