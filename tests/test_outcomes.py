"""Outcomes of evidence: every protocol's have a kind from the closed list, and old scorecards are read as if typed."""

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.run import RunConfig
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.store.cards import OldCard, read_card, read_counts, stored, unread_card, whole
from adjudge.engine.store.place import Place
from adjudge.engine.store.scorecards import run_cards
from adjudge.engine.viewer.data.index import KINDS, Verdicts
from adjudge.engine.viewer.data.marked_text import KINDS as MARKS
from adjudge.scoring.contract.protocol import installed_protocols
from adjudge.scoring.contract.scorecard import Evidence, Outcome, OutcomeKind, Scorecard, count_kinds
from tests.examples import shipped, tracked
from tests.viewing import viewing
from tests.worlds import CRITERIA, lines, world

ROOT = Path(__file__).parents[1]
CLOSED = frozenset(get_args(OutcomeKind))
EXAMPLES = sorted(path.parent.name for path in tracked() if path.name == "adjudge.yaml")
WORLDS: dict[str, list[Any]] = {
    "rler": ["rler"],
    "pairwise": ["pairwise"],
    "tree": ["tree"],
    "keypoints": ["keypoints"],
    "race, pointwise": [{"name": "race", "variant": "pointwise"}],
    "race, vanilla": [{"name": "race", "variant": "vanilla"}],
}
SAID = {
    "deepresearch-bench-2": {"met", "unmet", "blocked"},
    "dr3": {"met", "partly", "unmet", "supported", "unsupported", "missing"},
    "draco": {"met", "unmet"},
    "drmi": {"matched", "unmatched", "true", "false", "not_stated", "note"},
    "healthbench": {"met", "unmet"},
    "livedrbench": {"matched", "unmatched", "points", "note"},
    "liveresearchbench": {"met", "unmet", "points", "problem"},
    "quickstart": {"points", "supported", "unsupported", "unknown", "unreachable", "missing", "note"},
    "researchrubrics": {"met", "partly", "unmet"},
    "rigorous": {"met", "partly", "unmet", "points", "note"},
    "rubrics": {"met", "partly", "unmet"},
    "rler": {"met", "partly", "unmet"},
    "pairwise": {"won", "tied", "lost"},
    "tree": {"met", "unmet"},
    "keypoints": {"met", "unmet", "problem"},
    "race, pointwise": {"points"},
    "race, vanilla": {"points"},
}  # fmt: skip
"""What the embedded judge's verdicts come to, at most."""


@pytest.fixture(scope="module")
def cards_of(tmp_path_factory: pytest.TempPathFactory) -> Any:
    @cache
    def made(name: str) -> list[Scorecard]:
        folder = tmp_path_factory.mktemp("outcomes")
        if name in WORLDS:
            config = world(folder, systems=2, tasks=2, protocols=WORLDS[name], fetch={"mode": "off"})
            gold = {
                "rubrics": [{**one, "points": abs(one["points"])} for one in CRITERIA[:3]],
                "race": RACE,
                "tree": {"children": [{"criterion": one["criterion"]} for one in CRITERIA[:3]]},
                "keypoints": [{"point": one["criterion"]} for one in CRITERIA[:3]],
            }
            lines(
                folder / "tasks.jsonl", [{"id": str(n), "prompt": f"Fact {n}?", "gold": gold} for n in (0, 1)]
            )
        else:
            config = shipped(name) / "adjudge.yaml"
        evaluate(RunConfig.load(config, out=str(folder / "run"), store=str(folder / "store")))
        record = RunRecord.read(folder / "run")
        return run_cards(Place.of(record.config.store), record.run)

    return made


RACE = {
    "reference": "Fact number 0.",
    "dimension_weight": {"comprehensiveness": 0.4, "insight": 0.3, "instruction_following": 0.2, "readability": 0.1},
    "criterions": {
        name: [{"criterion": f"Says the {name}.", "explanation": "It must.", "weight": 1.0}]
        for name in ("comprehensiveness", "insight", "instruction_following", "readability")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", [*EXAMPLES, *WORLDS])
def test_every_line_has_a_kind_from_the_closed_list(name: str, cards_of: Any) -> None:
    found = [line for card in cards_of(name) for line in card.evidence]
    kinds = {line.outcome.kind for line in found}
    assert kinds and kinds <= SAID[name] <= CLOSED
    for line in found:
        assert isinstance(line.outcome, Outcome)
        assert line.outcome.words or line.outcome.kind in ("missing", "note"), line
        assert line.outcome.kind != "missing" or line.reason or line.outcome.words, line
        assert line.value is None or line.outcome.points in (None, line.value), line


def test_every_installed_protocol_is_among_them(cards_of: Any) -> None:
    judged = {card.protocol for name in (*EXAMPLES, *WORLDS) for card in cards_of(name) if card.evidence}
    ours = {name for name, load in installed_protocols() if load().__module__.startswith("adjudge.")}
    assert ours == judged


def worded(card: Scorecard) -> str:
    """`card` as schema 4 stored it."""
    old = msgspec.to_builtins(stored(card))
    for line in old["evidence"]:
        for name in ("kind", "points", "most", "reference"):
            del line[name]
    return json.dumps(old)


@pytest.mark.parametrize(
    "name", [*EXAMPLES, *(one for one in WORLDS if one != "keypoints")]
)  # no old card is of that
def test_old_card_is_read_as_the_protocol_says_it_today(name: str, cards_of: Any) -> None:
    for card in cards_of(name):
        old = read_card(worded(card))
        assert old == card
        counted = msgspec.json.decode(worded(card), type=OldCard)
        assert counted.counts == count_kinds(card.evidence)
        assert read_card(msgspec.json.encode(stored(card))) == card
        assert read_card(msgspec.json.encode(card)) == card  # as schemas 5 and 6 were first written
        unread = unread_card(msgspec.json.encode(stored(card)))
        assert (len(unread.evidence), *unread.evidence[:1]) == (len(card.evidence), *card.evidence[:1])
        assert whole(unread) == whole(card) == card


def test_stored_line_has_words_and_what_programs_read() -> None:
    line = Evidence(what="x", outcome=Outcome.graded(1, 3), url="u", value=1 / 3)
    card = Scorecard(
        protocol="rubrics",
        system="s",
        task_id="t",
        sample=0,
        repeat=0,
        scores={},
        status="scored",
        evidence=(line,),
    )
    [kept] = json.loads(msgspec.json.encode(stored(card)))["evidence"]
    assert kept == {
        "what": "x", "outcome": "1 of 3", "kind": "partly", "points": 1.0, "most": 3.0, "reference": None, "url": "u",
        "value": 1 / 3, "reason": "", "judgment": "", "id": "", "quote": "", "note": "", "worst": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("protocol", "line", "outcome"),
    [
        ("fact", {"outcome": "unsupported (later)"}, Outcome("unsupported", words="unsupported (later)")),
        ("fact", {"outcome": "Supported by all"}, Outcome("note", words="Supported by all")),
        ("fact", {"outcome": "", "reason": "judge_timeout"}, Outcome("missing")),
        ("dr3", {"outcome": "unsupported: no"}, Outcome("unsupported", words="unsupported: no")),
        ("dr3", {"outcome": "not in the reply"}, Outcome("missing", words="not in the reply")),
        ("dr3", {"outcome": "0.5"}, Outcome("partly", 0.5, 1.0, words="0.5")),
        ("race", {"outcome": "7 of 10, reference 6"}, Outcome("points", 7, 10, 6, "7 of 10, reference 6")),
        ("race", {"outcome": "7 of 10"}, Outcome("points", 7, 10, words="7 of 10")),
        ("rubrics", {"outcome": "-4 of 0", "value": -4.0}, Outcome("unmet", -4, 0, words="-4 of 0")),
        ("rubrics", {"outcome": "1e+06 of 2e+06", "value": 1e6}, Outcome("partly", 1e6, 2e6, words="1e+06 of 2e+06")),
        ("rubrics", {"outcome": "1.2.3 of 4"}, Outcome("note", words="1.2.3 of 4")),
        ("livedr", {"outcome": "supported by Ann", "value": 1.0}, Outcome("matched", words="supported by Ann")),
        ("livedr", {"outcome": "2"}, Outcome("points", 2, 3, words="2")),
        ("drmi", {"outcome": "true", "value": 0.0}, Outcome("true", words="true")),
        ("wordcount", {"outcome": "120 words"}, Outcome("note", words="120 words")),
        ("wordcount", {"outcome": {"kind": "note", "words": "2 of 3"}}, Outcome("note", words="2 of 3")),
    ],
)  # fmt: skip
def test_old_words_become_an_outcome(protocol: str, line: dict[str, Any], outcome: Outcome) -> None:
    made = {
        "protocol": protocol, "system": "s", "task_id": "t", "sample": 0, "repeat": 0, "scores": {},
        "status": "scored",
        "evidence": [{"what": "x: y", "outcome": "met"}, {"what": "x: y", **line}],
    }  # fmt: skip
    assert read_card(json.dumps(made)).evidence[1].outcome == outcome


def test_card_that_is_no_card_is_an_error() -> None:
    with pytest.raises(msgspec.ValidationError):
        read_card('{"protocol": "p", "evidence": [{"what": "x", "outcome": "met"}]}')
    with pytest.raises(msgspec.ValidationError):
        read_card('{"protocol": "p", "evidence": [{"what": "x", "outcome": {"kind": "splendid"}}]}')


def test_old_counts_are_read_by_todays_kinds() -> None:
    assert read_counts('{"supported": 2, "none": 1}') == {"supported": 2, "missing": 1}
    assert read_counts('{"matched": 2}') == {"matched": 2}


def test_viewer_has_a_sign_for_each_verdict() -> None:
    uncounted = {"won", "tied", "lost", "points", "problem", "note"}
    assert {*KINDS} == CLOSED - uncounted and CLOSED <= MARKS
    css = "".join(path.read_text() for path in (ROOT / "engine/tables/assets").glob("*.css"))
    assert all(f"rect.v-{kind}" in css for kind in KINDS)
    assert Verdicts.of({"true": 2, "not_stated": 1}).figure == "3"
    assert Verdicts.of({"true": 2, "matched": 1, "unmatched": 3}).figure == "1 of 4"


async def test_old_run_counts_its_verdicts() -> None:
    run = ROOT / "tests/old_run/run"
    record = RunRecord.read(run)
    cards = run_cards(Place.of(str(ROOT / "tests/old_run/store")), record.run)
    counted = Counter(line.outcome.kind for card in cards for line in card.evidence)
    assert {"supported", "unsupported", "points"} <= counted.keys() <= CLOSED
    (card,) = [
        one for one in cards if (one.protocol, one.system, one.task_id) == ("fact", "borealis", "cargo-bikes")
    ]
    async with viewing(run) as reader:
        page = await reader.page("task?task=cargo-bikes&protocol=fact")
    assert Verdicts.of(count_kinds(card.evidence)).figure in page.text()
