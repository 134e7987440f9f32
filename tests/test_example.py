"""The shipped example keeps its promises: counts, languages, gold, citations and pages, as plain JSON."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urlsplit

import pytest
import trafilatura
import yaml

from tests.examples import shipped

EXAMPLE = shipped("quickstart")
SYSTEMS = {"atlas", "borealis", "cinder", "delta"}
FABRICATING = "cinder"
WITHOUT_REFERENCE = "tree-canopy"
EMPTY_REPORT = ("atlas", "cargo-bikes")
NOT_SUBMITTED = ("cinder", "tree-canopy")
EMPTY_PAGE = "p13.html"
DIMENSIONS = {"comprehensiveness", "insight", "instruction_following", "readability"}
URL = re.compile(r"https?://[\w./%#:~=-]*\w")
PLACEHOLDER = re.compile(r"\b(todo|tbd|lorem|placeholder|xxx+)\b|<<|>>|\{\{", re.IGNORECASE)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


TASKS = rows(EXAMPLE / "tasks.jsonl")
REPORTS = [row for path in sorted((EXAMPLE / "reports").glob("*.jsonl")) for row in rows(path)]
INDEX = rows(EXAMPLE / "pages" / "index.jsonl")
HTML = sorted((EXAMPLE / "pages").glob("*.html"))


def cited(report: dict[str, Any]) -> set[str]:
    return {urldefrag(url).url for url in URL.findall(report["text"])}


def test_example_has_six_tasks_in_two_languages() -> None:
    assert Counter(task["language"] for task in TASKS) == {"en": 4, "zh": 2}
    assert len({task["id"] for task in TASKS}) == 6
    for task in TASKS:
        assert bool(re.search(r"[\u4e00-\u9fff]", task["prompt"])) == (task["language"] == "zh")


def test_every_system_but_one_has_one_report_per_task() -> None:
    identities = Counter((row["system"], row["task_id"], row["sample"]) for row in REPORTS)
    every = {(system, task["id"], 0) for system in SYSTEMS for task in TASKS}
    assert every - set(identities) == {(*NOT_SUBMITTED, 0)}
    assert set(identities) < every
    assert set(identities.values()) == {1}


def test_one_report_is_empty_and_the_others_substantial() -> None:
    empty = [(row["system"], row["task_id"]) for row in REPORTS if not row["text"].strip()]
    assert empty == [EMPTY_REPORT]
    assert all(400 <= len(row["text"]) <= 4000 for row in REPORTS if row["text"])


@pytest.mark.parametrize("task", TASKS, ids=[task["id"] for task in TASKS])
def test_gold_is_complete_and_weights_sum_to_one(task: dict[str, Any]) -> None:
    gold = task["gold"]["race"]
    assert set(gold["dimension_weight"]) == set(gold["criterions"]) == DIMENSIONS
    assert sum(gold["dimension_weight"].values()) == pytest.approx(1, abs=1e-9)
    for criteria in gold["criterions"].values():
        assert 4 <= len(criteria) <= 6
        assert sum(item["weight"] for item in criteria) == pytest.approx(1, abs=1e-9)
        assert len({item["criterion"] for item in criteria}) == len(criteria)
    assert ("reference" in gold) == (task["id"] != WITHOUT_REFERENCE)


@pytest.mark.parametrize("task", TASKS, ids=[task["id"] for task in TASKS])
def test_gold_uses_the_language_of_the_task(task: dict[str, Any]) -> None:
    gold = task["gold"]["race"]
    items = [item for criteria in gold["criterions"].values() for item in criteria]
    texts = [item[key] for item in items for key in ("criterion", "explanation")]
    texts += [gold["reference"]] if "reference" in gold else []
    for text in texts:
        assert len(text) >= 4
        assert not PLACEHOLDER.search(text)
        assert bool(re.search(r"[\u4e00-\u9fff]", text)) == (task["language"] == "zh")


def test_every_url_cited_by_an_honest_system_is_in_the_snapshot() -> None:
    known = {row["url"] for row in INDEX}
    assert len(known) == len(INDEX)
    for report in REPORTS:
        if report["system"] != FABRICATING:
            assert cited(report) <= known
            assert cited(report) or not report["text"]


def test_one_system_cites_pages_outside_the_snapshot() -> None:
    known = {row["url"] for row in INDEX}
    stored = {row["url"] for row in INDEX if "file" in row}
    made_up = [report for report in REPORTS if report["system"] == FABRICATING and cited(report) - stored]
    assert len(made_up) == 5
    assert {report["task_id"] for report in made_up if cited(report) - known} == {"digital-literacy"}


def test_every_stored_page_is_cited_and_every_host_is_reserved() -> None:
    used = set().union(*map(cited, REPORTS))
    addresses = [row[key] for row in INDEX for key in ("url", "final_url") if key in row]
    assert {row["url"] for row in INDEX} <= used
    assert all((urlsplit(url).hostname or "").endswith(".example") for url in [*addresses, *used])


def test_snapshot_holds_each_kind_of_page() -> None:
    files = [row["file"] for row in INDEX if "file" in row]
    assert sorted(files) == [path.name for path in HTML]
    assert all(row["status_code"] == 200 for row in INDEX if "file" in row)
    dead = Counter(row.get("status_code", row.get("reason")) for row in INDEX if "file" not in row)
    assert set(dead) == {404, 410, "page_gone", "page_timeout"}
    assert sum("final_url" in row for row in INDEX) == 4


@pytest.mark.parametrize("path", HTML, ids=[path.name for path in HTML])
def test_page_extracts_to_its_article(path: Path) -> None:
    text = trafilatura.extract(path.read_text(encoding="utf-8"), include_comments=False) or ""
    if path.name == EMPTY_PAGE:
        assert not text
        return
    assert len(text) >= 200
    assert not PLACEHOLDER.search(text)


def test_configuration_points_to_shipped_files() -> None:
    config = yaml.safe_load((EXAMPLE / "adjudge.yaml").read_text(encoding="utf-8"))
    assert config["protocols"] == ["race", {"name": "fact", "extraction": "markers"}]
    assert (EXAMPLE / config["tasks"]).is_file()
    assert all(list(EXAMPLE.glob(pattern)) for pattern in config["reports"])
    assert (EXAMPLE / config["fetch"]["snapshot"] / "index.jsonl").is_file()
