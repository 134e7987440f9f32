"""What a benchmark's result files hold, and what a run needs to be written as such files."""

import json
import math
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from adjudge.engine.formats.dataset import FormatError
from adjudge.engine.formats.rejected import Rejected
from adjudge.fetchers.files import file_name
from adjudge.fetchers.page import Page
from adjudge.scoring.contract.case import Report, Task
from adjudge.scoring.contract.reasons import Reason
from adjudge.scoring.contract.scorecard import Evidence, Scorecard

Identity = tuple[str, str, str, int]
"""Protocol, system, task and sample: what a row of results is about."""

_CHINESE = re.compile(r"[\u4e00-\u9fff]")


class Recorded(msgspec.Struct, frozen=True):
    """A recorded result: its scorecard, and the original row."""

    card: Scorecard
    row: str
    place: str

    @property
    def identity(self) -> Identity:
        """Its identity."""
        return self.card.protocol, self.card.system, self.card.task_id, self.card.sample


class Results(msgspec.Struct):
    """All that a folder of results holds; `pages` by URL are what a benchmark scraped."""

    found: list[Recorded] = []
    tasks: dict[str, Task] = {}
    reports: list[Report] = []
    pages: dict[str, Page] = {}
    rejected: list[Rejected] = []

    def distinct(self) -> "Results":
        """The results with each identity once. Raises FormatError if two rows of one identity differ."""
        seen: dict[Identity, Recorded] = {}
        for one in self.found:
            first = seen.setdefault(one.identity, one)
            if first.card != one.card:
                _, system, task, _ = one.identity
                raise FormatError(
                    f"{one.place}: system {system!r}, task {task!r} was given before with other results "
                    f"({first.place}); import one of the two files"
                )
        return msgspec.structs.replace(self, found=list(seen.values()))


class RunToWrite(msgspec.Struct, frozen=True, dict=True):
    """A run for a writer of results: scorecards in order of protocol, system, task and sample.

    `rows` are those it was imported from, `prompts` its tasks' by id, `texts` its reports' by system, task and sample.
    """

    cards: list[Scorecard]
    rows: dict[Identity, str]
    prompts: dict[str, str]
    texts: dict[tuple[str, str, int], str]
    pages: dict[str, Page]

    def of(self, protocol: str) -> dict[tuple[str, int], list[Scorecard]]:
        """The scorecards of a protocol by system and sample, in the order of `rows`, or else of their tasks' ids."""
        found: dict[tuple[str, int], list[Scorecard]] = {}
        for card in self.cards:
            if card.protocol == protocol:
                found.setdefault((card.system, card.sample), []).append(card)
        return {
            key: sorted(cards, key=lambda card: (self._places.get(_identity(card), -1), _task_order(card)))
            for key, cards in found.items()
        }

    @cached_property
    def _places(self) -> dict[Identity, int]:
        return {identity: place for place, identity in enumerate(self.rows)}

    def row(self, card: Scorecard) -> dict[str, Any]:
        """The row that `card` was imported from, with the task's id (a number where it is one) and prompt first."""
        raw = self.rows.get(_identity(card))
        if raw is not None:
            row: dict[str, Any] = json.loads(raw)
            return row
        made: dict[str, Any] = {"id": row_number(card.task_id)}
        if card.task_id in self.prompts:
            made["prompt"] = self.prompts[card.task_id]
        return made


def _identity(card: Scorecard) -> Identity:
    return card.protocol, card.system, card.task_id, card.sample


def _task_order(card: Scorecard) -> tuple[bool, int, str]:
    number = row_number(card.task_id)
    return (False, number, "") if isinstance(number, int) else (True, 0, number)


def row_number(task_id: str) -> int | str:
    """A task's id as benchmarks write it: a number, if it reads as one."""
    plain = task_id.isascii() and task_id.isdecimal() and len(task_id) < 19 and str(int(task_id)) == task_id
    return int(task_id) if plain else task_id


def scorecard(
    identity: Identity,
    values: dict[str, float | None],
    reason: Reason = "judge_unparseable",
    evidence: Iterable[Evidence] = (),
) -> Scorecard:
    """The scorecard of recorded `values`; None is unscored for `reason`. Raises ValueError for an infinite value."""
    for name, value in values.items():
        if value is not None and not math.isfinite(value):
            raise ValueError(f"{name} must be a finite number")
    missing: dict[str, Reason] = {name: reason for name, value in values.items() if value is None}
    protocol, system, task_id, sample = identity
    return Scorecard(
        protocol=protocol,
        system=system,
        task_id=task_id,
        sample=sample,
        repeat=0,
        scores=values,
        status="unscored" if missing else "scored",
        reason=reason if missing else None,
        reasons=missing,
        evidence=tuple(evidence),
    )


def language_of(prompt: str) -> str:
    """The language of a prompt whose task does not say: Chinese or English."""
    return "zh" if _CHINESE.search(prompt) else "en"


def folder_name(system: str, sample: int) -> str:
    """A folder's or file's name for the results of a system's sample."""
    return f"{file_name(system)} sample {sample}" if sample else file_name(system)


def dumped(row: object) -> str:
    """`row` as the benchmarks' own code writes JSON."""
    return json.dumps(row, ensure_ascii=False)


def write_lines(file: Path, rows: Iterable[object]) -> Iterator[Path]:
    """Write `rows` as JSON Lines, if there are any."""
    lines = [f"{dumped(row)}\n" for row in rows]
    if lines:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(lines), encoding="utf-8")
        yield file
