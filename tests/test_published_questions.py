"""A published question: the benchmark's own request, kept and asked again like any other question."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from adjudge.engine.evaluation.asker import Asker
from adjudge.engine.evaluation.dry_run import NoteTaker
from adjudge.engine.store import JudgmentStore, Place
from adjudge.judges import Asked, Context, LexicalJudge, ScriptedJudge
from adjudge.judges.openai import OpenAIJudge
from adjudge.judges.panel import PanelJudge
from adjudge.judges.published import (
    MAX_SAID_CHARS,
    Checkout,
    PublishedQuestion,
    Said,
    Template,
    UnreadableReply,
    Wording,
)
from adjudge.judges.server import OpenAIConfig
from adjudge.prompts import PromptBook
from adjudge.scoring.answers.parts import ReadReply, ask_until_read
from adjudge.scoring.contract.scorecard import Missing
from tests.mock_openai import Call, MockOpenAI, completion
from tests.tools import DirectTools


class CountOf(PublishedQuestion[int], frozen=True, kw_only=True):
    """How often does the report use a word?"""

    attempts: ClassVar[int] = 3

    word: str

    def read(self, text: str) -> int:
        if not text.strip().isdigit():
            raise UnreadableReply("not a number")
        return int(text)

    def example(self) -> str:
        return "12"


def template(folder: Path, text: str = "Count {word} in {report}: {{}}") -> Template:
    (folder / "words.py").write_text(f"ask = {text!r}", encoding="utf-8")
    return Checkout(folder).formatted("words.py", "ask")


def question(
    folder: Path, word: str = "bike", report: str = "A bike.", text: str = "Count {word} in {report}: {{}}"
) -> CountOf:
    wording = Wording.of(template(folder, text), temperature=0.1)
    return CountOf(context=Context.of(report=report), wording=wording, word=word)


@asynccontextmanager
async def asker(folder: Path, url: str = "http://127.0.0.1:9/v1") -> AsyncIterator[Asker]:
    store = JudgmentStore(Place.of(str(folder / "store")))
    await store.open()
    judge = OpenAIJudge(OpenAIConfig(url=url, model="judge-1", retries=0), PromptBook(), b"secret")
    yield Asker(judge, store, PromptBook())
    await store.close()
    await judge.close()


class Keeping(DirectTools):
    """Asks through an asker."""

    def __init__(self, asking: Asker) -> None:
        super().__init__(asking.judge)
        self.asking = asking

    async def ask(self, question):
        return await self.asking.ask(question)


def saying(*replies: str | None, finish_reason: str = "stop"):
    async def fault(mock: MockOpenAI, call: Call):
        return completion(replies[min(call.before, len(replies) - 1)], finish_reason)

    return fault


def test_message_of_several_parts_is_sent_as_a_list(tmp_path: Path) -> None:
    parts = (template(tmp_path), template(tmp_path, "Say {word}\ud800."))
    made = msgspec.structs.replace(
        question(tmp_path), wording=Wording.of(parts, template(tmp_path, "Be kind."))
    )
    texts = ["Count bike in A bike.: {}", "Say bike\ufffd."]
    assert made.sent() == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": text} for text in texts]},
    ]
    assert made.messages()[1] == {"role": "user", "content": "\n".join(texts)}
    assert made.example() and question(tmp_path).sent() == question(tmp_path).messages()
    alone = [Wording.of(part).digest for part in parts]
    assert len({*alone, Wording.of(parts).digest, Wording.of(parts[:1]).digest}) == 4


async def test_request_is_the_benchmarks_own(tmp_path: Path) -> None:
    async with MockOpenAI(fault=saying("7")) as mock, asker(tmp_path, mock.url) as asking:
        judgment = await asking.ask(question(tmp_path, word="{report}", report="{word} \ud800"))
        assert mock.last is not None
        assert json.loads(mock.last.body) == {
            "model": "judge-1",
            "messages": [{"role": "user", "content": "Count {report} in {word} \ufffd: {}"}],
            "temperature": 0.1,
        }
    assert judgment.answer == Said(text="7") and judgment.status == "scored"


async def test_unreadable_reply_is_followed_by_the_next_attempt(tmp_path: Path) -> None:
    async with MockOpenAI(fault=saying("many", None, "12")) as mock, asker(tmp_path, mock.url) as asking:
        tools = Keeping(asking)
        found = await ask_until_read(tools, question(tmp_path))
        assert isinstance(found, ReadReply) and found.value == 12 and mock.calls == 3
        again = await ask_until_read(tools, question(tmp_path))
        assert again == found and mock.calls == 3


async def test_last_unreadable_reply_is_asked_again_by_the_next_run(tmp_path: Path) -> None:
    async with MockOpenAI(fault=saying("many", "many", "many", "12")) as mock:
        async with asker(tmp_path, mock.url) as first:
            assert await ask_until_read(Keeping(first), question(tmp_path)) == Missing("judge_unparseable")
        async with asker(tmp_path, mock.url) as second:
            found = await ask_until_read(Keeping(second), question(tmp_path))
        assert isinstance(found, ReadReply) and found.value == 12
        assert mock.calls == 4, "the first two replies came from the store"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({"text": None, "finish_reason": "content_filter"}, "judge_refused"),
        ({"text": None, "finish_reason": "stop", "refusal": "No."}, "judge_refused"),
        ({"text": "9" * (MAX_SAID_CHARS + 1)}, "judge_unparseable"),
    ],
)
async def test_no_reply_is_not_an_unreadable_reply(tmp_path: Path, reply: dict, reason: str) -> None:
    async def fault(mock: MockOpenAI, call: Call):
        return completion(**reply)

    async with MockOpenAI(fault=fault) as mock, asker(tmp_path, mock.url) as asking:
        assert await ask_until_read(Keeping(asking), question(tmp_path)) == Missing(reason)
        assert mock.calls == 1


async def test_cut_off_and_thinking_replies_are_read(tmp_path: Path) -> None:
    said = saying("<think>3? 4?</think>5", finish_reason="length")
    async with MockOpenAI(fault=said) as mock, asker(tmp_path, mock.url) as asking:
        judgment = await asking.ask(question(tmp_path))
        assert judgment.answer == Said(text="5") and judgment.finish_reason == "length"
        assert mock.calls == 1


async def test_key_covers_wording_attempt_fields_and_context(tmp_path: Path) -> None:
    base = question(tmp_path)
    others = [
        msgspec.structs.replace(base, attempt=1),
        question(tmp_path, word="van"),
        question(tmp_path, report="A van."),
        question(tmp_path, text="Count {word} in {report}."),
        msgspec.structs.replace(base, wording=Wording.of(template(tmp_path), temperature=0.2)),
        msgspec.structs.replace(base, wording=Wording.of(template(tmp_path), template(tmp_path))),
    ]
    async with asker(tmp_path) as asking:
        keys = {asking.key(one, 0) for one in (base, *others)}
        assert len(keys) == 1 + len(others)
        assert asking.key(question(tmp_path), 0) in keys


async def test_judges_without_free_text_say_so(tmp_path: Path) -> None:
    members = [ScriptedJudge(["1"]), ScriptedJudge(["2"])]
    for judge in (LexicalJudge(), PanelJudge(members)):
        reply = await judge.answer(question(tmp_path), Asked(key=bytes(16)))
        assert reply.reason == "judge_unsupported"
    assert members[0].asked == 0


async def test_dry_run_assumes_an_example(tmp_path: Path) -> None:
    notes = NoteTaker(LexicalJudge(), PromptBook())
    found = await ask_until_read(DirectTools(notes), question(tmp_path))
    assert isinstance(found, ReadReply) and found.value == 12
    assert notes.questions == {"CountOf": 1}


async def test_hostile_reply_text_can_be_stored(tmp_path: Path) -> None:
    async with (
        MockOpenAI(fault=saying("nul \x00 and \U0001f600")) as mock,
        asker(tmp_path, mock.url) as first,
    ):
        judgment = await first.ask(question(tmp_path))
    async with asker(tmp_path) as second:
        assert (
            (await second.ask(question(tmp_path))).answer
            == judgment.answer
            == Said(text="nul \ufffd and \U0001f600")
        )
