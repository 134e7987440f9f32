"""Factual accuracy in DR3-Eval's own calls: claims are extracted, grouped by the source they cite, and verified.

One call extracts the claims of a report's first 50,000 characters; an empty reply is followed by another, up to three.
Claims that cite a source by the same name are verified in batches of 20, one call per batch. A claim counts if all its
citations support it. The code, and so `fa_lenient`, counts claims as unsupported if their source does not exist or if a
reply says nothing readable about them; in the second case they are missing parts, and the upper bound says what they
could be. A report without claims has 0 where the code gives no score. A picture, sound or film, or anything that ends
the code with an error, leaves no value.

The passages of a long source that the judge sees are found by BM25 over pieces. The Chinese word segmenter (jieba) and
the ranking (rank_bm25) are the code's own: the optional extra `dr3`.

Citations in DR3-Eval's standard form name a source and a place in it, read by the code's rules. They come from a judge,
so all readings are linear in them. The code takes the first file of a folder with the same name, in whatever order the
folder lists them; here it is the first by name. Its own files (the corpus, the list of supportive pages) do not count
as sources here.
"""

import asyncio
import csv
import io
import json
import re
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import PurePath
from typing import Any, ClassVar, Literal

import msgspec

from adjudge.judges import Context
from adjudge.judges.published import (
    Checkout,
    CheckoutError,
    PublishedQuestion,
    Template,
    UnreadableReply,
    Wording,
)
from adjudge.scoring.answers.parts import EVERY, Answered, measured
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import (
    MISSING,
    Evidence,
    Missing,
    Outcome,
    OutcomeKind,
    Partial,
    Value,
)
from adjudge.scoring.dr3_eval.dr3 import Gold, instruction_following, over
from adjudge.scoring.dr3_eval.published_replies import Claim, claims_in, supported_in
from adjudge.scoring.dr3_eval.sandbox import MAX_NAMES, Source, Title, same_title
from adjudge.scoring.text.aside import aside, storable

LONG_SOURCE = 20_000  # characters
PASSAGE_CHARS = 500
COUNT = 5


def best_passages(text: str, query: str) -> list[tuple[int, str]]:
    """The five best pieces of `text` for `query` in its order, numbered from 1 among those that are not blank.

    Linear in the text, for a given query.
    """
    passages = [text[start : start + PASSAGE_CHARS] for start in range(0, len(text), PASSAGE_CHARS)]
    passages = [passage for passage in passages if passage.strip()]
    if not passages:
        return []
    from rank_bm25 import BM25Okapi  # optional

    cut = _segmenter().cut
    once: dict[str, str] = {}  # a word is kept once, however often it occurs
    words = [[once.setdefault(word, word) for word in cut(passage)] for passage in passages]
    scores = BM25Okapi(words).get_scores(list(cut(query)))
    best = sorted(range(len(passages)), key=lambda place: scores[place], reverse=True)[:COUNT]
    return [(place + 1, passages[place]) for place in sorted(best)]


@lru_cache(maxsize=1)
def _segmenter() -> Any:
    """A segmenter that leaves nothing behind: it would keep its dictionary in a shared folder for the next process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own sources and imports
        import jieba  # optional

    jieba.setLogLevel("ERROR")
    made = jieba.Tokenizer()
    with tempfile.TemporaryDirectory() as folder:
        made.tmp_dir = folder
        made.initialize()
    return made


_LONG_CONTEXT = re.compile(r'long_context:\s*"([^"]+)"')
_DOCUMENT = re.compile(r"(?:[Dd]oc|文档):\s*([^,\]]+)")
_PAGE_NUMBER = re.compile(r"RAG-(\d+)")
_SOURCE_KINDS = (
    (("图片:", "Image:"), re.compile(r"(?:图片|[Ii]mage):\s*([^,\]]+)"), "image"),
    (("视频:", "video:"), re.compile(r"(?:视频|[Vv]ideo):\s*([^,\]]+)"), "video"),
    (("音频:", "audio:"), re.compile(r"(?:音频|[Aa]udio):\s*([^,\]]+)"), "audio"),
)
_RUN = re.compile(r"[^\[\],\s]+")
_SUFFIXES = (
    (re.compile(r"\.(?:pdf|md|docx?|txt)", re.IGNORECASE), "doc"),
    (re.compile(r"\.(?:jpg|jpeg|png|gif|webp)", re.IGNORECASE), "image"),
    (re.compile(r"\.(?:mp4|webm|mov|avi)", re.IGNORECASE), "video"),
    (re.compile(r"\.(?:mp3|wav|m4a|aac|ogg|flac|wma)", re.IGNORECASE), "audio"),
)
_PAGES = re.compile(r"Page\s*(\d+)(?:\s*-\s*(\d+))?", re.IGNORECASE)
_CHUNKS = re.compile(r"chunk\s*(\d+)(?:\s*-\s*(\d+))?", re.IGNORECASE)

_MEDIA = {
    "image": (".jpg", ".jpeg", ".png", ".gif", ".webp"),
    "video": (".mp4", ".webm", ".mov", ".avi"),
    "audio": (".mp3", ".wav", ".m4a", ".aac", ".ogg", ".flac", ".wma"),
}


class Place(msgspec.Struct, frozen=True):
    """The pages of a file, or the chunks of a page of the corpus, that a citation points to."""

    unit: Literal["page", "chunk"]
    first: int
    last: int


def source_key(text: str) -> tuple[str, str]:
    """The kind and name of the source that the citation `text` names; claims with equal ones are verified together."""
    if "long_context:" in text:
        found = _LONG_CONTEXT.search(text)
        if found:
            return "long_context", found[1]
    elif "Doc:" in text or "文档:" in text or "doc:" in text.lower():
        found = _DOCUMENT.search(text)
        if found:
            return "doc", found[1].strip()
    elif "RAG-" in text:
        found = _PAGE_NUMBER.search(text)
        if found:
            return "rag", found[1]
    else:
        for (chinese, english), pattern, kind in _SOURCE_KINDS:
            if chinese in text or english in text.lower():  # never so for pictures, by a slip of the code
                found = pattern.search(text)
                if found:
                    return kind, found[1].strip()
                break
    for pattern, kind in _SUFFIXES:  # the first word that has the suffix of a file, of documents first
        for run in _RUN.finditer(text):
            ends = [match.end() for match in pattern.finditer(run[0]) if match.start()]
            if ends:
                return kind, run[0][: ends[-1]]
    return "unknown", text[:30]


def place_of(text: str) -> Place | None:
    """The pages or chunks that the citation `text` gives. Raises ValueError for a number of too many digits."""
    unit: Literal["page", "chunk"] = "chunk" if "long_context:" in text else "page"
    if unit == "page" and not ("Doc:" in text or "文档:" in text or "doc:" in text.lower()):
        return None
    found = (_CHUNKS if unit == "chunk" else _PAGES).search(text)
    if found is None:
        return None
    first = int(found[1])
    return Place(unit, first, int(found[2]) if found[2] else first) if first else None


def found_sources(
    keys: list[tuple[str, str]], files: list[str], pages: list[str], blank: list[int]
) -> list[int | None]:
    """For each key the place of its source among `files` and then `pages`; None if there is none.

    `files` are names, `pages` titles in the corpus's order, `blank` the places in `pages` of those without text, which
    the code takes for missing. Of the keys, the first `MAX_NAMES` are looked up.
    """
    names, titles = [Title(name) for name in files], [Title(title) for title in pages]
    found: list[int | None] = []
    for kind, name in keys[:MAX_NAMES]:
        page = _page(kind, name, titles)
        place = None if page is None or page in blank else len(names) + page
        wanted, suffixes = Title(name), _MEDIA.get(kind, ("",) if kind == "doc" else ())
        files_alike = (
            number
            for number, one in enumerate(names)
            if one.text.lower().endswith(suffixes) and same_title(wanted, one)
        )
        found.append(next(files_alike, place))
    return found + [None] * (len(keys) - len(found))


def _page(kind: str, name: str, titles: Sequence[Title]) -> int | None:
    """The page of this number or title, else the first whose title is the same to the code."""
    if kind == "rag":
        place = int(name) - 1 if len(name) < 10 else -1
        return place if 0 <= place < len(titles) else None
    if kind not in ("doc", "long_context"):
        return None
    wanted = Title(name)
    equal = (place for place, title in enumerate(titles) if title.plain == wanted.plain)
    alike = (place for place, title in enumerate(titles) if same_title(wanted, title))
    return next(chain(equal, alike), None)


REPORT_CHARS = 50_000
BATCH = 20
ROWS = 100
_FILE = "evaluators/factual_accuracy.py"
_EVALUATOR = "FactualAccuracyAgentEvaluator"
_KINDS = {
    **dict.fromkeys((".pptx", ".ppt"), "slides"),
    **dict.fromkeys((".docx", ".doc"), "document"),
    **dict.fromkeys((".csv", ".tsv"), "rows"),
    **dict.fromkeys((".xlsx", ".xls"), "sheets"),
    **dict.fromkeys((".json", ".jsonl"), "json"),
    **dict.fromkeys((".txt", ".md", ".html", ".htm"), "whole"),
    ".pdf": "slides",  # by its text, and cut to passages; the code sends the file itself to another kind of server
}
_ORDER = ("slides", "document", "rows", "sheets", "json", "text")
"""The forms in which the code shows files, in the order of its source; the last is for all other text."""


class FactWordings(msgspec.Struct, frozen=True):
    """The requests of one checkout: `shown` by the form of the source, and pieces that are put into them."""

    claims: Wording
    shown: dict[str, Wording]
    hints: dict[tuple[str, bool], Template]
    passage: Template
    cut: Template
    rows_cut: Template

    @classmethod
    def of(cls, folder: str) -> "FactWordings":
        """The wordings in the checkout at `folder`. Raises CheckoutError, also for a missing library."""
        missing = next((name for name in ("jieba", "rank_bm25") if find_spec(name) is None), None)
        if missing is not None:
            raise CheckoutError(f"{missing} is not installed; run pip install 'adjudge[dr3]'")
        checkout = Checkout(folder)
        extract, verify = (
            f"{_EVALUATOR}.{name}"
            for name in ("_extract_claims_single_call", "_verify_batch_with_api_thread")
        )
        prompt = checkout.fstring(_FILE, f"{verify}.prompt")
        file = {"file_path.name": "name", "text_content": "text_content"}
        forms = {form: checkout.inline(_FILE, verify, file, nth) for nth, form in enumerate(_ORDER)}
        forms["whole"] = checkout.inline(
            _FILE, "prepare_file_for_api", {"filename": "name", "text_content": "text_content"}
        )
        page = {"source_info['name']": "name", "text_content": "text_content"}
        forms["page"] = checkout.inline(_FILE, verify, page)
        return cls(
            Wording.of(
                checkout.fstring(_FILE, f"{extract}.prompt"),
                checkout.passed(_FILE, extract, "content"),
                temperature=0,
                max_tokens=16_384,
            ),
            {form: Wording.of((shown, prompt), max_tokens=4096) for form, shown in forms.items()},
            {key: checkout.fstring(_FILE, f"{verify}.location_hint", *hint) for key, hint in _HINTS.items()},
            checkout.inline(
                _FILE, "bm25_retrieve_relevant_chunks", {"chunk_num": "number", "chunks[idx]": "passage"}
            ),
            checkout.appended(_FILE, verify),
            checkout.inline(_FILE, "extract_csv_content", {"i": "count"}),
        )

    def hint(self, citation: str) -> str:
        """Where in the source the judge is to look. Raises UnreadableReply for a number of too many digits."""
        try:
            place = place_of(citation)
        except ValueError as error:
            raise UnreadableReply("a page of too many digits") from error
        if place is None:
            return ""
        values = {"first": str(place.first), "last": str(place.last)}
        return self.hints[place.unit, place.first != place.last].fill(values)

    def parts(self) -> dict[str, Wording | Template]:
        """All that may be sent, by what it is for."""
        return {
            "claims": self.claims,
            "passage": self.passage,
            "cut": self.cut,
            **{f"support.{form}": wording for form, wording in self.shown.items()},
            **{
                f"hint.{unit}.{'several' if many else 'one'}": one for (unit, many), one in self.hints.items()
            },
            "rows": self.rows_cut,
        }


_DETAILS = "citation_details"
_HINTS: dict[tuple[str, bool], tuple[Mapping[str, str], int]] = {
    (unit, many): (
        {f"{_DETAILS}['{unit}_range'][0]": "first", f"{_DETAILS}['{unit}_range'][1]": "last"}
        if many
        else {f"{_DETAILS}['{unit}']": "first"},
        nth,
    )
    for nth, (unit, many) in enumerate(
        [("page", True), ("page", False), ("chunk", True), ("chunk", False)], 1
    )
}
"""The placeholders of each hint, and its place among the values of the variable, of which the first is empty."""

fact_wordings = lru_cache(maxsize=8)(FactWordings.of)


class PublishedClaims(PublishedQuestion[tuple[Claim, ...] | None], frozen=True, kw_only=True):
    """Which statements of the report (`report_text`) cite what?"""

    words = "statements and the sources they cite, published call"
    attempts: ClassVar[int] = 3

    def read(self, text: str) -> tuple[Claim, ...] | None:
        """The claims; None for an empty reply, which is followed by another attempt."""
        return None if not text and self.attempt + 1 < self.attempts else claims_in(text)

    @property
    def is_last(self) -> bool:
        """Always: a reply that says something is not followed by another."""
        return True

    def example(self) -> str:
        """Twenty claims, passages of the report, on five pages of the corpus."""
        report = self.context["report_text"]
        places = range(0, 20 * (step := max(len(report) // 20, 1)), step)
        claims = [
            {"id": n, "claim_text": report[place : place + 100], "citations": [f"[RAG-{n % 5 + 1}]"]}
            for n, place in enumerate(places, 1)
        ]
        return json.dumps({"claims": claims})


class PublishedSupport(PublishedQuestion[tuple[bool | None, ...]], frozen=True, kw_only=True):
    """Does the source (`text_content`, called `name`) support each of `count` claims?"""

    words = "statements a cited page supports, published call"

    claims_text: str
    count: int

    def read(self, text: str) -> tuple[bool | None, ...]:
        """A verdict on each."""
        return supported_in(text, self.count)

    def example(self) -> str:
        """All are supported."""
        listed = ", ".join(
            f'{{"id": {n}, "supported": true, "explanation": "{"x" * 40}"}}' for n in range(1, self.count + 1)
        )
        return f'{{"results": [{listed}]}}'


class Verdict(msgspec.Struct, frozen=True):
    """Whether a source supports a claim; `told` is False where the code decides so because of the reply."""

    supported: bool | Missing
    told: bool = True
    judgment: str = ""
    reason: str = ""


class Cited(msgspec.Struct, frozen=True):
    """A claim by its place, its words, and one citation of it."""

    claim: int
    text: str
    citation: str


async def factual_accuracy(
    case: Case, gold: Gold, wordings: FactWordings, tools: Tools, evidence: list[Evidence]
) -> Value:
    """The share of a report's claims that all their citations support, as the code scores."""
    claims = await _claims(case, wordings, tools)
    if isinstance(claims, Missing):
        return claims
    if not claims:
        return 0.0
    cited = [Cited(place, one.text, each) for place, one in enumerate(claims) for each in one.citations]
    groups: dict[tuple[str, str], list[Cited]] = {}
    for one in cited:
        groups.setdefault(source_key(one.citation), []).append(one)
    sources = await _sources(list(groups), gold)
    batches = [
        (source, group[start : start + BATCH])
        for group, source in zip(groups.values(), sources, strict=True)
        for start in range(0, len(group), BATCH)
    ]
    verdicts = await asyncio.gather(*(_verified(source, batch, wordings, tools) for source, batch in batches))
    known = {
        (one.claim, one.citation): verdict
        for (_, batch), found in zip(batches, verdicts, strict=True)
        for one, verdict in zip(batch, found, strict=True)
    }
    evidence += [_evidence(one, known[one.claim, one.citation]) for one in dict.fromkeys(cited)]
    whole = [[known[place, each] for each in one.citations] for place, one in enumerate(claims)]
    return _share(whole)


async def _claims(case: Case, wordings: FactWordings, tools: Tools) -> tuple[Claim, ...] | Missing:
    context = Context.of(report_text=case.report.text[:REPORT_CHARS])
    for attempt in range(PublishedClaims.attempts):
        question = PublishedClaims(context=context, wording=wordings.claims, attempt=attempt)
        judgment = await tools.ask(question)
        if judgment.answer is None:
            return Missing(judgment.reason or "judge_unparseable")
        claims = question.read(judgment.answer.text)
        if claims is not None:
            return claims
    return Missing("judge_unparseable")


async def _sources(keys: list[tuple[str, str]], gold: Gold) -> list[Source | None]:
    """The source of each key; a long list of names is looked through beside the event loop."""
    files = sorted(gold.user_files, key=lambda one: one.name)
    pages = [page for page in gold.corpus if not page.beyond]
    found = await aside(
        found_sources,
        keys,
        [storable(one.name) for one in files],
        [storable(page.title) for page in pages],
        [place for place, page in enumerate(pages) if not page.text],
    )
    sources = [*files, *pages]
    return [None if place is None else sources[place] for place in found]


async def _verified(
    source: Source | None, batch: Sequence[Cited], wordings: FactWordings, tools: Tools
) -> list[Verdict]:
    """A verdict on each claim of a batch."""
    if source is None:
        return [Verdict(False, reason="no such source")] * len(batch)
    if source.media is not None or not source.text:
        return [Verdict(Missing("media_unsupported"))] * len(batch)
    form, text = _shown(source, wordings)
    if form is None:
        return [Verdict(False, told=False, reason="the code cannot read the file")] * len(batch)
    if len(text) > LONG_SOURCE and form not in ("whole", "json", "text"):
        query = " ".join(one.text for one in batch)
        passages = await aside(best_passages, storable(text), storable(query))
        text = "\n\n".join(
            wordings.passage.fill({"number": str(number), "passage": passage}) for number, passage in passages
        )
    try:
        lines = [f"[{n}] {one.text}{wordings.hint(one.citation)}" for n, one in enumerate(batch, 1)]
    except UnreadableReply:
        return [Verdict(False, told=False, reason="a page of too many digits")] * len(batch)
    question = PublishedSupport(
        context=Context.of(name=source.title if form == "page" else source.name, text_content=text),
        wording=wordings.shown[form],
        claims_text="\n".join(lines),
        count=len(batch),
    )
    judgment = await tools.ask(question)
    key = judgment.key.hex()
    if judgment.answer is None:
        return [Verdict(Missing(judgment.reason or "judge_unparseable"), judgment=key)] * len(batch)
    found = question.read(judgment.answer.text)
    return [Verdict(bool(one), one is not None, key) for one in found]


def _shown(source: Source, wordings: FactWordings) -> tuple[str | None, str]:
    """The form in which the code shows a source, and the text; no form for a file that it cannot read."""
    if source.role != "user_file":
        return "page", source.text
    form = _KINDS.get(PurePath(source.name).suffix.lower(), "text")
    text = source.around[0] + source.text + source.around[1]
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if form == "rows":
        rows = _rows(text, wordings)
        if rows is None:
            return None, ""
        text = rows
    limited = form not in ("whole", "slides")
    cut = limited and len(text) > LONG_SOURCE
    return form, text[:LONG_SOURCE] + wordings.cut.fill({}) if cut else text


def _rows(text: str, wordings: FactWordings) -> str | None:
    """The first rows of a table; None if there are none, or they cannot be read."""
    rows: list[str] = []
    try:
        for place, row in enumerate(csv.reader(io.StringIO(text))):
            if place >= ROWS:
                rows.append(wordings.rows_cut.fill({"count": str(place)}))
                break
            rows.append(" | ".join(row))
    except csv.Error:
        return None
    return "\n".join(rows) or None


def _share(claims: Sequence[Sequence[Verdict]]) -> Value:
    """The share of claims that all their citations support.

    What the code decides for want of a verdict is a missing part: the value is the code's, and the bounds say so.
    """
    known = measured([_answered(verdicts) for verdicts in claims], over(instruction_following), EVERY)
    counted = [_answered(verdicts, as_code=True) for verdicts in claims]
    as_code = measured(counted, over(instruction_following), EVERY)
    if not isinstance(known, Partial):
        return known
    return msgspec.structs.replace(known, value=as_code.value if isinstance(as_code, Partial) else as_code)


def _answered(verdicts: Sequence[Verdict], *, as_code: bool = False) -> Answered[None]:
    """Whether all citations of a claim support it: one that does not is enough to say no."""
    judgment = next((one.judgment for one in verdicts if one.judgment), "")
    counted = [one for one in verdicts if one.told or as_code]
    value: float | Missing = float(bool(verdicts))
    if any(one.supported is False for one in counted):
        value = 0.0
    elif len(counted) < len(verdicts):
        value = Missing("judge_unparseable")
    else:
        lacking = (one.supported for one in verdicts if isinstance(one.supported, Missing))
        value = next(lacking, value)
    return Answered(None, value, 0.0, 1.0, judgment)


def _evidence(cited: Cited, verdict: Verdict) -> Evidence:
    what = f"claim: {cited.text} (citing {cited.citation})"
    if isinstance(verdict.supported, Missing):
        return Evidence(
            what=what, outcome=MISSING, judgment=verdict.judgment, reason=verdict.supported.reason
        )
    kind: OutcomeKind = "supported" if verdict.supported else "unsupported" if verdict.told else "missing"
    said = "not in the reply" if kind == "missing" else kind
    words = f"{said}: {verdict.reason}" if verdict.reason else said
    reason = "" if verdict.told else "judge_unparseable"
    return Evidence(what=what, outcome=Outcome(kind, words=words), judgment=verdict.judgment, reason=reason)
