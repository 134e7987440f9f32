"""Dr.Mi-Bench: planning, retrieval and reasoning of scientific research agents.

Planning compares an agent's subtasks with an expert's, retrieval the works it found with those that a paper rests on,
and reasoning what its report says about 15 to 20 statements, some of them wrong. All three are scored end to end and in
isolation: `Report.mode` says what a report was written from. The statements and the plan can be drafted from a paper.
"""

import asyncio
from collections.abc import Sequence
from itertools import cycle, islice
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from adjudge.judges import Answer, Context, Question, numbered
from adjudge.judges.lexical import passages, sentences
from adjudge.judges.plural import plural
from adjudge.scoring.answers.numbered import Numbered, batches
from adjudge.scoring.answers.parts import bounded
from adjudge.scoring.answers.sameness import SameAs, Verdicts, clipped, same_as
from adjudge.scoring.contract.case import Case, Report
from adjudge.scoring.contract.gold import DraftsFrom, GoldItem, GoldItems, GoldSource, joined
from adjudge.scoring.contract.labels import MATCH, MATCHED, LabelKind, Labelled
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import (
    MISSING,
    Evidence,
    Metric,
    MetricWords,
    Missing,
    Outcome,
    Scorecard,
    Value,
    first_missing,
)
from adjudge.scoring.drmi_bench.measures import (
    Label,
    Reference,
    Rule,
    doi_of,
    planning_scores,
    reasoning_scores,
    retrieval_scores,
)
from adjudge.scoring.text.aside import aside, storable
from adjudge.scoring.text.citations import parse

DRMI = MetricWords(
    source="Dr.Mi-Bench",
    of={
        "plan_f1": "The harmonic mean of precision and recall of the planned subtasks, matched one to one.",
        "plan_precision": "The planned subtasks that the expert's plan has, matched one to one.",
        "plan_recall": "The expert's subtasks that the plan has, matched one to one.",
        "plan_accuracy": "Matched subtasks of all different ones (Jaccard), as the paper's text says.",
        "plan_accuracy_tables": "The precision of the plan, which the paper's tables print as accuracy.",
        "plan_f1_many": "The harmonic mean of precision and recall, where a subtask may match several.",
        "plan_precision_many": "The planned subtasks that match any of the expert's.",
        "plan_recall_many": "The expert's subtasks that match any of the plan's.",
        "retrieval_accuracy": "Works found of all different ones (Jaccard) for a review; a hit for a research paper.",
        "retrieval_f1": "The harmonic mean of precision and recall of the works that were found.",
        "retrieval_precision": "The works found that are the gold ones.",
        "retrieval_recall": "The gold works that were found.",
        "reasoning_accuracy": "The statements about the paper that the report gets right.",
        "reasoning_f1": "The harmonic mean of precision and recall of the statements, true as the positive class.",
        "reasoning_precision": "The statements that the report makes true and that are.",
        "reasoning_recall": "The true statements that the report makes true.",
        "reasoning_f1_macro": "F1 as the mean over the labels of statements.",
        "reasoning_precision_macro": "Precision as the mean over the labels of statements.",
        "reasoning_recall_macro": "Recall as the mean over the labels of statements.",
    },
    forms={
        "_doi": "Works are the same if their DOIs are (section 3.2).",
        "_title20": "Works are the same if the first 20 letters and digits of their titles are (A.17).",
    },
)


FEWEST, MOST = 15, 20  # statements of a paper, as published
MOST_SUBTASKS = 12

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]


class DraftedStatement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A statement, and whether it is true of the paper."""

    text: Text
    truth: bool


class DraftedStatements(Answer, frozen=True, kw_only=True):
    """Statements about a paper's question, some of them false."""

    analysis: Annotated[str, msgspec.Meta(max_length=600)] = ""
    statements: Annotated[list[DraftedStatement], msgspec.Meta(min_length=FEWEST, max_length=MOST)]


class StatementsOf(Question[DraftedStatements], frozen=True, kw_only=True):
    """Which statements, true and false, show whether a report knows what the paper (context) found?"""

    prompt = "drmi_draft_statements"
    words = "a draft of statements from a paper"
    answer = DraftedStatements

    def lexical(self) -> DraftedStatements:
        """The paper's own sentences, all of them true: words alone do not make a plausible falsehood."""
        found = [one[:300] for one in islice(sentences(self.context["document"]), MOST)] or ["-"]
        count = max(FEWEST, len(found))
        return DraftedStatements(
            statements=[DraftedStatement(text=one, truth=True) for one in islice(cycle(found), count)]
        )


class DraftedPlan(Answer, frozen=True, kw_only=True):
    """The subtasks of the research that a paper reports."""

    analysis: Annotated[str, msgspec.Meta(max_length=400)] = ""
    subtasks: Annotated[tuple[Text, ...], msgspec.Meta(min_length=3, max_length=MOST_SUBTASKS)]


class PlanOf(Question[DraftedPlan], frozen=True, kw_only=True):
    """Into which subtasks would an expert divide the research that the paper (context) reports?"""

    prompt = "drmi_draft_plan"
    words = "a draft of a plan from a paper"
    answer = DraftedPlan

    def lexical(self) -> DraftedPlan:
        """The first lines of the paper's sections, as far as sentences show them."""
        found = [one[:300] for one in islice(sentences(self.context["document"]), 6)] or ["-"]
        return DraftedPlan(subtasks=tuple(islice(cycle(found), max(3, len(found)))))


Module = Literal["planning", "retrieval", "reasoning"]

MAX_SUBTASKS = 100
"""How many subtasks of a plan are compared; those beyond count as wrong."""

_RULES: tuple[tuple[str, Rule], ...] = (("", "combined"), ("_doi", "doi"), ("_title20", "title20"))


class Statement(msgspec.Struct, frozen=True):
    """A statement about the paper's question, and whether it is true."""

    text: str
    truth: bool


class Gold(msgspec.Struct, frozen=True, kw_only=True):
    """The gold of one paper; an empty part leaves its module unscored (gold_missing).

    `kind` is `review` for a paper that rests on many works, `research` for one with a single gold work.
    """

    kind: Literal["research", "review"] = "review"
    plan: tuple[str, ...] = ()
    references: tuple[Reference, ...] = ()
    statements: tuple[Statement, ...] = ()


class Labels(Answer, frozen=True, kw_only=True):
    """For each numbered statement, what the report makes of it."""

    analysis: Annotated[str, msgspec.Meta(max_length=600)] = ""
    items: dict[str, Label]


STATED = LabelKind(
    name="statement",
    question="By this report, is the statement true, false, or not stated?",
    labels={"true": 1.0, "false": 0.0, "not_stated": 0.0},
)


class LabelStatements(Numbered[Labels], frozen=True, kw_only=True):
    """How a report (context) judges at most 20 statements."""

    words = "what a report makes of listed statements"
    prompt = "drmi_statements"
    answer = Labels
    listed = "statements"

    statements: tuple[str, ...]

    def lexical(self) -> Labels:
        """True if some passage has the statement's words, names and figures; the embedded judge sees no falsehood."""
        report = passages(self.context["report"])
        verdicts = (report.support(statement).verdict for statement in self.statements)
        keyed = zip(numbered(self.count), verdicts, strict=True)
        return Labels(
            items={key: "true" if verdict == "supported" else "not_stated" for key, verdict in keyed}
        )


class SameSubtask(SameAs, frozen=True, kw_only=True):
    """Which of the expert's subtasks (references) a predicted subtask (candidate) does the work of."""

    words = "which of the expert's steps a planned step does"
    prompt = "drmi_subtask"


class DrMi(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The protocol. `modules` are those to be scored: a report that lacks what one of them looks at scores 0 there.

    Leave `planning` out for agents without a plan, and for reports written from the gold plan.
    """

    name: ClassVar[str] = "drmi"
    words: ClassVar = DRMI
    drafts_from: ClassVar[DraftsFrom] = "document"

    modules: Annotated[tuple[Module, ...], msgspec.Meta(min_length=1)] = (
        "planning",
        "retrieval",
        "reasoning",
    )
    """Which of the benchmark's modules are scored."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """A table by module: the paper's columns, then other readings (see `Planning`, `Retrieval`, `Reasoning`)."""
        return tuple(
            Metric(
                name=name,
                scale=100,
                headline=name in _HEADLINES,
                shown=name in _COLUMNS[module],
                table=module,
                gold=_GOLD[module],
            )
            for module in self.modules
            for name in dict.fromkeys((*_COLUMNS[module], *_NAMES[module]))
        )

    @staticmethod
    def labelled(line: Evidence) -> Labelled | None:
        """Whether a subtask is in the expert's plan, or what the report makes of a statement."""
        kind = line.outcome.kind
        if kind in STATED.labels:
            return Labelled.of(STATED, kind)
        return Labelled.of(MATCH, MATCHED[kind]) if kind in MATCHED else None

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        """The metrics of the modules that the task has gold for. Raises GoldError."""
        gold = case.gold(self.name, Gold)
        return tuple(metric for metric in self.metrics if getattr(gold, metric.gold))

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """Scores the modules side by side."""
        gold = case.gold(self.name, Gold)
        scored = await asyncio.gather(*(_MODULES[module](case, gold, tools) for module in self.modules))
        values: dict[str, Value] = {}
        evidence: list[Evidence] = []
        for module, found in zip(self.modules, scored, strict=True):
            values.update(found.named(_NAMES[module]))
            evidence.extend(found.evidence)
        return Scorecard.of(self.name, case, values, evidence)

    async def draft(
        self, case: Case, tools: Tools, sources: Sequence[GoldSource] = ()
    ) -> msgspec.Raw | Missing:
        """The task's gold with statements and a plan, drafted from a paper where it has none. Raises GoldError."""
        gold: dict[str, Any] = {}
        if "drmi" in case.task.gold:
            gold |= case.gold("drmi", dict[str, Any])
        context, language = Context.of(task=case.task.prompt, document=joined(sources)), case.task.language

        asked: list[Question[Any]] = []
        if not gold.get("statements"):
            asked.append(StatementsOf(context=context, language=language))
        if not gold.get("plan"):
            asked.append(PlanOf(context=context, language=language))
        judgments = await tools.ask_all(asked)
        if missing := first_missing(judgments):
            return missing
        for judgment in judgments:
            if isinstance(judgment.answer, DraftedStatements):
                gold["statements"] = judgment.answer.statements
            elif isinstance(judgment.answer, DraftedPlan):
                gold["plan"] = judgment.answer.subtasks
        return msgspec.Raw(msgspec.json.encode(gold))

    def gold_items(self, case: Case) -> GoldItems:
        """The statements and the plan of the task's gold. Raises GoldError."""
        gold = case.gold(self.name, Gold)
        items = [
            GoldItem(part="statements", item=one.text, kind="fact", truth=one.truth, line=one.text)
            for one in gold.statements
        ]
        items += [GoldItem(part="plan", item=one, kind="requirement", matched=True) for one in gold.plan]
        return GoldItems(items=tuple(items))


class Scored(msgspec.Struct, frozen=True):
    """A module's figures in the order of its names, or why they are missing."""

    figures: Sequence[Value] | Missing
    evidence: list[Evidence] = []

    def named(self, names: Sequence[str]) -> dict[str, Value]:
        """The figures by name."""
        if isinstance(self.figures, Missing):
            return dict.fromkeys(names, self.figures)
        return dict(zip(names, self.figures, strict=True))


async def _planning(case: Case, gold: Gold, tools: Tools) -> Scored:
    """Every predicted subtask is put beside all gold subtasks."""
    if not gold.plan:
        return Scored(Missing("gold_missing"))
    context = Context.of(question=case.task.prompt)
    plan = case.report.plan
    asked = [clipped(subtask) for subtask in plan[:MAX_SUBTASKS] if subtask.strip()]

    async def same(subtask: str) -> Verdicts | Missing:
        def ask(batch: tuple[str, ...]) -> SameSubtask:
            return SameSubtask(
                context=context, language=case.task.language, candidate=subtask, references=batch
            )

        return await same_as(tools, ask, gold.plan)

    verdicts = await asyncio.gather(*map(same, asked))
    rest = [[False] * len(gold.plan)] * (len(plan) - len(asked))
    missing = [verdict for verdict in verdicts if isinstance(verdict, Missing)]

    def figures(unknown: bool) -> tuple[float, ...]:
        """With the subtasks whose comparison is missing the same as all of gold's, or as none."""
        known = [
            [unknown] * len(gold.plan) if isinstance(verdict, Missing) else verdict.same
            for verdict in verdicts
        ]
        found = planning_scores([*known, *rest], len(gold.plan))
        one, many = found.one_to_one, found.many_to_many
        of_one, of_many = ((each.f1, each.precision, each.recall) for each in (one, many))
        return (*of_one, found.jaccard, one.precision, *of_many)

    evidence = [
        verdict.evidence(subtask, gold.plan)
        for subtask, verdict in zip(asked, verdicts, strict=True)
        if not isinstance(verdict, Missing)
    ]
    worst = figures(False)
    ends = zip(worst, figures(True) if missing else worst, strict=True)
    parts = len(asked)
    return Scored(
        [
            bounded(missing[0] if missing else low, (low, high), parts - len(missing), parts)
            for low, high in ends
        ],
        evidence,
    )


async def _retrieval(case: Case, gold: Gold, tools: Tools) -> Scored:
    """No judge: works are the same by DOI or title."""
    if not gold.references:
        return Scored(Missing("gold_missing"))
    predicted = await retrieved(case.report)
    figures: list[float] = []
    for _, rule in _RULES:
        found = retrieval_scores(predicted, gold.references, rule, gold.kind)
        figures += [found.accuracy, found.overlap.f1, found.overlap.precision, found.overlap.recall]
    count = Outcome("note", words=f"{figures[0]:.3f} of {plural(len(predicted), 'reference')}")
    return Scored(tuple(figures), [Evidence(what="retrieval accuracy", outcome=count)])


async def _reasoning(case: Case, gold: Gold, tools: Tools) -> Scored:
    """The report's labels of the statements, at most 20 per question."""
    if not gold.statements:
        return Scored(Missing("gold_missing"))
    context = Context.of(report=case.report.text)
    texts = batches([statement.text for statement in gold.statements])
    questions = (
        LabelStatements(context=context, language=case.task.language, statements=batch) for batch in texts
    )
    judgments = await tools.ask_all(questions)
    labels: list[Label | None] = []
    evidence = []
    truths = iter(["true" if one.truth else "false" for one in gold.statements])
    for batch, judgment in zip(texts, judgments, strict=True):
        items = judgment.answer.items if judgment.answer is not None else {}
        reason = None if judgment.answer is not None else judgment.reason or "judge_unparseable"
        for text, key in zip(batch, numbered(len(batch)), strict=True):
            label, right_label = items.get(key), next(truths)
            labels.append(label)
            evidence.append(
                Evidence(
                    what=text,
                    outcome=MISSING if label is None else Outcome(label, words=label),
                    judgment=judgment.key.hex(),
                    reason=reason or "",
                    value=None if label is None else float(label == right_label),
                )
            )
    missing = first_missing(judgments)
    truth = [statement.truth for statement in gold.statements]
    right: list[Label] = ["true" if true else "false" for true in truth]
    wrong: list[Label] = ["false" if true else "true" for true in truth]
    low, high = (
        reasoning_scores(truth, [label or end for label, end in zip(labels, ends, strict=True)]).figures
        for ends in (wrong, right)
    )
    answered = sum(label is not None for label in labels)
    figures = [
        bounded(missing or best, (worst, best), answered, len(labels))
        for worst, best in zip(low, high, strict=True)
    ]
    return Scored(figures, evidence)


async def retrieved(report: Report) -> list[Reference]:
    """The works that a report found: its `evidence`, else its `citations`, else the sources that its text cites."""
    cited = report.evidence or report.citations
    if cited:
        return [Reference(one.title, doi_of(f"{one.url} {one.title}")) for one in cited]
    parsed = await aside(parse, storable(report.text))
    listed = [Reference(one.title, doi_of(f"{one.url} {one.title}")) for one in parsed.references]
    known = {one.url for one in parsed.references}
    urls = dict.fromkeys(triplet.url for triplet in parsed.triplets if triplet.url not in known)
    return [*listed, *(Reference(doi=doi_of(url)) for url in urls)]


_MODULES = {"planning": _planning, "retrieval": _retrieval, "reasoning": _reasoning}
_NAMES: dict[str, tuple[str, ...]] = {
    "planning": tuple(
        f"plan_{figure}"
        for figure in (
            *("f1", "precision", "recall", "accuracy", "accuracy_tables"),
            *("f1_many", "precision_many", "recall_many"),
        )
    ),
    "retrieval": tuple(
        f"retrieval_{figure}{suffix}"
        for suffix, _ in _RULES
        for figure in ("accuracy", "f1", "precision", "recall")
    ),
    "reasoning": (
        "reasoning_accuracy",
        *(
            f"reasoning_{figure}{suffix}"
            for suffix in ("", "_macro")
            for figure in ("f1", "precision", "recall")
        ),
    ),
}
_COLUMNS: dict[str, tuple[str, ...]] = {
    "planning": ("plan_accuracy_tables", "plan_precision", "plan_recall", "plan_f1"),
    "retrieval": ("retrieval_accuracy", "retrieval_precision", "retrieval_recall", "retrieval_f1"),
    "reasoning": (
        "reasoning_accuracy",
        "reasoning_precision_macro",
        "reasoning_recall_macro",
        "reasoning_f1_macro",
    ),
}
"""The columns of the paper's tables: accuracy, precision, recall and F1 of each module."""

_GOLD: dict[str, str] = {"planning": "plan", "retrieval": "references", "reasoning": "statements"}
"""What of a task's gold each module is held against."""

_HEADLINES = frozenset({"plan_f1", "retrieval_accuracy", "reasoning_accuracy"})
