"""Progress of `adjudge evaluate`: a labelled bar on a terminal, a line now and then elsewhere."""

import io
import time

from rich.console import Console

from adjudge.engine.commands.progress import Pace, progress_on
from adjudge.engine.runs.pulse import Reading
from adjudge.scoring.contract.scorecard import Scorecard


def card(reason: str | None = None) -> Scorecard:
    return Scorecard(
        protocol="race",
        system="[bold]a",
        task_id="1",
        sample=0,
        repeat=0,
        scores={},
        status="unscored" if reason else "scored",
        reason=reason,  # type: ignore[arg-type]
    )


def test_pace_tells_the_time_left_after_a_warm_up() -> None:
    now = 0.0
    pace = Pace(4_000, clock=lambda: now)
    for _ in range(20):
        pace.count(card())
    now = 5.0
    assert str(pace) == "20 of 4,000 scorecards, 4.0 a second"
    now = 10.0
    assert str(pace) == "20 of 4,000 scorecards, 2.0 a second, 33:10 left"
    pace.count(card("judge_timeout"))
    now = 42.0
    assert str(pace) == "21 of 4,000 scorecards, 0.5 a second, 2:12:38 left, unscored: 1 judge_timeout"


def test_pace_says_what_it_costs_and_that_it_waits() -> None:
    reading = Reading(asked=7, cost=1_234.5)
    now = 0.0
    pace = Pace(100, lambda: reading, lambda: now)
    for _ in range(10):
        pace.count(card())
    now = 20.0
    assert str(pace) == "10 of 100 scorecards, 0.5 a second, cost 1,234.50, 3:00 left"
    reading = Reading(asked=8, cost=2.0, waiting=True)
    assert str(pace) == "10 of 100 scorecards, 0.5 a second, cost 2.00, waiting for the judge"


def test_lines_come_by_themselves_without_a_terminal() -> None:
    written = io.StringIO()
    with progress_on(Console(file=written, width=20), every_s=0.05) as on_start:
        step = on_start(3, Reading)
        step(card("judge_timeout"))
        deadline = time.monotonic() + 20
        while written.getvalue().count("\n") < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
    said = written.getvalue().splitlines()
    assert len(said) >= 2, "one line each time, although nothing went on"
    assert said[0].startswith("judging: 1 of 3 scorecards, ")
    assert said[0].endswith(" a second, unscored: 1 judge_timeout")


def test_a_short_run_says_nothing_without_a_terminal() -> None:
    written = io.StringIO()
    with progress_on(Console(file=written)) as on_start:
        on_start(1, Reading)(card())
    assert written.getvalue() == ""


def test_bar_on_a_terminal_is_labelled() -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=200)
    with progress_on(console) as on_start:
        step = on_start(2, Reading)
        step(card())
        step(card("judge_timeout"))
    assert "2 of 2 scorecards" in written.getvalue()
    assert "unscored: 1 judge_timeout" in written.getvalue()
