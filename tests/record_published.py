"""`python -m tests.record_published [NAME...]`: record anew what the benchmarks' own code asks and finds on made data.

ADJUDGE_REFERENCE names the folder with their code (`tests.shared_data`). The code runs with the prompts of
`golden/published/checkouts` in place of its own, before a judge whose replies are drawn from the request; digests of
the requests and the numbers are kept in `golden/published/`. Nothing of others' texts is.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from adjudge.scoring.rubrics.liveresearchbench import problem_score
from tests import reference_dr3 as dr3
from tests import reference_livedr as livedr
from tests import reference_race as race
from tests.drawn_replies import criteria_judge, fact_judge, race_judge
from tests.grafting import grafted_code, made_checkout
from tests.recorded import Recording, digest, recording, write
from tests.reference_bench import DIMENSIONS, rows
from tests.reference_graders import (
    SEEDS,
    SHARES,
    cited_tasks,
    drawn_failures,
    drawn_rewards,
    graded_by_code,
    lose_pages,
    lost_pages,
    rewards_by_code,
    statistics_by_code,
)
from tests.reference_papers import write_json
from tests.shared_data import reference_folder

READ = 500
"""How many replies, or pairs of titles and the like, are drawn to be read."""


def in_tens(values: Sequence[Any]) -> list[str]:
    """The digests of every ten values that follow each other."""
    return [digest(values[start : start + 10]) for start in range(0, len(values), 10)]


def without_texts(figures: dict[str, Any]) -> dict[str, Any]:
    """The figures with digests in place of texts."""
    return {name: digest(value) if isinstance(value, str) else value for name, value in figures.items()}


async def race_scores(language: str, folder: Path, own: bool) -> Recording:
    """Reports cleaned, marked and weighed, in one language."""
    bench = race.made_bench_folder(folder, made_checkout if own else grafted_code, [language])
    async with race_judge(bench) as judge:
        if own:
            figures, _ = await race.race_by_us(bench, folder, judge, race.MADE_SYSTEMS)
        else:
            figures, _ = await race.race_by_code(bench, judge, race.MADE_SYSTEMS)
    return recording(without_texts(figures), judge.requests)


async def race_criteria(folder: Path, own: bool) -> Recording:
    """Weights and criteria made for tasks without them."""
    bench = race.made_bench_folder(folder, made_checkout if own else grafted_code, ["en", "zh"])
    async with criteria_judge(bench) as judge:
        if own:
            found = await race.criteria_by_us(bench, judge)
        else:
            found, _ = await race.criteria_by_code(bench, judge)
    return recording({task: digest(made) for task, made in found.items()}, judge.requests)


async def race_marks(folder: Path, own: bool) -> Recording:
    """Replies with marks, of two reports or of one, most of them damaged."""
    bench = race.made_bench_folder(folder, made_checkout if own else grafted_code, ["en"])
    gold = rows(bench / "data/criteria_data/criteria.jsonl")[0]
    figures: dict[str, Any] = {}
    for pair in (True, False):
        replies = race.drawn_marks(gold, READ, pair)
        if own:
            found = race.marks_by_us(gold, replies, alone=not pair)
        else:
            found = await race.marks_by_code(bench, gold, replies)
        if not pair:  # the code has no share of a report alone
            found = [one and one[1 : 1 + len(DIMENSIONS)] for one in found]
        name = "pairs" if pair else "alone"
        figures |= {f"{name} drawn": digest(replies), name: in_tens(found)}
    return recording(figures)


async def fact(folder: Path, own: bool) -> Recording:
    """Citations extracted, told apart and verified, in both languages."""
    bench = race.made_bench_folder(folder, made_checkout if own else grafted_code, ["en", "zh"])
    async with race.made_scraper() as scraper, fact_judge(bench, list(race.ADDRESSES)) as judge:
        if own:
            figures, _ = await race.fact_by_us(
                bench,
                folder,
                judge,
                race.MADE_SYSTEMS,
                {"mode": "off"},
                scraped=str(race.made_scrapes(bench)),
            )
        else:
            figures, _ = await race.fact_by_code(bench, judge, race.MADE_SYSTEMS, scraper)
    return recording(without_texts(figures), race.asked_of_pages(judge.requests))


async def fact_stat(folder: Path, own: bool) -> Recording:
    """FACT's statistics over made tasks, some of whose pages were not read."""
    found: dict[str, Any] = {}
    for share in SHARES:
        for seed in SEEDS:
            tasks = cited_tasks()
            lose_pages(tasks, lost_pages(tasks, share, seed))
            found[f"{share} {seed}"] = statistics_by_code(tasks, folder)
    return recording(found)


async def dr3_scores(folder: Path, own: bool) -> Recording:
    """Reports of two models on two tasks, by all five metrics."""
    repo = dr3.with_long_sources(dr3.dr3_folder(folder, made_checkout if own else grafted_code))
    async with dr3.dr3_judge(repo) as judge:
        if own:
            figures, _ = await dr3.scored_by_us(repo, folder, judge)
        else:
            figures, _ = await dr3.scored_by_code(repo, judge)
    return recording(figures, judge.requests)


async def dr3_read(folder: Path, own: bool) -> Recording:
    """The folder of a data set, replies, citations and titles, as they are read."""
    repo = dr3.dr3_folder(folder, made_checkout if own else grafted_code)
    replies, facts, titles = dr3.drawn_replies(READ), dr3.drawn_facts(READ), dr3.drawn_titles(READ)
    if own:
        laid_out = dr3.folder_by_us(repo)
        read, told, same = dr3.read_by_us(replies), dr3.facts_by_us(facts), dr3.titles_by_us(titles)
    else:
        laid_out = await dr3.folder_by_code(repo)
        read, told = await dr3.read_by_code(repo, replies), await dr3.facts_by_code(repo, facts)
        same = await dr3.titles_by_code(repo, titles)
    parts = {"replies": read[0], "depth": read[1], **told, "same titles": same[0], "cited titles": same[1]}
    figures: dict[str, Any] = {"inputs": digest([replies, facts, titles])}
    figures |= {f"folder {name}": digest(value) for name, value in laid_out.items()}
    return recording(figures | {name: in_tens(each) for name, each in parts.items()})


async def livedr_scores(folder: Path, own: bool) -> Recording:
    """Answers to questions of all categories."""
    questions = livedr.livedr_rows()
    repo = livedr.livedr_folder(folder, questions, made_checkout if own else grafted_code)
    answers = folder / "tern.json"
    write_json(answers, livedr.predictions(questions))
    async with livedr.livedr_judge(repo) as judge:
        if own:
            figures, _ = await livedr.scored_by_us(repo, folder, judge, answers)
            asked = judge.requests
        else:
            figures, _ = await livedr.scored_by_code(repo, judge, answers)
            asked = livedr.asked_once(repo, judge.requests)
    return recording(figures, asked)


async def livedr_gold(folder: Path, own: bool) -> Recording:
    """The gold of enciphered questions."""
    questions = livedr.livedr_rows()
    repo = livedr.livedr_folder(folder, questions, made_checkout if own else grafted_code)
    write_json(folder / "tern.json", [{"key": row["key"], "preds": []} for row in questions])
    found = livedr.truths_by_us(repo, folder / "tern.json") if own else await livedr.truths_by_code(repo)
    return recording({key: digest(truth) for key, truth in found.items()})


async def rler(rows: Callable[[], list[Any]], folder: Path, own: bool) -> Recording:
    """DR Tulu's reward of drawn scores."""
    drawn = rows()
    return recording({"inputs": digest(drawn), "rewards": rewards_by_code(drawn)})


async def liveresearchbench(folder: Path, own: bool) -> Recording:
    """LiveResearchBench's tables and grades."""
    return recording(graded_by_code({count: round(100 * problem_score(count)) for count in range(41)}))


Case = Callable[[Path, bool], Awaitable[Recording]]

CALLS: dict[str, Case] = {
    "race_en": partial(race_scores, "en"),
    "race_zh": partial(race_scores, "zh"),
    "race_criteria": race_criteria,
    "race_marks": race_marks,
    "fact": fact,
    "dr3": dr3_scores,
    "dr3_read": dr3_read,
    "livedr": livedr_scores,
    "livedr_gold": livedr_gold,
}
"""What the code and ours are both run on: the case in a folder, by us if `own`, else by the code."""
NUMBERS: dict[str, Case] = {
    "fact_stat": fact_stat,
    "rler": partial(rler, drawn_rewards),
    "rler_failed": partial(rler, drawn_failures),
    "liveresearchbench": liveresearchbench,
}
"""What the code alone is run on here; the tests of the protocols hold ours against it."""


def by_code(name: str) -> Recording:
    """What the benchmark's own code asks and finds."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run((CALLS | NUMBERS)[name](Path(folder), False))


def main() -> int:
    """Record the cases of the command line, or all."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.record_published", description=__doc__.split("\n")[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(CALLS | NUMBERS)}")
    names = parser.parse_args().names or [*CALLS, *NUMBERS]
    unknown = [name for name in names if name not in CALLS | NUMBERS]
    if unknown or reference_folder() is None:
        why = (
            f"no case {unknown[0]}"
            if unknown
            else "ADJUDGE_REFERENCE is unset: set it to the folder of their code"
        )
        sys.stderr.write(f"{why}\n")
        return 2
    for name in names:
        print(write(name, by_code(name)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
