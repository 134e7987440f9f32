"""The benchmark book: floors, tables, and the commands that make them. Nothing is timed here."""

import re
import runpy
import subprocess
from functools import partial
from pathlib import Path

import msgspec
import pytest

from benchmarks import book, goals, kept, paper_scale
from benchmarks.timing import Row, alone

ROWS = [
    Row("fast", 1.0, 3.0, "the other", 3.0, "s", 10, 5),
    Row("memory", 40.0, None, "", None, "MB", 1_000, 1),
]
RESULT = kept.Result(
    benchmark="things",
    quick=False,
    date="2026-01-01",
    commit="abc",
    hardware="a machine",
    versions={},
    seconds=2.0,
    rows=ROWS,
)


@pytest.mark.parametrize(("floor", "wrong"), [(2.9, 0), (3.0, 0), (3.1, 1)])
def test_ratio_below_its_floor_is_named(floor: float, wrong: int) -> None:
    assert len(book.below([RESULT], {"things": {"fast": floor}})) == wrong


def test_missing_row_fails() -> None:
    assert book.below([RESULT], {"things": {"slow": 0.1}, "more": {"fast": 0.1}}) == [
        "things: slow: missing, floor 0.1",
        "more: fast: missing, floor 0.1",
    ]


def test_quick_results_neither_check_nor_set_floors() -> None:
    quick = msgspec.structs.replace(RESULT, quick=True)
    assert book.below([quick], {"things": {"fast": 3.1, "slow": 0.1}}) == []
    assert book.pinned([quick], {"things": {"fast": 1.0}}, lower=True) == {"things": {"fast": 1.0}}


def test_floors_rise_automatically_and_fall_only_on_request() -> None:
    assert book.pinned([RESULT], {}, lower=False) == {"things": {"fast": 2.7}}
    assert book.pinned([RESULT], {"things": {"fast": 9.0}}, lower=False) == {"things": {"fast": 9.0}}
    assert book.pinned([RESULT], {"things": {"fast": 9.0}}, lower=True) == {"things": {"fast": 2.7}}


def test_a_limit_of_time_is_its_own_floor() -> None:
    limited = msgspec.structs.replace(
        RESULT,
        rows=[
            Row("paint", 0.3, 0.5, "aim", 1.67, "s", 1, 1),
            Row("peak", 3.0, 6.0, "aim", 2.0, "bytes", 1, 1),
        ],
    )
    before = {"things": {"paint": 1.5, "peak": 1.0}}
    assert book.pinned([limited], before, lower=False) == {"things": {"paint": 1.0, "peak": 1.8}}


def test_result_is_one_json_document_and_a_table() -> None:
    assert msgspec.json.decode(msgspec.json.encode(RESULT), type=kept.Result) == RESULT
    text = book.book([RESULT], ["a plan"])
    assert "| fast | 1 s | 3 | the other | 3 | 10 |" in text
    assert "| memory | 40 MB |  |  |  | 1,000 |" in text
    assert "`python -m benchmarks.things`: 2 s on a machine; 2026-01-01, commit abc." in text


def test_goal_is_read_from_the_worst_of_its_rows() -> None:
    found = {"things": RESULT}
    goal = partial(goals.Goal, name="speed", benchmark="things")
    assert goal(rows="fast", ratio=True, at_least=3.0).is_reached(found)
    assert not goal(rows="fast", ratio=True, at_least=3.1).is_reached(found)
    assert goal(rows="", at_most=40.0).measured(found) == 40.0
    assert not goal(rows="", at_most=39.0).is_reached(found)
    assert not goal(rows="slow", at_least=0.0).is_reached(found)
    missed = goal(rows="fast", at_most=0.5, gap="it is slow")
    command = "`python -m benchmarks.things`: fast"
    assert goals.table([missed], found)[-1] == f"| speed | 1 s | ≤ 0.5 s | {command} |"
    assert goals.table([missed], {})[-1] == f"| speed | not measured | ≤ 0.5 | {command} |"
    assert goals.table([goal(rows="fast", ratio=True, at_least=2.0)], found)[-1].startswith(
        "| speed | 3 x | ≥ 2 x |"
    )


def test_every_goal_is_measured_or_shown_by_existing_tests() -> None:
    found = {one.benchmark: one for one in kept.load()}
    for goal in goals.goals().floors:
        if goal.benchmark:
            assert goal.measured(found) is not None, goal
            assert goal.is_reached(found) != bool(goal.gap), goal
        else:
            assert goal.stated and goal.command, goal
    commands = [goal.command for goal in (*goals.goals().floors, *goals.goals().checks)]
    named = re.findall(r"test_\w+\.py", "".join(commands))
    assert len(named) > 15 and [name for name in named if not (Path(__file__).parent / name).exists()] == []


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")  # another test may import it
@pytest.mark.parametrize("name", kept.NAMES)
def test_every_benchmark_prints_its_usage(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [name, "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")
    said = capsys.readouterr().out
    assert ended.value.code == 0 and "--quick" in said and "--json" in said


def test_committed_results_reach_floors_and_match_the_readme() -> None:
    results = kept.load()
    assert {one.benchmark for one in results if not one.quick} >= set(kept.NAMES)
    assert not book.below(results, book.floors())
    assert book.README.read_text(encoding="utf-8") == book.book(results, paper_scale.lines(results))


def test_benchmark_that_fails_is_named_and_the_others_are_run(tmp_path, monkeypatch, capsys):
    def run(name: str, quick: bool) -> kept.Result:
        if name == "broken":
            raise subprocess.CalledProcessError(1, name)
        return msgspec.structs.replace(RESULT, benchmark=name)

    monkeypatch.setattr(kept, "RESULTS", tmp_path)
    monkeypatch.setattr(book, "run", run)
    monkeypatch.setattr(book, "FLOORS", tmp_path / "floors.json")
    monkeypatch.setattr(book, "README", tmp_path / "README.md")
    monkeypatch.setattr(paper_scale, "lines", lambda results: [])
    monkeypatch.setattr("sys.argv", ["book", "run", "broken", "store"])
    assert book.main() == 1 and capsys.readouterr().out == "broken: failed\n"
    assert [one.benchmark for one in kept.load()] == ["store"]


def test_quick_result_replaces_no_full_one(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "RESULTS", tmp_path)
    full, quick = (
        kept.result("store", [alone("look-ups", number, "us")], quick=bool(number), began=0.0, commit="c")
        for number in (0, 1)
    )
    assert kept.keep(quick) and kept.load() == [quick]
    assert kept.keep(full) and kept.load() == [full]
    assert not kept.keep(quick) and kept.load() == [full]
