"""Tables of the terminal at every width, the sentence under a comparison, and the words of a plan."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from adjudge.engine.commands.agreement import agreement_said, agreement_table
from adjudge.engine.commands.check import check, check_table
from adjudge.engine.commands.compare import (
    Comparison,
    PairedMetric,
    compare,
    comparison_said,
    comparison_table,
)
from adjudge.engine.statistics import agreement as agreement_module
from adjudge.engine.statistics.agreement import MetricAgreement, with_run
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.tables.cells import rounded
from adjudge.engine.tables.standings import rankings, standings
from adjudge.engine.tables.table import Column, Table
from adjudge.engine.tables.terminal import Terminal, on_terminal
from adjudge.judges import Question
from adjudge.judges.judgment import Probe
from adjudge.judges.published import PublishedQuestion
from adjudge.scoring.contract.protocol import installed_protocols, published_protocols
from tests.boards import folded
from tests.commands import run
from tests.made_runs import made_run
from tests.viewing import QUICKSTART

LONG = ("a-lab/the-long-name-of-a-model-2026-11-23-preview-high", "模型甲的一个相当长的名字", "short")


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """How intervals are shown does not depend on how well they are estimated."""
    monkeypatch.setattr(agreement_module, "RESAMPLES", 20)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_run(tmp_path_factory.mktemp("tables") / "run", LONG, 40)


def printed(table: Table, width: int) -> str:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    console.print(on_terminal(table, width))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_words_between_colons_are_no_pictures() -> None:
    console = Terminal(width=100, file=io.StringIO(), highlight=False)
    console.print("left out: reports.jsonl:100: not JSON", markup=False)
    console.print(on_terminal(Table.of(columns=(Column("system", words=True),), blocks=[[(":fire:",)]]), 100))
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert "jsonl:100:" in said
    assert ":fire:" in said


@pytest.mark.parametrize("width", [80, 120, 200])
def test_tables_keep_names_and_intervals_at_any_width(made: Path, width: int) -> None:
    board = build_leaderboard([made])
    ranking = rankings(board.metrics)[0]
    compared, agreed = compare(made, LONG[0], "short"), with_run(made, made)
    checked = check(made, made, system=LONG[0], against="short")
    tables = {
        standings(ranking).without("tier"): [
            *(f"[{100 * row.low:.2f}, {100 * row.high:.2f}]" for row in ranking.head.standings),
        ],
        comparison_table(compared): [
            f"{row.low * row.scale:.2f} to {row.high * row.scale:.2f}" for row in compared.metrics
        ],
        check_table(checked): [f"{row.low:.2f} to {row.high:.2f}" for row in checked.metrics],
        agreement_table(agreed): [f"{row.protocol}.{row.metric}" for row in agreed],
    }
    for table, intervals in tables.items():
        text = printed(table, width)
        assert max(map(cell_len, text.splitlines())) <= width and "…" not in text
        assert all(" ".join(one.split()) in text for one in intervals)
        lost = [
            column.name for column in table.shown.columns if not column.joined and column.name not in text
        ]
        assert not lost or f"not shown at {width} columns: " in " ".join(text.split())
    for name in LONG:
        assert name in folded(printed(next(iter(tables)), width))


def test_narrow_table_names_what_it_leaves_out(made: Path) -> None:
    ranking = rankings(build_leaderboard([made]).metrics)[0]
    text = " ".join(printed(standings(ranking), 80).split())
    assert "not shown at 80 columns: " in text and "see leaderboard.csv or --json" in text
    said = text.partition("not shown at 80 columns: ")[2].partition("; see")[0].split(", ")
    known = [column.name for column in standings(ranking).columns]
    assert set(said) <= set(known) and "scored" not in text.partition("not shown")[0]
    assert "not shown" not in printed(standings(ranking), 400)


@given(st.lists(st.text(max_size=12), min_size=3, max_size=3), st.integers(20, 200))
def test_sheet_leaves_out_only_what_is_spare(cells: list[str], width: int) -> None:
    columns = (Column("name", words=True), Column("value"), Column("more", spare=1))
    table = on_terminal(Table.of(columns=columns, blocks=[[cells]]), width)
    headers = [str(column.header) for column in table.columns]
    assert headers[:2] == ["name", "value"]
    assert (len(headers) == 2) == ("not shown" in str(table.caption))


def paired(**fields: Any) -> PairedMetric:
    given: dict[str, Any] = dict.fromkeys(
        ("mean_a", "mean_b", "difference", "low", "high", "p", "t", "t_p", "holm_p", "wilcoxon_p")
    )
    counts = {"cohens_d": None, "n_used": 40, "n_only_a": 0, "n_only_b": 0}
    named = {"protocol": "race", "metric": "overall", "scale": 100.0, "headline": True}
    return PairedMetric(**(given | counts | named | fields))


def said(**fields: Any) -> str:
    return comparison_said(Comparison(run="run", a="A", b="B", metrics=(paired(**fields),)))


def test_comparison_ends_in_one_sentence() -> None:
    sure = {"difference": 0.031, "low": 0.012, "high": 0.05, "t_p": 0.001, "holm_p": 0.003}
    assert said(**sure) == (
        "A scores 3.10 higher than B on race overall (95 % interval 1.20 to 5.00, p = 0.003 after Holm)."
    )
    worse = {"difference": -0.031, "low": -0.05, "high": -0.012, "t_p": 1e-9, "holm_p": 1e-8}
    assert said(**worse) == (
        "A scores 3.10 lower than B on race overall (95 % interval 1.20 to 5.00, p < 0.001 after Holm)."
    )
    chance = {"difference": 0.031, "low": -0.01, "high": 0.07, "t_p": 0.2, "holm_p": 0.4}
    assert "3.10 higher than B on race overall, which may be chance (95 % interval -1.00 to 7.00" in said(
        **chance
    )
    assert said(difference=0.0, low=0.0, high=0.0) == (
        "A and B score the same on race overall, on the mean of 40 tasks."
    )
    assert said(n_used=0) == "no task is scored for both A and B on race overall."
    assert "on 1 task only, too few" in said(difference=0.5, n_used=1)
    assert "(lower is better)" in said(**sure, lower_is_better=True)
    assert "0.50 higher than B on race overall, on 5 tasks only, too few" in said(difference=0.005, n_used=5)
    unsure = {"difference": 0.031, "holm_p": 0.4}  # equal differences have no interval
    assert said(**unsure).endswith("which may be chance (p = 0.400 after Holm).")
    instead = "in common that has a value for each task; `adjudge leaderboard` ranks them."
    assert said(exploratory=True) == f"A and B have no ranking metric {instead}"
    assert comparison_said(Comparison(run="run", a="A", b="B", metrics=())) == (
        f"A and B have no metric {instead}"
    )


def agreement(**fields: Any) -> MetricAgreement:
    names = [
        name
        for name in MetricAgreement.__struct_fields__
        if name not in ("intervals", "left_out", "rankings")
    ]
    counts = {"n_systems": 3, "n_cases": 30, "n_pairs": 90, "n_tasks_kept": 30, "n_raters": 2}
    given: dict[str, Any] = {**dict.fromkeys(names), "protocol": "race", "metric": "overall"} | counts
    return MetricAgreement(**(given | fields))


def test_agreement_ends_in_one_sentence() -> None:
    whole = agreement(par=0.713, par_people=0.68, intervals={"par": (0.65, 0.78)})
    assert agreement_said([whole], "people") == (
        "by race overall the judge orders 71.3% of 90 pairs of reports as people would (95 % interval 65.0% to 78.0%, "
        "people among themselves 68.0%)."
    )
    assert agreement_said([agreement(n_systems=1, n_pairs=0)], "people") == (
        "by race overall no two reports on a task can be compared, with 1 system."
    )
    assert "no report has a score" in agreement_said([agreement(n_cases=0)], "the other judge")
    assert agreement_said([], "people") == "No metric was rated."


def test_compare_and_agreement_print_their_sentence(made: Path, capsys: Any) -> None:
    code, out, _ = run(capsys, "compare", made, LONG[0], "short")
    assert code == 0 and f"{LONG[0]} scores " in out.rstrip().splitlines()[-1]
    code, out, _ = run(capsys, "compare", made, LONG[0], "short", "--markdown")
    assert code == 0 and "scores " in out.rstrip().splitlines()[-1] and "not shown" not in out
    code, out, _ = run(capsys, "agreement", made, "--other", made)
    assert code == 0 and "the judge orders 100.0% of" in out.rstrip().splitlines()[-1]


def test_plan_uses_the_words_of_the_protocols(tmp_path: Path, capsys: Any) -> None:
    options = ("plan", QUICKSTART, "--store", tmp_path / "store")
    code, out, _ = run(capsys, *options)
    assert code == 3 and "marks by criterion beside the reference" in out and "PairMarks" not in out
    code, out, _ = run(capsys, *options, "--json")
    found = json.loads(out)
    assert found["words"].keys() == found["questions"].keys()
    assert found["words"]["PairMarks"] == "marks by criterion beside the reference"


def every(kind: type) -> set[type]:
    return {kind}.union(*(every(one) for one in kind.__subclasses__()))


def test_every_question_says_what_it_asks_for() -> None:
    for _, load in (*installed_protocols(), *published_protocols()):
        load()
    bases = {"Items", "ListedProblems", "Numbered", "PublishedQuestion", "Question", "PublishedPartClean"}
    shipped = [one for one in every(Question) if one.__module__.startswith("adjudge.scoring.")]
    lacking = [one for one in shipped if "words" not in vars(one) and one.__name__ not in bases]
    assert len(shipped) > 30 and lacking == []
    for one in shipped:
        assert len(one.words) <= 60 and not one.words.endswith("."), one
    assert Probe.words == PublishedQuestion.words == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (516.015, "516"),
        (0.0123456, "0.01235"),
        (4.5, "4.5"),
        (123_456.7, "123,457"),
        (-2.0, "-2"),
    ],
)
def test_resources_have_four_digits(value: float, text: str) -> None:
    assert rounded(value) == text
