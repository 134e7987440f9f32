"""`adjudge label`: one verdict at a time in a local page, labelled by keyboard.

A rater sees the item, what the judge was shown, and the question; not the system, the verdict or the judge. Every
request passes `local_only`; one that labels carries a token of this process, and the file of labels is all that is ever
written. Every label is in the file before the next item is shown.
"""

import asyncio
import hmac
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web

from adjudge.engine.errors import UsageError
from adjudge.engine.labelling.label_file import LabelFile
from adjudge.engine.labelling.sample import Sample, drawn
from adjudge.engine.labelling.shown import shown_of
from adjudge.engine.records.items import Item, items_of
from adjudge.engine.records.labels import Label
from adjudge.engine.rendering.leaderboard_page import asset
from adjudge.engine.rendering.templates import render
from adjudge.engine.telemetry.listener import listen, serve_until_signal
from adjudge.engine.telemetry.local_pages import HOST, local_only
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.scoring.text.aside import open_workers

__all__ = ["LabelDesk", "label", "sampled"]

MAX_NOTE = 2_000
MAX_REQUEST = 64_000
_TYPES = {"base.css": "text/css", "base.js": "text/javascript"}
_OWN = {"label.css": "text/css", "label.js": "text/javascript"}


def label(run: str, out: str, number: int, rater: str, overlap: float, port: int, json: bool = False) -> None:
    """Serve the page on which `rater` labels `number` verdicts of the run folder `run` into `out`, until a signal.

    Raises UsageError for a folder without a run or verdicts, a file that cannot be used, and a port that cannot be
    bound; StoreError.
    """
    asyncio.run(serve_until_signal(_served(run, Path(out), number, rater, overlap, port), json))


@asynccontextmanager
async def _served(
    run: str, out: Path, number: int, rater: str, overlap: float, port: int
) -> AsyncIterator[str]:
    opened = OpenRun(run)
    sample = Sample(sampled(opened, number), overlap)
    desk = LabelDesk(opened, sample, LabelFile(out), rater)
    async with open_workers():
        url = await desk.start(port)
        try:
            yield url
        finally:
            await desk.stop()


def sampled(run: OpenRun, number: int) -> list[Item]:
    """The sample of a run. Raises UsageError if it has no verdicts that people can label, StoreError."""
    items = list(items_of(run.record))
    if not items:
        raise UsageError(
            f"{run.folder}: no verdicts that people can label; choose a run of fact, rubrics or the like"
        )
    return drawn(items, number, run.record.config.seed)


class LabelDesk:
    """The HTTP server of one rater. `start` and `stop` open and close it."""

    def __init__(self, run: OpenRun, sample: Sample, file: LabelFile, rater: str) -> None:
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
        """What the form says; None to undo where nothing is left to."""
        if form.get("do") == "undo":
            last = [item for item in self._file.by(self._rater) if item in self._sample.items]
            return Label(item=last[-1], rater=self._rater) if last else None
        item = self._sample.items.get(form.get("item", ""))
        said, skipped = form.get("label", ""), form.get("do") == "skip"
        if item is None or (not skipped and said not in item.labelled.kind.labels):
            raise web.HTTPBadRequest(reason="unknown item or label")
        return Label(
            item=item.id,
            what=item.line.what,
            url=item.line.url,
            label="" if skipped else said,
            rater=self._rater,
            note=form.get("note", "").strip()[:MAX_NOTE],
            skipped=skipped,
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
