"""One vLLM engine. Everything this project knows of vLLM's own interfaces and failures is here."""

import asyncio
import contextlib
import importlib
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import msgspec

from adjudge.judges.chat import Message
from adjudge.judges.errors import JudgeError
from adjudge.judges.judgment import JudgeReason, Usage

_NOT_INSTALLED = (
    "judge: vllm 0.29 or newer is not installed: pip install 'adjudge[vllm]', "
    "or ask a server: openai:http://HOST:PORT/v1#MODEL"
)
_SHUTDOWN_SECONDS = 30.0


class EngineFailure(Exception):
    """One question's failure inside vLLM; the message is what vLLM said."""

    def __init__(self, reason: JudgeReason, said: str = "") -> None:
        super().__init__(said)
        self.reason = reason


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How tokens are chosen: constrained to a JSON `schema`, or `labels`: one token, and what those were given."""

    seed: int
    temperature: float = 0.0
    max_tokens: int = 1
    schema: str | None = None
    labels: Sequence[int] | None = None


class Generated(msgspec.Struct, frozen=True):
    """A reply: text, why it ended, tokens spent, and the log probability of each label."""

    text: str
    finish_reason: str
    usage: Usage
    logprobs: Mapping[int, float]


class VLLMEngine:
    """A running engine. Belongs to the event loop that first generates.

    Raises JudgeError when it is dead, EngineFailure for one request. `window` is the most tokens that prompt and answer
    may take together, `cache_tokens` what the prefix cache holds, in blocks of `block` tokens.
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._tokenizer = engine.get_tokenizer()
        added = getattr(self._tokenizer, "added_tokens_decoder", {}).values()
        control = {*self._tokenizer.all_special_tokens, *(str(token) for token in added if token.special)}
        longest_first = sorted(map(re.escape, filter(None, control)), key=len, reverse=True)
        self._control = re.compile("|".join(longest_first) or "(?!)")
        self._requests = count()
        self._pieces: dict[str, tuple[int, ...]] = {}
        cache = engine.vllm_config.cache_config
        self.window: int = engine.model_config.max_model_len
        self.block: int = cache.block_size
        self.cache_tokens: int = (cache.num_gpu_blocks or 0) * self.block

    @classmethod
    def load(cls, model: str, options: Mapping[str, object], fp8_cache: bool = False) -> "VLLMEngine":
        """Load `model`; `options` are arguments of AsyncEngineArgs. Takes seconds to minutes. Raises JudgeError.

        With `fp8_cache`, its cache is of fp8 if the GPU computes in that, unless `options` say otherwise.
        """
        os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
        os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")  # we have threads
        try:
            from vllm.engine.arg_utils import AsyncEngineArgs
            from vllm.exceptions import GracefulHTTPError  # noqa: F401  # an older vLLM lacks it
            from vllm.platforms import current_platform
            from vllm.usage.usage_lib import UsageContext
            from vllm.v1.engine.async_llm import AsyncLLM
        except ImportError as error:
            raise JudgeError(f"{_NOT_INSTALLED} ({error})") from error
        structured = {"backend": "guidance", "disable_any_whitespace": True}
        ours = {
            # vLLM 0.32's CPU worker dies of a seeded request whose prompt is computed in pieces.
            "enable_chunked_prefill": not current_platform.is_cpu(),
            "enable_prefix_caching": True,
            "scheduling_policy": "priority",
            "structured_outputs_config": structured,
            "disable_log_stats": True,
            **({"kv_cache_dtype": "fp8"} if fp8_cache and current_platform.supports_fp8() else {}),
        }
        try:
            arguments = AsyncEngineArgs(model=model, **{**ours, **options})
            with _unimported_main():
                # As many tokens and sequences per step as for offline work; with no use named, vLLM takes far fewer.
                return cls(AsyncLLM.from_engine_args(arguments, usage_context=UsageContext.LLM_CLASS))
        except (OSError, RuntimeError, TypeError, ValueError) as error:
            said = " ".join(str(error).split())[:400]
            raise JudgeError(f"judge: vLLM cannot load {model}: {said}") from error

    def tokens(self, messages: Sequence[Message]) -> list[int]:
        """The prompt of `messages` by the model's chat template; spelled-out control tokens stay text."""
        template_error = importlib.import_module("jinja2").TemplateError
        said = [{**message, "content": self._control.sub(_split, message["content"])} for message in messages]
        try:
            tokens: list[int] = self._tokenizer.apply_chat_template(
                said, tokenize=True, add_generation_prompt=True, return_dict=False, enable_thinking=False
            )
        except (template_error, ValueError) as error:
            raise JudgeError(f"judge: the model's chat template cannot be used: {error}") from error
        return tokens

    def encoded(self, text: str) -> tuple[int, ...]:
        """The tokens of a piece of an answer, one of few."""
        found = self._pieces.get(text)
        if found is None:
            found = self._pieces[text] = tuple(self._tokenizer.encode(text, add_special_tokens=False))
        return found

    async def generate(
        self, prompt: Sequence[int], sampling: Sampling, priority: int, on_first: Callable[[], None]
    ) -> Generated:
        """Continue `prompt`; `on_first` is called when its first token is there. Cancelled, it is aborted."""
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        constraint = None
        if sampling.schema is not None:
            constraint = StructuredOutputsParams(json=sampling.schema, disable_any_whitespace=True)
        parameters = SamplingParams(
            temperature=sampling.temperature,
            seed=sampling.seed,
            max_tokens=sampling.max_tokens,
            structured_outputs=constraint,
            logprob_token_ids=None if sampling.labels is None else list(sampling.labels),
            output_kind=RequestOutputKind.DELTA,
            stream_interval=sampling.max_tokens,  # two outputs: the first token, and the rest
        )
        text: list[str] = []
        tokens = cached = 0
        logprobs: dict[int, float] = {}
        finish_reason = ""
        with self._failures():
            async for output in self._outputs(prompt, parameters, priority):
                on_first()
                (piece,) = output.outputs
                text.append(piece.text)
                tokens += len(piece.token_ids)
                cached = max(cached, output.num_cached_tokens or 0)
                finish_reason = piece.finish_reason or ""
                if piece.logprobs and sampling.labels:
                    first = piece.logprobs[0]
                    logprobs = {token: float(first[token].logprob) for token in sampling.labels}
        if finish_reason == "abort":
            raise EngineFailure("judge_unavailable", "vLLM aborted the request")
        return Generated("".join(text), finish_reason, Usage(len(prompt), cached, tokens), logprobs)

    def _outputs(self, prompt: Sequence[int], parameters: object, priority: int) -> AsyncIterator[Any]:
        tokens = {"type": "token", "prompt_token_ids": list(prompt)}
        found: AsyncIterator[Any] = self._engine.generate(
            tokens, parameters, f"adjudge-{next(self._requests)}", priority=priority
        )
        return found

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        """Give vLLM's exceptions their types."""
        from vllm.exceptions import GracefulHTTPError, VLLMClientError
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

        try:
            yield
        except EngineDeadError as error:
            said = "was closed" if self._engine is None else "died; its log says why"
            raise JudgeError(f"judge: the vLLM engine {said}") from error
        except GracefulHTTPError as error:
            raise EngineFailure("judge_unavailable", str(error)) from error
        except VLLMClientError as error:
            raise EngineFailure("judge_unsupported", str(error)) from error
        except EngineGenerateError as error:
            if self._engine.errored:
                raise JudgeError("judge: the vLLM engine died; its log says why") from error
            raise EngineFailure("judge_unavailable", str(error.__cause__ or error)) from error

    async def sleep(self) -> None:
        """Free the accelerator's memory. Raises JudgeError if it could, but was not started for it."""
        from vllm.platforms import current_platform

        if current_platform.is_sleep_mode_available() and not self._engine.model_config.enable_sleep_mode:
            raise JudgeError("judge: sleeping needs engine: {enable_sleep_mode: true}")
        await self._engine.sleep(level=1)

    async def wake(self) -> None:
        """Take the memory back."""
        await self._engine.wake_up()

    async def close(self) -> None:
        """End the engine's processes; what is in flight raises JudgeError."""
        from vllm.v1.engine.exceptions import EngineDeadError

        engine = self._engine
        self._engine = None  # vLLM complains if it is collected at the interpreter's end
        if engine.output_handler is not None:
            engine.output_handler.cancel()  # it would log the engine's end as its death, or leave who waits to wait
        await asyncio.to_thread(engine.shutdown, _SHUTDOWN_SECONDS)
        engine.output_processor.propagate_error(EngineDeadError())


@contextlib.contextmanager
def _unimported_main() -> Iterator[None]:
    """Keep the processes that vLLM spawns from importing this process's main module.

    They need nothing of it: it may be a script without a guard, and numba, which ours imports, breaks the CPU worker.
    """
    main = vars(sys.modules["__main__"])
    hidden: dict[str, Any] = {name: main[name] for name in ("__file__", "__spec__") if name in main}
    main["__spec__"] = None
    # None in its place would break `inspect`, by which torch registers what it imports.
    main.pop("__file__", None)
    try:
        yield
    finally:
        main.update(hidden)


def _split(match: re.Match[str]) -> str:
    return f"{match[0][0]} {match[0][1:]}"
