"""FACT's results: `extracted.jsonl`, `deduplicated.jsonl`, `scraped.jsonl`, `validated.jsonl` and `fact_result.txt`.

Each step adds to the rows of the one before; the row that has most is read. A verdict counts as it was recorded, also
where the page's text was a scraper's error. A URL without verdicts is dropped by the code's figures, and leaves the
paper's without a value.
"""

import copy
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from adjudge.engine.formats.dataset import UNREADABLE, Key, rows
from adjudge.engine.formats.rejected import Rejected
from adjudge.engine.results.recorded import (
    Recorded,
    Results,
    RunToWrite,
    folder_name,
    language_of,
    scorecard,
    write_lines,
)
from adjudge.fetchers.page import Page, address_of
from adjudge.fetchers.storable import storable
from adjudge.scoring.contract.case import Report, Task
from adjudge.scoring.contract.scorecard import Evidence, Scorecard
from adjudge.scoring.deepresearch_bench.fact import Tally, citation_accuracy

__all__ = ["PROTOCOL", "STEPS", "Row", "read", "write"]

PROTOCOL = "fact"
STEPS = ("extracted", "deduplicated", "scraped", "validated")
_VERDICTS = ("supported", "unsupported", "unknown")
_FAILED_SCRAPE = "scrape failed"
_NO_EXTRACTION = "extraction failed"
_DEDUPED = "citations_deduped"
_UNREACHED = frozenset({"page_gone", "page_blocked", "page_barred", "citation_malformed"})
"""What a run of our own writes for pages that nobody gets: these pairs stay in the paper's N_u."""


class Cited(msgspec.Struct, frozen=True):
    """A statement with its source, as extracted."""

    fact: str
    url: str
    ref_idx: int | str | None = None


class Checked(msgspec.Struct, frozen=True):
    """A verdict on one of a URL's statements; `idx` counts from 0."""

    result: Literal["supported", "unsupported", "unknown"]
    idx: int | None = None


class Source(msgspec.Struct, frozen=True):
    """A URL's unique statements, what was scraped from it, and the verdicts."""

    facts: list[str]
    url_content: str | None = None
    validate_res: list[Checked] | None = None
    validate_error: str | None = None


class Row(msgspec.Struct, frozen=True):
    """A task's row of any of the four files: that of its report, with what the steps have added."""

    id: Key
    prompt: str
    citations: list[Cited] | Literal["extraction failed"]
    article: str = ""
    citations_deduped: dict[str, Source] | None = None

    @property
    def step(self) -> int:
        """The last step that the row has been through; one without citations passes through all."""
        if self.citations_deduped is None:
            return 0
        sources = self.citations_deduped.values()
        if not sources or any(one.validate_res is not None for one in sources):
            return 3
        return 2 if any(one.url_content is not None for one in sources) else 1

    @property
    def tally(self) -> Tally | None:
        """The pairs by verdict, those of URLs without verdicts left out; None before the last step."""
        if self.step < 3:
            return None
        judged: list[str] = [one.result for source in self._sources for one in source.validate_res or ()]
        unread = [one for one in (self.citations_deduped or {}).values() if one.validate_error in _UNREACHED]
        counts = {name: judged.count(name) for name in _VERDICTS}
        return Tally(**counts, unreachable=sum(len(one.facts) for one in unread))

    @property
    def _sources(self) -> list[Source]:
        return [one for one in (self.citations_deduped or {}).values() if one.validate_error is None]

    @property
    def values(self) -> dict[str, float | None]:
        """FACT's metrics by the paper and by the code."""
        tally = self.tally
        names = ("c_acc", "e_cit", "pairs", "supported", "unsupported", "unknown", "judged", "cited")
        if tally is None:
            known: dict[str, float | None] = {}
            if self.citations != _NO_EXTRACTION:
                known["cited"] = float(bool(self.citations))
            if self.citations_deduped is not None:
                known["pairs"] = float(sum(len(one.facts) for one in self.citations_deduped.values()))
            return dict.fromkeys(names) | known
        errors = {one.validate_error for one in (self.citations_deduped or {}).values()}
        whole = errors <= {None, *_UNREACHED}
        counts = (tally.supported, tally.unsupported, tally.unknown, tally.supported + tally.unsupported)
        return {
            "c_acc": citation_accuracy(tally) if whole else None,
            "e_cit": float(tally.supported) if whole else None,
            "pairs": float(tally.pairs) if whole else None,
            **dict(zip(names[3:7], map(float, counts), strict=True)),
            "unreachable": float(tally.unreachable) if whole else None,
            "cited": float(bool(self.citations)),
        }

    def evidence(self) -> Iterator[Evidence]:
        """A line for each unique pair."""
        for url, source in (self.citations_deduped or {}).items():
            verdicts = source.validate_res or []
            for place, fact in enumerate(source.facts):
                known = source.validate_error is None and place < len(verdicts)
                unread = source.validate_error in _UNREACHED
                yield Evidence(
                    what=storable(fact),
                    outcome=verdicts[place].result if known else "unreachable" if unread else "",
                    url=storable(url),
                    reason="" if known else (source.validate_error or "") if unread else "judge_unparseable",
                )


def read(files: list[Path], system: str, results: Results) -> None:
    """Add the rows of a system's `files` to `results`, of each task the one with most steps."""
    best: dict[str, tuple[Row, Recorded]] = {}
    for file in sorted(files, key=_step_of):
        for line, _, raw in rows(file, msgspec.Raw, results.rejected):
            try:
                row = msgspec.json.decode(raw, type=Row)
                identity = (PROTOCOL, system, str(row.id), 0)
                card = scorecard(identity, row.values, "judge_unparseable", row.evidence())
                card = msgspec.structs.replace(card, pages=tuple(_pages(row)))
            except UNREADABLE as error:
                results.rejected.append(Rejected.of(file, line, Row, error))
                continue
            if str(row.id) not in best or row.step >= best[str(row.id)][0].step:
                best[str(row.id)] = row, Recorded(card, bytes(raw).decode(), f"{file}:{line}")
    for key, (row, recorded) in best.items():
        results.found.append(recorded)
        task = Task(id=key, prompt=row.prompt, language=language_of(row.prompt))
        results.tasks.setdefault(key, task)
        results.reports.append(Report(task_id=key, system=system, text=row.article))
        for url, page in _pages(row).items():
            known = results.pages.get(url)
            if known is None or known.status == "failed":
                results.pages[url] = page


def _step_of(file: Path) -> int:
    return next((place for place, name in enumerate(STEPS) if file.stem.endswith(name)), 0)


def _pages(row: Row) -> dict[str, Page]:
    pages = (_page(url, source) for url, source in (row.citations_deduped or {}).items())
    return {page.url: page for page in pages if page is not None}


def _page(url: str, source: Source) -> Page | None:
    """The page that was scraped; None where nothing was, or the URL is malformed."""
    address = address_of(storable(url))
    if source.url_content is None or isinstance(address, Page):
        return None
    text = storable(source.url_content)
    failed = text.startswith(_FAILED_SCRAPE)
    return Page(
        url=address,
        final_url=address,
        status="failed" if failed else "read",
        reason="page_server_error" if failed else None,
        fetched_at=0.0,
        content_type="" if failed else "text/plain",
        sha256="" if failed else hashlib.sha256(text.encode()).hexdigest(),
        title="",
        description="",
        text="" if failed else text,
        detail=text[:500] if failed else "",
        size=0 if failed else len(text.encode()),
    )


def write(run: RunToWrite, out: Path) -> Iterator[Path]:
    """Write the files for every system below `out`/fact; the files written."""
    for (system, sample), cards in run.of(PROTOCOL).items():
        folder = out / PROTOCOL / folder_name(system, sample)
        made = [(_row(run, card), card) for card in cards]
        steps = [msgspec.convert(row, Row).step for row, _ in made]
        for place, name in enumerate(STEPS):
            kept = (_until(row, place) for (row, _), step in zip(made, steps, strict=True) if step >= place)
            yield from write_lines(folder / f"{name}.jsonl", kept)
        totals = {
            name: sum(card.scores.get(name) or 0.0 for _, card in made)
            for name in ("judged", "supported", "cited")
        }
        extracted = [
            step for (row, _), step in zip(made, steps, strict=True) if row["citations"] != _NO_EXTRACTION
        ]
        if min(extracted, default=0) == 3 and totals["cited"] and totals["judged"]:
            judged, supported, cited = (int(total) for total in totals.values())
            (folder / "fact_result.txt").write_text(
                f"total_citations: {judged / cited}\ntotal_valid_citations: {supported / cited}\n"
                f"valid_rate: {supported / judged}\n",
                encoding="utf-8",
            )
            yield folder / "fact_result.txt"


def _until(row: dict[str, Any], step: int) -> dict[str, Any]:
    """`row` as it was after a step."""
    made = copy.deepcopy(row)
    if step == 0:
        made.pop(_DEDUPED, None)
    for source in made.get(_DEDUPED, {}).values():
        if step < 3:
            for name in ("article_id", "validate_res", "validate_error"):
                source.pop(name, None)
        if step < 2:
            source["url_content"] = None
    return made


def _row(run: RunToWrite, card: Scorecard) -> dict[str, Any]:
    """The row that `card` was imported from; of a run of our own, its unique pairs stand for the citations."""
    row = run.row(card)
    if "citations" in row:
        return row
    row["article"] = run.texts.get((card.system, card.task_id, card.sample), "")
    if card.scores.get("cited") is None:
        return row | {"citations": _NO_EXTRACTION}
    pairs = [line for line in card.evidence if line.url]
    row["citations"] = [{"fact": line.what, "ref_idx": "", "url": line.url} for line in pairs]
    by_url: dict[str, list[Evidence]] = {}
    for line in pairs:
        by_url.setdefault(line.url, []).append(line)
    row[_DEDUPED] = {url: _source(run, card, url, lines) for url, lines in by_url.items()}
    return row


def _source(run: RunToWrite, card: Scorecard, url: str, lines: list[Evidence]) -> dict[str, Any]:
    verdicts = [line.outcome.partition(" ")[0] for line in lines]
    error = next((line.reason for line in lines if line.reason), None)
    address = address_of(url)
    page = None if isinstance(address, Page) else run.pages.get(address)
    if page is not None and page.status == "read":
        content = f"{page.title}\n\n{page.description}\n\n{page.text}"
    else:
        content = f"{_FAILED_SCRAPE}: {page.reason if page is not None else error or 'not read'}"
    return {
        "facts": [line.what for line in lines],
        "url_content": content,
        "article_id": run.row(card)["id"],
        "validate_res": []
        if error
        else [{"idx": place, "result": verdict} for place, verdict in enumerate(verdicts)],
        "validate_error": error,
    }
