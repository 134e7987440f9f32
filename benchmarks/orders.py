"""Prompt tokens that a judge computes for reports under RACE, rubrics and FACT, by the order of texts and of work.

    python -m benchmarks.orders [--quick] [--json] [--only WORDS]

Simulated: the prompts are those that the protocols' questions render to, and a prefix cache of one replica keeps their
blocks of 16 tokens, as vLLM does, evicting the longest unused; a token is taken to be four characters. Reports are of
10,000 tokens; of each, RACE asks once (24 criteria), rubrics 20 times, and FACT's extraction five times. A leaderboard
has tasks with 20 systems each, a training step prompts with eight rollouts each. `benchmarks.orders_vllm` gives the
same orders to a real vLLM.

A row has the tokens computed per report and, as its peer, the tokens sent. `target first` is the published order of
RACE, `reference first` its option. Work goes case by case, as the engine does it, or protocol by protocol. `one report,
one prefix` is what no prompt does yet: the report under one name and one mark before everything else, in each protocol.
"""

import random
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from adjudge.judges import Context, Question
from adjudge.judges.chat import messages
from adjudge.judges.schema import schema_of
from adjudge.prompts import PromptBook
from adjudge.scoring.deepresearch_bench.fact_questions import CitedBy
from adjudge.scoring.deepresearch_bench.race import PairMarks
from adjudge.scoring.rubrics.asking import RubricPoints
from benchmarks.timing import Row, main

TOKEN = 4  # characters
BLOCK_CHARS = 16 * TOKEN
REPORT_CHARS = 40_000
CRITERIA, RUBRICS, EXTRACTIONS = 24, 20, 5
BOOK, SECRET = PromptBook(), b"benchmark"
WORDS = (
    "the of and to in city bike parcel depot van street rate cost year study share found rose fell by".split()
)
LARGE, SMALL = 800_000, 40_000
"""Tokens that a cache holds: of a 7B model on a GPU of 80 GB, or hardly more than a few prompts."""


class Workload(msgspec.Struct, frozen=True):
    """`tasks` tasks with `reports` reports each."""

    name: str
    tasks: int
    reports: int


WORKLOADS = (Workload("leaderboard, 20 systems", 3, 20), Workload("groups of 8 rollouts", 8, 8))


class Asked(msgspec.Struct, frozen=True):
    """One question and its prompt: of which protocol, task and report, and the report's text."""

    protocol: str
    task: int
    report: str
    question: Question[Any]
    prompt: str


class PrefixCache:
    """Blocks of `block` units by all that stands before them, `room` units in all; the longest unused goes first.

    Of one prompt, the last block goes first. A unit is a character or a token.
    """

    def __init__(self, room: int, block: int) -> None:
        self._room = room // block
        self._block = block
        self._blocks: OrderedDict[int, None] = OrderedDict()

    def computed(self, prompt: Sequence[object]) -> int:
        """The units of `prompt` that are not cached, of which there is always one; afterwards its whole blocks are."""
        before, keys, cached, block = 0, [], 0, self._block
        for start in range(0, len(prompt) - block + 1, block):
            before = hash((before, prompt[start : start + block]))
            is_last = start + block == len(prompt)
            cached += before in self._blocks and cached == len(keys) and not is_last
            keys.append(before)
        for key in reversed(keys):
            self._blocks[key] = None
            self._blocks.move_to_end(key)
        while len(self._blocks) > self._room:
            self._blocks.popitem(last=False)
        return len(prompt) - cached * block


def text(seed: str, chars: int) -> str:
    """A text of that length that no other seed gives."""
    draw = random.Random(seed)
    words = draw.choices(WORDS, k=chars // 4)
    return f"Text {seed}. {' '.join(words)}"[:chars]


def prompt_of(question: Question[Any]) -> str:
    """All that the question shows the judge."""
    return "\n".join(
        message["content"] for message in messages(question, BOOK, schema_of(question, True), SECRET)
    )


def asked(
    workload: Workload, *, target_first: bool, chars: int = REPORT_CHARS, first: int = 0
) -> Iterator[Asked]:
    """Every question of `workload` with reports of `chars`, case by case; its tasks have numbers from `first` on."""
    for task in range(first, first + workload.tasks):
        prompt, reference = (
            f"Task {task}: " + "What do bikes cost a city? " * 12,
            text(f"reference {task}", chars),
        )
        criteria = tuple(f"Criterion {n} of task {task}: {' '.join(WORDS)}." for n in range(CRITERIA))
        for number in range(workload.reports):
            report = text(f"{task}.{number}", chars)
            a, b = (report, reference) if target_first else (reference, report)
            pair = PairMarks(context=Context.of(task=prompt, article_a=a), criteria=criteria, article_b=b)
            alone = Context.of(report=report)
            points = (
                RubricPoints(context=alone, task=prompt, criterion=one, values=(0.0, 1.0))
                for one in criteria[:RUBRICS]
            )
            listed = Context.of(
                report=report, sources="\n".join(f"{n}: https://a.example" for n in range(30))
            )
            size = len(report) // EXTRACTIONS // 10
            cited = (
                CitedBy(context=listed, sentences=(report[n * size : (n + 1) * size],))
                for n in range(EXTRACTIONS)
            )
            for protocol, questions in (("race", (pair,)), ("rubrics", points), ("fact", cited)):
                for question in questions:
                    yield Asked(protocol, task, report, question, prompt_of(question))


def by_protocol(prompts: Iterable[Asked]) -> list[Asked]:
    """All reports under one protocol, then all under the next."""
    return sorted(prompts, key=lambda one: one.protocol)


def one_prefix(prompts: Iterable[Asked]) -> Iterator[Asked]:
    """The report before all else, and not where it was: prompts as long as before, with one shared prefix."""
    for one in prompts:
        yield msgspec.structs.replace(one, prompt=one.report + one.prompt.replace(one.report, "", 1))


def orders(workload: Workload, chars: int = REPORT_CHARS) -> dict[str, list[str]]:
    """The prompts of `workload` in each order, by its name."""
    target, reference = (list(asked(workload, target_first=first, chars=chars)) for first in (True, False))
    found = {
        "RACE, target first": [one for one in target if one.protocol == "race"],
        "RACE, reference first": [one for one in reference if one.protocol == "race"],
        "three protocols, target first, case by case": target,
        "three protocols, reference first, case by case": reference,
        "three protocols, target first, protocol by protocol": by_protocol(target),
        "three protocols, one report, one prefix, case by case": [*one_prefix(target)],
        "three protocols, one report, one prefix, protocol by protocol": by_protocol(one_prefix(target)),
    }
    return {name: [one.prompt for one in prompts] for name, prompts in found.items()}


def row(name: str, prompts: Sequence[str], reports: int, tokens: int) -> Row:
    """Tokens computed per report with a cache of `tokens`, beside those sent."""
    cache = PrefixCache(tokens * TOKEN, BLOCK_CHARS)
    computed = sum(map(cache.computed, prompts)) / TOKEN / reports
    sent = sum(map(len, prompts)) / TOKEN / reports
    return Row(name, computed, sent, "tokens sent", sent / computed, "tokens/report", reports, 1)


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """For RACE alone and for three protocols: each order, with a cache that holds all of a task, and a small one."""
    for workload in WORKLOADS:
        sized = msgspec.structs.replace(workload, tasks=1 if quick else workload.tasks)
        for order, prompts in orders(sized).items():
            for size, tokens in (("large", LARGE), ("small", SMALL)):
                name = f"{workload.name}: {order}, {size} cache"
                if wanted(name):
                    yield row(name, prompts, sized.tasks * sized.reports, tokens)


if __name__ == "__main__":
    main(__doc__, rows)
