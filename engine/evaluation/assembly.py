"""Opens what a run needs (stores, judge, fetcher) and closes it again, whatever happens in between."""

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from adjudge.engine.config.errors import ConfigError
from adjudge.engine.config.judge import JudgeConfig
from adjudge.engine.config.run import FetchConfig, RunConfig
from adjudge.engine.evaluation.asker import Asker, Remembered
from adjudge.engine.evaluation.evaluator import Evaluator
from adjudge.engine.evaluation.limit import Limit, Limited
from adjudge.engine.evaluation.reader import Reader
from adjudge.engine.evaluation.router import Router
from adjudge.engine.evaluation.trust import RunTrust, Trust
from adjudge.engine.formats import Rejected
from adjudge.engine.store import JudgmentStore, PageStore, Place
from adjudge.engine.store.parts import FLUSH_SECONDS
from adjudge.engine.telemetry.metrics import Metrics
from adjudge.fetchers.http import HttpFetcher
from adjudge.fetchers.page import Fetcher
from adjudge.fetchers.snapshot import SnapshotError, SnapshotFetcher, read_index
from adjudge.judges import Judge, LexicalJudge
from adjudge.judges.openai import OpenAIConfig, OpenAIJudge
from adjudge.judges.panel import PanelJudge
from adjudge.judges.render import secret_from_environment
from adjudge.judges.vllm import VLLMConfig, VLLMJudge
from adjudge.prompts import PromptBook, PromptError
from adjudge.scoring.text.aside import open_workers

__all__ = [
    "LEAST_WINDOW",
    "make_book",
    "make_fetcher",
    "make_judge",
    "open_evaluator",
    "rejected_pages",
    "window_of",
]

LEAST_WINDOW = 16  # cases also read and compute, and ask few questions at their beginning and end


@asynccontextmanager
async def open_evaluator(
    config: RunConfig,
    place: Place | None = None,
    *,
    flush_seconds: float = FLUSH_SECONDS,
    judge: Callable[[PromptBook], Judge] | None = None,
    fetcher: Fetcher | None = None,
    limit: Limit | None = None,
    trust: Trust | None = None,
) -> AsyncIterator[Evaluator]:
    """The evaluator of `config`, its stores open. On the way out everything is written and closed.

    Judgments and pages are kept at `place`, if given, instead of the configured store. `judge` makes the judge and
    `fetcher` reads pages instead of the configured ones. Questions are asked under `limit`, or without it under the
    configured limit. `trust` wraps the configured judge, or each member of a panel;
    without one, that of a run does.

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
        await stack.enter_async_context(open_workers())
        await judgments.open()
        stack.push_async_callback(judgments.close)
        await pages.open()
        stack.push_async_callback(pages.close)
        if fetcher is not None:
            stack.push_async_callback(fetcher.close)
        trust = trust or RunTrust(config)
        if judge is None:
            made = _configured(config, judgments, metrics, trust, book)
        else:
            made = judge(book)
            metrics.watch_judge(made)
        if limit is None and config.judge_config().is_rated:
            limit = Limit(config.judge_config())
        if limit is not None:
            made = Limited(made, limit)
        stack.push_async_callback(made.close)
        yield Evaluator(
            Asker(made, judgments, book, metrics),
            Reader(pages, fetcher, metrics),
            config.scoring_protocols(),
            window_of(config, config.judge_config().max_in_flight),
            config.report_limit,
        )


def window_of(config: RunConfig, slots: int) -> int:
    """How many (case, protocol) pairs run at once for a judge that takes `slots` questions at once."""
    return 1 if config.serial else max(LEAST_WINDOW, slots)


def _configured(
    config: RunConfig, judgments: JudgmentStore, metrics: Metrics, trust: Trust, book: PromptBook
) -> Judge:
    def trusted(judge: Judge) -> Judge:
        metrics.watch_judge(judge)
        return trust(judge)

    def kept(member: Judge) -> Judge:
        return Remembered(Asker(trusted(member), judgments, book, metrics))

    made = make_judge(config.judge_config(), book, kept)
    return made if isinstance(made, PanelJudge) else trusted(made)


def make_book(config: RunConfig) -> PromptBook:
    """The prompts of `config`. Raises ConfigError if an override does not fit."""
    try:
        return PromptBook(None if config.prompts is None else Path(config.prompts))
    except PromptError as error:
        raise ConfigError(f"prompts: {error}") from error


def make_judge(
    config: JudgeConfig, book: PromptBook, kept: Callable[[Judge], Judge] = lambda judge: judge
) -> Judge:
    """The judge that `config` describes; `kept` wraps the members of a panel. Raises ConfigError."""
    if config.backend == "lexical":
        return LexicalJudge()
    if config.backend == "panel":
        return PanelJudge([kept(make_judge(member, book)) for member in config.panel()], config.combination)
    if config.backend == "vllm":
        return VLLMJudge(_vllm(config), book, secret_from_environment())
    if config.scoring == "expected":
        raise ConfigError("judge: scoring: expected needs backend vllm, which sees label probabilities")
    urls = config.urls or [config.url]
    if not all(urls) or not config.model:
        raise ConfigError("judge: backend openai needs url: (or urls:) and model:")
    if len(urls) == 1:
        return OpenAIJudge(_openai(config, urls[0], config.max_in_flight), book, secret_from_environment())
    share = -(-config.max_in_flight // len(urls))
    return Router(
        {url: OpenAIJudge(_openai(config, url, share), book, secret_from_environment()) for url in urls}
    )


def _vllm(config: JudgeConfig) -> VLLMConfig:
    if not config.model:
        raise ConfigError("judge: backend vllm needs model:, a name or a folder")
    if config.thinking or config.media:
        raise ConfigError(
            "judge: backend vllm takes neither thinking nor media; run a vLLM server and use backend openai"
        )
    return VLLMConfig(
        model=config.model,
        revision=config.revision,
        tensor_parallel=config.tensor_parallel,
        max_context=config.max_context,
        max_in_flight=config.max_in_flight,
        timeout_s=config.timeout_s,
        temperature=config.temperature,
        scoring=config.scoring,
        engine=config.engine,
    )


def _openai(config: JudgeConfig, url: str, max_in_flight: int) -> OpenAIConfig:
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
        request=config.request,
        omit=tuple(config.omit),
    )


def make_fetcher(config: FetchConfig, network: bool = True) -> tuple[Fetcher | None, str]:
    """The fetcher, or None, and the name that its pages are stored under. Without `network`, never a live fetcher."""
    live = f"live {config.extractor}"
    if config.mode == "off" or (config.mode == "snapshot" and config.snapshot is None):
        return None, live if config.mode == "snapshot" else "off"
    if config.mode == "live":
        return (_live(config) if network else None), live
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


def _live(config: FetchConfig) -> HttpFetcher:
    try:
        return HttpFetcher(
            config.limits,
            config.timeouts,
            extractor=config.extractor,
            allow=config.allow,
            contact=config.contact,
            robots=config.robots,
        )
    except ValueError as error:
        raise ConfigError(f"fetch: {error}") from error
