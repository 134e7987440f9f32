"""Counts in words: "1 task", in what every command prints and writes of a run of one task by one system."""

import asyncio
import html
import re
from pathlib import Path
from typing import Any

import pytest

from adjudge.engine.runs.run import Run
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.query import ListQuery, TaskQuery
from adjudge.engine.viewer.pages.frame import Frame
from adjudge.engine.viewer.pages.home import home, tasks_page
from adjudge.engine.viewer.pages.task import task_page
from adjudge.judges.plural import plural
from tests.test_cli import run
from tests.worlds import lines, world

SEVERAL = re.compile(r"(?<![\d.,:/+-])1 (?!(?:is|was|has|as|its|less|across)\b)[a-z]+s\b")
TAGS = re.compile(r"<(script|style)[\s\S]*?</\1>|<[^>]+>")


def test_noun_follows_its_count() -> None:
    assert [plural(count, "task") for count in (0, 1, 2, 1_000)] == [
        "0 tasks",
        "1 task",
        "2 tasks",
        "1,000 tasks",
    ]
    assert [plural(count, "query", "queries") for count in (1, 2)] == ["1 query", "2 queries"]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """One task with one rubric, and one report that cites one page."""
    path = world(
        tmp_path,
        systems=1,
        tasks=1,
        protocols=["rubrics", {"name": "fact", "extraction": "markers"}],
        fetch={"mode": "snapshot", "snapshot": "web"},
    )
    url = "https://kites.example/red"
    lines(tmp_path / "web" / "index.jsonl", [{"url": url, "file": "a.html", "status_code": 200}])
    page = (
        "<html><body><article><p>The kite that flies over the old tower is red.</p></article></body></html>"
    )
    (tmp_path / "web" / "a.html").write_text(page)
    rubric = [{"criterion": "The kite is red.", "points": 1}]
    lines(tmp_path / "tasks.jsonl", [{"id": "0", "prompt": "Is it red?", "gold": {"rubrics": rubric}}])
    text = f"The kite that flies over the old tower is red [1].\n\n[1] {url}"
    lines(tmp_path / "reports" / "system0.jsonl", [{"task_id": "0", "system": "system0", "text": text}])
    return path


def shown(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return html.unescape(TAGS.sub(" ", text)) if path.suffix == ".html" else text


def test_one_is_singular_in_the_output_of_every_command(config: Path, capsys: Any) -> None:
    folder = config.parent / "run"
    (config.parent / "published.csv").write_text("system,metric,value\nsystem0,rubrics.score,50\n")
    lines(
        config.parent / "human.jsonl",
        [{"task_id": "0", "system": "system0", "rater": "r", "metric": "score", "value": 1}],
    )
    published = ("--published", config.parent / "published.csv")
    said = {}
    for command in (
        ("plan", config),
        ("evaluate", config),
        ("evaluate", config),
        ("leaderboard", folder),
        ("leaderboard", folder, "--markdown"),
        ("leaderboard", folder, "--by", "language", "--out", config.parent / "by"),
        ("leaderboard", folder, *published, "--out", config.parent / "beside"),
        ("show", folder, "--task", "0", "--system", "system0"),
        ("check", folder, "--baseline", folder),
        ("agreement", folder, "--other", folder),
        ("agreement", folder, "--human", config.parent / "human.jsonl"),
        ("export", folder, "--format", "scores", "--out", config.parent / "tables"),
        ("label", folder, "--out", config.parent / "labels.csv", "--sample", "1"),
        ("view", folder, "--export", config.parent / "site"),
        (
            *(
                "gold",
                "--check",
                config.parent / "tasks.jsonl",
                "--protocol",
                "rubrics",
                "--judge",
                "lexical",
            ),
            *("--store", config.parent / "store"),
        ),
        ("snapshot", folder, "--out", config.parent / "pages"),
        ("doctor", config),
        ("store", "ls", config.parent / "store"),
        ("store", "compact", config.parent / "store"),
        ("store", "prune", config.parent / "store", "--days", "1"),
        ("store", "repair", config.parent / "store"),
    ):
        code, out, error = run(capsys, *command)
        said[" ".join(map(str, command))] = (code, out + error)
    written = [*folder.glob("leaderboard.*"), *(config.parent / "site").rglob("*.html")]
    found = {name: SEVERAL.findall(" ".join(text.split())) for name, (_, text) in said.items()}
    found |= {
        str(one): SEVERAL.findall(" ".join(shown(one).split()))
        for one in written
        if one.suffix in (".md", ".html")
    }
    assert not any(found.values()), {name: words for name, words in found.items() if words}
    failed = {name: text for name, (code, text) in said.items() if code not in (0, 3)}
    assert not failed, failed


def test_one_is_singular_on_the_viewer_s_pages(config: Path, capsys: Any) -> None:
    run(capsys, "evaluate", config)

    async def pages() -> list[str]:
        opened = OpenRun(Run.open(config.parent / "run"))
        frame = Frame("run", "judge")
        found = [
            await home(opened, frame, ListQuery()),
            await tasks_page(opened, frame, ListQuery()),
            await task_page(opened, frame, TaskQuery(task="0")),
        ]
        await opened.close()
        return found

    for page in asyncio.run(pages()):
        assert not SEVERAL.search(" ".join(TAGS.sub(" ", page).split()))
