"""Opens what a run needs (stores, judge, fetcher) and closes it again, whatever happens in between."""

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from adjudge.engine.config.fetch import FetchConfig
from adjudge.engine.config.judge import JudgeConfig, Seat
from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.evaluation.asker import NO_PAGES, Asker, Reader, Remembered
from adjudge.engine.evaluation.evaluator import Evaluator, Recall
from adjudge.engine.evaluation.gate import Gate, Gates, Limit, RunGates
from adjudge.engine.evaluation.router import Router
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.store import JudgmentStore, PageStore, Place
from adjudge.engine.store.scorecards import KeptCards
from adjudge.engine.store.upkeep import tidied
from adjudge.engine.store.writer import FLUSH_SECONDS
from adjudge.engine.telemetry.metrics import Metrics
from adjudge.engine.telemetry.tracing import Spans, opened_tracer
from adjudge.fetchers.downloader import Downloader
from adjudge.fetchers.page import Fetcher
from adjudge.fetchers.snapshot import SnapshotError, SnapshotFetcher, read_index
from adjudge.judges import Judge, JudgeIdentity, LexicalJudge
from adjudge.judges.chat import secret_from_environment
from adjudge.judges.openai import OpenAIJudge
from adjudge.judges.panel import PanelJudge
from adjudge.judges.server import OpenAIConfig
from adjudge.judges.vllm import VLLMConfig, VLLMJudge
from adjudge.prompts import PromptBook, PromptError
from adjudge.scoring.text.aside import open_workers

READING = 4  # cases in place of one where pages are fetched: who waits for pages asks nothing
LEAST_WINDOW = 16  # cases also read and compute, and ask few questions at their beginning and end


@asynccontextmanager
async def open_evaluator(
    config: RunConfig,
    place: Place | None = None,
    *,
    flush_seconds: float = FLUSH_SECONDS,
    judge: Callable[[PromptBook], Judge] | None = None,
    judges: Mapping[str, Judge] = MappingProxyType({}),
    fetcher: Fetcher | None = None,
    limits: Mapping[str, Limit] = MappingProxyType({}),
    gates: Gates | None = None,
    cores: float | None = None,
) -> AsyncIterator[Evaluator]:
    """The evaluator of `config`, its stores open. On the way out everything is written and closed.

    Judgments and pages are kept at `place`, if given, instead of the configured store. `judge` makes every judge,
    `judges` are some of them by their names in the configuration, and `fetcher` reads pages, instead of the configured
    ones. `gates` are made before each of them, or each member of a panel; by default, they are a run's. Each judge is
    asked under its limit in `limits`, or without one under the configured limit. `cores` are this process's own.

    Raises ConfigError, StoreError, and what the judge raises for a server it cannot use.
    """
    config.published_prompts()  # what a checkout lacks is said before anything is asked
    book, place = make_book(config), place or Place.of(config.store)
    judgments = JudgmentStore(place, retry_unscored=config.retry_unscored, flush_seconds=flush_seconds)
    own_fetcher, source = make_fetcher(config.fetch, network=fetcher is None)
    fetcher = fetcher or own_fetcher
    pages = PageStore(
        place,
        source,
        allow=config.fetch.reachable,
        retry_unscored=config.retry_unscored,
        flush_seconds=flush_seconds,
    )
    metrics = Metrics()
    metrics.watch(judgments, pages)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(open_workers(cores))
        await stack.enter_async_context(tidied(place))
        await judgments.open()
        stack.push_async_callback(judgments.close)
        await pages.open()
        stack.push_async_callback(pages.close)
        if fetcher is not None:
            stack.push_async_callback(fetcher.close)
        made = (
            {}
            if judge is None
            else {name: judge(book) for name in config.resolved.bench.seats.keys() - judges}
        )
        traced = _traced(config, book, stack.enter_context(opened_tracer(config.tracing)))
        seating = _Seating(judgments, metrics, gates or RunGates(config), book, limits, traced)
        askers = {}
        for name, seat in config.resolved.bench.seats.items():
            askers[name] = seating.asker(seat, judges.get(name, made.get(name)))
            stack.push_async_callback(askers[name].judge.close)
        yield Evaluator(
            config.resolved.bench,
            askers,
            Reader(pages, fetcher, metrics, config.fetch.share, config.fetch.patience_s),
            config.resolved.protocols,
            window_of(config, sum(seat.slots for seat in config.resolved.bench.seats.values())),
            config.report_limit,
            await _recall(stack, place, judgments, config, book, askers),
        )


async def _recall(
    stack: AsyncExitStack,
    place: Place,
    judgments: JudgmentStore,
    config: RunConfig,
    book: PromptBook,
    askers: Mapping[str, Asker],
) -> Recall:
    """What finds the scorecards at `place` that the same protocols, judges, prompts and criteria have made."""
    cards, bench = KeptCards(place), config.resolved.bench
    await cards.open()
    stack.push_async_callback(cards.close)

    def judging(protocol: str) -> list[JudgeIdentity]:
        seats = (bench.of(protocol), *bench.for_media(protocol).values())
        return [askers[seat.name].judge.identity for seat in seats]

    ambient = (book.digests(), config.criteria_digests(), config.report_limit)
    return Recall(cards, judgments, config.resolved.protocols, judging, ambient)


def _traced(config: RunConfig, book: PromptBook, tracer: Any) -> Callable[[JudgeConfig], Spans | None]:
    """The tracer of a judge's calls; None without a tracer or a model, and for a panel, whose members are traced."""

    def spans(judge: JudgeConfig) -> Spans | None:
        if tracer is None or judge.backend in ("lexical", "panel"):
            return None
        return Spans(tracer, judge, book if config.tracing == "content" else None, secret_from_environment())

    return spans


def window_of(config: RunConfig, slots: int) -> int:
    """How many (case, protocol) pairs run at once for a judge that takes `slots` questions at once."""
    if config.serial:
        return 1
    return max(LEAST_WINDOW, slots) * (READING if config.resolved.reads_the_web else 1)


class _Seating:
    """Makes the judges of a run: watched, and each behind its gate."""

    def __init__(
        self,
        judgments: JudgmentStore,
        metrics: Metrics,
        gates: Gates,
        book: PromptBook,
        limits: Mapping[str, Limit],
        traced: Callable[[JudgeConfig], Spans | None],
    ) -> None:
        self._traced = traced
        self._judgments = judgments
        self._metrics = metrics
        self._gates = gates
        self._book = book
        self._limits = limits

    def asker(self, seat: Seat, given: Judge | None) -> Asker:
        """What asks the judge of `seat`, or the `given` one in its place. Raises ConfigError, JudgeError."""
        return self._asker(self._judge(seat, given), seat.config)

    def _asker(self, judge: Judge, config: JudgeConfig) -> Asker:
        return Asker(judge, self._judgments, self._book, self._metrics, self._traced(config))

    def _judge(self, seat: Seat, given: Judge | None) -> Judge:
        if given is not None or seat.config.backend != "panel":
            judge = given or make_judge(seat.config, self._book, seat.free_text)
            return self._gated(judge, seat.name, seat.name, seat.config)
        members = [
            Remembered(
                self._asker(
                    self._gated(make_judge(config, self._book, seat.free_text), seat.name, name, config),
                    config,
                )
            )
            for name, config in list(seat.limited())[1:]
        ]
        return Gate(PanelJudge(members, seat.config.combination), limit=self._limit(seat.name, seat.config))

    def _gated(self, judge: Judge, seat: str, name: str, config: JudgeConfig) -> Judge:
        """A judge that is asked itself, as one of a `seat`, under the limit of its own `name`."""
        self._metrics.watch_judge(judge)
        return self._gates.before(judge, seat, self._limit(name, config))

    def _limit(self, name: str, config: JudgeConfig) -> Limit | None:
        return self._limits.get(name) or (Limit(config) if config.is_rated else None)


def make_book(config: RunConfig) -> PromptBook:
    """The prompts of `config`. Raises ConfigError if an override does not fit."""
    try:
        return PromptBook(None if config.prompts is None else Path(config.prompts))
    except PromptError as error:
        raise ConfigError(f"prompts: {error}") from error


def prompts_of(config: RunConfig) -> dict[str, str]:
    """The digests of all prompts that a run of `config` may send, ours and published ones. Raises ConfigError."""
    return make_book(config).digests() | config.published_prompts()


def make_judge(config: JudgeConfig, book: PromptBook, free_text: bool = False) -> Judge:
    """The judge that `config` describes; with `free_text`, its probe asks for no schema. Raises ConfigError."""
    if config.backend == "lexical":
        return LexicalJudge()
    if config.backend == "panel":
        members = [make_judge(member, book, free_text) for member in config.panel()]
        return PanelJudge(members, config.combination)
    if config.backend == "vllm":
        return VLLMJudge(_vllm(config), book, secret_from_environment())
    if config.scoring == "expected":
        raise ConfigError(
            "judge: scoring: expected needs backend vllm; a server has profile: fast, which takes expected values "
            "where an answer is one label"
        )
    urls = config.urls or [config.url]
    if not all(urls) or not config.model:
        raise ConfigError("judge: backend openai needs url: (or urls:) and model:")
    if len(urls) == 1:
        only = _openai(config, urls[0], config.max_in_flight, free_text)
        return OpenAIJudge(only, book, secret_from_environment())
    share = -(-config.max_in_flight // len(urls))
    servers = {url: _openai(config, url, share, free_text) for url in urls}
    return Router(
        {url: OpenAIJudge(server, book, secret_from_environment()) for url, server in servers.items()}
    )


def _vllm(config: JudgeConfig) -> VLLMConfig:
    if not config.model:
        raise ConfigError("judge: backend vllm needs model:, a name or a folder")
    if config.thinking or config.media:
        raise ConfigError(
            "judge: backend vllm takes neither thinking nor media; run a vLLM server and use backend openai"
        )
    return msgspec.convert(config, VLLMConfig, from_attributes=True)


def _openai(config: JudgeConfig, url: str, max_in_flight: int, free_text: bool) -> OpenAIConfig:
    return OpenAIConfig(
        url=url,
        model=config.model,
        api_key_env=config.api_key_env,
        revision=config.revision,
        max_in_flight=max_in_flight,
        temperature=config.temperature,
        max_context=config.max_context,
        thinking=config.thinking,
        thinking_tokens=config.thinking_tokens,
        retries=config.retries,
        timeout_s=config.timeout_s,
        media=tuple(config.media),
        headers=config.headers,
        request=config.request,
        omit=tuple(config.omit),
        stream=config.stream,
        strict_identity=config.strict_identity,
        profile=config.profile,
        free_text=free_text,
    )


def make_fetcher(config: FetchConfig, network: bool = True) -> tuple[Fetcher | None, str]:
    """The fetcher, or None, and the name that its pages are stored under. Without `network`, never a live fetcher."""
    reads_live = config.mode == "live" or (config.mode == "snapshot" and config.snapshot is None)
    chosen = config.downloader() if reads_live else None
    how = f" {chosen[1]}" if chosen else f" rendered {config.render}" if config.render != "never" else ""
    live = f"live {config.extractor}{how}"
    if config.mode == "off" or (config.mode == "snapshot" and config.snapshot is None):
        return None, live if config.mode == "snapshot" else NO_PAGES
    if config.mode == "live":
        return (_live(config, chosen[0] if chosen else None) if network else None), live
    folder = Path(str(config.snapshot))
    try:
        index = (folder / "index.jsonl").read_bytes()
    except OSError as error:
        raise ConfigError(f"fetch.snapshot: {folder}/index.jsonl cannot be read: {error.strerror}") from error
    digest = hashlib.blake2b(index, digest_size=16).hexdigest()
    try:
        frozen = SnapshotFetcher(folder, config.limits, config.timeouts, extractor=config.extractor)
    except SnapshotError as error:
        raise ConfigError(f"fetch.snapshot: {error}") from error
    return frozen, f"snapshot {digest} {config.extractor}"


def rejected_pages(config: FetchConfig) -> list[Rejected]:
    """The lines of the snapshot's index that are left out. Raises ConfigError if none can be used."""
    if config.mode != "snapshot" or config.snapshot is None:
        return []
    try:
        _, rejected = read_index(Path(config.snapshot))
    except SnapshotError as error:
        raise ConfigError(f"fetch.snapshot: {error}") from error
    return [Rejected(line.file, line.line, line.why) for line in rejected]


def _live(config: FetchConfig, downloader: Downloader | None) -> Fetcher:
    # Not above: importing aiohttp would be a tenth of a run of one report that reads no live page.
    from adjudge.fetchers.http import HttpFetcher
    from adjudge.fetchers.renderer import NoBrowser, chromium

    try:
        if config.render != "never":
            chromium()
        return HttpFetcher(
            config.limits,
            config.timeouts,
            extractor=config.extractor,
            allow=config.allow,
            contact=config.contact,
            robots=config.robots,
            downloader=downloader,
            render=config.render,
            patience_s=config.patience_s,
        )
    except NoBrowser as error:
        raise ConfigError(f"fetch: render: {error}") from error
    except ValueError as error:
        raise ConfigError(f"fetch: {error}") from error
