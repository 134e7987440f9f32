"""How far the lexical judge agrees with recorded verdicts on real pages.

    python -m benchmarks.lexical_agreement [--json] [--file FILE]

FACT runs over `golden/fact/dls_validated.jsonl` of the folder `ADJUDGE_SHARED`, or over FILE: its statements are the
extraction, its `url_content` the pages, the lexical judge the judge; agreement is with its verdicts, made by a large
language model. That model answered unknown for 12 pairs, nearly all of them bot checks in place of a page.

How the judge's threshold was chosen: `judges.lexical._PARTLY` is the middle of the range of best Cohen's kappa on
task 1 alone (82 pairs that are supported or unsupported). Tasks 58 and 62 were looked at while the window was
chosen, though not for the threshold, so `held out` is not wholly blind. Both are small: with 38 pairs the standard
error of kappa is about 0.17, and always answering "supported" is right for three of four pairs. It is a baseline.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from adjudge.fetchers.page import Page
from adjudge.judges import Asked, LexicalJudge, Question, numbered
from adjudge.scoring.deepresearch_bench.fact_questions import Backed, excerpt
from tests.shared_data import shared_folder

FILE = "golden/fact/dls_validated.jsonl"
CLASSES = ("supported", "unsupported", "unknown")
TUNED_ON = frozenset({1})
BATCH = 20


class Row(msgspec.Struct, frozen=True):
    """One pair: its task, the recorded verdict and the lexical one."""

    task: int
    recorded: str
    lexical: str


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.lexical_agreement", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--json", action="store_true")
    shared = shared_folder()
    parser.add_argument(
        "--file",
        type=Path,
        default=shared and shared / FILE,
        required=shared is None,
        help=f"recorded verdicts (default: {FILE} in the folder that ADJUDGE_SHARED names)",
    )
    options = parser.parse_args()
    if not options.file.is_file():
        print(f"{options.file}: no such file; pass --file or set ADJUDGE_SHARED", file=sys.stderr)
        return 2
    rows = asyncio.run(judge_all(options.file))
    splits = {
        "all": rows,
        "tuned on": [row for row in rows if row.task in TUNED_ON],
        "held out": [row for row in rows if row.task not in TUNED_ON],
    }
    results = [summary(name, split) for name, split in splits.items()]
    if options.json:
        print(json.dumps(results, indent=1))
    else:
        for result in results:
            print_summary(result)
    return 0


async def judge_all(file: Path) -> list[Row]:
    """Every recorded pair with the lexical judge's verdict."""
    judge = LexicalJudge()
    return [
        row
        for task, page, facts, verdicts in recorded(file)
        for row in await judged(judge, task, page, facts, verdicts)
    ]


async def judged(
    judge: LexicalJudge, task: int, page: Page, facts: Sequence[str], verdicts: Sequence[str]
) -> list[Row]:
    """One page's statements as FACT asks about them."""
    rows = []
    for start in range(0, len(facts), BATCH):
        batch = tuple(facts[start : start + BATCH])
        question: Question[Any] = Backed(context=excerpt(page, batch), statements=batch)
        reply = await judge.answer(question, Asked(key=bytes(16)))
        items = (
            ["unknown"] * len(batch)
            if reply.answer is None
            else [reply.answer.items[key] for key in numbered(len(batch))]
        )
        rows += [Row(task, *pair) for pair in zip(verdicts[start : start + BATCH], items, strict=True)]
    return rows


def recorded(file: Path) -> Iterator[tuple[int, Page, list[str], list[str]]]:
    """Task, page, statements and verdicts, page by page."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            for url, found in row["citations_deduped"].items():
                page = Page(
                    url=url,
                    final_url=url,
                    status="read",
                    reason=None,
                    fetched_at=0.0,
                    content_type="text/html",
                    sha256="",
                    title="",
                    description="",
                    text=found["url_content"],
                )
                yield (
                    row["id"],
                    page,
                    found["facts"],
                    [verdict["result"] for verdict in found["validate_res"]],
                )


def summary(name: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Agreement over all three classes, and over the pairs recorded as supported or unsupported."""
    decided = [row for row in rows if row.recorded != "unknown"]
    return {
        "name": name,
        "pairs": len(rows),
        "confusion": {
            recorded: {
                lexical: sum((r.recorded, r.lexical) == (recorded, lexical) for r in rows)
                for lexical in CLASSES
            }
            for recorded in CLASSES
        },
        "three_classes": agreement(rows),
        "supported_or_not": agreement(decided),
    }


def agreement(rows: Sequence[Row]) -> dict[str, float]:
    """n, accuracy, the accuracy of always saying the most frequent class, and Cohen's kappa."""
    table = np.zeros((len(CLASSES), len(CLASSES)))
    for row in rows:
        table[CLASSES.index(row.recorded), CLASSES.index(row.lexical)] += 1
    table /= len(rows)
    observed, chance = float(np.trace(table)), float(table.sum(0) @ table.sum(1))
    return {
        "n": len(rows),
        "accuracy": observed,
        "majority": float(table.sum(1).max()),
        "kappa": (observed - chance) / (1 - chance),
    }


def print_summary(result: dict[str, Any]) -> None:
    print(f"{result['name']}: {result['pairs']} pairs (rows recorded, columns lexical)")
    print("".join(f"{text:>13}" for text in ("", *CLASSES)))
    for recorded, counts in result["confusion"].items():
        print("".join(f"{text:>13}" for text in (recorded, *counts.values())))
    for kind in ("three_classes", "supported_or_not"):
        found = result[kind]
        print(
            f"  {kind}: n {found['n']}, accuracy {found['accuracy']:.3f} "
            f"(most frequent class {found['majority']:.3f}), kappa {found['kappa']:.3f}"
        )


if __name__ == "__main__":
    sys.exit(main())
