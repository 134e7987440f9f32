"""`adjudge view --export`: a run's pages as files, for any web host or to open from disk.

The pages are made by the viewer's own functions; `Names` says where each of them is. What belongs to one report, task
or system is in one file, a `Book`.

Where each page is in an exported folder: the names of its files, and the addresses that lead to them.
"""

import asyncio
import hashlib
import html
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from urllib.parse import parse_qsl

import msgspec

from adjudge.engine.config.metrics import headlines
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.runs.run import Run
from adjudge.engine.tables.page import asset
from adjudge.engine.viewer.book import MADE_BY, Book, WordIndex, whole_folder
from adjudge.engine.viewer.data.open_run import OpenRun
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
    with_fields,
)
from adjudge.engine.viewer.pages.frame import Frame
from adjudge.engine.viewer.pages.home import board_page, home, tasks_page
from adjudge.engine.viewer.pages.questions import page_page
from adjudge.engine.viewer.pages.report import evidence_pages, report_page
from adjudge.engine.viewer.pages.search import searched
from adjudge.engine.viewer.pages.system import system_page
from adjudge.engine.viewer.pages.task import task_page
from adjudge.scoring.contract.protocol import ExplainedCriterion
from adjudge.scoring.contract.scorecard import Scorecard
from adjudge.scoring.text.aside import open_workers

LEFT_OUT = "left-out.html"
_ALONE = {"": "index.html", "./": "index.html", "tasks": "tasks.html", "leaderboard": "leaderboard.html"}
_ALONE |= {"search": "search.html"}
# What has its own file, and the fields that name it; the other fields distinguish the pages in it.
_FILES = {
    "system": ("system", ("system",)),
    "task": ("task", ("task",)),
    "report": ("report", ("system", "task")),
    "evidence": ("report", ("system", "task")),
}
_PAGES = {"page": ("page", ("url",))}
_OTHER = re.compile(r"[^a-z0-9]+")
_READABLE = 40


class Names:
    """The address of every page of the run in `record`; with `sources`, pages that were read are among them."""

    def __init__(self, record: RunRecord, sources: bool) -> None:
        self._files = _FILES | (_PAGES if sources else {})
        self._heads = {protocol: headlines(metrics)[0].name for protocol, metrics in record.metrics.items()}

    def __call__(self, path: str, fields: Mapping[str, str]) -> str:
        """The address of the page that `address` would have at `path` with `fields`."""
        rest = {name: value for name, value in fields.items() if name not in ("page", "after")}
        if path in _ALONE:
            return with_fields(_ALONE[path], rest)
        if path not in self._files:
            return LEFT_OUT
        kind, own = self._files[path]
        name = file_name(kind, [fields.get(field, "") for field in own])
        left = {key: value for key, value in rest.items() if key not in own}
        return with_fields(name, self._metric(left) if kind == "system" else left)

    def _metric(self, fields: dict[str, str]) -> dict[str, str]:
        """A metric as a form names it, PROTOCOL.METRIC."""
        protocol = fields.pop("protocol", "")
        if protocol:
            fields["metric"] = f"{protocol}.{fields.get('metric') or self._heads.get(protocol, '')}"
        return fields


def file_name(kind: str, parts: list[str]) -> str:
    """A name that no other `parts` have, in letters, figures and hyphens, of one case and at most 100 characters."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        whole = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d " % len(whole) + whole)
    shown = [_OTHER.sub("-", part[:_READABLE].lower()).strip("-") for part in parts]
    return "-".join([kind, *filter(None, shown), digest.hexdigest()]) + ".html"


_KEPT = 16  # reports whose scorecards are kept: each has dozens of pages


class ExportedRun(OpenRun):
    """A run of which every page is made once: what several pages of a report need is kept for a while."""

    def __init__(self, run: Run, labels: Path | None = None) -> None:
        super().__init__(run, labels)
        self._criteria: dict[tuple[str, str, int, int, str], list[ExplainedCriterion]] = {}
        self._found: dict[tuple[str, str, int, int], list[Scorecard]] = {}

    async def find_cards(self, wanted: ReportQuery) -> list[Scorecard]:
        """The scorecards of a report. Raises NotThere if there is none."""
        identity = (wanted.system, wanted.task, wanted.sample, wanted.repeat)
        if identity not in self._found:
            while len(self._found) >= _KEPT:
                del self._found[next(iter(self._found))]
            self._found[identity] = await super().find_cards(wanted)
        return self._found[identity]

    async def explained(self, wanted: ReportQuery, protocol: str) -> list[ExplainedCriterion]:
        """The criteria of a report's task."""
        identity = (wanted.system, wanted.task, wanted.sample, wanted.repeat, protocol)
        if identity not in self._criteria:
            while len(self._criteria) >= _KEPT:
                del self._criteria[next(iter(self._criteria))]
            self._criteria[identity] = await super().explained(wanted, protocol)
        return self._criteria[identity]

    async def every_card(self, system: str, task: str) -> list[Scorecard]:
        """All scorecards of a system for a task, by sample and repeat. Raises StoreError."""
        wanted = [
            ReportQuery(system=system, task=task, sample=sample, repeat=repeat)
            for sample, repeat in self._numbers.get((system, task), ())
        ]
        return [card for one in wanted for card in await self.find_cards(one)]

    def tasks_of(self, system: str) -> list[str]:
        """The tasks that a system has scores for, in the order of the run's."""
        return [task for task in self.record.tasks if (system, task) in self._numbers]

    @cached_property
    def _numbers(self) -> dict[tuple[str, str], list[tuple[int, int]]]:
        """The samples and repeats of each system and task that has scores."""
        identities = self.scores.select(["system", "task_id", "sample", "repeat"])
        columns = [identities[name].to_pylist() for name in identities.column_names]
        found: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for system, task, sample, repeat in sorted(set(zip(*columns, strict=True))):
            found.setdefault((system, task), []).append((sample, repeat))
        return found


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
    """The result of an export: the folder, its files and bytes, and sentences on what was left out."""

    out: str
    run: str
    files: int
    bytes: int
    left_out: tuple[str, ...]


def export(
    run: str,
    out: str,
    *,
    sources: bool = False,
    gold: bool = False,
    labels: Path | None = None,
    step: Step = lambda done, total: None,
) -> Exported:
    """Write the pages of the run folder `run` into the folder `out`, which is replaced if this made it.

    With `sources` whole pages that were judged are among them, else the passages that statements were held against.
    With `gold` so is the gold of benchmarks that keep theirs. With people's `labels`, who gave them and why are among
    them too, beside the judge's verdicts, and scores are given both ways. `step` is called with the reports done and
    all of them. Raises UsageError, StoreError.
    """
    opened = Run.open(run) if gold else Run.open(run).published()
    left_out = _left_out(opened.withheld, sources)
    with whole_folder(Path(out), "export") as folder:
        asyncio.run(_Export(ExportedRun(opened, labels), folder, sources, left_out).write(step))
        files = [file for file in folder.rglob("*") if file.is_file()]
        done = Exported(
            out=out,
            run=opened.record.run,
            files=len(files) + 1,
            bytes=sum(file.stat().st_size for file in files),
            left_out=left_out,
        )
        (folder / MADE_BY).write_bytes(msgspec.json.format(msgspec.json.encode(done), indent=1))
    return done


def _left_out(withheld: Mapping[str, str], sources: bool) -> tuple[str, ...]:
    """What the folder does not hold, and how it would."""
    lines = ["questions with their prompts and raw answers: adjudge view shows them"]
    if not sources:
        lines.append("the pages that were read, but for the passages that were judged: pass --with-pages")
    lines += [
        f"the evidence of {name}, which tells its gold, which is {why}: pass --with-gold"
        for name, why in withheld.items()
    ]
    return tuple(lines)


class _Export:
    """Writes the pages of `run` into `folder`."""

    def __init__(self, run: ExportedRun, folder: Path, sources: bool, left_out: tuple[str, ...]) -> None:
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
            for metric in dict.fromkeys((*headlines(metrics), *metrics))
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

        lines: dict[tuple[str, int, int], Callable[[EvidenceQuery], Awaitable[str]]] = {}

        async def make(fields: dict[str, str]) -> str:
            asked = {**fields, "system": system, "task": task}
            if "n" in fields:
                line = read(asked, EvidenceQuery)
                name = (line.protocol, line.sample, line.repeat)
                if name not in lines:
                    card = next(one for one in cards if (one.protocol, one.sample, one.repeat) == name)
                    lines[name] = await evidence_pages(self._run, self._frame, card, line)
                return await lines[name](line)
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
            wanted = ReportQuery.of(card)
            name = f"{card.system}, task {card.task_id}"
            for n, line in enumerate(card.evidence, 1):
                title = f"{card.protocol}: {name}, line {n}"
                statements.add(title, address("evidence", wanted, n=n), searched(line))
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
