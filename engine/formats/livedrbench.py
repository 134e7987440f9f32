"""LiveDRBench as published: questions in Parquet with encrypted ground truth, files of predictions, and results.

Questions: a Parquet or JSON Lines file, or the data set's folder (`v1-full/`, else `preview/`, which is not encrypted,
else the files in it), with the columns key, category, question, ground_truths, misc and, where encrypted, canary.

Encryption hides the ground truth from crawlers only. A row's text is UTF-8, combined by XOR with a key stream, then
base64. The key stream is the 32-byte SHA-256 digest of the row's canary (UTF-8), without salt or further hashing,
repeated to the text's length.

Predictions: a JSON list (or JSON Lines) of `{"key", "preds"}`, one file per system and named after it. `preds` may be
JSON text; a row may also have `text`, the prose to read the answer from, and `trace`. Rows of `{"question",
"prediction"}` hold that prose for the question with the same text. A question missing from a file is an empty report,
unless a row of the file is unreadable and might have been for it.

Results: a JSON list (or JSON Lines) of `{"key", "category", "precision", "recall", "f1"}`, named after the system; a
list of these rows and the averages, as the code returns them together, is read too. Results are written with the table
that the code prints.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec

from adjudge.engine.formats.columns import Columns
from adjudge.engine.formats.dataset import (
    UNREADABLE,
    Dataset,
    FormatError,
    InputFile,
    Key,
    Located,
    Prompts,
    rows,
)
from adjudge.engine.formats.recorded import (
    Results,
    RunToWrite,
    dumped,
    folder_name,
    row_number,
    scorecard,
)
from adjudge.engine.formats.records import records
from adjudge.engine.formats.rejected import Rejected
from adjudge.scoring.contract.case import NULL, Report, Task
from adjudge.scoring.contract.scorecard import Scorecard
from adjudge.scoring.livedrbench.livedr import CATEGORIES


class CanaryError(ValueError):
    """A ciphertext that its canary does not open."""


def decrypt(ciphertext: str, canary: str) -> str:
    """The text behind a base64 `ciphertext`.

    Raises CanaryError if it is not base64, or not UTF-8 text once decrypted (which reveals most wrong canaries).
    """
    try:
        return _combined(base64.b64decode(ciphertext, validate=True), canary).decode()
    except (binascii.Error, UnicodeError, ValueError) as error:
        raise CanaryError(f"cannot be decrypted with its canary: {error}") from None


def encrypt(text: str, canary: str) -> str:
    """`text` as base64, so that `decrypt` with the same canary gives it back."""
    return base64.b64encode(_combined(text.encode(), canary)).decode()


def _combined(data: bytes, canary: str) -> bytes:
    digest = hashlib.sha256(canary.encode()).digest()
    stream = (digest * (len(data) // len(digest) + 1))[: len(data)]
    return (int.from_bytes(data) ^ int.from_bytes(stream)).to_bytes(len(data))


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

    task_id: Key | None = msgspec.field(default=None, name="key")
    question: str = ""
    preds: msgspec.Raw = NULL
    prediction: str | None = None
    text: str = ""
    trace: msgspec.Raw = NULL
    prompt: str = ""


class Misc(msgspec.Struct):
    """The part of `misc` that scoring needs."""

    eval_info: msgspec.Raw = NULL


def read(tasks: Path, reports: list[InputFile]) -> Dataset:
    """The dataset of the published questions with the systems of `reports`.

    Raises FormatError if there are no questions, or no reports are named.
    """
    rejected: list[Rejected] = []
    known: dict[str, Task] = {}
    for file in _files(tasks):
        for line, question in rows(file, Question, rejected):
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
    file: InputFile, known: dict[str, Task], prompts: Prompts, rejected: list[Rejected]
) -> Iterator[Located]:
    before, given = len(rejected), set()
    columns = Columns(Prediction, file, prompts)
    for record in records(file, rejected):
        try:
            report = _report(*columns.row(record), prompts)
        except UNREADABLE as error:
            rejected.append(Rejected.of(file, record.line, Prediction, error))
        else:
            given.add(report.task_id)
            yield Located.of(report, f"{file}:{record.line}")
    if len(rejected) > before:
        return
    for task in known:
        if task not in given:
            yield Located.of(Report(task_id=task, system=file.stem, text=""), f"{file}:0")


def _report(system: str, row: Prediction, prompts: Prompts) -> Report:
    """The report of a row. Raises MsgspecError or ValueError if its question or its answer cannot be read."""
    task_id = str(row.task_id) if row.task_id is not None else _asked(row.question, prompts)
    for prompt in (row.prompt, row.question):
        prompts.check(task_id, prompt)
    answer = _answer(row.preds)
    if answer == NULL and not row.text and row.prediction is None:
        raise ValueError("neither `preds` nor `text`")
    return Report(
        task_id=task_id,
        system=system,
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


PROTOCOL = "livedr"
_NAMES = ("precision", "recall", "f1")

Figure = Annotated[float, msgspec.Meta(ge=0)]


class Row(msgspec.Struct, frozen=True):
    """A question's figures."""

    key: Key
    category: str
    precision: Figure
    recall: Figure
    f1: Figure


def read_results(file: Path, system: str, results: Results) -> None:
    """Add the rows of `file` to `results`; those that are not results go to its rejected lines."""
    for line, raw in _raw_rows(file, results.rejected):
        try:
            row = msgspec.json.decode(raw, type=Row)
            values: dict[str, float | None] = {
                name: getattr(row, name) for name in ("f1", "precision", "recall")
            }
            card = scorecard((PROTOCOL, system, str(row.key), 0), values)
        except UNREADABLE as error:
            results.rejected.append(Rejected.of(file, line, Row, error))
            continue
        results.add(card, bytes(raw).decode(), file, line)
        results.tasks.setdefault(str(row.key), Task(id=str(row.key), prompt="", domain=row.category))


def _raw_rows(file: Path, rejected: list[Rejected]) -> Iterator[tuple[int, msgspec.Raw]]:
    if file.suffix == ".jsonl":
        yield from ((line, raw) for line, raw in rows(file, msgspec.Raw, rejected))
        return
    try:
        content = file.read_bytes()
        content.decode()
        listed = msgspec.json.decode(content, type=list[msgspec.Raw])
        if len(listed) == 2 and bytes(listed[0]).lstrip().startswith(b"["):
            listed = msgspec.json.decode(listed[0], type=list[msgspec.Raw])
    except OSError as error:
        raise FormatError(f"{file}: cannot be read: {error.strerror}") from error
    except UNREADABLE as error:
        rejected.append(Rejected(str(file), 0, f"not a JSON list of results: {error}"))
        return
    yield from enumerate(listed, 1)


def write_results(run: RunToWrite, out: Path, categories: dict[str, str]) -> Iterator[Path]:
    """Write the rows and the table for every system below `out`; the files written."""
    for (system, sample), cards in run.of(PROTOCOL).items():
        made = [_row(run, card, categories) for card in cards if card.scores.get("f1") is not None]
        if not made:
            continue
        out.mkdir(parents=True, exist_ok=True)
        file = out / f"{folder_name(system, sample)}.json"
        file.write_text(dumped(made), encoding="utf-8")
        table = file.with_suffix(".txt")
        table.write_text("".join(_lines(made)), encoding="utf-8")
        yield from (file, table)


def _row(run: RunToWrite, card: Scorecard, categories: dict[str, str]) -> dict[str, Any]:
    row = run.row(card) if (PROTOCOL, card.system, card.task_id, card.sample) in run.rows else {}
    made = {"key": row_number(card.task_id), "category": categories.get(card.task_id, ""), **row}
    return made | {name: card.scores[name] for name in _NAMES}


def _lines(made: list[dict[str, Any]]) -> Iterator[str]:
    found = {row["category"] for row in made}
    for name in (*(one for one in CATEGORIES if one in found), *sorted(found - {*CATEGORIES}), "overall"):
        few = made if name == "overall" else [row for row in made if row["category"] == name]
        precision, recall, f1 = (sum(row[one] for row in few) / len(few) for one in _NAMES)
        yield f"{name}: Precision: {precision:.3f}, Recall: {recall:.3f}, F1: {f1:.3f}\n"
