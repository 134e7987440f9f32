"""The files of an exported run: books of pages, the words for the search, and an atomically written folder.

A book packs several pages into one file, since their text repeats and a report has dozens of pages.

The search page reads word files on demand. A document is what one search hit leads to. `words-S.bin` lists, for the
words of shard S, the documents that contain them; `docs-N.bin` holds the excerpts of BLOCK documents as compressed
JSON. Memory holds one shard at a time, and what is not written yet.

The folder is written beside its place and moved there at the end.
"""

import base64
import html
import re
import secrets
import shutil
from array import array
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa

from adjudge.engine.errors import UsageError

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
    """The pages of a file, distinguished by the fields `names` of their addresses.

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


SHARDS = 128
BLOCK = 256
MAX_WORD = 24
_UNWRITTEN = 500_000
# Letters that are words by themselves, in scripts without spaces: Chinese and Japanese.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")


def words_of(text: str) -> set[str]:
    """The words of a text in small letters, of each the first 24 characters."""
    return {word[:MAX_WORD] for word in _WORD.findall(text.lower())}


def shard_of(word: str) -> int:
    """The shard of a word: by its first two characters, so that it can be found by its beginning."""
    first, second = ord(word[0]), ord(word[1]) if len(word) > 1 else 0
    return (31 * first + second) % SHARDS


class WordIndex:
    """Writes the index of documents of one kind into `folder`; the files are complete after `close`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._block: list[tuple[str, str, str]] = []
        self._words: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
        self._unwritten = 0
        self._documents = 0

    def add(self, title: str, link: str, text: str, shown: str | None = None) -> None:
        """Add a document with the words of `text`; `shown` is what is kept of it, by default all."""
        for word in words_of(text):
            self._words[shard_of(word)].append((word, self._documents))
            self._unwritten += 1
        self._block.append((title, link, text if shown is None else shown))
        self._documents += 1
        if len(self._block) == BLOCK:
            self._write_block()
        if self._unwritten >= _UNWRITTEN:
            self._write_words()

    def close(self) -> int:
        """Write what is left, sort the words of each shard, and return the number of documents."""
        self._write_block()
        self._write_words()
        for shard in range(SHARDS):
            unsorted = self._folder / f"{shard}.unsorted"
            found: defaultdict[str, array[int]] = defaultdict(lambda: array("L"))
            if unsorted.exists():
                for line in unsorted.read_text("utf-8", "surrogatepass").split("\n")[:-1]:
                    word, _, document = line.partition("\t")
                    found[word].append(int(document))
                unsorted.unlink()
            # Differences between neighbours are short, and many are equal.
            steps = {
                word: [after - before for before, after in zip([0, *every], every, strict=False)]
                for word, every in sorted(found.items())
            }
            self._write(f"words-{shard}.bin", steps)
        return self._documents

    def _write_block(self) -> None:
        if self._block:
            self._write(f"docs-{(self._documents - 1) // BLOCK}.bin", self._block)
            self._block = []

    def _write_words(self) -> None:
        for shard, found in self._words.items():
            with (self._folder / f"{shard}.unsorted").open(
                "a", encoding="utf-8", errors="surrogatepass"
            ) as file:
                file.writelines(f"{word}\t{document}\n" for word, document in found)
        self._words.clear()
        self._unwritten = 0

    def _write(self, name: str, value: object) -> None:
        (self._folder / name).write_bytes(packed_json(value))


MADE_BY = "adjudge-view.json"
"""The file by which a folder that this made is known again."""


@contextmanager
def whole_folder(place: Path, key: str) -> Iterator[Path]:
    """A new folder to write into, which takes the place of `place` when the context ends without an error.

    Raises UsageError that begins with `key` where something else is already, or where nothing can be written.
    """
    if place.exists() and not place.is_dir():
        raise UsageError(f"{key}: {place} is a file; pass a new or an empty folder")
    if place.exists() and not (place / MADE_BY).is_file() and any(place.iterdir()):
        raise UsageError(f"{key}: {place} holds other files; pass a new or an empty folder")
    token = secrets.token_hex(4)
    new, old = (place.parent / f".{place.name[:80]}.{token}.{end}" for end in ("new", "old"))
    try:
        new.mkdir(parents=True)
    except OSError as error:
        raise UsageError(
            f"{key}: {place} cannot be written: {error.strerror}; pass another folder"
        ) from error
    try:
        yield new
        if place.exists():
            place.replace(old)
        new.replace(place)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        if place.exists():
            shutil.rmtree(old, ignore_errors=True)
