"""`adjudge evaluate` on nodes started by `ray start`, and as a job there from the wheel alone."""

import asyncio
import contextlib
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from tests.chaos import children, command, done, evaluate
from tests.mock_openai import MockOpenAI
from tests.processes import free_port
from tests.wheel import UV, build_wheel
from tests.worlds import ADJUDGE, METRICS, world

pytest.importorskip("ray")

RAY = Path(sys.executable).parent / "ray"
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
WAIT_SECONDS = 120.0

pytestmark = pytest.mark.timeout(480)


class Nodes(msgspec.Struct, frozen=True):
    """A head with a dashboard and a second node, of one CPU each; process ids of their `ray start`."""

    address: str
    jobs: str
    processes: tuple[int, int]


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    # Its folder holds sockets, for which the path of the test's own folder is too long.
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as logs,
    ):
        for name, value in {**TOKEN, "RAY_USAGE_STATS_ENABLED": "0"}.items():
            patch.setenv(name, value)
        port, dashboard = free_port(), free_port()
        head = [
            *("--head", f"--port={port}", f"--temp-dir={logs}", f"--ray-client-server-port={free_port()}"),
            *("--include-dashboard=true", "--dashboard-host=127.0.0.1", f"--dashboard-port={dashboard}"),
        ]
        address = f"127.0.0.1:{port}"
        with node(head) as first, node([f"--address={address}"]) as second:
            yield Nodes(address, f"http://127.0.0.1:{dashboard}", (first, second))


@pytest.fixture(scope="module", autouse=True)
def refused(nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """An evaluation with a wrong token. It begins before the other tests: Ray tries for 20 seconds to connect."""
    path = world(tmp_path_factory.mktemp("refused"))
    with subprocess.Popen(
        [*ADJUDGE, "evaluate", str(path), "--cluster", nodes.address],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "RAY_AUTH_TOKEN": secrets.token_hex(32)},
    ) as process:
        yield process
        process.kill()


@contextlib.contextmanager
def node(options: list[str]) -> Iterator[int]:
    """The process id of a running `ray start`; it and its descendants are ended on exit."""
    common = [
        *("--block", "--node-ip-address=127.0.0.1", "--num-cpus=1", "--object-store-memory=80000000"),
        *("--min-worker-port=0", "--max-worker-port=0", f"--dashboard-agent-listen-port={free_port()}"),
    ]
    with subprocess.Popen(
        [RAY, "start", *options, *common], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        try:
            said = []
            for line in process.stdout:
                said.append(line)
                if "Ray runtime started" in line:
                    break
            else:
                pytest.fail("".join(said))
            yield process.pid
        finally:
            process.terminate()
            process.communicate(timeout=WAIT_SECONDS)


def until(met, what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not met():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.1)


def has_evaluator(start: int) -> bool:
    raylets = [pid for pid in children(start) if b"raylet" in command(pid)]
    return any(b"ray::EvaluatorActor" in command(pid) for raylet in raylets for pid in children(raylet))


def table(out: Path) -> list[dict[str, object]]:
    return pq.read_table(out / "scores.parquet").to_pylist()


async def test_both_nodes_work_and_give_the_table_of_one_process(tmp_path, nodes):
    both = asyncio.Event()

    async def held(mock, call) -> None:
        await both.wait()

    async with MockOpenAI(fault=held) as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock", "max_in_flight": 8}
        path = world(tmp_path, systems=6, tasks=8, judge=judge)
        running = await evaluate(path, "--cluster", nodes.address)
        await asyncio.to_thread(until, lambda: all(map(has_evaluator, nodes.processes)), "two evaluators")
        both.set()
        errors = await done(running)
        assert running.returncode == 0, errors
        alone = await evaluate(path, "--out", str(tmp_path / "alone"), "--store", str(tmp_path / "other"))
        errors = await done(alone)
        assert alone.returncode == 0, errors
    assert table(tmp_path / "run") == table(tmp_path / "alone")
    assert len(table(tmp_path / "run")) == 48 * METRICS


def test_job_runs_the_contents_of_the_wheel(tmp_path, nodes):
    site = tmp_path / "site"
    wheel = build_wheel(tmp_path / "wheel")
    install = [UV, "pip", "install", "--quiet", "--no-deps", "--python", sys.executable]
    subprocess.run([*install, "--target", str(site), str(wheel)], check=True)
    path = world(tmp_path)
    where = f'{sys.executable} -c "import adjudge.engine; print(adjudge.engine.__file__)"'
    job = subprocess.run(
        [
            *(RAY, "job", "submit", "--address", nodes.jobs),
            *("--runtime-env-json", msgspec.json.encode({"env_vars": {"PYTHONPATH": str(site)}}).decode()),
            *("--", "sh", "-c", f"{where} && {site}/bin/adjudge evaluate {path} --cluster {nodes.address}"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert job.returncode == 0, job.stdout + job.stderr
    assert f"{site}/adjudge/engine/__init__.py" in job.stdout and "succeeded" in job.stdout + job.stderr
    assert len(table(tmp_path / "run")) == 20 * METRICS


def test_wrong_token_gives_one_line(refused):
    _, error = refused.communicate()
    assert refused.returncode == 2
    assert "RAY_AUTH_MODE=token" in error.splitlines()[-1] and "Traceback" not in error
