"""DR3-Eval: reports written from a user's files and a sandbox corpus, by six metrics (here 0..1, shown times 100).

Gold: `user_files` and `corpus` (`sandbox.Source`s; the format reader loads them), `insights` of both and a `checklist`
(found by the judge if gold has none), and the `corpus_size`, by which results are also given.

A pair without an answer (a cited picture that no judge looks at) is missing on its own; neither paper nor code covers
that case, so `fa` and `fa_claims` are over the other pairs if these are at least the share `min_answered`. Recall, `if`
and `dq` need all their answers, and an average needs a value of every part. The arithmetic is the paper's and its
code's.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, ClassVar

import msgspec

from adjudge.judges import Answer, Context, Question
from adjudge.scoring.answers.parts import EVERY, Answered, Measure, MinAnswered, combined, measured
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.gold import DraftsFrom, GoldItem, GoldItems, GoldSource
from adjudge.scoring.contract.labels import BACKED, MET_LABELS, MET_OR_NOT, LabelKind, Labelled
from adjudge.scoring.contract.protocol import ExplainedCriterion, Tools
from adjudge.scoring.contract.scorecard import (
    Evidence,
    Metric,
    MetricWords,
    Missing,
    Outcome,
    OutcomeKind,
    Partial,
    Scorecard,
    Value,
)
from adjudge.scoring.dr3_eval.citing import Cited
from adjudge.scoring.dr3_eval.questions import (
    COUNTS,
    POOLED,
    Pair,
    check_report,
    find_checklist,
    find_insights,
    ground_claims,
    recall_insights,
    role_counts,
    strictly,
)
from adjudge.scoring.dr3_eval.sandbox import Sandbox, Source

WORDS = MetricWords(
    source="DR3-Eval",
    of={
        "average": "The mean of the paper's six metrics that a task has.",
        "average:": "The mean of the paper's metrics, over the tasks with this size of the corpus.",
        "average_code": "The mean of the code's five metrics.",
        "ir_uf": "Information recall: the gold insights of the user's files that the report has.",
        "ir_sc": "Information recall: the gold insights of the sandbox corpus that the report has.",
        "ir": "Information recall: the mean over user files and corpus.",
        "cc": "Citation coverage: the required sources that the report cites.",
        "cc_lenient": "Citation coverage by the code's rule, which matches titles loosely.",
        "fa": "Factual accuracy: the pairs of claim and source that are supported.",
        "fa:": "Factual accuracy over the sources with this role, pooled over tasks.",
        "fa_claims": "Factual accuracy: the claims that all of their sources support.",
        "fa_lenient": "Factual accuracy of claims, with sources matched as the code does.",
        "if": "Instruction following: the items of the checklist that are satisfied.",
        "dq": "Depth: the judge's mark from 1 to 10, over 10.",
        "cited": "Sources that the report cites.",
        "cited:": "Cited sources with this role.",
        "pairs:": "Pairs of claim and source with this role.",
        "supported:": "Supported pairs of claim and source with this role.",
        "share:": "The cited sources that have this role, pooled over tasks.",
    },
)


def information_recall(scores: Sequence[float | None]) -> float | None:
    """The share of insights that are wholly recalled: of 1, 0.5 and 0 only 1 counts. None without insights."""
    return sum(score == 1 for score in scores) / len(scores) if scores else None


def pair_accuracy(verdicts: Sequence[float]) -> float:
    """Factual accuracy of the paper: supported (claim, source) pairs over all; 0 without a pair."""
    return sum(verdicts) / len(verdicts) if verdicts else 0.0


def claim_accuracy(claims: Sequence[Sequence[bool]]) -> float | None:
    """The code's factual accuracy: claims whose every citation supports them, over all claims.

    A claim without a citation is unsupported. None without a claim.
    """
    return sum(bool(verdicts) and all(verdicts) for verdicts in claims) / len(claims) if claims else None


def instruction_following(verdicts: Sequence[float | None]) -> float | None:
    """Satisfied over all checklist items (paper); an item without a verdict is not satisfied. None without items."""
    return sum(verdict == 1 for verdict in verdicts) / len(verdicts) if verdicts else None


def instruction_following_code(verdicts: Sequence[float | None]) -> float | None:
    """Satisfied over the checklist items that have a verdict (code)."""
    return instruction_following([verdict for verdict in verdicts if verdict is not None])


def average(values: Sequence[float]) -> float:
    """The mean of the metrics that a task has.

    The paper's six are IR of user files, IR of the corpus, CC, FA, IF and DQ; its code averages the first two first.
    """
    return sum(values) / len(values)


SIZES = ("32k", "64k", "128k", "256k", "512k")


# The gold, and the question about the report as a whole.


class GoldInsights(msgspec.Struct, frozen=True):
    """The insights of a good report, by their sources; None where the judge finds them."""

    user_files: tuple[str, ...] | None = None
    corpus: tuple[str, ...] | None = None


class Gold(msgspec.Struct, frozen=True, kw_only=True):
    """A task's sources and what is expected of its reports."""

    user_files: tuple[Source, ...] = ()
    corpus: tuple[Source, ...] = ()
    insights: GoldInsights = GoldInsights()
    checklist: tuple[str, ...] = ()
    corpus_size: str = ""

    @property
    def recalls(self) -> tuple[str, ...]:
        """The recalls that this task has: `ir_uf`, `ir_sc` or both."""
        files = bool(self.user_files if self.insights.user_files is None else self.insights.user_files)
        pages = bool(self.supportive if self.insights.corpus is None else self.insights.corpus)
        return ("ir_uf",) * files + ("ir_sc",) * pages

    @property
    def supportive(self) -> tuple[Source, ...]:
        """The pages of the corpus that the task was made from."""
        return tuple(page for page in self.corpus if page.role == "supportive")

    @property
    def sandbox(self) -> Sandbox:
        """All sources, the user's first."""
        return Sandbox([*self.user_files, *self.corpus])

    @property
    def requires(self) -> bool:
        """Whether there is a source that a good report cites."""
        return bool(self.user_files or self.supportive)


class Depth(Answer, frozen=True, kw_only=True):
    """The depth of a report's analysis: 1 none, 10 as an expert would do it."""

    analysis: Annotated[str, msgspec.Meta(max_length=800)] = ""
    depth: Annotated[int, msgspec.Meta(ge=1, le=10)]


class DepthQuality(Question[Depth], frozen=True, kw_only=True):
    """How deep and how sound is the analysis of the report?"""

    words = "depth of the analysis"
    prompt = "dr3_depth"
    answer = Depth

    task: str


class DR3Protocol(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """DR3-Eval in one of two voices: `DR3` or `PublishedDR3`, over the same gold, sources and arithmetic."""

    name: ClassVar[str] = "dr3"
    words: ClassVar = WORDS

    async def found(
        self, case: Case, gold: Gold, tools: Tools
    ) -> tuple[dict[str, Value], Iterable[Evidence]]:
        """Every metric that the task has, and the evidence. Raises GoldError."""
        raise NotImplementedError

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """Recall of insights, coverage and support of citations, the checklist, depth, and their average."""
        return Scorecard.of(self.name, case, *await self.found(case, case.gold(self.name, Gold), tools))


class DR3(DR3Protocol, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score a report by DR3-Eval.

    `average` is the mean of the paper's six metrics without those that a task has no sources for, `average_code` that
    of the code's five, with its lenient forms. Beside them, `cc_lenient` is the code's own rule, `fa_lenient` matches
    sources permissively, `fa_claims` and `fa_lenient` count claims (sentences that cite, of which all sources must back
    it) where `fa` counts pairs, and what ends in a role or a size is the same for a part.
    """

    drafts_from: ClassVar[DraftsFrom] = "task"
    media: ClassVar[tuple[str, ...]] = ("image", "audio", "video")

    long_source: Annotated[int, msgspec.Meta(ge=2500)] = 20_000
    """Characters beyond which a source is judged by its five best chunks of 500 characters."""
    min_answered: MinAnswered = 0.8
    """The share of its parts that a metric needs to have a value."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All metrics that a task may have: the paper's columns, other forms, and counts by role of the sources."""
        return (*self._scores_of(("ir_uf", "ir_sc"), ("cc", "cc_lenient"), SIZES), *COUNTS, *POOLED)

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        """The metrics for which this task has sources."""
        gold = case.gold(self.name, Gold)
        sizes = (gold.corpus_size,) if gold.corpus_size else ()
        coverages = ("cc",) * gold.requires + ("cc_lenient",) * bool(gold.sandbox.titles)
        return (*self._scores_of(gold.recalls, coverages, sizes), *COUNTS, *POOLED)

    async def found(
        self, case: Case, gold: Gold, tools: Tools
    ) -> tuple[dict[str, Value], Iterable[Evidence]]:
        """Every metric that the task has, and the evidence. Raises GoldError."""
        sandbox, (given, of_corpus) = gold.sandbox, (gold.insights.user_files, gold.insights.corpus)
        cited, lenient = await asyncio.gather(sandbox.cited(case.report), sandbox.code_coverage(case.report))

        async def recall(insights: Sequence[str] | None, sources: Sequence[Source]) -> list[Answered[str]]:
            return await recall_insights(await _insights(insights, sources, case, tools), case, tools)

        async def follow() -> list[Answered[str]]:
            return await check_report(await _checklist(gold, case, tools), case, tools)

        report = Context.of(report=case.report.text)
        question = DepthQuality(context=report, language=case.task.language, task=case.task.prompt)
        files, pages, pairs, met, judgment = await asyncio.gather(
            recall(given, gold.user_files),
            recall(of_corpus, gold.supportive),
            ground_claims(cited, sandbox, case, tools, self.long_source),
            follow(),
            tools.ask(question),
        )
        depth = Answered.of("depth", judgment, lambda answer: answer.depth / 10, 0.1, 1.0)
        answers = Answers(files, pages, pairs, met, depth)
        scores = answers.scores((sandbox.coverage(cited), lenient), gold, self.min_answered)
        scores |= role_counts(strictly(pairs), sandbox, cited)
        return scores, [
            *(
                answer.evidence(
                    f"insight: {answer.item}", lambda value: Outcome.graded(value, 1.0, f"{value:g}")
                )
                for answer in [*files, *pages]
            ),
            *(_pair_evidence(answer, sandbox) for answer in pairs),
            *(answer.evidence(f"checklist: {answer.item}", _MET.__getitem__) for answer in met),
            depth.evidence("depth", lambda value: Outcome.graded(value, 1.0)),
            *_coverage_evidence(sandbox, cited),
        ]

    async def explained(self, case: Case, tools: Tools) -> list[ExplainedCriterion]:
        """The insights and the checklist of the task's gold, with their share of `average`. Raises GoldError."""
        gold = case.gold(self.name, Gold)
        averaged = len(gold.recalls) + gold.requires + len(("fa", "if", "dq"))
        files, pages = gold.insights.user_files or (), gold.insights.corpus or ()
        parts = (("insight", files), ("insight", pages), ("checklist", gold.checklist))
        return [
            ExplainedCriterion(what=f"{name}: {item}", weight=1 / averaged / len(items))
            for name, items in parts
            for item in items
        ]

    @staticmethod
    def labelled(line: Evidence) -> Labelled | None:
        """Whether a source backs a claim (`fa`), an item is met (`if`), or the report holds an insight."""
        if line.what.partition(": ")[0] not in _LABELLED:
            return None
        kind, metric, labels = _LABELLED[line.what.partition(": ")[0]]
        return Labelled.of(kind, labels.get(line.outcome.kind, ""), metric)

    async def draft(
        self, case: Case, tools: Tools, sources: Sequence[GoldSource] = ()
    ) -> msgspec.Raw | Missing:
        """The task's gold with insights and a checklist, found by the judge where it has none. Raises GoldError."""
        gold = case.gold(self.name, Gold)
        files, pages, checklist = await asyncio.gather(
            _insights(gold.insights.user_files, gold.user_files, case, tools),
            _insights(gold.insights.corpus, gold.supportive, case, tools),
            _checklist(gold, case, tools),
        )
        for one in (*files, *pages, checklist):
            if isinstance(one, Missing):
                return one
        raw = msgspec.json.decode(case.task.gold[self.name], type=dict[str, Any])
        raw |= {"insights": {"user_files": files, "corpus": pages}, "checklist": checklist}
        return msgspec.Raw(msgspec.json.encode(raw))

    def gold_items(self, case: Case) -> GoldItems:
        """The insights and the checklist of the task's gold, and the sources that it carries. Raises GoldError."""
        gold = case.gold(self.name, Gold)
        insights = (*(gold.insights.user_files or ()), *(gold.insights.corpus or ()))
        items = [GoldItem(part="insights", item=one, kind="fact", line=f"insight: {one}") for one in insights]
        items += [
            GoldItem(part="checklist", item=one, kind="requirement", line=f"checklist: {one}")
            for one in gold.checklist
        ]
        sources = tuple(GoldSource(one.label, one.text) for one in (*gold.user_files, *gold.supportive))
        return GoldItems(items=tuple(items), sources=sources)

    def _scores_of(
        self, recalls: Sequence[str], coverages: Sequence[str], sizes: Sequence[str]
    ) -> list[Metric]:
        """Metrics with a value for one report."""
        paper, code = (tuple(name for name in coverages if name == one) for one in ("cc", "cc_lenient"))
        columns = (*recalls, *paper, "fa", "if", "dq", "average")
        by_size = (f"average:{size}" for size in sizes)
        others = (*("ir",) * bool(recalls), *code, "fa_claims", "fa_lenient", "average_code", *by_size)
        return [
            *(Metric(name=name, scale=100.0, headline=name == "average") for name in columns),
            *(Metric(name=name, scale=100.0, shown=False) for name in others),
        ]


async def _insights(
    given: Sequence[str] | None, sources: Sequence[Source], case: Case, tools: Tools
) -> Sequence[str | Missing]:
    """The insights that gold gives, else those that the judge finds in `sources`."""
    return await find_insights(sources, case, tools) if given is None else given


async def _checklist(gold: Gold, case: Case, tools: Tools) -> Sequence[str] | Missing:
    return gold.checklist or await find_checklist(case, tools)


class Answers(msgspec.Struct, frozen=True):
    """The questions asked about a report: insights of both sides, (claim, source) pairs, checklist items, and depth."""

    files: list[Answered[str]]
    pages: list[Answered[str]]
    pairs: list[Answered[Pair]]
    met: list[Answered[str]]
    depth: Answered[str]

    def scores(
        self, coverages: tuple[float | None, float | None], gold: Gold, min_answered: float
    ) -> dict[str, Value]:
        """The metrics that this task has, its `coverages` by our rule and by the code's among them.

        The averages are over the parts that the task has.
        """
        sides = {"ir_uf": self.files, "ir_sc": self.pages}
        strict = strictly(self.pairs)
        recalls = {name: measured(sides[name], over(information_recall), EVERY) for name in gold.recalls}
        scores: dict[str, float | Partial] = {
            **recalls,
            "fa": measured(strict, over(pair_accuracy), min_answered),
            "if": measured(self.met, over(instruction_following), EVERY),
            "dq": measured([self.depth], over(lambda values: values[0] if values else None), EVERY),
        }
        code: dict[str, float | Partial] = {
            "fa_lenient": measured(self.pairs, _claims, min_answered),
            "if": scores["if"],
            "dq": scores["dq"],
        }
        if recalls:
            code["ir"] = combined(recalls.values(), average)
        for metrics, name, coverage in zip((scores, code), ("cc", "cc_lenient"), coverages, strict=True):
            if coverage is not None:
                metrics[name] = coverage
        averages = {
            "average": combined(scores.values(), average),
            "average_code": combined(code.values(), average),
        }
        if gold.corpus_size:
            averages[f"average:{gold.corpus_size}"] = averages["average"]
        claims = {"fa_claims": measured(strict, _claims, min_answered)}
        return {**averages, **scores, **code, **claims}


def over(arithmetic: Callable[[Sequence[float]], float | None]) -> Measure[Any]:
    """`arithmetic` over values whatever they are about; of verdicts, 1 is yes."""
    return lambda answers: arithmetic([value for _, value in answers])


def _claims(answers: Sequence[tuple[Pair, float]]) -> float:
    """By claims, which are the sentences that cite; 0 for a report that cites nothing."""
    claims: dict[int, list[bool]] = {}
    for pair, value in answers:
        claims.setdefault(pair.claim, []).append(value == 1)
    return claim_accuracy(list(claims.values())) or 0.0


# Evidence.

INSIGHT = LabelKind(
    name="insight",
    question="Does the report contain this insight?",
    labels={"wholly": 1.0, "partly": 0.0, "no": 0.0},
)
_LABELLED: dict[str, tuple[LabelKind, str, dict[str, str]]] = {
    "claim": (BACKED, "fa", {"supported": "supported", "unsupported": "unsupported"}),
    "checklist": (MET_OR_NOT, "if", MET_LABELS),
    "insight": (INSIGHT, "", {"met": "wholly", "partly": "partly", "unmet": "no"}),
}
"""Of each kind of line, what people label, the metric, and the label of each kind of outcome that has one."""


def _pair_evidence(answer: Answered[Pair], sandbox: Sandbox) -> Evidence:
    cites = answer.item.cites
    source = "a source that does not exist" if cites.lenient is None else sandbox.sources[cites.lenient].label
    if cites.place is None and cites.lenient is not None:
        source = f"{cites.name[:200]}, taken for {source} by lenient matching alone"
    return answer.evidence(f"claim: {answer.item.text} (citing {source})", _supported_or_not)


def _coverage_evidence(sandbox: Sandbox, cited: Cited) -> Iterator[Evidence]:
    for place, source in enumerate(sandbox.sources):
        if source.required:
            is_cited = place in cited.sources
            outcome = Outcome("met", words="cited") if is_cited else Outcome("unmet", words="not cited")
            yield Evidence(what=f"required source: {source.label}", outcome=outcome, url=source.url)


def _supported_or_not(value: float) -> Outcome:
    kind: OutcomeKind = "supported" if value else "unsupported"
    return Outcome(kind, words=kind)


_MET = {1.0: Outcome("met", words="met"), 0.0: Outcome("unmet", words="not met")}
