"""`adjudge serve` before clients that mean harm: other sites' pages, half-open and slow requests, full disks."""

import asyncio
import contextlib
import errno
import os
import resource
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from adjudge.engine.config.yaml_file import load_yaml
from adjudge.engine.serving.client import RewardClient
from adjudge.engine.store.place import Place
from adjudge.engine.telemetry import http
from adjudge.engine.telemetry.http import Waiting, is_foreign, is_local
from tests.commands import one_line, run
from tests.reward_server import reward_server
from tests.serving import TEXT, serving
from tests.worlds import world

BODY = {"items": [{"task_id": "0", "text": TEXT}]}


class TestBrowsers:
    async def test_foreign_host_is_refused_without_a_token(self, tmp_path):
        """A page whose own name resolves to this machine sends that name as Host."""
        async with serving(tmp_path) as (client, _):
            for path in ("/metrics", "/healthz", "/openapi.json"):
                assert (await client.get(path, headers={"Host": "evil.example:8300"}))[0] == 421
            assert (await client.post("/v1/rewards", BODY, headers={"Host": "evil.example"}))[0] == 421
            for name in ("localhost:8300", "127.0.0.1", "[::1]:8300"):
                assert (await client.post("/v1/rewards", BODY, headers={"Host": name}))[0] == 200

    async def test_any_host_is_served_with_the_token(self, tmp_path):
        async with serving(tmp_path, token="s3cret") as (client, _):
            headers = {"Host": "rewards.example", "Authorization": "Bearer s3cret"}
            assert (await client.post("/v1/rewards", BODY, headers=headers))[0] == 200

    @pytest.mark.parametrize("token", ["", "s3cret"])
    async def test_posts_of_other_sites_pages_are_refused(self, tmp_path, token):
        async with serving(tmp_path, token=token) as (client, _):
            with_token = {"Authorization": f"Bearer {token}"}
            for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "http://[", "file://"):
                headers = {"Origin": origin, **with_token}
                assert (await client.post("/v1/rewards", BODY, headers=headers))[0] == 403
            headers = {"Origin": client.url, **with_token}
            assert (await client.post("/v1/rewards", BODY, headers=headers))[0] == 200


@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1.evil.example", "localhost@evil", "", "a b"])
def test_other_names_are_not_local(name):
    assert not is_local(name)


def test_only_the_same_host_and_port_are_not_foreign():
    assert not is_foreign(None, "127.0.0.1:8300")
    assert not is_foreign("http://LOCALHOST:8300", "localhost:8300")
    assert is_foreign("http://localhost:8301", "localhost:8300") and is_foreign("null", "localhost:8300")


HALF = b"POST /v1/rewards HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "
SLOW = b"POST /v1/rewards HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{"


@contextlib.contextmanager
def crowded(folder: Path, files: int) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server in a process of its own that may open only `files` files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    limits = {"body_s": 2.0}
    config = world(folder, reward={"metric": "score_clipped", "limits": limits})
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, before[1]))
    try:
        server = reward_server(config)
        url, process = server.__enter__()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    try:
        yield url, process
    finally:
        server.__exit__(None, None, None)


def is_alive(url: str) -> bool:
    with urllib.request.urlopen(f"{url}/healthz", timeout=10) as answer:
        return answer.status == 200


def besiege(url: str, count: int, head: bytes, sockets: list[socket.socket]) -> None:
    for number in range(count):
        sockets.append(socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=10))
        with contextlib.suppress(ConnectionError):
            sockets[-1].sendall(head)
        if number % 50 == 0:
            assert is_alive(url)
    assert is_alive(url)


@pytest.mark.parametrize("head", [HALF, SLOW, b""], ids=["half a head", "slow body", "nothing"])
def test_half_open_requests_shut_nobody_out(tmp_path, head):
    """Three hundred of them, before a server with room for 256 files."""
    sockets: list[socket.socket] = []
    try:
        with crowded(tmp_path, 256) as (url, process):
            besiege(url, 300, head, sockets)
            process.terminate()
            assert process.wait(60) == 0
    finally:
        for each in sockets:
            each.close()


async def test_waiting_connections_are_bounded_by_number_and_time(monkeypatch):
    """The oldest goes first; one whose request is being answered stays."""
    monkeypatch.setattr(http, "FIRST_S", 0.2)
    monkeypatch.setattr(http, "_CHECK_S", 0.05)
    go_on = asyncio.Event()

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        await go_on.wait()
        return web.Response(text="done")

    server = web.Server(answer)
    guarded = Waiting(server, most=3)
    listening = await asyncio.get_running_loop().create_server(guarded.protocol, "127.0.0.1", 0)
    address = listening.sockets[0].getsockname()
    at_work = await asyncio.open_connection(*address)
    at_work[1].write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    while not server.requests_count:
        await asyncio.sleep(0.01)
    idle = [await asyncio.open_connection(*address) for _ in range(5)]
    async with asyncio.timeout(30):
        for reader, _ in idle:
            assert await reader.read() == b""  # two were too many, three too slow
        go_on.set()
        assert b"200 OK" in await at_work[0].read(100)
    for _, writer in (*idle, at_work):
        writer.close()
    guarded.stop()
    await server.shutdown(1.0)
    listening.close()


async def test_server_recovers_from_a_full_disk(tmp_path, monkeypatch):
    """Readiness tells the truth meanwhile, and nothing has to be started again."""

    def refuse(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def until_ready(status: int) -> str:
        async with asyncio.timeout(60):
            while (found := await client.get("/readyz"))[0] != status:
                await asyncio.sleep(0.1)
        return found[1]

    async with serving(tmp_path) as (client, _):
        trainer = RewardClient(client.url)
        await until_ready(200)
        with monkeypatch.context() as patch:
            patch.setattr(Place, "_write_local", refuse)
            await trainer.score([{"task_id": "0", "text": TEXT}])
            assert await until_ready(503) == "the store cannot be written\n"
            assert (await client.get("/healthz"))[0] == 200
        await until_ready(200)
        (reward,) = await trainer.score([{"task_id": "0", "text": f"{TEXT} More."}])
        trainer.close()
    assert reward.value is not None


async def test_one_bad_item_does_not_fail_those_beside_it(tmp_path):
    """A lone surrogate has no encoding: in its own text it becomes a question mark."""
    async with serving(tmp_path) as (client, _):
        trainer = RewardClient(client.url)
        items = [{"task_id": "0", "text": f"{TEXT}{end}"} for end in ("", "\ud800", "")]
        one, bad, other = await asyncio.gather(*(trainer.score([item]) for item in items))
        together = await trainer.score([*items, {"task_id": "\udfff", "prompt": "\ud800", "text": TEXT}])
        trainer.close()
    assert one[0].value == other[0].value is not None
    assert bad[0].value is not None and [each.value for each in together[:3]] == [one[0].value] * 3


DEEP = 5000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tasks: " + "[" * DEEP + "]" * DEEP, "nested too deep"),
        ("- " * DEEP + "1", "nested too deep"),
        ("".join(" " * level + "a:\n" for level in range(DEEP)), "nested too deep"),
        ("tasks: a\nseed: 1\ntasks: b\n", "line 3, column 1: not valid YAML: the key 'tasks'"),
        ("tasks: a\njudge: {model: a, model: b}", "line 2, column 19: not valid YAML: the key 'model'"),
        ("tasks: [a\njudge: sk-abc", "line 2, column 6: not valid YAML"),
    ],
    ids=["flow", "sequence", "block", "key twice", "inner key twice", "unclosed"],
)
def test_hostile_configuration_is_one_line(tmp_path, capsys, text, said):
    path = tmp_path / "adjudge.yaml"
    path.write_text(text)
    code, _, errors = run(capsys, "plan", path)
    assert code == 2 and said in one_line(errors) and "sk-abc" not in errors


def test_merged_keys_may_be_overridden(tmp_path):
    path = tmp_path / "adjudge.yaml"
    path.write_text("p: {q: &x {<<: &b {a: 0}, a: 1}}\ny: {<<: *x, a: 2}\nz: {<<: *b}")
    assert load_yaml(path) == {"p": {"q": {"a": 1}}, "y": {"a": 2}, "z": {"a": 0}}
