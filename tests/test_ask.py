"""Asking: store first, single flight, cancellation, keys."""

import asyncio
from pathlib import Path
from typing import Annotated

import pytest
from msgspec import Meta

from adjudge.engine.evaluation.asker import Asker
from adjudge.engine.store import JudgmentStore, Place
from adjudge.judges import Answer, Context, Question, ScriptedJudge
from adjudge.prompts import PromptBook


class Verdict(Answer, frozen=True, kw_only=True):
    text: Annotated[str, Meta(max_length=50)]


class Ask(Question[Verdict], frozen=True, kw_only=True):
    prompt = "probe"
    answer = Verdict
    about: str = ""


class Other(Ask, frozen=True, kw_only=True):
    version = 2


YES = Verdict(text="yes")


def ask(about: str = "", context: str = "report", kind: type[Ask] = Ask, **more) -> Ask:
    return kind(context=Context.of(report=context), about=about, **more)


async def asker(folder: Path, judge: ScriptedJudge) -> Asker:
    store = JudgmentStore(Place.of(str(folder)))
    await store.open()
    return Asker(judge, store, PromptBook())


def always(answer=YES, **options) -> ScriptedJudge:
    return ScriptedJudge(lambda question: answer, **options)


async def test_equal_questions_in_flight_are_one_call(tmp_path):
    judge = always(latency=0.02)
    asking = await asker(tmp_path, judge)
    found = await asyncio.gather(*(asking.ask(ask()) for _ in range(50)))
    assert judge.asked == 1
    assert {judgment.answer for judgment in found} == {YES}


async def test_repeated_question_is_answered_from_the_store(tmp_path):
    first = await asker(tmp_path, always())
    asked = await first.ask(ask())
    await first.store.close()
    judge = always()
    second = await asker(tmp_path, judge)
    assert await second.ask(ask()) == asked
    assert await second.ask(ask(), priority=1) == asked
    assert (judge.asked, second.from_store, second.from_judge) == (0, 2, 0)


async def test_transient_failure_is_stored_and_asked_again(tmp_path):
    judge = ScriptedJudge(["judge_timeout", YES])
    asking = await asker(tmp_path, judge)
    failed = await asking.ask(ask())
    assert (failed.status, failed.reason, failed.answer) == ("unscored", "judge_timeout", None)
    assert (await asking.ask(ask())).answer == YES
    assert judge.asked == 2


async def test_question_given_up_is_cancelled_and_not_stored(tmp_path):
    judge = always(latency=30)
    asking = await asker(tmp_path, judge)
    loop = asyncio.get_running_loop()
    before = loop.time()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await asking.ask(ask())
    assert loop.time() - before < 20
    await asyncio.sleep(0)
    assert len(asking._flights) == 0
    await asking.store.close()
    assert not list(tmp_path.rglob("*.parquet"))


async def test_question_is_cancelled_only_when_nobody_waits_for_it(tmp_path):
    judge = always(latency=0.05)
    asking = await asker(tmp_path, judge)
    hasty = asyncio.ensure_future(asyncio.wait_for(asking.ask(ask()), 0.001))
    patient = asyncio.ensure_future(asking.ask(ask()))
    with pytest.raises(TimeoutError):
        await hasty
    assert (await patient).answer == YES
    assert judge.asked == 1


async def test_engine_fatal_error_reaches_every_waiter(tmp_path):
    def broken(question):
        raise RuntimeError("the engine is gone")

    asking = await asker(tmp_path, ScriptedJudge(broken))
    found = await asyncio.gather(asking.ask(ask()), asking.ask(ask()), return_exceptions=True)
    assert [str(error) for error in found] == ["the engine is gone"] * 2


@pytest.mark.parametrize(
    "other",
    [
        ask("else"),
        ask(context="another report"),
        ask(kind=Other),
        ask(language="zh"),
    ],
)
async def test_different_questions_have_different_keys(tmp_path, other):
    asking = await asker(tmp_path, always())
    assert asking.key(ask(), 0) == asking.key(ask(), 0)
    assert asking.key(ask(), 0) != asking.key(other, 0)


async def test_key_contains_the_repeat_and_the_judge(tmp_path):
    asking = await asker(tmp_path, always())
    other = await asker(tmp_path, always(name="another judge"))
    assert len({asking.key(ask(), 0), asking.key(ask(), 1), other.key(ask(), 0)}) == 3


async def test_changed_prompt_changes_the_key(tmp_path):
    overrides = tmp_path / "prompts"
    overrides.mkdir()
    (overrides / "probe.en.md").write_text("Can you read this?")
    store = JudgmentStore(Place.of(str(tmp_path)))
    shipped, changed = (Asker(always(), store, PromptBook(folder)) for folder in (None, overrides))
    assert shipped.key(ask(), 0) != changed.key(ask(), 0)


def test_context_digest_depends_on_section_order_and_cuts():
    digests = {
        Context.of(a="xy", b="z").digest,
        Context.of(a="x", b="yz").digest,
        Context.of(b="z", a="xy").digest,
        Context.of(a="xyz").digest,
        Context.of(a="lone surrogate \ud800").digest,
    }
    assert len(digests) == 5
