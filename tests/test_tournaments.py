"""`pairwise`: systems compared by their reports, and the strengths that come of it."""

import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from adjudge.engine.commands.evaluate import evaluate, evaluate_async
from adjudge.engine.commands.export import export_run
from adjudge.engine.commands.plan import plan
from adjudge.engine.commands.show import find_evidence
from adjudge.engine.config.run import RunConfig, Select
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.errors import LimitReached
from adjudge.engine.runs.board import Leaderboard, MetricBoard
from adjudge.engine.runs.record import RunRecord
from adjudge.engine.runs.run import Run
from adjudge.engine.runs.scores import compared
from adjudge.engine.statistics.build import build_leaderboard
from adjudge.engine.statistics.comparisons import ELO, comparison_boards
from adjudge.judges import ScriptedJudge
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.protocol import score_case
from adjudge.scoring.kernels.base.arrays import KernelError
from adjudge.scoring.kernels.comparison.strengths import bradley_terry, most_telling, tournament
from adjudge.scoring.pairwise.pairwise import Better, Pairwise
from tests.arenas import arena
from tests.mock_openai import MockOpenAI
from tests.tools import DirectTools
from tests.viewing import viewing
from tests.worlds import lines

TASK = Task(id="1", prompt="How do storks migrate?")


def case(own: str, rival: str) -> Case:
    return Case(
        task=TASK,
        report=Report(task_id="1", system="a", text=own),
        rival=Report(task_id="1", system="b", text=rival),
    )


def board_of(found: Leaderboard, metric: str = "strength") -> MetricBoard:
    return next(one for one in found.metrics if (one.protocol, one.metric) == ("pairwise", metric))


def comparisons(run: Path) -> list[dict[str, Any]]:
    found = compared(Run.open(run).scores)
    return [] if found is None else [row for row in found.to_pylist() if row["metric"] == "won"]


async def scored(answers: Sequence[str | None], own: str = "one", rival: str = "two") -> Any:
    said = iter(answers)

    def reply(question: Any) -> Any:
        one = next(said)
        return None if one is None else Better(better=one)  # type: ignore[arg-type]

    return await score_case(Pairwise(), case(own, rival), DirectTools(ScriptedJudge(reply)))


@pytest.mark.parametrize(
    ("answers", "won"),
    [
        (["first", "second"], 1.0),
        (["first", "first"], 0.5),
        (["second", "first"], 0.0),
        (["tie", "tie"], 0.5),
        (["first", "tie"], 0.75),
    ],
)
async def test_comparison_is_the_mean_of_both_orders(answers: list[str], won: float) -> None:
    card = await scored(answers)
    assert card.scores["won"] == won
    assert (card.system, card.rival, card.status) == ("a", "b", "scored")


async def test_comparison_with_one_answer_is_missing() -> None:
    card = await scored(["first", None])
    assert card.scores == {"won": None, "won_shown_first": 1.0, "won_shown_last": None}
    assert (card.bounds["won"].low, card.bounds["won"].high) == (0.5, 1.0)


@pytest.mark.parametrize(("own", "rival", "won"), [("", "two", 0.0), ("one", " ", 1.0), ("", "", 0.5)])
async def test_comparison_with_an_empty_report_asks_nothing(own: str, rival: str, won: float) -> None:
    card = await scored([], own, rival)
    assert card.scores["won"] == won and card.reason == "report_empty"


async def test_comparison_of_equal_texts_ties_unasked() -> None:
    assert (await scored([], "same", "same")).scores["won"] == 0.5


def fitted(wins: np.ndarray, prior: float = 1.0) -> np.ndarray:
    """The same strengths by another way: scipy's minimum of the negative log posterior."""

    def cost(theta: np.ndarray) -> float:
        gap = theta[:, None] - theta[None, :]
        ground = np.logaddexp(0.0, theta) + np.logaddexp(0.0, -theta)
        return float((wins * np.logaddexp(0.0, -gap)).sum() + prior * 0.5 * ground.sum())

    found = minimize(cost, np.zeros(len(wins)), method="BFGS", options={"gtol": 1e-9})
    return np.asarray(found.x - found.x.mean())


def test_arena_strengths_are_those_of_an_independent_fit(tmp_path: Path) -> None:
    result = evaluate(arena(tmp_path, systems=4, tasks=6))
    rows = comparisons(tmp_path / "run")
    assert len(rows) == 6 * 6 and result.scorecards == 36 and not result.unscored
    names = [f"system{number}" for number in range(4)]
    wins = np.zeros((4, 4))
    for row in rows:
        a, b = names.index(row["system"]), names.index(row["rival"])
        wins[a, b] += row["value"]
        wins[b, a] += 1.0 - row["value"]
    board = board_of(result.leaderboard)
    shown = {row.system: row.value for row in board.standings}
    assert np.allclose([shown[name] for name in names], fitted(wins), atol=1e-6)
    assert board.scale == ELO and board.standings[0].rank == 1
    assert all(row.low <= row.value <= row.high for row in board.standings)  # type: ignore[operator]
    shares = {row.system: row.value for row in board_of(result.leaderboard, "win_rate").standings}
    chance = 1.0 / (1.0 + np.exp(fitted(wins)[None, :] - fitted(wins)[:, None]))
    expected = (chance.sum(axis=1) - 0.5) / 3
    assert np.allclose([shares[name] for name in names], expected, atol=1e-6)
    assert any("36 comparisons of 4 systems, each with each" in note for note in result.leaderboard.notes)
    for name in ("leaderboard.html", "leaderboard.md", "leaderboard.csv"):
        assert "strength" in (tmp_path / "run" / name).read_text()


def test_arena_beside_other_protocols_changes_neither(tmp_path: Path) -> None:
    both = evaluate(arena(tmp_path / "both", protocols=["rubrics", "pairwise"]))
    alone = evaluate(arena(tmp_path / "alone", protocols=["rubrics"]))
    arenas = evaluate(arena(tmp_path / "arena"))
    assert board_of(both.leaderboard) == board_of(arenas.leaderboard)
    rest = [one for one in both.leaderboard.metrics if one.protocol == "rubrics"]
    assert rest == list(alone.leaderboard.metrics)
    assert both.scorecards == alone.scorecards + arenas.scorecards
    again = build_leaderboard([tmp_path / "both" / "run"])
    assert again.metrics == both.leaderboard.metrics


def test_arena_against_a_baseline_meets_nobody_else(tmp_path: Path) -> None:
    config = arena(tmp_path, protocols=[{"name": "pairwise", "baseline": "system2"}])
    result = evaluate(config)
    assert all("system2" in (row["system"], row["rival"]) for row in comparisons(tmp_path / "run"))
    assert result.scorecards == 3 * 6
    rates = {row.system: row.value for row in board_of(result.leaderboard, "win_rate").standings}
    assert rates["system2"] == 0.5
    assert any("with the baseline system2" in note for note in result.leaderboard.notes)


async def judged(config: RunConfig, url: str, **changes: Any) -> Leaderboard:
    judge = {"backend": "openai", "url": url, "model": "mock", "max_in_flight": 8}
    found = await evaluate_async(
        msgspec.structs.replace(RunConfig.of({**msgspec.to_builtins(config), "judge": judge}), **changes)
    )
    return found.leaderboard


async def test_arena_budget_is_kept_and_its_choice_repeats(tmp_path: Path) -> None:
    """The same comparisons, one at a time or many, and in a store of its own or not."""
    protocols = [{"name": "pairwise", "budget": 40}]
    async with MockOpenAI() as server:
        made = []
        for name, serial in (("one", True), ("many", False)):
            config = arena(tmp_path / name, systems=5, tasks=9, protocols=protocols)
            board = await judged(config, server.url, serial=serial)
            rows = comparisons(tmp_path / name / "run")
            made.append(({tuple(row.values()) for row in rows}, board_of(board)))
            assert len(rows) == 40
            assert len({row["system"] for row in rows} | {row["rival"] for row in rows}) == 5
        assert made[0] == made[1]
        asked = server.calls
        again = await judged(arena(tmp_path / "many", systems=5, tasks=9, protocols=protocols), server.url)
        assert server.calls == asked and board_of(again) == made[0][1]


async def test_arena_stopped_by_a_limit_goes_on_as_planned(tmp_path: Path) -> None:
    protocols = [{"name": "pairwise", "budget": 40}]
    async with MockOpenAI() as server:
        whole = await judged(arena(tmp_path / "whole", systems=5, tasks=9, protocols=protocols), server.url)
        config = arena(tmp_path / "parts", systems=5, tasks=9, protocols=protocols)
        with pytest.raises(LimitReached):
            await judged(config, server.url, max_questions=31)
        assert board_of(await judged(config, server.url)) == board_of(whole)


async def test_arena_repeats_and_samples_are_comparisons_too(tmp_path: Path) -> None:
    config = arena(tmp_path, systems=3, tasks=4, repeats=3)
    rows = [
        {"task_id": str(task), "system": "system0", "sample": sample, "text": f"fact {task} {sample}"}
        for task in range(4)
        for sample in range(2)
    ]
    lines(tmp_path / "reports" / "system0.jsonl", rows)
    async with MockOpenAI() as server:
        board = await judged(config, server.url)
    assert {row.n_total for row in board_of(board).standings} == {8}
    assert len(comparisons(tmp_path / "run")) == 3 * 4 * 3


def made_rows(values: dict[tuple[str, str, str], float | None]) -> pa.Table:
    """Rows as a run's scores have them: (task, system, rival) to what the system won."""
    return pa.table(
        {
            "protocol": ["pairwise"] * len(values),
            "system": [key[1] for key in values],
            "task_id": [key[0] for key in values],
            "sample": pa.array([0] * len(values), pa.int32()),
            "repeat": pa.array([0] * len(values), pa.int32()),
            "metric": ["won"] * len(values),
            "value": pa.array(list(values.values()), pa.float64()),
            "reason": [None if value is not None else "judge_timeout" for value in values.values()],
            "rival": [key[2] for key in values],
        }
    )


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    folder = tmp_path_factory.mktemp("arena")
    evaluate(arena(folder, systems=3, tasks=2))
    return RunRecord.read(folder / "run")


def made_board(record: RunRecord, values: dict[tuple[str, str, str], float | None]) -> MetricBoard:
    boards, _ = comparison_boards(made_rows(values), [record], lambda protocol: "judge", 500, 0.95)
    return boards[0]


PLAYED = {
    (str(task), f"system{a}", f"system{b}"): won
    for task in range(40)
    for a, b, won in ((0, 1, float(task % 3 == 0)), (0, 2, float(task % 5 == 0)), (1, 2, float(task % 2)))
}


def test_missing_comparison_is_lost_by_both_that_met(record: RunRecord) -> None:
    whole = made_board(record, PLAYED)
    lost = ("39", "system0", "system1")
    one = {row.system: row for row in made_board(record, {**PLAYED, lost: None}).standings}
    without = made_board(record, {key: value for key, value in PLAYED.items() if key != lost})
    published = {row.system: row.as_published for row in one.values()}
    assert published == pytest.approx({row.system: row.value for row in without.standings})
    row = one["system0"]
    assert row.unscored == {"judge_timeout": 1} and row.n_unscored == 1 and row.rank is not None
    assert row.value == row.bound_low < row.bound_high  # type: ignore[operator]
    assert row.low < row.value < row.high  # type: ignore[operator]
    assert one["system2"].value == one["system2"].as_published
    full = next(row for row in whole.standings if row.system == "system0")
    assert row.bound_low <= full.value <= row.bound_high  # type: ignore[operator]
    assert not any(one.open for one in whole.standings)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=63, max_size=63), st.data())
def test_no_failed_comparison_raises_the_number_of_who_met(
    record: RunRecord, won: list[float], data: st.DataObject
) -> None:
    """Neither of both gains by it, however the comparisons would have ended: as long as both have a rank."""
    systems = ("system0", "system1", "system2")
    keys = [(str(task), *pair) for task in range(21) for pair in combinations(systems, 2)]
    before: dict[tuple[str, str, str], float | None] = dict(zip(keys, won, strict=True))
    before |= dict.fromkeys(data.draw(st.sets(st.sampled_from(keys), max_size=2)))
    met = data.draw(st.sampled_from([*combinations(systems, 2)]))
    failed = data.draw(
        st.sets(st.sampled_from([key for key in keys if key[1:] == met]), min_size=1, max_size=2)
    )
    was = {row.system: row for row in made_board(record, before).standings}
    now = {row.system: row for row in made_board(record, {**before, **dict.fromkeys(failed)}).standings}
    if all(now[name].rank is not None for name in met):
        for name in met:
            value, old = now[name].value, was[name].value
            assert value is not None and old is not None and value <= old + 1e-9
            assert now[name].bound_low == value


def test_failing_system_costs_no_other_its_rank(record: RunRecord) -> None:
    values = {key: None if "system2" in key[1:] and int(key[0]) % 4 else won for key, won in PLAYED.items()}
    rows = {row.system: row for row in made_board(record, values).standings}
    assert rows["system2"].flagged and rows["system2"].rank is None
    assert [rows[f"system{at}"].flagged for at in (0, 1)] == [False, False]
    assert (rows["system0"].n_total, rows["system0"].n_scored) == (40, 40)
    assert {rows[f"system{at}"].rank for at in (0, 1)} == {1.0, 2.0}


def test_systems_of_equal_strength_share_a_rank(record: RunRecord) -> None:
    board = made_board(record, dict.fromkeys(PLAYED, 0.5))
    assert [row.place for row in board.standings] == ["1="] * 3


def test_arena_without_an_answer_ranks_nobody(record: RunRecord) -> None:
    board = made_board(record, dict.fromkeys(PLAYED))
    assert all(row.rank is None and row.value is None for row in board.standings)
    assert board.no_ranking == "nothing was scored"


def test_missing_report_loses_unasked(tmp_path: Path) -> None:
    config = arena(tmp_path, systems=3, tasks=5)
    file = tmp_path / "reports" / "system2.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:1]))
    result = evaluate(config)
    rows = [
        row for row in comparisons(tmp_path / "run") if row["task_id"] != "0" and row["rival"] == "system2"
    ]
    assert len(rows) == 8 and {(row["value"], row["reason"]) for row in rows} == {(1.0, "report_empty")}
    assert board_of(result.leaderboard).standings[-1].system == "system2"


def test_arena_of_selected_systems_alone(tmp_path: Path) -> None:
    evaluate(arena(tmp_path))
    board = build_leaderboard([tmp_path / "run"], select=Select(systems=["system0", "system3"]))
    assert {row.system for row in board_of(board).standings} == {"system0", "system3"}
    assert all(row.n_total == 6 for row in board_of(board).standings)


def test_arena_is_planned_shown_and_exported(tmp_path: Path) -> None:
    config = arena(tmp_path, protocols=[{"name": "pairwise", "budget": 10}])
    assert plan(config).scorecards == 10 and plan(config).questions == {"BetterReport": 20}
    evaluate(config)
    row = comparisons(tmp_path / "run")[0]
    for system in (row["system"], row["rival"]):
        found = find_evidence(tmp_path / "run", row["task_id"], system)
        assert "shown first" in json.dumps(msgspec.to_builtins(found))
    export_run(tmp_path / "run", "scores", tmp_path / "out")
    table = pq.read_table(tmp_path / "out" / "scores.parquet")
    assert set(table["rival"].to_pylist()) <= {f"system{number}" for number in range(4)}


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        (
            {"name": "pairwise", "baseline": "heron"},
            "pairwise: baseline: unknown system 'heron'; use 'system0' or 'system1' or",
        ),
        ({"name": "pairwise", "budget": 0}, "protocols: pairwise: budget"),
    ],
)
def test_arena_options_are_checked(tmp_path: Path, protocol: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        evaluate(arena(tmp_path, protocols=[protocol]))


def test_arena_needs_two_systems(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs the reports of at least two systems; add some to reports:"):
        evaluate(arena(tmp_path, systems=1))


def test_arena_gives_no_reward(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="reward: pairwise compares systems"):
        arena(tmp_path, reward={"protocols": ["pairwise"]})


def test_budget_option_is_the_protocols(tmp_path: Path) -> None:
    config = arena(tmp_path, protocols=["rubrics", {"name": "pairwise", "baseline": "system1"}])
    found = config.with_budget(7).resolved.comparing
    assert found is not None and (found.budget, found.baseline) == (7, "system1")
    with pytest.raises(ConfigError, match="--budget: no protocol compares reports; add pairwise"):
        arena(tmp_path, protocols=["rubrics"]).with_budget(7)


def test_tournament_intervals_against_a_plain_bootstrap() -> None:
    generator = np.random.default_rng(1)
    wins = np.triu(generator.integers(0, 3, (30, 4, 4)) / 2.0, 1)
    wins += np.where(np.triu(np.ones((4, 4)), 1) > 0, 1.0 - wins, 0.0).transpose(0, 2, 1)
    found = tournament(wins, resamples=4_000, seed=5).strength
    drawn = generator.integers(0, 30, (4_000, 30))
    plain = bradley_terry(wins[drawn].sum(axis=1)).strength
    assert np.allclose(found.estimate, bradley_terry(wins.sum(axis=0)).strength)
    assert np.allclose(found.percentile, np.quantile(plain, [0.025, 0.975], axis=0).T, atol=0.03)


def test_most_telling_leaves_the_clear_pairs_alone() -> None:
    wins = np.array([[0, 10, 19], [10, 0, 19], [1, 1, 0]], float)
    left = np.triu(np.full((3, 3), 50.0), 1)
    assert most_telling(wins, left, 20)[0, 1] == 20
    left[0, 1] = 4
    chosen = most_telling(wins, left, 20)
    assert chosen[0, 1] == 4 and chosen.sum() == 20
    assert most_telling(wins, left, 10_000).sum() == left.sum()


def test_most_telling_begins_with_every_system() -> None:
    chosen = most_telling(np.zeros((6, 6)), np.triu(np.full((6, 6), 9.0), 1), 6)
    assert ((chosen + chosen.T).sum(axis=1) > 0).all()


def test_most_telling_refuses_what_is_no_tournament() -> None:
    with pytest.raises(KernelError, match="two square matrices"):
        most_telling(np.zeros((2, 3)), np.zeros((2, 3)), 1)
    with pytest.raises(KernelError, match="prior"):
        most_telling(np.zeros((2, 2)), np.ones((2, 2)), 1, prior=0.0)
    with pytest.raises(KernelError, match="a square matrix for each task"):
        tournament(np.zeros((2, 3, 2)))


async def test_links_of_an_arena_in_the_viewer_lead_somewhere(tmp_path: Path) -> None:
    await evaluate_async(arena(tmp_path, systems=3, tasks=2))
    async with viewing(tmp_path / "run") as reader:
        pages = [path async for path, _, _ in reader.crawl(60)]
    assert any(path.startswith("report?") for path in pages)
