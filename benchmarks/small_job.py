"""The same small job in four tools: 36 judgments of one local server, whole commands from start to exit.

    python -m benchmarks.small_job [--quick] [--json] [--only WORDS]

Three systems' reports on four tasks are judged by three criteria: 36 questions, each answered after 200 ms. The
configurations are in benchmarks/four_tools/; lines are theirs, without empty ones, and without the data. Each tool is
installed into an environment of its own under SMALL_JOB_VENVS, which takes minutes and 2.5 GB; `installed` is the size
of that. Every command runs once before it is timed, and keeps no answers: adjudge's store is removed in between.
Seconds are medians of 5 runs, in turns.
"""

import asyncio
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import web

from benchmarks.timing import QUICK_RUNS, ROOT, RUNS, Row, alone, main
from tests.mock_openai import valid

HERE = Path(__file__).parent / "four_tools"
VENVS = Path(os.environ.get("SMALL_JOB_VENVS") or Path.home() / ".cache/adjudge/small_job")
LATENCY, QUESTIONS = 0.2, 36
SYSTEMS, TASKS = 3, 4
CRITERIA = tuple(line.removeprefix("- ") for line in (HERE / "criteria.yaml").read_text().splitlines())


class Tool(NamedTuple):
    """What is installed, the files of its configuration, and its command; `{venv}` is its environment."""

    name: str
    packages: tuple[str, ...]
    files: tuple[str, ...]
    command: tuple[str, ...]
    environment: dict[str, str]


TOOLS = (
    Tool(
        "adjudge",
        (str(ROOT),),
        ("adjudge.yaml", "criteria.yaml"),
        ("{venv}/bin/adjudge", "evaluate", "adjudge.yaml"),
        {},
    ),
    Tool(
        "inspect_ai",
        ("inspect-ai==0.3.285", "openai==3.54.0"),
        ("task.py",),
        (
            "{venv}/bin/inspect",
            "eval",
            "task.py",
            "--model",
            "openai-api/mock/mock",
            "--max-connections",
            "36",
        ),
        {"MOCK_BASE_URL": "{url}", "MOCK_API_KEY": "none"},
    ),
    Tool(
        "deepeval",
        ("deepeval==4.3.1",),
        ("judge.py",),
        ("{venv}/bin/python", "judge.py"),
        {"DEEPEVAL_TELEMETRY_OPT_OUT": "1"},
    ),
    Tool(
        "promptfoo",
        ("promptfoo@0.120.0",),
        ("promptfooconfig.yaml",),
        ("{venv}/node_modules/.bin/promptfoo", "eval", "--no-cache", "--no-table", "--max-concurrency", "36"),
        {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"},
    ),
)


class Spent(NamedTuple):
    """Seconds of a command on the clock, and of its processes."""

    clock: float
    cpu: float


def installed(tool: Tool) -> Path:
    """The environment of `tool`, made if it is not there."""
    venv = VENVS / tool.name
    if not (venv / "ready").exists():
        shutil.rmtree(venv, ignore_errors=True)
        venv.mkdir(parents=True)
        if "@" in tool.packages[0]:
            subprocess.run(["npm", "install", "--silent", "--prefix", str(venv), *tool.packages], check=True)
        else:
            subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
            subprocess.run(
                [str(venv / "bin/pip"), "install", "--quiet", *tool.packages], check=True, cwd=venv
            )
        (venv / "ready").touch()
    return venv


def size(folder: Path) -> float:
    """Bytes of all files under `folder`."""
    return float(sum(one.lstat().st_size for one in folder.rglob("*") if not one.is_dir()))


async def _answer(request: web.Request) -> web.Response:
    body = await request.json()
    form = body.get("response_format") or {}
    text = json.dumps(body["messages"])
    if schema := (form.get("json_schema") or {}).get("schema"):
        said = json.dumps(valid(schema, text.encode()[-32:]))
    elif "GRADE:" in text:
        said = "GRADE: C"
    else:
        said = json.dumps({"reason": "It does.", "pass": True, "score": 1})
    await asyncio.sleep(LATENCY)
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    message = {"role": "assistant", "content": said}
    request.app["calls"].append(text)
    return web.json_response(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": "mock",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": usage,
        }
    )


@contextmanager
def _server() -> Iterator[tuple[str, list[str]]]:
    """The address of a judge in a thread of this process, and the texts that it is asked."""
    loop, calls = asyncio.new_event_loop(), list[str]()
    app = web.Application()
    app["calls"] = calls
    app.router.add_post("/v1/chat/completions", _answer)
    runner = web.AppRunner(app)
    loop.run_until_complete(runner.setup())
    site = web.TCPSite(runner, "127.0.0.1", 0)
    loop.run_until_complete(site.start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1", calls
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(runner.cleanup())
        loop.close()


def _prepared(folder: Path, url: str) -> None:
    """The configurations and each tool's data, which are the same reports."""
    for file in HERE.iterdir():
        if file.is_file():
            (folder / file.name).write_text(file.read_text().replace("{url}", url))
    reports: list[dict[str, Any]] = [
        {
            "task_id": str(task),
            "system": f"system {system}",
            "prompt": f"Describe bridge number {task}.",
            "text": f"It is {300 + task + system} metres long and was finished in {1880 + system}.",
        }
        for task in range(TASKS)
        for system in range(SYSTEMS)
    ]
    samples = [
        {"input": one["prompt"], "target": criterion, "metadata": {"report": one["text"]}}
        for one in reports
        for criterion in CRITERIA
    ]
    tasks = [{"id": str(task), "prompt": f"Describe bridge number {task}."} for task in range(TASKS)]
    for name, lines in (("tasks", tasks), ("reports", reports), ("samples", samples)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    cases = [{"vars": {"report": one["text"]}} for one in reports]
    (folder / "cases.json").write_text(json.dumps(cases))


def _run(tool: Tool, venv: Path, folder: Path, url: str) -> Spent:
    for left in (".adjudge", "runs", "logs"):
        shutil.rmtree(folder / left, ignore_errors=True)
    home = {"HOME": str(folder), "PROMPTFOO_CONFIG_DIR": str(folder / "promptfoo")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        [part.replace("{venv}", str(venv)) for part in tool.command],
        cwd=folder,
        env={"PATH": os.environ["PATH"]}
        | home
        | {k: v.replace("{url}", url) for k, v in tool.environment.items()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    clock = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(
            f"{tool.name} failed ({done.returncode}):\n{done.stdout[-2_000:]}\n{done.stderr[-2_000:]}"
        )
    return Spent(clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Seconds, CPU seconds, questions, lines and size of each tool that is wanted."""
    tools = [tool for tool in TOOLS if wanted(tool.name)]
    venvs = {tool.name: installed(tool) for tool in tools}
    runs = QUICK_RUNS if quick else RUNS
    spent: dict[str, list[Spent]] = {tool.name: [] for tool in tools}
    asked: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as name, _server() as (url, calls):
        folder = Path(name)
        _prepared(folder, url)
        for run in range(runs + 1):
            for tool in tools:
                calls.clear()
                one = _run(tool, venvs[tool.name], folder, url)
                asked[tool.name] = len(calls)
                if run:
                    spent[tool.name].append(one)
    for tool in tools:
        lines = sum(
            bool(line.strip()) for file in tool.files for line in (HERE / file).read_text().splitlines()
        )
        for what, figure, unit in (
            ("seconds", statistics.median(one.clock for one in spent[tool.name]), "s"),
            ("CPU seconds", statistics.median(one.cpu for one in spent[tool.name]), "s"),
            ("questions", float(asked[tool.name]), ""),
            ("lines of configuration", float(lines), ""),
            ("installed", size(venvs[tool.name]), "bytes"),
        ):
            yield alone(f"{tool.name}: {what}", figure, unit, n=QUESTIONS)


if __name__ == "__main__":
    main(__doc__, rows)
