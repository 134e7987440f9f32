"""The questions behind a scorecard: the protocol runs again, and the store answers.

The store holds answers, not questions. No judge is asked and nothing is written: an answer that the store does not
hold is missing with the reason deadline, which is never stored.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from adjudge.engine.config.run import RunConfig
from adjudge.engine.evaluation.asker import Asker
from adjudge.engine.evaluation.assembly import make_book
from adjudge.engine.evaluation.evaluator import CaseTools
from adjudge.engine.evaluation.reader import Reader
from adjudge.engine.records.record import RunRecord
from adjudge.engine.store import JudgmentStore, PageStore
from adjudge.judges import Answer, Asked, JudgeIdentity, Judgment, Question, Reply
from adjudge.judges.render import Message, messages, secret_from_environment
from adjudge.judges.schema import schema_of
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import score_case

__all__ = ["AskedQuestion", "Replayer"]

A = TypeVar("A", bound=Answer)


class AskedQuestion(msgspec.Struct, frozen=True):
    """A question and its stored judgment."""

    question: Question[Any]
    judgment: Judgment[Any]


class Replayer:
    """Replays scorecards of the run `record` from its stores."""

    def __init__(self, record: RunRecord, judgments: JudgmentStore, pages: PageStore) -> None:
        self._config: RunConfig = record.config
        self._book = make_book(record.config)
        self._judge = record.judge
        self._asker = Asker(_Silent(record.judge), judgments, self._book)
        self._reader = Reader(pages, None)
        self.same_prompts = self._book.digests() | self._config.published_prompts() == record.prompts

    async def questions(self, case: Case, protocol: str) -> dict[str, AskedQuestion]:
        """The questions that `protocol` asks about `case`, by the hex of their keys, in order."""
        tools = _Watched(self._asker, self._reader, case.repeat)
        for candidate in self._config.scoring_protocols():
            if candidate.name == protocol:
                await score_case(candidate, case, tools)
        return tools.seen

    def rendered(self, question: Question[A]) -> list[Message]:
        """The messages that a chat model is sent for `question`."""
        schema = schema_of(question, self._judge.analysis)
        return messages(question, self._book, schema, secret_from_environment())


class _Watched(CaseTools):
    """Tools that remember the questions themselves."""

    def __init__(self, asker: Asker, reader: Reader, repeat: int) -> None:
        super().__init__(asker, reader, repeat)
        self.seen: dict[str, AskedQuestion] = {}

    async def ask_all(self, questions: Iterable[Question[A]]) -> list[Judgment[A]]:
        asked = tuple(questions)
        judgments = await super().ask_all(asked)
        for question, judgment in zip(asked, judgments, strict=True):
            self.seen[judgment.key.hex()] = AskedQuestion(question, judgment)
        return judgments


class _Silent:
    """A judge with another judge's identity that never answers."""

    def __init__(self, judge: JudgeIdentity) -> None:
        self.identity = judge

    async def answer(self, question: Question[A], asked: Asked) -> Reply[A]:
        return Reply(reason="deadline")

    async def close(self) -> None:
        """Nothing to release."""
