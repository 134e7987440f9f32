"""Verdicts overridden by people: who and why stand beside the judge's, and scores are given both ways."""

import json
import random
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import aiohttp
import pytest
from selectolax.lexbor import LexborHTMLParser as HTMLParser

from adjudge.engine.errors import UsageError
from adjudge.engine.runs.items import Item
from adjudge.engine.runs.run import Run
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.statistics.labels import with_labels
from adjudge.engine.tables.files import write_leaderboard
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.query import EvidenceQuery, ListQuery
from adjudge.engine.viewer.labelling import LabelDesk, LabelFile, Sample, worded
from adjudge.engine.viewer.pages.frame import Frame
from adjudge.engine.viewer.pages.home import board_page, home
from adjudge.engine.viewer.pages.report import evidence_page
from tests.commands import run as command
from tests.labelled import example
from tests.worlds import lines


@pytest.fixture(scope="module", params=["rubrics", "healthbench"])
def judged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return example(request.param, tmp_path_factory.mktemp("run"))


def override(item: Item, label: str) -> dict[str, str]:
    """A line as `adjudge label --edit` writes it."""
    return {
        "item": item.id,
        "label": label,
        "rater": "ann",
        "note": "The report says so <b>twice</b>.",
        "verdict": item.labelled.label,
    }


def other(item: Item, draw: random.Random) -> str:
    return draw.choice([label for label in item.labelled.kind.labels if label != item.labelled.label])


def value_of(items: list[Item], said: dict[str, str]) -> float:
    """The report's share, with what people said in the place of the judge's verdicts."""
    counted = [item.labelled for item in items if item.labelled.value is not None]
    given = [said.get(item.id) for item in items if item.labelled.value is not None]
    return sum(
        one.weight * (one.kind.labels[label] if label else one.value or 0.0)
        for one, label in zip(counted, given, strict=True)
    ) / sum(one.full for one in counted)


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_given_both_ways(judged: Run, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    items = [item for item in judged.items if item.labelled.metric]
    chosen = {item.id: other(item, draw) for item in draw.sample(items, min(5, len(items)))}
    rows = [override(item, chosen[item.id]) for item in items if item.id in chosen]
    file = lines(tmp_path / "labels.jsonl", rows)
    board = build_leaderboard([judged.folder], labels=file)
    assert {(one.people, one.rater, one.reason) for one in board.overrides} == {
        (label, "ann", "The report says so <b>twice</b>.") for label in chosen.values()
    }
    metric = next(one for one in board.metrics if any(row.edited is not None for row in one.standings))
    before = next(one for one in build_leaderboard([judged.folder]).metrics if one.metric == metric.metric)
    change: dict[str, list[float]] = defaultdict(list)
    for card, items in judged.labelled_cards():
        own = [item for item in items if item.labelled.metric == metric.metric]
        change[card.system].append(value_of(own, chosen) - value_of(own, {}) if own else 0.0)
    for row, old in zip(metric.standings, before.standings, strict=True):
        assert row.value == old.value and row.rank == old.rank
        assert row.value is not None
        assert row.edited == pytest.approx(row.value + fmean(change[row.system]))


def test_every_form_says_who_and_why(judged: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    item = next(item for item in judged.items if item.labelled.metric)
    file = lines(tmp_path / "labels.jsonl", [override(item, other(item, random.Random(1)))])
    page = write_leaderboard(build_leaderboard([judged.folder], labels=file), tmp_path / "board")
    html = HTMLParser(page.read_text())
    cells = [cell.text().strip() for cell in html.css("#overrides-table tbody tr > *")]
    assert cells[0] == item.system and cells[-2:] == ["ann", "The report says so <b>twice</b>."]
    assert "edited by people" in [head.text().strip() for head in html.css("#p0t0 thead button")]
    assert "## Verdicts overridden by people" in page.with_suffix(".md").read_text()
    assert json.loads(page.with_suffix(".json").read_bytes())["overrides"][0]["judge"] == item.labelled.label
    out = command(capsys, "leaderboard", judged.folder, "--labels", file)[1]
    assert "1 verdict was overridden by people" in " ".join(out.split())


def test_overrides_are_never_taken_for_a_sample(judged: Run, tmp_path: Path) -> None:
    items = [item for item in judged.items if item.labelled.metric]
    file = lines(tmp_path / "labels.jsonl", [override(item, other(item, random.Random(2))) for item in items])
    with pytest.raises(UsageError, match="saw the judge's verdict"):
        with_labels(judged.folder, file)
    board = build_leaderboard([judged.folder], labels=file)
    assert all(row.corrected is None for one in board.metrics for row in one.standings)


async def test_desk_takes_an_override_only_with_a_reason(judged: Run, tmp_path: Path) -> None:
    item = next(iter(judged.items))
    run = OpenRun(Run.open(judged.folder))
    assert worded(run, item.id) == [item]
    with pytest.raises(UsageError, match="no verdict has 'not said anywhere'"):
        worded(run, "not said anywhere")
    file = tmp_path / "labels.jsonl"
    desk = LabelDesk(run, Sample(worded(run, item.id), 1.0), LabelFile(file), "ann", edit=True)
    url = await desk.start(0)
    try:
        async with aiohttp.ClientSession() as session:
            async with session.get(url) as response:
                page = HTMLParser(await response.text())
            assert item.labelled.label.replace("_", " ") in page.css_first(".judged strong").text()
            fields = {
                name: page.css_first(f"[name={name}]").attributes["value"] for name in ("token", "item")
            }
            label = other(item, random.Random(3))

            async def posted(**form: str) -> int:
                async with session.post(url, data={**fields, **form}, allow_redirects=False) as response:
                    return response.status

            assert await posted(label=label) == 400
            assert await posted(label=label, note=" ") == 400
            assert await posted(label=item.labelled.label, note="It is right.") == 400
            assert file.read_text() == ""
            assert await posted(label=label, note="The page says so.") == 303
            async with session.get(url) as response:
                assert "adjudge leaderboard" in await response.text()
    finally:
        await desk.stop()
    (row,) = (json.loads(line) for line in file.read_text().splitlines())
    said = {name: row[name] for name in ("label", "verdict", "note", "rater")}
    assert said == {
        "label": label,
        "verdict": item.labelled.label,
        "note": "The page says so.",
        "rater": "ann",
    }


async def test_viewer_says_how_to_override_and_what_was(judged: Run, tmp_path: Path) -> None:
    card, items = next((card, items) for card, items in judged.labelled_cards() if items)
    item = items[0]
    query = EvidenceQuery(
        system=card.system,
        task=card.task_id,
        sample=card.sample,
        protocol=card.protocol,
        n=card.evidence.index(item.line) + 1,
    )
    file = lines(tmp_path / "labels.jsonl", [override(item, other(item, random.Random(4)))])
    run = OpenRun(Run.open(judged.folder), file)
    try:
        first = HTMLParser(await home(run, Frame("run", "judge"), ListQuery()))
        board = HTMLParser(await board_page(run))
        page = HTMLParser(await evidence_page(run, Frame("run", "judge"), query))
        still = await evidence_page(run, Frame("run", "judge", still=True), query)
    finally:
        await run.close()
    assert any("edited by people" in head.text() for head in first.css("th"))
    assert board.css_first("#overrides-table") is not None
    assert f"--edit {item.id}" in page.text() and "--edit" not in still
    assert "The report says so <b>twice</b>." in page.css_first(".people").text()
