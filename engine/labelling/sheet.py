"""A table of verdicts to label in a spreadsheet, which `adjudge agreement --labels` takes back."""

import asyncio
import csv
from collections.abc import AsyncIterator
from pathlib import Path

from adjudge.engine.errors import UsageError
from adjudge.engine.labelling.app import sampled
from adjudge.engine.labelling.shown import shown_of
from adjudge.engine.records.items import Item
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.scoring.text.aside import open_workers

__all__ = ["write_sheet"]

COLUMNS = ("item", "question", "labels", "what", "passage", "url", "label", "rater", "note")
MAX_CELL = 8_000  # a spreadsheet takes 32,767 characters
_AROUND = 1_000
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|")


def write_sheet(run: str, out: str, number: int, rater: str) -> int:
    """Write `number` verdicts of the run folder `run` into the new CSV file `out`, without labels; how many they are.

    Raises UsageError for a folder without a run or verdicts, and a file that exists or cannot be written; StoreError.
    """
    opened = OpenRun(run)
    return asyncio.run(_written(opened, Path(out), sampled(opened, number), rater))


async def _written(run: OpenRun, out: Path, items: list[Item], rater: str) -> int:
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("x", encoding="utf-8-sig", newline="", errors="replace") as file:
            table = csv.writer(file, quoting=csv.QUOTE_ALL)
            table.writerow(COLUMNS)
            async with open_workers():
                async for row in _rows(run, items, rater):
                    table.writerow(map(plain_cell, row))
    except OSError as error:
        raise UsageError(f"out: {out} cannot be written: {error.strerror}; choose a new file") from error
    finally:
        await run.close()
    return len(items)


async def _rows(run: OpenRun, items: list[Item], rater: str) -> AsyncIterator[tuple[str, ...]]:
    for item in items:
        kind, shown = item.labelled.kind, await shown_of(run, item)
        passage = shown.before[-_AROUND:] + shown.passage + shown.after[:_AROUND]
        parts = [passage or shown.missing]
        parts += [f"{name}: {'; '.join(values)}" for name, values in shown.fields.items()]
        words = "\n\n".join(parts)
        labels = " / ".join(kind.labels)
        yield (item.id, kind.question, labels, item.line.what, words, item.line.url, "", rater, "")


def plain_cell(text: str) -> str:
    """`text` as a cell that no spreadsheet takes for a formula."""
    cut = text[:MAX_CELL].replace("\0", " ")
    return f"'{cut}" if cut.startswith(_FORMULA) else cut
