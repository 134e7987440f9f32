"""The embedded judge: deterministic and model-free; a baseline, not a judge of quality.

It sees words, numbers and names, but not meaning: a paraphrase looks unsupported to it, and a fluent falsehood made of
a page's own words looks supported. It lets everything run without a model, and gives every other judge a baseline to
beat. A question type that it can answer has a `lexical()` built from the helpers here. What it derives from recent
texts is cached, up to a number of characters.
"""

import asyncio
import math
import re
from array import array
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from heapq import merge
from itertools import repeat
from typing import Literal, TypeVar

import msgspec

from adjudge.judges.judgment import Asked, JudgeIdentity, Reply
from adjudge.judges.question import Answer, Question
from adjudge.judges.remembering import remembered

A = TypeVar("A", bound=Answer)

_WORD = re.compile(r"[a-zà-öø-ÿ][a-zà-öø-ÿ0-9]+|[一-鿿]+")
_OTHER_LETTER = re.compile(r"[^\W\d_a-zß-öø-ÿ一-鿿]")
_NUMBER = re.compile(r"(?<![A-Za-z0-9_.])\d[\d,]*(?:\.\d+)?")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])|\n+")
_NAME = re.compile(r"(?<![.!?:\n]\s)(?<!^)\b[A-Z][A-Za-z0-9]+(?:[ -][A-Z][A-Za-z0-9]+){0,50}")
_NAME_PART = re.compile(r"[^ -]+")
_LETTER = re.compile(r"[^\W\d_]")
_DENIAL = re.compile(
    r"\b(?:not(?! only)|never|none|neither|nor|cannot)\b|n['’]t\b|\bno (?!less|more|fewer|longer than)"
    r"|并非|并不|不是|没有|从未|未能|不能",
    re.IGNORECASE,
)
_DENYING = re.compile(
    r"\bit is not true that\b|\b[a-z]{2,6}n['’]t\b|并非|并不", re.IGNORECASE
)  # words of a denial alone
_NOTICE = re.compile(
    r"checking your browser|just a moment|captcha|enable (?:javascript|cookies)|javascript is (?:disabled|required)"
    r"|you(?: a|')re (?:a )?human|are you a robot|access (?:is )?denied|404 not found"
    r"|page (?:was |could )?not (?:be )?found"
    r"|(?:log|sign) in to (?:continue|read|view)|subscribe to (?:continue|read)"
    r"|安全验证|完成验证|访问受限|页面不存在|页面未找到|登录后",
    re.IGNORECASE,
)
IN_PLACE = 20_000  # characters of a question that hold the event loop for a few milliseconds at most
_MAX_NOTICE = 600
_BLOCK = 20
_SPAN = 30
_WHOLLY = 0.5
_PARTLY = 0.24
_TOLD = 2 / 3  # of a statement's words: a sentence that has so many speaks of the same
_MAX_CHARS = 400_000
_MAX_KNOWN = 40  # characters of a word whose stem is kept
_KEPT_CHARS = 2_000_000  # of the texts whose passages are kept
_STOP = frozenset(
    "a about above after again all also am an and any are as at be because been before being between both but "
    "by can could did do does doing down during each either few for from further had has have having he her "
    "here him his how however if in into is it its itself just like made many may might more most much must "
    "my no nor not of off on once one only or other our out over own per same she should so some still such "
    "than that the their them then there these they this those through to too under until up upon use used "
    "using very was we were what when where which while who whom whose why will with within without would you "
    "your".split()
)


class LexicalJudge:
    """Answers a question through its own `lexical()`; a question without one is judge_unsupported.

    Long questions are answered in one thread, so that the event loop stays free.
    """

    identity = JudgeIdentity("lexical", fingerprint="lexical:3", sampling="none", analysis=False)

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lexical")

    async def answer(self, question: Question[A], asked: Asked) -> Reply[A]:
        """The question's model-free answer; the same for the same question, always."""
        texts = [section.text for section in question.context.sections]
        fields = [value for value in msgspec.structs.astuple(question) if isinstance(value, str)]
        if sum(map(len, texts + fields)) <= IN_PLACE:
            answer = question.lexical()
        else:
            answer = await asyncio.get_running_loop().run_in_executor(self._thread, question.lexical)
        if answer is None:
            return Reply(reason="judge_unsupported")
        return Reply(answer=answer, text=msgspec.json.encode(answer).decode(), finish_reason="stop")

    async def close(self) -> None:
        """Answer nothing more. Questions that wait for the thread are cancelled."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def terms(text: str) -> list[str]:
    """Content words of `text` in order: lower case, stop words out, plurals folded; Chinese as character pairs."""
    found: list[str] = []
    for match in _WORD.finditer(text.lower()):
        word = match[0]
        if "一" <= word[0] <= "鿿":
            found.extend(_known_stem(word[i : i + 2]) for i in range(max(1, len(word) - 1)))
        elif word not in _STOP:
            found.append(_known_stem(word) if len(word) <= _MAX_KNOWN else _stem(word))
    return found


def has_known_words(text: str) -> bool:
    """Whether `terms` tells all words of `text`: each letter is of Western Europe's alphabets or an ideograph."""
    return _OTHER_LETTER.search(text.lower()) is None


def _stem(word: str) -> str:
    for suffix, rest in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(suffix) and len(word) - len(suffix) >= 4 and not word.endswith("ss"):
            return word[: len(word) - len(suffix)] + rest
    return word


_known_stem = lru_cache(maxsize=50_000)(_stem)  # equal ones are one object: a text holds millions


def figures(text: str) -> frozenset[float]:
    """The numbers that `text` states (years and percentages included), thousands separators removed."""
    return frozenset(
        float(number[0].replace(",", "")) for number in _NUMBER.finditer(text) if len(number[0]) < 25
    )


def names(text: str) -> frozenset[str]:
    """Words that `text` capitalises inside a sentence, lower case: a rough sign of proper names."""
    return frozenset(
        word[0].lower() for name in _NAME.finditer(text) for word in _NAME_PART.finditer(name[0])
    )


def sentences(text: str) -> Iterator[str]:
    """`text` cut at sentence ends (English and Chinese) and line ends, empty ones left out."""
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if piece := text[start : end.start()].strip():
            yield piece
        start = end.end()
    if piece := text[start:].strip():
        yield piece


def coverage(wanted: list[str], available: frozenset[str] | set[str]) -> float:
    """The share of the different `wanted` terms that are `available`, in 0..1; 0 if none is wanted."""
    kinds = set(wanted)
    return len(kinds & available) / len(kinds) if kinds else 0.0


class Support(msgspec.Struct, frozen=True):
    """How well a text backs a statement.

    `overlap` is the share of its terms, weighted by idf, that the best window holds (0..1); `figures` the share of the
    figures and `names` of the names it states that the text has anywhere (None where it states none). Years do not
    count as figures: statements name the years of their sources. It is `denied` if the sentence that says the same in
    the same words says not, or names another year, or if the statement says not and that sentence does not.
    """

    overlap: float
    figures: float | None
    names: float | None
    denied: bool = False

    @property
    def verdict(self) -> Literal["supported", "unsupported"]:
        """Supported as a whole: at least half of the words occur together, and most of the figures are there.

        Names tip the balance.
        """
        named = 0.0 if self.names is None else 0.1 * (self.names - 0.5)
        return "supported" if self._agrees and self.overlap + named >= _WHOLLY else "unsupported"

    @property
    def partly(self) -> Literal["supported", "unsupported"]:
        """Supported at least in part, which FACT counts as supported: far fewer of the words are enough.

        `_PARTLY` is the middle of the range with the best Cohen's kappa on one real report (82 judged pairs); its
        agreement on other reports is printed by `benchmarks/lexical_agreement.py`.
        """
        return "supported" if self._agrees and self.overlap >= _PARTLY else "unsupported"

    @property
    def _agrees(self) -> bool:
        return not self.denied and (self.figures is None or self.figures > 0.5)


class Passages:
    """A text as a sequence of terms, with their idf over blocks of twenty.

    A window is 30 terms in a row, or half as many again as the statement has, if that is more.
    """

    def __init__(self, text: str) -> None:
        text = text[:_MAX_CHARS]
        sequence = terms(text)
        self._lower = text.lower()
        self._figures = figures(text)
        self._known: dict[int, _Told] = {}  # of the sentences that were looked at
        self._places: dict[str, array[int]] = {}
        for place, term in enumerate(sequence):
            if (places := self._places.get(term)) is None:
                places = self._places[term] = array("I")
            places.append(place)
        blocks = math.ceil(len(sequence) / _BLOCK)
        self._unseen = math.log(1 + 2 * blocks) if blocks else 1.0
        self._idf = {
            term: math.log(1 + blocks / len({place // _BLOCK for place in places}))
            for term, places in self._places.items()
        }

    @cached_property
    def _starts(self) -> list[int]:
        """Where each sentence begins."""
        return [0, *(end.end() for end in _SENTENCE_END.finditer(self._lower)), len(self._lower)]

    def _told(self, place: int) -> "_Told":
        if (told := self._known.get(place)) is None:
            told = _Told.of(self._lower[self._starts[place] : self._starts[place + 1]])
            self._known[place] = told
        return told

    def overlap(self, statement: str) -> float:
        """The share of the terms of `statement`, weighted by idf, that the best window holds, in 0..1."""
        wanted = {term: self._idf.get(term, self._unseen) for term in terms(statement)}
        total = math.fsum(wanted.values())
        return self._best(wanted) / total if total and self._places else 0.0

    def shared_figures(self, statement: str) -> float | None:
        """The share of the figures of `statement`, years aside, that the text has anywhere; None if it states none."""
        stated = frozenset(figure for figure in figures(statement) if not _is_year(figure))
        return len(stated & self._figures) / len(stated) if stated else None

    def support(self, statement: str) -> Support:
        """How well the best window backs `statement`."""
        if not self._places or not terms(statement):
            return Support(0.0, None, None)
        called = names(statement)
        return Support(
            overlap=self.overlap(statement),
            figures=self.shared_figures(statement),
            names=sum(name in self._lower for name in called) / len(called) if called else None,
            denied=self._denied(_Told.of(statement)),
        )

    def _denied(self, said: "_Told") -> bool:
        """Whether the sentences that say the same in the same words all differ in their denial or their years."""
        size = len(said.terms)
        told = [
            by
            for by in map(self._told, self._with_any(said.terms))
            if size <= 3 * len(by.terms) <= 9 * size and len(said.terms & by.terms) >= _TOLD * size
        ]
        return bool(told) and all(by.differs(said) for by in told)

    def _with_any(self, wanted: frozenset[str]) -> set[int]:
        """The sentences that may have two thirds of the terms `wanted`: they have one of the rarest third, at least."""
        rarest = sorted(wanted, key=lambda term: len(self._places.get(term, ())))[: len(wanted) // 3 + 1]
        starts, found = self._starts, set[int]()
        for term in rarest:
            part = term.removesuffix("y")  # "cities" is told as "city"
            at = self._lower.find(part)
            while at >= 0:
                place = bisect_right(starts, at) - 1
                found.add(place)
                at = self._lower.find(part, starts[place + 1])
        return found

    def _best(self, wanted: dict[str, float]) -> float:
        """The most weight that any window holds."""
        span = max(_SPAN, len(wanted) * 3 // 2)
        hits = merge(*(zip(self._places[term], repeat(term)) for term in wanted if term in self._places))
        window: deque[tuple[int, str]] = deque()
        held: Counter[str] = Counter()
        best = weight = 0.0
        for place, term in hits:
            weight += 0.0 if held[term] else wanted[term]
            held[term] += 1
            window.append((place, term))
            while window[0][0] <= place - span:
                _, leaving = window.popleft()
                held[leaving] -= 1
                weight -= 0.0 if held[leaving] else wanted[leaving]
            best = max(best, weight)
        return round(best, 9)


class _Told(msgspec.Struct, frozen=True):
    """A sentence: its words, whether it denies something, and the years that it names."""

    terms: frozenset[str]
    is_denial: bool
    years: frozenset[float]

    @classmethod
    def of(cls, sentence: str) -> "_Told":
        """What is told by `sentence`; two denials make none."""
        years = frozenset(filter(_is_year, figures(sentence)))
        words = terms(_DENYING.sub(" ", sentence))
        return cls(frozenset(words), len(_DENIAL.findall(sentence)) % 2 == 1, years)

    def differs(self, other: "_Told") -> bool:
        """Whether one of the two denies what the other does not, or both name years, and none of the same."""
        if self.is_denial != other.is_denial:
            return True
        return bool(self.years and other.years) and not self.years & other.years


def _is_year(figure: float) -> bool:
    return 1900 <= figure <= 2100 and figure.is_integer()


def has_content(text: str) -> bool:
    """Whether a page holds more than nothing or the notice of a wall (bot check, login, error page)."""
    return bool(_LETTER.search(text)) and not (len(text) < _MAX_NOTICE and _NOTICE.search(text))


@remembered(_KEPT_CHARS)
def passages(text: str) -> Passages:
    """`Passages` of `text`; those of recent texts, up to two million characters, are kept."""
    return Passages(text)


def rank(value: float, steps: tuple[float, ...]) -> int:
    """How many of the ascending `steps` the value reaches."""
    return bisect_right(steps, value)
