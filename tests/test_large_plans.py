"""The plan of a run too large to try each of its scorecards: estimated from a draw of them, and said to be."""

import pytest

from adjudge.engine.commands import plan as planning
from adjudge.engine.commands.main import main
from adjudge.engine.commands.plan import plan
from adjudge.engine.config.run import RunConfig
from adjudge.engine.formats.dataset import drawn
from tests.worlds import world


def test_figures_of_a_large_run_are_near_those_of_all(tmp_path, monkeypatch, capsys):
    file = world(tmp_path, systems=8, tasks=25)
    exact = plan(RunConfig.load(file))
    monkeypatch.setattr(planning, "_MOST_TRIED", 40)
    near = plan(RunConfig.load(file))
    assert (exact.tried, near.tried) == (200, 40) and near.scorecards == exact.scorecards == 200
    assert near.questions == exact.questions and sum(exact.questions.values()) == 2_000
    assert near.prompt_tokens == pytest.approx(exact.prompt_tokens, rel=0.02)
    assert near.shared_tokens == pytest.approx(exact.shared_tokens, rel=0.02)
    assert plan(RunConfig.load(file)) == near
    with pytest.raises(SystemExit):
        main(["plan", str(file)])
    assert "estimated from 40 of these scorecards, drawn at random" in capsys.readouterr().out


def test_plan_of_a_small_run_looks_at_each_scorecard(tmp_path, capsys):
    file = world(tmp_path)
    assert plan(RunConfig.load(file)).tried == 20
    with pytest.raises(SystemExit):
        main(["plan", str(file)])
    assert "estimated from" not in capsys.readouterr().out


def test_what_is_stored_and_unscored_is_in_proportion(tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "_MOST_TRIED", 40)
    file = world(tmp_path, systems=8, tasks=25)
    with pytest.raises(SystemExit):
        main(["evaluate", str(file)])
    found = plan(RunConfig.load(file))
    assert found.stored == sum(found.questions.values()) and not found.prompt_tokens
    lacking = world(tmp_path / "lacking", systems=8, tasks=25, protocols=["race"])
    found = plan(RunConfig.load(lacking))
    assert found.unscored == {"gold_missing": 200}


@pytest.mark.parametrize(("share", "many"), [(1.0, 100), (2.0, 100), (0.25, 25), (0.001, 1)])
def test_draw_is_a_share_and_the_same_each_time(share, many):
    every = list(range(100))
    found = drawn(every, share)
    assert len(set(found)) == many and found == drawn(every, share)
    assert drawn([], 0.5) == []
