"""Many criteria in one question against one in each: prompt tokens and seconds before a real vLLM.

    python -m benchmarks.items_vllm [--quick] [--json] [--only WORDS]

Run with the Python of a vLLM environment (make test-vllm creates one). A `VLLMJudge` answers fifty binary criteria
about each of twenty reports, fifty in a question and one in a question, with verdicts alone and with the judge's
analysis, and with a prefix cache and without. Every run has new reports and starts cold; every answer must have its
type.

This is cost only. The model is tiny and has random weights: what many criteria in one question do to agreement has to
be measured with the judge that is to be used (docs/protocols/rubrics.md says how).
"""

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import Any, ClassVar

import msgspec

from adjudge.judges import Answer, Asked, Choice, Context, Question, Reply
from adjudge.judges.vllm import VLLMConfig, VLLMJudge
from adjudge.prompts import PromptBook
from adjudge.scoring.rubrics.asking import (
    MAX_ITEMS,
    ItemLevels,
    Level,
    PointsGiven,
    RubricItems,
    RubricPoints,
)
from benchmarks.timing import Row, alternating, main
from tests.tiny_model import TINY, tiny_model

REPORTS, ITEMS = 20, 50
REPORT_WORDS = 1_200
WINDOW = 8_192
RUNS, QUICK_RUNS = 3, 1
ENGINE = {"enforce_eager": True, "gpu_memory_utilization": 0.3}
WORDS = (
    "the of and to in city bike parcel depot van street rate cost year study share found rose fell".split()
)


class Points(Answer, frozen=True, kw_only=True):
    """Points without analysis."""

    points: Choice


class OneAlone(RubricPoints, frozen=True, kw_only=True):
    """A criterion, answered without analysis."""

    answer = Points


class Levels(Answer, frozen=True, kw_only=True):
    """Levels without analysis."""

    most_items: ClassVar[int] = MAX_ITEMS

    items: dict[str, Level]


class Together(RubricItems, frozen=True, kw_only=True):
    """Criteria, answered without analysis."""

    answer = Levels


Ways = tuple[type[RubricItems], type[RubricPoints]]
VERDICTS: Ways = (Together, OneAlone)
ANALYSED: Ways = (RubricItems, RubricPoints)
ANSWERS = (Levels, Points, ItemLevels, PointsGiven)


class Spent(msgspec.Struct, frozen=True):
    """What one way took: prompt tokens sent, those not answered from the cache, tokens written, and seconds."""

    prompt: int
    computed: int
    written: int
    seconds: float


class Judge:
    """The judge, with a prefix cache or without, and the questions that it is asked."""

    def __init__(self, cached: bool) -> None:
        options = {**ENGINE, **({} if cached else {"enable_prefix_caching": False})}
        config = VLLMConfig(model=str(tiny_model(TINY)), max_context=WINDOW, engine=options)
        self._judge = VLLMJudge(config, PromptBook(), b"benchmark")
        self._loop = asyncio.Runner()
        self._loop.run(self._judge.start())
        self._salt = 0

    def close(self) -> None:
        """End the engine."""
        self._loop.run(self._judge.close())
        self._loop.close()

    def ask(self, kind: type[Question[Any]], reports: int) -> Spent:
        """Ask about new reports, all at once."""
        questions = [one for context in self._contexts(reports) for one in _about(context, kind)]

        async def answers() -> Sequence[Reply[Any]]:
            return await asyncio.gather(*(self._judge.answer(one, Asked(key=bytes(16))) for one in questions))

        began = time.perf_counter()
        replies = self._loop.run(answers())
        seconds = time.perf_counter() - began
        wrong = [reply for reply in replies if not isinstance(reply.answer, ANSWERS)]
        assert not wrong, wrong[0]
        usages = [reply.usage for reply in replies]
        return Spent(
            sum(one.prompt_tokens for one in usages),
            sum(one.prompt_tokens - one.cached_tokens for one in usages),
            sum(one.completion_tokens for one in usages),
            seconds,
        )

    def _contexts(self, reports: int) -> Iterator[Context]:
        self._salt += 1
        draw = random.Random(self._salt)
        for number in range(reports):
            words = " ".join(draw.choices(WORDS, k=REPORT_WORDS))
            yield Context.of(report=f"Report {self._salt}.{number}. {words}")


def _about(context: Context, kind: type[Question[Any]]) -> Iterable[Question[Any]]:
    items = tuple(f"It states fact number {number}." for number in range(ITEMS))
    if issubclass(kind, RubricItems):
        return [kind(context=context, task="Bikes?", items=items, levels=(0.0, 1.0))]
    return [kind(context=context, task="Bikes?", criterion=item, values=(0.0, 1.0)) for item in items]


def _rows(name: str, judge: Judge, ways: Ways, reports: int, runs: int) -> Iterator[Row]:
    many, each = ways
    ours, peers = alternating(lambda: judge.ask(many, reports), lambda: judge.ask(each, reports), runs)
    columns: tuple[tuple[str, str, Callable[[Spent], float]], ...] = (
        ("prompt tokens", "tokens", lambda one: one.prompt),
        ("prompt tokens computed", "tokens", lambda one: one.computed),
        ("tokens written", "tokens", lambda one: one.written),
        ("seconds", "s", lambda one: one.seconds),
    )
    for title, unit, of in columns:
        mine, other = median(map(of, ours)), median(map(of, peers))
        yield Row(
            f"{name}: {title}", mine, other, "one criterion each", other / mine, unit, reports * ITEMS, runs
        )


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Each setting in turn; a quick one has a tenth of the reports where the judge writes analyses."""
    runs = QUICK_RUNS if quick else RUNS
    for cached, cache in ((True, "prefix cache"), (False, "no cache")):
        settings = (
            (f"verdicts alone, {cache}", VERDICTS, REPORTS),
            (f"with analysis, {cache}", ANALYSED, 2 if quick else REPORTS),
        )
        chosen = [setting for setting in settings if wanted(setting[0])]
        judge = Judge(cached) if chosen else None
        try:
            for name, ways, reports in chosen:
                assert judge is not None
                yield from _rows(name, judge, ways, reports, runs)
        finally:
            if judge is not None:
                judge.close()


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    main(__doc__, rows)
