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
from tests.examples import shipped
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


@pytest.fixture(scope="module")
def alone_and_beside(tmp_path_factory):
    """The quickstart without one of its systems, and with it: RACE and FACT, groups, samples, what is missing."""
    example = shipped("quickstart", tmp_path_factory.mktemp("beside"))
    rows = [json.loads(line) for line in (example / "reports/borealis.jsonl").read_text().splitlines()]
    more = [{**row, "system": "atlas", "sample": 1} for row in rows[:4]]
    with (example / "reports/atlas.jsonl").open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(row) + "\n" for row in more))
    found = []
    for systems in (["atlas", "borealis", "cinder"], ["atlas", "borealis", "cinder", "delta"]):
        reports = [str(example / f"reports/{system}.jsonl") for system in systems]
        out = str(example / f"run of {len(systems)}")
        found.append(evaluate(RunConfig.load(example / "adjudge.yaml", reports=reports, out=out)).out)
    return found


@pytest.mark.parametrize("on_ray", [False, True])
def test_adding_a_system_changes_nobody_elses_figures(alone_and_beside, statistics, on_ray):
    used = statistics if on_ray else Statistics()
    alone, beside = (figures_of(build_leaderboard([run], used, by="domain")) for run in alone_and_beside)
    assert {system for *_, system in beside.keys() - alone.keys()} == {"delta"}
    places = {place[0] for place in alone}
    assert {"all", "mean over domain", "spent", "lengths"} < places and len(places) > 8
    for place, figures in alone.items():
        assert len(figures) == len(beside[place])
        for name, was in figures.items():
            now = beside[place][name]
            assert now == (pytest.approx(was, abs=1e-9) if isinstance(was, float) else was), (place, name)


def figures_of(board):
    """All that a board says of each system by itself, by table, protocol, metric and system.

    Ranks and tiers compare systems.
    """
    tables = [("all", board.metrics)]
    for one in board.groupings:
        tables += [(f"mean over {one.attribute}", one.mean)]
        tables += [(f"{one.attribute} {group.name}", group.metrics) for group in one.groups]
    found = {}
    for table, metrics in tables:
        for metric in metrics:
            of = table, metric.protocol, metric.metric
            for row in metric.standings:
                found[(*of, row.system)] = {name: getattr(row, name) for name in FIGURES}
            if metric.detail is not None:
                for row in (*metric.detail.best_of, *metric.detail.scatter):
                    samples = {f"{type(row).__name__} {getattr(row, 'k', '')}": row}
                    found[(*of, row.system)] |= samples
                for system, values in metric.detail.by_task.items():
                    found[(*of, system)] |= dict(zip(metric.detail.tasks, values, strict=True))
    for table, of_systems in (("spent", board.spent), ("lengths", board.lengths)):
        found |= {(table, system): msgspec.structs.asdict(one) for system, one in of_systems.items()}
    return found


AMONG_OTHERS = {"rank", "midrank", "place", "rank_low", "rank_high", "tier"}
FIGURES = [name for name in Standing.__struct_fields__ if name not in AMONG_OTHERS]


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
