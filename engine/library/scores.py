"""One report, scored in one call."""

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from adjudge.engine.config.metrics import headlines
from adjudge.engine.config.run import RunConfig
from adjudge.engine.errors import UsageError
from adjudge.engine.evaluation.assembly import open_evaluator
from adjudge.engine.library.evaluations import awaited, finished
from adjudge.engine.tables.page import render
from adjudge.scoring.contract.case import Case, Report, Task
from adjudge.scoring.contract.scorecard import Scorecard

RUBRICS = "rubrics"


class Score(msgspec.Struct, frozen=True):
    """A report's scorecards, one for each protocol, in their order, and what ranks its first table."""

    cards: tuple[Scorecard, ...]
    headlines: dict[str, str]

    @property
    def value(self) -> float | None:
        """The first protocol's headline metric; None where `reason` says why."""
        card = self.cards[0]
        return card.scores.get(self.headlines[card.protocol])

    @property
    def reason(self) -> str | None:
        """Why `value` is missing, or why the report got the minimum by its own doing."""
        card = self.cards[0]
        return card.reasons.get(self.headlines[card.protocol], card.reason)

    @property
    def scores(self) -> dict[str, float | None]:
        """Every metric of every protocol, by `protocol.metric`."""
        return {
            f"{card.protocol}.{name}": value for card in self.cards for name, value in card.scores.items()
        }

    def __repr__(self) -> str:
        return f"Score({self.value if self.reason is None else self.reason})"

    def _repr_html_(self) -> str:
        return render("score.html.jinja", __package__, said=repr(self), cards=self.cards)


def score(
    *,
    prompt: str,
    text: str,
    rubrics: Sequence[str | Mapping[str, object]] = (),
    gold: Mapping[str, object] | None = None,
    language: str = "en",
    **options: object,
) -> Score:
    """Score the report `text` on `prompt`: by `rubrics`, by `protocols` with their `gold`, or both.

    A rubric is one sentence, worth one point, or a mapping: `{"criterion": "...", "points": 3}`. `options` are the keys
    of a configuration (`judge`, `protocols`, `fetch`, `store`, ...). Raises UsageError, StoreError and JudgeError.
    """
    return finished(partial(_score, prompt, text, rubrics, gold or {}, language, options))


async def score_async(
    *,
    prompt: str,
    text: str,
    rubrics: Sequence[str | Mapping[str, object]] = (),
    gold: Mapping[str, object] | None = None,
    language: str = "en",
    **options: object,
) -> Score:
    """`score`, in its own event loop."""
    return await awaited(partial(_score, prompt, text, rubrics, gold or {}, language, options))


async def _score(
    prompt: str,
    text: str,
    rubrics: Sequence[str | Mapping[str, object]],
    gold: Mapping[str, object],
    language: str,
    options: Mapping[str, object],
) -> Score:
    given = {**({RUBRICS: list(map(_criterion, rubrics))} if rubrics else {}), **gold}
    protocols = options.get("protocols") or list(given)
    if not protocols:
        raise UsageError("rubrics: are missing; pass rubrics=, or gold= and protocols=")
    config = RunConfig.of({**options, "protocols": protocols}, "arguments")
    report = Report(task_id="report", system="report", text=text)
    task = Task(
        id=report.task_id,
        prompt=prompt,
        language=language,
        gold={name: msgspec.Raw(msgspec.json.encode(one)) for name, one in given.items()},
    )
    chosen = config.resolved.protocols
    async with open_evaluator(config) as evaluator:
        found = {card.protocol: card async for card in evaluator.run([Case(task=task, report=report)])}
    heads = {one.name: headlines(one.metrics)[0].name for one in chosen}
    return Score(tuple(found[one.name] for one in chosen), heads)


def _criterion(rubric: str | Mapping[str, object]) -> Mapping[str, object]:
    return {"criterion": rubric, "points": 1} if isinstance(rubric, str) else rubric
