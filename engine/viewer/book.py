"""Several pages in one file, packed: their text repeats, and a report has dozens of pages."""

import base64
import html
import re

import msgspec
import pyarrow as pa

__all__ = ["Book", "packed_json"]

_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
_MAIN, _MAIN_END, _END = '<main id="main" tabindex="-1">', "</main>", "</body>"
_LEVEL = 9  # and a window that holds all of a report's pages, most of whose text is the same


def packed_json(value: object) -> bytes:
    """`value` as JSON, compressed by Zstandard."""
    packed: bytes = pa.Codec("zstd", compression_level=_LEVEL).compress(
        msgspec.json.encode(value), asbytes=True
    )
    return packed


class _Page(msgspec.Struct, frozen=True):
    key: tuple[str, ...]
    title: str
    main: str


class _Book(msgspec.Struct, frozen=True):
    names: tuple[str, ...]
    pages: list[_Page]


class Book:
    """The pages of a file, told apart by the fields `names` of their addresses.

    The first is shown where an address names none. Scripts unpack what is shown.
    """

    def __init__(self, *names: str) -> None:
        self._found = _Book(names, [])
        self._frame = ("", "")

    def add(self, page: str, **fields: object) -> None:
        """Add the page `page`, as the viewer makes it, for the `fields` of its address that say something."""
        before, _, rest = page.partition(_MAIN)
        main, _, after = rest.rpartition(_MAIN_END)
        title = _TITLE.search(before)
        if not after or title is None:
            raise ValueError("a page without the frame of the viewer's pages")
        if not self._found.pages:
            self._frame = before, after
        key = tuple(str(fields.get(name) or "") for name in self._found.names)
        self._found.pages.append(_Page(key, html.unescape(title[1]), main))

    @property
    def has_pages(self) -> bool:
        """Whether a page was added."""
        return bool(self._found.pages)

    def file(self) -> str:
        """The whole file: the frame of its first page around what holds them all."""
        packed = packed_json(self._found)
        before, after = self._frame
        inside, end = after.rsplit(_END, 1)
        return (
            f"{before}{_MAIN}<noscript><p>Reports are packed; allow this site's scripts to read them.</p></noscript>"
            f'{_MAIN_END}{inside}<script type="text/plain" id="packed">{base64.b64encode(packed).decode()}</script>\n'
            '<script src="assets/fzstd-0.1.1.js"></script>\n<script src="assets/unpack.js"></script>\n'
            f"{_END}{end}"
        )
