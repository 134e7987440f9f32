"""What the viewer's pages share: the frame around them, tables, pagers, verdicts and long texts."""

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from adjudge.engine.rendering.markup import Markup, join, tag
from adjudge.engine.rendering.templates import render
from adjudge.engine.viewer.data.query import ListQuery, address

__all__ = [
    "ROWS",
    "Column",
    "Frame",
    "Row",
    "choice",
    "facts",
    "link_out",
    "listing",
    "pager",
    "part_of",
    "parts",
    "sorted_by",
    "submit",
    "verdict_of",
]

Row = dict[str, Any]

_ANY = ListQuery()

ROWS = 50
PART_CHARS = 100_000
_SIGNS = {"supported": "✓", "unsupported": "✗", "unknown": "?", "unreachable": "⊘"}


class Frame(msgspec.Struct, frozen=True):
    """The frame of a run's pages: the run's name and judge, and the address of the other run, if there is one."""

    run: str
    judge: str
    other: str = ""

    @property
    def places(self) -> list[tuple[str, str]]:
        """The pages that the header of every page leads to, by text and address."""
        places = [("Systems", "./"), ("Tasks", "tasks"), ("Leaderboard", "leaderboard")]
        if self.other:
            places += [("Differences", "differences"), ("The other run", self.other)]
        return places

    def show(
        self,
        template: str,
        title: str,
        *,
        crumbs: Sequence[tuple[str, str]] = (),
        words: str = "",
        here: str = "",
        **values: object,
    ) -> str:
        """The page that `template`, which extends base.html.jinja, makes of `values`.

        `crumbs` are (text, address) of the pages above it, `words` stand in the search field, and `here` is the address
        of the place in the header that it belongs to.
        """
        return render(
            template, __package__, frame=self, title=title, crumbs=crumbs, words=words, here=here, **values
        )

    def page(
        self, title: str, *body: str | None, crumbs: Sequence[tuple[str, str]] = (), words: str = ""
    ) -> str:
        """A page whose content is `body`."""
        return self.show("plain.html.jinja", title, crumbs=crumbs, words=words, body=join(*body))


class Column(msgspec.Struct, frozen=True):
    """A table's column, of numbers or of `long` texts; one with a `key` can be sorted by it."""

    title: str
    key: str = ""
    number: bool = False
    long: bool = False

    @property
    def style(self) -> str | None:
        """The class of its cells."""
        return "n" if self.number else "long" if self.long else None


def listing(
    caption: str,
    columns: Sequence[Column],
    rows: Iterable[Sequence[str]],
    path: str = "",
    query: ListQuery = _ANY,
) -> Markup:
    """A table whose first column heads its rows; headings link to `path`, sorted, with `query`."""
    made = [
        tag(
            "tr",
            *(
                tag("th", cell, scope="row", dir="auto", class_=columns[0].style)
                if place == 0
                else tag("td", cell, class_=columns[place].style, dir="auto")
                for place, cell in enumerate(row)
            ),
        )
        for row in rows
    ]  # fmt: skip
    head = tag("tr", *(_head(column, path, query) for column in columns))
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption, class_="visually-hidden"),
            tag("thead", head),
            tag("tbody", *made),
        ),
        tag("p", "No rows.", class_="quiet") if not made else None,
        class_="scroll",
        role="region",
        tabindex="0",
        aria_label=caption,
    )


def _head(column: Column, path: str, query: ListQuery) -> Markup:
    kind = column.style
    if not column.key:
        return tag("th", column.title, scope="col", class_=kind)
    up, down = query.sort == column.key, query.sort == f"-{column.key}"
    to = address(path, query, sort=f"-{column.key}" if up else column.key, page=1)
    state = "ascending" if up else "descending" if down else None
    return tag("th", tag("a", column.title, href=to), scope="col", aria_sort=state, class_=kind)


def sorted_by(rows: Sequence[Row], sort: str, allowed: Sequence[str]) -> list[Row]:
    """`rows` by the field that `sort` names, if it is `allowed`; rows without a value come last either way."""
    key = sort.removeprefix("-")
    if key not in allowed:
        return list(rows)
    present = [row for row in rows if row[key] is not None]
    present.sort(key=lambda row: row[key], reverse=sort.startswith("-"))
    return present + [row for row in rows if row[key] is None]


def pager(path: str, query: ListQuery, total: int) -> Markup:
    """Which of `total` rows are shown, and links to the other pages."""
    first, last = (query.page - 1) * ROWS + 1, min(query.page * ROWS, total)
    pages = max(1, -(-total // ROWS))
    steps = (("First", 1), ("Previous", query.page - 1), ("Next", query.page + 1), ("Last", pages))
    links = [
        tag("a", text, href=address(path, query, page=page), rel=_RELATIONS.get(text))
        for text, page in steps
        if 1 <= page <= pages and page != query.page
    ]
    shown = f"{first:,} to {last:,} of {total:,}" if last >= first else f"none of {total:,}"
    return tag("nav", tag("span", shown, role="status"), *links, class_="pager", aria_label="Pages")


_RELATIONS = {"Next": "next", "Previous": "prev"}


def submit(path: str, *fields: Markup, label: str = "Show", keep: dict[str, str] | None = None) -> Markup:
    """A form that opens `path` with its fields; `keep` are hidden fields."""
    hidden = [tag("input", type="hidden", name_=name, value=value) for name, value in (keep or {}).items()]
    return tag("form", *hidden, *fields, tag("button", label, type="submit"), action=path, class_="controls")


def choice(label: str, name: str, options: Iterable[tuple[str, str]], chosen: str) -> Markup:
    """A labelled select of (value, text)."""
    made = [tag("option", text, value=value, selected=value == chosen) for value, text in options]
    return join(tag("label", label, for_=f"f-{name}"), tag("select", *made, id=f"f-{name}", name_=name))


def facts(pairs: Iterable[tuple[str, str | None]], kind: str | None = None) -> Markup:
    """A list of names and values, `kind` its class; those without a value are left out."""
    made = (tag("div", tag("dt", name), tag("dd", value, dir="auto")) for name, value in pairs if value)
    return tag("dl", *made, class_=kind)


def verdict_of(outcome: str, reason: str) -> tuple[str, str]:
    """(sign, kind) of a line of evidence: its verdict, "none" if it has only a reason, "" for other lines."""
    word = outcome.partition(" ")[0]
    if word in _SIGNS:
        return _SIGNS[word], word
    return ("–", "none") if reason else ("", "")


def link_out(url: str) -> Markup:
    """A URL as text, and as a link if it is http or https. Only a click follows it."""
    try:
        usable = urlsplit(url).scheme in ("http", "https")
    except ValueError:
        usable = False
    shown = tag("bdi", _short(url, 300))
    if not usable:
        return tag("code", shown)
    return tag("a", shown, href=url, rel="noreferrer noopener nofollow", target="_blank", class_="out")


def part_of(text: str, part: int) -> tuple[int, int]:
    """Where part number `part` of a long text begins and ends; the last part if there are fewer."""
    last = max(1, -(-len(text) // PART_CHARS))
    start = (min(part, last) - 1) * PART_CHARS
    return start, min(start + PART_CHARS, len(text))


def parts(text: str, part: int, path: str, query: msgspec.Struct) -> Markup | None:
    """Links to the neighbouring parts of a long text; None for a short one."""
    count = -(-len(text) // PART_CHARS)
    if count <= 1:
        return None
    steps = ((f"Part {other}", other) for other in (part - 1, part + 1) if 1 <= other <= count)
    links = [tag("a", name, href=address(path, query, part=other)) for name, other in steps]
    return tag(
        "nav", tag("span", f"Part {min(part, count)} of {count} "), *links, class_="pager", aria_label="Parts"
    )


def _short(text: str, most: int = 120) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
