"""Judge calls as OpenTelemetry spans under the semantic conventions for generative AI, sent by OTLP over HTTP.

As for any program, the environment (OTEL_EXPORTER_OTLP_ENDPOINT and so on) sets the endpoint and its headers. The
conventions are still in development; the names are those of version 1.37.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, TypeVar
from urllib.parse import urlsplit

from adjudge.engine.config.judge import JudgeConfig
from adjudge.engine.errors import UsageError
from adjudge.judges import Answer, Judgment, Question
from adjudge.judges.chat import messages
from adjudge.judges.published import PublishedQuestion
from adjudge.judges.schema import schema_of
from adjudge.prompts import PromptBook

A = TypeVar("A", bound=Answer)


@contextmanager
def opened_tracer(tracing: str) -> Iterator[Any]:
    """The tracer of a run, or None without tracing. On the way out everything is sent, or given up.

    Raises UsageError where the optional packages are missing.
    """
    if tracing == "none":
        yield None
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # optional
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise UsageError(
            "tracing: OpenTelemetry is not installed; run pip install 'adjudge[otel]'"
        ) from error
    name = os.environ.get("OTEL_SERVICE_NAME", "adjudge")
    provider = TracerProvider(resource=Resource.create({"service.name": name}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    try:
        yield provider.get_tracer("adjudge", version("adjudge"))
    finally:
        provider.shutdown()


class Spans:
    """Makes a span of each call of the judge of `config`; with a `book`, its prompt and reply are in it."""

    def __init__(self, tracer: Any, config: JudgeConfig, book: PromptBook | None, secret: bytes) -> None:
        self._tracer = tracer
        self._book = book
        self._secret = secret
        self._analysis = not config.thinking
        self._name = f"chat {config.model}"
        where = urlsplit(config.url or "")
        self._attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": config.backend,
            "gen_ai.request.model": config.model,
            "gen_ai.request.temperature": config.temperature,
        }
        if where.hostname:
            self._attributes["server.address"] = where.hostname
            self._attributes["server.port"] = where.port or (443 if where.scheme == "https" else 80)

    def record(self, question: Question[A], judgment: Judgment[A]) -> None:
        """Make the span of a call that has just ended. Its times are those of the request, without queueing."""
        from opentelemetry.trace import SpanKind, Status, StatusCode  # optional

        end = time.time_ns()
        span = self._tracer.start_span(
            self._name,
            kind=SpanKind.CLIENT,
            start_time=end - round(judgment.seconds * 1e9),
            attributes=self._attributes | _of(question, judgment),
        )
        if self._book is not None:
            span.set_attributes(self._content(self._book, question, judgment))
        if judgment.reason is not None:
            span.set_status(Status(StatusCode.ERROR, judgment.reason))
        span.end(end)

    def _content(self, book: PromptBook, question: Question[A], judgment: Judgment[A]) -> dict[str, str]:
        shown = messages(question, book, schema_of(question, self._analysis), self._secret)
        sent = [_message(one["role"], one["content"]) for one in shown]
        said = {**_message("assistant", judgment.text), "finish_reason": judgment.finish_reason}
        return {
            "gen_ai.input.messages": json.dumps(sent, ensure_ascii=False),
            "gen_ai.output.messages": json.dumps([said], ensure_ascii=False),
        }


def _of(question: Question[A], judgment: Judgment[A]) -> dict[str, Any]:
    usage = judgment.usage
    found: dict[str, Any] = {
        "gen_ai.output.type": "text" if isinstance(question, PublishedQuestion) else "json",
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "adjudge.question": judgment.question,
        "adjudge.key": judgment.key.hex(),
    }
    if judgment.finish_reason:
        found["gen_ai.response.finish_reasons"] = [judgment.finish_reason]
    if judgment.reason is not None:
        found["error.type"] = judgment.reason
    return found


def _message(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": content}]}
