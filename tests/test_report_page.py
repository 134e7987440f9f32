"""The page of a report over HTTP: lines in words, criteria explained, reasons from the store, texts that defy it."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from selectolax.lexbor import LexborHTMLParser as HTMLParser

from adjudge.engine.commands.evaluate import evaluate_async
from adjudge.engine.config.run import RunConfig
from adjudge.engine.runs.items import items_of_card, label_readers
from adjudge.engine.runs.run import Run
from adjudge.engine.viewer.data.index import KINDS
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.query import ReportQuery
from adjudge.engine.viewer.pages.marked_report import Line, lines_of
from adjudge.scoring.contract.protocol import ExplainedCriterion
from adjudge.scoring.contract.scorecard import MISSING, Evidence, Outcome, Scorecard
from tests.mock_openai import MockOpenAI
from tests.viewing import quickstart, viewing
from tests.worlds import lines, world

DELTA = "system=delta&task=heat-pumps"


def made(*evidence: Evidence) -> list[Line]:
    card = Scorecard(
        protocol="p",
        system="s",
        task_id="t",
        sample=0,
        repeat=0,
        scores={},
        status="scored",
        evidence=evidence,
    )
    return lines_of(card)


@pytest.fixture(scope="module")
def mocked(tmp_path_factory) -> Path:
    """The shipped example under a judge that answers at random, with reasons."""

    async def run() -> Path:
        async with MockOpenAI() as mock:
            judge = {"backend": "openai", "url": mock.url, "model": "mock"}
            return await quickstart(tmp_path_factory.mktemp("mocked"), judge)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("outcome", "kind", "said", "has_bar"),
    [
        (Outcome.graded(3, 3), "met", "3 of 3", True),
        (Outcome.graded(1.5, 3), "partly", "1.5 of 3", True),
        (Outcome.graded(0, 3), "unmet", "0 of 3", True),
        (Outcome.graded(0, 0), "met", "no points taken away", False),
        (Outcome.graded(-4, 0), "unmet", "4 points taken away", False),
        (Outcome("supported", words="supported (in part)"), "supported", "supported (in part)", False),
        (Outcome("unmet", words="not cited"), "unmet", "not cited", False),
        (Outcome("points", 7, 10, 6, "7 of 10, reference 6"), "", "7 of 10, reference 6", True),
        (Outcome("points", 0.6, words="60%"), "", "60%", False),
        (Outcome("unmatched", words="no match"), "unmatched", "no match", False),
        (Outcome("note", words="supported by 3 of 4 hosts"), "", "supported by 3 of 4 hosts", False),
    ],
)
def test_outcome_has_a_kind_and_words(outcome: Outcome, kind: str, said: str, has_bar: bool) -> None:
    (line,) = made(Evidence(what="It has a date.", outcome=outcome, value=1.0))
    assert (line.kind, line.said, line.has_bar) == (kind, said, has_bar)
    assert not kind or (line.sign and kind in KINDS)


def test_what_is_looked_for_in_the_text_is_said_by_the_report() -> None:
    found = made(
        Evidence(what="claim: It is high.", outcome=Outcome("supported")),
        Evidence(what="claim: It is old.", outcome=MISSING, reason="judge_timeout"),
        Evidence(what="insight: It is red.", outcome=Outcome("met"), value=1.0, quote="as red as brick"),
        Evidence(what="insight: It is new.", outcome=Outcome("unmet"), value=0.0),
    )
    assert [line.looked_for for line in found] == ["It is high.", "It is old.", "as red as brick", ""]
    assert [line.group for line in found] == ["claim", "claim", "insight", "insight"]
    assert [line.is_statement for line in found] == [True, True, False, False]


def test_missing_page_of_a_statement_keeps_it_a_statement() -> None:
    (line,) = made(
        Evidence(
            what="It is high.",
            outcome=MISSING,
            url="https://www.a.example/b",
            reason="page_not_in_snapshot",
        )
    )
    assert line.is_statement and line.host == "a.example" and line.kind == "missing"


async def test_criteria_are_explained_from_the_gold(mocked: Path) -> None:
    run = OpenRun(Run.open(mocked))
    wanted = ReportQuery(system="delta", task="heat-pumps")
    (card,) = [card for card in await run.find_cards(wanted) if card.protocol == "race"]
    found = await run.explained(wanted, "race")
    assert {one.what for one in found} == {line.what for line in card.evidence}
    assert sum(one.weight for one in found) == pytest.approx(1) and all(one.explanation for one in found)
    assert await run.explained(wanted, "fact") == []
    assert await run.explained(ReportQuery(system="delta", task="tree-canopy"), "race") == []  # without gold
    await run.close()


async def test_reasons_that_the_judge_gave_stand_beside_criteria(mocked: Path) -> None:
    run = OpenRun(Run.open(mocked))
    wanted = ReportQuery(system="delta", task="heat-pumps")
    (card,) = [card for card in await run.find_cards(wanted) if card.protocol == "race"]
    judgments, _ = await run.stores()
    row = await judgments.raw(bytes.fromhex(card.evidence[0].judgment))
    await run.close()
    given = [item["analysis"] for item in msgspec.json.decode(row.answer)["items"].values()]
    assert any(given) and len(given) == len(card.evidence)
    async with viewing(mocked) as reader:
        page = await reader.page(f"report?{DELTA}&protocol=race")
        one = await reader.page(f"evidence?{DELTA}&protocol=race&n=2")
    said = [node.text() for node in page.css(".criteria li")]
    assert all(reason in text for reason, text in zip(given, said, strict=True))
    assert given[1] in one.body.text()


async def test_rubric_weights_are_shares_and_penalties_negative(tmp_path: Path) -> None:
    rubric = [{"criterion": "A.", "points": 3, "tags": ["t"]}, {"criterion": "B.", "points": 1},
              {"criterion": "C.", "points": -2}]  # fmt: skip
    lines(tmp_path / "reports" / "one.jsonl", [{"task_id": "1", "system": "s", "text": "A. It is."}])
    config = world(tmp_path, systems=0, protocols=["rubrics"])
    lines(tmp_path / "tasks.jsonl", [{"id": "1", "prompt": "p", "gold": {"rubrics": rubric}}])
    await evaluate_async(RunConfig.load(config))
    run = OpenRun(Run.open(tmp_path / "run"))
    found = await run.explained(ReportQuery(system="s", task="1"), "rubrics")
    await run.close()
    assert found == [
        ExplainedCriterion(what="A.", weight=0.75, tags=("t",)),
        ExplainedCriterion(what="B.", weight=0.25),
        ExplainedCriterion(what="C.", weight=-0.5),
    ]
    async with viewing(tmp_path / "run") as reader:
        page = await reader.page("report?system=s&task=1")
    assert "0 of 0" not in page.body.text() and "-50.00 %" in page.body.text()


@pytest.mark.parametrize(
    ("text", "said"),
    [("> " * 300 + "deep [1].", "shown as it was written"), ("", "The report is empty"), ("plain", "plain")],
)
async def test_report_that_cannot_be_rendered_is_shown_raw(tmp_path: Path, text: str, said: str) -> None:
    lines(tmp_path / "reports" / "one.jsonl", [{"task_id": "1", "system": "s", "text": text}])
    config = world(tmp_path, systems=0, protocols=[{"name": "fact", "extraction": "markers"}])
    await evaluate_async(RunConfig.load(config))
    async with viewing(tmp_path / "run") as reader:
        page = await reader.page("report?system=s&task=1")
        assert said in page.body.text()
        assert "".join(node.text() for node in page.css(".report")).strip() == text.strip()


async def test_long_report_with_many_statements_is_one_light_page(tmp_path: Path) -> None:
    said = "".join(
        f"The tower of town number {n} is {n} metres high in all seasons of the year, say those who measured it "
        f"with care and a long rope [{n % 40 + 1}].\n\n"
        for n in range(1, 601)
    )
    listed = "".join(f"{n}. Source, https://host{n}.example/a\n" for n in range(1, 41))
    text = f"{said}\n## References\n{listed}"
    lines(tmp_path / "reports" / "one.jsonl", [{"task_id": "1", "system": "s", "text": text}])
    config = world(
        tmp_path, systems=0, protocols=[{"name": "fact", "extraction": "markers"}],
        fetch={"mode": "snapshot", "snapshot": "pages"},
    )  # fmt: skip
    lines(tmp_path / "pages" / "index.jsonl", [])
    await evaluate_async(RunConfig.load(config))
    async with viewing(tmp_path / "run") as reader:
        status, body, _ = await reader.get("report?system=s&task=1")
    page = HTMLParser(body)
    assert status == 200 and len(page.css(".report a.chip")) == len(page.css(".evidence li")) >= 500
    assert len(body.encode()) < 12 * len(text)


async def test_people_stand_beside_the_judge(tmp_path: Path) -> None:
    """Labels by item and by words, agreeing and not; hostile names stay text."""
    run = await quickstart(tmp_path)
    opened = OpenRun(Run.open(run))
    [card] = [
        one
        for one in await opened.find_cards(ReportQuery(system="delta", task="heat-pumps"))
        if one.protocol == "fact"
    ]
    await opened.close()
    items = items_of_card(card, label_readers(opened.run.metrics)["fact"])
    first, second = list(items)[:2]
    judged = items[first].labelled.label
    other = next(
        label for label in items[second].labelled.kind.labels if label != items[second].labelled.label
    )
    lines(
        tmp_path / "labels.jsonl",
        [
            {"item": items[first].id, "label": judged, "rater": "anna"},
            {"item": items[first].id, "label": judged, "rater": "<b>bo"},
            {
                "system": "delta",
                "task_id": "heat-pumps",
                "what": items[second].line.what,
                "url": items[second].line.url,
                "label": other,
                "rater": "anna",
                "note": "No such figure there.",
            },
            {"item": "v0000000000000000", "label": judged, "rater": "anna"},
        ],
    )
    async with viewing(run, labels=tmp_path / "labels.jsonl") as reader:
        page = await reader.page(f"report?{DELTA}&protocol=fact")
        said = {node.attributes["data-n"]: node for node in page.css(".evidence li[data-people]")}
        assert said[str(first)].attributes["data-people"] == "agree"
        assert said[str(second)].attributes["data-people"] == "differ"
        words = said[str(first)].text()
        assert "anna" in words and "<b>bo" in words and "People agree with the judge" in words
        assert f"{other}, anna" in " ".join(said[str(second)].text().split())
        assert sum(bool(node.attributes["data-people"]) for node in said.values()) == 2
        assert page.css_first("#by-people") is not None
        alone = await reader.page(f"evidence?{DELTA}&protocol=fact&n={second}")
        assert "People differ from the judge" in alone.text()
    async with viewing(run) as reader:
        assert (await reader.page(f"report?{DELTA}&protocol=fact")).css_first("#by-people") is None
