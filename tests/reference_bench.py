"""The reference code of DeepResearch Bench, run as it is in another process, before a judge whose replies are drawn.

Only its client module is replaced (`_CLIENT`): by one that posts to a chat-completions server and to a local scraper.
Its waits between attempts are left out. What it finds and what we find has one form, `Figures`.
"""

import asyncio
import hashlib
import json
import os
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from aiohttp import web

from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.config.run import RunConfig
from tests.grafting import LaidOut, own_code
from tests.mock_openai import Call, MockOpenAI, completion
from tests.shared_data import shared

__all__ = [
    "DIMENSIONS", "SYSTEMS", "DrawnJudge", "Figures", "bench_folder", "laid_out", "ours", "reference_environment",
    "rows", "run_python", "run_reference", "told",
]  # fmt: skip

DIMENSIONS = ("comprehensiveness", "insight", "instruction_following", "readability")
SYSTEMS = ("claude-opus-tickr-0929", "gpt5-tickr-0917")

Figures = dict[str, Any]
"""What was made of the replies, by report or task and metric."""


Drawn = Callable[[str, random.Random], str]

_CLIENT = """
import json, os, time, urllib.request
time.sleep = lambda seconds: None

def _post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)

class AIClient:
    def __init__(self, api_key=None, model="judge"):
        self.model = model

    def generate(self, user_prompt, system_prompt="", model=None):
        said = [{"role": "system", "content": system_prompt}] if system_prompt else []
        said.append({"role": "user", "content": user_prompt})
        body = {"model": model or self.model, "messages": said}
        return _post(os.environ["JUDGE_URL"] + "/chat/completions", body)["choices"][0]["message"]["content"]

def call_model(user_prompt):
    return AIClient().generate(user_prompt)

def scrape_url(url):
    return _post(os.environ["SCRAPER_URL"], {"url": url})
"""
_TQDM = """
class tqdm:
    def __init__(self, iterable=(), **options):
        self.iterable = iterable
    def __iter__(self):
        return iter(self.iterable)
    def __enter__(self):
        return self
    def __exit__(self, *error):
        pass
    def update(self, count=1):
        pass
"""


class DrawnJudge:
    """A server whose reply is drawn by the hash of the prompt and of how often that prompt was sent before.

    `draw` makes it, after `latency` seconds. `requests` counts the bodies, decoded.
    """

    def __init__(self, draw: Drawn, latency: float = 0.05) -> None:
        self.requests: Counter[str] = Counter()
        self._draw = draw
        self._mock = MockOpenAI(latency=latency, fault=self._reply)

    async def __aenter__(self) -> "DrawnJudge":
        await self._mock.start()
        self.url = self._mock.url
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._mock.stop()

    async def _reply(self, mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
        if call.is_probe:
            return None
        body = json.loads(call.body)
        request = json.dumps(body, ensure_ascii=False, sort_keys=True)
        prompt = said(body["messages"][-1]["content"])
        seed = hashlib.blake2b(f"{self.requests[request]} {prompt}".encode(), digest_size=8).digest()
        self.requests[request] += 1
        return completion(self._draw(prompt, random.Random(int.from_bytes(seed))))


def said(content: str | list[dict]) -> str:
    """All that a message says."""
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


def laid_out(folder: Path, code: LaidOut) -> Path:
    """DeepResearch Bench's Python files by `code` in `folder`, with our client in place of its own."""
    bench = code("deep_research_bench", folder / "bench")
    (bench / "utils" / "api.py").write_text(_CLIENT, encoding="utf-8")
    (folder / "tqdm.py").write_text(_TQDM, encoding="utf-8")
    return bench


def bench_folder(folder: Path, fork: str = "deep_research_bench") -> Path:
    """The reference code and the published data of `fork` in `folder`."""
    bench = laid_out(folder, own_code)
    for name in dict.fromkeys(("deep_research_bench", fork)):
        shutil.copytree(shared(f"reference/{name}/data"), bench / "data", dirs_exist_ok=True)
    return bench


async def run_reference(bench: Path, judge: DrawnJudge, *command: str, scraper: str = "") -> float:
    """Run `command` (arguments of Python) in `bench`; how many seconds it took."""
    started = time.perf_counter()
    await run_python(bench, *command, JUDGE_URL=judge.url, SCRAPER_URL=scraper)
    return time.perf_counter() - started


async def run_python(bench: Path, *command: str, **environment: str) -> str:
    """What Python says, run with `command` in `bench`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, cwd=bench, env=reference_environment(bench, **environment),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()[-3_000:]
    return said.decode()


def reference_environment(bench: Path, **environment: str) -> dict[str, str]:
    """The environment of a process that runs the code in `bench`, whose folder is a package too."""
    path = os.pathsep.join([str(bench.parent), str(bench)])
    return {**os.environ, **environment, "PYTHONPATH": path, "PYTHONUTF8": "1"}


def rows(file: Path) -> list[dict]:
    """The rows of a JSON Lines file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


async def ours(bench: Path, out: Path, url: str, **options: object) -> tuple[dict, float]:
    """Our scores by (system, task, metric), and the seconds they took."""
    config = RunConfig.of(
        {
            "tasks": str(bench),
            "format": "deepresearch-bench",
            "judge": {"backend": "openai", "url": url, "model": "judge"},
            "store": str(out / "store"),
            "out": str(out / "run"),
            **options,
        }
    )
    started = time.perf_counter()
    await evaluate_async(config)
    seconds = time.perf_counter() - started
    table = pq.read_table(out / "run" / "scores.parquet").to_pylist()
    return {(row["system"], row["task_id"], row["metric"]): row["value"] for row in table}, seconds


def told(capsys, what: str, theirs: tuple[DrawnJudge, float], ours: tuple[DrawnJudge, float]) -> None:
    """Print how many calls and seconds both sides took."""
    took = [f"{judge.requests.total()} calls in {seconds:.1f} s" for judge, seconds in (theirs, ours)]
    with capsys.disabled():
        print(f"\n{what}: reference {took[0]}, ours {took[1]}")
