"""What a training's rewards look like: ties, saturation, drift of criteria, echoing pages, and rubric dropout."""

import logging
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.config.reward import Formula, RewardConfig
from adjudge.engine.config.run import RunConfig
from adjudge.engine.config.settings import ConfigError
from adjudge.engine.rewards.dropout import thinned
from adjudge.engine.rewards.flags import Said, page_echo
from adjudge.engine.rewards.panel import POINTS, WINDOW, Panel
from adjudge.engine.rewards.reward import Part, Reward, RewardError
from adjudge.engine.rewards.scorer import open_rewards
from adjudge.scoring.contract.case import Task
from adjudge.scoring.deepresearch_bench.fact import Fact
from adjudge.scoring.rubrics.criteria import Criterion
from adjudge.scoring.rubrics.rubrics import Rubrics
from tests.rewarding import rewarded
from tests.worlds import world

TEXT = "It states fact number 0. The measured value was 42 units."


def reward(
    value: float | None, reason: str | None = None, points: float | None = None, **scores: float
) -> Reward:
    parts = () if points is None else (Part(protocol="rubrics", id="c01", value=points),)
    status = "unscored" if value is None else "scored"
    return Reward(value=value, status=status, reason=reason, scores=scores, parts=parts)


def test_tied_groups_are_those_of_one_reward() -> None:
    panel = Panel()
    panel.add(["a", "a", "b", "b", "c", "d"], [reward(v) for v in (0.5, 0.5, 0.1, 0.9, 0.3, None)], None)
    assert panel.tied == 0.5 and panel.saturated == 0.0
    panel.add(["a", "a", "a"], [reward(0.2), reward(None), reward(0.2)], None)
    assert panel.tied == pytest.approx(2 / 3)


def test_saturation_is_of_rewards_with_a_value() -> None:
    panel = Panel()
    panel.add(["a"] * 4, [reward(v) for v in (1.0, 0.5, None, 1.0)], 1.0)
    assert panel.saturated == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("settings", "highest"),
    [
        ({"metric": "score_clipped"}, 1.0),
        ({"weights": {"score_clipped": 0.5, "fact.c_acc": {"weight": 2, "clip": [0, 0.5]}}}, 1.5),
        ({"weights": {"score_clipped": 1.0}, "group": {"kind": "rank", "weight": 3}, "clip": [0, 2]}, 2.0),
        ({"weights": {"fact.e_cit": 1.0}}, None),
        ({"weights": {"fact.e_cit": 1.0}, "clip": [0, 10]}, 10.0),
    ],
)
def test_highest_reward_follows_from_the_formula(settings: dict, highest: float | None) -> None:
    formula = Formula(msgspec.convert(settings, RewardConfig), (Rubrics(), Fact(extraction="markers")))
    assert formula.highest == highest


@given(st.lists(st.floats(0, 1), min_size=2 * POINTS, max_size=3 * POINTS))
def test_drift_compares_first_and_last_points(points: list[float]) -> None:
    panel = Panel()
    for value in points:
        panel.add(["a"], [reward(0.5, points=value)], None)
    first, last = sum(points[:POINTS]) / POINTS, sum(points[-POINTS:]) / POINTS
    assert panel.rise == pytest.approx(max(last - first, 0.0))
    assert panel.fall == pytest.approx(max(first - last, 0.0))


def test_log_says_the_state_once_in_a_window(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "adjudge")
    panel = Panel()
    for step in range(WINDOW // 4):
        given = [
            reward(1.0, points=float(step > POINTS), injection=1.0),
            reward(1.0),
            reward(None, "deadline"),
            reward(0.5),
        ]
        panel.add(["a", "a", "b", "c"], given, 1.0)
    (line,) = [one for one in caplog.records if getattr(one, "event", "") == "rewards"]
    told = line.fields
    assert (told["count"], told["tied"], told["missing"]) == (WINDOW, 1.0, {"deadline": 0.25})
    assert told["flags"] == {"injection": 0.25} and told["saturated"] == pytest.approx(2 / 3)
    assert told["drifts"] == {"a rubrics c01": pytest.approx(0.97, abs=0.1)}


@pytest.mark.parametrize(("groups", "tied", "warned"), [(64, 64, True), (64, 57, False), (19, 19, False)])
def test_panel_warns_where_groups_have_no_variance(
    groups: int, tied: int, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    panel = Panel()
    for number in range(groups):
        panel.add(["a", "a"], [reward(0.5), reward(0.5 if number < tied else 0.6)], 1.0)
    panel.add(list(map(str, range(WINDOW))), [reward(0.1)] * WINDOW, 1.0)
    said = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert len(said) == warned and all(
        line.startswith(f"{tied} of the last {groups} groups") for line in said
    )


async def test_scorer_fills_its_panel(tmp_path: Path) -> None:
    async with open_rewards(rewarded(tmp_path)) as scorer:
        await scorer.score(
            [{"task_id": "0", "text": TEXT}] * 2
            + [{"task_id": "1", "text": TEXT}, {"task_id": "1", "text": ""}]
        )
        assert scorer.panel.tied == 0.5
        await scorer.score([{"task_id": "0", "text": TEXT}] * 2, alone=True)
        assert scorer.panel.tied == 0.5, "canaries and audits are no training"


REPORT = " ".join(
    f"The {n} bridge of the north was built in {1900 + n} of larch and stands on {n} piers." for n in range(9)
)
LONG = " ".join(
    f"Word{n} stands beside another{n} that differs from it by number {n * 7}." for n in range(90)
)


@pytest.mark.parametrize(
    ("pages", "share"),
    [
        ([], 0.0),
        ([REPORT], 1.0),
        ([REPORT.upper().replace(".", " ;")], 1.0),
        ([REPORT, LONG], 0.5),
        ([REPORT[:80]], 0.0),
        ([f"{LONG} {REPORT} {LONG}"], 0.0),
        ([f"{REPORT} {LONG[:300]}"], 1.0),
    ],
    ids=["none", "itself", "dressed up", "one of two", "a short one", "inside of another", "with an end"],
)
def test_page_that_repeats_the_report_is_an_echo(pages: list[str], share: float) -> None:
    assert page_echo(Said(REPORT, pages=tuple(pages)), RewardConfig().length) == share


async def test_echoing_page_is_flagged_and_costs_its_penalty(tmp_path: Path) -> None:
    page = {"url": "https://mine.example/a", "text": REPORT}
    async with open_rewards(rewarded(tmp_path, penalties={"page_echo": 0.5})) as scorer:
        plain, echo = await scorer.score(
            [{"task_id": "0", "text": REPORT}, {"task_id": "0", "text": REPORT, "pages": [page]}]
        )
    assert (plain.scores["page_echo"], echo.scores["page_echo"]) == (0.0, 1.0)
    assert echo.value == pytest.approx(plain.value - 0.5)


def task(*criteria: dict) -> Task:
    return Task(id="t", prompt="p", gold={"rubrics": msgspec.Raw(msgspec.json.encode(criteria))})


def ids(found: Task) -> list[str]:
    return [one.id for one in msgspec.json.decode(found.gold["rubrics"], type=list[Criterion])]


MANY = task(*({"criterion": f"It says {n}.", "points": 1 if n else 2} for n in range(20)))


@given(st.floats(0, 0.99), st.integers(0, 10**6))
def test_dropout_keeps_ids_and_something_to_score(share: float, step: int) -> None:
    found = thinned(MANY, share, step)
    assert found == thinned(MANY, share, step)
    kept = ids(found)
    assert kept == sorted(kept) and set(kept) <= {f"c{n:02d}" for n in range(1, 21)} and kept
    less = ids(thinned(MANY, share / 2, step))
    assert set(kept) <= set(less), "a smaller share leaves out fewer of the same"
    penalised = task(
        {"criterion": "a", "points": -1}, {"criterion": "b", "points": 1}, {"criterion": "c", "points": -2}
    )
    assert "c02" in ids(thinned(penalised, share, step))


def test_dropout_leaves_out_its_share_anew_at_each_step() -> None:
    kept = [ids(thinned(MANY, 0.3, step)) for step in range(200)]
    assert 0.66 < sum(map(len, kept)) / 4000 < 0.74
    assert len({tuple(one) for one in kept}) > 150
    assert all(any(f"c{n:02d}" not in one for one in kept) for n in range(1, 21))


@pytest.mark.parametrize("gold", [b"{}", b'"text"', b'[{"points": 1}]', b"[]"])
def test_gold_that_cannot_be_read_is_left(gold: bytes) -> None:
    given = Task(id="t", prompt="p", gold={"rubrics": msgspec.Raw(gold)})
    assert bytes(thinned(given, 0.5, 1).gold["rubrics"]) == gold
    bare = Task(id="t", prompt="p")
    assert thinned(bare, 0.5, 1) is bare


async def test_rollouts_of_a_step_share_the_criteria_that_are_left(tmp_path: Path) -> None:
    rubrics = [{"criterion": f"The report names fact number {n}.", "points": 1} for n in range(12)]
    items = [{"task_id": "0", "text": f"{TEXT} {n}", "rubrics": rubrics} for n in range(3)]
    async with open_rewards(rewarded(tmp_path, dropout=0.5)) as scorer:
        asked = []
        for step in range(4):
            found = await scorer.score(items, step=step)
            (judged,) = {tuple(part.id for part in one.parts) for one in found}
            asked.append(judged)
        (whole,) = await scorer.score(items[:1], step=0, whole=True)
        assert len(set(asked)) > 1 and all(0 < len(one) < 12 for one in asked)
        assert len(whole.parts) == 12
        with pytest.raises(RewardError, match=r"step: missing.*dropout"):
            await scorer.score(items)


@pytest.mark.parametrize("share", [-0.1, 1, 2, "all"])
def test_dropout_is_a_share_below_one(tmp_path: Path, share: object) -> None:
    with pytest.raises(ConfigError, match="dropout"):
        RunConfig.load(world(tmp_path, reward={"dropout": share}))
