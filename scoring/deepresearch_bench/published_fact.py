"""FACT in the benchmark's own calls: its prompts from the user's checkout, its replies read as its code does.

The judge extracts citations (one reply, read up to three times), drops repeats among the statements of one URL (up to 3
attempts; then all are kept), and says what each page supports (up to 3 attempts). URLs are compared as written.
Requests are the code's: one user message, no system message, no parameters.

A page is what our fetcher reads, or what the code recorded (`scraped: FILE or FOLDER`, its `scraped.jsonl`, by task and
URL). The code judges the error text of a failed scrape as if it were the page; here such a page is not asked about, and
its statements count as `fact` in our own words counts them. `c_acc_code` and `e_cit_code` leave them out, like the
code's statistics, and so they do statements whose verdicts cannot be read, which are missing.

Replies are read by the reference code's rules, for `call: published` alone: fences are cut wherever they are, and the
rest must be JSON. A reply that would end the code with an error is unreadable here.
"""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal, cast

import msgspec

from adjudge.fetchers.page import Page, address_of
from adjudge.judges import Context
from adjudge.judges.plural import plural
from adjudge.judges.published import Checkout, CheckoutError, PublishedQuestion, UnreadableReply, Wording
from adjudge.scoring.answers.parts import ask_until_read
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.protocol import Tools
from adjudge.scoring.contract.scorecard import Metric, Missing, Scorecard
from adjudge.scoring.deepresearch_bench.fact import (
    BY_MARKS,
    Fact,
    Group,
    Pair,
    Seen,
    evidence_of,
    evidence_of_unread,
    unmerged,
    unread,
    values_of,
)
from adjudge.scoring.deepresearch_bench.fact_questions import Verdict
from adjudge.scoring.deepresearch_bench.words import FACT
from adjudge.scoring.text.integrity import Runs

__all__ = ["Cited", "cited_in", "kept_in", "verdicts_in", "without_fragments", "without_links"]

_READINGS = 3  # of one reply: each undoes one more layer of escapes
_FRAGMENT = "#:~:text="
_ESCAPED = (">", "<", "+", "~")


class Cited(msgspec.Struct, frozen=True):
    """A statement and the URL that it cites, as the judge wrote it."""

    fact: str
    url: str


def cited_in(text: str) -> list[Cited]:
    """The citations in a reply; none if it is an empty value. Raises UnreadableReply. Linear."""
    for _ in range(_READINGS):
        if not text:
            break
        text = _unfenced(text)
        for char in _ESCAPED:
            text = text.replace(f"\\{char}", char)
        try:
            return [_cited(one) for one in json.loads(text)]
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    raise UnreadableReply("no list of citations")


def _cited(one: dict[str, object]) -> Cited:
    """Raises TypeError or KeyError for what is not a citation."""
    fact, url = one["fact"], one["url"]
    if not isinstance(fact, str) or isinstance(url, dict | list):
        raise TypeError("not a citation")
    return Cited(without_links(fact), url if isinstance(url, str) else json.dumps(url))


def kept_in(text: str, size: int) -> tuple[int, ...] | None:
    """Which of `size` statements a reply keeps, from 0; all if it lists none, too many or others; None if not JSON."""
    try:
        found = json.loads(_unfenced(text))
    except (ValueError, RecursionError):
        return None
    usable = isinstance(found, list) and 0 < len(found) <= size
    if usable and all(isinstance(place, int) and 1 <= place <= size for place in found):
        return tuple(place - 1 for place in found)
    return tuple(range(size))


def verdicts_in(text: str, size: int) -> tuple[str | None, ...]:
    """One verdict for each of `size` statements: `supported`, `unknown`, else `unsupported`; None if one is not said.

    In the order of the statements, if the reply numbers each once; else in the reply's. Raises UnreadableReply.
    """
    try:
        found = json.loads(_unfenced(text))
        places = [one["idx"] - 1 for one in found]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UnreadableReply("no list of numbered verdicts") from error
    if len(places) != size:
        raise UnreadableReply(f"{plural(len(places), 'verdict')} for {plural(size, 'statement')}")
    said = [_verdict(one) for one in found]
    if sorted(places) == list(range(size)):
        return tuple(verdict for _, verdict in sorted(zip(places, said, strict=True), key=lambda one: one[0]))
    return tuple(said)


def _verdict(one: dict[str, object]) -> str | None:
    if "result" not in one:
        return None
    result = one["result"]
    return str(result) if result in ("supported", "unknown") else "unsupported"


def numbered_lines(statements: Iterable[str]) -> str:
    """The statements as the code lists them: numbered from 1, one below the other."""
    return "\n".join(f"{number}. {statement}" for number, statement in enumerate(statements, 1))


def without_links(text: str) -> str:
    """`text` with `[title]` for each `[title](url)`. Linear."""
    return "".join(before if url is None else f"{before}[{title}]" for before, title, url in _links(text))


def without_fragments(text: str) -> str:
    """`text` with what a browser is to mark (`#:~:text=`) cut off the URL of each `[title](url)`. Linear."""
    return "".join(
        before if url is None else f"{before}[{title}]({url.partition(_FRAGMENT)[0]})"
        for before, title, url in _links(text)
    )


def _links(text: str) -> Iterator[tuple[str, str, str | None]]:
    """The text before each `[title](url)`, its title and its URL; at the end, the rest and None."""
    taken = place = 0
    while (opened := text.find("[", place)) >= 0 and (closed := text.find("]", opened + 1)) >= 0:
        place = max(closed, opened + 1)
        if closed == opened + 1 or text[closed + 1 : closed + 2] != "(":
            continue
        end = text.find(")", closed + 2)
        if end < 0:
            break
        if end > closed + 2:
            yield text[taken:opened], text[opened + 1 : closed], text[closed + 2 : end]
            taken = place = end + 1
    yield text[taken:], "", None


def _unfenced(text: str) -> str:
    return text.replace("```json", "").replace("```", "")


_FAILED = "scrape failed: "


class _Page(msgspec.Struct, frozen=True):
    url_content: str | None = None


class _Row(msgspec.Struct, frozen=True):
    id: int | str
    citations_deduped: dict[str, _Page] = {}


_ROW = msgspec.json.Decoder(_Row)


class Scraped:
    """The pages in a file, or in a folder with one for each system: `SYSTEM/scraped.jsonl` or `SYSTEM.jsonl`.

    Raises CheckoutError unless every row of every file can be read.
    """

    def __init__(self, place: str | Path) -> None:
        self._place = Path(place)
        if not self._place.exists():
            raise CheckoutError(
                f"scraped: {place} does not exist; set it to a scraped.jsonl, or a folder of them"
            )
        found = [self._place]
        if self._place.is_dir():
            found = sorted([*self._place.glob("*/scraped.jsonl"), *self._place.glob("*.jsonl")])
        for file in found:
            _offsets(file)

    def content(self, system: str, task: str, url: str) -> str | None:
        """The text in place of the page; None if it was not read."""
        file = self._file(system)
        page = None if file is None else _pages(file, task).get(url)
        text = None if page is None else page.url_content
        return None if text is None or text.startswith(_FAILED) else text

    def _file(self, system: str) -> Path | None:
        if self._place.is_file():
            return self._place
        if Path(system).name != system:
            return None
        files = (self._place / system / "scraped.jsonl", self._place / f"{system}.jsonl")
        return next((file for file in files if file.is_file()), None)


@lru_cache(maxsize=256)
def _offsets(file: Path) -> dict[str, int]:
    """Where each task's row begins."""
    found = {}
    try:
        with file.open("rb") as lines:
            offset = 0
            for number, line in enumerate(lines, 1):
                if line.strip():
                    try:
                        found[str(_ROW.decode(line).id)] = offset
                    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                        raise CheckoutError(
                            f"scraped: {file}:{number}: {error}; correct or remove it"
                        ) from error
                offset += len(line)
    except OSError as error:
        raise CheckoutError(f"scraped: {file}: cannot be read: {error.strerror}; correct the path") from error
    return found


@lru_cache(maxsize=16)
def _pages(file: Path, task: str) -> dict[str, _Page]:
    offset = _offsets(file).get(task)
    if offset is None:
        return {}
    with file.open("rb") as lines:
        lines.seek(offset)
        return _ROW.decode(lines.readline()).citations_deduped


Language = Literal["en", "zh"]

_URL = re.compile(r"https?://[^\s<>()\[\]\"']{1,500}")
_EXAMPLES = 300


class FactWordings(msgspec.Struct, frozen=True):
    """The requests of one checkout by language."""

    extract: dict[str, Wording]
    repeats: dict[str, Wording]
    support: dict[str, Wording]

    @classmethod
    def of(cls, folder: str) -> "FactWordings":
        """The wordings in the checkout at `folder`. Raises CheckoutError."""
        checkout = Checkout(folder)
        names = {"en": "prompt_template_en", "zh": "prompt_template"}
        return cls(
            *(
                {
                    language: Wording.of(checkout.formatted(f"utils/{file}.py", name))
                    for language, name in names.items()
                }
                for file in ("extract", "deduplicate", "validate")
            )
        )


_wordings = lru_cache(maxsize=8)(FactWordings.of)
_scraped = lru_cache(maxsize=8)(Scraped)


class PublishedExtract(PublishedQuestion[list[Cited]], frozen=True, kw_only=True):
    """What does the report (`report_text`) state, and on which sources?"""

    words = "statements and the sources they cite, published call"

    def read(self, text: str) -> list[Cited]:
        """The citations in the reply."""
        return cited_in(text)

    def example(self) -> str:
        """A statement for every URL of the report."""
        urls = list(dict.fromkeys(_URL.findall(self.context["report_text"])))[:_EXAMPLES]
        return json.dumps([{"fact": "x" * 150, "ref_idx": 0, "url": url} for url in urls])


class PublishedRepeats(PublishedQuestion[tuple[int, ...] | None], frozen=True, kw_only=True):
    """Which of `size` statements repeat others?"""

    words = "statements said twice, published call"
    attempts: ClassVar[int] = 3

    size: int

    def read(self, text: str) -> tuple[int, ...] | None:
        """The places of those to keep; None if the reply is not JSON."""
        return kept_in(text, self.size)

    def example(self) -> str:
        """All are kept."""
        return json.dumps(list(range(1, self.size + 1)))


class PublishedSupport(PublishedQuestion[tuple[str | None, ...]], frozen=True, kw_only=True):
    """Which of `size` statements does the page (`reference`) support?"""

    words = "statements a cited page supports, published call"
    attempts: ClassVar[int] = 3

    statements: str
    size: int

    def read(self, text: str) -> tuple[str | None, ...]:
        """A verdict for each."""
        return verdicts_in(text, self.size)

    def example(self) -> str:
        """All are supported."""
        return json.dumps([{"idx": place, "result": "supported"} for place in range(1, self.size + 1)])


class PublishedFact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Score a report's citations by the calls of the benchmark at `checkout`; needs no gold.

    `scraped` names recorded pages; `pages` says whether pages are read without them. Metrics: those of `Fact`.
    """

    name: ClassVar[str] = "fact"
    words: ClassVar = FACT

    checkout: str
    scraped: str | None = None
    pages: bool = True

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of `Fact` that need no account of marks; the published figures are those by the code's rule."""
        return tuple(one for one in Fact().metrics if one.name not in (*BY_MARKS, "lost_share"))

    def prompts(self) -> dict[str, str]:
        """Digests of all that may be sent, by what it is for. Raises CheckoutError, also for recorded pages."""
        if self.scraped is not None:
            _scraped(self.scraped)
        found = msgspec.structs.asdict(_wordings(self.checkout))
        return {
            f"fact.{kind}.{language}": wording.digest.hex()
            for kind, wordings in found.items()
            for language, wording in wordings.items()
        }

    async def score(self, case: Case, tools: Tools) -> Scorecard:
        """Extract, group by URL, drop repeats and read the page, ask what it supports, count."""
        cited = await self._cited(case, tools)
        if isinstance(cited, Missing):
            values = {metric.name: cited for metric in self.metrics if metric.ratio is None}
            return Scorecard.of(self.name, case, values)
        groups = _grouped(cited)
        if not self.pages and self.scraped is None:
            pairs = unread(groups)
            evidence = list(evidence_of_unread(pairs))
            return Scorecard.of(self.name, case, values_of(pairs, bool(groups)), evidence)
        report = Runs(one.fact for one in cited)
        checked = await asyncio.gather(*(self._checked(group, report, case, tools) for group in groups))
        pairs = [pair for found in checked for pair in found]
        return Scorecard.of(self.name, case, values_of(pairs, bool(groups)), evidence_of(checked))

    async def _cited(self, case: Case, tools: Tools) -> list[Cited] | Missing:
        text, language = case.report.text, _language(case)
        if (
            "openai" in case.report.system
        ):  # their links say what to mark on a page; the code compares without
            text = without_fragments(text)
        question = PublishedExtract(
            context=Context.of(report_text=text),
            language=language,
            wording=_wordings(self.checkout).extract[language],
        )
        reply = await ask_until_read(tools, question)
        return reply if isinstance(reply, Missing) else reply.value

    async def _checked(self, group: Group, report: Runs, case: Case, tools: Tools) -> tuple[Pair, ...]:
        """The unique pairs of one URL with their verdicts; `report` has the runs of words of all statements."""
        statements, found = await asyncio.gather(
            self._unique(group, case, tools), self._content(group, case, tools)
        )
        if isinstance(statements, Missing):
            return unmerged(group, statements.reason)
        if isinstance(found, Missing):
            return tuple(Pair(fact, group.url, None, found.reason) for fact in statements)
        final_url, page = found
        seen = Seen.of(final_url, page, report)
        language = _language(case)
        question = PublishedSupport(
            context=Context.of(reference=page),
            language=language,
            wording=_wordings(self.checkout).support[language],
            statements=numbered_lines(statements),
            size=len(statements),
        )
        reply = await ask_until_read(tools, question)
        if isinstance(reply, Missing):
            return tuple(Pair(fact, group.url, None, reply.reason, seen=seen) for fact in statements)
        return tuple(
            Pair(
                fact,
                group.url,
                cast(Verdict | None, verdict),
                None if verdict else "judge_unparseable",
                reply.judgment,
                seen=seen,
            )
            for fact, verdict in zip(statements, reply.value, strict=True)
        )

    async def _unique(self, group: Group, case: Case, tools: Tools) -> tuple[str, ...] | Missing:
        """The statements of a group without repeats."""
        if len(group.facts) < 2:
            return group.facts
        language = _language(case)
        question = PublishedRepeats(
            context=Context.of(statements=numbered_lines(group.facts)),
            language=language,
            wording=_wordings(self.checkout).repeats[language],
            size=len(group.facts),
        )
        reply = await ask_until_read(tools, question)
        if isinstance(reply, Missing):
            return reply
        return group.facts if reply.value is None else tuple(group.facts[place] for place in reply.value)

    async def _content(self, group: Group, case: Case, tools: Tools) -> tuple[str, str] | Missing:
        """Where a page ended, and its text as it is shown to the judge."""
        if self.scraped is not None:
            recorded = _scraped(self.scraped).content(case.report.system, case.task.id, group.url)
            return Missing("page_not_in_snapshot") if recorded is None else (group.url, recorded)
        page = group.address if isinstance(group.address, Page) else await tools.page(group.address)
        if page.reason is not None:
            return Missing(page.reason)
        return page.final_url, f"{page.title}\n\n{page.description}\n\n{page.text}"


def _grouped(cited: list[Cited]) -> list[Group]:
    """Citations by URL, in order of first use."""
    facts: dict[str, list[str]] = {}
    for one in cited:
        facts.setdefault(one.url, []).append(one.fact)
    return [Group(url, tuple(found), address_of(url)) for url, found in facts.items()]


def _language(case: Case) -> Language:
    return "zh" if case.task.language == "zh" else "en"
