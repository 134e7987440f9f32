"""The embedded judge: where it works, and what it makes of texts."""

import threading
from typing import Annotated

import msgspec

from adjudge.judges import Answer, Asked, Context, LexicalJudge, Question
from adjudge.judges.lexical import IN_PLACE, sentences


class Where(Answer, frozen=True, kw_only=True):
    thread: Annotated[str, msgspec.Meta(max_length=100)]


class WhereAnswered(Question[Where], frozen=True, kw_only=True):
    prompt = "race_clean"
    answer = Where

    aside: str = ""

    def lexical(self) -> Where:
        return Where(thread=threading.current_thread().name)


async def test_long_questions_are_answered_beside_the_loop():
    judge, here = LexicalJudge(), threading.current_thread().name

    async def thread(text: str, field: str) -> str:
        question = WhereAnswered(context=Context.of(report=text), aside=field)
        reply = await judge.answer(question, Asked(key=b"", repeat=0))
        assert reply.answer is not None
        return reply.answer.thread

    assert await thread("short", "short") == here
    found = {await thread(*texts) for texts in (("a" * IN_PLACE, ""), ("", "a" * IN_PLACE))}
    assert len(found) == 1 and here not in found  # one thread: texts are kept, and read once
    await judge.close()


def test_sentences_come_without_white_space_and_empty_ones():
    assert list(sentences(" One. Two!\n\n  三。四；\n.. ")) == ["One.", "Two!", "三。", "四；", ".."]
