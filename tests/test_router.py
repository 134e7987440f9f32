"""Routing: affinity, bounded load, joining and leaving, replicas that fail."""

import asyncio
from collections import Counter
from typing import Annotated

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta

from adjudge.engine.evaluation.router import EPSILON, FLOOR, Router, choose, name_hash
from adjudge.judges import Answer, Asked, Context, Question, ScriptedJudge
from adjudge.judges.errors import JudgeError
from tests.nightly import quick_or_whole


class Verdict(Answer, frozen=True, kw_only=True):
    text: Annotated[str, Meta(max_length=50)]


class Ask(Question[Verdict], frozen=True, kw_only=True):
    prompt = "probe"
    answer = Verdict
    about: str = ""


YES = Verdict(text="yes")
ASKED = Asked(key=bytes(16))


def question(context: str, about: str = "") -> Ask:
    return Ask(context=Context.of(page=context), about=about)


def hashes(count: int) -> np.ndarray:
    return np.array([name_hash(f"replica {i}") for i in range(count)], np.uint64)


def replica(log: Counter[str], name: str, **options) -> ScriptedJudge:
    def opinion(question):
        log[name] += 1
        return YES

    return ScriptedJudge(opinion, **options)


@settings(max_examples=quick_or_whole(40, 200))
@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 500), min_size=1, max_size=40), st.data())
def test_choice_never_exceeds_the_bound(group, loads, data):
    loads = np.array(loads)
    assert loads[choose(group, hashes(len(loads)), loads)] <= loads.mean()
    warm = data.draw(st.lists(st.sampled_from(range(len(loads))), min_size=1, unique=True))
    chosen = choose(group, hashes(len(loads)), loads, warm)
    assert loads[chosen] <= max(FLOOR, (1 + EPSILON) * loads.min(), loads.mean())
    assert chosen in warm or loads[warm].min() >= FLOOR


def test_without_load_a_group_stays_and_groups_spread_evenly():
    names, idle = hashes(16), np.zeros(16, np.int64)
    groups = np.random.default_rng(0).integers(0, 2**64, 8000, np.uint64).tolist()
    chosen = [choose(group, names, idle) for group in groups]
    assert chosen == [choose(group, names, idle) for group in groups]
    counts = np.bincount(chosen, minlength=16)
    assert counts.min() > 400 and counts.max() < 600


def test_leaving_or_joining_replica_moves_only_its_share():
    names = hashes(8)
    groups = np.random.default_rng(1).integers(0, 2**64, 2000, np.uint64).tolist()
    before = [choose(group, names, np.zeros(8, np.int64)) for group in groups]
    after = [choose(group, names[:7], np.zeros(7, np.int64)) for group in groups]
    assert all(old == new for old, new in zip(before, after, strict=True) if old != 7)
    assert 0.08 < np.mean([old == 7 for old in before]) < 0.17


async def test_flood_on_one_context_spreads_by_the_bound():
    log: Counter[str] = Counter()
    router = Router({name: replica(log, name, latency=0.01) for name in "abcd"})
    flood = [question("one page", str(i)) for i in range(400)]
    await asyncio.gather(*(router.answer(item, ASKED) for item in flood))
    assert max(log.values()) <= 110 and min(log.values()) >= 90
    assert router.loads == dict.fromkeys("abcd", 0)


async def test_question_goes_where_its_context_was():
    log: Counter[str] = Counter()
    router = Router({name: replica(log, name) for name in "abcd"})
    for i in range(20):
        await router.answer(question("one page", str(i)), ASKED)
    assert sorted(log.values()) == [20]


async def test_unavailable_replica_rests_and_the_next_one_answers():
    log: Counter[str] = Counter()
    dead = ScriptedJudge(lambda question: "judge_unavailable")
    router = Router({"dead": dead, "live": replica(log, "live")})
    replies = [await router.answer(question(str(i)), ASKED) for i in range(40)]
    assert all(reply.answer == YES for reply in replies)
    assert log["live"] == 40 and dead.asked == 1


async def test_question_is_unavailable_only_if_all_replicas_are():
    judges = [ScriptedJudge(lambda question: "judge_unavailable") for _ in range(3)]
    router = Router({str(i): judge for i, judge in enumerate(judges)})
    assert (await router.answer(question("x"), ASKED)).reason == "judge_unavailable"
    assert [judge.asked for judge in judges] == [1, 1, 1]


async def test_broken_replica_is_dropped_and_the_last_error_raised():
    def broken(question):
        raise JudgeError("the engine is gone")

    log: Counter[str] = Counter()
    router = Router({"broken": ScriptedJudge(broken), "good": replica(log, "good")})
    for i in range(10):
        assert (await router.answer(question(str(i)), ASKED)).answer == YES
    assert router.loads == {"good": 0}
    with pytest.raises(JudgeError, match="gone"):
        await Router({"broken": ScriptedJudge(broken)}).answer(question("x"), ASKED)


def test_replicas_must_serve_one_model():
    with pytest.raises(JudgeError, match="same model"):
        Router({"a": ScriptedJudge([], name="a"), "b": ScriptedJudge([], name="b")})
    with pytest.raises(JudgeError, match="at least one"):
        Router({})
