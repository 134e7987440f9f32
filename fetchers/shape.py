"""The shape of HTML: parsers take the square of the depth of a page, and of the number of attributes of a tag."""

import re

from lxml import etree

__all__ = ["MAX_ATTRIBUTES", "MAX_DEPTH", "excess"]

MAX_DEPTH = 255
"""libxml2's own limit: it reads nothing beyond, so that trafilatura would not see the rest of the page."""
MAX_ATTRIBUTES = 1_000

# Below these a page is read in a fraction of a second, whatever its shape, and most pages need not be looked at.
_FEW_TAGS = 2_000
_SHORT = 50_000

# Of a tag, in the HTML standard's reading: a quote opens a value only right behind "=", and not every value has one.
_VALUE = r"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^\s>]*+)"""
_ATTRIBUTE = rf"[\s/]*+[^\s/>][^\s/>=]*+(?:\s*+=\s*+{_VALUE})?"
_MANY_ATTRIBUTES = re.compile(rf"<[a-zA-Z][^\s/>]*+(?>{_ATTRIBUTE}){{{MAX_ATTRIBUTES + 1}}}")


def excess(page: str) -> str:
    """What `page` has too much of to be parsed in time proportional to its length; "" if nothing. Takes linear time."""
    if len(page) > _SHORT and _MANY_ATTRIBUTES.search(page):
        return f"a tag with more than {MAX_ATTRIBUTES:,} attributes"
    if page.count("<") - page.count("</") > _FEW_TAGS and _is_too_deep(page):
        return f"elements nested more than {MAX_DEPTH} deep"
    return ""


def _is_too_deep(page: str) -> bool:
    """Whether libxml2 gives up for depth, which it does where the limit is passed."""
    parser = etree.HTMLParser()
    etree.fromstring(page, parser)
    return any("Excessive depth" in error.message for error in parser.error_log)
