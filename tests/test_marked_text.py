"""Reports as HTML with their statements marked: the marks change nothing else, and hostile Markdown does nothing."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser as HTMLParser

from adjudge.engine.viewer.data import marked_text as module
from adjudge.engine.viewer.data.marked_text import (
    Mark,
    MarkedText,
    PlacedLines,
    blocks,
    marked_text,
    source_of,
)
from tests.nightly import quick_or_whole

FRAGMENTS = (
    "The tower is 42 metres high", " in **all seasons** of", " the *year*", " [1](https://a.example/x_y)", ". ", "。",
    "它有四十二米高", " والبرج", " `code` ", "``a`b``", "\n", "\n\n", "\n\n# Head\n\n", "\n\n- item ", "\n  - deep ",
    "\n1. one ", "\n> quoted ", "\n\n| a | b |\n|--:|:-:|\n| 1 | cell \\| x |\n\n", "\n\n```py\nx = 1\n```\n\n",
    "\n\n    indented\n", "![pic](https://p.example/p.png)", "[![in](i.png)](https://l.example)",
    "[bad](javascript:alert(1))", "[rel](../../etc/passwd)", "<script>alert(1)</script>", "<b onclick=x>",
    "&amp;&#x41;&lt;", "\\*", "  \n",
    "~~gone~~", "[ref]", "\n\n[ref]: https://r.example\n\n", "<https://auto.example/a>", "***", "[[", "](",
    "\u202e", "\x00", "\r\n", "\t",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(FRAGMENTS), max_size=30).map(lambda parts: source_of("".join(parts)))
CHIP = re.compile(r'<a href="evidence\?n=\d+"[^>]*>✓\d+</a>')
PLAIN = {"p", "h3", "h4", "h5", "h6", "li"}


def chip(n: int) -> str:
    return f'<a href="evidence?n={n}" class="chip v-supported" id="s{n}" data-panel aria-label="{n}">✓{n}</a>'


def mark(n: int, start: int, end: int) -> Mark:
    return Mark(start, end, "supported", str(n), chip(n))


@st.composite
def marked(draw: st.DrawFn) -> tuple[str, list[Mark]]:
    """A text and passages of it that do not overlap."""
    text = draw(TEXTS)
    places = draw(st.lists(st.integers(0, len(text)), max_size=12, unique=True).map(sorted))
    pairs = zip(places[::2], places[1::2], strict=False)
    return text, [mark(n, start, end) for n, (start, end) in enumerate(pairs, 1)]


def shown(text: str, marks: list[Mark], part: int = 1) -> MarkedText:
    found = marked_text(text, marks, part, True)
    assert found.html is not None
    return found


def text_of_parts(text: str) -> str:
    """What the parts of `text` show, as it was written."""
    first = marked_text(text, [], 1, False)
    found = [first, *(marked_text(text, [], part, False) for part in range(2, first.parts + 1))]
    assert all(one.html is None and 0 < one.end - one.start <= 2 * module.PART_CHARS for one in found)
    return "".join(text[one.start : one.end] for one in found)


def unmarked(html: str) -> str:
    """Without marks and chips, nor the paragraph that holds chips alone."""
    html = CHIP.sub("", html).replace("<p></p>", "")
    return re.sub(r"<mark[^>]*>|</mark>", "", html)


@settings(max_examples=quick_or_whole(60, 300))
@given(marked())
def test_text_without_its_marks_is_the_plain_rendering(case: tuple[str, list[Mark]]) -> None:
    text, marks = case
    plain = shown(text, []).html.replace("<p></p>", "")
    assert unmarked(shown(text, marks).html) == plain


@settings(max_examples=quick_or_whole(60, 300))
@given(marked())
def test_every_passage_has_a_chip_and_marks_no_more(case: tuple[str, list[Mark]]) -> None:
    text, marks = case
    page = HTMLParser(shown(text, marks).html)
    numbers = [node.text().removeprefix("✓") for node in page.css("a.chip")]
    assert numbers == [one.lines for one in marks]
    for one in marks:
        said = "".join(node.text() for node in page.css("mark") if node.attributes["data-n"] == one.lines)
        rest = iter(text[one.start : one.end + 10])
        assert all(character in rest for character in said), (one, said)


@settings(max_examples=quick_or_whole(60, 300))
@given(marked())
def test_marked_html_is_clean_and_crosses_no_element(case: tuple[str, list[Mark]]) -> None:
    text, marks = case
    html = shown(text, marks).html
    assert module._CLEANER.clean(html) == html
    page = HTMLParser(html)
    assert not page.css("script, img, style, iframe, svg, object, form, input, mark *, a a")
    for node in page.css("*"):
        assert not any(name.startswith("on") or name in ("src", "style") for name in node.attributes)
    for link in page.css("a"):
        target = link.attributes["href"]
        assert target.startswith("evidence?") or re.match("https?://", target), target
        assert link.attributes["rel"] == "noreferrer noopener nofollow"
        assert ("data-panel" in link.attributes) != (link.attributes.get("target") == "_blank")


def test_every_letter_of_a_statement_is_marked() -> None:
    text = "# A\n\nThe **tower** is 42\nmetres `high` [1](https://a.example/x).\n\n"
    text += "1. 1\n2. Two *is* it\n\n|a|b|\n|-|-|\n|1|1|\n"
    every = "".join(token for token in HTMLParser(shown(text, []).html).text())
    page = HTMLParser(shown(text, [mark(1, 0, len(text))]).html)
    said = "".join(node.text() for node in page.css("mark"))
    assert [c for c in said if c.isalnum()] == [c for c in every if c.isalnum()]


def test_chip_stands_behind_the_end_of_the_sentence() -> None:
    text = "It is high [1](https://a.example). It is **old**. It is [red](https://b.example) (see 2)."
    ends = [text.index("a.example") + 9, text.index("old") + 3, text.index("red") + 3, text.index("2).") + 1]
    starts = [0, text.index("It is **"), text.index("It is [red"), text.index("see")]
    html = shown(text, [mark(n, *span) for n, span in enumerate(zip(starts, ends, strict=True), 1)]).html
    assert HTMLParser(html).text().strip() == "It is high 1.✓1 It is old.✓2 It is red✓3 (see 2).✓4"


def test_same_text_twice_in_a_row_is_marked_in_its_own_cell() -> None:
    text = "| one | two | three |\n|-|-|-|\n| same | a \\| b | same |\n"
    start = text.rindex("same")
    page = HTMLParser(shown(text, [mark(1, start, start + 4)]).html)
    assert [len(cell.css("mark")) for cell in page.css("td")] == [0, 0, 1]


def test_pieces_of_ordinary_markdown_know_their_places() -> None:
    """A change of the library that loses them shows here."""
    text = "## T\n\nA *b* `c` [d](https://e.example) f\\_g\nh.\n\n> 1. i\n>    j\n\n| k | l |\n|-|-|\n| m | n |\n"
    lines = PlacedLines(text)
    pieces = [
        (child.content, place)
        for block in blocks(text, lines)
        for token in block.tokens
        if token.type == "inline"
        for child, place in zip(token.children, lines.of_inline(token, token.level > 3), strict=True)
        if child.content.isalnum()
    ]
    assert {said for said, _ in pieces} == set("Tbcdgijklmn")
    assert all(place is not None and text.startswith(said, place) for said, place in pieces)


@settings(max_examples=quick_or_whole(20, 100))
@given(TEXTS)
def test_parts_together_hold_the_whole_text(text: str) -> None:
    size = module.PART_CHARS
    module.PART_CHARS = 60
    try:
        first = shown(text, [])
        whole = "".join(shown(text, [], part).html for part in range(1, first.parts + 1))
        edges = [(one.start, one.end) for one in (shown(text, [], n + 1) for n in range(first.parts))]
    finally:
        module.PART_CHARS = size
    assert "".join(whole.split()) == "".join(shown(text, []).html.split())
    assert edges[0][0] == 0 and edges[-1][1] == len(text)
    assert all(one[1] == other[0] for one, other in pairwise(edges))


@pytest.mark.parametrize("text", ["endless " * 40_000, "a\n\n" * 200_000, "a|b\n-|-\n" * 25_100])
def test_text_that_is_too_long_is_shown_as_written_in_parts(text: str) -> None:
    assert marked_text(text, [], 1, True).html is None
    assert text_of_parts(text) == text


@pytest.mark.parametrize("sign", ["[", "![", "*a **b ", "(" * 9 + "[a]", "~~a ", "<a:"])
def test_deep_nesting_inside_a_block_is_bounded(sign: str) -> None:
    html = shown(sign * 2_000 + "end", []).html
    depth = most = 0
    for tag in re.findall(r"<(/?)(?:em|strong|s|a|p)\b", html):
        depth += -1 if tag else 1
        most = max(most, depth)
    assert "end" in html and most < 30


@pytest.mark.parametrize("sign", [">", "> ", "- ", "1. "])
def test_text_nested_too_deeply_to_be_shown_is_not_rendered(sign: str) -> None:
    assert marked_text(sign * 2_000 + "end", [], 1, True).html is None
    assert "end" in shown(sign * 5 + "end", []).html


def test_cleaner_lets_no_more_through_than_the_renderer_makes() -> None:
    hostile = '<a href="javascript:x" onclick=y class="chip evil">a</a><p style="x" class="top">b</p><svg>'
    hostile += "<script>c</script></svg>"
    assert (
        module._CLEANER.clean(hostile) == '<a class="chip" rel="noreferrer noopener nofollow">a</a><p>b</p>'
    )
