"""Tables as text: what stands between their cells."""

import re

__all__ = ["separator_of"]

_HEAD = 100_000  # characters: more than the headings of any table
_QUOTED = re.compile(r'"[^"]*"')


def separator_of(text: str, suffix: str = "") -> str:
    """The separator of the table in `text`: comma, semicolon or tab, whatever its first line has most of.

    What stands in quotation marks does not count; a file called `.tsv` has tabs.
    """
    if suffix.lower() == ".tsv":
        return "\t"
    head = _QUOTED.sub("", text[:_HEAD]).lstrip().partition("\n")[0]
    return max(",;\t", key=head.count)
