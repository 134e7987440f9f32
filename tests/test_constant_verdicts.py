"""A judge that says the same to everything is told of, whatever the order; one that does not is not."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.run import RunConfig
from adjudge.engine.runs.run import Run
from adjudge.engine.runs.tallies import LEAST_VERDICTS, Constant, ConstantVerdicts
from adjudge.scoring.contract.scorecard import MISSING, Evidence, Outcome, Scorecard

MET, UNMET, NOTE = Outcome.graded(2, 2), Outcome.graded(0, 2), Outcome("note", words="3 pages")


def card(outcomes: list[Outcome], protocol: str = "rubrics") -> Scorecard:
    lines = tuple(Evidence(what="w", outcome=one, judgment="0f") for one in outcomes)
    return Scorecard(
        protocol=protocol,
        system="s",
        task_id="1",
        sample=0,
        repeat=0,
        scores={},
        status="scored",
        evidence=lines,
    )


def found(cards: list[Scorecard]) -> dict[str, Constant]:
    verdicts = ConstantVerdicts()
    for one in cards:
        verdicts.take(one)
    return verdicts.result()


def test_twenty_equal_verdicts_are_told_of_by_protocol() -> None:
    cards = [
        card([MET, NOTE, MISSING]),
        *[card([MET])] * (LEAST_VERDICTS - 1),
        card([UNMET] * (LEAST_VERDICTS - 1), "draco"),
    ]
    assert found(cards) == {"rubrics": Constant("met", LEAST_VERDICTS)}
    assert found(cards[1:]) == {}
    marks = [Outcome("points", 4, 10, 4, "4 of 10")] * LEAST_VERDICTS
    assert found([card(marks)]) == {"rubrics": Constant("4 of 10 beside 4", LEAST_VERDICTS)}


@given(st.lists(st.sampled_from([MET, UNMET, NOTE]), max_size=60), st.integers(1, 7))
def test_order_and_cards_make_no_difference(outcomes: list[Outcome], size: int) -> None:
    """Only whether two verdicts differ, and how many there are."""
    cards = [card(outcomes[start : start + size]) for start in range(0, len(outcomes), size)]
    kinds = {one.kind for one in outcomes if one is not NOTE}
    count = sum(one is not NOTE for one in outcomes)
    expected = {"rubrics": Constant(*kinds, count)} if len(kinds) == 1 and count >= LEAST_VERDICTS else {}
    assert found(cards) == found(cards[::-1]) == expected


@pytest.mark.parametrize(("said", "told"), [("Kite {} is red.", False), ("Nothing.", True)])
def test_run_notes_a_judge_that_says_one_thing(said: str, told: bool, tmp_path: Path) -> None:
    tasks = [
        {"id": str(n), "prompt": "?", "gold": {"rubrics": [{"criterion": f"Kite {n} is red.", "points": 1}]}}
        for n in range(12)
    ]
    rows = [
        {"task_id": str(n), "system": system, "text": said.format(n) if system == "wren" else "None."}
        for n in range(12)
        for system in ("wren", "finch")
    ]
    for name, lines in (("tasks.jsonl", tasks), ("r.jsonl", rows)):
        (tmp_path / name).write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
    paths = {"tasks": "tasks.jsonl", "store": "store", "out": "run"}
    config = {name: str(tmp_path / path) for name, path in paths.items()}
    result = evaluate(
        RunConfig.of(config | {"reports": [str(tmp_path / "r.jsonl")], "protocols": ["rubrics"]})
    )
    notes = [note for note in result.leaderboard.notes if "verdicts are the same" in note]
    assert len(notes) == told and all("all 24 verdicts" in note and "(unmet)" in note for note in notes)
    assert bool(Run.open(str(tmp_path / "run")).record.constant) == told
