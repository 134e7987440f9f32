"""What the viewer's pages share: the frame around them, verdicts and long texts."""

from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

import msgspec

from adjudge.engine.rendering.markup import Markup, join, tag
from adjudge.engine.rendering.templates import render
from adjudge.engine.viewer.data.query import address

__all__ = ["Frame", "facts", "link_out", "part_of", "parts", "verdict_of"]

PART_CHARS = 100_000
_SIGNS = {"supported": "✓", "unsupported": "✗", "unknown": "?", "unreachable": "⊘"}


class Frame(msgspec.Struct, frozen=True):
    """The frame of a run's pages: the run's name and judge, and the address of the other run, if there is one.

    A page shows `rows` rows of a table at once.
    """

    run: str
    judge: str
    other: str = ""
    rows: int = 100

    @property
    def places(self) -> list[tuple[str, str]]:
        """The pages that the header of every page leads to, by text and address."""
        places = [("Systems", "./"), ("Tasks", "tasks"), ("Leaderboard", "leaderboard"), ("Search", "search")]
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
