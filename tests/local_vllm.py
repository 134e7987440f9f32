"""A real vLLM with a tiny random model, inside this process or as a server beside it, on a machine without a GPU."""

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from adjudge.judges.vllm import VLLMConfig, VLLMJudge
from adjudge.prompts import PromptBook

from tests.tiny_model import TINY, Shape, tiny_model

BOOK = PromptBook()
SECRET = b"secret"
BLOCK = 128
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
}
ENGINE = {"enforce_eager": True, "gpu_memory_utilization": 0.3}


def prepare() -> None:
    """Set what vLLM reads from the environment. Before it is imported."""
    os.environ.update(ENVIRONMENT)


def judge(*, shape: Shape = TINY, engine: dict[str, object] | None = None, **settings: object) -> VLLMJudge:
    """A judge on the tiny model, not yet started; `engine` and `settings` as in VLLMConfig."""
    prepare()
    config = VLLMConfig(model=str(tiny_model(shape)), engine={**ENGINE, **(engine or {})}, **settings)
    return VLLMJudge(config, BOOK, SECRET)


@contextlib.contextmanager
def server(*arguments: str) -> Iterator[str]:
    """The URL of an OpenAI-compatible vLLM server of the tiny model, named `judge`, while the block lasts."""
    port = free_port()
    command = [
        *(sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(tiny_model())),
        *("--served-model-name", "judge", "--port", str(port), "--host", "127.0.0.1", "--enforce-eager"),
        *("--gpu-memory-utilization", "0.3", "--structured-outputs-config"),
        '{"backend":"guidance","disable_any_whitespace":true}',
        *arguments,
    ]
    process = subprocess.Popen(
        command,
        cwd=Path(__file__).parent.parent,
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_until_up(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_up(url: str, process: "subprocess.Popen[bytes]", limit_s: float = 240.0) -> None:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with code {process.returncode}")
        with contextlib.suppress(urllib.error.URLError, ConnectionError), urllib.request.urlopen(url):
            return
        time.sleep(0.5)
    raise RuntimeError("the server did not come up")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
