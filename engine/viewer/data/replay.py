"""The questions behind a scorecard: the protocol runs again, and the store answers.

The store holds answers, not questions. No judge is asked and nothing is written: an answer that the store does not
hold is missing with the reason deadline, which is never stored.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from adjudge.engine.config.run import RunConfig
from adjudge.engine.evaluation.asker import Asker, ProtocolAsker
from adjudge.engine.evaluation.assembly import make_book
from adjudge.engine.evaluation.evaluator import CaseTools
from adjudge.engine.evaluation.reader import Reader
from adjudge.engine.records.record import RunRecord
from adjudge.engine.store import JudgmentStore, PageStore
from adjudge.judges import Answer, Asked, JudgeIdentity, Judgment, Question, Reply
from adjudge.judges.render import Message, messages, secret_from_environment
from adjudge.judges.schema import schema_of
from adjudge.scoring.contract.case import Case, GoldError
from adjudge.scoring.contract.protocol import ExplainedCriterion, Explaining, ScoringProtocol, score_case

__all__ = ["AskedQuestion", "Replayer"]

A = TypeVar("A", bound=Answer)


class AskedQuestion(msgspec.Struct, frozen=True):
    """A question, who was asked, and the stored judgment."""

    question: Question[Any]
    judge: JudgeIdentity
    judgment: Judgment[Any]


class Replayer:
    """Replays scorecards of the run `record` from its stores."""

    def __init__(self, record: RunRecord, judgments: JudgmentStore, pages: PageStore) -> None:
        self._config: RunConfig = record.config
        self._book = make_book(record.config)
        self._judging = record.judging
        self._judgments = judgments
        self._reader = Reader(pages, None)
        self.same_prompts = self._book.digests() | self._config.published_prompts() == record.prompts

    async def questions(self, case: Case, protocol: str) -> dict[str, AskedQuestion]:
        """The questions that `protocol` asks about `case`, by the hex of their keys, in order."""
        tools = _Watched(self._asker(protocol), self._reader, case.repeat)
        for candidate in self._named(protocol):
            await score_case(candidate, case, tools)
        return tools.seen

    async def explained(self, case: Case, protocol: str) -> list[ExplainedCriterion]:
        """The criteria by which `protocol` judges `case`, as far as it explains them and the store has them."""
        found: list[ExplainedCriterion] = []
        for candidate in self._named(protocol):
            if isinstance(candidate, Explaining):
                with suppress(GoldError):
                    tools = CaseTools(self._asker(protocol), self._reader, case.repeat)
                    found += await candidate.explained(case, tools)
        return found

    def _named(self, protocol: str) -> list[ScoringProtocol]:
        return [one for one in self._config.scoring_protocols() if one.name == protocol]

    def _asker(self, protocol: str) -> ProtocolAsker:
        media = self._judging.protocol_media(protocol)
        return ProtocolAsker(
            self._silent(self._judging.protocol(protocol)),
            {medium: self._silent(judge) for medium, judge in media.items()},
        )

    def _silent(self, judge: JudgeIdentity) -> Asker:
        return Asker(_Silent(judge), self._judgments, self._book)

    def rendered(self, asked: AskedQuestion) -> list[Message]:
        """The messages that a chat model was sent."""
        schema = schema_of(asked.question, asked.judge.analysis)
        return messages(asked.question, self._book, schema, secret_from_environment())


class _Watched(CaseTools):
    """Tools that remember the questions themselves."""

    def __init__(self, asker: ProtocolAsker, reader: Reader, repeat: int) -> None:
        super().__init__(asker, reader, repeat)
        self.seen: dict[str, AskedQuestion] = {}

    async def ask_all(self, questions: Iterable[Question[A]]) -> list[Judgment[A]]:
        asked = tuple(questions)
        judgments = await super().ask_all(asked)
        for question, judgment in zip(asked, judgments, strict=True):
            judge = self._asker.of(question).judge.identity
            self.seen[judgment.key.hex()] = AskedQuestion(question, judge, judgment)
        return judgments


class _Silent:
    """A judge with another judge's identity that never answers."""

    def __init__(self, judge: JudgeIdentity) -> None:
        self.identity = judge

    async def answer(self, question: Question[A], asked: Asked) -> Reply[A]:
        return Reply(reason="deadline")

    async def close(self) -> None:
        """Nothing to release."""
