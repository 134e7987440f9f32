"""`adjudge view --export`: a run's pages as files, to be put on any web host or opened from disk.

The pages are made by the viewer's own functions; `Names` says where each of them is. What belongs to one report, task
or system is in one file, a `Book`.
"""

import asyncio
import html
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qsl

import msgspec

from adjudge.engine.records.record import RunRecord
from adjudge.engine.rendering.leaderboard_page import asset
from adjudge.engine.viewer.book import Book
from adjudge.engine.viewer.data.query import (
    BadQuery,
    EvidenceQuery,
    ListQuery,
    NotThere,
    PageQuery,
    ReportQuery,
    SystemQuery,
    TaskQuery,
    address,
    addressed,
    read,
)
from adjudge.engine.viewer.names import LEFT_OUT, Names
from adjudge.engine.viewer.pages.frame import Frame
from adjudge.engine.viewer.pages.home import home, tasks_page
from adjudge.engine.viewer.pages.leaderboard import board_page
from adjudge.engine.viewer.pages.questions import page_page
from adjudge.engine.viewer.pages.report import evidence_page, report_page
from adjudge.engine.viewer.pages.system import system_page
from adjudge.engine.viewer.pages.task import task_page
from adjudge.engine.viewer.published_run import PublishedRun, withheld
from adjudge.engine.viewer.whole_folder import MADE_BY, whole_folder
from adjudge.engine.viewer.word_index import WordIndex
from adjudge.scoring.contract.scorecard import Scorecard
from adjudge.scoring.text.aside import open_workers

__all__ = ["Exported", "export"]

AT_ONCE = 4
ROWS = 10**6
SHOWN = 200  # characters of a report that a find shows
ASSETS = (
    *("base.css", "base.js", "viewer.css", "viewer.js", "report.css", "report.js"),
    *("fzstd-0.1.1.js", "unpack.js", "search.js"),
)
_WHERE = (("statements", "statements and criteria"), ("reports", "reports"), ("tasks", "tasks"))
_OF_REPORT = ("protocol", "sample", "repeat", "part", "text", "n")

Step = Callable[[int, int], None]
Make = Callable[[dict[str, str]], Awaitable[str]]


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """What was written: the folder, its files and bytes, and in sentences what it does not hold."""

    out: str
    run: str
    files: int
    bytes: int
    left_out: tuple[str, ...]


def export(
    run: str, out: str, *, sources: bool = False, gold: bool = False, step: Step = lambda done, total: None
) -> Exported:
    """Write the pages of the run folder `run` into the folder `out`, which is replaced if this made it.

    With `sources` whole pages that were judged are among them, else the passages that statements were held against.
    With `gold` so is the gold of benchmarks that keep theirs. `step` is called with the reports done and all of them.
    Raises UsageError, StoreError.
    """
    record = RunRecord.read(Path(run))
    kept = {} if gold else withheld(record)
    with whole_folder(Path(out), "export") as folder:
        found = PublishedRun(run, kept)
        asyncio.run(_Export(found, folder, sources, _left_out(kept, sources)).write(step))
        files = [file for file in folder.rglob("*") if file.is_file()]
        done = Exported(
            out=out,
            run=record.run,
            files=len(files) + 1,
            bytes=sum(file.stat().st_size for file in files),
            left_out=_left_out(kept, sources),
        )
        (folder / MADE_BY).write_bytes(msgspec.json.format(msgspec.json.encode(done), indent=1))
    return done


def _left_out(kept: dict[str, str], sources: bool) -> tuple[str, ...]:
    """What the folder does not hold, and how it would."""
    lines = ["questions with their prompts and raw answers: adjudge view shows them"]
    if not sources:
        lines.append("the pages that were read, but for the passages that were judged: pass --with-pages")
    lines += [
        f"the evidence of {name}, which tells its gold, which is {why}: pass --with-gold"
        for name, why in kept.items()
    ]
    return tuple(lines)


class _Export:
    """Writes the pages of `run` into `folder`."""

    def __init__(self, run: PublishedRun, folder: Path, sources: bool, left_out: tuple[str, ...]) -> None:
        self._run = run
        self._folder = folder
        self._sources = sources
        self._left_out = left_out
        self._names = Names(run.record, sources)
        said = run.record.judging.said
        self._frame = Frame(run.record.run, said, rows=ROWS, still=True, sources=sources)
        self._read: set[str] = set()

    async def write(self, step: Step) -> None:
        """Write everything."""
        try:
            with addressed(self._names):
                async with open_workers():
                    await self._overviews()
                    await self._reports(step)
                    for url in sorted(self._read):
                        await self._page(url)
        finally:
            await self._run.close()

    async def _overviews(self) -> None:
        run, frame, record = self._run, self._frame, self._run.record
        self._put("index.html", await home(run, frame, ListQuery()))
        self._put("tasks.html", await tasks_page(run, frame, ListQuery()))
        await self._leaderboard()
        still = frame.show("still_search.html.jinja", "Search", here="search", where=_WHERE)
        self._put("search.html", still)
        self._put(LEFT_OUT, frame.show("left_out.html.jinja", "Not published", left_out=self._left_out))
        self._put("robots.txt", "User-agent: *\nDisallow: /\n")
        for name in ASSETS:
            self._put(f"assets/{name}", asset(name))
        for system in record.systems:
            await self._system(system)
        index = WordIndex(self._folder / "search" / "tasks")
        prompts = await run.prompts()
        for task in record.tasks:
            await self._task(task)
            index.add(f"task {task}", address("task", task=task), f"{task} {prompts.get(task, '')}")
        index.close()

    async def _leaderboard(self) -> None:
        try:
            page = await board_page(self._run)
        except NotThere as error:
            page = self._frame.show(
                "failed.html.jinja", "Leaderboard", why=f"There is none: {error}.", here="leaderboard"
            )
        unlisted = '<head>\n<meta name="robots" content="noindex">'
        self._put("leaderboard.html", page.replace("<head>", unlisted, 1))

    async def _system(self, system: str) -> None:
        """A system's reports by every metric, all of them and those with a reason."""
        starts = [
            {"metric": f"{protocol}.{metric.name}"}
            for protocol, metrics in self._run.record.metrics.items()
            for metric in sorted(metrics, key=lambda one: not one.headline)
        ]

        async def make(fields: dict[str, str]) -> str:
            query = read({**fields, "system": system}, SystemQuery)
            return await system_page(self._run, self._frame, query)

        to = self._names("system", {"system": system})
        await self._book(to, ("metric", "reason"), starts, make)

    async def _task(self, task: str) -> None:
        async def make(fields: dict[str, str]) -> str:
            return await task_page(self._run, self._frame, read({**fields, "task": task}, TaskQuery))

        starts = [{"protocol": protocol} for protocol in self._run.record.metrics]
        await self._book(self._names("task", {"task": task}), ("protocol",), starts, make)

    async def _reports(self, step: Step) -> None:
        """Every report's pages, a few reports at once, and what is searched of them."""
        texts = WordIndex(self._folder / "search" / "reports")
        statements = WordIndex(self._folder / "search" / "statements")
        every = [(system, task) for system in self._run.record.systems for task in self._run.tasks_of(system)]
        waiting: list[asyncio.Task[list[Scorecard]]] = []
        for done, (system, task) in enumerate([*every, *[("", "")] * AT_ONCE]):
            if len(waiting) == AT_ONCE or (waiting and not system):
                cards = await waiting.pop(0)
                await self._index(cards, statements, texts)
                step(max(0, done - len(waiting)), len(every))
            if system:
                waiting.append(asyncio.ensure_future(self._report(system, task)))
        texts.close()
        statements.close()

    async def _report(self, system: str, task: str) -> list[Scorecard]:
        """Write the pages about a system's reports for a task; their scorecards."""
        cards = await self._run.every_card(system, task)

        async def make(fields: dict[str, str]) -> str:
            asked = {**fields, "system": system, "task": task}
            if "n" in fields:
                return await evidence_page(self._run, self._frame, read(asked, EvidenceQuery))
            return await report_page(self._run, self._frame, read(asked, ReportQuery))

        starts = [
            {"protocol": card.protocol, **_counts(sample=card.sample, repeat=card.repeat)} for card in cards
        ]
        to = self._names("report", {"system": system, "task": task})
        await self._book(to, _OF_REPORT, starts, make)
        if self._sources:
            self._read.update(url for card in cards for url in card.pages)
        return cards

    async def _page(self, url: str) -> None:
        async def make(fields: dict[str, str]) -> str:
            return await page_page(self._run, self._frame, read({**fields, "url": url}, PageQuery))

        await self._book(self._names("page", {"url": url}), ("part",), [{}], make)

    async def _book(
        self, file: str, names: tuple[str, ...], starts: list[dict[str, str]], make: Make
    ) -> None:
        """Write the pages of `file`: those of the fields `starts`, and all that they lead to in the same file."""
        book, seen, waiting = Book(*names), set[tuple[str, ...]](), list(starts)
        while waiting:
            fields = waiting.pop(0)
            key = tuple(fields.get(name, "") for name in names)
            if key in seen:
                continue
            seen.add(key)
            try:
                page = await make({name: value for name, value in fields.items() if name in names})
            except (NotThere, BadQuery):
                continue
            book.add(page, **fields)
            waiting += _leading_to(file, page)
        if book.has_pages:
            self._put(file, book.file())

    async def _index(self, cards: list[Scorecard], statements: WordIndex, texts: WordIndex) -> None:
        for card in cards:
            wanted = ReportQuery(
                system=card.system,
                task=card.task_id,
                sample=card.sample,
                repeat=card.repeat,
                protocol=card.protocol,
            )
            name = f"{card.system}, task {card.task_id}"
            for n, line in enumerate(card.evidence, 1):
                text = " ".join(
                    filter(None, (line.what, line.outcome, line.reason, line.url, line.note, line.quote))
                )
                statements.add(f"{card.protocol}: {name}, {n}", address("evidence", wanted, n=n), text)
            if card.protocol == cards[0].protocol:
                try:
                    text = (await self._run.case(wanted)).report.text
                except NotThere:
                    continue
                texts.add(name, address("report", wanted), text, text[:SHOWN])

    def _put(self, name: str, text: str) -> None:
        file = self._folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8", "replace")


def _counts(**counts: int) -> dict[str, str]:
    return {name: str(count) for name, count in counts.items() if count}


def _leading_to(file: str, page: str) -> Iterator[dict[str, str]]:
    """The fields of the addresses in `page` that lead to `file`."""
    for found in re.finditer(rf'href="{re.escape(file)}\?([^"#]*)', page):
        yield dict(parse_qsl(html.unescape(found[1])))
