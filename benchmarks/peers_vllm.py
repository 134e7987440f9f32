"""The judging peers with a real vLLM instead of the mock. The model takes most of the time, so ratios are near 1.

    python -m benchmarks.peers_vllm [--quick] [--json] [--only WORDS]

Run with the Python of a vLLM environment (make test-vllm creates one); needs `make peers` too. The model is a tiny one
with random weights, constrained to each question's schema. Client CPU excludes the server. deepeval is left out: such a
model writes each of deepeval's lists of texts to the maximum length, the lists do not fit the window, and nearly all
calls fail.
"""

from collections.abc import Callable, Iterator

from adjudge.engine.evaluation.memory import rare_collections
from benchmarks.peers import beside_judges
from benchmarks.timing import QUICK_RUNS, RUNS, Row, main
from tests.local_vllm import server


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Every peer that judges, the sides alternating within each."""
    with rare_collections(), server("--served-model-name", "mock", "--max-model-len", "4096") as served:
        yield from beside_judges(
            served.url,
            40 if quick else 200,
            QUICK_RUNS if quick else RUNS,
            lambda name: "deepeval" not in name and wanted(name),
        )


if __name__ == "__main__":
    main(__doc__, rows)
