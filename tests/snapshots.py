"""Snapshots of pages and web archives, for tests."""

import json
from pathlib import Path

import msgspec
import pytest

from adjudge.engine.commands.main import main
from adjudge.fetchers.page import Page
from tests.servers.hostile import PROSE
from tests.worlds import lines


def page_of(url: str, text: str = PROSE, **fields: object) -> Page:
    values: dict[str, object] = {"url": url, "final_url": url, "status": "read", "reason": None, "text": text}
    values |= {
        "fetched_at": 1.7e9,
        "content_type": "text/html",
        "sha256": "ab" * 32,
        "title": "T",
        "description": "D",
    }
    return msgspec.convert(values | fields, Page)


PAGES = [
    page_of(
        "https://example.com/a", "A <b> & \"quoted\" 'text' &amp; &lt;\r\n\x0b中文 \U0001f600 </pre> end "
    ),
    page_of(
        "https://example.com/b",
        status="failed",
        reason="page_gone",
        text="",
        title="",
        description="",
        detail="404 Not Found",
    ),
    page_of("https://example.com/c", content_type="", description="", final_url="https://example.com/d"),
    page_of("https://example.com/e", content_type="application/pdf", fetched_at=0.125),
    page_of("https://example.com/f", beside="A box </pre>\n<pre> & a foot\n\nof two lines"),
]


SENTENCE = "The bridge was opened in 1932 and is 503 metres long."


def adjudge(words: list[str]) -> object:
    """Run one command; its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    return ended.value.code


def config_of(folder: Path, fetch: dict[str, object], *urls: str) -> Path:
    folder.mkdir()
    lines(folder / "tasks.jsonl", [{"id": "1", "prompt": "When was the bridge opened?", "language": "en"}])
    cited = " ".join(f"{SENTENCE} [{n}]" for n in range(1, len(urls) + 1))
    listed = "".join(f"[{n}] {url}\n" for n, url in enumerate(urls, 1))
    report = {"task_id": "1", "system": "A", "text": f"{cited}\n\n## References\n{listed}"}
    lines(folder / "reports.jsonl", [report])
    config = {
        "tasks": str(folder / "tasks.jsonl"),
        "reports": [str(folder / "reports.jsonl")],
        "protocols": [{"name": "fact", "extraction": "markers"}],
        "judge": "lexical",
        "fetch": fetch,
        "store": str(folder / "store"),
        "out": str(folder / "run"),
    }
    (folder / "adjudge.yaml").write_text(json.dumps(config))
    return folder / "adjudge.yaml"
