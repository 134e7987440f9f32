"""The words of an exported run, in files that the search page reads when it looks for some of them.

A document is what one find leads to. `words-S.bin` holds, for the words of shard S, the documents that have them, and
`docs-N.bin` what is shown of BLOCK documents: JSON, compressed. Memory holds one shard at a time, and what is not
written yet.
"""

import re
from array import array
from collections import defaultdict
from pathlib import Path

from adjudge.engine.viewer.book import packed_json

__all__ = ["WordIndex", "shard_of", "words_of"]

SHARDS = 128
BLOCK = 256
MAX_WORD = 24
_UNWRITTEN = 500_000
# Letters that stand for themselves where words are not apart: Chinese and Japanese.
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
