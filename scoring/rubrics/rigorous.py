"""Rigorous Bench (Dr. Bench): quality by rubrics, focus by keywords, trust by sources, and their product.

    IntegratedScore = Quality * (1 - SemanticDrift) * TrustworthyBoost * 100

Gold, as published: `qsr` (query-specific rubrics, strings or `Criterion`s), `fak` and `fdk` (focus-anchor and
focus-deviation keywords), `tsl` (trustworthy source links). The general rubrics are our own, with the published
structure (48 rubrics, 73 points, seven dimensions), or a file of the official ones. Keywords are measured by how often
the report uses them, and how relevant they are to its subject.

The paper has an answer for every rubric and keyword: without one, the metrics that need it have bounds and no value.
The dimensions are our own breakdown, over the rubrics that were answered (`min_answered`).
"""

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Annotated, ClassVar, Literal

import msgspec

from adjudge.judges import Answer, Context, numbered
from adjudge.judges.lexical import rank
from adjudge.judges.remembering import remembered
from adjudge.scoring.answers.numbered import Numbered
from adjudge.scoring.answers.parts import EVERY, Answered, Measure, MinAnswered, ask_numbered, measured
from adjudge.scoring.contract.case import Case, GoldError
from adjudge.scoring.contract.gold import DraftsFrom, GoldItems, GoldSource
from adjudge.scoring.contract.labels import Labelled, labelled_points
from adjudge.scoring.contract.protocol import ExplainedCriterion, Tools
from adjudge.scoring.contract.scorecard import Evidence, Metric, Missing, Outcome, Scorecard, Value
from adjudge.scoring.rubrics.asking import give_points
from adjudge.scoring.rubrics.criteria import (
    RIGOROUS,
    Criterion,
    explained_criteria,
    general_rubrics,
    load_criteria,
)
from adjudge.scoring.rubrics.drafting import draft_query, query_items
from adjudge.scoring.rubrics.links import LinkMatch, annotated, cited_urls, match_links, match_substrings
from adjudge.scoring.text.aside import aside, storable
from adjudge.scoring.text.citation_marks import compatible
from adjudge.scoring.text.cleaning import clean_report

_KEPT_CHARS = 2_000_000  # of the texts whose folded form is kept
Matching = Literal["auto", "words", "substrings"]

_IDEOGRAPHS = "㐀-䶿一-鿿豈-﫿぀-ヿ가-힯"
_HAS_IDEOGRAPHS = re.compile(f"[{_IDEOGRAPHS}]")
_SPACES = re.compile(r"\s{2,}|[^\S ]")  # what is more than one space, or another kind
_WORD_START = rf"(?<![^\W{_IDEOGRAPHS}])"
_WORD_END = rf"(?![^\W{_IDEOGRAPHS}])"


def keyword_frequency(keyword: str, text: str, matching: Matching = "auto") -> int:
    """How often `keyword` occurs in `text`, in any case and width, with any white space between its words.

    As whole words ("art" is not in "party"), or as a substring; `auto` takes words unless the keyword has characters
    of a script that puts no spaces between words. The published code takes substrings.
    """
    wanted = _folded(keyword)
    if not wanted:
        return 0
    if matching == "substrings" or (matching == "auto" and _HAS_IDEOGRAPHS.search(wanted)):
        return _folded(text).count(wanted)
    return sum(1 for _ in re.finditer(_WORD_START + re.escape(wanted) + _WORD_END, _folded(text)))


@remembered(_KEPT_CHARS)
def _folded(text: str) -> str:
    return _SPACES.sub(" ", compatible(text).casefold()).strip()


class Keyword(msgspec.Struct, frozen=True):
    """A keyword that a focused report uses (`wanted`) or avoids, and how often this report uses it."""

    word: str
    wanted: bool
    frequency: int


class Relevances(Answer, frozen=True, kw_only=True):
    """How relevant each keyword is to what the report is about: 1 not at all, 5 a central theme."""

    analysis: Annotated[str, msgspec.Meta(max_length=600)] = ""
    relevance: dict[str, Annotated[int, msgspec.Meta(ge=1, le=5)]]


class KeywordRelevance(Numbered[Relevances], frozen=True, kw_only=True):
    """How relevant is each keyword to the content of the report?"""

    words = "how relevant keywords are to a report"
    prompt = "keyword_relevance"
    answer = Relevances
    listed = "keywords"

    keywords: tuple[str, ...]

    def lexical(self) -> Relevances:
        """By how often the report uses the keyword."""
        text = self.context["report"]
        uses = (keyword_frequency(keyword, text) for keyword in self.keywords)
        relevance = {
            key: 1 + rank(count, (1, 2, 4, 8)) for key, count in zip(numbered(self.count), uses, strict=True)
        }
        return Relevances(relevance=relevance)


async def rate_keywords(
    keywords: Sequence[Keyword], case: Case, tools: Tools
) -> tuple[list[Answered[Keyword]], list[Evidence]]:
    """The relevance, 1..5, of every keyword that the report uses; 1 for those it does not use, without asking."""
    used = list(dict.fromkeys(keyword.word for keyword in keywords if keyword.frequency))
    report, language = Context.of(report=case.report.text), case.task.language

    def question(words: tuple[str, ...]) -> KeywordRelevance:
        return KeywordRelevance(context=report, language=language, keywords=words)

    rated = await ask_numbered(
        used, tools, question, lambda answer, key: float(answer.relevance[key]), 1.0, 5.0
    )
    by_word = {answer.item: answer for answer in rated}
    answers = []
    for keyword in keywords:
        found = by_word.get(keyword.word)
        answer = Answered(keyword, 1.0, 1.0, 1.0) if found is None else found.about(keyword)
        if found is not None and not keyword.wanted:  # the worst is the most relevance
            answer = msgspec.structs.replace(answer, worst=5.0, best=1.0)
        answers.append(answer)
    return answers, [_evidence(answer) for answer in answers]


def _evidence(answer: Answered[Keyword]) -> Evidence:
    keyword = answer.item
    what = f"{'anchor' if keyword.wanted else 'deviation'}: {keyword.word}"
    if not keyword.frequency:
        return Evidence(what=what, outcome=Outcome("note", words="not used"))

    def rated(relevance: float) -> Outcome:
        return Outcome("points", relevance, words=f"used {keyword.frequency} times, relevance {relevance:g}")

    return answer.evidence(what, rated)


DIMENSIONS = ("structure", "clarity", "coverage", "citation", "originality", "data", "format")


# The formulas, as the paper and its code have them.


def quality(
    specific: Iterable[tuple[float, float]],
    general: Iterable[tuple[float, float]],
    alpha: float = 0.5,
    beta: float = 0.5,
) -> float:
    """Quality, 0..1: alpha and beta times the share of points among (points, full points) of QSR and of GRR."""
    return alpha * _share(specific) + beta * _share(general)


def fak_drift(keywords: Iterable[tuple[float, float]], eps_plus: float) -> float:
    """Drift from what a focused report uses, 0..1: (frequency, relevance 1..5) of the focus-anchor keywords."""
    return 1 - _use(keywords, eps_plus)


def fdk_drift(keywords: Iterable[tuple[float, float]], eps_minus: float) -> float:
    """Drift to what a focused report avoids, 0..1: (frequency, relevance 1..5) of the focus-deviation keywords."""
    return _use(keywords, eps_minus)


def semantic_drift(fak: float, fdk: float, lam: float = 0.7, mu: float = 0.3) -> float:
    """SemanticDrift, 0..1."""
    return lam * fak + mu * fdk


def trustworthy_boost(
    links: LinkMatch,
    variant: Literal["formula", "algorithm"] = "formula",
    eta: float = 0.2,
    theta: float = 0.7,
    kappa: float = 0.3,
) -> float:
    """TrustworthyBoost, 1..1.2. Formula 4.3 counts all host matches, Algorithm 1 (and the code) those not full."""
    host = links.host if variant == "formula" else links.host - links.full
    full = links.full / links.trusted if links.trusted else 0.0
    return 1 + eta * (theta * full + kappa * host / (links.cited + 1))


def integrated_score(quality: float, drift: float, boost: float) -> float:
    """IntegratedScore of one entry, 0..120; a system's is the mean over entries."""
    return quality * (1 - drift) * boost * 100


def contribution_per_token(integrated: float, written: int) -> float:
    """Integrated score a token that the system itself generated. ZeroDivisionError if it generated none."""
    return integrated / written


def retrieval_index(annotated: int, retrieved: int) -> float:
    """Different sources cited over pages retrieved (plus one)."""
    return annotated / (retrieved + 1)


def _share(points: Iterable[tuple[float, float]]) -> float:
    pairs = list(points)
    return sum(given for given, _ in pairs) / sum(full for _, full in pairs)


def _use(keywords: Iterable[tuple[float, float]], eps: float) -> float:
    used = [min(frequency / eps, 1) * relevance / 5 for frequency, relevance in keywords]
    return sum(used) / len(used) if used else 0.0


# What experts laid down.


class Gold(msgspec.Struct, frozen=True):
    """The experts' gold for one query."""

    qsr: tuple[str | Criterion, ...]
    fak: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    fdk: tuple[str, ...] = ()
    tsl: tuple[str, ...] = ()


class Item(msgspec.Struct, frozen=True):
    """A rubric with its full points and tags, or a keyword with its frequency in the report."""

    part: Literal["qsr", "grr", "fak", "fdk"]
    full: float = 0.0
    tags: tuple[str, ...] = ()
    frequency: int = 0


class Rigorous(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score a report by Rigorous Bench.

    `integrated` is the headline; `quality` has the parts `qsr`, `grr` and one `dimension:NAME` per dimension, `drift`
    the parts `fak_drift` and `fdk_drift`. What ends in `_alg1` follows Algorithm 1 where it differs from formula 4.3;
    what ends in `_code` does so too, and matches URLs as the code does (`match_substrings`).
    `contribution_per_token` and `retrieval_index` are there for reports that say what they took.

    Rubrics judge the report with its annotations: those handed over apart from the text are put into it
    (`annotations.annotated`). Keywords are counted and rated in the text without any. `cited` says what T counts: the
    annotations that were handed over (of a report without any, those of its text), or those and the text's.

    The paper leaves open what its code sets: `eps_plus` and `eps_minus` are the code's; it takes keywords as
    `matching="substrings"`, and keeps "www." (`keep_www`). `file` holds other general rubrics.
    """

    name: ClassVar[str] = "rigorous"
    words: ClassVar = RIGOROUS
    drafts_from: ClassVar[DraftsFrom] = "task"

    file: str | None = None
    """General rubrics of your own, in place of the shipped ones."""
    eps_plus: Annotated[float, msgspec.Meta(gt=0)] = 2.0
    """How often a keyword that a report should have must occur to count in full."""
    eps_minus: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    """How often a keyword that it should not have must occur to count in full."""
    matching: Matching = "auto"
    """How keywords are found in a report."""
    keep_www: bool = False
    """Whether `www.` makes addresses different."""
    keep_slash: bool = False
    """Whether a trailing slash makes addresses different."""
    cited: Literal["annotations", "annotations_and_text"] = "annotations"
    """Which links count as cited: the annotations alone, or those in the text too."""
    min_answered: MinAnswered = 0.8
    """The share of its parts that a metric needs to have a value."""

    def __post_init__(self) -> None:
        if self.file is not None:
            load_criteria(self.file)

    @staticmethod
    def labelled(line: Evidence) -> Labelled | None:
        """How far a rubric is met; keywords and links have no label."""
        return labelled_points(line, "")

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The columns of the paper's table, then what they are made of, and other forms."""
        dimensions = dict.fromkeys(tag for criterion in self._general("en") for tag in criterion.tags)
        columns = (
            Metric(name="quality", decimals=4),
            _drift("drift"),
            _boost("boost"),
            Metric(name="integrated", best=120.0, headline=True, decimals=4),
            _per_token("contribution_per_token"),
        )
        others = (
            *(Metric(name=name, decimals=4) for name in ("qsr", "grr")),
            *(Metric(name=f"dimension:{name}") for name in dimensions),
            *(_drift(name) for name in _DRIFTS[1:]),
            *(_boost(f"boost{form}") for form in _FORMS[1:]),
            *(Metric(name=f"integrated{form}", best=120.0, decimals=4) for form in _FORMS[1:]),
            *(_per_token(f"contribution_per_token{form}") for form in _FORMS[1:]),
            *(
                Metric(name=name, best=None, kind="resource")
                for name in ("retrieval_index", "annotated", *_STATED)
            ),
        )
        return (*columns, *(msgspec.structs.replace(metric, shown=False) for metric in others))

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        """`metrics` without those that need token or retrieval counts missing from the report. Raises GoldError."""
        self._gold(case)
        stated = _stated(case)
        known = {"contribution_per_token": _written(case), "retrieval_index": stated.get("retrieved")}
        unknown = tuple(name for name, value in (known | stated).items() if value is None)
        return tuple(metric for metric in self.metrics if not metric.name.startswith(unknown))

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """Rubrics over the annotated report, keywords over the bare one; the formulas over what was answered."""
        gold, specific = self._gold(case)
        text, handed = storable(case.report.text), case.report.citations
        clean = await aside(clean_report, text)
        cited = await aside(cited_urls, text, handed)
        whole = _with_text(case, await aside(annotated, text, handed)) if handed else case
        keywords = [
            Keyword(word, wanted, keyword_frequency(word, clean, self.matching))
            for words, wanted in ((gold.fak, True), (gold.fdk, False))
            for word in words
        ]
        (qsr, asked), (grr, asked_generally), (found, rated) = await asyncio.gather(
            give_points(specific, whole, tools),
            give_points(self._general(case.task.language), whole, tools),
            rate_keywords(keywords, _with_text(case, clean), tools),
        )
        answers = [_rubric("qsr", answer) for answer in qsr]
        answers += [_rubric("grr", answer) for answer in grr]
        answers += [
            answer.about(Item("fak" if answer.item.wanted else "fdk", frequency=answer.item.frequency))
            for answer in found
        ]
        if handed and self.cited == "annotations":
            cited = [one.url for one in handed]
        links = match_links(cited, gold.tsl, self.keep_www, self.keep_slash)
        loose = match_substrings(cited, gold.tsl)
        boosts = (
            trustworthy_boost(links), trustworthy_boost(links, "algorithm"), trustworthy_boost(loose, "algorithm")
        )  # fmt: skip

        scores = self._scores(answers, boosts, links.cited, case)
        trusted = f"{links.full} of {links.trusted} cited; "
        trusted += f"{links.host} of {links.cited} citations on a trusted host"
        note = Evidence(what="trustworthy sources", outcome=Outcome("note", words=trusted))
        evidence = [*asked, *asked_generally, *rated, note]
        return Scorecard.of(self.name, case, scores, evidence)

    async def explained(self, case: Case, tools: Tools) -> list[ExplainedCriterion]:
        """The rubrics with their dimensions and their share of `quality`. Raises GoldError."""
        specific, general = self._gold(case)[1], self._general(case.task.language)
        return [*explained_criteria(specific, 0.5), *explained_criteria(general, 0.5)]

    async def draft(
        self, case: Case, tools: Tools, sources: Sequence[GoldSource] = ()
    ) -> msgspec.Raw | Missing:
        """The task's gold with query-specific rubrics and keywords, drafted where it has none."""
        return await draft_query(case, tools, sources)

    def gold_items(self, case: Case) -> GoldItems:
        """The query-specific rubrics and the keywords of the task's gold. Raises GoldError."""
        gold, specific = self._gold(case)
        return query_items(specific, gold.fak, gold.fdk)

    def _general(self, language: str) -> tuple[Criterion, ...]:
        return general_rubrics(language) if self.file is None else load_criteria(self.file)

    def _gold(self, case: Case) -> tuple[Gold, list[Criterion]]:
        gold = case.gold(self.name, Gold)
        try:
            specific = [
                rubric if isinstance(rubric, Criterion) else Criterion.parse(rubric) for rubric in gold.qsr
            ]
        except ValueError as error:
            raise GoldError("gold_invalid", f"task {case.task.id}: qsr: {error}") from error
        if not sum(criterion.full for criterion in specific):
            raise GoldError(
                "gold_invalid", f"task {case.task.id}: no query-specific rubric has positive points"
            )
        return gold, specific

    def _scores(
        self, answers: Sequence[Answered[Item]], boosts: Sequence[float], cited: int, case: Case
    ) -> dict[str, Value]:
        """Every metric; `boosts` are those of `_FORMS`, `cited` is T."""
        scores: dict[str, Value] = {}
        for name, parts, measure in self._measures(boosts, case):
            needed = [answer for answer in answers if answer.item.part in parts]
            scores[name] = measured(needed, measure, EVERY)
        for dimension in dict.fromkeys(
            tag for answer in answers if answer.item.part == "grr" for tag in answer.item.tags
        ):
            tagged = [a for a in answers if a.item.part == "grr" and dimension in a.item.tags]
            scores[f"dimension:{dimension}"] = measured(tagged, _points_share, self.min_answered)
        scores |= {f"boost{form}": boost for form, boost in zip(_FORMS, boosts, strict=True)}
        stated = {name: value for name, value in _stated(case).items() if value is not None}
        if "retrieved" in stated:
            scores["retrieval_index"] = retrieval_index(cited, int(stated["retrieved"]))
        return scores | {"annotated": float(cited)} | stated

    def _measures(
        self, boosts: Sequence[float], case: Case
    ) -> Iterator[tuple[str, tuple[str, ...], Measure[Item]]]:
        """Every metric that needs answers: its name, the parts whose answers it needs, its arithmetic."""
        everything = ("qsr", "grr", "fak", "fdk")
        written = _written(case)
        for form, factor in zip(_FORMS, boosts, strict=True):
            yield f"integrated{form}", everything, partial(self._integrated, factor)
            if written is not None:
                yield f"contribution_per_token{form}", everything, partial(self._per_token, factor, written)
        yield "quality", ("qsr", "grr"), _quality
        yield "qsr", ("qsr",), _points_share
        yield "grr", ("grr",), _points_share
        yield "drift", ("fak", "fdk"), self._drift
        yield "fak_drift", ("fak",), self._fak_drift
        yield "fdk_drift", ("fdk",), self._fdk_drift

    def _integrated(self, boost: float, pairs: Sequence[tuple[Item, float]]) -> float | None:
        good, drift = _quality(pairs), self._drift(pairs)
        return None if good is None or drift is None else integrated_score(good, drift, boost)

    def _per_token(self, boost: float, written: int, pairs: Sequence[tuple[Item, float]]) -> float | None:
        integrated = self._integrated(boost, pairs)
        return None if integrated is None else contribution_per_token(integrated, written)

    def _drift(self, pairs: Sequence[tuple[Item, float]]) -> float | None:
        away = self._fak_drift(pairs)
        return None if away is None else semantic_drift(away, self._fdk_drift(pairs))

    def _fak_drift(self, pairs: Sequence[tuple[Item, float]]) -> float | None:
        uses = _uses("fak", pairs)
        return fak_drift(uses, self.eps_plus) if uses else None

    def _fdk_drift(self, pairs: Sequence[tuple[Item, float]]) -> float:
        return fdk_drift(_uses("fdk", pairs), self.eps_minus)


def _drift(name: str) -> Metric:
    return Metric(name=name, worst=1.0, best=0.0, lower_is_better=True, decimals=4)


def _per_token(name: str) -> Metric:
    return Metric(name=name, best=None, kind="resource", decimals=4)


def _boost(name: str) -> Metric:
    return Metric(name=name, worst=1.0, best=1.2, decimals=4)


def _with_text(case: Case, text: str) -> Case:
    """`case` with `text` in the place of its report's."""
    return msgspec.structs.replace(case, report=msgspec.structs.replace(case.report, text=text))


_FORMS = ("", "_alg1", "_code")  # of the boost, and of what is made of it
_STATED = ("retrieved", "inference_seconds", "retrieval_seconds")
_DRIFTS = ("drift", "fak_drift", "fdk_drift")


def _quality(pairs: Sequence[tuple[Item, float]]) -> float | None:
    qsr, grr = _points("qsr", pairs), _points("grr", pairs)
    return quality(qsr, grr) if _full(qsr) and _full(grr) else None


def _points_share(pairs: Sequence[tuple[Item, float]]) -> float | None:
    points = [(given, item.full) for item, given in pairs]
    return _share(points) if _full(points) else None


def _points(part: str, pairs: Sequence[tuple[Item, float]]) -> list[tuple[float, float]]:
    return [(given, item.full) for item, given in pairs if item.part == part]


def _full(points: Sequence[tuple[float, float]]) -> float:
    return sum(full for _, full in points)


def _uses(part: str, pairs: Sequence[tuple[Item, float]]) -> list[tuple[float, float]]:
    return [(item.frequency, relevance) for item, relevance in pairs if item.part == part]


def _rubric(part: Literal["qsr", "grr"], answer: Answered[Criterion]) -> Answered[Item]:
    return answer.about(Item(part, full=answer.item.full, tags=answer.item.tags))


def _written(case: Case) -> int | None:
    usage = case.report.usage
    return None if usage is None else usage.written


def _stated(case: Case) -> dict[str, float | None]:
    """What the report states of its making."""
    return {name: None if case.report.usage is None else getattr(case.report.usage, name) for name in _STATED}
