"""Judging with vLLM: how many shared prompt tokens are computed only once, and how much faster that is.

    python -m benchmarks.prefix [--quick] [--json] [--only WORDS] [--gpu]

Run with the Python of a vLLM environment (make test-vllm creates one). A `VLLMJudge` and, with identical prompts,
vLLM's own `LLM.chat` answer questions about eight long reports: report by report, shuffled, and criterion by
criterion; with a prefix cache that holds all reports, one that holds two, and none. Every run has new reports and
starts cold.

The model has random weights: a tiny one on the CPU; with `--gpu` one of 7B shapes in bf16, reports of 28,000 tokens in
a window of 32,768, and the rows also go to benchmarks/results/prefix_gpu.json.
"""

import argparse
import asyncio
import contextlib
import math
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from adjudge.judges import Answer, Asked, Choice, Context, Question, Reply
from adjudge.judges.chat import messages
from adjudge.judges.schema import max_tokens, schema_of
from adjudge.judges.vllm import VLLMConfig, VLLMJudge
from adjudge.judges.vllm_engine import _unimported_main
from adjudge.prompts import PromptBook
from adjudge.scoring.rubrics.asking import RubricPoints
from benchmarks.kept import current_commit, keep, result
from benchmarks.timing import Row, alone, compare, main
from tests.shared_prefix import least_computed
from tests.tiny_model import SEVEN_B, TINY, Shape, tiny_model

A = TypeVar("A", bound=Answer)
Rows = Callable[[bool, Callable[[str], bool]], Iterable[Row]]

REPORTS, CRITERIA = 8, 16
SECRET = b"benchmark"
BOOK = PromptBook()
WORDS = (
    "the of and to in city bike parcel depot van street rate cost year study share found rose fell by".split()
)


class Points(Answer, frozen=True, kw_only=True):
    """Points alone: the answers are short, so prompts dominate the cost."""

    points: Choice


class Points1(RubricPoints, frozen=True, kw_only=True):
    """A criterion, answered without analysis."""

    answer = Points


class Setting(msgspec.Struct, frozen=True):
    """The model, its window and the length of a report in tokens, and vLLM's options on this hardware."""

    shape: Shape
    window: int
    report_tokens: int
    block: int
    engine: dict[str, Any]

    def model(self) -> str:
        """The folder of the model."""
        return str(tiny_model(self.shape))


CPU = Setting(TINY, 8_192, 5_500, 128, {"enforce_eager": True, "gpu_memory_utilization": 0.3})
GPU = Setting(
    SEVEN_B, 32_768, 28_000, 16, {"load_format": "dummy", "gpu_memory_utilization": 0.42, "dtype": "bfloat16"}
)


class Pair:
    """The judge and the bare engine, both on one model with caches of one size."""

    def __init__(self, setting: Setting, cached_reports: float) -> None:
        from vllm import LLM

        options = dict(setting.engine)
        if cached_reports == 0:
            options["enable_prefix_caching"] = False
        elif math.isfinite(cached_reports):
            prompt = setting.report_tokens + 600
            options["num_gpu_blocks_override"] = math.ceil(cached_reports * prompt / setting.block)
        model = setting.model()
        self.loop = asyncio.Runner()
        self._config = VLLMConfig(model=model, max_context=setting.window, engine=options)
        self.judge = VLLMJudge(self._config, BOOK, SECRET)
        self.loop.run(self.judge.start())
        structured = {"backend": "guidance", "disable_any_whitespace": True}
        try:
            with _unimported_main():  # what we import is not for vLLM's processes
                self.llm = LLM(
                    model, max_model_len=setting.window, structured_outputs_config=structured, **options
                )
        except BaseException:
            self.loop.run(self.judge.close())
            raise
        self._setting = setting
        self.salt = 0

    def expecting(self) -> VLLMJudge:
        """A judge on the same engine that derives answers from their probabilities."""
        judge = VLLMJudge(msgspec.structs.replace(self._config, scoring="expected"), BOOK, SECRET)
        judge._loading = self.judge._loading
        return judge

    def close(self) -> None:
        self.loop.run(self.judge.close())
        self.loop.close()
        self.llm.llm_engine.engine_core.shutdown()
        del self.llm

    def questions(self, reports: int = REPORTS, criteria: int = CRITERIA) -> list[Points1]:
        """New reports, report by report."""
        self.salt += 1
        draw = random.Random(self.salt)
        found = []
        for report in range(reports):
            words = draw.choices(WORDS, k=round(self._setting.report_tokens * 0.9))
            context = Context.of(report=f"Report {self.salt}.{report}. {' '.join(words)}")
            found += [
                Points1(
                    context=context, task="Bikes?", criterion=f"It names fact {i}.", values=(0.0, 1.0, 2.0)
                )
                for i in range(criteria)
            ]
        return found

    def ask(self, questions: Sequence[Question[A]]) -> list[Reply[A]]:
        """All at once, arriving in the order given. Every reply has an answer."""
        replies = self.replies(questions)
        assert all(reply.answer is not None for reply in replies), replies[0]
        return replies

    def replies(self, questions: Sequence[Question[A]], judge: VLLMJudge | None = None) -> list[Reply[A]]:
        """All at once, of `judge` or the one that samples; free text of a random model may be unreadable."""
        asked = judge or self.judge

        async def answers() -> list[Reply[A]]:
            return await asyncio.gather(*(asked.answer(q, Asked(key=bytes(16))) for q in questions))

        return self.loop.run(answers())

    def chat(self, questions: Sequence[Question[Any]]) -> None:
        from vllm import SamplingParams
        from vllm.sampling_params import StructuredOutputsParams

        schemas = [schema_of(question, analysis=True) for question in questions]
        asked = [messages(q, BOOK, schema, SECRET) for q, schema in zip(questions, schemas, strict=True)]
        how = [
            SamplingParams(
                temperature=0.0,
                max_tokens=max_tokens(schema),
                seed=0,
                structured_outputs=StructuredOutputsParams(json=schema, disable_any_whitespace=True),
            )
            for schema in schemas
        ]
        self.llm.chat(asked, how, use_tqdm=False)


CHAT = ("LLM.chat by report", Pair.chat)
JUDGE = ("VLLMJudge by report", Pair.ask)


def grouped(questions: list[Points1]) -> list[Points1]:
    return questions


def shuffled(questions: list[Points1]) -> list[Points1]:
    return random.Random(0).sample(questions, len(questions))


def by_criterion(questions: list[Points1]) -> list[Points1]:
    """Every neighbour is about another report: the worst order there is."""
    return [q for first in range(CRITERIA) for q in questions[first::CRITERIA]]


def computed_tokens(pair: Pair, setting: Setting) -> Row:
    """One report, sixty criteria."""
    questions = pair.questions(1, 60)
    engine = pair.loop.run(pair.judge.start())
    prompts = [engine.tokens(messages(q, BOOK, schema_of(q, True), SECRET)) for q in questions]
    usages = [reply.usage for reply in pair.ask(questions)]
    computed = sum(usage.prompt_tokens - usage.cached_tokens for usage in usages)
    least = least_computed(prompts, setting.block)
    name = "prompt tokens computed, 1 report x 60"
    return Row(name, computed, least, "block-aligned minimum", least / computed, "tokens", 60, 1)


def rates(
    name: str,
    pair: Pair,
    order: Callable[[list[Points1]], list[Points1]],
    quick: bool,
    beside: tuple[str, Callable[[Pair, list[Points1]], object]] = CHAT,
) -> Row:
    """Judgments a second through the judge in `order`, beside those by report of `LLM.chat` or of the judge."""
    peer_name, peer = beside
    row = compare(
        name,
        lambda: pair.ask(order(pair.questions())),
        lambda: peer(pair, pair.questions()),
        peer_name=peer_name,
        n=REPORTS * CRITERIA,
        quick=quick,
    )
    return msgspec.structs.replace(
        row, ours=row.n / row.ours, peer=row.n / (row.peer or 1), unit="judgments/s"
    )


def bare(name: str, pair: Pair, order: Callable[[list[Points1]], list[Points1]]) -> Row:
    """Judgments a second of `LLM.chat` in `order`."""
    questions = order(pair.questions())
    start = time.perf_counter()
    pair.chat(questions)
    return alone(name, len(questions) / (time.perf_counter() - start), "judgments/s", n=len(questions))


@contextlib.contextmanager
def pair_of(setting: Setting, cached_reports: float) -> Iterator[Pair]:
    pair = Pair(setting, cached_reports)
    try:
        yield pair
    finally:
        pair.close()


def rows(setting: Setting, quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """With a cache for all reports, for two, and for none."""
    if wanted("all"):
        with pair_of(setting, math.inf) as pair:
            yield computed_tokens(pair, setting)
            yield rates("cache holds all, by report", pair, grouped, quick)
            yield rates("cache holds all, shuffled", pair, shuffled, quick)
    if wanted("two"):
        with pair_of(setting, 2.3) as pair:
            yield rates("cache holds two, by report", pair, grouped, quick)
            yield rates("cache holds two, shuffled", pair, shuffled, quick)
            yield rates("cache holds two, shuffled, beside by report", pair, shuffled, quick, JUDGE)
            yield rates("cache holds two, by criterion", pair, by_criterion, quick)
            yield bare("cache holds two, shuffled, LLM.chat", pair, shuffled)
    if wanted("none"):
        with pair_of(setting, 0) as pair:
            yield bare("no cache, by report, LLM.chat", pair, grouped)


def kept_as(name: str, rows: Rows) -> Rows:
    """`rows`, and kept in the book under `name` with the accelerator's."""

    def keeping(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
        import torch

        began, commit, done = time.monotonic(), current_commit(), []
        for row in rows(quick, wanted):
            done.append(row)
            yield row
        device = torch.cuda.get_device_name()
        keep(result(name, done, quick=quick, began=began, commit=commit, accelerator=device))

    return keeping


def run(doc: str | None, on_cpu: Rows, on_gpu: Rows, name: str) -> None:
    """The command line of a benchmark with `--gpu`, whose rows there are kept under `name`."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--gpu", action="store_true")
    options, sys.argv[1:] = parser.parse_known_args()
    main(doc, kept_as(name, on_gpu) if options.gpu else on_cpu)


if __name__ == "__main__":
    run(__doc__, partial(rows, CPU), partial(rows, GPU), "prefix_gpu")
