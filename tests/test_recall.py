"""Scorecards that a run takes from the store: as made anew, and never once something that decides them has changed."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import adjudge
from adjudge.engine.commands.evaluate import RunResult, evaluate
from adjudge.engine.config.run import RunConfig
from adjudge.engine.evaluation import evaluator
from adjudge.engine.evaluation.evaluator import CaseTools, Evaluator
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.store import Place
from adjudge.engine.store.journal import live_parts, open_part
from adjudge.engine.store.judgments import JUDGMENTS
from adjudge.engine.store.part import write_part
from adjudge.engine.store.parts import scan
from adjudge.engine.store.scorecards import SCORECARDS, find_cards, run_cards, score_table
from adjudge.engine.store.upkeep import compact, prune
from adjudge.engine.viewer.data.index import CardIndex
from adjudge.judges import LexicalJudge, Reply
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import ScoringProtocol
from adjudge.scoring.contract.scorecard import Scorecard
from tests.examples import shipped
from tests.worlds import lines, world

ROOT = Path(__file__).parent.parent
PAIRS = 2 * 3  # scorecards of `small`


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the scorecards that are made, by protocol."""
    counted: Counter[str] = Counter()
    score = Evaluator.score

    async def counting(
        self: Evaluator, case: Case, protocol: ScoringProtocol, tools: CaseTools | None = None
    ) -> Scorecard:
        counted[protocol.name] += 1
        return await score(self, case, protocol, tools)

    monkeypatch.setattr(Evaluator, "score", counting)
    return counted


def small(folder: Path, **settings: object) -> Path:
    lines(folder / "criteria.jsonl", ["Has a number. Yes=1, No=0", "Has a unit. Yes=2, No=0"])
    protocols = [{"name": "rubrics", "file": str(folder / "criteria.jsonl")}]
    return world(folder, systems=2, tasks=3, **{"protocols": protocols, **settings})


def run(config: Path, **changes: object) -> RunResult:
    read = msgspec.structs.replace(RunConfig.load(config), **changes)
    return evaluate(read)


def cards(config: Path, store: str = "") -> list[Scorecard]:
    """The scorecards of the last run of `config`, which had that `store`."""
    settings = RunConfig.load(config)
    return run_cards(Place.of(store or settings.store), RunRecord.read(Path(settings.out)).run)


def test_a_second_run_takes_what_it_can_and_gives_the_same(tmp_path: Path, made: Counter[str]) -> None:
    """Of all protocols that the quickstart uses, only those that read pages are scored again."""
    config = shipped("quickstart", to=tmp_path) / "adjudge.yaml"
    first = run(config)
    before, known = cards(config), dict(made)
    made.clear()
    second = run(config)
    after = cards(config)
    assert after == before
    lasting = {card.protocol for card in before if card.key}
    assert lasting and all(not card.pages for card in before if card.key)
    kept = sum(1 for card in before if card.key)
    assert made.total() == sum(known.values()) - kept
    assert (second.from_store, second.from_judge) == (first.from_store + first.from_judge, 0)


def edit(name: str, old: str, new: str) -> Callable[[Path], dict[str, Any]]:
    def change(folder: Path) -> dict[str, Any]:
        file = folder / name
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new, 1))
        return {}

    return change


def overridden(folder: Path) -> dict[str, Any]:
    shipped = next((ROOT / "prompts").glob("rubric*.en.md"))
    (folder / "prompts").mkdir()
    (folder / "prompts" / shipped.name).write_text(shipped.read_text() + "\nBe brief.\n")
    return {"prompts": str(folder / "prompts")}


CHANGES: dict[str, tuple[Callable[[Path], dict[str, Any]], int]] = {
    "nothing": (lambda folder: {}, 0),
    "a report": (edit("reports/system0.jsonl", "fact number 1", "fact number 7"), 1),
    "a prompt of a task": (edit("tasks.jsonl", "What is fact 1?", "What is fact 7?"), 2),
    "points in the gold": (edit("tasks.jsonl", '"points": 3', '"points": 4'), 2),
    "the file of criteria": (edit("criteria.jsonl", "Has a unit.", "Has units."), PAIRS),
    "a prompt's words": (overridden, PAIRS),
    "the limit of a report": (lambda folder: {"report_limit": 40}, PAIRS),
    "the share that must be answered": (lambda folder: {"min_answered": 0.5}, PAIRS),
    "a further repeat": (lambda folder: {"repeats": 2}, PAIRS),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_has_changed_is_made_anew(tmp_path: Path, made: Counter[str], name: str) -> None:
    """The run equals one with an empty store, and makes no more than what the change is about."""
    config = small(tmp_path)
    run(config)
    change, anew = CHANGES[name]
    settings = change(tmp_path)
    made.clear()
    run(config, **settings)
    assert made.total() == anew
    found = cards(config)
    empty = str(tmp_path / "empty")
    run(config, **settings, store=empty)
    assert found == cards(config, empty)


def test_other_code_makes_everything_anew(
    tmp_path: Path, made: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small(tmp_path)
    run(config)
    made.clear()
    monkeypatch.setattr(evaluator, "_code", lambda: "another version")
    assert run(config).from_judge == 0
    assert made.total() == PAIRS


def test_a_question_without_an_answer_is_asked_again(
    tmp_path: Path, made: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scorecard with a value is made anew, too, if it lacks an answer."""
    config = small(tmp_path, min_answered=0.5)
    answer = LexicalJudge.answer

    async def fails_now_and_then(self: LexicalJudge, question: Any, asked: Any) -> Reply[Any]:
        if "delta" in str(msgspec.to_builtins(question)):
            return Reply(reason="judge_refused")
        return await answer(self, question, asked)

    monkeypatch.setattr(LexicalJudge, "answer", fails_now_and_then)
    run(config)
    assert not any(card.key for card in cards(config))
    monkeypatch.setattr(LexicalJudge, "answer", answer)
    made.clear()
    again = run(config, retry_unscored=True)
    assert (made.total(), again.from_judge > 0) == (PAIRS, True)


def test_judgments_that_were_pruned_are_asked_again(tmp_path: Path, made: Counter[str]) -> None:
    """Who drops the judgments of a judge wants them gone, and not their sums kept."""
    config = small(tmp_path)
    asked = run(config).from_judge
    place = Place.of(RunConfig.load(config).store)
    prune(place, judge="lexical:3")
    made.clear()
    assert (run(config).from_judge, made.total()) == (asked, PAIRS)


def test_only_what_lacks_judgments_is_made_again(tmp_path: Path, made: Counter[str]) -> None:
    """Scorecards are looked up several at a time, and each is found or not by itself."""
    config = small(tmp_path)
    run(config)
    store = Place.of(RunConfig.load(config).store)
    gone = set(cards(config)[0].judgments[:1])
    for part in (tmp_path / "store" / "judgments").glob("*.parquet"):
        rows = pq.read_table(part)
        lost = [key.hex() in gone for key in rows["key"].to_pylist()]
        part.unlink()
        write_part(store / JUDGMENTS.name, part.name, rows.filter([not one for one in lost]), JUDGMENTS)
    expected = sum(bool(gone & set(card.judgments)) for card in cards(config))
    made.clear()
    assert run(config).from_judge == 1
    assert 0 < made.total() == expected < PAIRS


def test_scorecards_are_found_after_housekeeping(tmp_path: Path, made: Counter[str]) -> None:
    config = small(tmp_path)
    run(config)
    run(config)
    compact(Place.of(RunConfig.load(config).store))
    made.clear()
    run(config)
    assert made.total() == 0


def rows_of(config: Path) -> dict[str, list[dict[str, Any]]]:
    """The stored rows of scorecards by run."""
    found: dict[str, list[dict[str, Any]]] = {}
    for table in scan(Place.of(RunConfig.load(config).store), SCORECARDS):
        for row in table.to_pylist():
            found.setdefault(row["run"], []).append(row)
    return found


def test_a_run_of_which_nothing_changed_refers_to_its_scorecards(tmp_path: Path) -> None:
    """Its rows have the figures and no card; tables, cards, pages of the viewer and housekeeping find all."""
    config = small(tmp_path)
    run(config)
    place = Place.of(RunConfig.load(config).store)
    first_run, first, scores = (
        RunRecord.read(tmp_path / "run").run,
        cards(config),
        score_table(place, latest(config)),
    )
    run(config)
    rows = rows_of(config)
    assert {row["card"] is None for row in rows[first_run]} == {False}
    assert {row["card"] is None for row in rows[latest(config)]} == {True}
    assert len(rows[latest(config)]) == PAIRS
    for _ in range(2):
        assert cards(config) == first and score_table(place, latest(config)).equals(scores)
        assert (
            find_cards(place, latest(config), "system0", "1")
            == find_cards(place, first_run, "system0", "1")
            != []
        )
        index = CardIndex.of(place, latest(config))
        assert len(index) == PAIRS and index.find("system1", "2", 0, 0) == find_cards(
            place, first_run, "system1", "2"
        )
        assert index.verdicts_of_task("0") == CardIndex.of(place, first_run).verdicts_of_task("0") != {}
        assert sum(card is not None for _, card in index.scan(0, "system1")) == 3
        compact(place)


def test_a_scorecard_that_a_later_run_refers_to_is_not_pruned(tmp_path: Path) -> None:
    config = small(tmp_path)
    run(config)
    before, place = cards(config), Place.of(RunConfig.load(config).store)
    aged(place)
    run(config)
    prune(place, days=1)
    assert cards(config) == before
    aged(place)
    prune(place, days=1)
    assert rows_of(config) == {}


def aged(place: Place) -> None:
    """Make every scorecard ten days older."""
    folder = place / SCORECARDS.name
    for name in live_parts(folder):
        table = open_part(folder, SCORECARDS, name).read()
        times = pc.subtract(table["written_at"], pa.scalar(timedelta(days=10), pa.duration("us")))
        older = table.set_column(table.column_names.index("written_at"), "written_at", times)
        write_part(folder, name, older.cast(table.schema), SCORECARDS)


def latest(config: Path) -> str:
    return RunRecord.read(Path(RunConfig.load(config).out)).run


def test_a_text_that_cannot_be_encoded_is_scored_each_time(tmp_path: Path) -> None:
    asked = {"rubrics": ["Has a unit."], "judge": "lexical", "store": str(tmp_path)}
    assert adjudge.score(prompt="Why?", text="\ud800 42 units.", **asked)
