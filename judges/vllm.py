"""The judge inside this process: one vLLM engine that we own, answering by constrained decoding.

A failure of one question becomes a reply with a reason; one that every question would meet is a `JudgeError`:

=====================================  ===============================================================
prompt and answer beyond the window    context_overflow, by the real tokenizer, before anything is sent
vLLM's queue is full, or it aborted    judge_unavailable
sent, and no answer in time            judge_timeout, and aborted
refused by vLLM's validation           judge_unsupported, its text what vLLM said
cut off at its token limit             asked again with more tokens; answer_truncated if cut off again
cut off in a loop                      answer_truncated, not asked again: it would repeat itself again
a reply that does not fit the answer   asked once more with the field and its fault named; then judge_unparseable
vLLM cannot start, or its engine died  JudgeError
=====================================  ===============================================================

The engine is loaded when the first question comes: a run answered from the store does not load it. A model is
identified by the hash of its folder's files, wherever the folder is, or by its name and revision.
"""

import asyncio
import contextlib
import hashlib
import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from adjudge.judges.chat import (
    Message,
    asked_again,
    continued,
    corrected,
    messages,
    read_reply,
    sizes,
    without_mark,
)
from adjudge.judges.errors import JudgeError, Trouble
from adjudge.judges.expected import Labels, distribution, expected_answer, labels_of
from adjudge.judges.judgment import (
    MOST_TOKENS,
    PROBE_SECONDS,
    Asked,
    JudgeIdentity,
    Probe,
    Profile,
    Reply,
    Scoring,
    Usage,
    Verdict,
)
from adjudge.judges.loops import LOOP
from adjudge.judges.profile import TokensSeen, asked_schema, sampling_of
from adjudge.judges.published import PublishedQuestion
from adjudge.judges.question import Answer, Question
from adjudge.judges.queue import ContextQueue, Turn
from adjudge.judges.schema import Schema, max_tokens, most_tokens
from adjudge.judges.vllm_engine import EngineFailure, Generated, Sampling, VLLMEngine
from adjudge.prompts import PromptBook

_log = logging.getLogger(__name__)

_WEIGHTS = frozenset({".bin", ".gguf", ".pt", ".safetensors"})
_SETTINGS = frozenset({".jinja", ".json", ".model", ".py", ".tiktoken", ".txt"})


def identity_of(model: str, revision: str) -> tuple[str, str]:
    """A model's name for people, and its identity for keys.

    Of a folder all files that make the model are hashed: weights, configuration, tokenizer, chat template. With a
    `revision` the weights are not hashed. Raises JudgeError for a path where there is no folder.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        suffixes = _SETTINGS if revision else _SETTINGS | _WEIGHTS
        stated = f"revision={revision} " if revision else ""
        return folder.resolve().name, f"{stated}files={_digest(folder, suffixes)}"
    if model.startswith(("/", "./", "../", "~")):
        raise JudgeError(f"judge: {model}: no such folder")
    if not revision:
        _log.warning(
            "judge: %s without revision: may change under the same name; set judge: revision:", model
        )
    return model, f"revision={revision or 'unstated'}"


def _digest(folder: Path, suffixes: frozenset[str]) -> str:
    files = sorted(path for path in folder.iterdir() if path.suffix in suffixes and path.is_file())
    if not files:
        raise JudgeError(f"judge: {folder}: contains no model")
    digest = hashlib.blake2b(digest_size=16)
    with ThreadPoolExecutor() as threads:
        for path, found in zip(files, threads.map(_file_digest, files), strict=True):
            digest.update(path.name.encode() + b"\0" + found)
    return digest.hexdigest()


def _file_digest(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "blake2b").digest()
    except OSError as error:
        raise JudgeError(f"judge: {path}: cannot be read: {error.strerror}") from error


A = TypeVar("A", bound=Answer)
T = TypeVar("T")

_BYTES_PER_TOKEN = 4.0  # until the tokenizer has been seen at work
_ANSWER_SHARE = 0.3  # of the tokens that an answer may take at most
_TROUBLES: dict[str, tuple[Trouble, str]] = {
    "deadline": ("unreachable", "its engine does not answer; see its log"),
    "judge_timeout": ("unreachable", "its engine does not answer; see its log"),
    "judge_unavailable": ("unreachable", "its engine is full or stopping; try again later"),
    "answer_truncated": ("cut_off", "use a model whose chat template can switch thinking off"),
    "context_overflow": ("window_too_small", "raise judge: max_context, or use another model"),
    "judge_unparseable": ("ignores_schema", "use an engine with structured outputs"),
}
_KEYED = ("dtype", "hf_overrides", "kv_cache_dtype", "quantization", "tokenizer")


class VLLMConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One model in one engine.

    - `model` is a folder, or a name that vLLM can find. `revision` pins a name, and avoids hashing a folder's weights.
    - `max_context` is the most tokens that prompt and answer may need, if less than the model's own limit.
    - `max_in_flight` questions are in the engine at once; none waits for its turn longer than `hold_s`.
    - `timeout_s` bounds a request from sending to the last token.
    - `scoring` expected derives answers of one enumerated value from their probabilities (adjudge.judges.expected).
    - `profile` says whether tokens are saved (adjudge.judges.profile).
    - `engine` are further arguments of vLLM's own AsyncEngineArgs, by their names there.
    """

    model: str
    revision: str = ""
    tensor_parallel: int = 1
    max_context: int | None = None
    max_in_flight: int = 256
    hold_s: float = 30.0
    timeout_s: float = 600.0
    temperature: float = 0.0
    scoring: Scoring = "sampled"
    profile: Profile = "exact"
    engine: Mapping[str, Any] = {}


class _Form(msgspec.Struct, frozen=True):
    """Shared by all questions with one answer schema; `labels` only if expected scores are wanted and possible.

    `budgets` are the tokens of an answer, and of the one asked for if it was cut off. Free text has no schema
    (`encoded` None), and may have a `temperature` of its own.
    """

    schema: Schema
    encoded: str | None
    budgets: tuple[int, int]
    labels: Labels | None
    temperature: float | None = None


class VLLMJudge:
    """Asks its own engine, questions about one context together (adjudge.judges.queue).

    Raises JudgeError for a model that cannot be loaded and for an engine that died. One event loop.
    """

    def __init__(self, config: VLLMConfig, book: PromptBook, secret: bytes) -> None:
        keyed = "".join(f" {name}={config.engine[name]}" for name in _KEYED if name in config.engine)
        name, weights = identity_of(config.model, config.revision)
        self.identity = JudgeIdentity(
            name=name,
            fingerprint=f"{name} {weights}{keyed}",
            sampling=f"temperature={config.temperature:g} scoring={config.scoring}{sampling_of(config.profile)}",
            analysis=config.scoring == "sampled",
            profile=config.profile,
        )
        self._config = config
        self._book = book
        self._secret = secret
        self._forms: dict[tuple[type[Answer], int, tuple[float, ...]], _Form] = {}
        self._seen = TokensSeen() if config.profile == "fast" else None
        self._queue = ContextQueue(config.max_in_flight, hold_s=config.hold_s)
        self._loading: asyncio.Task[VLLMEngine] | None = None
        self._is_closed = False
        self._threads = ThreadPoolExecutor(2, "adjudge-tokens")
        self._bytes, self._prompt_tokens = _BYTES_PER_TOKEN, 1.0

    async def start(self) -> VLLMEngine:
        """The engine, loaded now if it was not. Raises JudgeError."""
        if self._is_closed:
            raise JudgeError(f"vLLM with {self._config.model}: the judge was closed")
        if self._loading is None:
            config = self._config
            options = {
                "revision": config.revision or None,
                "tensor_parallel_size": config.tensor_parallel,
                "max_model_len": config.max_context,
                **config.engine,
            }
            load = partial(VLLMEngine.load, config.model, options, fp8_cache=config.profile == "fast")
            self._loading = asyncio.ensure_future(asyncio.to_thread(load))
        engine = await asyncio.shield(self._loading)
        self._queue.capacity = engine.cache_tokens
        return engine

    async def sleep(self) -> None:
        """Let what is in flight finish, hold the rest, and free the accelerator's memory (weights to the CPU).

        Raises JudgeError if the engine was not started with `enable_sleep_mode`.
        """
        engine = await self.start()
        await self._queue.pause()
        await engine.sleep()

    async def wake(self) -> None:
        """Take the memory back, and go on with what was held."""
        await (await self.start()).wake()
        self._queue.resume()

    async def close(self) -> None:
        """Abort what is in flight, and end the engine's processes. Later questions raise JudgeError."""
        self._is_closed = True
        loading, self._loading = self._loading, None
        if loading is not None:
            with contextlib.suppress(JudgeError):
                await (await loading).close()
        self._threads.shutdown(wait=False)

    async def probe(self, timeout_s: float = PROBE_SECONDS) -> tuple[Verdict, ...]:
        """The verdict on the engine, asked as in the run. Loading it first has no timeout."""
        try:
            window = (await self.start()).window
            try:
                async with asyncio.timeout(timeout_s):
                    reply = await self.answer(Probe.make(), Asked(key=bytes(16)))
            except TimeoutError:
                reply = Reply(reason="deadline")
        except JudgeError as error:
            return (Verdict(where=self._config.model, trouble=error.trouble, line=str(error)),)
        if reply.answer is not None:
            return (Verdict(where=self._config.model, window=window, seconds=reply.seconds),)
        trouble, fix = _TROUBLES.get(str(reply.reason), ("unusable", "correct judge: model and engine"))
        line = f"judge: vLLM with {self._config.model}: {reply.reason} on the smallest question; {fix}"
        return (Verdict(where=self._config.model, trouble=trouble, line=line, window=window),)

    async def answer(self, question: Question[A], asked: Asked) -> Reply[A]:
        """Answer one question. Raises JudgeError only."""
        if question.context.media:
            return Reply(reason="media_unsupported")
        form = self._form(question)
        engine = await self.start()
        shared, own = self._estimate(question, form, engine.block)
        prompt: list[int] = []

        async def prepare() -> None:
            prompt.extend(await self._tokenised(engine, question, form))

        context = question.context.digest
        async with self._queue.turn(context, asked.priority, shared, own, prepare) as turn:
            return await self._answer(_Ask(engine, question, form, asked, turn, prompt, self._secret))

    async def _tokenised(
        self, engine: VLLMEngine, question: Question[A], form: _Form, more: Sequence[Message] = ()
    ) -> list[int]:
        """The tokens of the messages that ask `question`, and of those that follow."""
        said = [*messages(question, self._book, form.schema, self._secret), *more]
        loop = asyncio.get_running_loop()
        prompt = await loop.run_in_executor(self._threads, engine.tokens, said)
        self._bytes += sum(len(message["content"].encode(errors="replace")) for message in said)
        self._prompt_tokens += len(prompt)
        return prompt

    async def _answer(self, ask: "_Ask[A]") -> Reply[A]:
        if len(ask.prompt) + ask.form.budgets[0] > ask.engine.window:
            return Reply(reason="context_overflow", usage=Usage(len(ask.prompt)))
        try:
            async with asyncio.timeout(self._config.timeout_s):
                if ask.form.labels is not None:
                    return await ask.expected(ask.form.labels)
                reply = await ask.sampled(self._config.temperature)
                reply = await self._corrected(ask, reply) if reply.fault else reply
                if self._seen is not None:
                    self._seen.take(ask.question, reply)
                return reply
        except EngineFailure as failure:
            return Reply(reason=failure.reason, text=str(failure), usage=ask.usage)
        except TimeoutError:
            return Reply(reason="judge_timeout", usage=ask.usage)

    async def _corrected(self, ask: "_Ask[A]", first: Reply[A]) -> Reply[A]:
        """The reply to a question whose `first` reply cannot be read, once that is named."""
        more = asked_again(first, ask.question.language)
        prompt = await self._tokenised(ask.engine, ask.question, ask.form, more)
        budget = ask.form.budgets[0]
        if len(prompt) + budget > ask.engine.window:
            return first
        again = await ask.drawn(self._config.temperature, budget, prompt)
        return msgspec.structs.replace(corrected(first, again), usage=ask.usage)

    def _estimate(self, question: Question[A], form: _Form, block: int) -> tuple[int, int]:
        """Roughly how many tokens of the cache the context takes, and how many the rest of prompt and answer."""
        context, rest = sizes(question, self._book)
        ratio = self._prompt_tokens / self._bytes
        answer = _ANSWER_SHARE * form.budgets[0]
        if self._seen is not None:
            answer = self._seen.mean(question, answer)
        return round(context * ratio), round(rest * ratio + answer) + block

    def _form(self, question: Question[A]) -> _Form:
        if isinstance(question, PublishedQuestion):
            return _free(question)
        key = (question.answer, question.count, question.options)
        form = self._forms.get(key)
        if form is None:
            config = self._config
            schema = asked_schema(question, self.identity.analysis, config.profile)
            expects = config.scoring == "expected" or config.profile == "fast"
            labels = labels_of(schema) if expects else None
            budgets = (max_tokens(schema), most_tokens(schema))
            form = _Form(schema, msgspec.json.encode(schema).decode(), budgets, labels)
            self._forms[key] = form
        if self._seen is None or form.labels is not None:
            return form
        budget = self._seen.budget(question, form.budgets[0])
        return msgspec.structs.replace(form, budgets=(budget, form.budgets[1]))


def _free(question: PublishedQuestion[T]) -> _Form:
    """The form of a reply in free text, with the sampling that the benchmark asks for."""
    wanted = question.wording.parameters
    limit = wanted.get("max_tokens")
    budgets = (1, MOST_TOKENS) if limit is None else (int(limit), int(limit))
    return _Form({}, None, budgets, None, wanted.get("temperature"))


class _Ask(Generic[A]):
    """One question on its way through the engine, in one or more requests; `usage` is the sum over them."""

    def __init__(
        self,
        engine: VLLMEngine,
        question: Question[A],
        form: _Form,
        asked: Asked,
        turn: Turn,
        prompt: list[int],
        secret: bytes,
    ) -> None:
        self.engine = engine
        self.question = question
        self.form = form
        self.prompt = prompt
        self.usage = Usage()
        self._asked = asked
        self._turn = turn
        self._secret = secret

    async def sampled(self, temperature: float) -> Reply[A]:
        """One answer; if it was cut off, the answer to the same request with more tokens, as the window has them."""
        budget, more = self.form.budgets
        if self.form.encoded is None:
            return await self.drawn(
                temperature, min(more, self.engine.window - len(self.prompt)), self.prompt
            )
        reply = await self.drawn(temperature, budget, self.prompt)
        more = min(more, self.engine.window - len(self.prompt))
        if reply.reason != "answer_truncated" or reply.finish_reason == LOOP or more <= budget:
            return reply
        again = await self.drawn(temperature, more, self.prompt)
        return msgspec.structs.replace(continued(reply, again, (budget, more)), usage=self.usage)

    async def drawn(self, temperature: float, budget: int, prompt: list[int]) -> Reply[A]:
        """The reply to `prompt` within `budget` tokens."""
        how = Sampling(
            seed=self._asked.seed,
            temperature=temperature if self.form.temperature is None else self.form.temperature,
            max_tokens=budget,
            schema=self.form.encoded,
        )
        started = time.perf_counter()
        found = await self._send(prompt, how)
        seconds = time.perf_counter() - started
        text = without_mark(self.question, found.text, self._secret)
        reply = read_reply(self.question, text, found.finish_reason, self.usage, seconds)
        return msgspec.structs.replace(reply, constrained=self.form.encoded is not None)

    async def expected(self, labels: Labels) -> Reply[A]:
        """The expected answer, from one token wherever the labels part."""
        started = time.perf_counter()
        prompt = [*self.prompt, *self.engine.encoded(labels.before)]
        ending = self.engine.encoded(labels.after)[:1]

        async def next_token(given: tuple[int, ...], wanted: tuple[int, ...]) -> Mapping[int, float]:
            how = Sampling(seed=self._asked.seed, labels=wanted)
            return (await self._send([*prompt, *given], how)).logprobs

        tokens = [self.engine.encoded(value) + ending for value in labels.values]
        answer, text = expected_answer(self.question, labels, await distribution(tokens, next_token))
        seconds = time.perf_counter() - started
        return Reply(answer=answer, text=text, finish_reason="stop", usage=self.usage, seconds=seconds)

    async def _send(self, prompt: list[int], how: Sampling) -> Generated:
        found = await self.engine.generate(prompt, how, self._asked.priority, self._turn.warm)
        self.usage += found.usage
        return found
