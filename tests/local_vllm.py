"""A real vLLM with a small model, inside this process or as a server beside it, on a machine without a GPU."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from adjudge.judges.vllm import VLLMConfig, VLLMJudge
from adjudge.prompts import PromptBook
from tests.processes import command, descendants, free_port
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


def environment() -> dict[str, str]:
    """The environment of a process that runs vLLM."""
    return {**os.environ, **ENVIRONMENT}


def prepare() -> None:
    """Set what vLLM reads from the environment; call it before vLLM is imported."""
    os.environ.update(ENVIRONMENT)


def judge(*, shape: Shape = TINY, engine: dict[str, object] | None = None, **settings: object) -> VLLMJudge:
    """A judge on the tiny model, not yet started; `engine` and `settings` as in VLLMConfig."""
    prepare()
    config = VLLMConfig(model=str(tiny_model(shape)), engine={**ENGINE, **(engine or {})}, **settings)
    return VLLMJudge(config, BOOK, SECRET)


class Server(msgspec.Struct, frozen=True):
    """A running server: `root` is its address, `url` the base of its OpenAI API, where the model is named `judge`."""

    root: str
    process: "subprocess.Popen[bytes]"

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    def engine_process(self) -> int:
        """The process id of its engine, a child of the HTTP process."""
        for child in descendants(self.process.pid):
            if b"EngineCore" in command(child):
                return child
        raise RuntimeError("the server has no engine")


@contextlib.contextmanager
def server(*arguments: str, model: Path | None = None) -> Iterator[Server]:
    """A vLLM server of a model, or the tiny one, with vLLM's endpoints for developers, while the block lasts."""
    port = free_port()
    command = [
        *(sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model or tiny_model())),
        *("--served-model-name", "judge", "--port", str(port), "--host", "127.0.0.1", "--enforce-eager"),
        # As for the engine in process: the CPU worker dies of a seeded request whose prompt is computed in pieces.
        *("--gpu-memory-utilization", "0.3", "--no-enable-chunked-prefill", "--enable-prompt-tokens-details"),
        *("--structured-outputs-config", '{"backend":"guidance","disable_any_whitespace":true}'),
        *arguments,
    ]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            cwd=Path(__file__).parent.parent,
            env={**environment(), "VLLM_SERVER_DEV_MODE": "1"},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        made = Server(f"http://127.0.0.1:{port}", process)
        try:
            _wait_until_up(f"{made.root}/health", process, log)
            yield made
        finally:
            _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a server, and its engine if that is still running."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(30)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _wait_until_up(
    url: str, process: "subprocess.Popen[bytes]", log: BinaryIO, limit_s: float = 480.0
) -> None:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if process.poll() is not None:
            log.seek(0)
            said = log.read().decode("utf-8", "replace")[-3_000:]
            raise RuntimeError(f"the server ended with code {process.returncode}:\n{said}")
        with contextlib.suppress(urllib.error.URLError, ConnectionError), urllib.request.urlopen(url):
            return
        time.sleep(0.5)
    raise RuntimeError("the server did not come up")
