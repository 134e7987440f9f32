"""Runs disturbed on purpose: a small cluster of several raylets, and helpers that kill its processes one by one."""

import asyncio
import contextlib
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

from aiohttp import web

from tests.processes import children, command
from tests.worlds import ADJUDGE, CRITERIA, lines, world

HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
KINDS = ("EvaluatorActor", "JudgeActor", "FetchActor", "raylet")


class Pages:
    """Three hosts with any number of pages, each slow to answer."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.reads = 0

    async def __aenter__(self) -> "Pages":
        self._runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=0.1)
        await self._runner.setup()
        for host in HOSTS:
            port = self._runner.addresses[0][1] if self._runner.addresses else 0
            await web.TCPSite(self._runner, host, port, backlog=1024).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.reads += 1
        await asyncio.sleep(self.seconds)
        text = f"<p>The page {request.path} says that the value was measured and is 42.</p>" * 20
        return web.Response(
            text=f"<html><body><article>{text}</article></body></html>", content_type="text/html"
        )


def cited_world(folder: Path, pages: Pages, *, systems: int, tasks: int, **settings: object) -> Path:
    """A world whose reports cite live pages: judged by rubrics and by FACT."""
    path = world(
        folder,
        systems=systems,
        tasks=tasks,
        protocols=["rubrics", {"name": "fact", "extraction": "markers"}],
        fetch={"mode": "live", "extractor": "fast", "allow": [f"{host}:{pages.port}" for host in HOSTS]},
        **settings,
    )
    for number in range(systems):
        name = f"system{number}"
        rows = []
        for task in range(tasks):
            urls = [f"http://{HOSTS[i]}:{pages.port}/{task}/{(number + i) % 4}" for i in range(len(HOSTS))]
            said = "\n\n".join(
                f"The value number {i} of {name} was 42 units [{i + 1}]." for i in range(len(urls))
            )
            references = "\n".join(f"[{i + 1}] Source {i}. {url}" for i, url in enumerate(urls))
            text = f"# Report of {name}\n\nIt states fact number {task}.\n\n{said}\n\n## References\n\n{references}\n"
            rows.append({"task_id": str(task), "system": name, "text": text})
        lines(folder / "reports" / f"{name}.jsonl", rows)
    assert CRITERIA
    return path


@contextlib.contextmanager
def raylets(count: int, cpus: int) -> Iterator["Raylets"]:
    """A cluster of a head, which no worker fits on, and `count` more raylets with `cpus` each, all on this machine."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "object_store_memory": 80_000_000, "include_dashboard": False},
    )
    try:
        made = Raylets(cluster, cpus)
        for _ in range(count):
            made.add()
        yield made
    finally:
        cluster.shutdown()


class Raylets:
    """The raylets of a cluster, and their workers."""

    def __init__(self, cluster, cpus: int) -> None:
        self.address = cluster.address
        self._cluster = cluster
        self._cpus = cpus
        self._nodes = []

    def add(self) -> None:
        self._nodes.append(self._cluster.add_node(num_cpus=self._cpus, object_store_memory=80_000_000))

    def kill(self, kind: str, chance: random.Random) -> bool:
        """Kill one process of `kind` with SIGKILL; False if none is running."""
        if kind == "raylet":
            node = chance.choice(self._nodes)
            self._nodes.remove(node)
            self._cluster.remove_node(node, allow_graceful=False)
            self.add()
            return True
        found = self.workers(kind)
        if found:
            os.kill(chance.choice(found), signal.SIGKILL)
        return bool(found)

    def workers(self, kind: str) -> list[int]:
        """Process ids of the workers that run actors of `kind`."""
        found = []
        for node in self._nodes:
            raylet = node.all_processes["raylet"][0].process.pid
            found += [pid for pid in children(raylet) if f"ray::{kind}".encode() in command(pid)]
        return found


async def evaluate(config: Path, *options: str) -> asyncio.subprocess.Process:
    """Start `adjudge evaluate` in its own process."""
    return await asyncio.create_subprocess_exec(
        *ADJUDGE,
        "evaluate",
        str(config),
        *options,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )


async def done(process: asyncio.subprocess.Process) -> str:
    """Wait for `process` to end; its stderr."""
    _, errors = await process.communicate()
    return errors.decode()
