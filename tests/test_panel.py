"""A panel of judges: combination, agreement, stored members."""

from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta

from adjudge.engine.evaluation.asker import Asker, Remembered
from adjudge.engine.statistics.notes import same_family
from adjudge.engine.store import JudgmentStore, Place
from adjudge.judges import Answer, Asked, Context, Question, ScriptedJudge
from adjudge.judges.panel import PanelJudge
from adjudge.prompts import PromptBook


class Opinion(Answer, frozen=True, kw_only=True):
    analysis: Annotated[str, Meta(max_length=50)] = ""
    score: Annotated[float, Meta(ge=0, le=10, multiple_of=0.5)]
    verdict: Literal["good", "bad"]
    items: dict[str, bool]


class Ask(Question[Opinion], frozen=True, kw_only=True):
    prompt = "probe"
    answer = Opinion

    @property
    def count(self) -> int:
        return 2


QUESTION = Ask(context=Context.of(report="x"))
ASKED = Asked(key=bytes(16))


def opinion(score: float, verdict: str, first: bool, analysis: str = "") -> Opinion:
    return Opinion(analysis=analysis, score=score, verdict=verdict, items={"c01": first, "c02": True})


def member(name: str, said: Opinion | str) -> ScriptedJudge:
    return ScriptedJudge(lambda question: said, name=name)


THREE = [
    opinion(2, "bad", True, "the first"),
    opinion(9.5, "good", True, "the second"),
    opinion(8, "good", False, "the third"),
]


@pytest.mark.parametrize(("combination", "score"), [("mean", 6.5), ("median", 8.0), ("majority", 2.0)])
async def test_fields_are_combined_and_words_from_the_closest_member(combination, score):
    panel = PanelJudge([member(str(i), said) for i, said in enumerate(THREE)], combination)
    reply = await panel.answer(QUESTION, ASKED)
    assert reply.answer is not None and reply.answer.score == score
    assert reply.answer.verdict == "good" and reply.answer.items == {"c01": True, "c02": True}
    assert (
        reply.answer.analysis
        == {"mean": "the second", "median": "the second", "majority": "the first"}[combination]
    )
    said = msgspec.json.decode(reply.text)
    assert said["members"]["0"]["score"] == 2 and said["agreement"] == pytest.approx(5 / 12)


async def test_tie_goes_to_the_first_member():
    panel = PanelJudge([member("a", THREE[0]), member("b", THREE[1])], "majority")
    reply = await panel.answer(QUESTION, ASKED)
    assert reply.answer is not None and reply.answer.verdict == "bad" and reply.answer.score == 2


async def test_member_without_an_answer_leaves_the_panel_without_one():
    panel = PanelJudge([member("a", THREE[0]), member("b", "judge_refused"), member("c", "judge_timeout")])
    reply = await panel.answer(QUESTION, ASKED)
    assert reply.answer is None and reply.reason == "judge_refused"
    assert msgspec.json.decode(reply.text)["members"]["a"]["score"] == 2


async def test_members_are_stored_singly_and_only_a_new_one_is_asked(tmp_path):
    store = JudgmentStore(Place.of(str(tmp_path)))
    await store.open()
    book = PromptBook()
    judges = [member(str(i), said) for i, said in enumerate(THREE)]

    def panel(count: int) -> Asker:
        members = [Remembered(Asker(judge, store, book)) for judge in judges[:count]]
        return Asker(PanelJudge(members), store, book)

    await panel(2).ask(QUESTION)
    await panel(3).ask(QUESTION)
    await panel(3).ask(QUESTION)
    assert [judge.asked for judge in judges] == [1, 1, 1]
    assert panel(2).key(QUESTION, 0) != panel(3).key(QUESTION, 0)


def test_judge_of_the_same_family_as_a_system_is_noted():
    systems = ["qwen-deep-research", "Gemini DR", "atlas"]
    assert same_family("Qwen/Qwen3-32B", systems) == ["qwen-deep-research"]
    assert same_family("gemini-3", systems) == ["Gemini DR"]
    assert same_family("lexical", systems) == []
    assert same_family("/models/7b", systems) == []
