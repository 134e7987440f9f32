"""Two judges' verdicts on the same things: a constant judge is seen, however well its scores agree."""

import json

from adjudge.engine.statistics import agreement
from adjudge.engine.statistics.verdicts import _compared
from tests.commands import run
from tests.examples import shipped


def test_figures_are_those_of_a_table_done_by_hand():
    found = _compared("p", [("yes", "yes")] * 4 + [("yes", "no")] * 2 + [("no", "no")] * 3 + [("no", "yes")])
    assert (found.n, found.same, found.commonest, found.share, found.constant) == (10, 0.7, "yes", 0.6, 0.5)
    assert found.kappa is not None and abs(found.kappa - (0.7 - 0.5) / 0.5) < 1e-12


def test_constant_verdicts_have_no_kappa_above_zero():
    assert _compared("p", [("yes", "yes"), ("yes", "no")]).kappa == 0.0
    assert _compared("p", [("yes", "yes")] * 3).kappa is None


def test_agreement_of_two_runs_begins_with_their_verdicts(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(agreement, "RESAMPLES", 20)
    for name in ("one", "two"):
        store = ("--store", tmp_path / "store", "--out", tmp_path / name)
        assert run(capsys, "evaluate", shipped("rubrics") / "adjudge.yaml", "--judge", "lexical", *store)[
            0
        ] in (0, 3)
    code, out, _ = run(capsys, "agreement", tmp_path / "one", "--other", tmp_path / "two")
    assert code == 0 and out.index("Verdicts of both judges") < out.index("Both rankings")
    found = json.loads(run(capsys, "agreement", tmp_path / "one", "--other", tmp_path / "two", "--json")[1])
    (verdicts,) = [row["verdicts"] for row in found if row["verdicts"]]
    assert verdicts["n"] > 4 and verdicts["same"] == 1.0
