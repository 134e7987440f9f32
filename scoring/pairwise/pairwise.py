"""Which of two reports answers the task better: asked in both orders, ties allowed, as in an arena of systems.

A case has a report and a rival's. The engine chooses which reports meet; the leaderboard, which has all systems
together, derives strengths and win rates.
"""

from statistics import fmean
from typing import Annotated, ClassVar, Literal

import msgspec

from adjudge.judges import Answer, Context, Question
from adjudge.judges.lexical import coverage, terms
from adjudge.scoring.answers.parts import EVERY, Answered, measured
from adjudge.scoring.contract.case import Case, GoldError
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Evidence, Metric, MetricWords, Outcome, Scorecard, Value

PAIRWISE = MetricWords(
    source="adjudge",
    of={
        "won": "Comparisons won against other systems' reports, a tie counting half; the mean of both orders.",
        "won_shown_first": "Comparisons won where the report is shown first.",
        "won_shown_last": "Comparisons won where the report is shown last.",
    },
)


WON, FIRST, LAST = "won", "won_shown_first", "won_shown_last"

_EQUAL = 0.02  # difference in words below which the embedded judge sees a tie
_WON = {"first": 1.0, "tie": 0.5, "second": 0.0}


class Better(Answer, frozen=True, kw_only=True):
    """The report that answers the task better, the first one shown or the second."""

    analysis: Annotated[str, msgspec.Meta(max_length=1200)] = ""
    better: Literal["first", "second", "tie"]


class BetterReport(Question[Better], frozen=True, kw_only=True):
    """Which of two reports, `first` and `second` of the context, answers the task better?"""

    words = "the better of two reports"
    prompt = "pairwise"
    answer = Better

    task: str

    def lexical(self) -> Better:
        """The report that uses more of the task's words, and more other words."""
        first, second = (_richness(self.task, self.context[name]) for name in ("first", "second"))
        if abs(first - second) < _EQUAL:
            return Better(better="tie")
        return Better(better="first" if first > second else "second")


def _richness(task: str, report: str) -> float:
    words = set(terms(report))
    return coverage(terms(task), words) + len(words) / (len(words) + 400.0)


class Pairwise(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Compare reports of two systems on the same task; the options are those of `Comparing`.

    Metrics: `won` (mean of both orders: 0, 0.25, 0.5, 0.75 or 1), `won_shown_first` and `won_shown_last`.
    """

    name: ClassVar[str] = "pairwise"
    words: ClassVar = PAIRWISE

    baseline: str | None = None
    """The system that all others are compared with; without one, each is with each."""
    budget: Annotated[int, msgspec.Meta(ge=1, le=10**9)] | None = None
    """The most comparisons; the run chooses those that tell most."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of one comparison."""
        return (Metric(name=WON, headline=True), Metric(name=FIRST), Metric(name=LAST))

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """Two questions, one in each order; equal texts tie without any. A comparison needs both answers."""
        if case.rival is None:
            raise GoldError(
                "gold_missing", f"task {case.task.id}: no report of another system to compare with"
            )
        own, rival = case.report.text, case.rival.text
        if own == rival:
            same = Evidence(
                what=f"{case.report.system} and {case.rival.system}",
                outcome=Outcome("tied", words="the same text"),
                value=0.5,
            )
            return Scorecard.of(self.name, case, dict.fromkeys((WON, FIRST, LAST), 0.5), [same])

        judgments = await tools.ask_all(
            BetterReport(
                context=Context.of(first=first, second=second),
                language=case.task.language,
                task=case.task.prompt,
            )
            for first, second in ((own, rival), (rival, own))
        )
        shown_first = Answered.of("shown first", judgments[0], lambda given: _WON[given.better], 0.0, 1.0)
        shown_last = Answered.of("shown last", judgments[1], lambda given: 1.0 - _WON[given.better], 0.0, 1.0)

        values: dict[str, Value] = {
            name: measured(orders, lambda given: fmean(won for _, won in given) if given else None, EVERY)
            for name, orders in (
                (WON, [shown_first, shown_last]),
                (FIRST, [shown_first]),
                (LAST, [shown_last]),
            )
        }
        evidence = [
            order.evidence(
                f"{case.report.system} against {case.rival.system}, {order.item}", _OUTCOMES.__getitem__
            )
            for order in (shown_first, shown_last)
        ]
        return Scorecard.of(self.name, case, values, evidence)


_OUTCOMES = {
    1.0: Outcome("won", words="won"),
    0.5: Outcome("tied", words="tied"),
    0.0: Outcome("lost", words="lost"),
}
