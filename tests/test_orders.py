"""The simulated prefix cache behind the figures on orders of texts and of work."""

from benchmarks.orders import BLOCK_CHARS, Workload, asked, by_protocol, one_prefix, row
from benchmarks.orders import PrefixCache as Cache

HEAD, TAIL = "a" * BLOCK_CHARS, "b" * BLOCK_CHARS


def test_shared_blocks_are_computed_once() -> None:
    cache = Cache(tokens=160)
    assert [cache.computed(HEAD + TAIL), cache.computed(HEAD + "c" * BLOCK_CHARS)] == [32, 16]
    assert cache.computed(TAIL + HEAD) == 32, "a block counts with all that stands before it"


def test_longest_unused_blocks_are_evicted_last_block_first() -> None:
    cache = Cache(tokens=32)
    cache.computed(HEAD + TAIL)
    cache.computed("c" * BLOCK_CHARS)
    assert cache.computed(HEAD + TAIL) == 16


def test_orders_share_what_their_prompts_share() -> None:
    small = Workload("small", tasks=2, reports=4)
    target, reference = (list(asked(small, target_first=first)) for first in (True, False))
    assert sorted(one.prompt for one in by_protocol(target)) == sorted(one.prompt for one in target)
    race = [[one for one in side if one.protocol == "race"] for side in (target, reference)]
    shared = [row("race", side, 8, 800_000).ratio or 0.0 for side in race]
    assert shared[0] < 1.1 < 1.4 < shared[1]
    today, together = row("today", target, 8, 800_000), row("together", [*one_prefix(target)], 8, 800_000)
    assert today.peer == together.peer and together.ours < 0.7 * today.ours
