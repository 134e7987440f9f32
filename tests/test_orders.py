"""The simulated prefix cache behind the figures on orders of texts and of work."""

from benchmarks.orders import PrefixCache as Cache
from benchmarks.orders import Workload, asked, by_protocol, one_prefix, orders, row

BLOCK = 8
HEAD, TAIL, OTHER = "a" * BLOCK, "b" * BLOCK, "c" * BLOCK


def test_shared_blocks_are_computed_once() -> None:
    cache = Cache(room=10 * BLOCK, block=BLOCK)
    assert [cache.computed(HEAD + TAIL), cache.computed(HEAD + OTHER)] == [2 * BLOCK, BLOCK]
    assert cache.computed(TAIL + HEAD) == 2 * BLOCK, "a block counts with all that stands before it"
    assert cache.computed(HEAD + TAIL) == BLOCK, "the last unit of a prompt is always computed"


def test_longest_unused_blocks_are_evicted_last_block_first() -> None:
    cache = Cache(room=2 * BLOCK, block=BLOCK)
    cache.computed(HEAD + TAIL)
    cache.computed(OTHER)
    assert cache.computed(HEAD + TAIL + "d") == BLOCK + 1


def test_orders_share_what_their_prompts_share() -> None:
    small = Workload("small", tasks=2, reports=4)
    target = list(asked(small, target_first=True))
    assert sorted(one.prompt for one in by_protocol(target)) == sorted(one.prompt for one in target)
    prompts = orders(small)
    target_first, reference_first, today, *_ = prompts.values()
    shared = [row("race", side, 8, 800_000).ratio or 0.0 for side in (target_first, reference_first)]
    assert shared[0] < 1.1 < 1.4 < shared[1]
    together = [one.prompt for one in one_prefix(target)]
    separate, joined = row("today", today, 8, 800_000), row("together", together, 8, 800_000)
    assert separate.peer == joined.peer and joined.ours < 0.7 * separate.ours
