"""Questions as a run's judge was sent them, with answers to learn from: data that train a judge of one's own.

Targets are answers of a stronger judge, which judged the same reports in another run, or those answers that people's
labels confirm. The rows have the shapes that TRL takes: `prompt` and `completion`, or `prompt`, `chosen` and
`rejected`, all lists of messages. A task is in train.jsonl or in test.jsonl, never in both, nor is a prompt.
"""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from adjudge.engine.errors import UsageError
from adjudge.engine.formats.dataset import Dataset, Located
from adjudge.engine.runs.items import items_of_card, label_readers, read_labels
from adjudge.engine.runs.run import Run
from adjudge.engine.viewer.data.open_run import AskedQuestion, OpenRun, Replayer
from adjudge.engine.viewer.data.query import NotThere
from adjudge.judges.chat import Message
from adjudge.judges.published import PublishedQuestion
from adjudge.judges.schema import whole
from adjudge.scoring.contract.case import Case
from adjudge.scoring.contract.scorecard import Scorecard
from adjudge.scoring.text.aside import open_workers

__all__ = ["write_judge_data"]

_TEST = 0.2  # of the tasks
Form = Literal["judge-sft", "judge-preferences"]


class _Answered(msgspec.Struct, frozen=True):
    """An answer as the judge should give it, and whether people confirm it; None where nobody labelled it."""

    text: str
    verdict: object
    confirmed: bool | None


def write_judge_data(
    form: Form, run: Run, out: Path, other: str | Path | None, labels: str | Path | None
) -> Iterator[Path]:
    """Write `out`/train.jsonl and `out`/test.jsonl of the questions of `run`; yields the files.

    `other` is the run of the stronger judge, `labels` a file of people's labels. Raises UsageError, StoreError.
    """
    if other is None and (labels is None or form == "judge-preferences"):
        needs = "needs --other RUN, the same reports judged by another judge"
        raise UsageError(
            f"format: {form} {needs}{'' if form == 'judge-preferences' else ', or --labels FILE'}"
        )
    said = {} if labels is None else _agreed(Path(labels))
    theirs = None if other is None else Run.open(other)
    counts = asyncio.run(_written(form, run, theirs, None if labels is None else said, out))
    if not any(counts.values()):
        raise UsageError(
            f"format: {form}: no question has {_LACKS[form]}; use runs of the same reports, or label more verdicts"
        )
    yield from (out / f"{side}.jsonl" for side in counts)


_LACKS = {
    "judge-sft": "an answer to learn from",
    "judge-preferences": "one answer that is better than another",
}


def _agreed(file: Path) -> dict[str, str]:
    """By item, the label on which all raters agree."""
    given: defaultdict[str, set[str]] = defaultdict(set)
    for label in read_labels(file):
        if label.item:
            given[label.item].add(label.label.strip().casefold())
    return {item: one for item, (one, *more) in given.items() if not more}


async def _written(
    form: Form, run: Run, other: Run | None, said: Mapping[str, str] | None, out: Path
) -> dict[str, int]:
    """Write both files; how many rows each has."""
    opened = [OpenRun(one) for one in (run, other) if one is not None]
    counts = {"train": 0, "test": 0}
    seen: set[str] = set()
    try:
        async with open_workers():
            own, *others = [await _Judged.of(one) for one in opened]
            if not own.replayer.same_prompts:
                raise NotThere("the prompts have changed since the run; evaluate it again")
            tasks = _tasks(run.record.tasks)
            for side in ("test", "train"):  # what is tested first: its prompts are left out of training
                with (out / f"{side}.jsonl").open("wb") as file:
                    async for digest, row in _rows(form, own, others, said, tasks[side]):
                        if digest not in seen:
                            seen.add(digest)
                            file.write(msgspec.json.encode(row) + b"\n")
                            counts[side] += 1
    except NotThere as error:
        raise UsageError(f"format: {form}: {error}") from error
    finally:
        for one in opened:
            await one.close()
    return counts


def _tasks(names: Iterable[str]) -> dict[str, set[str]]:
    """The tasks of each side, the same in every export of them."""
    drawn = sorted(names, key=lambda name: hashlib.blake2b(name.encode("utf-8", "replace")).digest())
    held = max(1, round(_TEST * len(drawn))) if len(drawn) > 1 else 0
    return {"test": set(drawn[:held]), "train": set(drawn[held:])}


_Identity = tuple[str, str, str, int]


class _Judged(msgspec.Struct, frozen=True):
    """A run with what replays its questions: its scorecards by identity, and its reports."""

    replayer: Replayer
    dataset: Dataset
    reports: dict[tuple[str, str, int], Located]
    cards: dict[_Identity, Scorecard]

    @classmethod
    async def of(cls, run: OpenRun) -> "_Judged":
        dataset = await run.dataset()
        return cls(
            await run.replayer(),
            dataset,
            {(one.system, one.task_id, one.sample): one for one in dataset.reports},
            {
                (card.protocol, card.system, card.task_id, card.sample): card
                for card in run.run.cards
                if not card.repeat and not card.rival
            },
        )

    async def asked(self, card: Scorecard) -> dict[str, AskedQuestion]:
        """The questions about a report that have an answer in text, by key. Raises NotThere."""
        report = self.reports.get((card.system, card.task_id, card.sample))
        if report is None:
            raise NotThere(f"the run's input has no report of {card.system!r} for task {card.task_id!r}")
        case = Case(task=self.dataset.tasks[card.task_id], report=report.load())
        found = await self.replayer.questions(case, card.protocol)
        return {
            key: one
            for key, one in found.items()
            if one.judgment.answer is not None and not one.question.context.media
        }


async def _rows(
    form: Form, own: _Judged, others: Sequence[_Judged], said: Mapping[str, str] | None, tasks: set[str]
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """The rows of these tasks, each with the digest of its prompt."""
    for identity, card in own.cards.items():
        if card.task_id not in tasks:
            continue
        judge = own.replayer.judge_of(card.protocol)
        better = {}
        for other in others:
            theirs = other.cards.get(identity)
            for key, asked in ({} if theirs is None else await other.asked(theirs)).items():
                if theirs is not None and asked.judge == other.replayer.judge_of(card.protocol):
                    # As this run's judge would have been asked it.
                    messages = own.replayer.rendered(msgspec.structs.replace(asked, judge=judge))
                    better[_digest(messages)] = _answered(key, asked, theirs, said, judge.analysis)
        for key, asked in (await own.asked(card)).items():
            messages = own.replayer.rendered(asked)
            digest = _digest(messages)
            answer = _answered(key, asked, card, said, asked.judge.analysis)
            row = _row(form, messages, answer, better.get(digest), said is not None)
            if row is not None:
                yield digest, {**row, "task_id": card.task_id, "protocol": card.protocol}


def _row(
    form: Form, messages: Sequence[Message], answer: _Answered, better: _Answered | None, by_people: bool
) -> dict[str, Any] | None:
    """A row, or None where it is not known which answer is right."""
    known = [one for one in (better, answer) if one is not None]
    if by_people:
        right = next((one for one in known if one.confirmed), None)
        wrong = next((one for one in known if one.confirmed is False), None)
    else:
        right, wrong = better, answer
    if right is None:
        return None
    if form == "judge-sft":
        return {"prompt": messages, "completion": _message(right)}
    if wrong is None or wrong.verdict == right.verdict:
        return None
    return {"prompt": messages, "chosen": _message(right), "rejected": _message(wrong)}


def _message(answer: _Answered) -> list[Message]:
    return [{"role": "assistant", "content": answer.text}]


def _digest(messages: Sequence[Message]) -> str:
    return hashlib.blake2b(msgspec.json.encode(messages), digest_size=16).hexdigest()


def _answered(
    key: str, asked: AskedQuestion, card: Scorecard, said: Mapping[str, str] | None, analysis: bool
) -> _Answered:
    """An answer in the shape that the question asks for, with or without an analysis."""
    answer = msgspec.to_builtins(asked.judgment.answer)
    verdict = _without_analysis(answer)
    if isinstance(asked.question, PublishedQuestion):
        text = asked.judgment.text
    else:
        text = msgspec.json.encode(_as_in_schema(answer if analysis else verdict)).decode()
    read = label_readers([card.protocol]).get(card.protocol)
    if said is None or read is None:
        return _Answered(text, verdict, None)
    labels = [
        (said[item.id], item.labelled.label)
        for item in items_of_card(card, read).values()
        if item.line.judgment == key and item.id in said
    ]
    return _Answered(text, verdict, all(people == judge for people, judge in labels) if labels else None)


def _as_in_schema(value: Any) -> Any:
    """`value` with its numbers as the question's schema has them, beside which a server allows no others."""
    match value:
        case dict():
            return {name: _as_in_schema(one) for name, one in value.items()}
        case list():
            return [_as_in_schema(one) for one in value]
        case float():
            return whole(value)
    return value


def _without_analysis(value: Any) -> Any:
    match value:
        case dict():
            return {name: _without_analysis(one) for name, one in value.items() if name != "analysis"}
        case list():
            return [_without_analysis(one) for one in value]
    return value
