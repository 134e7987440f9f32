"""Pages that DeepResearch Bench's own code read: `scraped.jsonl`, by task and URL."""

from functools import lru_cache
from pathlib import Path

import msgspec

from adjudge.judges.checkout import CheckoutError

__all__ = ["Scraped"]

_FAILED = "scrape failed: "


class _Page(msgspec.Struct, frozen=True):
    url_content: str | None = None


class _Row(msgspec.Struct, frozen=True):
    id: int | str
    citations_deduped: dict[str, _Page] = {}


_ROW = msgspec.json.Decoder(_Row)


class Scraped:
    """The pages in a file, or in a folder with one for each system: `SYSTEM/scraped.jsonl` or `SYSTEM.jsonl`.

    Raises CheckoutError unless every row of every file can be read.
    """

    def __init__(self, place: str | Path) -> None:
        self._place = Path(place)
        if not self._place.exists():
            raise CheckoutError(
                f"scraped: {place} does not exist; set it to a scraped.jsonl, or a folder of them"
            )
        found = [self._place]
        if self._place.is_dir():
            found = sorted([*self._place.glob("*/scraped.jsonl"), *self._place.glob("*.jsonl")])
        for file in found:
            _offsets(file)

    def content(self, system: str, task: str, url: str) -> str | None:
        """What stands in for the page; None if it was not read."""
        file = self._file(system)
        page = None if file is None else _pages(file, task).get(url)
        text = None if page is None else page.url_content
        return None if text is None or text.startswith(_FAILED) else text

    def _file(self, system: str) -> Path | None:
        if self._place.is_file():
            return self._place
        if Path(system).name != system:
            return None
        files = (self._place / system / "scraped.jsonl", self._place / f"{system}.jsonl")
        return next((file for file in files if file.is_file()), None)


@lru_cache(maxsize=256)
def _offsets(file: Path) -> dict[str, int]:
    """Where each task's row begins."""
    found = {}
    try:
        with file.open("rb") as lines:
            offset = 0
            for number, line in enumerate(lines, 1):
                if line.strip():
                    try:
                        found[str(_ROW.decode(line).id)] = offset
                    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                        raise CheckoutError(
                            f"scraped: {file}:{number}: {error}; correct or remove it"
                        ) from error
                offset += len(line)
    except OSError as error:
        raise CheckoutError(f"scraped: {file}: cannot be read: {error.strerror}; correct the path") from error
    return found


@lru_cache(maxsize=16)
def _pages(file: Path, task: str) -> dict[str, _Page]:
    offset = _offsets(file).get(task)
    if offset is None:
        return {}
    with file.open("rb") as lines:
        lines.seek(offset)
        return _ROW.decode(lines.readline()).citations_deduped
