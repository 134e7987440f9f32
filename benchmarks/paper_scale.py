"""An estimate of 1,000 systems x 1,000 tasks under all protocols on 64 and on 512 GPUs; not a measurement.

    python -m benchmarks.paper_scale

The estimate combines kept results, the routing simulation, and ASSUMED.
"""

import sys
from collections.abc import Iterator, Sequence

import msgspec

from benchmarks.kept import Result
from benchmarks.kept import load as load_kept
from benchmarks.routing import BATCH, DECODE_SECONDS, PREFILL, WORKLOADS, ours, simulate

CASES = 1_000 * 1_000
FLEETS = (64, 512)
REPORT, PAGE = 10_000, 3_000
ANSWER_RATE = BATCH * 100 / DECODE_SECONDS  # tokens a second and replica
SIMULATED_CONTEXTS = 20  # a replica: enough to fill its cache twice
CORES_A_GPU = 12
CORES = 2  # of the machine of the kept results
ASSUMED = f"""\
Assumed: reports of {REPORT:,} tokens and pages of {PAGE:,}; questions per report as in the papers (4 x 6 criteria, 30
cited pages, 8 + 48 rubrics, 20 sources); one replica per GPU, which computes {PREFILL:,.0f} prompt tokens or
{ANSWER_RATE:,.0f} answer tokens per second, one after the other (a pessimistic assumption); no judge waits for pages.
Measured: CPU time per question and per page, bytes per stored judgment. Simulated, with the engine's own routing: the
prompt tokens computed again because not all contexts fit the caches."""


class Ask(msgspec.Struct, frozen=True):
    """`questions` about each of `contexts` texts of `tokens`; `own` prompt and `answer` tokens per question."""

    contexts: int
    questions: int
    tokens: int
    own: int
    answer: int


SHAPES: dict[str, tuple[Ask, ...]] = {
    "race": (Ask(1, 1, 2 * REPORT, 1_500, 1_700),),
    "fact": (Ask(1, 1, REPORT, 300, 3_000), Ask(30, 1, PAGE, 200, 60), Ask(10, 1, 0, 300, 20)),
    "rigorous": (Ask(1, 56, REPORT, 100, 60), Ask(1, 2, REPORT, 200, 60)),
    "livedr": (Ask(1, 1, REPORT, 300, 600), Ask(10, 1, 0, 300, 20)),
    "dr3": (Ask(1, 5, REPORT, 400, 300), Ask(20, 1, 700, 200, 60)),
    "drmi": (Ask(1, 1, REPORT, 800, 300), Ask(8, 1, 0, 500, 20)),
}


class Load(msgspec.Struct, frozen=True):
    """The load of CASES reports under a protocol: questions, prompt tokens, answer tokens, pages to read."""

    questions: float
    shared: float
    own: float
    answers: float
    pages: float


def load(shape: tuple[Ask, ...]) -> Load:
    """The load of `shape` if each context is computed once."""
    return Load(
        questions=CASES * sum(ask.contexts * ask.questions for ask in shape),
        shared=CASES * sum(ask.contexts * ask.tokens for ask in shape),
        own=CASES * sum(ask.contexts * ask.questions * ask.own for ask in shape),
        answers=CASES * sum(ask.contexts * ask.questions * ask.answer for ask in shape),
        pages=CASES * sum(ask.contexts for ask in shape if ask.tokens == PAGE),
    )


def recomputed(replicas: int) -> float:
    """Prompt tokens computed over the minimum; the worse of the two workloads that share contexts."""
    sharing = (msgspec.structs.replace(one, contexts=SIMULATED_CONTEXTS) for one in WORKLOADS[:2])
    return max(simulate(one, replicas, ours(replicas)).recomputed for one in sharing)


def seconds(load: Load, fleet: int, again: float) -> float:
    """The seconds that `fleet` replicas take if they compute shared tokens `again` times."""
    return ((load.shared * again + load.own) / PREFILL + load.answers / ANSWER_RATE) / fleet


def measured(results: Sequence[Result], benchmark: str, words: str) -> tuple[float, int]:
    """The value and n of the first row of `benchmark` with `words` in its name. Raises LookupError."""
    for one in results:
        for row in one.rows:
            if one.benchmark == benchmark and words in row.name:
                return row.ours, row.n
    raise LookupError(f"{benchmark}: no row named {words!r} in the kept results; run the benchmark")


def lines(results: Sequence[Result]) -> Iterator[str]:
    """The estimate from the kept results, as Markdown. Raises LookupError if a needed row is missing."""
    yield ASSUMED
    yield ""
    loads = {name: load(shape) for name, shape in SHAPES.items()}
    again = {fleet: recomputed(fleet) for fleet in FLEETS}
    question_ms, _ = measured(results, "orchestration", "CPU a question: ours, with store")
    page_s, pages = measured(results, "fetch", "pages, trafilatura")
    disk_mb, rows = measured(results, "store", "on disk")
    page_core_s = page_s / pages * CORES
    heads = "".join(f" hours on {fleet} GPUs |" for fleet in FLEETS)
    yield f"| protocol | questions | prompt tokens | answer tokens | pages | CPU hours |{heads} GB stored |"
    yield "|---|" + "---:|" * (6 + len(FLEETS))
    total = Load(*(sum(part) for part in zip(*map(msgspec.structs.astuple, loads.values()), strict=True)))
    for name, one in {**loads, "all": total}.items():
        hours = [seconds(one, fleet, again[fleet]) / 3600 for fleet in FLEETS]
        cpu = (one.questions * question_ms / 1e3 + one.pages * page_core_s) / 3600
        gigabytes = one.questions * disk_mb / rows / 1e3
        cells = [
            name,
            f"{one.questions / 1e6:,.0f} M",
            f"{(one.shared + one.own) / 1e9:,.0f} G",
            f"{one.answers / 1e9:,.1f} G",
            f"{one.pages / 1e6:,.0f} M",
            f"{cpu:,.0f}",
            *(f"{found:,.0f}" for found in hours),
            f"{gigabytes:,.0f}",
        ]
        yield "| " + " | ".join(cells) + " |"
    yield ""
    for fleet in FLEETS:
        rate = total.questions / seconds(total, fleet, again[fleet])
        yield (
            f"{fleet} replicas: {again[fleet]:.3f} x the minimum of prompt tokens (simulated); {rate:,.0f} questions "
            f"per second; orchestration takes {rate * question_ms / 1e3:.1f} cores of {fleet * CORES_A_GPU:,}."
        )


if __name__ == "__main__":
    sys.stdout.write("\n".join(lines(load_kept())) + "\n")
