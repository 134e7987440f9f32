"""Published figures beside measured ones, and tables as Markdown, through the command line."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from adjudge.engine.config.metrics import Name
from adjudge.engine.errors import UsageError
from adjudge.engine.statistics.published import (
    Published,
    agreement_with,
    figures_for,
    published_names,
    read_published,
)
from adjudge.engine.tables.markdown import as_markdown, markdown_table
from adjudge.engine.tables.table import Column, Table
from tests.boards import tables, unequal
from tests.commands import one_line, run
from tests.worlds import lines

PIPED = "low | *cost* [1]"


@pytest.fixture
def board(tmp_path, capsys) -> Path:
    """A run of three systems, one with Markdown in its name."""
    config = unequal(tmp_path, {"high": 0.8, "middle": 0.6, PIPED: 0.3}, tasks=12)
    assert run(capsys, "evaluate", config)[0] == 0
    return tmp_path / "run"


def csv(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


# Reading


@pytest.mark.parametrize(
    "text",
    [
        "system,metric,value\nA,overall,47.1\nB,overall,50\nB,insight,3\n",
        "\ufeffmodel,overall,insight,link\nA,47.1,-,https://a.example\nB,50%,3,\n",
    ],
)
def test_line_per_figure_and_line_per_system_are_equal(tmp_path, text):
    found = read_published(csv(tmp_path / "figures.csv", text))
    assert {(one.system, one.metric, one.value) for one in found} == {
        ("A", "overall", 47.1),
        ("B", "overall", 50.0),
        ("B", "insight", 3.0),
    }


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("name,overall\nA,1\n", "there is no column called system or model"),
        ("", "there is no column called system or model"),
        ("system,overall\nA,-\n", "no figures"),
        ("system,metric,value\nA,overall,much\n", ":2: overall: 'much' is not a number"),
        ("system,metric,value\nA,overall,inf\n", ":2: overall: 'inf' is not a number"),
        ("system,overall,link\nA,50,x\nB,49.0*,y\n", ":3: overall: '49.0*' is not a number"),
        ("system,overall\nA,1\nA,2\n", "'A' has several values of overall"),
    ],
)
def test_invalid_file_is_refused_with_a_reason(tmp_path, text, word):
    with pytest.raises(UsageError, match=re.escape(word)):
        read_published(csv(tmp_path / "figures.csv", text))


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        read_published(tmp_path / "none.csv")


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=2, max_size=12))
def test_agreement_against_scipy(pairs):
    own = {str(place): float(pair[0]) for place, pair in enumerate(pairs)}
    theirs = {**{str(place): float(pair[1]) for place, pair in enumerate(pairs)}, "only theirs": 1.0}
    found = agreement_with(own, theirs)
    x, y = np.array(pairs, float).T
    assert found.n == len(pairs)
    assert found.mean_difference == pytest.approx((x - y).mean())
    if len(set(x)) > 1 and len(set(y)) > 1:
        assert found.tau == pytest.approx(stats.kendalltau(x, y).statistic)
        assert found.rho == pytest.approx(stats.spearmanr(x, y).statistic)
        assert found.pearson == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-9)
    else:
        assert (found.tau, found.rho, found.pearson) == (None, None, None)


# Beside measured figures


def test_published_figures_appear_beside_measured_ones(board, tmp_path, capsys):
    file = csv(tmp_path / "figures.csv", "system,score\nmiddle,55\nhigh,77\nelsewhere,90\n")
    code, out, error = run(capsys, "leaderboard", board, "--published", file, "--out", tmp_path / "beside")
    assert code == 0, error
    assert "published" in out and "2 systems in both; Kendall's tau 1.00" in out
    found = json.loads((tmp_path / "beside" / "leaderboard.json").read_bytes())
    metric = next(one for one in found["metrics"] if one["metric"] == "score")
    assert metric["published"] == {"middle": 55.0, "high": 77.0, "elsewhere": 90.0}
    values = {row["system"]: row["value"] * metric["scale"] for row in metric["standings"]}
    difference = (values["middle"] - 55 + values["high"] - 77) / 2
    assert metric["published_agreement"]["mean_difference"] == pytest.approx(difference)
    assert all(not one["published"] for one in found["metrics"] if one["metric"] != "score")
    beside = next(
        table
        for table in tables((tmp_path / "beside" / "leaderboard.md").read_text())
        if table[0] == ["system", "here", "published", "difference"]
    )
    assert {row[0]: row[2] for row in beside[2:]} == {
        "high": "77.00",
        "middle": "55.00",
        PIPED: "-",
        "elsewhere": "90.00",
    }


def test_figures_of_an_unknown_metric_are_refused(board, tmp_path, capsys):
    file = csv(tmp_path / "figures.csv", "system,elegance\nhigh,77\n")
    code, out, error = run(capsys, "leaderboard", board, "--published", file)
    assert (code, out) == (2, "")
    assert "rubrics.score" in one_line(error)


# As Markdown


def test_leaderboard_markdown_equals_its_file(board, capsys):
    code, out, _ = run(capsys, "leaderboard", board, "--markdown")
    assert code == 0 and out == (board / "leaderboard.md").read_text()
    ranking = tables(out)[0]
    assert [row[2] for row in ranking[2:]] == ["high", "middle", PIPED]


def test_comparison_and_agreement_markdown_match_json(board, tmp_path, capsys):
    compared = json.loads(run(capsys, "compare", board, "high", PIPED, "--json")[1])["metrics"]
    code, out, _ = run(capsys, "compare", board, "high", PIPED, "--markdown")
    (table,) = tables(out)
    assert code == 0 and out.startswith(
        "### high minus low \\| \\*cost\\* \\[1\\], on the tasks scored for both\n\n|"
    )
    assert [row[0] for row in table[2:]] == [f"{one['protocol']}.{one['metric']}" for one in compared]
    assert [row[8] for row in table[2:]] == [str(one["n_used"]) for one in compared]
    ratings = [
        {"task_id": f"task{task}", "system": system, "rater": rater, "metric": "score", "value": task % 3}
        for task in range(12)
        for system in ("high", "middle", PIPED)
        for rater in ("a", "b")
    ]
    human = lines(tmp_path / "human.jsonl", ratings)
    code, out, error = run(capsys, "agreement", board, "--human", human, "--markdown")
    assert code == 0, error
    (table,) = tables(out)
    assert table[2][0] == "rubrics.score" and re.fullmatch(
        r"-?\d\.\d{3} -?\d\.\d{3} to -?\d\.\d{3}", table[2][1]
    )


def test_attacks_print_as_markdown(capsys):
    code, out, _ = run(capsys, "attack", "--markdown")
    (table,) = tables(out)
    assert code == 0 and table[-1][0] == "all" and "attacks on lexical" in out and "flipped by: " in out


def test_json_and_markdown_exclude_each_other(board, capsys):
    assert run(capsys, "compare", board, "high", "middle", "--json", "--markdown")[0] == 2


@given(st.lists(st.lists(st.text(max_size=12), min_size=2, max_size=2), min_size=1, max_size=4))
def test_any_text_stays_in_its_cell(rows):
    made = Table.of(columns=(Column("a"), Column("b")), blocks=[rows])
    for text in (markdown_table(("a", "b"), rows), as_markdown(made)):
        (table,) = tables(text)
        assert len(table) == len(rows) + 2


# As papers spell them


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("Comp.", "race.comprehensiveness"),
        ("Depth", "race.insight"),
        ("Instruction-Following", "race.instruction_following"),
        ("Overall", "race.overall"),
        ("C. Acc.", "fact.c_acc_code"),
        ("Eff. c.", "fact.e_cit_code"),
        ("E. Cit.", "fact.e_cit_code"),
        ("Prec", "livedr.precision"),
        ("F1", "livedr.f1"),
        ("IR_UF", "dr3.ir_uf"),
        ("DQ", "dr3.dq"),
        ("Avg.", "dr3.average"),
        ("InteScore", "rigorous.integrated"),
        ("C/Token", "rigorous.contribution_per_token"),
    ],
)
def test_names_of_papers_stand_for_ours(name, metric):
    others = [
        "race.overall",
        "race.insight",
        "fact.c_acc",
        "fact.e_cit",
        "livedr.f1_eq1",
        "dr3.ir",
        "race.total",
    ]
    ours = Name(*metric.split(".", 1))
    known = [ours, *(Name(*other.split(".", 1)) for other in others if other != metric)]
    for said in (name, metric, ours.metric):
        assert published_names([Published("A", said, 1.0)], known) == {said: ours}
    assert published_names([Published("A", name, 1.0)], known[1:]) == {name: None}


def test_our_own_name_goes_before_a_paper_s():
    figures = [
        Published("A", "C. Acc.", 75.0),
        Published("A", "c_acc_code", 80.0),
        Published("B", "c_acc", 1.0),
    ]
    assert figures_for(figures[:2], Name("fact", "c_acc_code"), ["A"]) == {"A": 80.0}
    known = [Name("fact", "c_acc"), Name("fact", "c_acc_code")]
    assert published_names(figures, known) == {"C. Acc.": known[1], "c_acc_code": known[1], "c_acc": known[0]}


def test_systems_are_found_however_they_are_spelled():
    figures = [Published(name, "overall", 1.0) for name in ("OpenAI Deep-Research", "x.1", "Elsewhere")]
    assert figures_for(figures, Name("race", "overall"), ["openai-deepresearch", "X1", "x 1"]).keys() == {
        "openai-deepresearch",
        "x.1",
        "Elsewhere",
    }


def test_system_that_is_only_published_has_a_row(board, tmp_path, capsys):
    file = csv(tmp_path / "figures.csv", "system,Score,elegance\nMiddle,55,1\nelsewhere,90,2\nfar,95,3\n")
    code, out, error = run(capsys, "leaderboard", board, "--published", file, "--out", tmp_path / "beside")
    assert code == 0, error
    assert "published: left out, no metric of these runs: elegance" in out
    ranking = tables((tmp_path / "beside" / "leaderboard.md").read_text())[0]
    names = [row[ranking[0].index("system")] for row in ranking[2:]]
    assert names == ["high", "middle", PIPED, "far", "elsewhere"]
    shown = {row[2]: row[ranking[0].index("published")] for row in ranking[2:]}
    assert shown == {"high": "-", "middle": "55.00", PIPED: "-", "far": "95.00", "elsewhere": "90.00"}
    assert 'data-system="elsewhere"' in (tmp_path / "beside" / "leaderboard.html").read_text()
