"""`adjudge serve`: rewards over HTTP, for trainers that call and wait.

A request's checks run from cheapest to dearest: path, token, announced size, room, body, items, room again; only then
is the judge asked. Rollouts being scored and bytes being read are limited: a request over the limits is refused before
memory grows. When a client disconnects, its questions are cancelled unless another call waits for them.

The server adds its own metrics to its evaluator's.
"""

import asyncio
import logging
import resource
import time
from collections import Counter as Tally
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from math import ceil

import msgspec
from aiohttp import web
from prometheus_client import Counter, Gauge, Histogram

from adjudge.engine.config.reward import ServerLimits
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import StoreError, nearest
from adjudge.engine.rewards.flags import FLAGS, UNCLEAR
from adjudge.engine.rewards.outage import Outages
from adjudge.engine.rewards.reward import Reward, RewardError, all_settled
from adjudge.engine.rewards.scorer import RewardScorer, open_rewards
from adjudge.engine.rewards.tokens import worded
from adjudge.engine.serving.dialects import DIALECTS, BadRequest, Call, Dialect, Failure, NoReward, openapi
from adjudge.engine.telemetry.http import Access, is_foreign, listen, serve_until_signal
from adjudge.engine.telemetry.logs import event
from adjudge.engine.telemetry.metrics import CONTENT_TYPE, SECONDS, Metrics, page

_log = logging.getLogger(__name__)

ARRIVING = min(512, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)  # bodies that are read at once


class Overloaded(RuntimeError):
    """The server is at its limits."""


class Admission:
    """Counts what was admitted: `items` rollouts are being scored, `body_bytes` bytes are held or announced.

    A request that comes while fewer than the limit are being scored is admitted whole, so that a large batch can be.
    """

    def __init__(self, limits: ServerLimits) -> None:
        self.items = 0
        self.body_bytes = 0
        self._arriving = 0
        self._limits = limits

    @contextmanager
    def body(self, size: int) -> Iterator[None]:
        """Hold `size` bytes of a body. Raises Overloaded."""
        if self.items >= self._limits.items or self.body_bytes + size > self._limits.bytes:
            raise Overloaded("the server is at its limits; try again later")
        self.body_bytes += size
        try:
            yield
        finally:
            self.body_bytes -= size

    @contextmanager
    def arriving(self) -> Iterator[None]:
        """Read a body. Raises Overloaded: each that arrives slowly holds a connection."""
        if self._arriving >= ARRIVING:
            raise Overloaded("too many requests are being sent at once; try again later")
        self._arriving += 1
        try:
            yield
        finally:
            self._arriving -= 1

    @contextmanager
    def rollouts(self, count: int) -> Iterator[None]:
        """Score `count` rollouts. Raises Overloaded."""
        if self.items >= self._limits.items:
            raise Overloaded("the server is at its limits; try again later")
        self.items += count
        try:
            yield
        finally:
            self.items -= count


class RewardMetrics:
    """Adds a reward server's numbers to `metrics`. `recent` is a moving average of the seconds per request."""

    def __init__(self, metrics: Metrics) -> None:
        self.recent = 0.0
        self._registry = own = metrics.registry
        self._requests = Counter("adjudge_requests", "Requests", ["path", "status"], registry=own)
        self._rewards = Counter(
            "adjudge_rewards", "Rewards, by why they have no value", ["reason"], registry=own
        )
        self._values = Counter("adjudge_reward_value", "Sum of the values of rewards", registry=own)
        self._flags = Counter("adjudge_reward_flags", "Sum of the flags of rewards", ["flag"], registry=own)
        self._unanswered = Counter(
            "adjudge_reward_unanswered",
            "Rollouts without a readable answer twice while others of the task had one",
            ["reason"],
            registry=own,
        )
        self._seconds = Histogram(
            "adjudge_request_seconds", "Time to score a request", buckets=SECONDS, registry=own
        )

    def watch(self, name: str, what: str, value: Callable[[], float]) -> None:
        """Expose the current result of `value` as the gauge `name`."""
        Gauge(name, what, registry=self._registry).set_function(value)

    def request(self, path: str, status: int) -> None:
        """Count a request by its path (one of the server's own) and status."""
        self._requests.labels(path, str(status)).inc()

    def scored(self, rewards: Sequence[Reward], flags: Sequence[str], seconds: float) -> None:
        """Count a scored request's rewards."""
        self.recent += 0.2 * (seconds - self.recent)
        self._seconds.observe(seconds)
        self._values.inc(sum(max(reward.value or 0.0, 0.0) for reward in rewards))
        reasons = Tally(reward.reason if reward.value is None else "" for reward in rewards)
        for reason, count in reasons.items():
            self._rewards.labels(reason or "scored").inc(count)
        for reward in rewards:
            if reward.scores.get("unanswered"):
                self._unanswered.labels(reward.reason or "").inc()
        for flag in flags:
            self._flags.labels(flag).inc(sum(reward.scores.get(flag) or 0.0 for reward in rewards))


def metrics_of(scorer: RewardScorer, admission: Admission) -> RewardMetrics:
    """The metrics of a server with `scorer`: those of its group, audit, log and canaries only if it has them."""
    metrics = RewardMetrics(scorer.evaluator.metrics)
    metrics.watch("adjudge_items_in_flight", "Rollouts being scored", lambda: admission.items)
    metrics.watch("adjudge_body_bytes", "Bytes of bodies held", lambda: admission.body_bytes)
    panel = scorer.panel
    metrics.watch("adjudge_reward_tied", "Share of the last 64 groups with one reward", lambda: panel.tied)
    metrics.watch(
        "adjudge_reward_saturated",
        "Share of the last 256 rewards at the highest value",
        lambda: panel.saturated,
    )
    metrics.watch("adjudge_criterion_rise", "Largest drift of a criterion upwards", lambda: panel.rise)
    metrics.watch("adjudge_criterion_fall", "Largest drift of a criterion downwards", lambda: panel.fall)
    if scorer.reward_config.group.asks:
        metrics.watch("adjudge_group_first", "Wins of the report shown first", lambda: scorer.positions.first)
        metrics.watch(
            "adjudge_group_comparisons", "Comparisons answered", lambda: scorer.positions.comparisons
        )
    if (audit := scorer.audit) is not None:
        metrics.watch("adjudge_audit_gap", "First judge minus second, lately", lambda: audit.gap)
        metrics.watch(
            "adjudge_audit_gap_growth", "The judges' gap minus its first mean", lambda: audit.growth
        )
        metrics.watch("adjudge_audit_done", "Rollouts scored by both judges", lambda: audit.done)
        metrics.watch("adjudge_audit_failed", "Audits without a second reward", lambda: audit.failed)
        metrics.watch("adjudge_audit_skipped", "Audits skipped, too many waiting", lambda: audit.skipped)
    if (log := scorer.log) is not None:
        metrics.watch("adjudge_log_written", "Rollouts written to the log", lambda: log.written)
        metrics.watch("adjudge_log_skipped", "Rollouts left out of the log", lambda: log.skipped)
    if (canary := scorer.canary) is not None:
        metrics.watch("adjudge_canary_drift", "Canaries' rewards minus known ones", lambda: canary.drift)
        metrics.watch(
            "adjudge_canary_distance", "Canaries' rewards minus known ones, absolute", lambda: canary.distance
        )
        metrics.watch("adjudge_canary_failed", "Canaries without a reward", lambda: canary.failed)
        metrics.watch("adjudge_canary_rounds", "Rounds of canaries", lambda: canary.rounds)
    return metrics


DRAIN_S = 60.0
_CHUNK = 1 << 16

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def serve(config: RunConfig, host: str, port: int, json: bool = False) -> None:
    """Serve until SIGTERM or SIGINT; then refuse what is new and finish what was admitted.

    The URL is printed first, as a JSON document {"url": ...} if `json`.

    Raises UsageError for an address that everybody can reach without a token, or that cannot be bound.
    """
    access = Access.from_environment("serve", host)
    asyncio.run(serve_until_signal(_served(config, host, port, access), json))


@asynccontextmanager
async def _served(config: RunConfig, host: str, port: int, access: Access) -> AsyncIterator[str]:
    async with open_rewards(config) as scorer:
        server = RewardServer(scorer, access)
        url = await server.start(host, port)
        try:
            yield url
        finally:
            await server.stop()


class RewardServer:
    """The HTTP side of a scorer. Every POST and /metrics needs what `access` asks for."""

    def __init__(self, scorer: RewardScorer, access: Access | None = None) -> None:
        self._scorer = scorer
        self._access = access or Access()
        self._limits = scorer.reward_config.limits
        self._admission = Admission(self._limits)
        self._outages = Outages(msgspec.structs.replace(scorer.reward_config.outage, stop_share=None))
        self._metrics = metrics_of(scorer, self._admission)
        self._draining = False
        self._document = msgspec.json.encode(openapi(self._access.has_token))
        app = web.Application(middlewares=[self._guard])
        app.add_routes([web.post(dialect.path, self._handler(dialect)) for dialect in DIALECTS])
        app.add_routes(
            [
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
                web.get("/metrics", self._metrics_text),
                web.get("/openapi.json", self._openapi),
            ]
        )
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            handler_cancellation=True,
            auto_decompress=False,
            lingering_time=0.0,
            shutdown_timeout=DRAIN_S,
        )

    async def start(self, host: str, port: int) -> str:
        """Listen; the server's URL. Raises UsageError if the address cannot be bound."""
        return await listen(self._runner, "serve", host, port)

    async def stop(self) -> None:
        """Refuse what is new, finish what was admitted, and close."""
        self._draining = True
        await self._runner.cleanup()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Check name, origin and token before anything else, give every failure one shape, and count."""
        path = request.match_info.route.resource
        try:
            response = self._refusal(request) or await handler(request)
        except web.HTTPException as error:
            allowed = error.headers.get("Allow", "")
            response = _failed(error.status, f"{error.reason}{_instead(request, allowed)}", Allow=allowed)
        except StoreError as error:
            _log.error("%s", error)
            response = _failed(503, "the store cannot be used")
        known = "other" if path is None else path.canonical
        self._metrics.request(known, response.status)
        event(_log, "request", path=known, status=response.status)
        return response

    def _refusal(self, request: web.Request) -> web.Response | None:
        """The refusal of a request that is for another server, sent by another site's page, or without the token."""
        host = request.headers.get("Host", "")
        if not self._access.serves(host):
            return _failed(421, "not served under this name")
        if is_foreign(request.headers.get("Origin"), host):
            return _failed(403, "pages of other sites may not call this server")
        if request.method in ("GET", "HEAD") and request.path != "/metrics":
            return None
        if self._access.admits(request.headers.get("Authorization", "")):
            return None
        return _failed(401, "the token is missing or wrong", WWW_Authenticate="Bearer")

    def _handler(self, dialect: "Dialect[msgspec.Struct]") -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            if self._draining:
                return _failed(503, "the server is stopping", Retry_After="1", Connection="close")
            try:
                return await self._answer(dialect, request)
            except Overloaded as error:
                return _failed(429, str(error), Retry_After=str(max(1, ceil(self._metrics.recent))))
            except (BadRequest, RewardError) as error:
                return _failed(400, str(error)[:500])
            except NoReward as error:
                response = _failed(503, str(error))
                response.set_status(
                    503, str(error)
                )  # the line of the status is all that trainers log of a reply
                return response

        return handle

    async def _answer(self, dialect: "Dialect[msgspec.Struct]", request: web.Request) -> web.Response:
        with self._admission.body(self._promised(request)):
            with self._admission.arriving():
                raw = await self._body(request)
            call = dialect.read(raw)
            if len(call.items) > self._limits.batch:
                return _failed(413, f"more than {self._limits.batch} items")
            call = msgspec.structs.replace(call, items=await worded(call.items, online=False))
            with self._admission.rollouts(len(call.items)):
                rewards = await self._scored(call)
            wanted = self._scorer.reward_config.on_failure
            # A reply cannot raise in its caller: it has null, or a status, where nothing else stands in.
            values = all_settled(call.items, rewards, "none" if wanted == "raise" else wanted)
            return _json(200, dialect.reply(raw, rewards, values))

    async def _scored(self, call: Call) -> list[Reward]:
        started = time.perf_counter()

        def score() -> Awaitable[list[Reward]]:
            return self._scorer.score(
                call.items, deadline=call.deadline_s, priority=call.priority, step=call.step
            )

        # A caller that says its deadline holds its calls itself.
        rewards = await (self._outages.held(score) if call.deadline_s is None else score())
        self._metrics.scored(rewards, (*FLAGS, UNCLEAR), time.perf_counter() - started)
        return rewards

    def _promised(self, request: web.Request) -> int:
        """How large the body will be at most, by its head alone. Raises the refusal of one that is not to be read."""
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise web.HTTPUnsupportedMediaType(reason="send the body uncompressed")
        size = request.content_length
        if size is not None and size > self._limits.body_bytes:
            raise web.HTTPRequestEntityTooLarge(self._limits.body_bytes, size)
        return self._limits.body_bytes if size is None else size

    async def _body(self, request: web.Request) -> bytes:
        """The body, whole, within its limits of size and time."""
        chunks, size = [], 0
        try:
            async with asyncio.timeout(self._limits.body_s):
                while chunk := await request.content.read(_CHUNK):
                    size += len(chunk)
                    if size > self._limits.body_bytes:
                        raise web.HTTPRequestEntityTooLarge(self._limits.body_bytes, size)
                    chunks.append(chunk)
        except TimeoutError as error:
            raise web.HTTPRequestTimeout(reason="the body did not arrive in time") from error
        return b"".join(chunks)

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, request: web.Request) -> web.Response:
        if self._draining:
            return web.Response(status=503, text="stopping\n")
        if not self._scorer.evaluator.is_writing:
            return web.Response(status=503, text="the store cannot be written\n")
        if self._scorer.judge_trouble is not None:  # which may name servers, and anybody may ask here
            return web.Response(status=503, text="the judge cannot be used\n")
        return web.Response(text="ready\n")

    async def _metrics_text(self, request: web.Request) -> web.Response:
        numbers = page(self._scorer.evaluator.measured())
        return web.Response(body=numbers, headers={"Content-Type": CONTENT_TYPE})

    async def _openapi(self, request: web.Request) -> web.Response:
        return web.Response(body=self._document, content_type="application/json")


def _json(status: int, body: object, **headers: str) -> web.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items() if value}
    return web.Response(
        status=status, body=msgspec.json.encode(body), content_type="application/json", headers=named
    )


def _instead(request: web.Request, allowed: str) -> str:
    """What to send instead of a request to a path, or by a method, that is not there."""
    if allowed:
        return f"; use {allowed}"
    known = [dialect.path for dialect in DIALECTS]
    return "" if request.match_info.route.resource else f"; {nearest(request.path, known)}"


def _failed(status: int, why: str, **headers: str) -> web.Response:
    return _json(status, Failure(why), **headers)
