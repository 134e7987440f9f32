"""Weighted rubrics: a user's own criteria, each asked alone or several in one question, over the report.

The score is the sum of the points given over the sum of all positive points.
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar

import msgspec

from adjudge.scoring.answers.answered import Answered
from adjudge.scoring.answers.parts import MinAnswered
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.gold import DraftsFrom, GoldItems, GoldSource
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Evidence, Metric, Missing
from adjudge.scoring.rubrics.asking import ItemsAQuestion, give_points
from adjudge.scoring.rubrics.criteria import Criterion, load_criteria, tags_of
from adjudge.scoring.rubrics.drafting import criterion_item, draft_criteria
from adjudge.scoring.rubrics.figures import GOLD, ByCriteria, Figure, checked
from adjudge.scoring.rubrics.measures import clipped, pass_rate, rubric_score, share, tag_score
from adjudge.scoring.rubrics.words import RUBRICS

__all__ = ["Rubrics"]


class Rubrics(ByCriteria, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score a report by the task's own criteria (gold `rubrics`) and those of `file`, which every node must reach.

    Metrics: `score` (negative where penalties prevail), `score_clipped` (each report's score between 0 and 1),
    `score_mean_clipped` (the mean over tasks between 0 and 1), `share` and `pass_rate`; then, for every tag, `tag:NAME`
    (`tag_score`), `share:NAME` and `pass_rate:NAME`. Each is over the criteria that were answered, and has a value if
    those are the share `min_answered` of its own.

    Up to `items_a_question` criteria share a question; with `evidence` the judge gives a reason and quotes the report
    for each.
    """

    name: ClassVar[str] = "rubrics"
    words: ClassVar = RUBRICS
    drafts_from: ClassVar[DraftsFrom] = "task"

    file: str | None = None
    """Criteria for all tasks (YAML)."""
    min_answered: MinAnswered = 0.8
    """The share of its parts that a metric needs to have a value."""
    items_a_question: ItemsAQuestion = 1
    """How many criteria the judge gets in one question."""
    evidence: bool = False
    """Whether the judge quotes what a verdict rests on and gives its reason."""

    def __post_init__(self) -> None:
        if self.file is not None:
            load_criteria(self.file)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics over the criteria of `file` that are for every task; a task's gold may add tags and penalties."""
        general = [] if self.file is None else [c for c in load_criteria(self.file) if c.task is None]
        return tuple(one.metric for one in self._figures(general))

    def criteria(self, case: Case) -> list[Criterion]:
        """The task's criteria, then those of the file. Raises GoldError if none has positive points."""
        general = () if self.file is None else load_criteria(self.file)
        criteria = [criterion for criterion in general if criterion.task in (None, case.task.id)]
        if GOLD in case.task.gold or not criteria:
            criteria = [*case.gold(GOLD, tuple[Criterion, ...]), *criteria]
        return checked(case, criteria)

    async def draft(
        self, case: Case, tools: Tools, sources: Sequence[GoldSource] = ()
    ) -> msgspec.Raw | Missing:
        """The task's own criteria, drafted from its prompt if it has none. Raises GoldError."""
        return case.task.gold.get(GOLD) or await draft_criteria(case, tools, sources)

    def gold_items(self, case: Case) -> GoldItems:
        """The task's own criteria and those of the file. Raises GoldError."""
        return GoldItems(items=tuple(map(criterion_item, self.criteria(case))))

    def figures(self, criteria: Sequence[Criterion]) -> Iterator[Figure]:
        """Over all criteria, then over those of every tag."""
        yield Figure(Metric(name="score", headline=True), rubric_score)
        yield Figure(Metric(name="score_clipped"), clipped(rubric_score))
        yield Figure(Metric(name="score_mean_clipped", clip=(0.0, 1.0), shown=False), rubric_score)
        yield Figure(Metric(name="share", shown=False), share)
        yield Figure(Metric(name="pass_rate", shown=False), pass_rate)
        for tag in tags_of(criteria):
            yield Figure(Metric(name=f"tag:{tag}"), tag_score, tag)
            if any(criterion.full for criterion in criteria if tag in criterion.tags):
                yield Figure(Metric(name=f"share:{tag}", shown=False), share, tag)
            yield Figure(Metric(name=f"pass_rate:{tag}", shown=False), pass_rate, tag)

    @property
    def needed(self) -> float:
        """The share of its criteria that a figure needs answers to: `min_answered`."""
        return self.min_answered

    async def ask(
        self, criteria: Sequence[Criterion], case: Case, tools: Tools
    ) -> tuple[list[Answered[Criterion]], list[Evidence]]:
        """The points of every criterion, as many to a question as the options say."""
        return await give_points(criteria, case, tools, self.items_a_question, self.evidence)
