"""How far a vLLM judge repeats itself: changed answers, and the variance of a reward, sampled and expected.

    python -m benchmarks.repeatability [--quick] [--json] [--only WORDS]

Run with the Python of a vLLM environment (make test-vllm creates one). Criteria of reports are judged at temperature 0
one by one, each from an empty prefix cache; then again in the same way, from a warm cache, and all at once. A flip is
an answer that differs from the first. The reward is a report's rubric score; its variance is over rounds in which all
questions arrive at once in shuffled order, each round with its own repeat number (hence seed) and an empty cache.

The model is tiny and its weights are random, so its answers depend on near-ties that a trained model does not have.
The engine is real: a rate of 0 shows what it can do, and any other rate is a warning, not a prediction.
"""

import asyncio
import os
import random
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from adjudge.judges import Asked, Context, Reply
from adjudge.judges.judgment import Scoring
from adjudge.judges.vllm import VLLMJudge
from adjudge.scoring.rubrics.asking import PointsGiven, RubricPoints
from adjudge.scoring.rubrics.criteria import Criterion, rubric_score
from benchmarks.timing import Row, alone, main
from tests import local_vllm

CRITERIA = tuple(Criterion(criterion=f"It names fact {n}.", points=2.0) for n in range(8))
WORDS = "the of and to in city bike parcel depot van street rate cost year study share found rose".split()
ROUNDS = 8


class Judged(msgspec.Struct, frozen=True):
    """The replies to all criteria of all reports, report by report."""

    replies: list[Reply[PointsGiven]]

    @property
    def points(self) -> list[float]:
        return [reply.answer.points for reply in self.replies if reply.answer is not None]

    def rewards(self) -> list[float]:
        """Each report's rubric score."""
        n = len(CRITERIA)
        points = self.points
        assert len(points) == len(self.replies), "not everything was answered"
        by_report = [points[start : start + n] for start in range(0, len(points), n)]
        return [rubric_score(zip(CRITERIA, given, strict=True)) or 0.0 for given in by_report]


class Bench:
    """One engine, and judges that ask it in different ways."""

    def __init__(self, reports: int) -> None:
        self.loop = asyncio.Runner()
        self._first = local_vllm.judge()
        self.loop.run(self._first.start())
        draw = random.Random(0)
        self._questions = [
            RubricPoints(
                context=Context.of(report=f"Report {report}. {' '.join(words)}"),
                task="How are parcels delivered?",
                criterion=criterion.criterion,
                values=criterion.options,
            )
            for report, words in enumerate(draw.choices(WORDS, k=1_500) for _ in range(reports))
            for criterion in CRITERIA
        ]

    def close(self) -> None:
        self.loop.run(self._first.close())
        self.loop.close()

    def judge(self, scoring: Scoring = "sampled", temperature: float = 0.0) -> VLLMJudge:
        """A judge of its own settings on the one engine."""
        judge = local_vllm.judge(scoring=scoring, temperature=temperature)
        judge._loading = self._first._loading
        return judge

    def one_by_one(self, judge: VLLMJudge, *, cold: bool) -> Judged:
        """Every question alone; `cold`: each from an empty cache."""

        async def answers() -> list[Reply[PointsGiven]]:
            found = []
            for number, question in enumerate(self._questions):
                if cold:
                    await self._forget()
                found.append(await judge.answer(question, _asked(number, 0)))
            return found

        return Judged(self.loop.run(answers()))

    def at_once(self, judge: VLLMJudge, repeat: int = 0) -> Judged:
        """All questions together, shuffled, from an empty cache."""
        order = random.Random(repeat).sample(range(len(self._questions)), len(self._questions))

        async def answers() -> list[Reply[PointsGiven]]:
            await self._forget()
            found = await asyncio.gather(
                *(judge.answer(self._questions[n], _asked(n, repeat)) for n in order)
            )
            placed = dict(zip(order, found, strict=True))
            return [placed[n] for n in range(len(order))]

        return Judged(self.loop.run(answers()))

    async def _forget(self) -> None:
        assert await (await self._first.start())._engine.reset_prefix_cache()


def _asked(number: int, repeat: int) -> Asked:
    return Asked(key=(number * 1_000 + repeat).to_bytes(4, "big") * 4, repeat=repeat)


def flips(name: str, one: Judged, other: Judged) -> Iterator[Row]:
    """Share of questions whose text, and whose points, differ."""
    n = len(one.replies)
    texts = sum(a.text != b.text for a, b in zip(one.replies, other.replies, strict=True))
    points = sum(a != b for a, b in zip(one.points, other.points, strict=True))
    yield alone(f"{name}: words differ", texts / n, "of answers", n=n)
    yield alone(f"{name}: points differ", points / n, "of answers", n=n)


def variance(name: str, rounds: Sequence[Judged]) -> Row:
    """Of a report's reward over rounds, mean over reports, in squared units of a reward between 0 and 1."""
    by_report = zip(*(judged.rewards() for judged in rounds), strict=True)
    within = [statistics.variance(rewards) for rewards in by_report]
    return alone(f"reward's variance, {name}", statistics.fmean(within), "", n=len(within), runs=len(rounds))


def rows(quick: bool, wanted: Callable[[str], bool]) -> Iterable[Row]:
    bench = Bench(reports=2 if quick else 4)
    try:
        if wanted("flips"):
            judge = bench.judge()
            first = bench.one_by_one(judge, cold=True)
            yield from flips("flips, one by one, again", first, bench.one_by_one(judge, cold=True))
            bench.at_once(judge)
            yield from flips("flips, cold to warm cache", first, bench.one_by_one(judge, cold=False))
            yield from flips("flips, one by one to all at once", first, bench.at_once(judge))
        settings: list[tuple[str, dict[str, Any]]] = [
            ("sampled at temperature 0", {}),
            ("sampled at temperature 1", {"temperature": 1.0}),
            ("expected", {"scoring": "expected"}),
        ]
        for name, how in settings:
            if wanted(f"variance {name}"):
                judge = bench.judge(**how)
                yield variance(name, [bench.at_once(judge, repeat) for repeat in range(ROUNDS)])
    finally:
        bench.close()


if __name__ == "__main__":
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    main(__doc__, rows)
