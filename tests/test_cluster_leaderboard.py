"""`leaderboard --cluster` gives the leaderboard of one process, to the last bit."""

import json

import msgspec
import numpy as np
import pytest

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.runs.board import Standing
from adjudge.engine.runs.run import Run
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.statistics.on_ray import statistics_on
from adjudge.engine.statistics.placement import Statistics
from tests.made_runs import made_run
from tests.worlds import world

ray = pytest.importorskip("ray")

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Ray's pipes to its processes


@pytest.fixture(scope="module")
def statistics():
    with statistics_on("local") as found:
        yield found


def test_leaderboard_is_the_same(tmp_path, statistics):
    first = evaluate(RunConfig.load(world(tmp_path / "a", systems=4, tasks=9))).out
    second = evaluate(RunConfig.load(world(tmp_path / "b", systems=3, tasks=9))).out
    (tmp_path / "b" / "run").rename(tmp_path / "b" / "other")
    runs = [first, second.replace("run", "other")]
    assert msgspec.json.encode(build_leaderboard(runs, statistics)) == msgspec.json.encode(
        build_leaderboard(runs)
    )


@pytest.mark.parametrize("on_ray", [False, True])
def test_adding_a_system_changes_nobody_elses_figures(tmp_path, statistics, on_ray):
    used = statistics if on_ray else Statistics()
    first = evaluate(RunConfig.load(world(tmp_path / "a", systems=3, tasks=9))).out
    config = world(tmp_path / "b", systems=4, tasks=9)
    second = evaluate(RunConfig.load(config, out=str(tmp_path / "b" / "more"))).out
    alone, beside = (
        {
            (metric.protocol, metric.metric, row.system): row
            for metric in build_leaderboard([run], used).metrics
            for row in metric.standings
        }
        for run in (first, second)
    )
    among_others = {"rank", "midrank", "place", "rank_low", "rank_high", "tier"}
    figures = [name for name in Standing.__struct_fields__ if name not in among_others]
    assert {system for _, _, system in beside.keys() - alone.keys()} == {"system3"}
    for key, row in alone.items():
        for one in figures:
            was, now = getattr(row, one), getattr(beside[key], one)
            assert now == (pytest.approx(was, abs=1e-9) if isinstance(was, float) else was), (key, one)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_resamples_drawn_on_the_cluster_are_the_same(statistics, missing):
    random = np.random.default_rng(0)
    values = np.round(random.normal(50, 10, (7, 60)), 2)
    values[random.random(values.shape) < missing] = np.nan
    here, there = Statistics().resample(values, None, 3), statistics.resample(values, None, 3)
    for name in here.__struct_fields__:
        np.testing.assert_equal(getattr(there, name), getattr(here, name))


def test_invalid_run_gives_one_line(tmp_path, statistics):
    run = Run.open(made_run(tmp_path / "run", ["a", "b"], 2))
    (run.folder / "scores.parquet").unlink()
    with pytest.raises(UsageError) as error:
        statistics.read([run])
    assert "\n" not in str(error.value) and "scores.parquet" in str(error.value)
    assert json.dumps(str(run.folder))[1:-1] in str(error.value)
