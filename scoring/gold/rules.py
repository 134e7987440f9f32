"""What rules can find wrong with items of gold without a judge, and what to do about it.

Items rest on passages: a judge finds them, and rules check that they occur in the source. From its words alone an item
can be vague, compound or met by silence, and a keyword can be too common. The rules cover plain cases; a judge is asked
about the others.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec

from adjudge.judges import Answer, Context, numbered
from adjudge.judges.lexical import coverage, figures, sentences, terms
from adjudge.judges.remembering import remembered
from adjudge.scoring.answers.numbered import Numbered, batches
from adjudge.scoring.contract.case import Case, Passage
from adjudge.scoring.contract.gold import GoldItem, GoldItems, GoldSource, joined
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.reasons import Reason
from adjudge.scoring.text.citation_marks import compatible

Kind = Literal[
    "quote_missing",
    "unsupported",
    "contradicted",
    "mislabelled",
    "duplicate",
    "met_by_nothing",
    "vague",
    "compound",
    "weights",
    "common_keyword",
    "conflicting_keyword",
    "no_separation",
    "inverted",
]

FIXES: dict[Kind, str] = {
    "quote_missing": "copy the passage from the source, or remove the item",
    "unsupported": "remove the item, or add the source that holds it",
    "contradicted": "correct the item by the source",
    "mislabelled": "correct the label, or the statement",
    "duplicate": "keep one of the two",
    "met_by_nothing": "ask for something that a report must say, or make it a penalty for what it must not",
    "vague": "name what is to be found in the report",
    "compound": "make an item of each part",
    "weights": "change the weights so that they sum to 1",
    "common_keyword": "choose a word that only reports on this task use",
    "conflicting_keyword": "keep the keyword on one side",
    "no_separation": "remove the item, or make it harder or easier",
    "inverted": "check what the item rewards; remove it, or make it a penalty",
}
"""What to do about each kind of problem."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A problem of one item, or of a whole `part` if `item` is empty: its kind, and why it is thought to be one."""

    part: str
    item: str
    kind: Kind
    why: str

    @classmethod
    def of(cls, item: GoldItem, kind: Kind, why: str) -> "Problem":
        """A problem of `item`."""
        return cls(part=item.part, item=item.item, kind=kind, why=why)

    @property
    def fix(self) -> str:
        """What to do about it."""
        return FIXES[self.kind]


TASK = "task"
"""The name of the task's prompt among the sources."""

_KEPT_CHARS = 2_000_000
_SPACES = re.compile(r"\s{2,}|[^\S ]")  # a single space stays as it is: most of a text's
_PASSAGES_ALIKE = str.maketrans("“”„«»‘’‚‐‑‒–—−", '"""""' + "'''" + "------")


def holds(text: str, quote: str) -> bool:
    """Whether `quote` stands in `text`, whatever its case, white space, quotation marks and dashes."""
    wanted = _plain.__wrapped__(quote)
    return bool(wanted) and wanted in _plain(text)


@remembered(_KEPT_CHARS)
def _plain(text: str) -> str:
    return _SPACES.sub(" ", compatible(text).translate(_PASSAGES_ALIKE).casefold()).strip()


def source_of(quote: str, case: Case, sources: Sequence[GoldSource]) -> str | None:
    """The name of the first document that holds `quote`, or `task` if the prompt does; None if nothing does."""
    named = [(one.name, one.text) for one in sources] + [(TASK, case.task.prompt)]
    return next((name for name, text in named if holds(text, quote)), None)


def material(case: Case, sources: Sequence[GoldSource]) -> Context:
    """The material of items, for drafts and checks: the task, and the documents if there are any."""
    if not sources:
        return Context.of(task=case.task.prompt)
    return Context.of(task=case.task.prompt, document=joined(sources))


class Quote(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A passage of the material, "" if there is none."""

    quote: Annotated[str, msgspec.Meta(max_length=400)]


class Quotes(Answer, frozen=True, kw_only=True):
    """The passage that each item rests on."""

    items: dict[str, Quote]


class PassagesOf(Numbered[Quotes], frozen=True, kw_only=True):
    """On which passages of the material (context) do the items rest?"""

    prompt = "gold_passages"
    words = "passages that items of gold rest on"
    answer = Quotes
    listed = "items"

    items: tuple[str, ...]

    def lexical(self) -> Quotes:
        """The sentence that uses most of an item's words."""
        texts = [
            one for section in self.context.sections for one in sentences(section.text) if len(one) <= 400
        ]
        words = [(one, frozenset(terms(one))) for one in texts]
        found = []
        for item in self.items:
            wanted = terms(item)
            best, known = max(words, key=lambda one: coverage(wanted, one[1]), default=("", frozenset[str]()))
            found.append(Quote(quote=best if coverage(wanted, known) else ""))
        return Quotes(items=self.keyed(found))


async def find_passages(
    items: Sequence[GoldItem], case: Case, sources: Sequence[GoldSource], tools: Tools
) -> tuple[list[Passage], list[Reason]]:
    """The passages that `items` rest on, as far as they stand in the material, and why there is no answer for others.

    A keyword to avoid rests on nothing.
    """
    context, language = material(case, sources), case.task.language
    wanted = [one for one in items if one.kind != "deviation"]
    asked = batches(wanted)
    judgments = await tools.ask_all(
        PassagesOf(context=context, language=language, items=tuple(one.text for one in batch))
        for batch in asked
    )
    found: list[Passage] = []
    missing: list[Reason] = []
    for batch, judgment in zip(asked, judgments, strict=True):
        if judgment.answer is None:
            missing.append(judgment.reason or "judge_unparseable")
            continue
        for item, key in zip(batch, numbered(len(batch)), strict=True):
            quote = judgment.answer.items[key].quote
            source = source_of(quote, case, sources)
            if source is not None:
                found.append(Passage(part=item.part, item=item.item, quote=quote, source=source))
    return found, missing


Flaw = Literal["vague", "compound", "met_by_nothing"]

_VALUES = re.compile(r"[?？]\s{0,5}\S[^?？]{0,300}[=＝].{0,500}", re.DOTALL)
_LEAD = re.compile(
    r"(?:(?<!\s)\s{0,20})?(?:"
    r"(?:(?:does|do|did|is|are|has|have|can|will) )?(?:the |this |a )?(?:report|article|answer|text)\s{1,5}"
    r"|报告(?:是否)?|是否)",
    re.IGNORECASE,
)
_SILENT = re.compile(
    r"(?:it )?(?:(?:does|do|is|are|has|should|must|may) not\b|doesn't\b|never\b|avoids?\b|refrains?\b|"
    r"omits?\b|leaves? out\b|without\b|(?:is |are |be )?free (?:of|from)\b|no\b|"
    r"(?:contains?|includes?|makes?|has|have|gives?|uses?|shows?) no\b|"
    r"(?:stays?|keeps?|remains?|is|be) (?:under|below|within|shorter than|no longer than|at most)\b)"
    r"|不(?!同|仅|但|足)|没有|未|无(?!论)|避免|少于|控制在",
    re.IGNORECASE,
)
_PIECES = re.compile(r"[,;，；、]\s{0,5}(?:(?:and|or) |并|以及|和)?| and |并(?=[提给说列])")
_FIRST = re.compile(r"[a-z]+")
_WORDS = re.compile(r"[^\W\d_]+")

_VERBS = frozenset(
    "address analyse analyze answer apply assess calculate check cite classify collect combine compare conclude "
    "contrast cover define derive describe determine discuss distinguish draw end estimate evaluate examine explain "
    "extract find give identify illustrate include interpret judge justify list measure mention name note offer "
    "outline present propose provide quantify quote rank rate recommend report review say search separate set show "
    "specify state suggest summarise summarize support synthesise synthesize test trace use verify write".split()
)
_CHINESE_VERBS = (
    "说明 列出 列举 介绍 分析 提出 给出 比较 讨论 描述 评估 引用 指出 估算 总结 "
    "解释 论述 阐述 检索 提取 判断 评价 建议".split()
)
_PRAISE = (
    "accurate adequate adequately appropriate appropriately clear clearly coherent coherently complete comprehensive "
    "comprehensively concise convincing correct deep deeply depth detailed effective effectively excellent fully good "
    "great helpful high insight insightful insights interesting logical logically meaningful nice overall professional "
    "proper properly quality reasonable relevant rich satisfactory solid sound strong sufficient sufficiently suitable "
    "thorough thoroughly useful valuable well"
)
_ANYTHING = (
    "address addresses analysis analyses answer answers area aspect aspects content cover covers deal deals degree "
    "describe describes discuss discusses do done explain explains general give gives information issue issues key "
    "level matter matters offer offers point points present presents provide provides question read readable reads "
    "report research show shows subject task text thing things topic topics treat treats understanding way work "
    "write written"
)
_COMMON = (
    "analysis approach article aspect background conclusion consider context data detail development discussion effect "
    "evidence example factor figure finding future important importance impact information introduction issue key "
    "literature method number overview paper part point problem process question report research result review section "
    "significant source study summary system table therefore topic trend type value year "
    "研究 报告 分析 结果 数据 结论 方法 问题 重要 影响 因素 发展 文献 摘要 背景"
)
_PRAISING = frozenset(terms(_PRAISE))
_GENERIC = _PRAISING | frozenset(terms(_ANYTHING))
_COMMON_TERMS = frozenset(terms(_COMMON))
_CHINESE_PRAISE = re.compile(
    r"全面|深入|充分|恰当|合理|良好|清晰|完整|详细|高质量|质量高|到位|准确|优秀|适当|有见地|有深度|流畅"
)
_CHINESE_ANYTHING = re.compile(
    r"内容|分析|论述|报告|文章|研究|写作|结构|语言|整体|总体|话题|主题|问题|讨论|相关|质量|较|很|的|地|得|且|并|而"
)


def predicate(text: str) -> str:
    """An item's requirement, without "Does the report" before and "? Yes=2, No=0" behind."""
    return _LEAD.sub("", _VALUES.sub("", text), count=1).strip(" \t\n?？.。")


def flaw(text: str) -> Flaw | None:
    """The plain problem of an item that asks something of a report, or None. The first sentence counts."""
    said = predicate(text).partition("; ")[0]
    if _SILENT.match(said):
        return "met_by_nothing"
    if _is_vague(said):
        return "vague"
    return "compound" if _is_compound(said) else None


def is_common(text: str) -> bool:
    """Whether any report may have a keyword: all its words are small or of every report."""
    found = terms(text)
    return len(found) <= 20 and all(word in _COMMON_TERMS for word in found)


def _is_vague(said: str) -> bool:
    if _CHINESE_PRAISE.search(said):
        return not _WORDS.search(_CHINESE_ANYTHING.sub("", _CHINESE_PRAISE.sub("", said)))
    found = frozenset(terms(said))
    return bool(found & _PRAISING) and found <= _GENERIC


def _is_compound(said: str) -> bool:
    """Three things to do, or four of some length in a list."""
    if sum(_begins_with_verb(one.strip()) for one in _PIECES.split(said)) >= 3:
        return True
    listed = said.split(", ")
    return len(listed) >= 4 and all(len(one.removeprefix("and ").split()) >= 3 for one in listed)


def _begins_with_verb(piece: str) -> bool:
    first = _FIRST.match(piece.lower())
    if first is None:
        return piece.startswith(tuple(_CHINESE_VERBS))
    word = first[0]
    return word in _VERBS or word.removesuffix("s") in _VERBS or word.removesuffix("es") in _VERBS


_TOLERANCE = 0.02  # of a sum of weights that are rounded to two places
_ALIKE, _LIKE = 0.8, 0.6  # shares of the words of two repeats that the other one has: of either, and of both
_WHY = {
    "vague": "names nothing that can be looked for",
    "compound": "asks for several things at once",
    "met_by_nothing": "asks to avoid or omit something, which a report that says nothing does",
}


def known_sources(
    gold: GoldItems, case: Case, given: Sequence[GoldSource], rests_on: Sequence[Passage]
) -> dict[str, str]:
    """The texts of the task's sources by name: its prompt, the documents of its gold, and those of the `given`.

    Where passages are known, only the documents that they name are the task's.
    """
    named = {one.source for one in rests_on}
    own = [one for one in given if one.name in named or not rests_on]
    return {TASK: case.task.prompt, **{one.name: one.text for one in (*gold.sources, *own)}}


def told_by_words(
    gold: GoldItems, rests_on: Sequence[Passage], sources: Mapping[str, str]
) -> Iterator[Problem]:
    """The problems that weights, passages, figures and words show; at most one per item."""
    for part, several in gold.weights.items():
        total = math.fsum(several)
        if abs(total - 1) > _TOLERANCE:
            yield Problem(part=part, item="", kind="weights", why=f"the weights sum to {total:g}")
    material = _Material.of(gold, rests_on, sources)
    before: dict[str, list[_Said]] = {}
    for item in gold.items:
        said, earlier = _Said.of(item), before.setdefault(item.part, [])
        problem = (
            _keyword(said, material)
            or _repeat(said, earlier)
            or _unfounded(item, material)
            or _other_figure(said, material)
        )
        if problem is None and item.kind == "requirement" and not item.penalty:
            found = flaw(item.explanation or item.item)
            problem = found and Problem.of(item, found, _WHY[found])
        earlier.append(said)
        if problem is not None:
            yield problem


class _Said(NamedTuple):
    """An item, what it says of a report, and the words and figures of that."""

    item: GoldItem
    text: str
    words: tuple[str, ...]
    kinds: frozenset[str]
    figures: frozenset[float]

    @classmethod
    def of(cls, item: GoldItem) -> "_Said":
        text = predicate(item.text)
        words = tuple(terms(text))
        return cls(item, text.casefold(), words, frozenset(words), figures(text))


class _Material(NamedTuple):
    """The basis of a check: sources, all their words and figures, passages, and keywords to use."""

    sources: Mapping[str, str]
    words: frozenset[str]
    figures: frozenset[float]
    quotes: Mapping[tuple[str, str], Passage]
    anchors: Mapping[tuple[str, ...], str]

    @classmethod
    def of(cls, gold: GoldItems, rests_on: Sequence[Passage], sources: Mapping[str, str]) -> "_Material":
        text = "\n".join(sources.values())
        quotes = {(one.part, one.item): one for one in rests_on}
        anchors = {tuple(terms(one.item)): one.item for one in gold.items if one.kind == "anchor"}
        return cls(sources, frozenset(terms(text)), figures(text), quotes, anchors)

    @property
    def has_documents(self) -> bool:
        """Whether there is a source beside the task's prompt."""
        return len(self.sources) > 1


def _keyword(said: _Said, material: _Material) -> Problem | None:
    item = said.item
    if item.kind not in ("anchor", "deviation"):
        return None
    if is_common(item.item):
        return Problem.of(item, "common_keyword", "any report may use it")
    if item.kind == "deviation":
        both = material.anchors.get(said.words)
        return (
            None if both is None else Problem.of(item, "conflicting_keyword", f"reports are to use {both!r}")
        )
    if material.has_documents and not said.kinds <= material.words:
        return Problem.of(item, "unsupported", "no source uses it")
    return None


def _repeat(said: _Said, before: Sequence[_Said]) -> Problem | None:
    other = next((one for one in before if _repeats(said, one)), None)
    why = "" if other is None else f"almost the words of {other.item.item!r}"
    return Problem.of(said.item, "duplicate", why) if why else None


def _repeats(one: _Said, other: _Said) -> bool:
    """Whether two items have almost the same words and the same figures; labels must be equal too."""
    if one.item.truth != other.item.truth or one.figures != other.figures:
        return False
    if not one.kinds or not other.kinds:
        return one.text == other.text
    shared = len(one.kinds & other.kinds)
    shares = shared / len(one.kinds), shared / len(other.kinds)
    return max(shares) >= _ALIKE and min(shares) >= _LIKE


def _unfounded(item: GoldItem, material: _Material) -> Problem | None:
    if not material.quotes or item.kind == "deviation":
        return None
    found = material.quotes.get((item.part, item.item))
    if found is None:
        return Problem.of(item, "quote_missing", "no passage is given")
    text = material.sources.get(found.source)
    if text is None or holds(text, found.quote):
        return None
    return Problem.of(item, "quote_missing", f"{found.source} does not hold the passage {found.quote!r}")


def _other_figure(said: _Said, material: _Material) -> Problem | None:
    item = said.item
    if not material.has_documents or item.truth is False or item.kind in ("anchor", "deviation"):
        return None
    other = sorted(said.figures - material.figures)
    if not other:
        return None
    return Problem.of(
        item, "contradicted", f"no source has the figure {', '.join(f'{one:g}' for one in other)}"
    )
