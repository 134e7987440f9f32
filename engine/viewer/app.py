"""`adjudge view`: the pages over HTTP, on this machine only.

The viewer follows the run's folder: it opens the run again when another replaces it, it ends, or its process dies.
Reports, pages and judges' replies are hostile: everything is escaped, and every request passes `local_only`. The viewer
never writes.
"""

import asyncio
import hashlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec
import pyarrow as pa
from aiohttp import web

from adjudge.engine.errors import UsageError
from adjudge.engine.runs.listed import ListedRun, has_runs, run_folders, runs_in
from adjudge.engine.runs.pulse import alive
from adjudge.engine.runs.run import Run
from adjudge.engine.tables.page import asset, page_policy
from adjudge.engine.telemetry.http import HEADERS, HOST, listen, local_only, serve_until_signal
from adjudge.engine.viewer.data.following import Snapshot
from adjudge.engine.viewer.data.index import release, use_little
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.query import (
    BadQuery,
    BesideQuery,
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
from adjudge.engine.viewer.pages.runs import runs_page
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


class Shelf:
    """The runs below a folder, each opened when a page of it is asked for."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._opened: dict[str, FollowedRun] = {}

    def listed(self) -> dict[str, ListedRun]:
        """The runs, the newest first, by the names that they have in addresses. Raises UsageError."""
        return {_name(one.folder): one for one in runs_in(self.folder)}

    def run(self, name: str) -> FollowedRun:
        """The run with this name. Call from the event loop. Raises NotThere, UsageError."""
        if name not in self._opened:
            places = {_name(str(one)): str(one) for one in run_folders(self.folder)}
            if name not in places:
                raise NotThere("the folder has no run at this address; go back to its list")
            run = FollowedRun(places[name])
            run.now().begin()
            self._opened[name] = run
        return self._opened[name]

    async def close(self) -> None:
        """Close every run."""
        for run in self._opened.values():
            await run.close()


def _name(folder: str) -> str:
    return hashlib.blake2b(os.fsencode(folder), digest_size=8).hexdigest()


AT_ONCE = 8
THREADS = 2
STREAMS = 32
SLOWEST_S = 30.0  # for a client to take one event
MAX_LINE = 1 << 18  # more than the longest query, whose characters take up to twelve bytes once encoded
_TYPES = {"css": "text/css", "js": "text/javascript"}
_ASSETS = {f"{name}.{kind}": _TYPES[kind] for name in ("base", "live", "report", "viewer") for kind in _TYPES}

Q = TypeVar("Q")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Which = Callable[[web.Request], FollowedRun]
"""Which run a request is about. Raises NotThere, UsageError."""


def view(
    run: str,
    other: str | None,
    port: int,
    json: bool = False,
    with_stdin: bool = False,
    labels: Path | None = None,
) -> None:
    """Serve the run folder `run`, and `other` beside it if given, until SIGTERM or SIGINT; or the runs below a folder.

    `labels` is a file of people's labels, shown beside the judge's verdicts. With `with_stdin`, the end of standard
    input ends it too. Raises UsageError for a folder without a run, a file that cannot be read, and a port that cannot
    be bound.
    """
    if has_runs(run) and (other is not None or labels is not None):
        raise UsageError(f"view: {run} holds several runs; give one run for --other and --labels")
    asyncio.run(_view(_served(run, other, port, labels), json, with_stdin))


async def _view(served: AbstractAsyncContextManager[str], json: bool, with_stdin: bool) -> None:
    use_little(THREADS)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
    await serve_until_signal(served, json, with_stdin)


@asynccontextmanager
async def _served(run: str, other: str | None, port: int, labels: Path | None) -> AsyncIterator[str]:
    viewer = (
        Viewer(Shelf(run))
        if has_runs(run)
        else Viewer(FollowedRun(run, labels), None if other is None else FollowedRun(other))
    )
    async with open_workers():
        url = await viewer.start(port)
        try:
            yield url
        finally:
            await viewer.stop()


class Viewer:
    """The HTTP server of one run, of two side by side, or of the runs below a folder."""

    def __init__(self, run: FollowedRun | Shelf, other: FollowedRun | None = None) -> None:
        self._runs = [run] if other is None else [run, other]
        self._streams = 0
        self._room = asyncio.Semaphore(AT_ONCE)
        app = web.Application(middlewares=[local_only])
        app.add_routes(self._of_folder(run) if isinstance(run, Shelf) else self._of_run(run, other))
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            handler_cancellation=True,
            shutdown_timeout=1.0,
            max_line_size=MAX_LINE,
        )

    def _of_run(self, run: FollowedRun, other: FollowedRun | None) -> list[web.RouteDef]:
        if other is None:
            return self._routes("/", lambda _: run)
        beside = other
        return [
            *self._routes("/", lambda _: run, lambda _: beside, lambda _: "other/"),
            *self._routes("/other/", lambda _: beside, lambda _: run, lambda _: "../"),
        ]

    def _of_folder(self, shelf: Shelf) -> list[web.RouteDef]:
        """The list of runs, each of them, and any two side by side."""

        def run(request: web.Request) -> FollowedRun:
            return shelf.run(request.match_info["run"])

        def other(request: web.Request) -> FollowedRun:
            return shelf.run(request.match_info["other"])

        def turned(request: web.Request) -> str:
            return f"../../../{request.match_info['other']}/beside/{request.match_info['run']}/"

        async def listed(request: web.Request) -> web.StreamResponse:
            query = read(request.query, ListQuery)
            found = await asyncio.to_thread(shelf.listed)
            return _html(200, runs_page(shelf.folder, found, query))

        async def beside(request: web.Request) -> web.StreamResponse:
            query = read(request.query, BesideQuery)
            return web.Response(
                status=303, headers={"Location": f"runs/{query.a}/beside/{query.b}/differences"}
            )

        def alone(handler: Handler) -> Handler:
            return _explained(handler, run, lambda _: "", "./")

        return [
            web.get("/", alone(listed)),
            web.get("/beside", alone(beside)),
            web.get("/assets/{name}", _asset),
            *self._routes("/runs/{run}/", run, shelf="../../"),
            *self._routes("/runs/{run}/beside/{other}/", run, other, turned, shelf="../../../../"),
        ]

    async def start(self, port: int) -> str:
        """Listen on loopback and return the viewer's URL. Raises UsageError if the port cannot be bound."""
        url = await listen(self._runner, "view", HOST, port)
        for run in self._runs:
            if isinstance(run, FollowedRun):
                run.now().begin()
        return f"{url}/"

    async def stop(self) -> None:
        """Close."""
        await self._runner.cleanup()
        for run in self._runs:
            await run.close()

    def _routes(
        self,
        base: str,
        run: Which,
        other: Which | None = None,
        there: Callable[[web.Request], str] = lambda _: "",
        shelf: str = "",
    ) -> list[web.RouteDef]:
        """The pages of a run below `base`, those of `other` being at the address `there`, and the list at `shelf`."""

        def page(path: str, kind: type[Q], make: Callable[..., Awaitable[str]], *runs: Which) -> web.RouteDef:
            async def handle(request: web.Request) -> web.StreamResponse:
                query = read(request.query, kind)
                async with self._room:
                    opened = [one(request).now() for one in runs]
                    try:
                        frame = await _frame(opened[0], there(request), shelf)
                        return _html(200, await make(*opened, frame, query))
                    finally:
                        release()

            return web.get(base + path, _explained(handle, run, there, shelf))

        async def first(found: OpenRun, frame: Frame, query: ListQuery) -> str:
            return await (home if found.following is None else live_page)(found, frame, query)

        async def leaderboard(request: web.Request) -> web.StreamResponse:
            async with self._room:
                page = _html(200, await board_page(run(request).now()))
            # Drawn by this version; the page's own policy allows its scripts by their hashes.
            page.headers["Content-Security-Policy"] = f"{page_policy()}; frame-ancestors 'none'"
            return page

        async def events(request: web.Request) -> web.StreamResponse:
            return await self._events(request, run(request))

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
            web.get(f"{base}leaderboard", _explained(leaderboard, run, there, shelf)),
            web.get(f"{base}events", _explained(events, run, there, shelf)),
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


async def _frame(run: OpenRun, other: str, shelf: str) -> Frame:
    """The frame of the run's pages as it is now."""
    frame = Frame(run.record.run, run.record.judging.said, other, shelf)
    if run.following is None:
        return frame
    view = live_view(await asyncio.to_thread(run.following.look))
    return msgspec.structs.replace(frame, state=view.state, headline=view.figures["headline"])


def _explained(handler: Handler, run: Which, there: Callable[[web.Request], str], shelf: str) -> Handler:
    """`handler` with its failures shown as pages."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except BadQuery as error:
            return _failed(request, 400, "Invalid address", error)
        except NotThere as error:
            return _failed(request, 404, "Not found", error)
        except (OSError, UsageError, pa.ArrowException, msgspec.MsgspecError) as error:
            _log.error("%s", error)
            return _failed(request, 503, "The run cannot be read", error)

    def _failed(request: web.Request, status: int, title: str, error: Exception) -> web.Response:
        frame = Frame("", "", shelf=shelf)
        with suppress(KeyError, NotThere, UsageError):
            last = run(request).last.record
            frame = Frame(last.run, last.judging.said, there(request), shelf)
        return _html(status, frame.show("failed.html.jinja", title, why=str(error)[:2_000]))

    return handle


def _html(status: int, page: str) -> web.Response:
    return web.Response(status=status, body=page.encode(), content_type="text/html", charset="utf-8")


async def _asset(request: web.Request) -> web.StreamResponse:
    kind = _ASSETS.get(request.match_info["name"])
    if kind is None:
        raise web.HTTPNotFound
    return web.Response(text=asset(request.match_info["name"]), content_type=kind, charset="utf-8")
