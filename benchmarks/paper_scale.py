"""An estimate of 1,000 systems x 1,000 tasks under all protocols on 64 and on 512 GPUs, and of a million rewards a day,
with what is in short supply first; not a measurement.

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
GPUS_A_NODE = 8
METRICS = 5  # score rows of a scorecard
ROLLOUTS, RUBRICS = 1_000_000, 20  # a day, and questions of each
DAY = 86_400.0
ASSUMED = f"""\
Assumed: reports of {REPORT:,} tokens and pages of {PAGE:,}; questions per report as in the papers (4 x 6 criteria, 30
cited pages, 8 + 48 rubrics, 20 sources); one replica per GPU, which computes {PREFILL:,.0f} prompt tokens or
{ANSWER_RATE:,.0f} answer tokens per second, one after the other (a pessimistic assumption; {PREFILL:,.0f} tokens of
a 7B model are 140 TFLOP, 45 % of what an A100 could do in a second); {CORES_A_GPU} cores per GPU, {GPUS_A_NODE} GPUs
and one store writer per node; no judge waits for pages.
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
    yield from _shares(results, total, again)
    yield ""
    yield _afterwards(results, total)
    yield ""
    yield _rewards(results)


def _shares(results: Sequence[Result], total: Load, again: dict[int, float]) -> Iterator[str]:
    """How much of each part is in use while the judges are busy: the first at 100 % is the bottleneck."""
    question_ms, _ = measured(results, "scale", "CPU a question, all of Ray")
    page_s, pages = measured(results, "fetch", "pages, trafilatura")
    write_us, _ = measured(results, "store", "write 1,000,000 rows")
    page_core_s = page_s / pages * CORES
    yield "| in use while the judges are busy |" + "".join(f" {fleet} GPUs |" for fleet in FLEETS)
    yield "|---|" + "---:|" * len(FLEETS)
    taken = {fleet: seconds(total, fleet, again[fleet]) for fleet in FLEETS}
    rate = {fleet: total.questions / taken[fleet] for fleet in FLEETS}
    cores = {fleet: fleet * CORES_A_GPU for fleet in FLEETS}
    parts = {
        "judges": dict.fromkeys(FLEETS, 1.0),
        "cores, for questions (a cluster's CPU time)": {
            fleet: rate[fleet] * question_ms / 1e3 / cores[fleet] for fleet in FLEETS
        },
        "cores, for pages": {
            fleet: total.pages * page_core_s / taken[fleet] / cores[fleet] for fleet in FLEETS
        },
        "each node's store writer": {
            fleet: rate[fleet] * write_us / 1e6 / (fleet / GPUS_A_NODE) for fleet in FLEETS
        },
    }
    for name, share in parts.items():
        yield f"| {name} | " + " | ".join(f"{100 * share[fleet]:.2f} %" for fleet in FLEETS) + " |"
    yield ""
    for fleet in FLEETS:
        yield (
            f"{fleet} replicas: {again[fleet]:.3f} x the minimum of prompt tokens (simulated); {rate[fleet]:,.0f} "
            f"questions per second."
        )
    each = rate[FLEETS[0]] / FLEETS[0]
    yield (
        f"The judges are the bottleneck: one answers {each:.1f} questions per second, and one core orchestrates "
        f"{1e3 / question_ms / each:,.0f} of them."
    )


def _afterwards(results: Sequence[Result], total: Load) -> str:
    """What one process does when the judges are done, and what it holds."""
    again_s, _ = measured(results, "recompute", "nothing changed, 0 asked again")
    board_s, board_rows = measured(results, "leaderboard", "leaderboard of")
    index_mb, indexed = measured(results, "store", "index 10,000,000 rows: memory")
    score_rows = CASES * len(SHAPES) * METRICS
    return (
        f"Afterwards, in one process: the leaderboard of {score_rows / 1e6:,.0f} M score rows takes "
        f"{board_s * score_rows / board_rows:,.0f} s; computing all scores again from {total.questions / 1e6:,.0f} M "
        f"stored judgments takes {again_s * total.questions / 1e6 / 3600:,.1f} hours on the {CORES} cores of the kept "
        f"results; the index of all keys takes {index_mb * total.questions / indexed / 1e3:,.1f} GB in every process "
        f"that looks judgments up, which is the first limit of a node's memory."
    )


def _rewards(results: Sequence[Result]) -> str:
    """A million rollouts a day, each under RUBRICS rubrics."""
    question_ms, _ = measured(results, "rewards", "CPU a question, ours")
    index_mb, indexed = measured(results, "store", "index 10,000,000 rows: memory")
    rate = ROLLOUTS / DAY
    prompt = REPORT + RUBRICS * 100
    judge_s = prompt / PREFILL + RUBRICS * 60 / ANSWER_RATE
    return (
        f"A million rewards per day, each of {RUBRICS} rubrics on a report of {REPORT:,} tokens ({rate:.1f} per "
        f"second): the judge takes {judge_s:.2f} GPU seconds per reward, which is {rate * judge_s:.0f} GPUs; "
        f"orchestration takes {rate * RUBRICS * question_ms / 1e3:.2f} cores. The judge is the bottleneck, then the "
        f"index of the stored keys, which grows by {index_mb * ROLLOUTS * RUBRICS / indexed / 1e3:.1f} GB per day in "
        f"every process (`adjudge store prune`)."
    )


if __name__ == "__main__":
    sys.stdout.write("\n".join(lines(load_kept())) + "\n")
