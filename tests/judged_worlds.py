"""A world of two protocols, one of which shows pictures, and servers that note what they are asked."""

import base64
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from tests.mock_openai import Call, MockOpenAI, sure
from tests.worlds import CRITERIA, lines, world

PIXEL = {
    "name": "chart.png",
    "type": "image/png",
    "data": base64.b64encode(b"\x89PNG fake").decode(),
}
GOLD = {
    "user_files": [
        {"name": "plan.pdf", "text": "The budget is 5 million euros in 2024."},
        {"name": "chart.png", "media": PIXEL},
    ],
    "corpus": [],
    "insights": {"user_files": ["Budget 5 million"], "corpus": []},
    "checklist": ["States the budget", "Names a year"],
}
TEXT = (
    "# Costs of {}\n\nThe budget is 5 million euros [Doc: plan.pdf]. It grew in year {} [Image: chart.png].\n"
)


class Noting(MockOpenAI):
    """A server whose `asked` counts its questions: by model, by the key it was sent, and whether they show a picture.

    It is sure of its answers where their probabilities are asked for. After `dies_after` questions it answers nothing
    more.
    """

    def __init__(self, latency: float = 0.0, dies_after: int = 1_000_000) -> None:
        super().__init__(latency=latency, fault=self._note)
        self.asked: Counter[tuple[str, bool]] = Counter()
        self.keys: set[str] = set()
        self._dies_after = dies_after

    async def _note(self, mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
        if self.asked.total() >= self._dies_after:
            return web.Response(status=503)
        if not call.is_probe:
            self.asked[call.model, b'"image_url"' in call.messages] += 1
            self.keys.add(call.http.headers.get("Authorization", ""))
        return sure(call) if b'"logprobs":true' in call.body else None


@asynccontextmanager
async def serving(*mocks: MockOpenAI) -> AsyncIterator[None]:
    for mock in mocks:
        await mock.start()
    try:
        yield
    finally:
        for mock in mocks:
            await mock.stop()


def judged(mock: MockOpenAI, model: str, **options: object) -> dict[str, object]:
    return {"backend": "openai", "url": mock.url, "model": model, "retries": 0, **options}


def two_protocols(
    folder: Path, *, systems: Sequence[str] = ("A", "B"), tasks: int = 3, **settings: object
) -> Path:
    """Tasks with gold for rubrics and for DR3-Eval, one of whose sources is a picture."""
    path = world(folder, systems=0, protocols=["rubrics", "dr3"], **settings)
    gold = {"rubrics": CRITERIA, "dr3": GOLD}
    lines(
        folder / "tasks.jsonl",
        [{"id": str(task), "prompt": f"What did {task} cost?", "gold": gold} for task in range(tasks)],
    )
    for name in systems:
        rows = [
            {"task_id": str(task), "system": name, "text": TEXT.format(name, task)} for task in range(tasks)
        ]
        lines(folder / "reports" / f"{name}.jsonl", rows)
    return path


def record_of(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "run" / "run.json").read_text())
    return found
