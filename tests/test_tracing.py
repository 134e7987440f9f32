"""Judge calls as OpenTelemetry spans, received by a collector of our own over OTLP."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from adjudge.engine.errors import UsageError
from adjudge.engine.telemetry.tracing import opened_tracer
from tests.mock_openai import MockOpenAI
from tests.worlds import ADJUDGE, world

KEY = "a-made-up-key-of-the-judge"


class Collector(ThreadingHTTPServer):
    """Keeps what is posted to it."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def spans(self) -> list[dict[str, Any]]:
        """Every span: its name, kind, times and attributes."""
        found = []
        for body in self.bodies:
            request = ExportTraceServiceRequest()
            request.ParseFromString(body)
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    found += [_plain(span) for span in scope.spans]
        return found


def _plain(span: Any) -> dict[str, Any]:
    kinds = ("string_value", "int_value", "double_value")
    return {
        "name": span.name,
        "kind": span.kind,
        "error": span.status.code == 2,
        "nanoseconds": span.end_time_unix_nano - span.start_time_unix_nano,
    } | {
        one.key: next((getattr(one.value, kind) for kind in kinds if one.value.HasField(kind)), None)
        for one in span.attributes
    }


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append(body)  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on standard error."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


async def evaluated(folder: Path, endpoint: str, **settings: object) -> tuple[MockOpenAI, str]:
    """Run a small world, in a process of its own; the judge's server, and what was printed."""
    async with MockOpenAI() as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock", "api_key_env": "JUDGE_KEY"}
        config = world(folder, systems=1, tasks=2, judge=judge, **settings)
        environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "JUDGE_KEY": KEY}
        done = await asyncio.to_thread(
            subprocess.run,
            [*ADJUDGE, "evaluate", str(config)],
            env=environment | {"OTEL_EXPORTER_OTLP_TIMEOUT": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return mock, done.stdout


async def test_each_judge_call_is_a_span_without_content(tmp_path: Path, collector: Collector) -> None:
    endpoint = f"http://127.0.0.1:{collector.server_port}"
    _, said = await evaluated(tmp_path, endpoint, tracing="calls")
    spans = collector.spans
    asked = int(said.split(" asked")[0].split()[-1].replace(",", ""))
    assert len(spans) == asked > 0
    assert len({span["adjudge.key"] for span in spans}) == asked
    for span in spans:
        assert (span["name"], span["kind"], span["error"]) == ("chat mock", 3, False)
        assert span["gen_ai.operation.name"] == "chat" and span["gen_ai.request.model"] == "mock"
        assert span["gen_ai.provider.name"] == "openai" and span["server.address"] == "127.0.0.1"
        assert span["gen_ai.usage.input_tokens"] >= 0 and span["nanoseconds"] > 0
        assert not [name for name in span if "messages" in name]
    whole = b"".join(collector.bodies)
    assert KEY.encode() not in whole and b"What is fact" not in whole and b"It states fact" not in whole


async def test_prompts_are_in_spans_only_when_asked_for(tmp_path: Path, collector: Collector) -> None:
    endpoint = f"http://127.0.0.1:{collector.server_port}"
    await evaluated(tmp_path, endpoint, tracing="content")
    span = collector.spans[0]
    sent = json.loads(span["gen_ai.input.messages"])
    assert [one["role"] for one in sent] == ["system", "user"]
    assert "It states fact number" in sent[1]["parts"][0]["content"]
    (said,) = json.loads(span["gen_ai.output.messages"])
    assert said["role"] == "assistant" and said["parts"][0]["content"].startswith("{")
    assert KEY.encode() not in b"".join(collector.bodies)


async def test_collector_that_is_down_changes_nothing(tmp_path: Path) -> None:
    _, traced = await evaluated(tmp_path / "a", "http://127.0.0.1:9", tracing="calls")
    _, plain = await evaluated(tmp_path / "b", "http://127.0.0.1:9")
    assert traced.splitlines()[:5] == plain.splitlines()[:5]


async def test_nothing_is_imported_or_sent_without_tracing(tmp_path: Path, collector: Collector) -> None:
    """The endpoint in the environment is for other programs too."""
    await evaluated(tmp_path, f"http://127.0.0.1:{collector.server_port}")
    assert collector.bodies == []
    code = (
        "import sys; from adjudge.engine.telemetry.tracing import opened_tracer\n"
        "with opened_tracer('none') as tracer: assert tracer is None\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


def test_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with (
        pytest.raises(UsageError, match=r"tracing: .* run pip install 'adjudge\[otel\]'"),
        opened_tracer("calls"),
    ):
        pass
