"""Leaderboards of made-up runs, and the cells that are printed of them."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tests.worlds import lines, world


def tables(markdown: str) -> list[list[list[str]]]:
    """The tables of a Markdown text, cell by cell; fails if a row and its heading differ in width."""
    found: list[list[list[str]]] = [[]]
    for line in markdown.splitlines():
        if line.startswith("|"):
            cells = [re.sub(r"\\(.)", r"\1", cell) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            found[-1].append([cell.strip() for cell in cells])
        elif found[-1]:
            found.append([])
    found = [table for table in found if table]
    for table in found:
        assert {len(row) for row in table} == {len(table[0])}, table
        assert set(table[1]) == {"---"}
    return found


WORDS = [
    "copper",
    "glacier",
    "violin",
    "harbour",
    "lantern",
    "meadow",
    "pepper",
    "quartz",
    "saddle",
    "tunnel",
]


FILLER = "Nothing else was found in the sources given. " * 20


def unequal(folder: Path, shares: dict[str, float], tasks: int = 60, **settings: object) -> Path:
    """A world where each wanted word occurs in a system's reports with a probability equal to its share."""
    config = world(folder, systems=0, tasks=0, **settings)
    criteria = [{"criterion": f"The report names {word}.", "points": 1, "tags": ["words"]} for word in WORDS]
    lines(
        folder / "tasks.jsonl",
        [
            {"id": f"task{n}", "prompt": f"What of matter {n}?", "gold": {"rubrics": criteria}}
            for n in range(tasks)
        ],
    )
    for system, share in shares.items():
        draw = random.Random(system)
        texts = [
            FILLER + " ".join(f"The {word} is there." for word in WORDS if draw.random() < share)
            for _ in range(tasks)
        ]
        rows = [{"task_id": f"task{n}", "system": system, "text": text} for n, text in enumerate(texts)]
        lines(folder / "reports" / f"{system}.jsonl", rows)
    return config


Rows = list[list[str]]


def cells(html: str) -> Iterator[tuple[list[str], Rows]]:
    for table in LexborHTMLParser(html).css("table"):
        columns = [cell.text() for cell in table.css("thead th")]
        yield columns, [[_read(cell) for cell in row.css("th, td")] for row in table.css("tbody tr")]


def _read(cell: LexborNode) -> str:
    """A cell as it is read: a rank without its tier."""
    return (cell.css_first(".place") or cell).text().strip()


def opening(html: str, metric: str) -> tuple[list[str], Rows]:
    """The opening table of the page's first ranking by `metric`: a cell as it is read, without what explains it."""
    table = next(
        one
        for one in LexborHTMLParser(html).css("table.standings[data-table^=p]")
        if f"m.{metric}" in one.html
    )
    columns = [cell.text().strip() for cell in table.css("thead th")]
    rows = []
    for row in table.css("tbody tr"):
        rows.append([_read(cell) for cell in row.css("th, td")])
        rows[-1][columns.index("system")] = row.attributes["data-system"]
    return columns, rows


def folded(text: str) -> str:
    """The columns of printed tables, each cell's lines joined."""
    rows = [line.split("│")[1:-1] for line in text.splitlines() if line.startswith("│")]
    return "\n".join("".join(row[at].strip() for row in rows if at < len(row)) for at in range(20))
