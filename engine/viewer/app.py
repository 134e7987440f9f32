"""`adjudge view`: the pages over HTTP, on this machine only.

The viewer follows the run's folder: it opens the run again when another replaces it, it ends, or its process dies.
Reports, pages and judges' replies are hostile: everything is escaped, and every request passes `local_only`. The viewer
never writes.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
import pyarrow as pa
from aiohttp import web

from adjudge.engine.errors import UsageError
from adjudge.engine.runs.pulse import alive
from adjudge.engine.runs.run import Run
from adjudge.engine.tables.page import asset, page_policy
from adjudge.engine.telemetry.http import HEADERS, HOST, listen, local_only, serve_until_signal
from adjudge.engine.viewer.data.following import Snapshot
from adjudge.engine.viewer.data.index import release, use_little
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.query import (
    BadQuery,
    DifferencesQuery,
    EvidenceQuery,
    ListQuery,
    NotThere,
    PageQuery,
    QuestionQuery,
    QuestionsQuery,
    ReportQuery,
    SearchQuery,
    SystemQuery,
    TaskQuery,
    read,
)
from adjudge.engine.viewer.pages.differences import difference_page, differences_page
from adjudge.engine.viewer.pages.frame import Frame
from adjudge.engine.viewer.pages.home import board_page, home, tasks_page
from adjudge.engine.viewer.pages.live import live_page, live_view
from adjudge.engine.viewer.pages.questions import page_page, question_page, questions_page
from adjudge.engine.viewer.pages.report import evidence_page, report_page
from adjudge.engine.viewer.pages.search import search_page
from adjudge.engine.viewer.pages.system import system_page
from adjudge.engine.viewer.pages.task import task_page
from adjudge.scoring.text.aside import open_workers

_log = logging.getLogger(__name__)

NOTICED_S = 1.0  # until a stream sees that a run has ended, or that another has begun


class FollowedRun:
    """The run in `folder`, and people's `labels` of it, if given. Raises UsageError if `folder` has no run."""

    def __init__(self, folder: str, labels: Path | None = None) -> None:
        self._folder = folder
        self._labels = labels
        self._written = _written(folder)
        self._run = OpenRun(Run.open(folder), labels)
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def last(self) -> OpenRun:
        """The run as it was when it was last asked for."""
        return self._run

    def now(self) -> OpenRun:
        """The run as it is now. Call from the event loop. Raises UsageError."""
        written = _written(self._folder)
        died = self._run.record.state == "running" and not alive(Path(self._folder))
        if written != self._written or died:
            run = OpenRun(Run.open(self._folder), self._labels)
            closing = asyncio.ensure_future(self._run.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
            self._written, self._run = written, run
            run.begin()
        return self._run

    async def snapshots(self) -> AsyncIterator[Snapshot]:
        """The run at each look that is due, until it has finished. Raises UsageError, StoreError."""
        while (following := self.now().following) is not None:
            snapshot = await following.next(NOTICED_S)
            if snapshot is not None:
                yield snapshot

    async def close(self) -> None:
        """Cancel what is being opened and followed."""
        await asyncio.gather(self._run.close(), *self._closing)


def _written(folder: str) -> tuple[int, int]:
    """When the record was written, and as which file: equal as long as it is the same."""
    try:
        found = (Path(folder) / "run.json").stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_ino)


AT_ONCE = 8
THREADS = 2
STREAMS = 32
SLOWEST_S = 30.0  # for a client to take one event
MAX_LINE = 1 << 18  # more than the longest query, whose characters take up to twelve bytes once encoded
_TYPES = {"css": "text/css", "js": "text/javascript"}
_ASSETS = {f"{name}.{kind}": _TYPES[kind] for name in ("base", "live", "report", "viewer") for kind in _TYPES}

Q = TypeVar("Q")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def view(
    run: str,
    other: str | None,
    port: int,
    json: bool = False,
    with_stdin: bool = False,
    labels: str | None = None,
) -> None:
    """Serve the run folder `run`, and `other` beside it if given, until SIGTERM or SIGINT.

    `labels` is a file of people's labels, shown beside the judge's verdicts. With `with_stdin`, the end of standard
    input ends it too. Raises UsageError for a folder without a run, a file that cannot be read, and a port that cannot
    be bound.
    """
    file = None if labels is None else Path(labels)
    asyncio.run(_view(_served(run, other, port, file), json, with_stdin))


async def _view(served: AbstractAsyncContextManager[str], json: bool, with_stdin: bool) -> None:
    use_little(THREADS)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
    await serve_until_signal(served, json, with_stdin)


@asynccontextmanager
async def _served(run: str, other: str | None, port: int, labels: Path | None) -> AsyncIterator[str]:
    viewer = Viewer(FollowedRun(run, labels), None if other is None else FollowedRun(other))
    async with open_workers():
        url = await viewer.start(port)
        try:
            yield url
        finally:
            await viewer.stop()


class Viewer:
    """The HTTP server of one run, or of two side by side."""

    def __init__(self, run: FollowedRun, other: FollowedRun | None = None) -> None:
        self._runs = [run] if other is None else [run, other]
        self._streams = 0
        self._room = asyncio.Semaphore(AT_ONCE)
        app = web.Application(middlewares=[local_only])
        app.add_routes(self._routes("/", run, other, "other/"))
        if other is not None:
            app.add_routes(self._routes("/other/", other, run, "../"))
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            handler_cancellation=True,
            shutdown_timeout=1.0,
            max_line_size=MAX_LINE,
        )

    async def start(self, port: int) -> str:
        """Listen on loopback and return the viewer's URL. Raises UsageError if the port cannot be bound."""
        url = await listen(self._runner, "view", HOST, port)
        for run in self._runs:
            run.now().begin()
        return f"{url}/"

    async def stop(self) -> None:
        """Close."""
        await self._runner.cleanup()
        for run in self._runs:
            await run.close()

    def _routes(
        self, base: str, run: FollowedRun, other: FollowedRun | None, there: str
    ) -> list[web.RouteDef]:
        beside = there if other is not None else ""

        def page(
            path: str, kind: type[Q], make: Callable[..., Awaitable[str]], *runs: FollowedRun
        ) -> web.RouteDef:
            async def handle(request: web.Request) -> web.StreamResponse:
                query = read(request.query, kind)
                async with self._room:
                    opened = [one.now() for one in runs]
                    try:
                        return _html(200, await make(*opened, await _frame(opened[0], beside), query))
                    finally:
                        release()

            return web.get(base + path, _explained(handle, run, beside))

        async def first(found: OpenRun, frame: Frame, query: ListQuery) -> str:
            return await (home if found.following is None else live_page)(found, frame, query)

        async def leaderboard(request: web.Request) -> web.StreamResponse:
            async with self._room:
                page = _html(200, await board_page(run.now()))
            # Drawn by this version; the page's own policy allows its scripts by their hashes.
            page.headers["Content-Security-Policy"] = f"{page_policy()}; frame-ancestors 'none'"
            return page

        async def events(request: web.Request) -> web.StreamResponse:
            return await self._events(request, run)

        routes = [
            page("", ListQuery, first, run),
            page("tasks", ListQuery, tasks_page, run),
            page("task", TaskQuery, task_page, run),
            page("system", SystemQuery, system_page, run),
            page("report", ReportQuery, report_page, run),
            page("evidence", EvidenceQuery, evidence_page, run),
            page("questions", QuestionsQuery, questions_page, run),
            page("question", QuestionQuery, question_page, run),
            page("page", PageQuery, page_page, run),
            page("search", SearchQuery, search_page, run),
            web.get(f"{base}leaderboard", _explained(leaderboard, run, beside)),
            web.get(f"{base}events", _explained(events, run, beside)),
            web.get(f"{base}assets/{{name}}", _asset),
        ]
        if other is not None:
            routes += [
                page("differences", DifferencesQuery, differences_page, run, other),
                page("difference", ReportQuery, difference_page, run, other),
            ]
        return routes

    async def _events(self, request: web.Request, run: FollowedRun) -> web.StreamResponse:
        """The figures of a run as server-sent events, one whenever they differ, until it has finished.

        A client gets the newest when it has read the last: a slow one gets fewer, and delays no other.
        """
        if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            raise web.HTTPForbidden(reason="only pages of this viewer may follow a run")
        if self._streams >= STREAMS:
            raise web.HTTPServiceUnavailable(reason="too many pages follow this run; close some")
        stream = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        self._streams += 1
        try:
            await stream.prepare(request)
            last = b""
            async for snapshot in run.snapshots():
                data = msgspec.json.encode(live_view(snapshot))
                if data != last:
                    async with asyncio.timeout(SLOWEST_S):
                        await stream.write(b"data: %b\n\n" % data)
                last = data
            await stream.write(b"event: end\ndata: {}\n\n")
        except (ConnectionError, TimeoutError):
            pass  # the page was closed, or does not read what it asked for
        except (OSError, UsageError, pa.ArrowException) as error:
            _log.error("%s", error)  # the page asks again in a while
        finally:
            self._streams -= 1
        return stream


async def _frame(run: OpenRun, other: str) -> Frame:
    """The frame of the run's pages as it is now."""
    frame = Frame(run.record.run, run.record.judging.said, other)
    if run.following is None:
        return frame
    view = live_view(await asyncio.to_thread(run.following.look))
    return msgspec.structs.replace(frame, state=view.state, headline=view.figures["headline"])


def _explained(handler: Handler, run: FollowedRun, other: str) -> Handler:
    """`handler` with its failures shown as pages."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except BadQuery as error:
            return _failed(400, "Invalid address", error)
        except NotThere as error:
            return _failed(404, "Not found", error)
        except (OSError, UsageError, pa.ArrowException, msgspec.MsgspecError) as error:
            _log.error("%s", error)
            return _failed(503, "The run cannot be read", error)

    def _failed(status: int, title: str, error: Exception) -> web.Response:
        frame = Frame(run.last.record.run, run.last.record.judging.said, other)
        return _html(status, frame.show("failed.html.jinja", title, why=str(error)[:2_000]))

    return handle


def _html(status: int, page: str) -> web.Response:
    return web.Response(status=status, body=page.encode(), content_type="text/html", charset="utf-8")


async def _asset(request: web.Request) -> web.StreamResponse:
    kind = _ASSETS.get(request.match_info["name"])
    if kind is None:
        raise web.HTTPNotFound
    return web.Response(text=asset(request.match_info["name"]), content_type=kind, charset="utf-8")
