"""A judge for the published calls of DeepResearch Bench in its own process: valid answers, 200 ms after each request.

`python -m benchmarks.published_judge CHECKOUT` prints its URL; `GET /stats` counts its calls.
"""

import asyncio
import hashlib
import json
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from aiohttp import web

from adjudge.judges.published import Checkout
from benchmarks.beside import said_by
from tests.mock_openai import Call, MockOpenAI, completion

__all__ = ["URLS", "PublishedJudge", "published_judge"]

LATENCY = 0.2
URLS = tuple(f"https://pages.example/{number}" for number in range(10))
MARKS = {"article_1_score": 7.5, "article_2_score": 6.0}


class PublishedJudge(msgspec.Struct, frozen=True):
    """The server under `url`, which ends in /v1."""

    url: str

    def calls(self) -> int:
        """Requests since the last call of this method, probes aside."""
        stats = self.url.replace("/v1", "/stats")
        with urllib.request.urlopen(stats) as reply:
            found = int(json.load(reply)["calls"])
        urllib.request.urlopen(urllib.request.Request(stats, method="DELETE")).close()
        return found


@contextmanager
def published_judge(checkout: Path) -> Iterator[PublishedJudge]:
    """The server, for as long as the block runs."""
    with said_by("benchmarks.published_judge", str(checkout)) as url:
        yield PublishedJudge(url)


class _Replies:
    """Tells the kinds of prompts apart: scoring by its tag, those of FACT by how their templates begin and end."""

    def __init__(self, checkout: Checkout) -> None:
        self._kinds = [
            (kind, checkout.formatted(f"utils/{kind}.py", name).pieces)
            for kind in ("extract", "deduplicate", "validate")
            for name in ("prompt_template", "prompt_template_en")
        ]

    def reply(self, prompt: str) -> str:
        """A valid reply, the same for the same prompt."""
        if "<criteria_list>\n" in prompt:
            criteria = json.loads(prompt.split("<criteria_list>\n", 1)[1].split("\n</criteria_list>", 1)[0])
            marks = {
                name: [{"criterion": one["criterion"], "analysis": "So, so.", **MARKS} for one in listed]
                for name, listed in criteria.items()
            }
            return f"```json\n{json.dumps(marks, ensure_ascii=False)}\n```"
        for kind, pieces in self._kinds:
            if prompt.startswith(pieces[0][0]) and prompt.endswith(pieces[-1][0]):
                return _fact(kind, prompt[len(pieces[0][0]) : len(prompt) - len(pieces[-1][0])], pieces)
        return prompt[len(prompt) // 4 :]  # an article to be cleaned, and the end of the instructions


def _fact(kind: str, inner: str, pieces: tuple[tuple[str, str], ...]) -> str:
    if kind == "extract":
        sort = hashlib.blake2b(
            inner.encode(), digest_size=6
        ).hexdigest()  # so that no two reports ask the same
        said = [
            {"fact": f"Sort {sort} grew by {n} %.", "ref_idx": n, "url": URLS[n % len(URLS)]}
            for n in range(30)
        ]
        return json.dumps(said)
    statements = inner if kind == "deduplicate" else inner.rsplit(pieces[1][0], 1)[1]
    numbers = range(1, len(statements.split("\n")) + 1)
    if kind == "deduplicate":
        return json.dumps([*numbers])
    return json.dumps([{"idx": n, "result": "supported"} for n in numbers])


async def _serve(checkout: Path) -> None:
    replies = _Replies(Checkout(checkout))

    async def answer(mock: MockOpenAI, call: Call) -> web.StreamResponse | None:
        if call.is_probe:
            return None
        return completion(replies.reply(json.loads(call.messages)[-1]["content"]))

    async with MockOpenAI(latency=LATENCY, fault=answer) as mock:
        sys.stdout.write(f"{mock.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
