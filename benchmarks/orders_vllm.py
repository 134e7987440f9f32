"""The orders of texts and of work before a real vLLM: prompt tokens computed, and judgments a second by protocol.

    python -m benchmarks.orders_vllm [--quick] [--json] [--only WORDS] [--gpu]

Run with the Python of a vLLM environment (make test-vllm creates one). Rows `leaderboard ...` and `groups ...` give the
prompts of `benchmarks.orders` to vLLM, in the same orders and with shorter reports, for one token each: the tokens per
report that vLLM says it computed, beside those that the simulated cache of that benchmark would compute of the same
prompts. Rows `rate ...` ask a `VLLMJudge` the questions of one protocol, answers and all, beside vLLM's `LLM.chat` with
the same prompts, with a cold cache that holds all of them: new reports of one new task in each run. Under each stands
the share of the judge's prompt tokens that came from the cache.

The model has random weights: a tiny one on the CPU; with `--gpu` one of 7B shapes in bf16, reports of 10,000 tokens,
and the rows, with the accelerator's memory in use, also go to benchmarks/results/orders_gpu.json.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from adjudge.judges import Context, Question, Usage
from adjudge.scoring.deepresearch_bench.fact_questions import Backed
from benchmarks.orders import WORDS, WORKLOADS, PrefixCache, Workload, asked, orders, text
from benchmarks.prefix import CPU, GPU, Pair, Setting, pair_of, run
from benchmarks.timing import Row, alone, compare

Peer = tuple[str, Callable[[Sequence[Question[Any]]], object]]
PAGES, STATEMENTS = 5, 4


class Sizes(msgspec.Struct, frozen=True):
    """Characters of a report, tokens of a small cache, and reports of a run whose rate is taken."""

    chars: int
    small: int
    reports: int
    setting: Setting


ON_CPU = Sizes(5_000, 18_000, 4, msgspec.structs.replace(CPU, window=16_384))
ON_GPU = Sizes(40_000, 40_000, 12, GPU)

Work = Callable[[Sizes, int], list[Question[Any]]]
"""The questions about a task by its number, all of them new."""


def computed(llm: Any, prompts: Sequence[str]) -> tuple[int, list[tuple[int, ...]]]:
    """The tokens of `prompts` that the engine computes, from an empty cache, and the tokens of each prompt."""
    from vllm import SamplingParams

    assert llm.reset_prefix_cache()
    found = llm.generate(list(prompts), SamplingParams(max_tokens=1, temperature=0.0), use_tqdm=False)
    tokens = [tuple(one.prompt_token_ids) for one in found]
    return sum(map(len, tokens)) - sum(one.num_cached_tokens for one in found), tokens


def simulated(prompts: Iterable[Sequence[int]], room: int, block: int) -> int:
    """The tokens that a cache of `room` would compute, prompt after prompt."""
    cache = PrefixCache(room, block)
    return sum(map(cache.computed, prompts))


def tokens_of(sizes: Sizes, size: str, quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Each order of each workload, one task of it."""
    from vllm import LLM

    named = [
        (f"{workload.name}: {order}, {size} cache", workload, prompts)
        for workload in (WORKLOADS[1:] if quick else WORKLOADS)
        for order, prompts in orders(msgspec.structs.replace(workload, tasks=1), sizes.chars).items()
    ]
    chosen = [one for one in named if wanted(one[0])]
    if not chosen:
        return
    setting = sizes.setting
    options = dict(setting.engine)
    if size == "small":
        options["num_gpu_blocks_override"] = math.ceil(sizes.small / setting.block)
    llm = LLM(str(setting.model()), max_model_len=setting.window, enable_prefix_caching=True, **options)
    try:
        room = llm.llm_engine.vllm_config.cache_config.num_gpu_blocks * setting.block
        for name, workload, prompts in chosen:
            ours, tokens = computed(llm, prompts)
            least = simulated(tokens, room, setting.block)
            n = workload.reports
            yield Row(name, ours / n, least / n, "simulated", least / ours, "tokens/report", n, 1)
    finally:
        llm.llm_engine.engine_core.shutdown()


def about(protocol: str, target_first: bool = True) -> Work:
    """The questions of one protocol about new reports of a new task."""

    def questions(sizes: Sizes, task: int) -> list[Question[Any]]:
        workload = Workload("", 1, sizes.reports)
        every = asked(workload, target_first=target_first, chars=sizes.chars, first=task)
        return [one.question for one in every if one.protocol == protocol]

    return questions


def of_pages(sizes: Sizes, task: int) -> list[Question[Any]]:
    """FACT's question about each page that a report cites: five pages per report, each as long as half a report."""
    return [
        Backed(
            context=Context.of(page=text(f"{task}.{number}", sizes.chars // 2)),
            statements=tuple(f"Statement {n}: {' '.join(WORDS)}." for n in range(STATEMENTS)),
        )
        for number in range(sizes.reports * PAGES)
    ]


WORKS: dict[str, Work] = {
    "rate of RACE, target first": about("race"),
    "rate of RACE, reference first": about("race", target_first=False),
    "rate of rubrics": about("rubrics"),
    "rate of FACT's extraction": about("fact"),
    "rate of FACT's pages": of_pages,
}
EXPECTED = "rate of rubrics, expected scores"


def rate(
    name: str, pair: Pair, sizes: Sizes, work: Work, quick: bool, expected: bool = False
) -> Iterator[Row]:
    """Judgments a second beside `LLM.chat`, or `expected` ones beside sampled ones; then the cache's share."""
    judge = pair.expecting() if expected else pair.judge
    usages: list[Usage] = []

    def questions() -> list[Question[Any]]:
        pair.salt += 1
        return work(sizes, pair.salt)

    def ours() -> None:
        usages[:] = [reply.usage for reply in pair.replies(questions(), judge)]

    peer: Peer = ("VLLMJudge, sampled", pair.replies) if expected else ("LLM.chat", pair.chat)
    n = len(questions())
    row = compare(name, ours, lambda: peer[1](questions()), peer_name=peer[0], n=n, quick=quick)
    yield msgspec.structs.replace(row, ours=n / row.ours, peer=n / (row.peer or 1), unit="judgments/s")
    sent, cached = sum(one.prompt_tokens for one in usages), sum(one.cached_tokens for one in usages)
    yield alone(f"{name}: prompt tokens from the cache", cached / sent, "of those sent", n=sent)


def rows(sizes: Sizes, quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Rates and what they took of the accelerator's memory, then tokens with a large and a small cache."""
    chosen = {name: work for name, work in WORKS.items() if wanted(name)}
    if chosen or wanted(EXPECTED):
        with pair_of(sizes.setting, math.inf) as pair:
            for name, work in chosen.items():
                yield from rate(name, pair, sizes, work, quick)
            if wanted(EXPECTED):
                yield from rate(EXPECTED, pair, sizes, WORKS["rate of rubrics"], quick, expected=True)
            yield from _memory()
    for size in ("large", "small"):
        yield from tokens_of(sizes, size, quick, wanted)


def _memory() -> Iterator[Row]:
    """What both engines hold of the accelerator: weights, caches and all else."""
    import torch

    if torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        yield alone("memory of both engines", (total - free) / 2**30, "GB")


if __name__ == "__main__":
    run(__doc__, partial(rows, ON_CPU), partial(rows, ON_GPU), "orders_gpu")
