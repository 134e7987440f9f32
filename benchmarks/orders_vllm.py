"""The orders of texts and of work before a real vLLM: prompt tokens computed, and judgments a second by protocol.

    python -m benchmarks.orders_vllm [--quick] [--json] [--only WORDS] [--gpu]

Run with the Python of a vLLM environment (make test-vllm creates one). Rows `leaderboard ...` and `groups ...` give the
prompts of `benchmarks.orders` to vLLM, in the same orders and with shorter reports, for one token each: the tokens per
report that vLLM says it computed, beside those that the simulated cache of that benchmark would compute of the same
prompts. Rows `rate ...` ask a `VLLMJudge` the questions of one protocol, answers and all, beside vLLM's `LLM.chat` with
the same prompts, with a cold cache that holds all of them: new reports in each run.

The model has random weights: a tiny one on the CPU; with `--gpu` one of 7B shapes in bf16, reports of 10,000 tokens,
and the rows, with the accelerator's memory in use, also go to benchmarks/results/orders_gpu.json.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from adjudge.judges import Question
from benchmarks.orders import WORKLOADS, PrefixCache, Workload, asked, orders
from benchmarks.prefix import CPU, GPU, Pair, Setting, pair_of, run
from benchmarks.timing import Row, alone, compare

Peer = tuple[str, Callable[[Sequence[Question[Any]]], object]]


class Sizes(msgspec.Struct, frozen=True):
    """Characters of a report, tokens of a small cache, and reports of a run whose rate is taken."""

    chars: int
    small: int
    reports: int
    setting: Setting


ON_CPU = Sizes(5_000, 18_000, 4, msgspec.structs.replace(CPU, window=16_384))
ON_GPU = Sizes(40_000, 40_000, 64, GPU)


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


def rate(
    name: str,
    pair: Pair,
    sizes: Sizes,
    quick: bool,
    protocol: str,
    target_first: bool = True,
    expected: bool = False,
) -> Row:
    """Judgments a second of one protocol beside `LLM.chat`; `expected` ones beside sampled ones."""
    workload = Workload("", 1, sizes.reports)

    def questions() -> list[Question[Any]]:
        """About new reports of a new task."""
        pair.salt += 1
        every = asked(workload, target_first=target_first, chars=sizes.chars, first=pair.salt)
        return [one.question for one in every if one.protocol == protocol]

    judge = pair.expecting() if expected else pair.judge
    peer: Peer = ("VLLMJudge, sampled", pair.replies) if expected else ("LLM.chat", pair.chat)
    n = len(questions())
    row = compare(
        name,
        lambda: pair.replies(questions(), judge),
        lambda: peer[1](questions()),
        peer_name=peer[0],
        n=n,
        quick=quick,
    )
    return msgspec.structs.replace(row, ours=n / row.ours, peer=n / (row.peer or 1), unit="judgments/s")


def rows(sizes: Sizes, quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Tokens with a large and a small cache, then rates and what they took of the accelerator's memory."""
    for size in ("large", "small"):
        yield from tokens_of(sizes, size, quick, wanted)
    rates: dict[str, dict[str, Any]] = {
        "rate of RACE, target first": {"protocol": "race"},
        "rate of RACE, reference first": {"protocol": "race", "target_first": False},
        "rate of rubrics": {"protocol": "rubrics"},
        "rate of rubrics, expected scores": {"protocol": "rubrics", "expected": True},
        "rate of FACT's extraction": {"protocol": "fact"},
    }
    chosen = {name: how for name, how in rates.items() if wanted(name)}
    if chosen:
        with pair_of(sizes.setting, math.inf) as pair:
            for name, how in chosen.items():
                yield rate(name, pair, sizes, quick, **how)
            yield from _memory()


def _memory() -> Iterator[Row]:
    """What both engines hold of the accelerator: weights, caches and all else."""
    import torch

    if torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        yield alone("memory of both engines", (total - free) / 2**30, "GB")


if __name__ == "__main__":
    run(__doc__, partial(rows, ON_CPU), partial(rows, ON_GPU), "orders_gpu")
