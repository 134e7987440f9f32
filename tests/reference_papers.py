"""The reference code of LiveDRBench and DR3-Eval in another process, on made data, before a drawn judge.

The code runs as it is; only the packages that it imports are stand-ins (`_OPENAI`, `_DATASETS`, `_DOTENV`): a client
that posts to a chat-completions server, a data set read from a file.
"""

import json
import time
from pathlib import Path
from typing import Any

from tests.reference_bench import DrawnJudge, run_python

__all__ = ["run_beside", "stand_ins", "write_json"]

_OPENAI = """
import json, os, time, urllib.request
time.sleep = lambda seconds: None

class _Node:
    def __init__(self, value):
        self.__dict__.update({k: _made(v) for k, v in value.items()})

def _made(value):
    if isinstance(value, dict):
        return _Node(value)
    return [_made(one) for one in value] if isinstance(value, list) else value

class _Completions:
    def create(self, **body):
        url = os.environ["JUDGE_URL"] + "/chat/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return _Node(json.load(reply))

class OpenAI:
    def __init__(self, **options):
        self.chat = _Node({})
        self.chat.completions = _Completions()
"""
_DATASETS = """
import json, os

class _Rows(list):
    def to_list(self):
        return list(self)

def load_dataset(name, kind):
    return {"test": _Rows(json.load(open(os.environ["QUESTIONS"])))}
"""
_DOTENV = "def load_dotenv():\n    pass\n"


async def run_beside(repo: Path, judge: DrawnJudge | None, script: str, *arguments: str) -> tuple[Any, float]:
    """What `script`, run in `repo`, prints as JSON in its last line, and the seconds it took."""
    started = time.perf_counter()
    said = await run_python(
        repo, "-c", script, *arguments,
        JUDGE_URL=judge.url if judge else "", QUESTIONS=str(repo / "questions.json"),
        OPENAI_API_KEY="k", OPENAI_BASE_URL="u", ALIBABA_MODEL="judge", FACTUAL_ACCURACY_MODEL="judge",
    )  # fmt: skip
    return json.loads(said.splitlines()[-1]), time.perf_counter() - started


def write_json(file: Path, value: object) -> None:
    """Write `value`, and the folders that it lies in."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def stand_ins(folder: Path) -> None:
    """Put the packages that the code imports into `folder`."""
    for name, source in (("openai", _OPENAI), ("datasets", _DATASETS), ("dotenv", _DOTENV)):
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    (folder / "tqdm.py").write_text(
        "def tqdm(found=(), *rest, **options):\n    return iter(found)\n", encoding="utf-8"
    )
