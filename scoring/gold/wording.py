"""What an item's words alone tell: that it is vague, compound or met by silence, or that a keyword is anybody's.

The rules hold for plain cases; a judge is asked about the others.
"""

import re
from typing import Literal

from adjudge.judges.lexical import terms

__all__ = ["flaw", "is_common", "predicate"]

Flaw = Literal["vague", "compound", "met_by_nothing"]

_VALUES = re.compile(r"[?？]\s{0,5}\S[^?？]{0,300}[=＝].{0,500}", re.DOTALL)
_LEAD = re.compile(
    r"\s{0,20}(?:(?:does|do|did|is|are|has|have|can|will) )?(?:the |this |a )?(?:report|article|answer|text)\s{1,5}|"
    r"\s{0,20}报告(?:是否)?|\s{0,20}是否",
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
    """What an item says of a report, without "Does the report" before and "? Yes=2, No=0" behind."""
    return _LEAD.sub("", _VALUES.sub("", text), count=1).strip(" \t\n?？.。")


def flaw(text: str) -> Flaw | None:
    """What is plainly wrong with an item that asks something of a report, or None. The first sentence counts."""
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
    pieces = [one.strip() for one in _PIECES.split(said) if one.strip()]
    if sum(map(_begins_with_verb, pieces)) >= 3:
        return True
    listed = [one.removeprefix("and ") for one in said.split(", ")]
    return len(listed) >= 4 and all(len(one.split()) >= 3 for one in listed)


def _begins_with_verb(piece: str) -> bool:
    first = _FIRST.match(piece.lower())
    if first is None:
        return piece.startswith(tuple(_CHINESE_VERBS))
    word = first[0]
    return word in _VERBS or word.removesuffix("s") in _VERBS or word.removesuffix("es") in _VERBS
