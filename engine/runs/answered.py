"""What the judges of a run said, by protocol and question type, as scorecards pass."""

from collections import defaultdict
from collections.abc import Iterable

from adjudge.scoring.contract.answers import Answers, AnswerTally
from adjudge.scoring.contract.scorecard import Scorecard

__all__ = ["AnswersOf", "AnswersOfRun", "together"]

AnswersOf = dict[str, dict[str, Answers]]
"""By protocol and question type."""


class AnswersOfRun:
    """Adds up the answers of scorecards; one that several scorecards share counts for each."""

    def __init__(self) -> None:
        self._found: defaultdict[str, AnswerTally] = defaultdict(AnswerTally)

    def take(self, card: Scorecard) -> None:
        """Count the answers that `card` rests on."""
        for question, answers in card.answers.items():
            self._found[card.protocol].add(question, answers)

    def result(self) -> AnswersOf:
        """What was counted until now."""
        return {protocol: tally.result() for protocol, tally in sorted(self._found.items())}


def together(several: Iterable[AnswersOf]) -> AnswersOf:
    """The answers of several runs."""
    found: defaultdict[str, AnswerTally] = defaultdict(AnswerTally)
    for one in several:
        for protocol, types in one.items():
            for question, answers in types.items():
                found[protocol].add(question, answers)
    return {protocol: tally.result() for protocol, tally in sorted(found.items())}
