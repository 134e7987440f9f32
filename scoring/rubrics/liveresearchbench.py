"""LiveResearchBench (arXiv 2510.14240): presentation, coverage, consistency, citation association and depth.

Presentation and coverage are checklists, met or not. For consistency and citation association the judge lists problems,
which are counted. Depth compares the report side by side with a reference system's, in both orders.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Annotated, Any, ClassVar

import msgspec

from adjudge.judges import Answer, Context, Question
from adjudge.judges.lexical import sentences, terms
from adjudge.scoring.answers.parts import EVERY, Answered, combined, measured
from adjudge.scoring.contract.case import Case, GoldError
from adjudge.scoring.contract.labels import Labelled, labelled_points
from adjudge.scoring.contract.protocol import ExplainedCriterion, Tools
from adjudge.scoring.contract.scorecard import Evidence, Metric, Outcome, Partial, Scorecard
from adjudge.scoring.rubrics.asking import MAX_ITEMS, give_points
from adjudge.scoring.rubrics.criteria import LIVERESEARCHBENCH, Criterion, share
from adjudge.scoring.rubrics.figures import MAX_CRITERIA

MOST_PROBLEMS = 20  # the map ends at 18

_FIGURE = re.compile(r"\d{2}|\d%|百分之")
_CITED = re.compile(r"\[[0-9]{1,3}[\]†,]|\]\(|https?://")
_FULL = 60.0  # different words of a report that earn half of the marks

Mark = Annotated[int, msgspec.Meta(ge=0, le=5, multiple_of=1)]


class Problem(msgspec.Struct, frozen=True):
    """One problem: where it is, in the report's own words, and what is wrong."""

    place: Annotated[str, msgspec.Meta(max_length=200)]
    problem: Annotated[str, msgspec.Meta(max_length=200)]


class Problems(Answer, frozen=True, kw_only=True):
    """Every problem that was found, up to MOST_PROBLEMS."""

    analysis: Annotated[str, msgspec.Meta(max_length=800)] = ""
    problems: Annotated[list[Problem], msgspec.Meta(max_length=MOST_PROBLEMS)]


class ListedProblems(Question[Problems], frozen=True, kw_only=True):
    """Base of the questions for problems. `date` is the day the report was written for, "" if that is unknown."""

    answer = Problems

    task: str
    date: str

    def fields(self) -> dict[str, str]:
        """The task, and the date, which may be unknown."""
        return {"task": self.task, "date": self.date or "-"}


class ConsistencyProblems(ListedProblems, frozen=True, kw_only=True):
    """Where does the report contradict itself?"""

    words = "contradictions in a report"
    prompt = "live_consistency"

    def lexical(self) -> Problems:
        """None: words alone do not show contradictions."""
        return Problems(problems=[])


class CitationProblems(ListedProblems, frozen=True, kw_only=True):
    """Which statements of the report need a citation and have none?"""

    words = "problems with citations in a report"
    prompt = "live_citations"

    def lexical(self) -> Problems:
        """The sentences with figures that cite nothing."""
        found = [
            Problem(place=one[:200], problem="no citation")
            for one in sentences(self.context["report"])
            if _FIGURE.search(one) and not _CITED.search(one)
        ]
        return Problems(problems=found[:MOST_PROBLEMS])


_DIMENSIONS = ("granularity", "insight", "critique", "evidence", "density")


class Depth(Answer, frozen=True, kw_only=True):
    """Marks of both reports in five dimensions, 0 to 5 each."""

    analysis: Annotated[str, msgspec.Meta(max_length=1_200)] = ""
    first_granularity: Mark
    first_insight: Mark
    first_critique: Mark
    first_evidence: Mark
    first_density: Mark
    second_granularity: Mark
    second_insight: Mark
    second_critique: Mark
    second_evidence: Mark
    second_density: Mark

    @property
    def lead(self) -> int:
        """The first report's marks minus the second's."""
        marks = msgspec.structs.asdict(self)
        return sum(marks[f"first_{one}"] - marks[f"second_{one}"] for one in _DIMENSIONS)


class DeeperReport(Question[Depth], frozen=True, kw_only=True):
    """How deep is the analysis of two reports, `first` and `second` of the context?"""

    words = "the deeper of two analyses"
    prompt = "live_depth"
    answer = Depth

    task: str

    def lexical(self) -> Depth:
        """Higher marks the more different words a report uses."""
        marks: dict[str, Any] = {}
        for name in ("first", "second"):
            words = len(set(terms(self.context[name])))
            marks[name] = round(5 * words / (words + _FULL))
        return Depth(**{f"{name}_{one}": mark for name, mark in marks.items() for one in _DIMENSIONS})


# The most problems that still have the score: 100 without any, 10 above the last.
_STEPS = (0, 2, 4, 6, 8, 10, 12, 14, 17)
_AVERAGED = ("presentation", "coverage", "consistency", "citation")
_CLEAR = 1  # marks that a report must lead by more than, to win

PRESENTATION = {
    "en": (
        "The report is built in an order that is clear, easy to follow and aimed at the question of the task.",
        "The report is free of mistakes of grammar and spelling.",
        "Each item of the list of references is cited at least once in the text.",
        "Each citation in the text leads to an item of the list of references.",
        "There is one list of references, only one, and its items follow one recognisable order.",
        "Citations have the same form from the first to the last.",
        "Citations stand where a sentence or a part of it ends, so that none breaks the flow of reading.",
        "Each table or figure has all its data or can be seen; a report without any meets this.",
        "Formatting is correct and uniform: headings are marked up as such, and tables come out as tables.",
        "Numbers of citations leave none out, and no source has two numbers nor two sources one; a report whose "
        "citations are not numbered meets this.",
    ),
    "zh": (
        "报告的结构清晰、顺序合理、易于阅读，并且直接针对任务的问题。",
        "报告没有语法错误和错别字。",
        "参考文献列表中的每一条都在正文中至少被引用一次。",
        "正文中的每一处引用都能在参考文献列表中找到对应条目。",
        "参考文献列表只有一个，且各条按同一种可辨认的顺序排列。",
        "全文的引用格式从头到尾一致。",
        "引用都放在句子或分句的末尾，不打断阅读。",
        "每个图表的数据完整或能够正常显示；没有图表的报告视为满足。",
        "格式正确而统一：标题使用标题标记，表格能正常呈现为表格。",
        "引用编号没有跳号，一个来源没有两个编号，两个来源也不共用一个编号；引用不编号的报告视为满足。",
    ),
}


class LiveGold(msgspec.Struct, frozen=True):
    """A task's gold: its checklist, the reference system's report ("" for none) and the date ("" if not stated)."""

    checklist: tuple[str, ...] = ()
    reference: str = ""
    date: str = ""


def problem_score(problems: float) -> float:
    """The score for a number of problems: 1 for none, down in steps of 0.1 to 0.1 for 18 and more."""
    return (10 - sum(problems > most for most in _STEPS)) / 10


def depth_won(lead: int) -> float:
    """A report's win for a lead in marks: a lead of one is a tie."""
    return 0.5 if abs(lead) <= _CLEAR else float(lead > 0)


class LiveResearchBench(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score a report as LiveResearchBench does; the gold is `LiveGold`.

    `depth` counts a tie as half a win; `depth_code` is over what was won or lost, as the code pools it. A task without
    a checklist has no coverage, one without a reference no depth. `average` is ours, and without depth, which is
    relative to the reference.
    """

    name: ClassVar[str] = "liveresearchbench"
    withheld: ClassVar[str] = "gated"
    words: ClassVar = LIVERESEARCHBENCH

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics, those with the benchmark's names first."""
        return (
            Metric(name="average", worst=0.05, scale=100, headline=True),
            Metric(name="presentation", scale=100),
            Metric(name="coverage", scale=100, gold="checklist"),
            Metric(name="consistency", worst=0.1, scale=100),
            Metric(name="citation", worst=0.1, scale=100),
            Metric(name="depth", scale=100, gold="reference"),
            Metric(name="depth_code", scale=100, ratio=("depth_won", "depth_decided"), gold="reference"),
            Metric(name="depth_won", best=2.0, shown=False, kind="count", gold="reference"),
            Metric(name="depth_decided", best=2.0, worst=0.0, shown=False, kind="count", gold="reference"),
        )

    async def explained(self, case: Case, tools: Tools) -> list[ExplainedCriterion]:
        """The items of presentation and of coverage, with their share of `average`. Raises GoldError."""
        gold = _gold(case)
        averaged = len(_AVERAGED) - (not gold.checklist)
        return [
            ExplainedCriterion(what=item, weight=1 / averaged / len(items), tags=(name,))
            for name, items in (("presentation", _presentation(case)), ("coverage", gold.checklist))
            for item in items
        ]

    @staticmethod
    def labelled(line: Evidence) -> Labelled | None:
        """Whether an item of presentation or coverage is met; problems and depth have no label."""
        metric = line.id.rpartition(" ")[0]
        return labelled_points(line, metric) if metric in ("presentation", "coverage") else None

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        """The metrics of this task. Raises GoldError."""
        gold = _gold(case)
        due = [one for one in self.metrics if not one.gold or getattr(gold, one.gold)]
        averaged = len({*_AVERAGED} & {one.name for one in due})
        return msgspec.structs.replace(due[0], worst=0.2 / averaged), *due[1:]

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """The ten fixed items and the checklist, the problems of two kinds, and the comparison, all at once."""
        gold = _gold(case)
        parts = await asyncio.gather(
            _met(_presentation(case), "presentation", case, tools),
            _met(gold.checklist, "coverage", case, tools),
            _counted(ConsistencyProblems, "consistency", gold, case, tools),
            _counted(CitationProblems, "citation", gold, case, tools),
            _compared(gold.reference, case, tools),
        )
        scores = {name: value for values, _ in parts for name, value in values.items()}
        of_average = [scores[name] for name in _AVERAGED if name in scores]
        scores = {"average": combined(of_average, fmean), **scores}
        return Scorecard.of(self.name, case, scores, [line for _, lines in parts for line in lines])


Part = tuple[dict[str, float | Partial], list[Evidence]]


def _presentation(case: Case) -> Sequence[str]:
    """The ten fixed items, in the task's language."""
    return PRESENTATION["zh" if case.task.language == "zh" else "en"]


def _gold(case: Case) -> LiveGold:
    """The task's gold, checked. Raises GoldError."""
    gold = case.gold(LiveResearchBench.name, LiveGold)
    if len(gold.checklist) > MAX_CRITERIA or not all(item.strip() for item in gold.checklist):
        raise GoldError(
            "gold_invalid",
            f"task {case.task.id}: the checklist needs up to {MAX_CRITERIA:,} items, each with words",
        )
    return gold


async def _met(items: Sequence[str], metric: str, case: Case, tools: Tools) -> Part:
    """The share of `items` that are met, asked together with a reason each; nothing for no items."""
    if not items:
        return {}, []
    criteria = [
        Criterion(criterion=item, points=1.0, id=f"{metric} {at}") for at, item in enumerate(items, 1)
    ]
    answers, evidence = await give_points(criteria, case, tools, MAX_ITEMS, explained=True)
    return {metric: measured(answers, share, EVERY)}, evidence


async def _counted(kind: type[ListedProblems], metric: str, gold: LiveGold, case: Case, tools: Tools) -> Part:
    """The score of the problems that the judge lists."""
    context = Context.of(report=case.report.text)
    judgment = await tools.ask(
        kind(context=context, language=case.task.language, task=case.task.prompt, date=gold.date)
    )
    found = Answered.of(metric, judgment, lambda given: problem_score(len(given.problems)), 0.1, 1.0)
    listed = [
        Evidence(
            what=f"{metric}: {one.problem}",
            outcome=Outcome("problem", words="problem"),
            judgment=found.judgment,
            quote=one.place,
        )
        for one in (judgment.answer.problems if judgment.answer is not None else ())
    ]
    return {metric: measured([found], _mean, EVERY)}, [
        found.evidence(metric, lambda value: Outcome("points", value, words=f"{value:.0%}")),
        *listed,
    ]


async def _compared(reference: str, case: Case, tools: Tools) -> Part:
    """Depth against the reference, in both orders; nothing without one."""
    if not reference:
        return {}, []
    own = case.report.text
    judgments = await tools.ask_all(
        DeeperReport(
            context=Context.of(first=first, second=second), language=case.task.language, task=case.task.prompt
        )
        for first, second in ((own, reference), (reference, own))
    )

    def orders(read: Callable[[float], float]) -> list[Answered[str]]:
        """The result of `read` for the report's wins in both orders."""
        first, last = judgments
        return [
            Answered.of("depth, shown first", first, lambda marks: read(depth_won(marks.lead)), 0.0, 1.0),
            Answered.of("depth, shown last", last, lambda marks: read(depth_won(-marks.lead)), 0.0, 1.0),
        ]

    won = orders(lambda won: won)
    values = {
        "depth": measured(won, _mean, EVERY),
        "depth_won": measured(orders(lambda won: float(won == 1.0)), _sum, EVERY),
        "depth_decided": measured(orders(lambda won: float(won != 0.5)), _sum, EVERY),
    }
    return values, [
        one.evidence(one.item, lambda value: Outcome("points", value, words=f"{value:g}")) for one in won
    ]


def _sum(given: Sequence[tuple[str, float]]) -> float:
    return sum(value for _, value in given)


def _mean(given: Sequence[tuple[str, float]]) -> float | None:
    return fmean(value for _, value in given) if given else None
