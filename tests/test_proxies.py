"""Judges behind the environment's proxy, and answers of models that nobody asked for."""

import asyncio
import logging
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from yarl import URL

from adjudge.judges import Asked, server
from adjudge.judges.errors import JudgeError
from adjudge.judges.judgment import Probe
from adjudge.judges.openai import OpenAIJudge
from adjudge.judges.server import OpenAIConfig, proxy_of
from adjudge.prompts import PromptBook
from tests.mock_openai import Call, MockOpenAI, completion

SAID = b'{"choices": [{"message": {"content": "{\\"ready\\": \\"yes\\"}"}, "finish_reason": "stop"}]}'
NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@asynccontextmanager
async def proxy(port: int) -> AsyncIterator[tuple[int, list[str]]]:
    """A proxy that leads everything to `port` of this machine: its own port, and the first lines that it was sent."""
    lines: list[str] = []

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while block := await reader.read(65_536):
            writer.write(block)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lines.extend(head.decode().splitlines())
        try:
            there, back = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:  # left alone, it would be logged whenever the garbage is collected
            writer.close()
            return
        if head.startswith(b"CONNECT"):
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            method, target, rest = head.split(b" ", 2)
            back.write(method + b" " + URL(target.decode()).raw_path_qs.encode() + b" " + rest)
        await asyncio.gather(pipe(reader, back), pipe(there, writer), return_exceptions=True)

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1], lines
    finally:
        listening.close()


def judge_at(url: str) -> OpenAIJudge:
    return OpenAIJudge(OpenAIConfig(url=url, model="judge-1", retries=0), PromptBook(), b"a secret")


async def test_requests_go_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with MockOpenAI() as mock, proxy(URL(mock.url).port or 0) as (port, lines):
        monkeypatch.setenv("HTTP_PROXY", f"http://user:pass@127.0.0.1:{port}")
        judge = judge_at("http://judge.test/v1")
        for _ in range(2):
            assert (await judge.answer(Probe.make(), Asked(key=b"k" * 16))).answer is not None
        await judge.close()
    assert lines[0] == "POST http://judge.test/v1/chat/completions HTTP/1.1"
    assert "Proxy-Authorization: Basic dXNlcjpwYXNz" in lines


async def test_tls_goes_through_a_tunnel(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Path(__file__).with_name("servers") / "self_signed.pem"
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(own)
    monkeypatch.setenv("SSL_CERT_FILE", str(own))
    monkeypatch.setattr(server, "_OWN", re.compile("no host"))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(re.findall(rb"Content-Length: (\d+)", head)[0]))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(SAID), SAID))

    there = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    own_port = there.sockets[0].getsockname()[1]
    async with proxy(own_port) as (port, lines):
        monkeypatch.setenv("HTTPS_PROXY", f"127.0.0.1:{port}")
        judge = judge_at(f"https://127.0.0.1:{own_port}/v1")
        reply = await judge.answer(Probe.make(), Asked(key=b"k" * 16))
        await judge.close()
    there.close()
    assert reply.answer is not None
    assert lines[0] == f"CONNECT 127.0.0.1:{own_port} HTTP/1.1"


async def test_proxy_that_cannot_lead_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxy(1) as (port, _):
        monkeypatch.setenv("HTTPS_PROXY", f"127.0.0.1:{port}")
        judge = judge_at("https://judge.test/v1")
        reply = await judge.answer(Probe.make(), Asked(key=b"k" * 16))
        await judge.close()
    assert reply.reason == "judge_unavailable" and "through the proxy" in reply.text


@pytest.mark.parametrize(
    ("url", "skipped", "used"),
    [
        ("http://judge.test/v1", "", True),
        ("http://judge.test/v1", "judge.test", False),
        ("http://a.judge.test/v1", ".judge.test,other", False),
        ("http://judge.test/v1", "*", False),
        ("http://127.0.0.1:8000/v1", "", False),
        ("http://localhost:8000/v1", "", False),
        ("https://judge.test/v1", "", False),
    ],
)
def test_environment_chooses_the_proxy(
    url: str, skipped: str, used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.test:3128")
    monkeypatch.setenv("NO_PROXY", skipped)
    assert proxy_of(URL(url)) == (URL("http://proxy.test:3128") if used else None)


@pytest.mark.parametrize("named", ["socks5://proxy.test:1080", "http://:80", "http://proxy.test:port"])
def test_proxy_that_cannot_be_used_is_named(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", named)
    with pytest.raises(JudgeError, match="NO_PROXY"):
        proxy_of(URL("http://judge.test/v1"))


async def test_answers_of_another_model_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    names = iter(["judge-1-2026-01-01", "judge-1", "tiny-fallback", "tiny-fallback", "north/tiny-fallback"])

    async def fault(mock: MockOpenAI, call: Call) -> web.StreamResponse:
        return completion(call.answer(), model=next(names))

    async with MockOpenAI(fault=fault) as mock:
        judge = judge_at(mock.url)
        with caplog.at_level(logging.WARNING):
            for _ in range(5):
                assert (await judge.answer(Probe.make(), Asked(key=b"k" * 16))).answer is not None
        await judge.close()
    assert len(caplog.messages) == 1
    assert "tiny-fallback" in caplog.messages[0]
