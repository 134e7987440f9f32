"""LiveDRBench as published: questions in Parquet with encrypted ground truth, and one file of predictions per system.

Questions: a Parquet or JSON Lines file, or the data set's folder (`v1-full/`, else `preview/`, which is not encrypted,
else the files in it), with the columns key, category, question, ground_truths, misc and, where encrypted, canary.
Predictions: a JSON list (or JSON Lines) of `{"key", "preds"}`, named after the system. `preds` may be JSON text; a row
may also have `text`, the prose to read the answer from, and `trace`. Rows of `{"question", "prediction"}` hold that
prose for the question with these words. A question that a file leaves out is an empty report, unless a row of the file
cannot be read, which may have been for that question.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from adjudge.engine.formats.dataset import UNREADABLE, Dataset, FormatError, Key, Located, Prompts, rows
from adjudge.engine.formats.rejected import Rejected
from adjudge.scoring.contract.case import NULL, Report, Task
from adjudge.scoring.livedrbench.cipher import CanaryError, decrypt

__all__ = ["read"]

_FOLDERS = ("v1-full", "preview", ".")


class Question(msgspec.Struct):
    """A row of the data set; `ground_truths` and `misc` are JSON text, encrypted if there is a canary."""

    key: Key
    category: str
    question: str
    ground_truths: str
    misc: str = ""
    canary: str | None = None


class Prediction(msgspec.Struct):
    """A system's answer: slots in the form that the question wants, or prose alone."""

    key: Key | None = None
    question: str = ""
    preds: msgspec.Raw = NULL
    prediction: str | None = None
    text: str = ""
    trace: msgspec.Raw = NULL
    prompt: str = ""


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
            except (CanaryError, *UNREADABLE) as error:
                rejected.append(Rejected.of(file, line, Question, error))
    if not known:
        raise FormatError(
            f"tasks: {tasks} has no readable question; give the folder of the data set, or a file of it"
        )
    prompts = Prompts(known)
    found = [located for file in reports for located in _system(file, known, prompts, rejected)]
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
        except UNREADABLE as error:
            rejected.append(Rejected.of(file, line, Question, error))


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


def _system(
    file: Path, known: dict[str, Task], prompts: Prompts, rejected: list[Rejected]
) -> Iterator[Located]:
    before, given = len(rejected), set()
    for line, prediction in _predictions(file, rejected):
        try:
            report = _report(file, prediction, prompts)
        except UNREADABLE as error:
            rejected.append(Rejected.of(file, line, Prediction, error))
        else:
            given.add(report.task_id)
            yield Located.of(report, f"{file}:{line}")
    if len(rejected) > before:
        return
    for task in known:
        if task not in given:
            yield Located.of(Report(task_id=task, system=file.stem, text=""), f"{file}:0")


def _predictions(file: Path, rejected: list[Rejected]) -> Iterator[tuple[int, Prediction]]:
    if file.suffix == ".jsonl":
        yield from ((line, prediction) for line, _, prediction in rows(file, Prediction, rejected))
        return
    try:
        content = file.read_bytes()
        content.decode()
        listed = msgspec.json.decode(content, type=list[msgspec.Raw])
    except OSError as error:
        raise FormatError(f"{file}: cannot be read: {error.strerror}") from error
    except UNREADABLE as error:
        rejected.append(Rejected(str(file), 0, f"not a JSON list of predictions: {error}"))
        return
    for line, raw in enumerate(listed, 1):
        try:
            prediction = msgspec.json.decode(raw, type=Prediction)
        except UNREADABLE as error:
            rejected.append(Rejected.of(file, line, Prediction, error))
        else:
            yield line, prediction


def _report(file: Path, row: Prediction, prompts: Prompts) -> Report:
    """The report of a row. Raises MsgspecError or ValueError if its question or its answer cannot be read."""
    task_id = str(row.key) if row.key is not None else _asked(row.question, prompts)
    for prompt in (row.prompt, row.question):
        prompts.check(task_id, prompt)
    answer = _answer(row.preds)
    if answer == NULL and not row.text and row.prediction is None:
        raise ValueError("neither `preds` nor `text`")
    return Report(
        task_id=task_id,
        system=file.stem,
        text=row.text or row.prediction or ("" if answer == NULL else bytes(answer).decode()),
        answer=answer,
        trace=row.trace.copy(),
    )


def _asked(question: str, prompts: Prompts) -> str:
    """The task of a row without a key."""
    asking = prompts.of(question) if question else []
    if len(asking) != 1:
        raise ValueError("no `key`, and no single task has this `question`")
    return asking[0]


def _answer(preds: msgspec.Raw) -> msgspec.Raw:
    """The slots of `preds`, which may be JSON text. Raises MsgspecError if they are not JSON."""
    value = msgspec.json.decode(preds)
    if not isinstance(value, str):
        return preds.copy()
    msgspec.json.decode(value)
    return msgspec.Raw(value.encode())
