"""DeepResearch Bench as published: queries, criteria, references and articles, and RACE's and FACT's results.

Tasks and reports are read from the repository's `data/` folder (or its parent), the Hub set with its
`generated_reports/`, or the same files flat in one folder. There is one file of articles per system; articles are raw,
as the system wrote them, or cleaned of citations.

RACE's results are `raw_results.jsonl`, one row per task, and `race_result.txt`, their means. A file of judgments
without a reference (`mode: no_reference`) holds the marks themselves; they are weighted by the criteria in the same
folder.

FACT's results are `extracted.jsonl`, `deduplicated.jsonl`, `scraped.jsonl`, `validated.jsonl` and `fact_result.txt`.
Every step adds to the rows of the one before; the most complete row is read. Every recorded verdict is kept, even where
the page's text was a scraper's error message. A URL without verdicts is dropped from the code's figures, which recorded
results rank by, and leaves the paper's with bounds: its statements are unsupported where the scrape failed, and missing
elsewhere.
"""

import copy
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from adjudge.engine.formats.dataset import (
    UNREADABLE,
    Dataset,
    FormatError,
    InputFile,
    Key,
    Prompts,
    located,
    rows,
)
from adjudge.engine.formats.recorded import (
    Results,
    RunToWrite,
    folder_name,
    language_of,
    scorecard,
    write_lines,
)
from adjudge.engine.formats.rejected import Rejected
from adjudge.fetchers.page import Page, address_of
from adjudge.fetchers.urls import storable
from adjudge.scoring.contract.case import Report, Sample, Task
from adjudge.scoring.contract.reasons import CAUSES, Reason
from adjudge.scoring.contract.scorecard import Bounds, Evidence, Partial, Scorecard, Value
from adjudge.scoring.deepresearch_bench.fact import Fact, Pair, Seen, evidence_of, values_of
from adjudge.scoring.deepresearch_bench.race import dimension_score, pointwise, total
from adjudge.scoring.deepresearch_bench.yardstick import DIMENSIONS, MOST, RaceGold
from adjudge.scoring.text.integrity import Runs

_QUERY = ("prompt_data/query.jsonl", "query.jsonl")
_CRITERIA = ("criteria_data/criteria.jsonl", "criteria.jsonl")
_REFERENCE = (
    "test_data/cleaned_data/reference.jsonl",
    "test_data/raw_data/reference.jsonl",
    "reference.jsonl",
)
_HUB = "generated_reports"
_RAW, _CLEANED, _FLAT = ("test_data/raw_data", _HUB), ("test_data/cleaned_data",), (".",)
_ARTICLES = {"raw": _RAW, "cleaned": _CLEANED, None: (*_RAW, *_CLEANED, *_FLAT)}
_NOT_SYSTEMS = frozenset({"query", "criteria", "reference", "human_RACE_annotation"})
_REFERENCES = "reference"
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


class Query(msgspec.Struct):
    """A line of query.jsonl."""

    id: Key
    prompt: str
    language: str = "en"
    topic: Key = ""


class Criteria(msgspec.Struct):
    """A line of criteria.jsonl; the protocol RACE decodes its weights and criteria."""

    id: Key
    dimension_weight: msgspec.Raw
    criterions: msgspec.Raw


class Article(msgspec.Struct):
    """A line of a system's file, or of reference.jsonl."""

    task_id: Key = msgspec.field(name="id")
    text: str = msgspec.field(name="article")
    prompt: str = ""
    sample: Sample = 0


def read(tasks: Path, reports: list[InputFile], articles: Literal["raw", "cleaned"] | None = None) -> Dataset:
    """The dataset of a published folder, with the systems of `reports`, or without any, all in the folder.

    Raises FormatError if the folder has no queries, or no articles of the chosen kind (raw or cleaned).
    """
    if reports and articles:
        raise FormatError("articles: chooses among the folder's own reports; remove articles: or reports:")
    for root in (tasks / "data", tasks):
        if _find(root, _QUERY) is not None or (root / _HUB).is_dir():
            break
    else:
        raise FormatError(
            f"tasks: {tasks} holds no query.jsonl; give the folder that DeepResearch Bench publishes as data/"
        )
    rejected: list[Rejected] = []
    reference = _find(root, _REFERENCE)
    gold = _gold(_find(root, _CRITERIA), reference, rejected)
    query = _find(root, _QUERY)
    queries = [row for _, row in rows(query, Query, rejected)] if query else _asked(root / _HUB)
    known = {
        str(row.id): Task(
            id=str(row.id),
            prompt=row.prompt,
            language=row.language,
            domain=str(row.topic),
            gold={"race": msgspec.Raw(msgspec.json.encode(gold[str(row.id)]))} if str(row.id) in gold else {},
        )
        for row in queries
    }
    systems = _named(reports, rejected) if reports else _systems(root, articles)
    prompts = Prompts(known)
    found = [report for file in systems for report in located(file, Article, rejected, prompts, _report)]
    lacking = f"{root / (_REFERENCE[0] if query and query.parent != root else _REFERENCE[-1])} is missing"
    return Dataset(known, found, rejected, {} if reference else {"race": lacking})


def _asked(reports: Path) -> list[Query]:
    """The queries of the Hub set, which only its files of reports contain."""
    found: dict[str, Query] = {}
    for file in sorted(reports.glob("*.jsonl")):
        for _, row in rows(file, Article, []):  # the reports' own reading names invalid lines
            language = "zh" if _CHINESE.search(row.prompt) else "en"
            found.setdefault(str(row.task_id), Query(id=row.task_id, prompt=row.prompt, language=language))
    return list(found.values())


def _gold(
    criteria: Path | None, reference: Path | None, rejected: list[Rejected]
) -> dict[str, dict[str, msgspec.Raw | str]]:
    gold: dict[str, dict[str, msgspec.Raw | str]] = {}
    if criteria:
        for _, row in rows(criteria, Criteria, rejected):
            gold[str(row.id)] = {
                "dimension_weight": row.dimension_weight.copy(),
                "criterions": row.criterions.copy(),
            }
    if reference:
        for _, article in rows(reference, Article, rejected):
            gold.setdefault(str(article.task_id), {})["reference"] = article.text
    return gold


def _systems(root: Path, articles: Literal["raw", "cleaned"] | None) -> list[InputFile]:
    """The files of the folder's systems, from the first place that has any."""
    for place in _ARTICLES[articles]:
        every = [InputFile(file) for file in sorted((root / place).glob("*.jsonl"))]
        found = [file for file in every if _is_system(file)]
        if found:
            return found
    if articles is not None:
        raise FormatError(f"articles: {root} has no {articles} articles; remove articles: or add the files")
    return []


def _is_system(file: InputFile) -> bool:
    return file.stem not in _NOT_SYSTEMS and not file.stem.startswith(_REFERENCES)


def _named(reports: list[InputFile], rejected: list[Rejected]) -> list[InputFile]:
    """The files of `reports:` without the benchmark's own ones; other references go to `rejected`."""
    rejected += [
        Rejected(str(file), 0, "a reference file is not a system; rename it if it holds a system's reports")
        for file in reports
        if file.stem not in _NOT_SYSTEMS and not _is_system(file)
    ]
    return [file for file in reports if _is_system(file)]


def _find(root: Path, names: tuple[str, ...]) -> Path | None:
    return next((root / name for name in names if (root / name).is_file()), None)


def _report(system: str, article: Article) -> Report:
    return Report(task_id=str(article.task_id), system=system, sample=article.sample, text=article.text)


RACE = "race"
_OVERALL = "overall_score"
_NAMES = (*DIMENSIONS, _OVERALL)
_JUDGED = "judge_details"

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class RaceRow(msgspec.Struct, frozen=True):
    """A row of raw_results.jsonl: a task's shares, or why there are none."""

    id: Key
    prompt: str = ""
    comprehensiveness: Share | None = None
    insight: Share | None = None
    instruction_following: Share | None = None
    readability: Share | None = None
    overall_score: Share | None = None
    error: str | None = None

    @property
    def values(self) -> dict[str, float | None]:
        """RACE's metrics. Raises ValueError if one is missing from a row without an error."""
        found = {name: None if self.error is not None else getattr(self, name) for name in _NAMES}
        if self.error is None and None in found.values():
            raise ValueError("a score is missing, and there is no `error`")
        return {"overall": found.pop(_OVERALL), **found}


def read_race(file: Path, system: str, results: Results) -> None:
    """Add the rows of `file` to `results`; those that are not results go to its rejected lines."""
    for line, raw in rows(file, msgspec.Raw, results.rejected):
        try:
            row = msgspec.json.decode(raw, type=RaceRow)
            card = scorecard((RACE, system, str(row.id), 0), row.values)
        except UNREADABLE as error:
            results.rejected.append(Rejected.of(file, line, RaceRow, error))
            continue
        results.add(card, bytes(raw).decode(), file, line)
        task = Task(id=str(row.id), prompt=row.prompt, language=language_of(row.prompt))
        results.tasks.setdefault(task.id, task)


class Mark(msgspec.Struct, frozen=True):
    """A criterion's mark, from 0 to 10."""

    criterion: str
    target_score: Annotated[float, msgspec.Meta(ge=0, le=MOST)]


class Judged(msgspec.Struct, frozen=True):
    """A row of a file of judgements."""

    id: Key
    mode: Literal["no_reference"]
    judge_details: dict[str, list[Mark]]
    prompt: str = ""

    def values(self, gold: RaceGold | None) -> dict[str, float | None]:
        """RACE's metrics without a reference. Raises ValueError without criteria, or marks of all dimensions."""
        if gold is None or gold.dimension_weight is None or gold.criterions is None:
            raise ValueError("the folder has no criteria for this task")
        if missing := [name for name in DIMENSIONS if not self.judge_details.get(name)]:
            raise ValueError(f"no marks for {', '.join(missing)}")
        marks = {
            name: dimension_score(
                [(mark.criterion, mark.target_score) for mark in self.judge_details[name]],
                gold.criterions.get(name, ()),
            )
            for name in DIMENSIONS
        }
        whole = total(marks, gold.dimension_weight)
        shares = {name: pointwise(mark) for name, mark in marks.items()}
        return {"overall": pointwise(whole), **shares, "total": whole}


def read_judged(file: Path, system: str, criteria: dict[str, RaceGold], results: Results) -> None:
    """Add the rows of a `file` of judgements to `results`; the others go to its rejected lines."""
    for line, raw in rows(file, msgspec.Raw, results.rejected):
        try:
            row = msgspec.json.decode(raw, type=Judged)
            card = scorecard((RACE, system, str(row.id), 0), row.values(criteria.get(str(row.id))))
        except UNREADABLE as error:
            results.rejected.append(Rejected.of(file, line, Judged, error))
            continue
        results.add(card, bytes(raw).decode(), file, line)
        task = Task(id=str(row.id), prompt=row.prompt, language=language_of(row.prompt))
        results.tasks.setdefault(task.id, task)


def write_race(run: RunToWrite, out: Path) -> Iterator[Path]:
    """Write both files for every system below `out`/race; the files written."""
    for (system, sample), cards in run.of(RACE).items():
        folder = out / RACE / folder_name(system, sample)
        recorded = [run.row(card) for card in cards]
        judged = (row for row in recorded if _JUDGED in row)
        yield from write_lines(out / "judgements" / f"{folder_name(system, sample)}.jsonl", judged)
        made = [_race_row(row, card) for row, card in zip(recorded, cards, strict=True)]
        yield from write_lines(folder / "raw_results.jsonl", made)
        scored = [row for row in made if "error" not in row]
        if scored:
            means = {name: sum(row[name] for row in scored) / len(scored) for name in _NAMES}
            text = "".join(f"{name.replace('_', ' ').title()}: {mean:.4f}\n" for name, mean in means.items())
            (folder / "race_result.txt").write_text(text, encoding="utf-8")
            yield folder / "race_result.txt"


def _race_row(row: dict[str, Any], card: Scorecard) -> dict[str, Any]:
    if _JUDGED in row:
        row = {name: row[name] for name in ("id", "prompt") if name in row}
    values = {**{name: card.scores.get(name) for name in DIMENSIONS}, _OVERALL: card.scores.get("overall")}
    if None in values.values():
        return row if "error" in row else row | {"error": card.reason or "not scored"}
    return row | values


FACT = "fact"
STEPS = ("extracted", "deduplicated", "scraped", "validated")
_FAILED_SCRAPE = "scrape failed"
_NO_EXTRACTION = "extraction failed"
_DEDUPED = "citations_deduped"


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


class FactRow(msgspec.Struct, frozen=True):
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

    def pairs(self) -> Iterator[Pair]:
        """The unique pairs, each with its verdict or why it has none; all pairs, if no repeats were dropped yet."""
        if self.citations_deduped is None:
            for one in self.citations if isinstance(self.citations, list) else ():
                yield Pair(storable(one.fact), storable(one.url), None, "judge_unparseable", unique=False)
            return
        report = Runs(fact for source in self.citations_deduped.values() for fact in source.facts)
        for url, source in self.citations_deduped.items():
            page, verdicts = _page(url, source), source.validate_res or []
            seen = None
            if page is not None and page.status == "read":
                seen = Seen.of(page.final_url, page.text, report)
            if source.validate_error is not None:
                verdicts = []
            for place in range(max(len(source.facts), len(verdicts))):
                fact = source.facts[place] if place < len(source.facts) else ""
                verdict = verdicts[place].result if place < len(verdicts) else None
                reason = None if verdict is not None else _why(source, page)
                yield Pair(storable(fact), storable(url), verdict, reason, seen=seen)

    @property
    def values(self) -> dict[str, Value | None]:
        """FACT's metrics by the paper and by the code; of a report without verdicts, what is known and bounds."""
        if self.citations == _NO_EXTRACTION:
            return dict.fromkeys(metric.name for metric in Fact().metrics if metric.ratio is None)
        pairs = list(self.pairs())
        values: dict[str, Value | None] = {**values_of(pairs, bool(self.citations))}
        counts = Counter(pair.verdict for pair in pairs)
        judged = counts["supported"] + counts["unsupported"]
        if judged:  # of one report; over tasks it is pooled
            low, high = counts["supported"] / len(pairs), 1 - counts["unsupported"] / len(pairs)
            answered = len(pairs) - sum(pair.missing is not None for pair in pairs)
            rate = counts["supported"] / judged
            values["c_acc_code"] = Partial(rate, Bounds(low, max(high, rate), answered, len(pairs)))
        return values


def _why(source: Source, page: Page | None) -> Reason:
    """Why a URL has no verdicts: what our own runs write, else whether it was scraped at all."""
    if source.validate_error in CAUSES:
        return source.validate_error
    return "judge_unparseable" if page is None or page.reason is None else page.reason


def read_fact(files: list[Path], system: str, results: Results) -> None:
    """Add the rows of a system's `files` to `results`: of each task and sample, the row with most steps."""
    best: dict[tuple[str, int], tuple[FactRow, Scorecard, str, Path, int]] = {}
    for file in sorted(files, key=_step_of):
        given: dict[str, list[bytes]] = {}
        for line, raw in rows(file, msgspec.Raw, results.rejected):
            try:
                row = msgspec.json.decode(raw, type=FactRow)
                lines = [] if row.citations_deduped is None else evidence_of([tuple(row.pairs())])
                card = scorecard((FACT, system, str(row.id), 0), row.values, evidence=lines)
                card = msgspec.structs.replace(card, pages=tuple(_pages(row)))
            except UNREADABLE as error:
                results.rejected.append(Rejected.of(file, line, FactRow, error))
                continue
            same = given.setdefault(str(row.id), [])
            if bytes(raw) not in same:
                same.append(bytes(raw))
                name = str(row.id), len(same) - 1
                if name not in best or row.step >= best[name][0].step:
                    best[name] = row, card, bytes(raw).decode(), file, line
    for (key, sample), (row, card, text, file, line) in best.items():
        if not results.add(card, text, file, line):
            continue
        task = Task(id=key, prompt=row.prompt, language=language_of(row.prompt))
        results.tasks.setdefault(key, task)
        results.reports.append(Report(task_id=key, system=system, sample=sample, text=row.article))
        results.ranked_by[FACT] = "c_acc_code"
        for url, page in _pages(row).items():
            known = results.pages.get(url)
            if known is None or known.status == "failed":
                results.pages[url] = page


def _step_of(file: Path) -> int:
    return next((place for place, name in enumerate(STEPS) if file.stem.endswith(name)), 0)


def _pages(row: FactRow) -> dict[str, Page]:
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


def write_fact(run: RunToWrite, out: Path) -> Iterator[Path]:
    """Write the files for every system below `out`/fact; the files written."""
    for (system, sample), cards in run.of(FACT).items():
        folder = out / FACT / folder_name(system, sample)
        made = [(_fact_row(run, card), card) for card in cards]
        steps = [msgspec.convert(row, FactRow).step for row, _ in made]
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


def _fact_row(run: RunToWrite, card: Scorecard) -> dict[str, Any]:
    """The row that `card` was imported from; in our own runs, its unique pairs take the place of the citations."""
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
    verdicts = ["" if line.outcome.kind == "missing" else line.outcome.kind for line in lines]
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
