"""`adjudge label`: verdicts for people to label, one at a time in a local page, by keyboard; or in a table.

With `--edit`, people see the judge's verdicts and override those that are wrong, each with a reason.

The sample is balanced over protocols, kinds, systems and the judge's verdicts: it takes one item of every stratum in
turn, in random order within a stratum. So it is random within strata wherever a rater stops, and a larger sample
contains a smaller one.

A rater sees the item, what the judge was shown (the passage nearest to the item first) and the question; not the
system, the verdict or the judge. Every request passes `local_only`; one that labels carries a token of this process.

Labels are appended to a file, one JSON line each, and synced before the next item is shown; nothing else is ever
written. Several raters may write to one file at once. A killed process loses at most an unfinished line, which the next
writer cuts off.

A table of verdicts can be filled in with a spreadsheet; `adjudge agreement --labels` reads it back.
"""

import asyncio
import csv
import errno
import fcntl
import hashlib
import hmac
import io
import os
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from aiohttp import web
from markupsafe import Markup

from adjudge.engine.errors import StoreError, UsageError, unwritable
from adjudge.engine.runs.items import Item, Label, Stratum
from adjudge.engine.runs.run import Run
from adjudge.engine.tables.page import asset, render
from adjudge.engine.tables.spreadsheet import plain_cell
from adjudge.engine.telemetry.http import HOST, listen, local_only, serve_until_signal
from adjudge.engine.viewer.data.marked_text import Mark, marked_text, source_of
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.passages import nearest
from adjudge.engine.viewer.data.query import NotThere, ReportQuery
from adjudge.fetchers.files import write_new
from adjudge.scoring.contract.case import Unread
from adjudge.scoring.text.aside import aside, open_workers, storable

_MAX_BYTES = 1 << 28
_BEGINS = b'{"item":"v'  # every label that is given here


class LabelFile:
    """The labels in the file at `path`, by item and rater, in the order in which they were given. Raises UsageError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0
        self._is_own = False  # whether its first line is a label
        self._given: dict[tuple[str, str], Label] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise UsageError(f"out: {path} cannot be written: {error.strerror}") from error
        try:
            self.refresh()  # before anything is changed: it may be somebody else's file
            self._cut_off()
            self.refresh()
        except UsageError:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def add(self, label: Label) -> None:
        """Append `label`, whole and on the disk, or nothing of it. Raises OSError."""
        line = msgspec.json.encode(label) + b"\n"
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            size = os.fstat(self._file).st_size
            try:
                if os.write(self._file, line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
                os.fsync(self._file)
            except OSError:
                os.ftruncate(self._file, size)
                raise
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self.refresh()

    def refresh(self) -> None:
        """Read what was appended since, by this process or another. Raises UsageError."""
        added = self._from(self._read)
        whole = added[: added.rfind(b"\n") + 1]
        for line in whole.split(b"\n"):
            if line.strip():
                self._take(line)
        self._read += len(whole)

    def by(self, rater: str) -> dict[str, Label]:
        """The action of `rater` for every item: a label, or a skip."""
        return {item: label for (item, by), label in self._given.items() if by == rater}

    def taken(self, rater: str) -> set[str]:
        """The items that raters other than `rater` have labelled."""
        return {item for (item, by), label in self._given.items() if by != rater and label.label}

    def _from(self, place: int) -> bytes:
        size = os.fstat(self._file).st_size - place
        if size > _MAX_BYTES:
            raise UsageError(f"out: {self.path} is too large for a file of labels; choose a new file")
        return os.pread(self._file, max(size, 0), place)

    def _take(self, line: bytes) -> None:
        try:
            label = msgspec.json.decode(line, type=Label)
        except msgspec.MsgspecError as error:
            if self._is_own:  # cut off, and followed by another
                return
            raise self._foreign(error) from error
        self._is_own = True
        self._given.pop((label.item, label.rater), None)
        if label.label or label.skipped:
            self._given[label.item, label.rater] = label

    def _foreign(self, error: Exception) -> UsageError:
        return UsageError(f"out: {self.path} is not a file of labels: {error}; choose a new file")

    def _cut_off(self) -> None:
        """Cut off a last line that was not finished, behind labels or where it begins as one does."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            tail = self._from(0)
            start = tail.rfind(b"\n") + 1
            if start == len(tail):
                return
            try:
                msgspec.json.decode(tail[start:], type=Label)
                os.write(self._file, b"\n")
            except msgspec.MsgspecError as error:
                begins = tail[start : start + len(_BEGINS)]
                if not tail[:start].strip() and not (begins and _BEGINS.startswith(begins)):
                    raise self._foreign(error) from error
                os.ftruncate(self._file, start)
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)


def drawn(items: Iterable[Item], number: int, seed: int) -> list[Item]:
    """`number` of `items`, or all if there are fewer, in the order in which they are shown."""
    strata: dict[Stratum, list[Item]] = defaultdict(list)
    for item in items:
        strata[item.stratum].append(item)
    turns: list[tuple[int, str, Item]] = []
    for stratum, own in strata.items():
        own.sort(key=lambda item: _random(seed, item.id))
        turns += [(turn, _random(seed, turn, *stratum), item) for turn, item in enumerate(own)]
    turns.sort(key=lambda turn: turn[:2])
    return [item for _, _, item in turns[:number]]


class Sample:
    """The `items` of a sample and who labels which: the share `overlap` is for every rater, the others for one each."""

    def __init__(self, items: Sequence[Item], overlap: float) -> None:
        self.items = {item.id: item for item in items}
        everybody = [
            int((place + 1) * overlap + 1e-9) > int(place * overlap + 1e-9) for place in range(len(items))
        ]
        self.shared = {item.id for item, shared in zip(items, everybody, strict=True) if shared}

    def order(self, rater: str) -> list[Item]:
        """The order in which `rater` is shown the items; those for one rater begin at a place of each rater's own."""
        alone = [item for item in self.items.values() if item.id not in self.shared]
        start = int(_random(0, rater), 16) % len(alone) if alone else 0
        turned = iter(alone[start:] + alone[:start])
        return [item if item.id in self.shared else next(turned) for item in self.items.values()]


def _random(seed: int, *names: object) -> str:
    """A random number in hexadecimal digits, the same wherever it is drawn."""
    text = "\x1f".join(map(str, (seed, *names)))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


MAX_CHARS = 400_000
AROUND = 300
"""Characters that are shown before and after the nearest passage, at least."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """The text that the judge was shown, in three pieces: `before` the nearest passage, the `passage`, and `after` it.

    `whole` is the text, and `near` the passage with what is around it, as HTML.
    `fields` are the parts of the judge's question that an answer needs (references, say), `prompt` is the
    task's. `missing` says why the text is absent, and `cut` how many of its characters are left out.
    """

    prompt: Markup
    before: str = ""
    passage: str = ""
    after: str = ""
    whole: Markup = Markup()
    near: Markup = Markup()
    fields: dict[str, tuple[str, ...]] = {}
    missing: str = ""
    cut: int = 0


async def shown_of(run: OpenRun, item: Item) -> Shown:
    """The material shown for `item`: the context of the judge's question, or the page as it was read."""
    prompt = await _rendered((await run.prompts()).get(item.task_id, ""))
    try:
        text, fields = await _asked(run, item)
    except NotThere as error:
        text, fields = await _page(run, item), {}
        if not text:
            return Shown(prompt=prompt, missing=str(error))
    kept = source_of(storable(text[:MAX_CHARS]))
    try:
        span = await aside(nearest, kept, storable(item.line.what))
    except Unread:
        span = None
    start, end = (0, 0) if span is None else (span.start, span.end)
    # Whole lines, so that what is cut out reads as the same Markdown; a line may be very long.
    first = max(kept.rfind("\n", 0, max(start - AROUND, 0)) + 1, start - 4 * AROUND)
    last = kept.find("\n", end + AROUND, end + 4 * AROUND)
    return Shown(
        prompt=prompt,
        whole=await _rendered(kept, start, end),
        near=await _rendered(
            kept[first : last if last >= 0 else end + 4 * AROUND], start - first, end - first
        ),
        before=kept[:start],
        passage=kept[start:end],
        after=kept[end:],
        fields=fields,
        cut=len(text) - len(kept),
    )


async def _rendered(text: str, start: int = 0, end: int = 0) -> Markup:
    """The Markdown of `text` as HTML, marked from `start` to `end`; the text as it is where it cannot be rendered."""
    source = source_of(storable(text))
    marks = [Mark(start, end, "quoted", "", "")] if start < end else []
    try:
        shown = await aside(marked_text, source, marks, 1, True)
    except Unread:
        shown = None
    if shown is not None and shown.html is not None and shown.parts == 1:
        return Markup(shown.html)
    plain = Markup('<div class="text">{}<mark>{}</mark>{}</div>')
    return plain.format(source[:start], source[start:end], source[end:])


async def _asked(run: OpenRun, item: Item) -> tuple[str, dict[str, tuple[str, ...]]]:
    """The context of the judge's question, and those of its fields that its kind shows. Raises NotThere."""
    report = ReportQuery(system=item.system, task=item.task_id, sample=item.sample, protocol=item.protocol)
    asked = (await run.questions(report, item.protocol)).get(item.line.judgment)
    if asked is None:
        raise NotThere("the judge's question cannot be made again from the run's input and prompts")
    question = asked.question
    text = "\n\n".join(section.text for section in question.context.sections)
    fields = {}
    for name in item.labelled.kind.shows:
        value = getattr(question, name, ())
        fields[name] = (value,) if isinstance(value, str) else tuple(map(str, value))
    return text, fields


async def _page(run: OpenRun, item: Item) -> str:
    if not item.line.url:
        return ""
    _, pages = await run.stores()
    page = await pages.get(item.line.url)
    return "" if page is None else page.visible


MAX_NOTE = 2_000
_EVERY = 1 << 62
MAX_REQUEST = 64_000
_TYPES = {"base.css": "text/css", "base.js": "text/javascript", "report.css": "text/css"}
_OWN = {"label.css": "text/css", "label.js": "text/javascript"}


def label(
    run: str,
    out: str,
    number: int,
    rater: str,
    overlap: float,
    port: int,
    edit: str | None = None,
    json: bool = False,
) -> None:
    """Serve the page on which `rater` labels `number` verdicts of the run folder `run` into `out`, until a signal.

    With `edit`, the page shows every verdict in which these words occur, with the judge's, to be overridden. Raises
    UsageError for a folder without a run or verdicts, a file that cannot be used, and a port that cannot be bound;
    StoreError.
    """
    asyncio.run(serve_until_signal(_served(run, Path(out), number, rater, overlap, port, edit), json))


@asynccontextmanager
async def _served(
    run: str, out: Path, number: int, rater: str, overlap: float, port: int, edit: str | None
) -> AsyncIterator[str]:
    opened = OpenRun(Run.open(run))
    sample = Sample(sampled(opened, number), overlap) if edit is None else Sample(worded(opened, edit), 1.0)
    desk = LabelDesk(opened, sample, LabelFile(out), rater, edit=edit is not None)
    async with open_workers():
        url = await desk.start(port)
        try:
            yield url
        finally:
            await desk.stop()


def sampled(run: OpenRun, number: int) -> list[Item]:
    """The sample of a run. Raises UsageError if it has no verdicts that people can label, StoreError."""
    items = list(run.run.items)
    if not items:
        raise UsageError(
            f"{run.folder}: no verdicts that people can label; choose a run of fact, rubrics or the like"
        )
    return drawn(items, number, run.record.config.seed)


def worded(run: OpenRun, words: str) -> list[Item]:
    """The items with `words` in what was judged, its page, system, task or id; all for none. Raises UsageError."""
    wanted = words.strip().casefold()
    found = [
        item
        for item in sampled(run, _EVERY)
        if any(
            wanted in text.casefold()
            for text in (item.id, item.line.what, item.line.url, item.system, item.task_id)
        )
    ]
    if not found:
        raise UsageError(
            f"edit: no verdict has {words!r} in its statement, page, system or task; use other words"
        )
    return found


class LabelDesk:
    """The HTTP server of one rater, who sees the verdicts to `edit` them. `start` and `stop` open and close it."""

    def __init__(
        self, run: OpenRun, sample: Sample, file: LabelFile, rater: str, *, edit: bool = False
    ) -> None:
        self._edit = edit
        self._run = run
        self._sample = sample
        self._file = file
        self._rater = rater
        self._order = sample.order(rater)
        self._token = secrets.token_urlsafe(24)
        app = web.Application(middlewares=[local_only], client_max_size=MAX_REQUEST)
        app.add_routes(
            [
                web.get("/", self._page),
                web.post("/", self._label),
                web.get("/assets/{name}", _asset),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)

    async def start(self, port: int) -> str:
        """Listen on loopback and return the page's URL. Raises UsageError if the port cannot be bound."""
        return f"{await listen(self._runner, 'label', HOST, port)}/"

    async def stop(self) -> None:
        """Close."""
        await self._runner.cleanup()
        await self._run.close()
        self._file.close()

    async def _page(self, request: web.Request) -> web.StreamResponse:
        """The next item, or the end."""
        self._file.refresh()
        mine, taken = self._file.by(self._rater), self._file.taken(self._rater)
        due = [
            item
            for item in self._order
            if item.id not in mine and (item.id in self._sample.shared or item.id not in taken)
        ]
        done = [mine[item.id] for item in self._order if item.id in mine]
        values = {
            "rater": self._rater,
            "edit": self._edit,
            "token": self._token,
            "file": str(self._file.path),
            "folder": str(self._run.folder),
            "labelled": sum(not one.skipped for one in done),
            "skipped": sum(one.skipped for one in done),
            "total": len(done) + len(due),
            "can_undo": any(item in self._sample.items for item in mine),
        }
        if not due:
            return _html("done.html.jinja", **values)
        item = due[0]
        source = item.line.url if urlsplit(item.line.url).scheme in ("http", "https") else ""
        shown = await shown_of(self._run, item)
        return _html("item.html.jinja", item=item, shown=shown, source=source, **values)

    async def _label(self, request: web.Request) -> web.StreamResponse:
        """Append a label, a skip or an undo; then show what is next."""
        if request.content_type != "application/x-www-form-urlencoded":
            raise web.HTTPUnsupportedMediaType(reason="send the page's form")
        try:
            form = {name: value for name, value in (await request.post()).items() if isinstance(value, str)}
        except (ValueError, LookupError) as error:
            raise web.HTTPBadRequest(reason="not a form") from error
        if not hmac.compare_digest(form.get("token", "").encode("utf-8", "replace"), self._token.encode()):
            raise web.HTTPForbidden(reason="reload the page: it is of an earlier start")
        given = self._given(form)
        if given is not None:
            await asyncio.to_thread(self._file.add, given)
        return web.Response(status=303, headers={"Location": "/"})

    def _given(self, form: dict[str, str]) -> Label | None:
        """The form's action; None to undo when nothing is left to undo."""
        if form.get("do") == "undo":
            last = [item for item in self._file.by(self._rater) if item in self._sample.items]
            return Label(item=last[-1], rater=self._rater) if last else None
        item = self._sample.items.get(form.get("item", ""))
        said, skipped = form.get("label", ""), form.get("do") == "skip"
        if item is None or (not skipped and said not in item.labelled.kind.labels):
            raise web.HTTPBadRequest(reason="unknown item or label")
        note, verdict = form.get("note", "").strip()[:MAX_NOTE], item.labelled.label
        if self._edit and not skipped and (not note or said == verdict):
            raise web.HTTPBadRequest(
                reason="an override needs another verdict than the judge's, and a reason"
            )
        return Label(
            item=item.id,
            what=item.line.what,
            url=item.line.url,
            label="" if skipped else said,
            rater=self._rater,
            note=note,
            skipped=skipped,
            verdict=verdict if self._edit and not skipped else "",
        )


def _html(template: str, **values: object) -> web.Response:
    """A page. Without a referrer for itself, its form would be sent with the origin "null", which is refused."""
    page = render(template, __package__, **values)
    headers = {"Referrer-Policy": "same-origin"}
    return web.Response(body=page.encode(), content_type="text/html", charset="utf-8", headers=headers)


async def _asset(request: web.Request) -> web.StreamResponse:
    name = request.match_info["name"]
    if name in _TYPES:
        return web.Response(text=asset(name), content_type=_TYPES[name], charset="utf-8")
    if name not in _OWN:
        raise web.HTTPNotFound
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return web.Response(text=text, content_type=_OWN[name], charset="utf-8")


COLUMNS = ("item", "question", "labels", "what", "passage", "url", "label", "rater", "note")
MAX_CELL = 8_000  # a spreadsheet takes 32,767 characters
_AROUND = 1_000


def write_sheet(run: str, out: str, number: int, rater: str) -> int:
    """Write `number` verdicts of the run folder `run` into the new CSV file `out`, without labels; how many they are.

    Raises UsageError for a folder without a run or verdicts, and a file that exists or cannot be written; StoreError.
    """
    if Path(out).exists():
        raise UsageError(f"out: {out} already exists; choose a new file")
    opened = OpenRun(Run.open(run))
    return asyncio.run(_written(opened, Path(out), sampled(opened, number), rater))


async def _written(run: OpenRun, out: Path, items: list[Item], rater: str) -> int:
    try:
        text = io.StringIO(newline="")
        table = csv.writer(text, quoting=csv.QUOTE_ALL)
        table.writerow(COLUMNS)
        async with open_workers():
            async for row in _rows(run, items, rater):
                table.writerow(map(cell, row))
        out.parent.mkdir(parents=True, exist_ok=True)
        write_new(out, text.getvalue().encode("utf-8-sig", "replace"))
    except StoreError:
        raise
    except OSError as error:
        raise UsageError(f"out: {unwritable(error, out)}; choose a new file") from error
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


def cell(text: str) -> str:
    """`text` as a cell: what a spreadsheet takes of it, and as no formula."""
    return plain_cell(text[:MAX_CELL].replace("\0", " "))
