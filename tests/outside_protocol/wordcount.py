"""A protocol outside the package: one class, one question, one prompt file beside it, one entry point."""

from pathlib import Path
from typing import ClassVar, Literal

import msgspec

from adjudge.judges import Answer, Context, Question
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Evidence, Metric, Missing, Outcome, Scorecard


class Opinion(Answer, frozen=True, kw_only=True):
    """Too short, right, or too long."""

    length: Literal["short", "right", "long"]


class Length(Question[Opinion], frozen=True, kw_only=True):
    """Is the report of a fitting length?"""

    prompt = "length"
    folder = Path(__file__).parent
    answer = Opinion

    words: int

    def lexical(self) -> Opinion:
        """By its number of words alone."""
        return Opinion(length="short" if self.words < 20 else "long" if self.words > 2_000 else "right")


class WordCount(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Scores 1 for a report of fitting length; `per` is the unit of the count."""

    name: ClassVar[str] = "wordcount"

    per: int = 1

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Whether the length fits, and the words."""
        return (Metric(name="fits", headline=True), Metric(name="words", best=None))

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """Count, ask, say."""
        words = len(case.report.text.split())
        judgment = await tools.ask(Length(context=Context.of(report=case.report.text), words=words))
        fits = (
            Missing(judgment.reason) if judgment.answer is None else float(judgment.answer.length == "right")
        )
        evidence = [
            Evidence(
                what="length", outcome=Outcome("note", words=f"{words} words"), judgment=judgment.key.hex()
            )
        ]
        return Scorecard.of(self.name, case, {"fits": fits, "words": words / self.per}, evidence)
