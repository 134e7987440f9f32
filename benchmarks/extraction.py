"""How much of a page's content its text keeps, by kind of page, beside trafilatura and resiliparse alone.

    python -m benchmarks.extraction FOLDER [--quick] [--json]

FOLDER holds a split of the Web Content Extraction Benchmark (WCXB, CC BY 4.0,
github.com/Murrough-Foley/web-content-extraction-benchmark), which is not shipped: `html/NAME.html.gz` and
`ground-truth/NAME.json`. Precision, recall and F1 are of words, counted as often as they occur, as that benchmark's
`evaluate.py` counts them, and are means over the pages. A sentence of the content is lost if less than 0.8 of its pairs
of neighbouring words are in the text; only those of six words and more count. They are counted once more of all that a
judge is shown, if need be in a second question: title, description, main text and what stands beside it; and of that
once more among the sentences that are on the page, since some are written anew by who noted the content, and some are
only brought by programs: those with 0.8 of their pairs in its source without tags. --quick: every tenth page.
"""

import argparse
import gzip
import html
import json
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
import trafilatura
from resiliparse.extract.html2text import extract_plain_text

from adjudge.fetchers.extract import decode, extract
from adjudge.fetchers.process import Extractor, Unreadable
from benchmarks.timing import Row, alone, table

Measures = dict[str, float]
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_LEAST_WORDS, _KEPT = 6, 0.8


def _ours(extractor: Extractor, body: bytes, *, visible: bool = False) -> str:
    try:
        found = extract(body, "text/html", extractor)
    except Unreadable:
        return ""
    return "\n".join((found.title, found.description, found.text, found.beside)) if visible else found.text


def _trafilatura(body: bytes) -> str:
    return trafilatura.extract(decode(body, "text/html")) or ""


def _resiliparse(body: bytes) -> str:
    return str(extract_plain_text(decode(body, "text/html"), main_content=True))


OURS, OURS_FAST, OURS_VISIBLE = "adjudge", "adjudge, fast", "adjudge, visible"
LOST, LOST_THERE = "sentences lost", "sentences on the page lost"
SIDES: dict[str, Callable[[bytes], str]] = {
    OURS: partial(_ours, "trafilatura"),
    OURS_FAST: partial(_ours, "fast"),
    OURS_VISIBLE: partial(_ours, "trafilatura", visible=True),
    "trafilatura": _trafilatura,
    "resiliparse": _resiliparse,
}


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _source(body: bytes) -> str:
    """All words of a page, whether a browser shows them or not."""
    return re.sub(r"<[^>]*>", " ", html.unescape(decode(body, "text/html")))


def _stands(sentence: list[str], pairs: set[tuple[str, str]]) -> bool:
    return sum(map(pairs.__contains__, pairwise(sentence))) >= _KEPT * (len(sentence) - 1)


def measures(text: str, content: str, source: str = "") -> Measures:
    """Precision, recall, F1 of `text`, and the share it lost of sentences of `content`, and of those in `source`."""
    found, due = Counter(words(text)), Counter(words(content))
    both = (found & due).total()
    precision = both / found.total() if found else 0.0
    recall = both / due.total()
    f1 = 2 * precision * recall / (precision + recall) if both else 0.0
    sentences = [own for own in map(words, _SENTENCE_END.split(content)) if len(own) >= _LEAST_WORDS]
    kept, there = set(pairwise(words(text))), set(pairwise(words(source)))
    each = {LOST: sentences, LOST_THERE: [own for own in sentences if _stands(own, there)]}
    lost = {name: fmean(not _stands(own, kept) for own in some) for name, some in each.items() if some}
    return {"precision": precision, "recall": recall, "F1": f1} | lost


def measured(truth: Path) -> tuple[str, dict[str, Measures]] | None:
    """The kind of a page and the measures of each side; None for a page without content."""
    said: dict[str, Any] = json.loads(truth.read_bytes())
    content = said["ground_truth"].get("main_content") or ""
    if not words(content):
        return None
    kind = said["_internal"]["page_type"]["primary"]
    body = gzip.decompress((truth.parent.parent / "html" / f"{truth.stem}.html.gz").read_bytes())
    source = _source(body)
    return "collection" if kind == "category" else kind, {
        name: measures(side(body), content, source) for name, side in SIDES.items()
    }


def rows(folder: Path, quick: bool) -> Iterator[Row]:
    """Each measure of all pages and by kind, beside both others and by the fast extractor; then all that is shown."""
    truths = sorted((folder / "ground-truth").glob("*.json"))[:: 10 if quick else 1]
    by_kind: dict[str, list[dict[str, Measures]]] = defaultdict(list)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for found in filter(None, pool.map(measured, truths, chunksize=8)):
            by_kind[found[0]].append(found[1])
            by_kind["all"].append(found[1])
    for kind, pages in sorted(by_kind.items(), key=lambda item: -len(item[1])):
        for measure in ("precision", "recall", "F1", LOST):
            means = {
                side: fmean([page[side][measure] for page in pages if measure in page[side]] or [0.0])
                for side in SIDES
            }
            for peer in ("trafilatura", "resiliparse"):
                ratio = means[OURS] / means[peer] if means[peer] else None
                yield Row(f"{kind}: {measure}", means[OURS], means[peer], peer, ratio, "", len(pages), 1)
            yield alone(f"{kind}: {measure}, fast", means[OURS_FAST], "", n=len(pages))
        for measure in (LOST, LOST_THERE):
            lost = [page[OURS_VISIBLE][measure] for page in pages if measure in page[OURS_VISIBLE]]
            yield alone(f"{kind}: {measure}, by all that is shown", fmean(lost or [0.0]), "", n=len(lost))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.extraction",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="a split of the benchmark: html/ and ground-truth/")
    parser.add_argument("--quick", action="store_true", help="every tenth page")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    options = parser.parse_args()
    if not (options.folder / "ground-truth").is_dir():
        print(f"{options.folder}: no ground-truth folder in it", file=sys.stderr)
        return 2
    found = list(rows(options.folder, options.quick))
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        print("\n".join(table(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
