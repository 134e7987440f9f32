"""Stores with made-up judgments, for tests."""

import asyncio
import shutil
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from adjudge.engine.store import JudgmentStore, Place, ScorecardStore
from adjudge.engine.store.journal import live_parts, open_part
from adjudge.engine.store.judgments import JUDGMENTS
from adjudge.judges import Answer, Context, Judgment, Question, Usage
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.scorecard import Scorecard


class Verdict(Answer, frozen=True, kw_only=True):
    text: Annotated[str, Meta(max_length=50)]


class Ask(Question[Verdict], frozen=True, kw_only=True):
    prompt = "probe"
    answer = Verdict


LONG = 3600.0  # seconds until a part is written by itself
QUESTION = Ask(context=Context.of(note="x"))


def judgment(key: int, answer: str | None = "yes", reason: str | None = None, at: int = 1) -> Judgment:
    return Judgment(
        key=key.to_bytes(16, "big"),
        group=bytes(16),
        question="Ask",
        answer=None if answer is None else Verdict(text=answer),
        status="unscored" if answer is None else "scored",
        reason=reason,
        text="raw",
        finish_reason="stop",
        usage=Usage(3, 2, 1),
        seconds=0.5,
        judge="judge",
        engine="engine",
        written_at=at,
    )


async def opened(folder: Path, **options) -> JudgmentStore:
    store = JudgmentStore(Place.of(str(folder)), **options)
    await store.open()
    return store


def parts(folder: Path) -> list[Path]:
    return sorted((folder / "judgments").glob("*.parquet"))


def stored_keys(folder: Path) -> list[int]:
    """The keys of all rows that a reader finds."""
    place = Place.of(str(folder)) / "judgments"
    tables = [open_part(place, JUDGMENTS, name).read(["key"]) for name in live_parts(place)]
    return sorted(int.from_bytes(key, "big") for table in tables for key in table["key"].to_pylist())


def cards(folder: Path, *systems: str) -> Place:
    """Scorecards of a run, each in a part of its own."""
    place = Place.of(str(folder))

    async def write(system: str) -> None:
        store = ScorecardStore(place, "run")
        case = Case(task=Task(id="1", prompt="p"), report=Report(task_id="1", system=system, text="t"))
        store.put(Scorecard.of("race", case, {"overall": 0.5}), 1)
        await store.close()

    for system in systems:
        asyncio.run(write(system))
    return place


def journal_files(folder: Path) -> list[Path]:
    return sorted((folder / "judgments").glob(".*.journal"))


async def killed(folder: Path, *rows) -> bytes:
    """A store in `folder` whose writer was killed after putting `rows`; its journal's bytes."""
    live = folder.parent / f"{folder.name}-live"
    store = await opened(live, flush_seconds=LONG)
    for row in rows:
        store.put(row)
    shutil.copytree(live, folder)  # as it is now, and nobody holds the copy
    await store.close()
    return journal_files(folder)[0].read_bytes()
