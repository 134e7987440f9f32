"""LiveDRBench as published: questions in Parquet with encrypted ground truth, and one file of predictions per system.

Questions: a Parquet or JSON Lines file, or the data set's folder (`v1-full/`, else `preview/`, which is not encrypted,
else the files in it), with the columns key, category, question, ground_truths, misc and, where encrypted, canary.
Predictions: a JSON list (or JSON Lines) of `{"key", "preds"}`, named after the system; a row may also have `text`, the
prose to read the answer from, and `trace`. A question that a file leaves out is an empty report.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from adjudge.engine.formats.dataset import Dataset, FormatError, Located, Rejected, rows
from adjudge.scoring.contract.case import NULL, Report, Task
from adjudge.scoring.livedrbench.cipher import CanaryError, decrypt

__all__ = ["read"]

_FOLDERS = ("v1-full", "preview", ".")


class Question(msgspec.Struct):
    """A row of the data set; `ground_truths` and `misc` are JSON text, encrypted if there is a canary."""

    key: int | str
    category: str
    question: str
    ground_truths: str
    misc: str = ""
    canary: str | None = None


class Prediction(msgspec.Struct):
    """A system's answer: slots in the form that the question wants, or prose alone."""

    key: int | str
    preds: msgspec.Raw = NULL
    text: str = ""
    trace: msgspec.Raw = NULL


class Misc(msgspec.Struct):
    """The part of `misc` that scoring needs."""

    eval_info: msgspec.Raw = NULL


def read(tasks: Path, reports: list[Path]) -> Dataset:
    """The dataset of the published questions with the systems of `reports`.

    Raises FormatError if there are no questions, or no reports are named.
    """
    rejected: list[Rejected] = []
    known: dict[str, Task] = {}
    for file in _files(tasks):
        for line, question in _questions(file, rejected):
            try:
                known[str(question.key)] = _task(question)
            except (CanaryError, msgspec.MsgspecError, RecursionError) as error:
                rejected.append(Rejected(str(file), line, f"question {question.key}: {error}"))
    if not known:
        raise FormatError(
            f"tasks: {tasks} has no readable question; give the folder of the data set, or a file of it"
        )
    found = [located for file in reports for located in _system(file, list(known), rejected)]
    return Dataset(known, found, rejected)


def _files(tasks: Path) -> list[Path]:
    if tasks.is_file():
        return [tasks]
    for folder in _FOLDERS:
        found = sorted((tasks / folder).glob("*.parquet")) or sorted((tasks / folder).glob("*.jsonl"))
        if found:
            return found
    raise FormatError(
        f"tasks: {tasks} has no questions; give the folder of the data set, or its Parquet file"
    )


def _questions(file: Path, rejected: list[Rejected]) -> Iterator[tuple[int, Question]]:
    if file.suffix != ".parquet":
        yield from ((line, question) for line, _, question in rows(file, Question, rejected))
        return
    try:
        table = pq.read_table(file)
    except (OSError, pa.ArrowException) as error:
        raise FormatError(f"{file}: cannot be read as Parquet: {error}") from error
    for line, row in enumerate(table.to_pylist(), 1):
        try:
            yield line, msgspec.convert(row, Question)
        except msgspec.ValidationError as error:
            rejected.append(Rejected(str(file), line, f"invalid question: {error}"))


def _task(question: Question) -> Task:
    truth = _opened(question.ground_truths, question.canary)
    misc = _opened(question.misc, question.canary) if question.misc else "{}"
    gold = {
        "category": question.category,
        "ground_truths": msgspec.json.decode(truth, type=msgspec.Raw),
        "eval_info": msgspec.json.decode(misc, type=Misc).eval_info,
    }
    return Task(
        id=str(question.key),
        prompt=question.question,
        domain=question.category,
        gold={"livedr": msgspec.Raw(msgspec.json.encode(gold))},
    )


def _opened(text: str, canary: str | None) -> str:
    return decrypt(text, canary) if canary else text


def _system(file: Path, known: list[str], rejected: list[Rejected]) -> Iterator[Located]:
    given = set()
    for line, prediction in _predictions(file, rejected):
        given.add(str(prediction.key))
        yield Located.of(_report(file, prediction), f"{file}:{line}")
    for task in known:
        if task not in given:
            yield Located.of(Report(task_id=task, system=file.stem, text=""), f"{file}:0")


def _predictions(file: Path, rejected: list[Rejected]) -> Iterator[tuple[int, Prediction]]:
    if file.suffix == ".jsonl":
        yield from ((line, prediction) for line, _, prediction in rows(file, Prediction, rejected))
        return
    try:
        listed = msgspec.json.decode(file.read_bytes(), type=list[msgspec.Raw])
    except OSError as error:
        raise FormatError(f"{file}: cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, RecursionError) as error:
        raise FormatError(f"{file}: not a JSON list of predictions: {error}") from error
    for line, raw in enumerate(listed, 1):
        try:
            yield line, msgspec.json.decode(raw, type=Prediction)
        except (msgspec.MsgspecError, RecursionError) as error:
            rejected.append(Rejected(str(file), line, f"invalid prediction: {error}"))


def _report(file: Path, prediction: Prediction) -> Report:
    answer = prediction.preds.copy()
    return Report(
        task_id=str(prediction.key),
        system=file.stem,
        text=prediction.text or ("" if answer == NULL else bytes(answer).decode()),
        answer=answer,
        trace=prediction.trace.copy(),
    )
