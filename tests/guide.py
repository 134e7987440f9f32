"""The README's blocks and the guide's, and a judge for them."""

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worlds import lines

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs/guide.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\w*\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
IN_GUIDE = re.findall(r"^```\w*\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
SERVER = "http://127.0.0.1:8000/v1"


def block(containing: str, among: list[str] = BLOCKS) -> str:
    [found] = [text for text in among if containing in text]
    return found


@contextlib.contextmanager
def judge() -> Iterator[str]:
    """The address of a server that answers every request."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.mock_openai"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()  # said once it listens
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tasks, reports and ratings in the README's form, with its configuration."""
    made = tmp_path_factory.mktemp("readme")
    rows = re.findall(r"^{.*}", block('"prompt": "Compare ..."'), re.MULTILINE)
    task, report = (json.loads(row.replace("{...}", '{"reference": "Text."}')) for row in rows)
    lines(made / "tasks.jsonl", [{**task, "id": str(n)} for n in range(1, 5)])
    for system in "AB":
        rows = [
            {**report, "task_id": str(n), "system": system, "text": f"# {system} on {n}"} for n in range(1, 5)
        ]
        lines(made / "reports" / f"{system.lower()}.jsonl", rows)
    rated = [f"{n},{system},r,overall,{n}" for n in range(1, 5) for system in "AB"]
    (made / "ratings.csv").write_text("\n".join(["task_id,system,rater,metric,value", *rated]))
    lines(made / "chosen.jsonl", [{"task_id": "1", "chosen": ["A"], "rejected": ["B"]}])
    return made
