"""People's labels of single verdicts, from a file."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from adjudge.engine.errors import UsageError

__all__ = ["Label", "read_labels", "standing_labels"]


class Label(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One person's verdict on one item, or, with an empty `label`, none: it was `skipped`, or taken back.

    An item is named by its `item`, as `adjudge label` names it, or by `task_id`, `system` and `what`, as the evidence
    of the report words it (`adjudge show`). `label` is one of the labels of the item's kind; for an item named by its
    words, it is a word of the judge's verdicts or the points of a rubric. `url`, `protocol` and `sample` are needed
    only where `what` alone fits several verdicts.
    """

    item: str = ""
    task_id: str = ""
    system: str = ""
    what: str = ""
    label: str = ""
    rater: str = ""
    url: str = ""
    protocol: str = ""
    sample: int = 0
    note: str = ""
    skipped: bool = False

    def __post_init__(self) -> None:
        if not self.item:
            for name in ("task_id", "system", "what", "label"):
                if not getattr(self, name):
                    raise ValueError(f"needs `{name}`, or the `item` that adjudge label gives it")


def read_labels(file: Path) -> list[Label]:
    """The labels in `file`: CSV if its name ends in .csv, else JSON Lines. Raises UsageError.

    Of several for one `item` by one rater the last counts; empty ones are left out.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
        rows = _cells(text) if file.suffix == ".csv" else _lines(text)
    except (OSError, UnicodeDecodeError, csv.Error, msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"labels: {file} cannot be read: {error}") from error
    if not rows:
        raise UsageError(f"labels: {file}: no labels; write some with `adjudge label RUN --out {file}`")
    found = []
    for number, row in enumerate(rows, 1):
        try:
            found.append(msgspec.convert(row, Label, strict=False))
        except msgspec.ValidationError as error:
            raise UsageError(f"labels: {file}, label {number}: {error}") from error
    standing = [label for label in standing_labels(found) if label.label]
    if not standing:
        raise UsageError(f"labels: {file}: every label is empty; fill some in")
    return standing


def standing_labels(labels: Iterable[Label]) -> list[Label]:
    """`labels` without those that a later one for the same item by the same rater replaced."""
    standing: dict[object, Label] = {}
    for place, label in enumerate(labels):
        key: object = (label.item, label.rater) if label.item else place
        standing.pop(key, None)
        standing[key] = label
    return list(standing.values())


def _cells(text: str) -> list[Any]:
    rows = csv.DictReader(io.StringIO(text, newline=""))
    return [{name: cell for name, cell in row.items() if name and cell} for row in rows]


def _lines(text: str) -> list[Any]:
    """The rows of JSON Lines; a last line that was cut off while it was written is left out."""
    *lines, last = text.split("\n")
    rows = [msgspec.json.decode(line) for line in lines if line.strip()]
    try:
        return [*rows, msgspec.json.decode(last)] if last.strip() else rows
    except msgspec.DecodeError:
        if not rows:
            raise
        return rows
