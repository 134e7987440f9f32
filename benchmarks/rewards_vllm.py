"""Rewards from a real vLLM whose prefix cache holds two of the eight reports in question.

    python -m benchmarks.rewards_vllm [--quick] [--json] [--only WORDS]

Run with the Python of a vLLM environment (make test-vllm creates one). Our side and the peers of benchmarks.rewards
send at most 16 questions at once to a server of a tiny random model; the one-by-one peer scores a single rollout, and
is compared with ours on that rollout.
"""

from collections.abc import Callable, Iterator

from adjudge.engine.evaluation.memory import rare_collections
from benchmarks.rewards import ROLLOUTS, as_batch, naive_asyncio, one_by_one, working
from benchmarks.timing import Row, compare, main
from tests.local_vllm import server

LIMIT = 16
REPORT_WORDS = 4_500
# Blocks of 128 tokens: two reports of about 6,000 tokens and what runs beside them.
SERVER = ("--max-model-len", "8192", "--num-gpu-blocks-override", "120", "--dtype", "bfloat16")


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """A batch of eight rollouts beside one coroutine per rollout, and one rollout beside a plain loop."""
    rubrics = 6 if quick else 16
    with rare_collections(), server(*SERVER) as served:
        judge = {"url": served.url, "model": "judge", "max_in_flight": LIMIT, "timeout_s": 3600}
        for at_once, how in ((False, "rubrics in turn"), (True, "rubrics at once")):
            name = f"cache of 2 of 8 reports, {ROLLOUTS} x {rubrics} rubrics, beside {how}"
            if wanted(name):
                with working(judge, 1, ROLLOUTS, rubrics, REPORT_WORDS) as work:
                    yield compare(
                        name,
                        lambda: as_batch(work),
                        lambda at_once=at_once: naive_asyncio(served.url, work.requests(), LIMIT, at_once),  # type: ignore[misc]
                        peer_name=f"naive asyncio, {how} (b)",
                        n=work.calls,
                        quick=quick,
                    )
        name = f"1 x {rubrics} rubrics, beside one by one"
        if wanted(name):
            with working(judge, 1, 1, rubrics, REPORT_WORDS) as work:
                yield compare(
                    name,
                    lambda: as_batch(work),
                    lambda: one_by_one(served.url, work.requests()),
                    peer_name="one by one (a)",
                    n=work.calls,
                    quick=quick,
                )


if __name__ == "__main__":
    main(__doc__, rows)
