"""Weighted rubrics: a user's own criteria, each asked alone or several in one question, over the report.

The score is the sum of the points given over the sum of all positive points. The rubric part of DR Tulu's reward (RLER)
is here too: rubrics that stay and rubrics that the trainer adapts.
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar

import msgspec

from adjudge.judges.plural import listed
from adjudge.scoring.answers.parts import Answered, MinAnswered
from adjudge.scoring.contract.case import Case, GoldError
from adjudge.scoring.contract.gold import DraftsFrom, GoldItems, GoldSource
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Evidence, Metric, Missing, Outcome
from adjudge.scoring.rubrics.asking import ItemsAQuestion, give_points
from adjudge.scoring.rubrics.criteria import (
    RLER,
    RUBRICS,
    Criterion,
    Given,
    clipped,
    load_criteria,
    pass_rate,
    rubric_score,
    share,
    tag_score,
    tags_of,
)
from adjudge.scoring.rubrics.drafting import criterion_item, draft_criteria
from adjudge.scoring.rubrics.figures import GOLD, MAX_CRITERIA, ByCriteria, Figure, checked


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
        if general and not criteria and GOLD not in case.task.gold:
            named = listed(list(dict.fromkeys(repr(one.task) for one in general)))
            raise GoldError(
                "gold_missing", f"task {case.task.id}: no criterion of {self.file} is for it, but for {named}"
            )
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


PERSISTENT, ADAPTIVE = "persistent", "adaptive"


def rubric_reward(given: Given) -> float:
    """Points over all positive weights, or over 1 if those are less."""
    pairs = list(given)
    return sum(points for _, points in pairs) / max(sum(one.full for one, _ in pairs), 1.0)


def kind_reward(given: Given) -> float:
    """The reward over the rubrics of one kind: points over the sum of all its weights, or over 1 if that is less.

    Negative weights lower the denominator, as in the training code: it may lie above 1.
    """
    pairs = list(given)
    return sum(points for _, points in pairs) / max(sum(one.weight for one, _ in pairs), 1.0)


class Rler(ByCriteria, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Reward a report by DR Tulu's rubrics (gold `rubrics`): each scored 0, 1 or 2, halved.

    `rubric_reward` is over all rubrics, `persistent_rubric_reward` and `adaptive_rubric_reward` over those of a kind,
    as the training code divides them. Rubrics without a kind are persistent. The evidence holds each rubric's score,
    0 to 1.
    """

    name: ClassVar[str] = "rler"
    words: ClassVar = RLER

    def criteria(self, case: Case) -> list[Criterion]:
        """The task's rubrics, each with half its weight between none and all. Raises GoldError."""
        found = case.gold(GOLD, tuple[Criterion, ...])
        if not 0 < len(found) <= MAX_CRITERIA:
            raise GoldError(
                "gold_invalid", f"task {case.task.id}: {len(found):,} rubrics, 1 to {MAX_CRITERIA:,}"
            )
        rubrics = []
        for one in found:
            tags = one.tags if {PERSISTENT, ADAPTIVE} & {*one.tags} else (*one.tags, PERSISTENT)
            rubrics.append(msgspec.structs.replace(one, tags=tags).halved())
        return rubrics

    def figures(self, criteria: Sequence[Criterion]) -> Iterator[Figure]:
        """Over all rubrics, over the persistent and over the adaptive ones."""
        yield Figure(Metric(name="rubric_reward", headline=True), rubric_reward)
        yield Figure(Metric(name="persistent_rubric_reward", best=None), kind_reward, PERSISTENT)
        yield Figure(Metric(name="adaptive_rubric_reward", best=None), kind_reward, ADAPTIVE)

    async def ask(
        self, criteria: Sequence[Criterion], case: Case, tools: Tools
    ) -> tuple[list[Answered[Criterion]], list[Evidence]]:
        """The points of every rubric, each asked alone; the evidence holds its score."""
        answers, evidence = await give_points(criteria, case, tools)
        scored = []
        for rubric, line in zip(criteria, evidence, strict=True):
            if line.value is not None:
                score = line.value / rubric.weight + 0.0
                line = msgspec.structs.replace(line, value=score, outcome=Outcome.graded(score, 1.0))
            scored.append(line)
        return answers, scored
