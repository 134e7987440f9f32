"""Pages of shapes that parsers find hard, of any size."""

__all__ = ["FLAT", "SHAPES", "shaped"]

# What opens the page, and what is repeated; `%d` is the number of the repetition.
SHAPES: dict[str, tuple[str, str]] = {
    "nested <div>": ("", "<div>"),
    "nested <div> with text": ("", "<div><p>some words here"),
    "nested tables": ("", "<table><tr><td>a word"),
    "nested lists": ("", "<ul><li><a>a word"),
    "nested <span>": ("", "<span>"),
    "nested in <svg>": ("<svg>", "<g>"),
    "<div> nested in <head>": ("<head>", "<meta name=a content=b><div>"),
    "formatting reopened": ("<p>", "<font a%d>"),
    "unclosed <p>": ("", "<p>a word "),
    "unclosed <b> and <p>": ("", "<b><p>a word"),
    "unclosed <li>": ("<ul>", "<li>a word "),
    "unclosed quotes": ("", "<a href='"),
    "unmatched end tags": ("<div>", "</b></p></x>a"),
    "attributes": ("<p ", "a%d=1 "),
    "attributes with > in them": ("<p ", "a%d='<x></x>' "),
    "equal attributes": ("<p ", "a=1 "),
    "one table": ("<table>", "<tr><td>a<td>b"),
    "entities": ("<p>", "&amp;&#65;&none;"),
    "one text": ("<p>", "word "),
    "one word": ("<p>", "国"),
    "comments": ("<p>", "<!-- a -->"),
    "nested comments": ("<p>", "<!-- "),
    "CDATA": ("<p>", "<![CDATA[ a ]]>"),
    "CDATA in <svg>": ("<svg>", "<![CDATA[ a ]]>"),
    "<": ("<p>", "<"),
    "line breaks": ("<p>", "a<br>"),
}
FLAT = ("", "<p>words</p>")


def shaped(shape: tuple[str, str], times: int) -> bytes:
    """A page in which the shape's unit is repeated."""
    opening, unit = shape
    numbered = "%d" in unit
    return (opening + "".join(unit % n if numbered else unit for n in range(times)) + "the end").encode()
